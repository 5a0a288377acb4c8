"""Clients are made as the URL says, without connecting: timeouts, no retries, credentials, TLS."""

from __future__ import annotations

import asyncio

import pytest

from guardrail.redis_store import StoreUnavailableError, parse_url
from guardrail.redis_store.clients import ClusterClient, PooledClient, Settings, Slots, open_client

SETTINGS = Settings(timeout_s=0.3, connect_timeout_s=0.2, max_connections=7)
COMMON = {"socket_timeout": 0.3, "socket_connect_timeout": 0.2, "protocol": 2, "decode_responses": False}


def made(url: str):
    return open_client(parse_url(url), SETTINGS)


def held(options: dict, names: dict) -> dict:
    return {name: options.get(name) for name in names}


def of_pool(pool, **expected):
    expected = {**COMMON, **expected}
    assert held(pool.connection_kwargs, expected) == expected
    assert pool.max_connections == 7
    assert pool.connection_kwargs["retry"].get_retries() == 0


@pytest.mark.parametrize(
    ("url", "connection", "expected"),
    [
        ("redis://host/3", "Connection", {"host": "host", "port": 6379, "db": 3, "username": None, "password": None}),
        ("redis://tim:pw@host:7000", "Connection", {"port": 7000, "db": 0, "username": "tim", "password": "pw"}),
        ("rediss://host?ssl_ca_certs=/ca.pem", "SSLConnection", {"host": "host", "ssl_ca_certs": "/ca.pem"}),
        (
            "unix://:pw@/redis.sock?db=2",
            "UnixDomainSocketConnection",
            {"path": "/redis.sock", "db": 2, "password": "pw"},
        ),
    ],
)
async def test_one_server(url, connection, expected):
    client = made(url)
    assert isinstance(client, PooledClient)
    pool = client._redis.connection_pool
    assert (type(pool).__name__, pool.connection_class.__name__) == ("BlockingConnectionPool", connection)
    of_pool(pool, **expected)
    await client.aclose()


@pytest.mark.parametrize(
    ("scheme", "connection"),
    [("redis", "SentinelManagedConnection"), ("rediss", "SentinelManagedSSLConnection")],
)
async def test_the_primary_that_sentinels_name(scheme, connection):
    client = made(f"{scheme}+sentinel://tim:pw@one,two:26380/main/2?sentinel_username=sue&sentinel_password=spw")
    assert isinstance(client, PooledClient)
    pool = client._redis.connection_pool
    assert (pool.service_name, pool.is_master, pool.connection_class.__name__) == ("main", True, connection)
    of_pool(pool, username="tim", password="pw", db=2)
    sentinels = [one.connection_pool for one in pool.sentinel_manager.sentinels]
    assert [(one.connection_kwargs["host"], one.connection_kwargs["port"]) for one in sentinels] == [
        ("one", 26379),
        ("two", 26380),
    ]
    for one in sentinels:
        expected = {**COMMON, "username": "sue", "password": "spw"}
        assert held(one.connection_kwargs, expected) == expected
        assert one.connection_class.__name__ == ("SSLConnection" if scheme == "rediss" else "Connection")
        assert one.connection_kwargs["retry"].get_retries() == 0
    await client.aclose()


@pytest.mark.parametrize(("scheme", "connection"), [("redis", "Connection"), ("rediss", "SSLConnection")])
async def test_a_cluster(scheme, connection):
    client = made(f"{scheme}+cluster://tim:pw@127.0.0.1,127.0.0.2:7001")
    assert isinstance(client, ClusterClient)
    cluster = client._redis
    assert [(node.host, node.port) for node in cluster.startup_nodes] == [("127.0.0.1", 6379), ("127.0.0.2", 7001)]
    expected = {**COMMON, "username": "tim", "password": "pw"}
    for node in cluster.startup_nodes:
        assert held(node.connection_kwargs, expected) == expected
        assert (node.max_connections, node.connection_class.__name__) == (7, connection)
    assert cluster.retry.get_retries() == 0
    await client.aclose()


async def test_slots_are_given_in_order_of_arrival():
    slots, loop, order = Slots(1), asyncio.get_running_loop(), []

    async def use(name: str) -> None:
        await slots.take(loop.time() + 10)
        order.append(name)
        await asyncio.sleep(0)
        slots.give_back()

    await asyncio.gather(*(use(name) for name in "abcdef"))
    assert order == list("abcdef")


async def test_a_slot_that_does_not_get_free_in_time():
    slots, loop = Slots(1), asyncio.get_running_loop()
    await slots.take(loop.time())
    with pytest.raises(StoreUnavailableError) as caught:
        await slots.take(loop.time())
    assert caught.value.reason == "pool_exhausted"
    slots.give_back()
    await slots.take(loop.time())


async def test_a_cancelled_wait_for_a_slot_takes_none():
    slots, far = Slots(1), asyncio.get_running_loop().time() + 10
    await slots.take(far)
    waiting = [asyncio.create_task(slots.take(far)) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    slots.give_back()
    waiting[1].cancel()  # in the moment in which it might have got it
    await waiting[2]
    assert [task.cancelled() for task in waiting] == [True, True, False]


async def test_all_slots_are_taken_after_those_who_wait():
    slots, far = Slots(2), asyncio.get_running_loop().time() + 10
    await slots.take(far)
    await slots.take(far)
    waiting, draining = asyncio.create_task(slots.take(far)), asyncio.create_task(slots.take_all())
    await asyncio.sleep(0)
    slots.give_back()
    await waiting
    for _ in range(2):
        assert not draining.done()
        slots.give_back()
    await draining
