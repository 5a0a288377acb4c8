"""Limits inside one process."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from itertools import islice
from typing import Any

from guardrail.errors import ConfigurationError
from guardrail.limits.costs import (
    MILLI,
    GcraTerms,
    amount,
    capacity_milli,
    check_cost,
    check_key,
    check_timeout,
    check_tokens_per_call,
    digest_of,
    micros,
    seconds,
)
from guardrail.limits.fifo import FifoGate, Sleeper
from guardrail.limits.limit import Limit, as_limits
from guardrail.limits.meters import GcraMeter, Meter, WindowLog
from guardrail.protocols import Clock, Decision

_ALL = b""
"""In the place of a key: what all keys share. No key has it, see ``_slot_of``."""

_LONGEST_KEY = 64
_SWEEP = 4
_EVICTION = 16


class LocalLimiter:
    """Charges calls against limits that are kept in this process.

    Waiters of a key are served in the order in which they came, one after another; keys do not wait for each other.
    Where they share a limit (``scope="global"``), the first waiters of all keys stand in one line, so that a key with
    many waiters does not keep the others out. A waiter sleeps until the moment that its limits name, without polling,
    and is woken earlier when tokens are given back.

    One limiter serves any number of event loops, also in several threads: charges are atomic, the order of waiters
    holds within each loop. Constructing one needs no loop and does no I/O.

    Args:
        limits: One limit or several, as :class:`~guardrail.limits.limit.Limit` or as texts such as ``"60/min"``. A
            charge passes all of them or none.
        tokens_per_call: What a cost of 1 takes from a limit of tokens, until :meth:`settle` says what it was.
        max_keys: How many keys are remembered. Keys whose charges have all expired are forgotten by themselves; beyond
            this number those that were charged longest ago go first, so that memory stays bounded.
        clock: Monotonic time in seconds.

    Raises:
        ConfigurationError: If an argument is out of range.

    Example:
        >>> async def main() -> list[bool]:
        ...     limiter = LocalLimiter("2/min")
        ...     return [(await limiter.acquire("tenant", timeout_s=0)).allowed for _ in range(3)]
        >>> asyncio.run(main())
        [True, True, False]
    """

    def __init__(
        self,
        limits: Any,
        *,
        tokens_per_call: float = 1000.0,
        max_keys: int = 100_000,
        clock: Clock = time.monotonic,
    ) -> None:
        if not isinstance(max_keys, int) or isinstance(max_keys, bool) or max_keys < 1:
            raise ConfigurationError(f"max_keys must be a whole number from 1 on, got {max_keys!r}")
        self._limits = as_limits(limits)
        self._own = tuple(limit for limit in self._limits if limit.scope == "key")
        self._common = tuple(limit for limit in self._limits if limit.scope == "global")
        self._terms = {limit: GcraTerms.of(limit) for limit in self._limits if limit.mode == "gcra"}
        self._capacities = [(limit, capacity_milli(limit)) for limit in self._limits]
        self._tokens_per_call = check_tokens_per_call(tokens_per_call)
        self._max_keys = max_keys
        self._clock = clock
        self._gate = FifoGate()
        self._lock = threading.Lock()  # for arithmetic only, never across an await
        self._keys: OrderedDict[Hashable, list[Meter]] = OrderedDict()  # the one charged longest ago is first
        self._common_meters = [self._new_meter(limit) for limit in self._common]
        self._sleepers: dict[Hashable, set[Sleeper]] = {}

    @property
    def limits(self) -> tuple[Limit, ...]:
        """The limits."""
        return self._limits

    async def acquire(self, key: str, cost: float = 1.0, timeout_s: float | None = None) -> Decision:
        """Charge ``cost`` to ``key``, waiting for room if there is none.

        Args:
            key: Who is charged; any text.
            cost: In calls; a limit of tokens is charged ``cost * tokens_per_call``. 0 charges nothing.
            timeout_s: Most seconds to wait; 0 for not at all, ``None`` for as long as it takes.

        Returns:
            The decision, with ``source="local"``. Refused at once, without waiting, if the wait that is known to be
            needed is longer than the timeout (then ``retry_after_s`` says when it can succeed), or if the cost is more
            than a limit ever takes (then it is ``None``). A refusal charges nothing.

        Raises:
            ConfigurationError: If an argument is of the wrong type or out of range.

        Cancellation while waiting charges nothing and lets the next one through.
        """
        slot = _slot_of(check_key(key))
        milli = check_cost(cost)
        request = _Request(slot, milli, check_timeout(timeout_s), self._clock())
        if not milli:
            return self._free_of_charge(slot)
        for limit, capacity in self._capacities:
            if self._amount(limit, milli) > capacity:
                return Decision(allowed=False, source="local", limit=str(limit))
        answer = self._charge_or_wait(request, own_turn=False)
        if isinstance(answer, Decision):
            return answer
        try:
            async with self._gate.turn(slot, milli, request.rest_s(self._clock())):
                request.check_in_time(self._clock())
                return await self._serve(request)
        except TimeoutError:
            with self._lock:
                waits = self._waits(request, own_turn=False)
            return self._refusal(request, waits)

    async def _serve(self, request: _Request) -> Decision:
        """The part of whoever is first in the line of its key."""
        while True:
            answer = self._charge_or_wait(request)
            if isinstance(answer, Decision):
                return answer
            if answer.own_us:
                await self._sleep(request.slot, answer.own_us)
                continue
            async with self._gate.turn(_ALL, request.milli, request.rest_s(self._clock())):
                request.check_in_time(self._clock())
                while True:
                    answer = self._charge_or_wait(request, common_turn=True)
                    if isinstance(answer, Decision):
                        return answer
                    if answer.own_us:
                        break  # whoever waits for a limit of their own leaves the line of all
                    await self._sleep(_ALL, answer.longest_us)

    def _charge_or_wait(
        self, request: _Request, *, own_turn: bool = True, common_turn: bool = False
    ) -> Decision | _Waits:
        """Charge if it fits and nobody is before us; refuse if it cannot fit in time; else say what to wait for."""
        with self._lock:
            waits = self._waits(request, own_turn=own_turn, common_turn=common_turn)
            # Who does not wait may pass those who do, if there is room for them too.
            if not waits.longest_us and (waits.first or request.timeout_s == 0):
                return self._charge(request)
        rest_s = request.rest_s(self._clock())
        if rest_s is not None and seconds(waits.longest_us) > rest_s:
            return self._refusal(request, waits)
        return waits

    def _waits(self, request: _Request, *, own_turn: bool = True, common_turn: bool = False) -> _Waits:
        """How long it takes until those who are before us, and then we, fit into the limits."""
        now = micros(self._clock())
        before_us = 0 if own_turn else self._gate.ahead(request.slot)
        before_all = 0 if common_turn or not self._common else self._gate.ahead(_ALL)
        found = _Waits(first=not before_us and not before_all)
        for limit, meter in zip(self._own, self._meters(request.slot), strict=True):
            wait_us = meter.wait_us(self._amount(limit, before_us + request.milli), now)
            found.own_us = max(found.own_us, wait_us)
            found.note(limit, wait_us)
        for limit, meter in zip(self._common, self._common_meters, strict=True):
            before = max(before_us, before_all)
            found.note(limit, meter.wait_us(self._amount(limit, before + request.milli), now))
        return found

    def _charge(self, request: _Request) -> Decision:
        now = micros(self._clock())
        marks = self._take(request.slot, request.milli, now)
        return Decision(
            allowed=True,
            waited_s=max(self._clock() - request.since_s, 0.0),
            remaining=self._remaining(request.slot, now),
            source="local",
            reservation=_Reservation(self, request.slot, marks),
        )

    def _refusal(self, request: _Request, waits: _Waits) -> Decision:
        return Decision(
            allowed=False,
            waited_s=max(self._clock() - request.since_s, 0.0),
            retry_after_s=seconds(max(waits.longest_us, 1)),
            source="local",
            limit=str(waits.limit or self._limits[0]),
        )

    def _free_of_charge(self, slot: Hashable) -> Decision:
        with self._lock:
            return Decision(allowed=True, remaining=self._remaining(slot, micros(self._clock())), source="local")

    def charge(self, key: str, cost: float = 1.0) -> None:
        """Record a charge that was decided elsewhere: it never waits; beyond the limits, it delays later charges.

        Raises:
            ConfigurationError: If an argument is of the wrong type or out of range.
        """
        slot = _slot_of(check_key(key))
        milli = check_cost(cost)
        if milli:
            with self._lock:
                self._take(slot, milli, micros(self._clock()))

    def note(self, key: str, cost: float = 1.0) -> None:
        """Record a charge that another limiter let through, so that this one is warm when it has to take over.

        As :meth:`charge`, but it never leaves a bucket more than empty: the other one may let more through than the
        limits here, for hours, and that is not to be paid back here.

        Raises:
            ConfigurationError: If an argument is of the wrong type or out of range.
        """
        slot = _slot_of(check_key(key))
        milli = check_cost(cost)
        if milli:
            with self._lock:
                now = micros(self._clock())
                for limit, meter in zip(self._own + self._common, self._meters_to_charge(slot), strict=True):
                    meter.note(self._amount(limit, milli), now)
                self._forget(now)

    async def settle(self, decision: Decision, tokens: float) -> None:
        """Replace the tokens that a decision of this limiter reserved by those that were used.

        It counts as if the right number had been charged in the first place. More than was reserved is charged without
        asking for room; less makes room, and whoever waits is woken. May be called again with a better number. A
        decision that charged no tokens here, or whose charge has expired, changes nothing.

        Raises:
            ConfigurationError: If ``tokens`` is not a finite number from 0 on.
        """
        after = check_cost(tokens)
        reservation = decision.reservation
        if not isinstance(reservation, _Reservation) or reservation.limiter is not self:
            return
        with self._lock:
            refunded = self._replace(reservation, after)
            sleepers = [sleeper for slot in refunded for sleeper in self._sleepers.get(slot, ())]
        for sleeper in sleepers:
            with contextlib.suppress(RuntimeError):  # its loop was closed meanwhile
                sleeper.loop.call_soon_threadsafe(sleeper.wake)

    def _replace(self, reservation: _Reservation, after: int) -> set[Hashable]:
        """Change the charges on limits of tokens; returns who may wait for what has become free."""
        now = micros(self._clock())
        refunded: set[Hashable] = set()
        own = self._meters(reservation.slot)
        meters = zip(self._own + self._common, own + self._common_meters, reservation.charges, strict=True)
        for limit, meter, charged in meters:
            if limit.unit == "tokens":
                charged.mark = meter.settle(charged.mark, charged.amount, after, now)
                if after < charged.amount:
                    refunded.add(_ALL if limit.scope == "global" else reservation.slot)
                charged.amount = after
        if not all(meter.idle(now) for meter in own):
            self._keys.setdefault(reservation.slot, own)
            self._forget(now)
        return refunded

    async def aclose(self) -> None:
        """There is nothing to close; limiters are closed alike."""

    async def __aenter__(self) -> LocalLimiter:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"LocalLimiter({', '.join(map(str, self._limits))})"

    def _amount(self, limit: Limit, milli: int) -> int:
        return amount(limit, milli, self._tokens_per_call)

    def _new_meter(self, limit: Limit) -> Meter:
        return GcraMeter(self._terms[limit]) if limit.mode == "gcra" else WindowLog(limit)

    def _meters(self, slot: Hashable) -> list[Meter]:
        return self._keys.get(slot) or [self._new_meter(limit) for limit in self._own]

    def _remaining(self, slot: Hashable, now: int) -> float:
        return min(meter.left(now) for meter in self._meters(slot) + self._common_meters) / MILLI

    def _meters_to_charge(self, slot: Hashable) -> list[Meter]:
        own = self._meters(slot)
        if own:
            self._keys[slot] = own
            self._keys.move_to_end(slot)
        return own + self._common_meters

    def _take(self, slot: Hashable, milli: int, now: int) -> list[_Charged]:
        charges = []
        for limit, meter in zip(self._own + self._common, self._meters_to_charge(slot), strict=True):
            taken = self._amount(limit, milli)
            charges.append(_Charged(taken, meter.take(taken, now)))
        self._forget(now)
        return charges

    def _forget(self, now: int) -> None:
        """Drop a few keys that owe nothing any more, and one that may, if there are too many."""
        for slot in list(islice(self._keys, _SWEEP)):
            if all(meter.idle(now) for meter in self._keys[slot]):
                del self._keys[slot]
        if len(self._keys) > self._max_keys:
            oldest = list(islice(self._keys, _EVICTION))
            idle = (slot for slot in oldest if all(meter.idle(now) for meter in self._keys[slot]))
            del self._keys[next(idle, oldest[0])]

    async def _sleep(self, slot: Hashable, wait_us: int) -> None:
        """Sleep, or until room is made in ``slot``."""
        sleeper = Sleeper(asyncio.get_running_loop())
        with self._lock:
            self._sleepers.setdefault(slot, set()).add(sleeper)
        cancel_alarm = self._set_alarm(seconds(wait_us), sleeper.wake)
        try:
            await sleeper.woken
        finally:
            cancel_alarm()
            with self._lock:
                self._sleepers[slot].discard(sleeper)
                if not self._sleepers[slot]:
                    del self._sleepers[slot]

    def _set_alarm(self, delay_s: float, ring: Callable[[], None]) -> Callable[[], None]:
        """Have ``ring`` called later; what comes back calls it off. Tests put a clock of their own here."""
        return asyncio.get_running_loop().call_later(delay_s, ring).cancel


@dataclass(frozen=True, slots=True)
class _Request:
    slot: Hashable
    milli: int
    timeout_s: float | None
    since_s: float

    def rest_s(self, now_s: float) -> float | None:
        """What is left of the timeout."""
        return None if self.timeout_s is None else max(self.timeout_s - max(now_s - self.since_s, 0.0), 0.0)

    def check_in_time(self, now_s: float) -> None:
        """A turn that comes when the time is over is none, also if the loop was too busy to say so before."""
        if self.timeout_s is not None and now_s - self.since_s > self.timeout_s:
            raise TimeoutError


@dataclass(slots=True)
class _Waits:
    """How long to wait: for the limits of the key, and for all; and whether nobody is before us."""

    first: bool
    own_us: int = 0
    longest_us: int = 0
    limit: Limit | None = None

    def note(self, limit: Limit, wait_us: int) -> None:
        if wait_us > self.longest_us:
            self.longest_us, self.limit = wait_us, limit


@dataclass(slots=True)
class _Charged:
    amount: int
    mark: Any


@dataclass(slots=True)
class _Reservation:
    limiter: LocalLimiter
    slot: Hashable
    charges: list[_Charged]


def _slot_of(key: str) -> Hashable:
    """A key as it is remembered: a long one takes no more room than a short one."""
    return key if len(key) <= _LONGEST_KEY else digest_of(key).encode()
