"""Clients of one event loop: several commands at once to a server, to a sentinel's primary, or to a cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from guardrail.redis_store.errors import StoreUnavailableError
from guardrail.redis_store.urls import Address

Command = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Settings:
    """How to connect."""

    timeout_s: float
    connect_timeout_s: float
    max_connections: int


class Client(Protocol):
    """What a store needs; made and used in one event loop."""

    async def execute(self, commands: Sequence[Command], until: float) -> list[Any]:
        """Run commands; errors of single ones stand in the place of their replies.

        Args:
            commands: Name and arguments of each.
            until: Time of the event loop at which it gives up.

        Raises:
            StoreUnavailableError: ``pool_exhausted``, if no connection got free in time.
            TimeoutError: If there was no reply in time; the connection is closed then.
        """

    async def drain(self) -> None:
        """Wait until nobody uses it; whoever comes now waits in vain."""

    async def aclose(self) -> None:
        """Close all connections."""


class Slots:
    """So many connections at once, in order of arrival.

    The pools of the client library are not asked to wait: they tell a full pool from a broken connection by text only,
    and not all of them can wait.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._free = asyncio.Semaphore(count)

    async def take(self, until: float) -> None:
        """Wait for a slot; whoever got one gives it back.

        Args:
            until: Time of the event loop.

        Raises:
            StoreUnavailableError: ``pool_exhausted``, if none got free in time.
        """
        try:
            async with asyncio.timeout_at(until if self._free.locked() else None):
                await self._free.acquire()
        except TimeoutError:
            raise StoreUnavailableError("pool_exhausted") from None

    def give_back(self) -> None:
        """Let the next one have it."""
        self._free.release()

    async def take_all(self) -> None:
        """Wait for all slots, after those who wait already, and keep them."""
        for _ in range(self._count):
            await self._free.acquire()


class PooledClient:
    """One server: all commands in one pipeline, not in a transaction."""

    def __init__(self, redis: Any, slots: Slots, *, also_close: Sequence[Any] = ()) -> None:
        self._redis = redis
        self._slots = slots
        self._also_close = also_close

    async def execute(self, commands: Sequence[Command], until: float) -> list[Any]:
        """Run commands in one round trip."""
        await self._slots.take(until)
        try:
            async with asyncio.timeout_at(until):
                if len(commands) == 1:
                    return [await _reply_or_error(self._redis, commands[0])]  # half the work of a pipeline
                pipeline = self._redis.pipeline(transaction=False)
                for command in commands:
                    pipeline.execute_command(*command)
                replies: list[Any] = await pipeline.execute(raise_on_error=False)
                return replies
        finally:
            self._slots.give_back()

    async def drain(self) -> None:
        """Wait until nobody uses it."""
        await self._slots.take_all()

    async def aclose(self) -> None:
        """Close all connections, those to the sentinels too."""
        for client in (self._redis, *self._also_close):
            await client.aclose()


async def _reply_or_error(redis: Any, command: Command) -> Any:
    from redis.exceptions import ResponseError

    try:
        return await redis.execute_command(*command)
    except ResponseError as error:
        return error


class ClusterClient:
    """A cluster: each command on its own, to the node that has its keys."""

    def __init__(self, redis: Any, slots: Slots) -> None:
        self._redis = redis
        self._slots = slots

    async def execute(self, commands: Sequence[Command], until: float) -> list[Any]:
        """Run commands side by side."""
        async with asyncio.timeout_at(until):
            await self._redis.initialize()  # first: side by side, they would close each other's connections meanwhile
        return await asyncio.gather(*(self._one(command, until) for command in commands), return_exceptions=True)

    async def _one(self, command: Command, until: float) -> Any:
        await self._slots.take(until)
        try:
            async with asyncio.timeout_at(until):
                return await self._redis.execute_command(*command)
        finally:
            self._slots.give_back()

    async def drain(self) -> None:
        """Wait until nobody uses it."""
        await self._slots.take_all()

    async def aclose(self) -> None:
        """Close all connections."""
        await self._redis.aclose()
        # After an error the client takes itself for not connected, and leaves connections open.
        for node in (*self._redis.get_nodes(), *self._redis.nodes_manager.startup_nodes.values()):
            await node.disconnect()


def open_client(address: Address, settings: Settings) -> Client:
    """Make a client for the running event loop; it connects when it is used.

    Args:
        address: Of the server, the sentinels or the cluster.
        settings: How to connect.

    Example:
        >>> from guardrail.redis_store.urls import parse_url
        >>> async def kind(url):
        ...     return type(open_client(parse_url(url), Settings(0.25, 0.25, 32))).__name__
        >>> asyncio.run(kind("redis://localhost"))
        'PooledClient'
    """
    make = {"sentinel": _sentinel, "cluster": _cluster}.get(address.kind, _single)
    return make(address, settings)


def _common(address: Address, settings: Settings) -> dict[str, Any]:
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff

    return {
        "username": address.username,
        "password": address.password,
        "socket_timeout": settings.timeout_s,
        "socket_connect_timeout": settings.connect_timeout_s,
        "retry": Retry(NoBackoff(), 0),  # a charge that is sent twice is charged twice
        "protocol": 2,  # every server speaks it, and it has no greeting to wait for
        "decode_responses": False,
        **dict(address.tls_options),
    }


def _single(address: Address, settings: Settings) -> Client:
    from redis.asyncio import BlockingConnectionPool, Connection, Redis, SSLConnection, UnixDomainSocketConnection

    where: dict[str, Any] = {"connection_class": SSLConnection if address.tls else Connection}
    if address.kind == "unix":
        where = {"connection_class": UnixDomainSocketConnection, "path": address.path}
    else:
        where["host"], where["port"] = address.hosts[0]
    pool = BlockingConnectionPool(
        max_connections=settings.max_connections,
        timeout=settings.connect_timeout_s,
        db=address.db,
        **where,
        **_common(address, settings),
    )
    return PooledClient(Redis.from_pool(pool), Slots(settings.max_connections))


def _sentinel(address: Address, settings: Settings) -> Client:
    from redis.asyncio.sentinel import Sentinel

    common = _common(address, settings)
    if address.tls:
        common["ssl"] = True
    of_sentinels = {**common, "username": address.sentinel_username, "password": address.sentinel_password}
    sentinel = Sentinel(address.hosts, sentinel_kwargs=of_sentinels)  # type: ignore[no-untyped-call]
    redis = sentinel.master_for(address.service, db=address.db, max_connections=settings.max_connections, **common)
    return PooledClient(redis, Slots(settings.max_connections), also_close=sentinel.sentinels)


def _cluster(address: Address, settings: Settings) -> Client:
    import redis
    from redis.asyncio import RedisCluster
    from redis.asyncio.cluster import ClusterNode

    common = _common(address, settings)
    if address.tls:
        common["ssl"] = True
    if int(redis.__version__.partition(".")[0]) < 6:
        common["cluster_error_retry_attempts"] = 0  # before redis-py 6, `retry` was for connections only
    client = RedisCluster(
        startup_nodes=[ClusterNode(host, port) for host, port in address.hosts],
        max_connections=settings.max_connections,
        require_full_coverage=False,  # the keys of the nodes that are there can be used
        **common,
    )
    return ClusterClient(client, Slots(settings.max_connections))
