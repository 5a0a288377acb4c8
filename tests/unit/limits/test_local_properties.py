"""For any limits, costs and times: what is granted keeps within every limit, and nothing is charged in vain."""

from __future__ import annotations

import asyncio
import math

from hypothesis import given, settings
from hypothesis import strategies as st

from guardrail.limits.limit import Limit
from guardrail.limits.meters import WindowLog
from tests.unit.limits.virtual_time import Crowd, VirtualLimiter, turns

RATES = st.integers(1, 20) | st.floats(min_value=0.05, max_value=20)
PERIODS = st.sampled_from([0.5, 1.0, 3.0, 7.7, 60.0])
SCOPES = st.sampled_from(["key", "global"])
WINDOWS = st.builds(Limit, RATES, PERIODS, mode=st.just("window"), scope=SCOPES)
BUCKETS = st.builds(
    Limit, RATES, PERIODS, burst=st.integers(1, 10) | st.floats(min_value=1, max_value=10), scope=SCOPES
)
SOME_LIMITS = st.lists(WINDOWS | BUCKETS, min_size=1, max_size=3, unique=True)
COSTS = st.sampled_from([0.001, 0.3, 1.0, 1.0, 1.0, 2.5])
STEPS = st.lists(
    st.tuples(st.sampled_from("ab"), COSTS, st.sampled_from([0.0, 0.0, 0.01, 0.37, 1.0, 5.3])), min_size=1, max_size=60
)


def worst(charges, length_s):
    """Most that falls into any stretch ``(t - length, t]``, by what was charged when."""
    return max(sum(cost for at, cost in charges if end - length_s + 1e-7 < at <= end) for end, _ in charges)


def check(limit, charges):
    if limit.mode == "window":
        assert worst(charges, limit.period_s) <= limit.rate + 1e-9
        return
    for first, (begin, _) in enumerate(charges):
        total = 0.0
        for at, cost in charges[first:]:
            total += cost
            # 2 µs: stamps are whole ones; 1 ms: see GcraTerms
            assert total <= limit.burst + limit.rate / limit.period_s * (at - begin + 0.001 + 2e-6) + 1e-9


def check_all(limits, charges):
    """Charges are (at, key, cost)."""
    for limit in limits:
        keys = {key for _, key, _ in charges} if limit.scope == "key" else [None]
        for key in keys:
            check(limit, [(at, cost) for at, of, cost in charges if key in (None, of)])


@settings(deadline=None, max_examples=100)
@given(limits=SOME_LIMITS, steps=STEPS)
def test_no_stretch_gets_more_than_its_limits_allow_and_refusals_change_nothing(limits, steps):
    async def main():
        limiter, granted = VirtualLimiter(limits), []
        for key, cost, pause_s in steps:
            limiter.time.advance(pause_s)
            left = [meter.left(round(limiter.time() * 1e6)) for meter in all_meters(limiter, key)]
            decision = await limiter.acquire(key, cost, timeout_s=0)
            if decision.allowed:
                granted.append((limiter.elapsed_s, key, cost))
                continue
            assert left == [meter.left(round(limiter.time() * 1e6)) for meter in all_meters(limiter, key)]
            if decision.retry_after_s is not None:
                limiter.time.advance(decision.retry_after_s)
                assert (await limiter.acquire(key, cost, timeout_s=0)).allowed
                granted.append((limiter.elapsed_s, key, cost))
        if granted:
            check_all(limits, granted)

    asyncio.run(main())


def all_meters(limiter, key):
    return limiter._meters(key) + limiter._common_meters


@settings(deadline=None, max_examples=100)
@given(
    limits=SOME_LIMITS,
    waiters=st.lists(
        st.tuples(st.sampled_from("abc"), COSTS, st.none() | st.sampled_from([0.0, 0.5, 30.0])), max_size=40
    ),
    cancelled=st.sets(st.integers(0, 39), max_size=10),
    data=st.data(),
)
def test_waiters_keep_within_the_limits_and_in_order(limits, waiters, cancelled, data):
    async def main():
        limiter = VirtualLimiter(limits)
        crowd = Crowd(limiter)
        for number, (key, cost, timeout_s) in enumerate(waiters):
            crowd.add(number, key, cost, timeout_s)
        await turns(20)
        for number in cancelled & set(range(len(waiters))):
            for _ in range(data.draw(st.integers(0, 2))):
                limiter.ring_next()
                await turns(data.draw(st.integers(0, 3)))
            crowd.tasks[number].cancel()
        await crowd.served()
        assert limiter.at_rest()
        for key in "abc":
            waited = [name for name in crowd.names if waiters[name][0] == key and waiters[name][2] != 0]
            assert waited == sorted(waited)
        assert [milli for _, _, milli in limiter.taken] == [math.ceil(waiters[name][1] * 1000) for name in crowd.names]
        for grant in crowd.grants:  # in time that only jumps, nobody can be refused the moment the timeout ends
            timeout_s = waiters[grant.name][2]
            assert timeout_s is None or grant.decision.waited_s <= timeout_s + 1e-6
        if crowd.grants:
            check_all(limits, [(grant.at_s, *waiters[grant.name][:2]) for grant in crowd.grants])

    asyncio.run(main())


@settings(deadline=None, max_examples=100)
@given(
    limit=st.sampled_from(
        [
            Limit(1000, 10.0, unit="tokens"),
            Limit(1000, 10.0, burst=500, unit="tokens"),
            Limit(0.5, 0.1, burst=300, unit="tokens", scope="global"),
        ]
    ),
    steps=st.lists(
        st.tuples(st.integers(0, 600), st.integers(0, 3), st.sampled_from([0.0, 0.1, 1.0, 6.0, 15.0])), max_size=40
    ),
)
def test_tokens_that_were_used_keep_within_the_limit_if_no_call_uses_more_than_it_reserved(limit, steps):
    async def main():
        limiter, charges, open_calls = VirtualLimiter(limit, tokens_per_call=300), [], []
        for used, settled, pause_s in steps:
            limiter.time.advance(pause_s)
            decision = await limiter.acquire("k", timeout_s=0)
            if decision.allowed:
                charges.append([limiter.elapsed_s, 300])
                open_calls.append((decision, charges[-1]))
            for _ in range(min(settled, len(open_calls))):
                decision, charge = open_calls.pop(0)
                charge[1] = min(used, 300)
                await limiter.settle(decision, charge[1])
        if charges:
            check(limit, charges)

    asyncio.run(main())


@settings(deadline=None, max_examples=50)
@given(amounts=st.lists(st.integers(1, 5), min_size=1, max_size=40), pause=st.sampled_from([1, 700, 5_000]))
def test_a_log_of_very_many_charges_joins_some_and_still_keeps_its_window(amounts, pause):
    log, charges, now = WindowLog(Limit(4, 1.0)), [], 0
    for amount in amounts * (3000 // len(amounts)):
        now += pause
        if not log.wait_us(amount, now):
            log.take(amount, now)
            charges.append((now, amount))
    assert len(log._task_logs) <= 2002
    assert log._used == sum(entry.amount for entry in log._task_logs)
    inside = [(at, amount) for at, amount in charges if at > now - 1_000_000]
    assert sum(amount for _, amount in inside) <= log._used <= 4000
