"""Limits that several processes share, kept in Redis."""

from __future__ import annotations

import asyncio
import logging
import math
import random
import threading
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any
from weakref import WeakKeyDictionary

from guardrail.limits.costs import check_cost, check_key, check_timeout, check_tokens_per_call
from guardrail.limits.degraded import Fallback, OnError
from guardrail.limits.fifo import FifoGate
from guardrail.limits.limit import as_limits
from guardrail.limits.redis_calls import (
    KeyNames,
    Reservation,
    Terms,
    acquire_call,
    new_id,
    refused,
    settle_call,
    undo_call,
)
from guardrail.limits.sharing import RoundTrips
from guardrail.limits.waiting import Arrival, Head, Here, Line
from guardrail.protocols import Clock, Decision
from guardrail.redis_store import RedisStore, StoreUnavailableError

_log = logging.getLogger("guardrail.limits")

_MOST_SHARED = 128
_MOST_PRICES = 256
_JITTER_SHARE = 0.1
_MOST_JITTER_S = 0.02
_LEAST_RETRY_S = 0.001
_AGAIN_S = 0.5  # after a failure that did not open the breaker, or while one call tries


class RedisLimiter:
    """Charges limits that all processes with the same Redis server and ``name`` share.

    One script checks and charges all limits in one round trip, by the server's clock: the clocks of the processes do
    not matter. Waiting happens here: a charge that does not fit sleeps for as long as Redis said, and a little longer
    so that processes do not come back in step. Of all who wait for a key only the first asks, so they are served in
    order; waiters of one key never delay another key.

    While Redis cannot be reached, ``on_error`` decides: ``"local"`` keeps each process to its share of the limits,
    ``"open"`` lets everything through, ``"closed"`` nothing. Each such decision says why in ``degraded``. Redis is used
    again by itself. An answer that did not come in time is not asked for again, because it would be charged twice:
    what Redis has charged for it stays charged.

    On cancellation while waiting nothing is charged; a charge that Redis makes at that moment is given back.

    Args:
        url_or_store: URL of the server, or a :class:`~guardrail.redis_store.RedisStore` that the caller closes.
        limits: One limit or several, as values or texts; all of them are charged, or none. The same in all processes.
        name: Processes whose limiters have the same name share limits.
        on_error: What decides while Redis cannot be reached.
        replicas: How many processes share the limits; for ``on_error="local"``.
        tokens_per_call: Tokens that a cost of 1 reserves from limits of tokens, until :meth:`settle` knows better.
        share_round_trips: Whether charges that are made at the same time go to the server together.
        timeout_s: Longest wait for a connection and for a reply, each; for a URL.
        max_connections: Connections per event loop; for a URL.
        clock: Monotonic seconds; measures waits, decides about no limit.
        rng: Numbers in [0, 1) for the jitter.

    Attributes:
        degraded_decisions: How many decisions were made without Redis.
        unsettled: How many charges could not be corrected, because Redis could not be reached.

    Raises:
        ConfigurationError: If an argument is wrong.
        MissingExtraError: If the extra ``redis`` is not installed.

    Example:
        >>> limiter = RedisLimiter("redis://localhost:6379", ["60/min", "100000 tokens/min"], replicas=4)
        >>> limiter
        RedisLimiter('redis://localhost:6379/0', 60 calls per 60 s, 100000 tokens per 60 s)
        >>> limiter.degraded_decisions
        0
    """

    def __init__(
        self,
        url_or_store: str | RedisStore,
        limits: Any,
        *,
        name: str = "guardrail",
        on_error: OnError = "local",
        replicas: int = 1,
        tokens_per_call: float = 1000.0,
        share_round_trips: bool = True,
        timeout_s: float = 0.25,
        max_connections: int = 32,
        clock: Clock = time.monotonic,
        rng: Callable[[], float] = random.random,
    ) -> None:
        self.degraded_decisions = 0
        self.unsettled = 0
        self._limits = as_limits(limits)
        tokens_milli = check_tokens_per_call(tokens_per_call)
        self._terms = tuple(Terms(limit, tokens_milli) for limit in self._limits)
        self._names = KeyNames(name, self._limits)
        self._fallback = Fallback(
            on_error, self._limits, replicas=replicas, tokens_per_call=tokens_per_call, clock=clock
        )
        self._owned: RedisStore | None = None
        if isinstance(url_or_store, str):
            url_or_store = self._owned = RedisStore(
                url_or_store, timeout_s=timeout_s, connect_timeout_s=timeout_s, max_connections=max_connections
            )
        self._store = url_or_store
        self._most_calls, self._most_trips = (_MOST_SHARED, 2) if share_round_trips else (1, max_connections)
        self._prices: dict[float, _Price] = {}
        self._clock = clock
        self._rng = rng
        self._gate = FifoGate()
        self._lock = threading.Lock()
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, Here] = WeakKeyDictionary()

    async def acquire(self, key: str, cost: float = 1.0, timeout_s: float | None = None) -> Decision:
        """Charge ``cost`` to ``key``, waiting up to ``timeout_s`` seconds for room.

        Args:
            key: Who is charged: any text.
            cost: How much, from 0 on; 0 is not charged. Limits of tokens are charged ``tokens_per_call`` times that.
            timeout_s: Longest wait; ``None`` for as long as it takes, 0 for none. Asking comes on top: at most the
                store's deadline, or twice that if answers are so slow that charges queue up for a round trip
                (who is not sent in that time is not charged).

        Returns:
            The decision. If the wait is known to be longer than the timeout, it is a refusal, at once. A cost above the
            capacity of a limit is refused without a ``retry_after_s``: it never fits.

        Raises:
            ConfigurationError: If an argument is wrong.

        On cancellation nothing is charged.
        """
        check_key(key)
        timeout_s = check_timeout(timeout_s)
        price = self._price(cost)
        if price.milli == 0:
            return Decision(allowed=True, source="redis")
        if price.beyond:
            return Decision(allowed=False, source="redis", limit=price.beyond)
        wanted = _Wanted(self._names.of(key), price, self._clock(), timeout_s)
        try:
            decision = await self._decide(wanted)
        except StoreUnavailableError as error:
            return await self._without_redis(key, cost, wanted, error.reason)
        if decision.allowed:
            self._fallback.charged(key, cost)
        return decision

    async def settle(self, decision: Decision, tokens: float) -> None:
        """Replace the tokens that a decision reserved by those that were used.

        It does not wait for room; what was used beyond what was reserved delays later charges. A charge that is no
        longer there is left alone. If Redis cannot be reached, the reserved tokens stay charged: it is counted in
        :attr:`unsettled`, and logged the first time.

        Args:
            decision: From :meth:`acquire`.
            tokens: How many were used, from 0 on.

        Raises:
            ConfigurationError: If ``tokens`` is not a finite number from 0 on.

        On cancellation the correction is made all the same.
        """
        tokens_milli = check_cost(tokens)
        reservation = decision.reservation
        if not isinstance(reservation, Reservation):
            await self._fallback.settle(decision, tokens)
            return
        if reservation.terms is not self._terms:
            return  # of another limiter
        call = settle_call(reservation, [tokens_milli if term.limit.unit == "tokens" else None for term in self._terms])
        if call is None:
            return
        here = self._here()
        correction = here.trips.post(call)
        correction.add_done_callback(lambda _: here.wake(reservation.names))
        await asyncio.shield(correction)

    async def aclose(self) -> None:
        """Finish what is under way in the running event loop and close its connections.

        A store that was handed in stays open. The limiter can be used again; it then connects anew.
        """
        with self._lock:
            here = self._loops.pop(asyncio.get_running_loop(), None)
        if here is not None:
            await here.trips.drain()
        if self._owned is not None:
            await self._owned.aclose()
        await self._fallback.aclose()

    async def __aenter__(self) -> RedisLimiter:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"RedisLimiter({self._store.url_for_display!r}, {', '.join(map(str, self._limits))})"

    def _price(self, cost: float) -> _Price:
        # Most costs are the same few; computing them exactly takes longer than the rest of a charge.
        known = self._prices.get(cost) if type(cost) in (int, float) else None
        if known is not None:
            return known
        milli = check_cost(cost)
        amounts = [term.amount(milli) for term in self._terms]
        beyond = [str(term.limit) for term, amount in zip(self._terms, amounts, strict=True) if amount > term.capacity]
        price = _Price(
            milli,
            tuple(term.argument(amount) for term, amount in zip(self._terms, amounts, strict=True)),
            tuple(term.demand(amount) for term, amount in zip(self._terms, amounts, strict=True)),
            beyond[0] if beyond else "",
        )
        if len(self._prices) < _MOST_PRICES:
            self._prices[cost] = price
        return price

    async def _decide(self, wanted: _Wanted) -> Decision:
        here, line = self._here(), wanted.names
        number, wait_s, asked = 0, 0.0, here.given_back
        if line not in here.busy:
            arrival = Arrival(here.arrivals, line)
            try:
                answer = await self._ask(here, wanted, lambda: line not in here.busy)
                if isinstance(answer, Decision):
                    return answer
                number, wait_s = answer
                if wait_s > self._left_s(wanted):
                    return self._refusal(wanted, number, wait_s, waited=False)
                until = self._clock() + wait_s
                await arrival.after_you()
                wait_s = max(until - self._clock(), 0.0)
            finally:
                arrival.leave()
        if line in here.busy:
            number, least_s = self._least_wait(here, wanted)
            if least_s >= self._left_s(wanted):
                return self._refusal(wanted, number, least_s, waited=False)
            wait_s = 0.0  # it asks anew when its turn comes
        async with AsyncExitStack() as place:
            left_s = None if wanted.timeout_s is None else self._left_s(wanted)
            try:
                await place.enter_async_context(self._gate.turn(line, wanted.price.milli, left_s))
            except TimeoutError:
                return self._refusal(wanted, *self._least_wait(here, wanted), waited=True)
            place.callback(here.heads.pop, line, None)
            return await self._at_the_head(here, wanted, wait_s, number, asked)

    async def _at_the_head(self, here: Here, wanted: _Wanted, wait_s: float, number: int, asked: int) -> Decision:
        while True:
            # The answer may be older than what was given back while it was on its way.
            if wait_s > 0 and not here.given_back_since(asked, wanted.names):
                here.heads[wanted.names] = head = Head(self._clock() + wait_s, number, wanted.price.milli)
                await head.sleep(wait_s + self._jitter_s(wait_s, self._left_s(wanted)))
            asked = here.given_back
            answer = await self._ask(here, wanted)
            if isinstance(answer, Decision):
                return replace(answer, waited_s=self._clock() - wanted.started)
            number, wait_s = answer
            if wait_s > self._left_s(wanted):
                return self._refusal(wanted, number, wait_s, waited=True)

    async def _ask(
        self, here: Here, wanted: _Wanted, still: Callable[[], bool] | None = None
    ) -> Decision | tuple[int, float]:
        """Ask Redis: a grant, or which limit refused and for how long; that is 0 if it was not to be asked any more."""
        price = wanted.price
        reservation = Reservation(new_id(), self._terms, wanted.names, list(price.arguments), [])

        def give_back(answer: list[int]) -> None:
            if refused(answer) is None:
                reservation.states = answer[2:]
                call = undo_call(reservation)
                if call is not None:
                    here.trips.post(call).add_done_callback(lambda _: here.wake(wanted.names))

        call = acquire_call(reservation.id, wanted.names, price.demands)
        answer = await here.trips.ask(call, undo=give_back, wanted=still)
        if answer is None:
            return 0, 0.0
        refusal = refused(answer)
        if refusal is not None:
            return refusal
        reservation.states = states = answer[2:]
        left = min([term.left(state, answer[1]) for term, state in zip(self._terms, states, strict=True)])
        return Decision(allowed=True, remaining=left, source="redis", reservation=reservation)

    async def _without_redis(self, key: str, cost: float, wanted: _Wanted, reason: str) -> Decision:
        self.degraded_decisions += 1
        decision = await self._fallback.decide(
            key,
            cost,
            None if wanted.timeout_s is None else self._left_s(wanted),
            reason=reason,
            again_s=self._store.breaker.retry_in_s or _AGAIN_S,
        )
        return replace(decision, waited_s=self._clock() - wanted.started)

    def _refusal(self, wanted: _Wanted, number: int, wait_s: float, *, waited: bool) -> Decision:
        return Decision(
            allowed=False,
            waited_s=self._clock() - wanted.started if waited else 0.0,
            retry_after_s=max(wait_s, _LEAST_RETRY_S),
            source="redis",
            limit=str(self._limits[number]),
        )

    def _least_wait(self, here: Here, wanted: _Wanted) -> tuple[int, float]:
        """For which limit, and how long at least, somebody waits who queues up now."""
        head = here.heads.get(wanted.names)
        if head is None:
            return 0, 0.0
        term = self._terms[head.number]
        behind = self._gate.ahead(wanted.names) - head.cost_milli + wanted.price.milli
        until_s = max(head.until - self._clock(), 0.0)
        return head.number, term.earliest_s(until_s, term.amount(head.cost_milli), term.amount(behind))

    def _left_s(self, wanted: _Wanted) -> float:
        if wanted.timeout_s is None:
            return math.inf
        return max(wanted.timeout_s - (self._clock() - wanted.started), 0.0)

    def _jitter_s(self, wait_s: float, left_s: float) -> float:
        most_s = min(wait_s * _JITTER_SHARE, _MOST_JITTER_S, max(left_s - wait_s, 0.0) / 2)
        return most_s * self._rng()

    def _lost(self, error: Exception) -> None:
        self.unsettled += 1
        if self.unsettled == 1:
            _log.warning(
                "a charge could not be corrected (%s) and stays as it was; further ones are only counted",
                error.reason if isinstance(error, StoreUnavailableError) else type(error).__name__,
            )

    def _here(self) -> Here:
        loop = asyncio.get_running_loop()
        with self._lock:
            here = self._loops.get(loop)
            if here is None:
                for other in [known for known in self._loops if known.is_closed()]:
                    del self._loops[other]
                trips = RoundTrips(
                    self._store,
                    most_calls=self._most_calls,
                    most_trips=self._most_trips,
                    longest_wait_s=self._store.deadline_s,
                    on_lost=self._lost,
                )
                here = self._loops[loop] = Here(trips, self._gate.busy_here())
            return here


@dataclass(frozen=True, slots=True)
class _Price:
    """What a cost takes from each limit."""

    milli: int
    arguments: tuple[int, ...]
    demands: tuple[bytes, ...]
    beyond: str  # the limit that never has so much, in words


@dataclass(slots=True)
class _Wanted:
    """What one caller asks for."""

    names: Line
    price: _Price
    started: float
    timeout_s: float | None
