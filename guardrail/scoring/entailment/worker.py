"""Where models run: a few daemon threads per process, off the event loop."""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, TypeVar, TypeVarTuple

from guardrail.errors import ConfigurationError
from guardrail.pacing import Pace

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
Item = TypeVar("Item")
_AT_EXIT_S = 2.0
_results = Pace(16)


class ScoringWorker:
    """Runs synchronous scoring code without blocking any event loop, and shares its threads fairly between callers.

    Work that comes in parts (:meth:`spread`) takes turns: after each part the next caller has its turn, so somebody
    with one sentence never waits for the end of somebody else's whole answer. Work of one part (:meth:`run`) has its
    turn in the order of arrival.

    Whoever calls waits for the own result, and at most ``max_calls`` calls have been cut into parts at a time; the
    others wait in line. That is the back-pressure, and the bound on memory. One worker serves several event loops and
    survives a fork. Its threads are daemons, so a stuck model never keeps the interpreter alive: when it exits, turns
    that have begun get two seconds, and no other begins.

    Args:
        threads: Number of threads. With more than one, parts of one call run at the same time.
        max_calls: Most calls that take turns; more wait until one of them has ended.

    Raises:
        ConfigurationError: If one of them is no integer of at least 1.

    Example:
        >>> asyncio.run(ScoringWorker().run(max, 1, 2))
        2
    """

    def __init__(self, threads: int = 1, *, max_calls: int = 64) -> None:
        for name, value in (("threads", threads), ("max_calls", max_calls)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ConfigurationError(f"{name} must be an integer of at least 1, got {value!r}")
        self.threads = threads
        self.max_calls = max_calls
        self._reset()

    async def run(self, fn: Callable[[*Ts], T], *args: *Ts) -> T:
        """Call ``fn(*args)`` in a thread of the worker and wait for the result.

        The caller's context variables are visible in ``fn``, so spans that it opens nest under the caller's.

        Args:
            fn: Synchronous code.
            *args: Its arguments.

        Returns:
            What ``fn`` returns; its exceptions are raised here.

        Raises:
            RuntimeError: If the interpreter is exiting.

        On cancellation the call is dropped if it has not begun; otherwise it ends unobserved in its thread.
        """
        (result,) = await self.spread(lambda: (None,), lambda _: fn(*args))
        return result

    async def spread(self, split: Callable[[], Sequence[Item]], work: Callable[[Item], T]) -> list[T]:
        """Do work in parts, taking turns with other callers.

        Args:
            split: Called in a thread, in the first turn; cuts the work into parts.
            work: Called in a thread with one part, the first one in the first turn. With several threads, parts run at
                the same time. Both see the caller's context variables.

        Returns:
            What ``work`` returned, one entry per part, in the order of the parts. The first exception of either is
            raised here, and the parts that have not begun are dropped.

        Raises:
            RuntimeError: If the interpreter is exiting.

        On cancellation the parts that have not begun are dropped; those that run end unobserved in their threads.

        Example:
            >>> asyncio.run(ScoringWorker().spread(lambda: ["a", "bc"], len))
            [1, 2]
        """
        call = _Call(split, work)
        queue = self._submit(call)
        try:
            error = await call.ended
            await _results.turn()  # a loop that was busy finds many that have ended meanwhile
        except asyncio.CancelledError:
            queue.drop(call)
            raise
        if error is None:
            return call.results
        try:
            raise error
        finally:
            del error  # its traceback has this frame: no cycle that keeps the call's texts

    @property
    def queued(self) -> int:
        """Number of calls that have not begun."""
        return self._queue.queued

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._queue = _Queue(self.max_calls)
        self._started = False

    def _submit(self, call: _Call) -> _Queue:
        if _turns.over:
            raise RuntimeError("the interpreter is exiting: nothing can be scored any more")
        if self._pid != os.getpid():
            self._reset()  # threads do not survive a fork, and the lock may have been held at that moment
        queue = self._queue
        queue.add(call)
        with queue.ready:
            start, self._started = not self._started, True
        if start:
            for number in range(1, self.threads + 1):
                name = f"guardrail-scoring-{number}"
                threading.Thread(target=_serve, args=(queue,), name=name, daemon=True).start()
        return queue


def _serve(queue: _Queue) -> None:
    while True:
        _take_turn(queue, *queue.take())  # in a function of its own: an idle thread keeps no text alive


def _take_turn(queue: _Queue, call: _Call, part: tuple[int, Any] | None) -> None:
    error: BaseException | None = None
    with _turns:
        try:
            if part is None:
                part = queue.cut(call, call.inside(call.split))
            if part is not None:
                index, item = part
                call.results[index] = call.inside(call.work, item)
        except BaseException as raised:
            error = raised
    queue.end_turn(call, error)


class _Turns:
    """The turns that are being taken, in all threads of this process.

    A thread inside a model's native code that comes back to an interpreter which is gone aborts the process, whatever
    its exit status was to be. So an interpreter that exits waits for the turns that have begun.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running = 0
        self.over = False

    def __enter__(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self.over)  # for ever: threads are daemons
            self._running += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._changed:
            self._running -= 1
            self._changed.notify_all()

    def end(self, timeout_s: float) -> None:
        """Begin no more turns, and wait for those that have begun, but no longer than that."""
        with self._changed:
            self.over = True
            self._changed.wait_for(lambda: not self._running, timeout_s)


_turns = _Turns()


def _forked() -> None:
    global _turns
    _turns = _Turns()  # those who took turns are not in this process, and one may have held the lock


atexit.register(lambda: _turns.end(_AT_EXIT_S))
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class _Queue:
    """The calls of one worker: some take turns, the rest stand in line. The lock guards also the calls' own state."""

    def __init__(self, max_calls: int) -> None:
        self.ready = threading.Condition()
        self._max_calls = max_calls
        self._line: deque[_Call] = deque()
        self._active: set[_Call] = set()
        self._turns: deque[_Call] = deque()  # active calls of which a part has not begun

    @property
    def queued(self) -> int:
        with self.ready:
            return len(self._line) + sum(not call.begun for call in self._turns)

    def add(self, call: _Call) -> None:
        with self.ready:
            self._line.append(call)
            self._admit()

    def take(self) -> tuple[_Call, tuple[int, Any] | None]:
        """Wait for the next turn: a call and one of its parts, or ``None`` if it has not been cut yet."""
        with self.ready:
            while not self._turns:
                self.ready.wait()
            call = self._turns.popleft()
            call.begun = True
            call.running += 1
            return call, self._next_part(call)

    def cut(self, call: _Call, items: Sequence[Any]) -> tuple[int, Any] | None:
        """Give a call its parts; the first of them, or ``None`` if there is nothing to do."""
        with self.ready:
            call.parts.extend(enumerate(items))
            call.results = [None] * len(items)
            return self._next_part(call)

    def end_turn(self, call: _Call, error: BaseException | None) -> None:
        with self.ready:
            call.running -= 1
            if call not in self._active or (error is None and (call.parts or call.running)):
                return
            self._leave(call)
        call.deliver(error)

    def drop(self, call: _Call) -> None:
        with self.ready:
            if call in self._line:
                self._line.remove(call)
            elif call in self._active:
                self._leave(call)

    def _next_part(self, call: _Call) -> tuple[int, Any] | None:
        if not call.parts or call not in self._active:
            return None
        part = call.parts.popleft()
        if call.parts:  # behind the others, and before this part is done: another thread may take the next one
            self._turns.append(call)
            self.ready.notify()
        return part

    def _leave(self, call: _Call) -> None:
        self._active.remove(call)
        call.parts.clear()
        if call in self._turns:
            self._turns.remove(call)
        self._admit()

    def _admit(self) -> None:
        while self._line and len(self._active) < self._max_calls:
            call = self._line.popleft()
            self._active.add(call)
            self._turns.append(call)
            self.ready.notify()


class _Call:
    """The work of one caller and the future by which it learns that it has ended."""

    def __init__(self, split: Callable[[], Sequence[Any]], work: Callable[[Any], Any]) -> None:
        self.split = split
        self.work = work
        self.begun = False
        self.running = 0
        self.parts: deque[tuple[int, Any]] = deque()
        self.results: list[Any] = []
        self._context = contextvars.copy_context()
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[BaseException | None] = self._loop.create_future()

    def inside(self, fn: Callable[..., T], *args: Any) -> T:
        # Every part has a copy of the context: one context cannot be entered by two threads.
        return self._context.copy().run(fn, *args)

    def deliver(self, error: BaseException | None) -> None:
        if isinstance(error, StopIteration | asyncio.CancelledError):
            # A coroutine raises no StopIteration, and a cancellation that nobody asked for would look like one.
            cause, error = error, RuntimeError(f"scoring code raised {type(error).__name__}")
            error.__cause__ = cause
        try:
            self._loop.call_soon_threadsafe(self._settle, error)
        except RuntimeError:
            pass  # the loop has been closed: nobody waits any more

    def _settle(self, error: BaseException | None) -> None:
        if not self.ended.done():
            self.ended.set_result(error)


_shared_lock = threading.Lock()
_shared: ScoringWorker | None = None


def shared_worker() -> ScoringWorker:
    """The worker that models share unless they are given their own: one thread per process."""
    global _shared
    with _shared_lock:
        if _shared is None:
            _shared = ScoringWorker()
        return _shared
