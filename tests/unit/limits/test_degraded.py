"""Shares of limits, and what decides without Redis."""

from __future__ import annotations

from dataclasses import replace

import pytest

from guardrail.errors import ConfigurationError
from guardrail.limits.degraded import Fallback, share
from guardrail.limits.limit import Limit
from guardrail.testing import ManualClock


@pytest.mark.parametrize(
    ("limit", "replicas", "expected"),
    [
        (Limit(60, 60.0), 1, Limit(60.0, 60.0)),
        (Limit(60, 60.0), 4, Limit(15.0, 60.0)),
        (Limit(2, 1.0), 8, Limit(1.0, 4.0)),
        (Limit(1, 3.0), 2, Limit(1.0, 6.0)),
        (Limit(10, 1.0, burst=10), 4, Limit(2.5, 1.0, burst=2.5)),
        (Limit(10, 1.0, burst=2), 4, Limit(2.5, 1.0, burst=1.0)),
        (Limit(9000, 60.0, unit="tokens"), 3, Limit(3000.0, 60.0, unit="tokens")),
        (Limit(2000, 60.0, unit="tokens"), 4, Limit(1000.0, 120.0, unit="tokens")),
        (Limit(500, 60.0, unit="tokens"), 4, Limit(500, 240.0, unit="tokens")),
        (Limit(10, 1.0, burst=2000, unit="tokens"), 4, Limit(2.5, 1.0, burst=1000.0, unit="tokens")),
        (Limit(60, 60.0, scope="global"), 4, Limit(15.0, 60.0, scope="global")),
    ],
)
def test_shares(limit, replicas, expected):
    found = share(limit, replicas, 1000.0)
    assert found == expected
    # All processes together get no more in the long run.
    assert replicas * found.rate / found.period_s == pytest.approx(limit.rate / limit.period_s)


def fallback(rule, limits=None, replicas=2):
    return Fallback(rule, limits or [Limit(4, 60.0)], replicas=replicas, tokens_per_call=1000.0, clock=ManualClock())


async def decide(one, cost=1.0):
    return await one.decide("tenant", cost, 0, reason="timeout", again_s=2.5)


async def test_open_lets_everything_through_and_says_so():
    decision = await decide(fallback("open"), cost=10**6)
    assert (decision.allowed, decision.source, decision.degraded) == (True, "open", "redis_timeout")


async def test_closed_lets_nothing_through_and_says_when_to_come_back():
    decision = await decide(fallback("closed"))
    assert (decision.allowed, decision.source, decision.degraded) == (False, "closed", "redis_timeout")
    assert decision.retry_after_s == 2.5


async def test_local_keeps_to_the_share_and_knows_what_was_charged_before():
    one = fallback("local")
    one.charged("tenant", 1.0)
    decisions = [await decide(one) for _ in range(2)]
    assert [(d.allowed, d.source, d.degraded) for d in decisions] == [
        (True, "local", "redis_timeout"),
        (False, "local", "redis_timeout"),
    ]
    assert decisions[1].retry_after_s == pytest.approx(60)


async def test_more_than_the_share_ever_gives_can_pass_when_redis_is_back():
    decision = await decide(fallback("local"), cost=3.0)
    assert (decision.allowed, decision.retry_after_s) == (False, 2.5)


@pytest.mark.parametrize(
    "limit", [Limit(40, 1.0, burst=4), Limit(40_000, 1.0, burst=4000, unit="tokens"), Limit(40, 1.0)], ids=str
)
@pytest.mark.parametrize("scope", ["key", "global"])
async def test_a_process_that_had_more_than_its_share_for_long_does_not_pay_it_back(limit, scope):
    # All the traffic comes to one of four processes: Redis lets it have four times its share.
    clock = ManualClock()
    one = Fallback("local", [replace(limit, scope=scope)], replicas=4, tokens_per_call=1000.0, clock=clock)
    for _ in range(40 * 60):
        one.charged("tenant", 1.0)
        clock.advance(1 / 40)
    decision = await decide(one)
    assert not decision.allowed
    assert 0 < decision.retry_after_s <= 1.0
    clock.advance(decision.retry_after_s)
    assert (await decide(one)).allowed


async def test_what_was_settled_as_a_debt_stays_one_when_more_is_charged_in_redis():
    clock = ManualClock()
    limit = Limit(1000, 10.0, burst=1000, unit="tokens")
    one = Fallback("local", [limit], replicas=1, tokens_per_call=1000.0, clock=clock)
    await one.settle(await decide(one), 3000)
    one.charged("tenant", 1.0)
    assert (await decide(one)).retry_after_s == pytest.approx(30.0)


async def test_limits_whose_shares_are_the_same_are_one():
    one = fallback("local", limits=(Limit(1, 1.0), Limit(2, 2.0)))
    assert [(await decide(one)).allowed for _ in range(2)] == [True, False]


@pytest.mark.parametrize("rule", ["", "locally", None, True])
def test_wrong_rules(rule):
    with pytest.raises(ConfigurationError, match="on_error"):
        fallback(rule)


@pytest.mark.parametrize("replicas", [0, -1, 1.5, True, "2"])
def test_wrong_replicas(replicas):
    with pytest.raises(ConfigurationError, match="replicas"):
        fallback("local", replicas=replicas)
