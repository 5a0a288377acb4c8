"""What is given back to a limit in Redis while somebody asks for it."""

from __future__ import annotations

import asyncio

import pytest

from guardrail.limits.limit import Limit
from guardrail.limits.redis import RedisLimiter
from guardrail.limits.waiting import Here
from guardrail.redis_store import RedisStore


class Late:
    """A store; an answer to a charge can be held, when it has been decided already."""

    def __init__(self, store):
        self.store, self.hold, self.held = store, False, asyncio.Event()
        self.go_on = asyncio.Event()

    def __getattr__(self, name):
        return getattr(self.store, name)

    async def call(self, calls):
        held = self.hold and calls[0].script.name == "acquire"
        replies = await self.store.call(calls)
        if held:
            self.hold = False
            self.held.set()
            await self.go_on.wait()
        return replies


@pytest.mark.parametrize("share", [True, False])
@pytest.mark.parametrize("asks", ["for the first time", "again"])
async def test_a_refusal_that_is_older_than_what_was_given_back_is_not_waited_for(redis_url, share, asks):
    store = RedisStore(redis_url, timeout_s=10.0, connect_timeout_s=10.0)
    late = Late(store)
    limit = Limit(1000, 600.0, unit="tokens")
    limiter = RedisLimiter(late, limit, tokens_per_call=600, share_round_trips=share)
    first = await limiter.acquire("tenant")
    if asks == "for the first time":
        late.hold = True
    waiting = asyncio.create_task(limiter.acquire("tenant"))
    if asks == "again":
        while not limiter._here().heads:
            await asyncio.sleep(0.001)
        late.hold = True
        await limiter.settle(first, 590)
    await asyncio.wait_for(late.held.wait(), 30)
    await limiter.settle(first, 100)
    late.go_on.set()
    assert (await asyncio.wait_for(waiting, 30)).remaining == 300
    await limiter.aclose()
    await store.aclose()


async def test_what_was_given_back_is_remembered_for_each_line_and_not_for_ever():
    here = Here(None, ())
    here.wake((b"a",))
    asked = here.given_back
    assert here.given_back_since(asked - 1, (b"a",))
    assert not here.given_back_since(asked, (b"a",))
    here.wake((b"b",))
    assert not here.given_back_since(asked, (b"a",))
    assert here.given_back_since(asked, (b"b",))
    for number in range(5000):
        here.wake((b"%d" % number,))
    assert len(here._last) <= 1024
    assert here.given_back_since(asked, (b"a",))  # it may have been


@pytest.mark.parametrize("how", ["cancelled", "settled"])
async def test_only_a_charge_that_was_never_taken_leaves_the_window(redis_url, redis_server, how):
    store = RedisStore(redis_url, timeout_s=10.0, connect_timeout_s=10.0)
    late = Late(store)
    limiter = RedisLimiter(late, Limit(1000, 600.0, unit="tokens"))
    late.hold = how == "cancelled"
    charge = asyncio.create_task(limiter.acquire("tenant"))
    if how == "cancelled":
        await asyncio.wait_for(late.held.wait(), 30)
        charge.cancel()
        await asyncio.wait([charge])
        late.go_on.set()
    else:
        await limiter.settle(await charge, 0)
    await limiter.aclose()
    with redis_server.client() as client:
        (key,) = client.keys()
        assert client.zcard(key) == (1 if how == "cancelled" else 2)  # the sum is a member too
        assert client.zscore(key, "total") == 0
        assert 0 < client.pttl(key) <= 600_001
    await store.aclose()
