"""The limiter of one process in the cases from the field."""

import asyncio
import math
import random
import time

import pytest

from guardrail.limits.limit import Limit
from guardrail.limits.local import LocalLimiter
from guardrail.protocols import Decision
from tests.unit.limits.virtual_time import Crowd, VirtualLimiter, turns


async def test_r011_each_key_has_its_own_limit():
    limiter = VirtualLimiter("3/min")
    used = [await limiter.acquire("A", timeout_s=0) for _ in range(4)]
    assert [decision.allowed for decision in used] == [True, True, True, False]
    assert (await limiter.acquire("B", timeout_s=0)).allowed


@pytest.mark.parametrize("limit", ["0.5/s", Limit(0.5, burst=1)])
async def test_r013_half_a_call_per_second_is_one_in_two_seconds(limit):
    limiter = VirtualLimiter(limit)
    crowd = Crowd(limiter)
    for number in range(10):
        crowd.add(number)
    await limiter.pass_time(30.0)
    assert crowd.times == [2.0 * number for number in range(10)]
    assert limiter.at_rest()


@pytest.mark.parametrize(
    ("limit", "times"),
    [
        (Limit(2, 10.0, burst=2), [0, 0, 5, 10, 15, 20]),
        (Limit(1, 3.0, burst=3), [0, 0, 0, 3, 6, 9]),
        (Limit(3, 1.0, burst=2), [0, 0, 0.333335, 0.666669, 1.000003, 1.333337]),
        (Limit(2, 10.0), [0, 0, 10, 10, 20, 20]),
        (Limit(1, 60.0), [0, 60, 120, 180, 240, 300]),
    ],
)
async def test_r013_when_waiters_get_through(limit, times):
    limiter = VirtualLimiter(limit)
    crowd = Crowd(limiter)
    for number in range(len(times)):
        crowd.add(number)
    await limiter.pass_time(1000.0)
    assert crowd.names == list(range(len(times)))
    assert crowd.times == pytest.approx(times, abs=3e-6)
    assert [grant.decision.waited_s for grant in crowd.grants] == pytest.approx(times, abs=3e-6)


@pytest.mark.parametrize("limit", [Limit(2, 1.0, burst=4), Limit(7, 2.0, burst=1.5), Limit(5, 1.0)])
async def test_r013_a_hundred_waiters_never_get_more_than_the_limit(limit):
    limiter = VirtualLimiter(limit)
    crowd = Crowd(limiter)
    for number in range(100):
        crowd.add(number)
    await limiter.pass_time(200.0)
    assert crowd.names == list(range(100))
    for number, at_s in enumerate(crowd.times):
        before = number + 1
        if limit.mode == "gcra":
            assert before <= limit.burst + limit.rate * at_s / limit.period_s + 0.001
        else:
            assert before <= limit.rate * (1 + math.floor(at_s / limit.period_s + 1e-9))


@pytest.mark.parametrize("limit", ["3/min", Limit(3, 60.0, burst=2), "7 per 3 s", Limit(7, 3.0, burst=3.5)])
@pytest.mark.parametrize("cost", [0.3, 1, 1.7])
async def test_r013_retry_after_is_right(limit, cost):
    limiter = VirtualLimiter(limit)
    for _ in range(20):
        decision = await limiter.acquire("k", cost, timeout_s=0)
        if decision.allowed:
            assert decision.retry_after_s is None
            continue
        assert decision.retry_after_s > 0
        limiter.time.advance(decision.retry_after_s - 2e-6)
        assert not (await limiter.acquire("k", cost, timeout_s=0)).allowed
        limiter.time.advance(2e-6)
        assert (await limiter.acquire("k", cost, timeout_s=0)).allowed


async def test_r019_a_limit_of_one():
    limiter = VirtualLimiter("1/min")
    assert await limiter.acquire("k") == Decision(allowed=True, remaining=0.0, source="local")
    refused = await limiter.acquire("k", timeout_s=59.9)
    assert refused == Decision(allowed=False, retry_after_s=60.0, source="local", limit="1 calls per 60 s")
    waiting = Crowd(limiter)
    waiting.add("second", timeout_s=60)
    await limiter.pass_time(60.0)
    assert waiting.times == [60.0]


async def test_r016_a_waiter_does_not_delay_another_key():
    limiter = VirtualLimiter("1 per 10 s")
    crowd = Crowd(limiter)
    for number in range(4):
        crowd.add(number, "A")
    await turns()
    with pytest.raises(StopIteration) as done:
        limiter.acquire("B").send(None)  # goes through without giving the loop a turn
    assert done.value.value.allowed
    await limiter.pass_time(30.0)
    assert crowd.times == [0.0, 10.0, 20.0, 30.0]


async def test_it_waits_in_real_time_too():
    limiter = LocalLimiter("1 per 0.05 s")
    began = time.monotonic()
    decisions = await asyncio.gather(*(limiter.acquire("k") for _ in range(3)))
    assert 0.1 <= time.monotonic() - began < 60
    assert [decision.allowed for decision in decisions] == [True] * 3
    assert decisions[2].waited_s >= 0.1 - 1e-3


def _earliest(limit, number):
    """When the waiter of that number gets through if all came at 0."""
    return math.floor(number / limit.rate) * limit.period_s


@pytest.mark.parametrize(
    "limit", [Limit(1, 1.0, burst=1), Limit(2, 2.0), Limit(1, 1.0, burst=1, scope="global")], ids=str
)
def test_r015_waiters_cancelled_at_the_moment_of_their_grant(limit):
    async def schedule(chance):
        limiter = VirtualLimiter(limit)
        crowd = Crowd(limiter)
        keys = [chance.choice("kkl") for _ in range(chance.randint(3, 6))]
        for number, key in enumerate(keys):
            crowd.add(number, key)
        await turns()
        for _ in range(chance.randint(0, 8)):
            doomed, when = chance.choice(crowd.tasks), chance.randrange(6)
            if when == 0:
                doomed.cancel()
            limiter.ring_next()
            if when == 1:
                doomed.cancel()  # if its alarm rang just now, it has not run yet
            for _ in range(chance.randint(0, 3)):
                await asyncio.sleep(0)
            if when == 2:
                doomed.cancel()
            await turns()
        await crowd.served()

        assert limiter.at_rest()
        assert sorted(crowd.names) == [number for number, task in enumerate(crowd.tasks) if not task.cancelled()]
        assert [at_s for at_s, _, _ in limiter.taken] == crowd.times
        for key in "kl":
            granted = [grant for grant in crowd.grants if keys[grant.name] == key]
            assert [grant.name for grant in granted] == sorted(grant.name for grant in granted)
            times = crowd.times if limit.scope == "global" else [grant.at_s for grant in granted]
            assert times == [_earliest(limit, number) for number in range(len(times))]

    async def all_schedules():
        for seed in range(1000):
            await schedule(random.Random(seed))

    asyncio.run(all_schedules())


def test_r017_one_limiter_in_two_hundred_loops():
    limiter = LocalLimiter([Limit(100, 1000.0), Limit(1, 0.0005, scope="global")])

    async def use():
        return await asyncio.gather(*(limiter.acquire("k", timeout_s=5) for _ in range(2)))

    allowed = [decision.allowed for _ in range(200) for decision in asyncio.run(use())]
    assert allowed == [True] * 100 + [False] * 300
    asyncio.run(limiter.aclose())
