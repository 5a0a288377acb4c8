"""The store on a real cluster, and on a primary that sentinels replace."""

from __future__ import annotations

import asyncio
import gc
import time

import pytest

from guardrail.redis_store import Breaker, Call, RedisStore, Script, StoreUnavailableError
from tests.redis_topologies import cluster_of_two, wait_until, watched_pair

COUNT = Script("count", "return redis.call('INCR', KEYS[1])")
KEYS = [f"key{number}" for number in range(12)]


def count(key: str) -> Call:
    return Call(COUNT, (key,), ())


@pytest.fixture(scope="module")
def cluster():
    with cluster_of_two() as nodes:
        yield nodes


@pytest.fixture
def nodes(cluster):
    for node in cluster:
        node.do("FLUSHALL")
    return cluster


def store_of(nodes, **settings) -> RedisStore:
    hosts = ",".join(f"127.0.0.1:{node.port}" for node in nodes)
    return RedisStore(f"redis+cluster://{hosts}", **settings)


async def test_calls_go_to_the_nodes_that_have_their_keys(nodes):
    store = store_of(nodes[:1], timeout_s=30.0)
    assert await store.call([count(key) for key in KEYS]) == [1] * 12
    found = await store.call([count(key) for key in reversed(KEYS)] + [count("x")] * 2)
    assert found[:12] == [2] * 12
    assert sorted(found[12:]) == [1, 2]
    held = [node.do("DBSIZE") for node in nodes]
    assert sum(held) == 13
    assert min(held) > 0
    assert await store.command("GET", KEYS[0]) == b"2"
    await store.aclose()


async def test_scripts_that_nodes_forgot_run_once(nodes):
    store = store_of(nodes, timeout_s=30.0)
    await store.call([count(key) for key in KEYS])
    nodes[1].script_flush()
    assert await store.call([count(key) for key in KEYS]) == [2] * 12
    await store.aclose()


async def test_keys_of_one_call_share_a_slot(nodes):
    store = store_of(nodes, timeout_s=30.0)
    assert await store.call([Call(COUNT, ("{tag}a", "{tag}b"), ())]) == [1]
    with pytest.raises(StoreUnavailableError, match="same key slot") as caught:
        await store.call([Call(COUNT, tuple(KEYS[:2]), ())])
    assert caught.value.reason == "server_error"
    assert store.breaker.state == "closed"
    await store.aclose()


async def test_a_node_that_hangs_and_comes_back(nodes):
    store = store_of(nodes, timeout_s=0.4, connect_timeout_s=0.4, breaker=Breaker(failures=10**6))
    await until_it_works(store, [count(key) for key in KEYS])
    with nodes[1].stopped():
        started = time.monotonic()
        with pytest.raises(StoreUnavailableError) as caught:
            await store.call([count(key) for key in KEYS])
        assert time.monotonic() - started < store.deadline_s + 2.0
        assert caught.value.reason in ("timeout", "server_error")
    await asyncio.to_thread(wait_until, lambda: all(b"cluster_state:ok" in n.do("CLUSTER", "INFO") for n in nodes))
    found = await until_it_works(store, [count(key) for key in KEYS])
    assert min(found) >= 2
    await store.aclose()
    gc.collect()  # connections that were left open would be an error


def test_event_loops_one_after_the_other(nodes):
    store = store_of(nodes, timeout_s=30.0)
    for number in range(1, 6):
        assert asyncio.run(store.call([count(key) for key in KEYS])) == [number] * 12
    asyncio.run(store.aclose())
    gc.collect()


async def test_a_cluster_that_is_not_there():
    store = RedisStore("redis+cluster://127.0.0.1:1,127.0.0.1:2")
    for _ in range(3):
        with pytest.raises(StoreUnavailableError) as caught:
            await store.call([count("a")])
        assert caught.value.reason == "refused"
    assert store.breaker.state == "open"
    await store.aclose()


async def test_a_primary_that_its_sentinel_replaces():
    with watched_pair() as (primary, sentinel):
        url = f"redis+sentinel://127.0.0.1:1,127.0.0.1:{sentinel.port}/main"
        breaker = Breaker(open_s=0.001, max_open_s=0.01)
        store = RedisStore(url, timeout_s=5.0, connect_timeout_s=5.0, breaker=breaker)
        assert await store.call([count("a"), count("a")]) == [1, 2]
        await asyncio.to_thread(primary.kill)
        with pytest.raises(StoreUnavailableError) as caught:
            await store.call([count("a")])
        assert caught.value.reason == "refused"
        assert (await until_it_works(store, [count("a")]))[0] in (1, 2, 3)  # the replica may not have got all
        await store.aclose()


async def test_sentinels_that_are_not_there():
    store = RedisStore("redis+sentinel://127.0.0.1:1/main")
    with pytest.raises(StoreUnavailableError) as caught:
        await store.command("PING")
    assert caught.value.reason == "refused"
    await store.aclose()


async def until_it_works(store: RedisStore, calls: list[Call]) -> list[int]:
    """Replies, as soon as there are some."""
    async with asyncio.timeout(30):
        while True:
            try:
                return await store.call(calls)
            except StoreUnavailableError:
                await asyncio.sleep(0.05)
