"""How much may begin in one turn of an event loop.

A loop runs everything that is ready before it looks at its timers and sockets again. Two hundred runs that are read for
the first time at the same moment would all be set up in that one turn, and all their generators called in the next.
Each costs a few tenths of a millisecond, but every other task waits for the sum.

So a few begin per turn, and the others stand in line. Counted, not timed: what a beginning costs is known well enough,
a clock would be read for every run, and it would not see what a beginning causes in later turns. Runs that begin one
after another also reach their sentences and their ends one after another. A thread for it would cost more than it
saves: it is Python code, and what it makes belongs to the loop.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from contextvars import Context


class Pace:
    """Lets a few through per turn of the running loop, first come, first served.

    Whoever comes while there is room goes on at once. Of a crowd that comes together, no turn sees more than
    ``per_turn``; where a line ends, its last and the next newcomers may meet in one turn: twice as many at most.

    Every loop has its own line, loops in several threads included: lines are kept per thread, as a thread runs one loop
    at a time, so there is no lock. A line is gone as soon as a turn passes in which nobody came.

    Args:
        per_turn: How many.

    Example:
        >>> async def main() -> list[int]:
        ...     pace, order = Pace(2), []
        ...     async def begin(number: int) -> None:
        ...         await pace.turn()
        ...         order.append(number)
        ...     await asyncio.gather(*map(begin, range(5)))
        ...     return order
        >>> asyncio.run(main())
        [0, 1, 2, 3, 4]
    """

    __slots__ = ("_here", "_per_turn")

    def __init__(self, per_turn: int) -> None:
        self._per_turn = per_turn
        self._here = _Here()

    async def turn(self) -> None:
        """Wait until there is room.

        Whoever is cancelled while waiting is passed over and takes no room; cancelled at the very moment of being let
        through, the room lapses with the turn, like any that nobody takes.
        """
        loop = asyncio.get_running_loop()
        line = self._here.line
        if line is None or line.loop is not loop:
            line = self._here.line = _Line(loop, self._per_turn)
            loop.call_soon(self._next_turn, line, context=line.context)
        if line.room:
            line.room -= 1
            return
        place = loop.create_future()
        line.waiting.append(place)
        await place

    def _next_turn(self, line: _Line) -> None:
        idle = line.room == self._per_turn
        let_through = 0
        while line.waiting and let_through < self._per_turn:
            place = line.waiting.popleft()
            if not place.done():  # cancelled
                place.set_result(None)
                let_through += 1
        # Those who were let through go on in the next turn: newcomers stay behind them.
        line.room = 0 if let_through else self._per_turn
        if not idle:
            line.loop.call_soon(self._next_turn, line, context=line.context)
        elif self._here.line is line:
            self._here.line = None


class _Line:
    """Who waits on one loop, or for how many more there is room before the next turn."""

    __slots__ = ("context", "loop", "room", "waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop, room: int) -> None:
        self.loop = loop
        self.room = room
        self.waiting: deque[asyncio.Future[None]] = deque()
        self.context = Context()  # not that of the first to come, which would live as long as the line


class _Here(threading.local):
    line: _Line | None = None
