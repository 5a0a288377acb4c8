import asyncio

import pytest

from guardrail.errors import ConfigurationError
from guardrail.limits.limit import Limit
from guardrail.limits.local import LocalLimiter
from guardrail.protocols import Decision
from tests.unit.limits.virtual_time import Crowd, VirtualLimiter, turns

TOKENS = [Limit(1000, 60.0, unit="tokens"), Limit(1000, 60.0, burst=1000, unit="tokens")]


@pytest.mark.parametrize("limit", TOKENS, ids=str)
@pytest.mark.parametrize(("used", "left"), [(0, 1000), (100, 900), (400, 600), (1000, 0), (1500, 0)])
async def test_settling_counts_as_if_it_had_been_known(limit, used, left):
    limiter = VirtualLimiter(limit, tokens_per_call=400)
    decision = await limiter.acquire("k")
    assert decision.remaining == 600.0
    await limiter.settle(decision, used)
    assert (await limiter.acquire("k", 0)).remaining == left
    await limiter.settle(decision, 250)  # a better number
    assert (await limiter.acquire("k", 0)).remaining == 750.0


@pytest.mark.parametrize(("limit", "wait_s"), [(TOKENS[0], 60.0), (TOKENS[1], 54.0)], ids=str)
async def test_more_than_was_reserved_delays_the_next(limit, wait_s):
    limiter = VirtualLimiter(limit, tokens_per_call=400)
    await limiter.settle(await limiter.acquire("k"), 1500)
    assert (await limiter.acquire("k", timeout_s=0)).retry_after_s == wait_s


@pytest.mark.parametrize("scope", ["key", "global"])
async def test_less_than_was_reserved_wakes_who_waits(scope):
    limiter = VirtualLimiter(Limit(1000, 60.0, unit="tokens", scope=scope), tokens_per_call=800)
    decision = await limiter.acquire("k")
    crowd = Crowd(limiter)
    crowd.add("next", "k")
    await turns()
    limiter.time.advance(2.0)
    await limiter.settle(decision, 100)
    await asyncio.wait_for(crowd.tasks[0], 5)
    assert crowd.times == [2.0]
    assert limiter.at_rest()


@pytest.mark.parametrize("limit", TOKENS, ids=str)
async def test_what_has_expired_cannot_be_given_back(limit):
    limiter = VirtualLimiter(limit, tokens_per_call=1000)
    old = await limiter.acquire("k")
    limiter.time.advance(90.0)
    await limiter.acquire("k")
    await limiter.settle(old, 0)
    assert (await limiter.acquire("k", 0)).remaining == 0.0


@pytest.mark.parametrize("foreign", ["refused", "other limiter", "other reservation"])
async def test_settling_what_was_not_charged_here_changes_nothing(foreign):
    limiter = VirtualLimiter(TOKENS[0], tokens_per_call=400)
    await limiter.acquire("k")
    decision = {
        "refused": await limiter.acquire("k", 2, timeout_s=0),
        "other limiter": await VirtualLimiter(TOKENS[0]).acquire("k"),
        "other reservation": Decision(allowed=True, reservation=object()),
    }[foreign]
    await limiter.settle(decision, 1)
    assert (await limiter.acquire("k", 0)).remaining == 600.0


async def test_limits_of_calls_are_not_settled():
    limiter = VirtualLimiter("5/min")
    await limiter.settle(await limiter.acquire("k"), 4)
    assert (await limiter.acquire("k", 0)).remaining == 4.0


async def test_wrong_numbers_of_tokens():
    limiter = LocalLimiter(TOKENS[0])
    decision = await limiter.acquire("k")
    with pytest.raises(ConfigurationError, match="cost"):
        await limiter.settle(decision, -1)
