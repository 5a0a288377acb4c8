import pytest

from guardrail.limits.limit import Limit
from tests.unit.limits.virtual_time import VirtualLimiter


@pytest.mark.parametrize("limit", ["5 per 10 s", Limit(5, 10.0, burst=5)])
async def test_keys_that_owe_nothing_are_forgotten(limit):
    limiter = VirtualLimiter(limit)
    for number in range(1000):
        await limiter.acquire(f"tenant {number}")
    assert len(limiter._keys) == 1000
    limiter.time.advance(10.0)
    for number in range(400):
        await limiter.acquire(f"late {number % 2}", 0.001)
    assert len(limiter._keys) == 2


async def test_beyond_the_most_keys_those_charged_longest_ago_go():
    limiter = VirtualLimiter("1/min", max_keys=50)
    for number in range(200):
        await limiter.acquire(f"tenant {number}")
        limiter.time.advance(0.01)
    assert list(limiter._keys) == [f"tenant {number}" for number in range(150, 200)]
    assert not (await limiter.acquire("tenant 199", timeout_s=0)).allowed
    for number in range(200, 1000):
        assert not (await limiter.acquire(f"tenant {number}", 2, timeout_s=0)).allowed
    assert len(limiter._keys) == 50  # who is refused takes no room


async def test_settling_the_debts_of_keys_that_were_forgotten_keeps_the_bound():
    limiter = VirtualLimiter(Limit(1000, 60.0, burst=1000, unit="tokens"), tokens_per_call=1, max_keys=10)
    decisions = [await limiter.acquire(f"tenant {number}") for number in range(200)]
    for decision in decisions:
        await limiter.settle(decision, 900)
    assert list(limiter._keys) == [f"tenant {number}" for number in range(190, 200)]


async def test_a_long_key_is_remembered_by_its_digest():
    limiter = VirtualLimiter("1/min")
    keys = ["x" * 1_000_000, "x" * 999_999 + "y", "\ud800" * 100, "", "é", "e\u0301"]
    for key in keys:
        assert (await limiter.acquire(key, timeout_s=0)).allowed
        assert not (await limiter.acquire(key, timeout_s=0)).allowed
    assert max(len(slot) for slot in limiter._keys) <= 64
