"""Calls of one event loop that travel together: while one round trip is under way, the next one fills."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import Context
from itertools import chain
from typing import Any, Protocol

from guardrail.redis_store import Call, StoreUnavailableError

_TIMER_EARLY_S = 0.001
"""Event loops run timers that are due within the resolution of their clock."""


class Store(Protocol):
    """What takes the calls."""

    async def call(self, calls: Sequence[Call]) -> list[Any]:
        """All calls in one round trip; raises :class:`~guardrail.redis_store.StoreUnavailableError`."""
        ...


class RoundTrips:
    """Brings calls to the store, several in one round trip, in the order in which they came.

    Each call is one record for its script; those of the same script on the same keys run as one, with their records one
    after the other. The round trips belong to no caller: who is cancelled before a call is sent takes it back; who is
    cancelled after that leaves a call whose answer nobody takes, and its ``undo`` decides what to do about it. The
    others in the same round trip notice nothing. No call is ever sent twice.

    Args:
        store: Where the calls go.
        most_calls: Most calls in one round trip.
        most_trips: Most round trips under way at once.
        longest_wait_s: Longest wait for a round trip to begin.
        on_lost: Called for each posted call that failed.
    """

    def __init__(
        self,
        store: Store,
        *,
        most_calls: int,
        most_trips: int,
        longest_wait_s: float,
        on_lost: Callable[[Exception], None],
    ) -> None:
        self._store = store
        self._most_calls = most_calls
        self._most_trips = most_trips
        self._longest_wait_s = longest_wait_s
        self._on_lost = on_lost
        self._waiting: deque[_Entry] = deque()
        self._watched = False  # whether there is a timer, one for all who wait; it would hold the event loop
        self._trips: set[asyncio.Task[None]] = set()

    async def ask(
        self, call: Call, *, undo: Callable[[list[int]], None], wanted: Callable[[], bool] | None = None
    ) -> list[int] | None:
        """Send a call with the next round trip and wait for its reply.

        Args:
            call: The call.
            undo: Gets the reply if the caller went away before it could take it.
            wanted: Asked just before the call is sent; if it says no, the call is not sent.

        Returns:
            The answer, whole numbers, or ``None`` if the call was not wanted any more.

        Raises:
            StoreUnavailableError: If the round trip failed; what became of the call is then unknown. Also if the one
                before it timed out, or none began in time (``pool_exhausted``); then it was not sent.
        """
        loop = asyncio.get_running_loop()
        entry = _Entry(call, loop.create_future(), undo, wanted, loop.time() + self._longest_wait_s)
        self._add(entry)
        try:
            outcome = await entry.reply
        except asyncio.CancelledError:
            # Cancelled in the moment of the answer: it is here, but this task does not get to use it.
            if entry.reply.done() and not entry.reply.cancelled():
                _undo(entry, entry.reply.result())
            raise
        if isinstance(outcome, StoreUnavailableError):
            raise StoreUnavailableError(outcome.reason) from outcome
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def post(self, call: Call) -> asyncio.Future[list[int] | Exception | None]:
        """Send a call with the next round trip, whether or not somebody waits for it.

        Returns:
            What it came to: the answer, or the exception as a value.
        """
        entry = _Entry(call, asyncio.get_running_loop().create_future(), None, None, math.inf)
        self._add(entry)
        return entry.reply

    async def drain(self) -> None:
        """Wait until every call has its answer."""
        while self._trips:
            await asyncio.wait(set(self._trips))

    def _add(self, entry: _Entry) -> None:
        self._waiting.append(entry)
        if len(self._trips) < self._most_trips:
            # In a context of its own: spans and variables of the caller who happens to be first are not the others'.
            trip = asyncio.get_running_loop().create_task(self._travel(), context=Context())
            self._trips.add(trip)
            trip.add_done_callback(self._trips.discard)  # for one that is cancelled before it begins
        if not self._watched:
            self._watch(entry)

    def _watch(self, entry: _Entry) -> None:
        if entry.until < math.inf:
            self._watched = True
            asyncio.get_running_loop().call_at(entry.until, self._end_long_waits)

    def _end_long_waits(self) -> None:
        self._watched = False
        due = asyncio.get_running_loop().time() + _TIMER_EARLY_S
        self._turn_away(StoreUnavailableError("pool_exhausted"), due)
        if self._waiting:
            self._watch(min(self._waiting, key=lambda entry: entry.until))

    async def _travel(self) -> None:
        try:
            await self._travel_while_needed()
        finally:
            # At once, not when the task's callbacks run: a call that comes in between would find nobody to take it.
            self._trips.discard(asyncio.current_task())

    async def _travel_while_needed(self) -> None:
        while batch := self._next_batch():
            outcomes: Sequence[list[int] | Exception]
            try:
                outcomes = await self._call(batch)
            except asyncio.CancelledError:
                # Only the end of the event loop does that; the callers may not be cancelled themselves.
                self._hand_out(batch, [StoreUnavailableError("timeout")] * len(batch))
                raise
            except Exception as error:
                outcomes = [error] * len(batch)
                if isinstance(error, StoreUnavailableError) and error.reason == "timeout":
                    # Whoever waits has waited for the same silence; nobody pays for it twice.
                    self._turn_away(error, math.inf)
            self._hand_out(batch, outcomes)
            # Whoever has an answer now may queue up, or ask again and travel with the next batch.
            await asyncio.sleep(0)

    async def _call(self, batch: Sequence[_Entry]) -> list[list[int] | Exception]:
        """What all entries came to; those with the same script and keys run as one."""
        runs: dict[tuple[str, tuple[str | bytes, ...]], list[int]] = {}
        for place, entry in enumerate(batch):
            runs.setdefault((entry.call.script.name, entry.call.keys), []).append(place)
        calls = []
        for places in runs.values():
            call = batch[places[0]].call
            if len(places) > 1:
                call = Call(call.script, call.keys, tuple(chain.from_iterable(batch[i].call.args for i in places)))
            calls.append(call)
        try:
            replies = await self._store.call(calls)
        except StoreUnavailableError as error:
            replies = list(error.replies or ())
            if all(isinstance(reply, StoreUnavailableError) for reply in replies):
                raise
            # The others did run: they have charged.
        answers: list[list[int] | Exception] = [[]] * len(batch)
        for places, reply in zip(runs.values(), replies, strict=True):
            if isinstance(reply, StoreUnavailableError):
                for place in places:
                    answers[place] = reply
                continue
            for place, line in zip(places, reply.split(b"\n"), strict=True):
                answers[place] = [int(number) for number in line.split()]
        return answers

    def _hand_out(self, batch: Sequence[_Entry], outcomes: Sequence[list[int] | Exception]) -> None:
        for entry, outcome in zip(batch, outcomes, strict=True):
            if entry.undo is None and isinstance(outcome, Exception):
                self._on_lost(outcome)
            if entry.reply.done():
                _undo(entry, outcome)
            else:
                entry.reply.set_result(outcome)

    def _turn_away(self, error: StoreUnavailableError, due: float) -> None:
        # Nothing of this was sent. What nobody waits for is not turned away.
        waiting, self._waiting = self._waiting, deque()
        for entry in waiting:
            if entry.until >= due:
                self._waiting.append(entry)
            elif not entry.reply.done():
                entry.reply.set_result(error)

    def _next_batch(self) -> list[_Entry]:
        batch: list[_Entry] = []
        while self._waiting and len(batch) < self._most_calls:
            entry = self._waiting.popleft()
            if entry.reply.done():
                continue
            if entry.wanted is not None and not entry.wanted():
                entry.reply.set_result(None)
            else:
                batch.append(entry)
        return batch


class _Entry:
    """One call on its way."""

    __slots__ = ("call", "reply", "undo", "until", "wanted")

    def __init__(
        self,
        call: Call,
        reply: asyncio.Future[list[int] | Exception | None],
        undo: Callable[[list[int]], None] | None,
        wanted: Callable[[], bool] | None,
        until: float,
    ) -> None:
        self.call = call
        self.reply = reply
        self.undo = undo
        self.wanted = wanted
        self.until = until  # by the event loop's time, then it is sent no more


def _undo(entry: _Entry, outcome: list[int] | Exception | None) -> None:
    if entry.undo is not None and isinstance(outcome, list):
        entry.undo(outcome)
