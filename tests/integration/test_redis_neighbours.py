"""Charges that share a round trip with one that fails."""

from __future__ import annotations

import asyncio

import pytest

from guardrail.limits.limit import Limit
from guardrail.limits.redis import RedisLimiter
from guardrail.limits.script import ACQUIRE
from guardrail.redis_store import Call, RedisStore, StoreUnavailableError


async def test_a_key_that_is_broken_fails_alone(redis_url, redis_server):
    async with RedisLimiter(redis_url, Limit(5, 600.0), timeout_s=10.0, on_error="closed") as limiter:
        await limiter.acquire("broken")
        with redis_server.client() as client:
            (key,) = client.keys()
            client.delete(key)
            client.set(key, "of another kind")
        keys = ["good", "broken", "good", "better", "broken"]
        decisions = await asyncio.gather(*(limiter.acquire(key) for key in keys))
    assert [(decision.source, decision.remaining) for decision in decisions] == [
        ("redis", 4.0),
        ("closed", None),
        ("redis", 3.0),
        ("redis", 4.0),
        ("closed", None),
    ]
    assert {decision.degraded for decision in decisions} == {"", "redis_server_error"}


async def test_the_error_says_which_calls_ran(redis_url, redis_server):
    with redis_server.client() as client:
        client.set("{t}b", "of another kind")
    store = RedisStore(redis_url, timeout_s=10.0, connect_timeout_s=10.0)
    demand = b"window 1000 5000 1000000"
    with pytest.raises(StoreUnavailableError, match="server_error") as caught:
        await store.call([Call(ACQUIRE, (key,), ("id", demand)) for key in ("{t}a", "{t}b", "{t}c")])
    ran, failed, also_ran = caught.value.replies
    assert ran.startswith(b"1 ")
    assert also_ran.startswith(b"1 ")
    assert isinstance(failed, StoreUnavailableError)
    assert (failed.reason, failed.replies) == ("server_error", None)
    assert store.breaker.state == "closed"
    await store.aclose()
