"""What every limiter keeps, in this process or in Redis."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import replace

import pytest

from guardrail.errors import ConfigurationError
from guardrail.limits.limit import Limit
from guardrail.limits.local import LocalLimiter
from guardrail.limits.redis import RedisLimiter
from guardrail.protocols import RateLimiter, SettlingLimiter

KINDS = ["local", "redis, shared", "redis, alone"]
MODES = ["window", "gcra"]


def per(count, period_s, mode, **options):
    """``count`` at once, and no more for a while: in either mode."""
    if mode == "window":
        return Limit(count, period_s, **options)
    return Limit(count, period_s, burst=count, **options)


def build(kind, redis_url, limits, **options):
    if kind == "local":
        return LocalLimiter(limits, **options)
    # A long timeout: a busy machine is not what is tested here.
    return RedisLimiter(redis_url, limits, share_round_trips=kind == "redis, shared", timeout_s=10.0, **options)


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture(params=MODES)
def mode(request):
    return request.param


@pytest.fixture
async def make(kind, redis_url):
    made = []

    def make_one(limits, **options):
        made.append(build(kind, redis_url, limits, **options))
        return made[-1]

    yield make_one
    for limiter in made:
        await limiter.aclose()


async def grants(limiter, key="tenant", cost=1.0, at_most=100):
    """How many charges in a row are allowed without waiting."""
    for count in range(at_most):
        if not (await limiter.acquire(key, cost, 0)).allowed:
            return count
    return at_most


async def turns(count=20):
    for _ in range(count):
        await asyncio.sleep(0.001)


def source(kind):
    return "local" if kind == "local" else "redis"


async def test_it_is_a_limiter_and_settles(make, kind):
    limiter = make("2/min")
    assert isinstance(limiter, SettlingLimiter)
    plain: RateLimiter = limiter
    decision = await plain.acquire("tenant")
    assert (decision.allowed, decision.source, decision.degraded, decision.limit) == (True, source(kind), "", "")
    assert decision.remaining == 1
    assert decision.waited_s < 1


async def test_exactly_the_capacity_passes_at_once(make, mode):
    limiter = make(per(5, 3600.0, mode))
    decisions = [await limiter.acquire("tenant", 1.0, 0) for _ in range(7)]
    assert [decision.allowed for decision in decisions] == [True] * 5 + [False] * 2
    assert [int(decision.remaining) for decision in decisions[:5]] == [4, 3, 2, 1, 0]
    longest = 3600 if mode == "window" else 720
    for refused in decisions[5:]:
        assert longest / 2 < refused.retry_after_s <= longest
        assert refused.limit == str(per(5, 3600.0, mode))


async def test_a_limit_of_one(make, mode, kind):
    limiter = make(per(1, 3600.0, mode))
    first, second = await limiter.acquire("tenant", timeout_s=0), await limiter.acquire("tenant", timeout_s=0)
    assert (first.allowed, second.allowed, second.source) == (True, False, source(kind))
    assert 1800 < second.retry_after_s <= 3600


async def test_concurrent_charges_do_not_exceed_the_limit(make, mode):
    limiter = make(per(7, 3600.0, mode))
    decisions = await asyncio.gather(*(limiter.acquire("tenant", 1.0, 0) for _ in range(40)))
    assert sum(decision.allowed for decision in decisions) == 7


async def test_keys_do_not_share(make, mode):
    limiter = make(per(2, 3600.0, mode))
    assert await grants(limiter, "a") == 2
    assert await grants(limiter, "b") == 2
    assert [
        await grants(limiter, key) for key in ("", "a ", "A", "ab", "a:b", "é", "e\u0301", "\ud800", "x" * 10**6)
    ] == [2] * 9


async def test_a_global_limit_is_shared_by_all_keys(make, mode):
    limiter = make(per(3, 3600.0, mode, scope="global"))
    assert await grants(limiter, "a") == 3
    assert await grants(limiter, "b") == 0


async def test_all_limits_are_charged_or_none(make, mode):
    calls = per(5, 600.0, mode)
    tokens = per(3000, 600.0, mode, unit="tokens")
    common = per(6, 600.0, mode, scope="global")
    limiter = make([calls, tokens, common], tokens_per_call=1000)
    charged = [await limiter.acquire("a", timeout_s=0) for _ in range(3)]
    assert all(decision.allowed for decision in charged)
    for _ in range(10):
        refused = await limiter.acquire("a", timeout_s=0)
        assert (refused.allowed, refused.limit) == (False, str(tokens))
    # The ten refused ones took nothing from the calls and from what all share.
    for decision in charged:
        await limiter.settle(decision, 0)
    more = [await limiter.acquire("a", timeout_s=0) for _ in range(3)]
    assert [decision.allowed for decision in more] == [True, True, False]
    assert more[-1].limit == str(calls)
    assert await grants(limiter, "b") == 1
    refused = await limiter.acquire("b", timeout_s=0)
    assert (refused.allowed, refused.limit) == (False, str(common))


async def test_the_limit_that_takes_longest_is_named(make, mode):
    short, long = per(1, 10.0, mode), per(1, 3600.0, mode)
    for limits in ([short, long], [long, short]):
        limiter = make(limits)
        key = f"key {limits.index(long)}"
        assert (await limiter.acquire(key, timeout_s=0)).allowed
        refused = await limiter.acquire(key, timeout_s=0)
        assert refused.limit == str(long)
        assert 3500 < refused.retry_after_s <= 3600


async def test_retry_after_is_when_it_fits(make, mode):
    limiter = make(per(1, 0.3, mode))
    assert (await limiter.acquire("tenant", timeout_s=0)).allowed
    refused = await limiter.acquire("tenant", timeout_s=0)
    assert 0 < refused.retry_after_s <= 0.3
    await asyncio.sleep(refused.retry_after_s + 0.001)
    assert (await limiter.acquire("tenant", timeout_s=0)).allowed


async def test_it_waits_for_room(make, mode):
    limiter = make(per(1, 0.3, mode))
    await limiter.acquire("tenant")
    began = time.monotonic()
    decision = await limiter.acquire("tenant", timeout_s=30)
    assert decision.allowed
    assert 0.2 < decision.waited_s <= time.monotonic() - began


async def test_a_wait_that_is_too_long_is_refused_at_once(make, mode):
    limiter = make(per(1, 600.0, mode))
    await limiter.acquire("tenant")
    began = time.monotonic()
    refused = await limiter.acquire("tenant", timeout_s=60)
    assert time.monotonic() - began < 30
    assert (refused.allowed, refused.limit) == (False, str(per(1, 600.0, mode)))
    assert 570 < refused.retry_after_s <= 600


async def test_who_would_be_served_too_late_does_not_queue_up(make, mode):
    limiter = make(per(1, 20.0, mode))
    await limiter.acquire("tenant")
    waiting = [asyncio.create_task(limiter.acquire("tenant")) for _ in range(3)]
    while (refused := await limiter.acquire("tenant", timeout_s=0)).retry_after_s <= 60:
        await asyncio.sleep(0.005)  # they are not in the queue yet
    assert 60 < refused.retry_after_s <= 80
    refused = await asyncio.wait_for(limiter.acquire("tenant", timeout_s=55), 10)
    assert refused.allowed is False
    assert 55 < refused.retry_after_s <= 80
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)


async def test_a_cost_of_nothing_is_never_refused_or_charged(make, mode):
    limiter = make(per(1, 3600.0, mode))
    assert all([(await limiter.acquire("tenant", 0, 0)).allowed for _ in range(20)])
    assert await grants(limiter) == 1
    assert (await limiter.acquire("tenant", 0.0, 0)).allowed


async def test_a_cost_above_the_capacity_never_passes(make, mode, kind):
    limit = per(3, 3600.0, mode)
    limiter = make(limit)
    for timeout_s in (0, 5, None):
        refused = await asyncio.wait_for(limiter.acquire("tenant", 3.5, timeout_s), 10)
        assert (refused.allowed, refused.retry_after_s, refused.limit) == (False, None, str(limit))
        assert refused.source == source(kind)
    assert await grants(limiter) == 3


async def test_costs_are_exact(make, mode):
    limiter = make(per(1, 600.0, mode))
    assert await grants(limiter, "tenths", 0.1) == 10
    assert await grants(limiter, "thirds", 1 / 3) == 2  # rounded up to 0.334
    assert await grants(limiter, "one and", 0.5) == 2


@pytest.mark.parametrize("cost", [-1, float("nan"), float("inf"), True, "1", None])
async def test_wrong_costs(make, cost):
    with pytest.raises(ConfigurationError, match="cost"):
        await make("1/min").acquire("tenant", cost)


@pytest.mark.parametrize("timeout_s", [-1, float("nan"), True, "1"])
async def test_wrong_timeouts(make, timeout_s):
    with pytest.raises(ConfigurationError, match="timeout_s"):
        await make("1/min").acquire("tenant", 1.0, timeout_s)


@pytest.mark.parametrize("key", [None, 7, b"tenant", ("a", "b")])
async def test_wrong_keys(make, key):
    with pytest.raises(ConfigurationError, match="key"):
        await make("1/min").acquire(key)


@pytest.mark.parametrize("limits", [[], "0/min", ["1/min", "1/min"], None, 5])
def test_wrong_limits(kind, limits):
    with pytest.raises(ConfigurationError):
        build(kind, "redis://localhost:1", limits)


@pytest.mark.parametrize("tokens", [0, -1, float("inf"), True, "1"])
def test_wrong_tokens_per_call(kind, tokens):
    with pytest.raises(ConfigurationError, match="tokens_per_call"):
        build(kind, "redis://localhost:1", "1/min", tokens_per_call=tokens)


async def test_settling_down_makes_room(make, mode):
    limiter = make(per(1000, 600.0, mode, unit="tokens"), tokens_per_call=500)
    first = await limiter.acquire("tenant", timeout_s=0)
    assert await grants(limiter) == 1
    await limiter.settle(first, 100)
    left = await limiter.acquire("tenant", 0.8, 0)
    assert left.allowed
    assert left.remaining == pytest.approx(0, abs=20)  # gcra: what came in meanwhile
    assert await grants(limiter, cost=0.1) == 0


async def test_settling_up_delays_later_charges(make, mode):
    limiter = make(per(1000, 600.0, mode, unit="tokens"), tokens_per_call=100)
    first = await limiter.acquire("tenant", timeout_s=0)
    await limiter.settle(first, 2500)
    refused = await limiter.acquire("tenant", timeout_s=0)
    assert refused.allowed is False
    # In a window all of it leaves with the entry; a bucket has to earn 1500 of debt and 100 for the charge.
    assert refused.retry_after_s == pytest.approx(600 if mode == "window" else 960, abs=30)


@pytest.mark.parametrize("numbers", [(900, 200, 400), (0, 400)])
async def test_settling_twice_replaces(make, mode, numbers):
    limiter = make(per(1000, 600.0, mode, unit="tokens"), tokens_per_call=500)
    first = await limiter.acquire("tenant", timeout_s=0)
    for tokens in numbers:
        await limiter.settle(first, tokens)
    assert await grants(limiter, cost=0.2) == 6


async def test_settling_what_was_not_charged_changes_nothing(make, mode):
    limiter, other = make(per(2, 600.0, mode)), make(per(2000, 600.0, mode, unit="tokens"))
    charged = await limiter.acquire("tenant")
    await limiter.settle(charged, 5000)  # no limit of tokens
    refused = await limiter.acquire("tenant", 3)
    await limiter.settle(refused, 5000)
    await other.settle(charged, 5000)
    await other.settle(replace(charged, reservation="made up"), 5000)
    assert await grants(limiter) == 1
    assert await grants(other) == 2


@pytest.mark.parametrize("tokens", [-1, float("nan"), float("inf"), True, None, "1"])
async def test_wrong_tokens(make, tokens):
    limiter = make("1000 tokens/min")
    decision = await limiter.acquire("tenant")
    with pytest.raises(ConfigurationError):
        await limiter.settle(decision, tokens)


async def test_waiters_are_served_in_order(make, mode):
    limiter = make(per(1, 1.0, mode))
    served = []

    async def wait(number):
        assert (await limiter.acquire("tenant")).allowed
        served.append(number)

    await asyncio.gather(*(limiter.acquire(f"other {number}") for number in range(4)))  # connects
    await limiter.acquire("tenant")
    await asyncio.gather(*(wait(number) for number in range(4)))
    assert served == list(range(4))


async def test_a_waiter_of_one_key_does_not_delay_another(make, mode):
    limiter = make(per(1, 600.0, mode))
    await limiter.acquire("a")
    waiting = asyncio.create_task(limiter.acquire("a"))
    await turns()
    assert (await asyncio.wait_for(limiter.acquire("b"), 10)).allowed
    assert not waiting.done()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)


async def test_a_cancelled_waiter_charges_nothing_and_lets_the_next_one_in(make, mode):
    limiter = make(per(1, 1.0, mode))
    await limiter.acquire("tenant")
    first, second, third = (asyncio.create_task(limiter.acquire("tenant")) for _ in range(3))
    await turns()
    first.cancel()
    third.cancel()
    assert (await asyncio.wait_for(second, 30)).allowed
    await asyncio.gather(first, third, return_exceptions=True)
    assert [first.cancelled(), third.cancelled()] == [True, True]
    assert (await asyncio.wait_for(limiter.acquire("tenant"), 30)).allowed


async def test_random_cancellations_lose_and_double_nothing(make, mode):
    limit = per(40, 36000.0, mode)
    limiter = make(limit)
    rng = random.Random(7)
    allowed = 0
    for _ in range(20):
        tasks = [asyncio.create_task(limiter.acquire("tenant", timeout_s=0)) for _ in range(4)]
        for _ in range(rng.randrange(12)):
            await asyncio.sleep(0)
        if rng.random() < 0.3:
            await asyncio.sleep(0.0005)
        for task in rng.sample(tasks, 3):
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        allowed += sum(not isinstance(result, asyncio.CancelledError) and result.allowed for result in results)
    await limiter.aclose()  # what is on its way has arrived
    assert allowed <= 40
    assert await grants(limiter) == 40 - allowed


def test_one_limiter_in_many_event_loops(kind, mode, redis_server):
    limiter = build(kind, redis_server.url, per(30, 36000.0, mode))

    async def use():
        return (await limiter.acquire("tenant", timeout_s=0)).allowed

    allowed = [asyncio.run(use()) for _ in range(60)]
    assert allowed == [True] * 30 + [False] * 30
    asyncio.run(limiter.aclose())


async def test_it_can_be_used_as_a_context_and_closed_twice(make):
    limiter = make("2/min")
    async with limiter as same:
        assert same is limiter
        assert (await limiter.acquire("tenant")).allowed
    await limiter.aclose()
