"""A gate for each key: one at a time goes through, in the order in which they came."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Container, Hashable
from types import TracebackType
from weakref import WeakKeyDictionary


class FifoGate:
    """Lets one waiter per key through at a time, first come, first served.

    Queues belong to the event loop in which they form, and are forgotten with it; nothing needs a loop before that. So
    one gate serves loops one after another and loops in several threads, each with an order of its own. Keys do not
    see each other.

    Example:
        >>> async def main() -> list[int]:
        ...     gate, order = FifoGate(), []
        ...     async def pass_through(number: int) -> None:
        ...         async with gate.turn("tenant"):
        ...             await asyncio.sleep(0)
        ...             order.append(number)
        ...     await asyncio.gather(*(pass_through(number) for number in range(3)))
        ...     return order
        >>> asyncio.run(main())
        [0, 1, 2]
    """

    __slots__ = ("_lock", "_loops")

    def __init__(self) -> None:
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Hashable, _Queue]] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def turn(self, key: Hashable, weight: int = 0, timeout_s: float | None = None) -> Turn:
        """A place in the queue of ``key``; taken when it is entered with ``async with``, given back at its end.

        Args:
            key: Whose queue.
            weight: What the waiter is going to take; :meth:`ahead` adds it up.
            timeout_s: How long to wait for the turn; then entering raises ``TimeoutError``.
        """
        return Turn(self, key, weight, timeout_s)

    def busy_here(self) -> Container[Hashable]:
        """All keys in whose gates somebody on the running loop is, or waits before it; as it is at any time."""
        return self._here()

    def busy(self, key: Hashable) -> bool:
        """Whether somebody on the running loop is in the gate of ``key`` or waits before it."""
        return key in self._here()

    def ahead(self, key: Hashable) -> int:
        """The weights of all who are in the gate of ``key`` or wait before it, on the running loop."""
        queue = self._here().get(key)
        return queue.weight if queue else 0

    def __len__(self) -> int:
        """For how many keys there are queues, on all loops."""
        with self._lock:
            return sum(len(queues) for queues in self._loops.values())

    def _here(self) -> dict[Hashable, _Queue]:
        loop = asyncio.get_running_loop()
        with self._lock:
            queues = self._loops.get(loop)
            if queues is None:
                # A loop that was closed over its waiters is kept alive by their futures: it goes here.
                for other in [known for known in self._loops if known.is_closed()]:
                    del self._loops[other]
                queues = self._loops[loop] = {}
            return queues


class _Queue:
    """The waiters of one key; the first one is in the gate."""

    __slots__ = ("waiters", "weight")

    def __init__(self) -> None:
        self.waiters: deque[Turn] = deque()
        self.weight = 0


class Turn:
    """One waiter's place in a queue. For one use.

    Whoever is cancelled while waiting, also at the very moment when the turn comes, leaves the queue, and the next one
    gets the turn.
    """

    __slots__ = ("_gate", "_key", "_queues", "_ready", "_timeout_s", "_weight")

    def __init__(self, gate: FifoGate, key: Hashable, weight: int, timeout_s: float | None) -> None:
        self._gate = gate
        self._key = key
        self._weight = weight
        self._timeout_s = timeout_s
        self._queues: dict[Hashable, _Queue] = {}
        self._ready: asyncio.Future[None] | None = None

    async def __aenter__(self) -> Turn:
        self._queues = self._gate._here()
        queue = self._queues.setdefault(self._key, _Queue())
        queue.waiters.append(self)
        queue.weight += self._weight
        if queue.waiters[0] is not self:
            self._ready = asyncio.get_running_loop().create_future()
            try:
                async with asyncio.timeout(self._timeout_s):
                    await self._ready
            except BaseException:
                self._leave()
                raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()

    def _leave(self) -> None:
        queue = self._queues[self._key]
        was_first = queue.waiters[0] is self
        queue.waiters.remove(self)
        queue.weight -= self._weight
        if not queue.waiters:
            del self._queues[self._key]
        elif was_first:
            # If that one has just been cancelled itself, it passes the turn on when it leaves.
            ready = queue.waiters[0]._ready
            if ready is not None and not ready.done():
                ready.set_result(None)


class Sleeper:
    """Who sleeps in an event loop until something wakes them."""

    __slots__ = ("loop", "woken")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.woken: asyncio.Future[None] = loop.create_future()

    def wake(self) -> None:
        """End the sleep; in the loop of the sleeper."""
        if not self.woken.done():
            self.woken.set_result(None)
