"""Who waits for which key in one event loop, beyond the queue itself."""

from __future__ import annotations

import asyncio
from collections.abc import Container, Hashable

from guardrail.limits.sharing import RoundTrips

Line = tuple[bytes, ...]
"""What a queue forms for: the names of the keys of a charge."""

_MOST_REMEMBERED = 1024


class Head:
    """The first who waits for a key, while it sleeps.

    Args:
        until: When it asks again, by the limiter's clock.
        number: The limit that refused it.
        cost_milli: What it asks for.
    """

    __slots__ = ("_woken", "cost_milli", "number", "until")

    def __init__(self, until: float, number: int, cost_milli: int) -> None:
        self.until = until
        self.number = number
        self.cost_milli = cost_milli
        self._woken = asyncio.get_running_loop().create_future()

    async def sleep(self, seconds: float) -> None:
        """Sleep for so long, or until :meth:`wake`."""
        await asyncio.wait([self._woken], timeout=seconds)

    def wake(self) -> None:
        """End the sleep."""
        if not self._woken.done():
            self._woken.set_result(None)


class Arrival:
    """One of several who ask for a key at the same time, because nobody waits for it yet.

    Answers can overtake each other. Whoever has to queue up lets those go first who came earlier.
    """

    __slots__ = ("_arrivals", "_before", "_gone", "_line")

    def __init__(self, arrivals: dict[Line, Arrival], line: Line) -> None:
        self._arrivals = arrivals
        self._line = line
        self._before = arrivals.get(line)
        self._gone = asyncio.get_running_loop().create_future()
        arrivals[line] = self

    async def after_you(self) -> None:
        """Wait until all who came earlier have their answers, and have queued up if they had to."""
        if self._before is not None:
            await asyncio.shield(self._before._gone)

    def leave(self) -> None:
        """Let the next one go; it goes when the caller gives way to the event loop."""
        if self._before is None or self._before._gone.done():
            self._let_go()
        else:
            self._before._gone.add_done_callback(lambda _: self._let_go())

    def _let_go(self) -> None:
        if not self._gone.done():
            self._gone.set_result(None)
        self._before = None
        if self._arrivals.get(self._line) is self:
            del self._arrivals[self._line]


class Here:
    """What a limiter keeps for one event loop.

    Args:
        trips: The way to the store.
        busy: For whom somebody queues up.

    Attributes:
        given_back: How often something was given back.
    """

    __slots__ = ("__weakref__", "_forgotten", "_last", "arrivals", "busy", "given_back", "heads", "trips")

    def __init__(self, trips: RoundTrips, busy: Container[Hashable]) -> None:
        self.trips = trips
        self.busy = busy
        self.heads: dict[Line, Head] = {}
        self.arrivals: dict[Line, Arrival] = {}
        self.given_back = 0
        self._last: dict[Line, int] = {}
        self._forgotten = 0

    def given_back_since(self, count: int, line: Line) -> bool:
        """Whether anything was given back since :attr:`given_back` was ``count``; it may err if that is long ago."""
        return self._last.get(line, self._forgotten) > count

    def wake(self, line: Line) -> None:
        """Let the first who waits ask again: something was given back."""
        self.given_back += 1
        if len(self._last) >= _MOST_REMEMBERED:
            self._last.clear()
            self._forgotten = self.given_back
        self._last[line] = self.given_back
        head = self.heads.get(line)
        if head is not None:
            head.wake()
