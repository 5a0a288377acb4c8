"""A limiter whose Redis is taken away and given back: how long callers wait, what they are told, what is charged."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass

import pytest

from guardrail import Limit, Policy, RateLimitedError, RedisLimiter
from guardrail.redis_store import RedisStore
from guardrail.testing import ScriptedGenerator
from tests.redis_server import Proxy
from tests.streaming.helpers import LENIENT_WORDS, QUESTION, guard_for

LIMIT = Limit(40, 600.0)
HERE = LIMIT.rate // 2  # the share of one of two processes
BEFORE, TOGETHER, ALONE = 10, 8, 4
SLACK_S = 3.0  # for a machine that does something else meanwhile
RULES = ["local", "open", "closed"]
ANSWER = "The old hall keeps a wooden clock near its door."


class Time:
    """The breaker's clock, which the tests move: it stays open until they say so."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@dataclass(frozen=True)
class Fault:
    """A way to take a server away and to give it back."""

    reason: str
    begin: object
    end: object
    timeout_s: float = 5.0  # where it does not matter, a busy machine is not what is tested
    keeps_data: bool = True

    @property
    def deadline_s(self):
        """The store's, twice: charges may queue up for a round trip."""
        return 2 * 2 * self.timeout_s


def change_password(server, password):
    with server.client() as client:
        client.config_set("requirepass", password)
        server.password = password
        client.execute_command("CLIENT", "KILL", "TYPE", "normal")


FAULTS = {
    "killed": Fault("redis_refused", lambda s: s.kill(), lambda s: s.start(), keeps_data=False),
    "hanging": Fault("redis_timeout", lambda s: s.stop(), lambda s: s.cont(), timeout_s=0.3),
    "read-only": Fault(
        "redis_read_only",
        lambda s: s.do("REPLICAOF", "127.0.0.1", "1"),
        lambda s: s.do("REPLICAOF", "NO", "ONE"),
    ),
    "wrong password": Fault(
        "redis_auth", lambda s: change_password(s, "another"), lambda s: change_password(s, "first")
    ),
}


def warnings(caplog):
    return [record for record in caplog.records if record.levelno >= logging.WARNING]


async def timed(limiter, key="tenant", timeout_s=0.0):
    """A decision, and how many seconds it took."""
    began = time.monotonic()
    decision = await limiter.acquire(key, timeout_s=timeout_s)
    return decision, time.monotonic() - began


async def until_redis(limiter):
    """The first decision that Redis makes again."""
    end = time.monotonic() + 60
    while (decision := await limiter.acquire("another tenant", timeout_s=0)).degraded:
        assert time.monotonic() < end, decision
        await asyncio.sleep(0.02)
    return decision


async def taken(*limiters):
    """What they take in turn, until nothing is left."""
    count = 0
    while (decision := await limiters[count % len(limiters)].acquire("tenant", timeout_s=0)).allowed:
        assert decision.source == "redis"
        count += 1
    assert decision.source == "redis"
    return count


@pytest.mark.parametrize("on_error", RULES)
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
async def test_a_server_that_goes_and_comes_back(start_redis, caplog, fault, on_error):
    """R002, R005: ten before, twelve meanwhile, and after that the two limiters share what is left."""
    server, clock = start_redis(password="first"), Time()
    url, timeouts = server.url, {"timeout_s": fault.timeout_s, "connect_timeout_s": fault.timeout_s}
    store, others = RedisStore(url, clock=clock, **timeouts), RedisStore(url, timeout_s=5.0, connect_timeout_s=5.0)
    limiter = RedisLimiter(store, LIMIT, on_error=on_error, replicas=2)
    other = RedisLimiter(others, LIMIT)
    for left in range(LIMIT.rate - 1, LIMIT.rate - 1 - BEFORE, -1):
        decision, _ = await timed(limiter)
        assert (decision.allowed, decision.source, decision.degraded) == (True, "redis", "")
        assert decision.remaining == left

    await asyncio.to_thread(fault.begin, server)
    found = list(await asyncio.gather(*(timed(limiter) for _ in range(TOGETHER))))
    found += [await timed(limiter) for _ in range(ALONE)]
    during = [decision for decision, _ in found]
    assert max(took_s for _, took_s in found) < fault.deadline_s + SLACK_S
    allowed = {"local": HERE - BEFORE, "open": TOGETHER + ALONE, "closed": 0}[on_error]
    assert sum(decision.allowed for decision in during) == allowed
    assert {decision.source for decision in during} == {on_error}
    assert during[0].degraded == fault.reason
    assert {decision.degraded for decision in during} == {fault.reason, "redis_breaker_open"}
    assert all(decision.allowed or decision.retry_after_s > 0 for decision in during)
    assert limiter.degraded_decisions == TOGETHER + ALONE
    (warning,) = warnings(caplog)
    assert fault.reason.removeprefix("redis_") in warning.getMessage()
    assert "first" not in caplog.text

    await asyncio.to_thread(fault.end, server)
    clock.now += 60
    decision = await until_redis(limiter)
    assert (decision.allowed, decision.source) == (True, "redis")
    after = await taken(limiter, other)
    if fault.keeps_data:
        # What was asked and not answered may be charged: once.
        assert LIMIT.rate - BEFORE - len(during) <= after <= LIMIT.rate - BEFORE
        assert after == LIMIT.rate - BEFORE or fault.reason == "redis_timeout"
    else:
        assert after == LIMIT.rate
    assert len(warnings(caplog)) == 1
    for closing in (limiter, other, store, others):
        await closing.aclose()


@pytest.mark.parametrize(
    ("trouble", "keeps_data"),
    [("script_flush", True), ("client_kill", True), ("restart", False)],
)
@pytest.mark.parametrize("share", [True, False], ids=["shared", "alone"])
async def test_what_callers_do_not_notice(start_redis, caplog, trouble, keeps_data, share):
    server = start_redis()
    async with RedisLimiter(server.url, LIMIT, share_round_trips=share, timeout_s=10.0) as limiter:
        await limiter.acquire("tenant")
        for count in range(2, 6):
            await asyncio.to_thread(getattr(server, trouble))
            decision, took_s = await timed(limiter)
            assert (decision.allowed, decision.source, decision.degraded) == (True, "redis", "")
            assert decision.remaining == LIMIT.rate - (count if keeps_data else 1)
            assert took_s < 1 + SLACK_S
        assert limiter.degraded_decisions == 0
    assert warnings(caplog) == []


async def test_a_server_that_stalls_for_five_seconds(start_redis, caplog):
    """R004: what comes late is nobody's answer; it is used again by itself."""
    server, sent = start_redis(), Counter()
    async with AsyncExitStack() as stack:
        limiters = {
            rule: await stack.enter_async_context(
                RedisLimiter(server.url, LIMIT, name=rule, on_error=rule, timeout_s=0.25)
            )
            for rule in RULES
        }
        for limiter in limiters.values():
            await until_redis(limiter)
        stall = asyncio.create_task(asyncio.to_thread(server.do, "DEBUG", "SLEEP", "5"))

        async def ask(rule):
            while not stall.done():
                for decision, took_s in await asyncio.gather(*(timed(limiters[rule]) for _ in range(3))):
                    assert took_s < 1.0 + SLACK_S
                    sent[rule] += decision.degraded in ("", "redis_timeout")
                await asyncio.sleep(0.1)

        await asyncio.gather(*map(ask, RULES))
        assert await stall == b"OK"
        for rule, limiter in limiters.items():
            assert limiter.degraded_decisions > 0
            other = RedisLimiter(server.url, LIMIT, name=rule, timeout_s=10.0)
            assert (await until_redis(limiter)).allowed
            assert LIMIT.rate - sent[rule] <= await taken(limiter, other) <= LIMIT.rate  # nothing twice
            await other.aclose()
    assert len(warnings(caplog)) == len(RULES)


async def test_more_callers_than_connections(start_redis, caplog):
    """Those who get no connection in time are told so; the server is not taken for broken."""
    server, timeout_s = start_redis(), 2.0
    tenants = [f"tenant {number}" for number in range(12)]
    async with Proxy(server.socket) as proxy, AsyncExitStack() as stack:

        async def ask(rule):
            one = {"max_connections": 1, "share_round_trips": False, "timeout_s": timeout_s}
            limiter = RedisLimiter(proxy.url, LIMIT, name=rule, on_error=rule, **one)
            await stack.enter_async_context(limiter)
            await until_redis(limiter)
            proxy.delay_s = 1.2
            found = await asyncio.gather(*(timed(limiter, tenant) for tenant in tenants))
            assert max(took_s for _, took_s in found) < 4 * timeout_s + SLACK_S
            return limiter, [decision for decision, _ in found]

        asked = await asyncio.gather(*map(ask, RULES))
        proxy.delay_s = 0.0
        for rule, (limiter, found) in zip(RULES, asked, strict=True):
            assert {decision.source for decision in found} == {"redis", rule}
            by_redis = [decision.source == "redis" for decision in found]
            assert 1 <= sum(by_redis) <= 4
            reasons = ["" if yes else "redis_pool_exhausted" for yes in by_redis]
            assert [decision.degraded for decision in found] == reasons
            assert [decision.allowed for decision in found] == [yes or rule != "closed" for yes in by_redis]
            await until_redis(limiter)
            after = [(await limiter.acquire(tenant, timeout_s=0)).remaining for tenant in tenants]
            assert after == [LIMIT.rate - 1 - yes for yes in by_redis]  # who got no connection was not charged
    assert warnings(caplog) == []


async def test_a_wait_does_not_outlast_its_timeout_when_redis_hangs_meanwhile(start_redis):
    server = start_redis()
    async with RedisLimiter(server.url, Limit(1, 1.5), on_error="open", timeout_s=0.5) as limiter:
        await until_redis(limiter)
        while (await limiter.acquire("tenant", timeout_s=0)).source != "redis":
            await asyncio.sleep(0.02)
        waiting = [asyncio.create_task(timed(limiter, timeout_s=10.0)) for _ in range(3)]
        await asyncio.sleep(0.1)
        with server.stopped():
            found = await asyncio.wait_for(asyncio.gather(*waiting), 60)
    assert max(took_s for _, took_s in found) < 10.0 + 2.0 + SLACK_S
    assert {decision.source for decision, _ in found} == {"open"}
    assert all(decision.degraded for decision, _ in found)


@pytest.mark.parametrize("fault", [FAULTS["killed"], FAULTS["hanging"]], ids=["killed", "hanging"])
@pytest.mark.parametrize("on_error", RULES)
async def test_guarded_runs_before_meanwhile_and_after(start_redis, fault, on_error):
    server, clock = start_redis(), Time()
    store = RedisStore(server.url, timeout_s=fault.timeout_s, connect_timeout_s=fault.timeout_s, clock=clock)
    limiter = RedisLimiter(store, LIMIT, on_error=on_error)
    policy = LENIENT_WORDS.override(release="answer")

    async def run(policy: Policy = policy):
        guard = guard_for(ANSWER, limiter=limiter, policy=policy)
        return await guard.run(ScriptedGenerator(ANSWER), question=QUESTION, context=[ANSWER], key="tenant")

    outcome = await run()
    assert (outcome.accepted, outcome.degraded) == (True, ())
    await asyncio.to_thread(fault.begin, server)
    began = time.monotonic()
    if on_error == "closed":
        with pytest.raises(RateLimitedError) as refused:
            await run()
        assert refused.value.retry_after_s > 0
        assert refused.value.outcome.degraded == (fault.reason,)
    else:
        outcome = await run()
        assert (outcome.accepted, outcome.degraded) == (True, (fault.reason,))
        with pytest.raises(RateLimitedError, match="on_degraded_limits"):
            await run(policy.override(on_degraded_limits="refuse"))
    assert time.monotonic() - began < 2 * fault.deadline_s + SLACK_S
    await asyncio.to_thread(fault.end, server)
    clock.now += 60
    await until_redis(limiter)
    outcome = await run()
    assert (outcome.accepted, outcome.degraded) == (True, ())
    await limiter.aclose()
    await store.aclose()
