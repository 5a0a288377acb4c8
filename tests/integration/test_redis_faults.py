"""The store when the server is gone, hangs, or refuses: each call ends in time, with its reason, and it recovers."""

from __future__ import annotations

import asyncio
import logging
import time
import traceback

import pytest

from guardrail.redis_store import Breaker, Call, RedisStore, Script, StoreUnavailableError
from tests.redis_server import Proxy, RedisServer, free_port, silent_listener

COUNT = Script("count", "return redis.call('INCR', KEYS[1])")
SLACK_S = 2.0  # for a machine that does something else meanwhile
SECRET = "s3cr3t-Pa55"


class Time:
    """The breaker's clock, which the tests move."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def lenient() -> Breaker:
    """One that stays out of the way."""
    return Breaker(failures=10**6)


def add() -> list[Call]:
    return [Call(COUNT, ("n",), ())]


async def failing(store: RedisStore) -> tuple[str, float]:
    """Reason of the failure of a call, and how long it took."""
    started = time.monotonic()
    with pytest.raises(StoreUnavailableError) as caught:
        await store.call(add())
    shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value)
    assert SECRET not in shown
    return caught.value.reason, time.monotonic() - started


async def test_a_closed_port_is_refused_at_once_and_opens_the_breaker(caplog):
    store = RedisStore(f"redis://:{SECRET}@127.0.0.1:{free_port()}", timeout_s=30.0, connect_timeout_s=30.0)
    reason, took_s = await failing(store)
    assert reason == "refused"
    assert took_s < 1.0
    for _ in range(10):
        assert (await failing(store))[0] == "breaker_open"
    assert [r.levelname for r in caplog.records if r.name == "guardrail.redis_store"] == ["WARNING"]
    assert SECRET not in caplog.text
    await store.aclose()


@pytest.mark.parametrize("url", ["unix:///nonexistent/redis.sock", "redis://host.invalid"])
async def test_what_does_not_exist_is_refused(url):
    store = RedisStore(url, connect_timeout_s=30.0)
    assert (await failing(store))[0] == "refused"
    assert store.breaker.state == "open"
    await store.aclose()


async def test_a_server_that_knows_no_tls(start_redis):
    store = RedisStore(f"rediss://127.0.0.1:{start_redis(tcp=True).port}")
    assert (await failing(store))[0] in ("timeout", "refused")  # some versions wait for the rest of the line
    await store.aclose()


async def test_a_listener_that_never_answers_times_out():
    with silent_listener() as url:
        store = RedisStore(url, timeout_s=0.2, connect_timeout_s=0.1, breaker=lenient())
        found = await asyncio.gather(*(failing(store) for _ in range(20)))
        await store.aclose()
    assert {reason for reason, _ in found} == {"timeout"}
    assert max(took_s for _, took_s in found) <= store.deadline_s + SLACK_S


async def test_a_stopped_server_times_out_and_is_used_again(start_redis, caplog):
    caplog.set_level(logging.INFO, "guardrail.redis_store")
    server, clock = start_redis(), Time()
    store = RedisStore(server.url, timeout_s=0.4, connect_timeout_s=0.4, clock=clock)
    assert await store.call(add()) == [1]
    with server.stopped():
        for _ in range(3):
            reason, took_s = await failing(store)
            assert reason == "timeout"
            assert took_s <= store.deadline_s + SLACK_S
        reason, took_s = await failing(store)
        assert reason == "breaker_open"
        assert took_s < 0.1
    assert (await failing(store))[0] == "breaker_open"
    clock.now += 1.0
    charged = (await store.call(add()))[0]
    assert charged >= 2
    assert await store.call(add()) == [charged + 1]
    assert [(r.levelname) for r in caplog.records if r.name == "guardrail.redis_store"] == ["WARNING", "INFO"]
    await store.aclose()


async def test_after_a_failure_idle_connections_are_not_used_again(start_redis):
    server, clock = start_redis(), Time()
    async with Proxy(server.socket) as proxy:
        store = RedisStore(proxy.url, timeout_s=0.4, connect_timeout_s=0.4, max_connections=5, clock=clock)
        await asyncio.gather(*(store.call(add()) for _ in range(5)))
        opened = proxy.connections
        proxy.delay_s = 30.0  # what is connected now never answers again, as after a failover
        for _ in range(3):
            assert (await failing(store))[0] == "timeout"
        proxy.delay_s = 0.0
        clock.now += 1.0
        assert (await store.call(add()))[0] >= 6
        assert proxy.connections > opened
        await store.aclose()


async def test_calls_under_way_are_answered_while_the_breaker_opens(start_redis):
    server = start_redis(tcp=True, password=SECRET)
    async with Proxy(server.socket) as proxy:
        store = RedisStore(proxy.url.replace("//", f"//:{SECRET}@"), timeout_s=30.0, connect_timeout_s=30.0)
        assert await asyncio.gather(store.call(add()), store.call(add())) in ([[1], [2]], [[2], [1]])
        proxy.passing.clear()
        under_way = asyncio.create_task(store.call(add()))
        await proxy.holding.wait()
        store._retire(await store._client())
        await asyncio.sleep(0)
        proxy.passing.set()
        assert await under_way == [3]
        await store.aclose()


async def test_many_calls_while_the_server_stalls(start_redis):
    server = start_redis()
    store = RedisStore(server.url, timeout_s=0.3, connect_timeout_s=0.3, breaker=lenient())
    await store.call(add())
    with server.stopped():
        found = await asyncio.gather(*(failing(store) for _ in range(20)))
    assert {reason for reason, _ in found} == {"timeout"}
    assert max(took_s for _, took_s in found) <= store.deadline_s + SLACK_S
    server.do("PING")  # by now it has read all that had come before
    before = int(server.do("GET", "n"))
    assert before <= 21  # nothing was sent twice
    assert await store.call(add()) == [before + 1]
    await store.aclose()


async def test_a_server_that_was_killed_and_started_again(start_redis):
    server, clock = start_redis(), Time()
    store = RedisStore(server.url, timeout_s=30.0, clock=clock)
    assert await store.call(add()) == [1]
    await asyncio.to_thread(server.kill)
    assert (await failing(store))[0] == "refused"
    assert (await failing(store))[0] == "breaker_open"
    server.start()
    clock.now += 1.0
    assert await store.call(add() * 3) == [1, 2, 3]  # it knows no script any more
    await store.aclose()


async def test_killed_connections_are_replaced(start_redis):
    server = start_redis()
    store = RedisStore(server.url, timeout_s=30.0)
    for number in range(1, 6):
        assert await store.call(add()) == [number]
        await asyncio.to_thread(server.client_kill)
    assert store.breaker.state == "closed"
    await store.aclose()


@pytest.mark.parametrize("login", ["", ":wrong@", f"tim:{SECRET}@", f":{SECRET}x@"])
async def test_wrong_credentials(start_redis, login):
    server = start_redis(tcp=True, password=SECRET)
    store = RedisStore(f"redis://{login}127.0.0.1:{server.port}", timeout_s=30.0)
    assert (await failing(store))[0] == "auth"
    assert store.breaker.state == "open"
    await store.aclose()
    right = RedisStore(server.tcp_url, timeout_s=30.0)
    assert await right.call(add()) == [1]
    await right.aclose()


async def test_a_user_without_rights(start_redis):
    server = start_redis(tcp=True)
    server.do("ACL", "SETUSER", "tim", "on", f">{SECRET}", "+ping", "+client", "allkeys")
    store = RedisStore(f"redis://tim:{SECRET}@127.0.0.1:{server.port}", timeout_s=30.0)
    assert (await failing(store))[0] == "auth"
    await store.aclose()


async def test_a_read_only_replica(start_redis):
    server = start_redis(replicaof=("127.0.0.1", 1))
    clock = Time()
    store = RedisStore(server.url, timeout_s=30.0, clock=clock)
    assert (await failing(store))[0] == "read_only"
    assert store.breaker.state == "open"
    server.do("REPLICAOF", "NO", "ONE")
    clock.now += 1.0
    assert await store.call(add()) == [1]
    await store.aclose()


async def test_out_of_memory_is_an_error_of_the_server(start_redis):
    server = start_redis(settings=("--maxmemory", "1"))
    store = RedisStore(server.url, timeout_s=30.0)
    for _ in range(3):
        assert (await failing(store))[0] == "server_error"
    assert store.breaker.state == "open"
    await store.aclose()


async def test_all_connections_in_use(redis_url):
    store = RedisStore(redis_url, timeout_s=0.1, connect_timeout_s=0.1, max_connections=1)
    client = await store._client()
    await client._slots.take(float("inf"))  # for longer than any call could
    found = await asyncio.gather(*(failing(store) for _ in range(5)))
    assert {reason for reason, _ in found} == {"pool_exhausted"}
    assert max(took_s for _, took_s in found) <= store.deadline_s + SLACK_S
    assert store.breaker.state == "closed"
    client._slots.give_back()
    assert await store.call(add()) == [1]
    await store.aclose()


def test_servers_end_with_the_test(start_redis):
    server = start_redis()
    assert isinstance(server, RedisServer)
    process = server._process
    server.close()
    assert process.poll() is not None
    assert not server.folder.exists()
