"""The store on a real server: calls, scripts, event loops."""

from __future__ import annotations

import asyncio
import gc
import socket
import threading

import pytest

from guardrail.redis_store import Call, RedisStore, Script, StoreUnavailableError
from tests.redis_server import Proxy

COUNT = Script("count", "return redis.call('INCRBY', KEYS[1], ARGV[1])")
ECHO = Script("echo", "return {KEYS[1], ARGV[1]}")
BROKEN = Script("broken", "return redis.call('INCR', KEYS[1], 'one too many')")


def count(key: str, by: int = 1) -> Call:
    return Call(COUNT, (key,), (by,))


@pytest.fixture
async def store(redis_url):
    store = RedisStore(redis_url, timeout_s=30.0)
    yield store
    await store.aclose()


def test_the_constructor_does_nothing(monkeypatch):
    def connects(*_args, **_options):
        raise AssertionError("it connects")

    monkeypatch.setattr(socket, "socket", connects)
    monkeypatch.setattr(socket, "getaddrinfo", connects)
    for url in ("redis://10.255.255.1:1", "redis+sentinel://10.255.255.1/main", "redis+cluster://10.255.255.1"):
        RedisStore(url)


async def test_calls_run_in_order(store):
    calls = [count("a"), count("b", 10), count("a"), count("a", 5), Call(ECHO, ("k",), (b"\xff",))]
    assert await store.call(calls) == [1, 10, 2, 7, [b"k", b"\xff"]]
    assert await store.call([count("a")]) == [8]


async def test_no_call_is_no_round_trip():
    assert await RedisStore("redis://10.255.255.1:1").call([]) == []


async def test_plain_commands(store):
    assert await store.command("PING") is True
    await store.command("SET", "x", "1", "PX", 60_000)
    assert await store.command("MGET", "x", "y") == [b"1", None]


async def test_scripts_that_the_server_forgot_run_once(store, redis_server):
    assert await store.call([count("a"), Call(ECHO, ("k",), ("v",))]) == [1, [b"k", b"v"]]
    for expected in (2, 3):
        redis_server.do("SCRIPT FLUSH")
        assert await store.call([count("a")]) == [expected]
    redis_server.do("SCRIPT FLUSH")
    with redis_server.client() as client:
        client.script_load(COUNT.source)
    # One script is known and one is not: the known one does not run again.
    assert await store.call([count("a"), Call(ECHO, ("k",), ("v",)), count("a")]) == [4, [b"k", b"v"], 5]
    redis_server.do("SCRIPT FLUSH")
    assert await store.call([count("a")] * 20) == list(range(6, 26))
    assert redis_server.do("GET", "a") == b"25"


async def test_scripts_are_known_after_the_first_call(store, redis_server):
    def scripts_in_full() -> int:
        found = redis_server.do("INFO", "commandstats").get("cmdstat_eval")
        return found["calls"] if found else 0

    await store.call([count("a")])
    before = scripts_in_full()
    for _ in range(3):
        await store.call([count("a")] * 3)
    assert scripts_in_full() == before


async def test_an_error_of_a_script_does_not_open_the_breaker(store):
    for calls in ([Call(BROKEN, ("a",), ())], [count("a"), Call(BROKEN, ("a",), ()), count("a")]):
        for _ in range(3):
            with pytest.raises(StoreUnavailableError) as caught:
                await store.call(calls)
            assert caught.value.reason == "server_error"
            assert caught.value.__cause__ is None
            assert caught.value.__context__ is None
    assert store.breaker.state == "closed"
    assert await store.call([count("a")]) == [7]


async def test_more_callers_than_connections(redis_url):
    store = RedisStore(redis_url, max_connections=3, timeout_s=30.0)
    found = await asyncio.gather(*(store.call([count("a")]) for _ in range(200)))
    assert sorted(reply for (reply,) in found) == list(range(1, 201))
    assert await store.command("INCRBY", "a", 0) == 200
    await store.aclose()


async def test_a_store_can_be_used_after_it_was_closed(store):
    await store.aclose()
    await store.aclose()
    assert await store.call([count("a")]) == [1]


def test_200_event_loops_one_after_the_other(redis_url):
    store = RedisStore(redis_url, timeout_s=30.0)

    async def use() -> list[int]:
        return [
            reply for found in await asyncio.gather(*(store.call([count("a")]) for _ in range(2))) for reply in found
        ]

    for number in range(200):
        assert sorted(asyncio.run(use())) == [2 * number + 1, 2 * number + 2]
    assert len(store._clients) <= 1
    asyncio.run(store.aclose())
    assert not store._clients
    gc.collect()  # an unclosed socket would be an error


def test_event_loops_that_were_not_closed_in_good_order(redis_url):
    store = RedisStore(redis_url, timeout_s=30.0)
    for number in range(3):
        loop = asyncio.new_event_loop()
        assert loop.run_until_complete(store.call([count("a")])) == [number + 1]
        loop.close()
        del loop
    asyncio.run(store.aclose())
    gc.collect()


def test_a_store_that_nobody_closed(redis_url):
    async def use() -> None:
        await RedisStore(redis_url, timeout_s=30.0).call([count("a")])

    asyncio.run(use())
    gc.collect()


def test_event_loops_in_several_threads(redis_url):
    store = RedisStore(redis_url, timeout_s=30.0)

    async def use() -> None:
        for _ in range(50):
            await store.call([count("a")])

    threads = [threading.Thread(target=asyncio.run, args=(use(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert asyncio.run(store.call([count("a")])) == [201]
    asyncio.run(store.aclose())
    gc.collect()


async def test_after_a_cancelled_call_all_replies_are_right(start_redis):
    server = start_redis()
    async with Proxy(server.socket) as proxy:
        store = RedisStore(proxy.url, timeout_s=30.0, connect_timeout_s=30.0)
        assert await store.call([Call(ECHO, ("first",), ("0",))]) == [[b"first", b"0"]]
        for calls in ([Call(ECHO, ("mine",), ("1",))], [Call(ECHO, ("mine",), ("1",))] * 3):
            proxy.passing.clear()
            proxy.holding.clear()
            cancelled = asyncio.create_task(store.call(calls))
            await proxy.holding.wait()
            cancelled.cancel()
            with pytest.raises(asyncio.CancelledError):
                await cancelled
            proxy.passing.set()  # the reply that nobody waits for comes now
        for number in range(50):
            assert await store.call([Call(ECHO, (f"tenant{number}",), (number,))]) == [
                [f"tenant{number}".encode(), str(number).encode()]
            ]
        found = await asyncio.gather(*(store.call([Call(ECHO, (f"t{n}",), (n,))]) for n in range(50)))
        assert found == [[[f"t{n}".encode(), str(n).encode()]] for n in range(50)]
        assert store.breaker.state == "closed"
        await store.aclose()


async def test_cancellations_at_random_leak_no_connection(redis_url):
    store = RedisStore(redis_url, max_connections=2, timeout_s=30.0)
    for turns in range(60):
        tasks = [asyncio.create_task(store.call([Call(ECHO, (f"t{n}",), (n,))] * 2)) for n in range(4)]
        for _ in range(turns % 20):
            await asyncio.sleep(0)
        for task in tasks[:3]:
            task.cancel()
        done = await asyncio.gather(*tasks, return_exceptions=True)
        assert done[3] == [[b"t3", b"3"]] * 2
        for n, found in enumerate(done[:3]):
            assert isinstance(found, asyncio.CancelledError) or found == [[f"t{n}".encode(), str(n).encode()]] * 2
    await asyncio.gather(*(store.command("PING") for _ in range(20)))  # would run out of connections
    await store.aclose()
