"""The one way to a Redis server: Lua scripts in one round trip, within a deadline, past a circuit breaker."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import math
import sys
import threading
import time
import warnings
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

from guardrail.errors import ConfigurationError
from guardrail.protocols import Clock
from guardrail.redis_store.breaker import Breaker
from guardrail.redis_store.clients import Client, Command, Settings, open_client
from guardrail.redis_store.errors import Fault, StoreUnavailableError, fault_of, require_redis, unavailable
from guardrail.redis_store.urls import parse_url


@dataclass(frozen=True, slots=True)
class Script:
    """A Lua script.

    Args:
        name: For messages.
        source: Its text; the server keeps it under its SHA-1.

    Example:
        >>> Script("one", "return 1").sha
        'e0e1f9fabfc9d4800c877a703b823ac0578ff8db'
    """

    name: str
    source: str

    @property
    def sha(self) -> str:
        """What the server calls it."""
        return _sha(self.source)


@dataclass(frozen=True, slots=True)
class Call:
    """One run of a script.

    Args:
        script: What runs.
        keys: All keys that it touches; on a cluster they share one slot, which a common ``{hash tag}`` sees to.
        args: Integers and texts.
    """

    script: Script
    keys: tuple[str | bytes, ...]
    args: tuple[int | str | bytes, ...]


class RedisStore:
    """Runs scripts and commands on a Redis server, each call within a deadline.

    The constructor does no input or output and needs no running event loop. A store may be used in several event loops,
    one after the other or at the same time in several threads; each has its own connections, which end with the loop or
    with :meth:`aclose`.

    Nothing is ever sent twice, because what a script charges would be charged twice. The one exception are scripts that
    the server does not know (yet, or any more): they have not run.

    Args:
        url: ``redis://``, ``rediss://``, ``unix://``, ``redis+sentinel://`` or ``redis+cluster://``.
        timeout_s: Longest wait for a reply, above 0.
        connect_timeout_s: Longest wait for a connection, above 0.
        max_connections: Connections per event loop (on a cluster also per node), at least 1; more calls wait for one.
        breaker: If not given, one with its defaults.
        clock: For that breaker.

    Raises:
        ConfigurationError: If the URL or a setting is wrong; the message holds no credentials.
        MissingExtraError: If the extra ``redis`` is not installed.

    Example:
        >>> store = RedisStore("redis://user:secret@localhost:6379/1")
        >>> store
        RedisStore('redis://localhost:6379/1')
        >>> store.deadline_s
        0.5
    """

    def __init__(
        self,
        url: str,
        *,
        timeout_s: float = 0.25,
        connect_timeout_s: float = 0.25,
        max_connections: int = 32,
        breaker: Breaker | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        require_redis()
        self._address = parse_url(url)
        for name, value in (("timeout_s", timeout_s), ("connect_timeout_s", connect_timeout_s)):
            if not (math.isfinite(value) and value > 0):
                raise ConfigurationError(f"RedisStore.{name}: must be a finite number above 0, got {value!r}")
        if max_connections < 1:
            raise ConfigurationError(f"RedisStore.max_connections: must be at least 1, got {max_connections!r}")
        self._settings = Settings(timeout_s, connect_timeout_s, max_connections)
        self.breaker = breaker or Breaker(server=f"Redis at {self.url_for_display}", clock=clock)
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, _Kept] = WeakKeyDictionary()
        self._retired: set[asyncio.Task[None]] = set()
        self._lock = threading.Lock()  # of the dictionary; never held while something is awaited

    @property
    def deadline_s(self) -> float:
        """Longest time that a call takes, the wait for a connection included."""
        return self._settings.connect_timeout_s + self._settings.timeout_s

    @property
    def url_for_display(self) -> str:
        """The address, without user and password."""
        return str(self._address)

    def __repr__(self) -> str:
        return f"RedisStore({self.url_for_display!r})"

    async def call(self, calls: Sequence[Call]) -> list[Any]:
        """Run scripts in one round trip; on a cluster side by side.

        They run in order, but not as a transaction: calls of others can come between. If the server does not know some
        of the scripts, only those are sent again, after the others.

        Args:
            calls: What to run; none is no round trip.

        Returns:
            The replies in the order of the calls.

        Raises:
            StoreUnavailableError: If not all of them were answered; some may have run. Its ``replies`` say which, if
                that is known. Within :attr:`deadline_s`.

        On cancellation the connection is closed; whether the scripts ran is not known.
        """
        if not calls:
            return []
        return await self._guarded(lambda client, until: _run(client, calls, until))

    async def command(self, *args: Any) -> Any:
        """Run a plain command, ``PING`` or ``MGET``, under the same rules.

        Args:
            args: Its name and arguments.

        Returns:
            The reply, as the client library gives it: texts are bytes.

        Raises:
            StoreUnavailableError: If it was not answered, or with an error. Within :attr:`deadline_s`.
        """
        return (await self._guarded(lambda client, until: client.execute([args], until)))[0]

    async def aclose(self) -> None:
        """Close the connections of the running event loop. The store can be used again; it then connects anew."""
        loop = asyncio.get_running_loop()
        with self._lock:
            kept = self._clients.pop(loop, None)
        self._forget_closed_loops()
        if kept is not None:
            await kept.closing.aclose()
        retired = [task for task in self._retired if task.get_loop() is loop]
        await asyncio.gather(*retired, return_exceptions=True)

    async def _guarded(self, work: Callable[[Client, float], Awaitable[list[Any]]]) -> list[Any]:
        permit = self.breaker.admit()
        if permit is None:
            raise unavailable(Fault("breaker_open"), self.url_for_display)
        until = asyncio.get_running_loop().time() + self.deadline_s
        try:
            client = await self._client()
            replies, fault = await self._answered(work(client, until))
            if fault is None or fault.alive:
                permit.succeeded()
            elif fault.reason != "pool_exhausted":  # which says nothing about the server
                # A part of a cluster can be gone while the rest works.
                lasting = fault.lasting and self._address.kind != "cluster"
                if permit.failed(fault.reason, lasting=lasting):
                    self._retire(client)
        finally:
            permit.give_back()
        if fault is not None:
            raise unavailable(fault, self.url_for_display, replies)
        return replies

    async def _answered(self, work: Awaitable[list[Any]]) -> tuple[list[Any], Fault | None]:
        """Replies, and what went wrong: not as an exception, whose context would show what the server said."""
        from redis.exceptions import RedisClusterException, RedisError

        handled = sys.exception()  # by the caller: it says nothing about this call
        try:
            replies = await work
        except StoreUnavailableError as error:
            return [], Fault(error.reason)
        except (RedisError, RedisClusterException, OSError) as error:
            return [], fault_of(error, self._address.secrets, handled)
        answers = [self._fault_in(reply) if isinstance(reply, Exception) else reply for reply in replies]
        return answers, next((answer for answer in answers if isinstance(answer, Fault)), None)

    def _fault_in(self, reply: Exception) -> Fault:
        if isinstance(reply, StoreUnavailableError):
            return Fault(reply.reason)
        return fault_of(reply, self._address.secrets)

    def _retire(self, client: Client) -> None:
        """Connect anew next time: the name may lead to another server by then, and old connections nowhere."""
        loop = asyncio.get_running_loop()
        with self._lock:
            kept = self._clients.get(loop)
            if kept is None or kept.client is not client:
                return  # another call did it
            del self._clients[loop]
        task = loop.create_task(_close_when_idle(kept))
        self._retired.add(task)
        task.add_done_callback(self._retired.discard)

    async def _client(self) -> Client:
        loop = asyncio.get_running_loop()
        with self._lock:
            kept = self._clients.get(loop)
            if kept is None:
                client = open_client(self._address, self._settings)
                kept = self._clients[loop] = _Kept(client, _until_closed(client))
                new = True
            else:
                new = False
        if new:
            self._forget_closed_loops()
            await anext(kept.closing)
        return kept.client

    def _forget_closed_loops(self) -> None:
        with self._lock:
            closed = [loop for loop in self._clients if loop.is_closed()]
            kept = [self._clients.pop(loop) for loop in closed]
        # Connections of a loop that was closed in good order are closed. Of others only their memory can be freed: it
        # is done here, because otherwise each would complain when the collector gets to it.
        left = any(getattr(one.closing, "ag_frame", None) is not None for one in kept)
        closed.clear()
        kept.clear()
        if left:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ResourceWarning)
                gc.collect()


@dataclass(slots=True)
class _Kept:
    client: Client
    closing: AsyncGenerator[None, None]


async def _until_closed(client: Client) -> AsyncGenerator[None, None]:
    """Closes a client at the end of the event loop.

    Event loops finish their asynchronous generators before they close; there is no other hook for their end.
    """
    from redis.exceptions import RedisError

    try:
        yield
    finally:
        with suppress(RedisError, OSError):
            await client.aclose()


async def _close_when_idle(kept: _Kept) -> None:
    await kept.client.drain()
    await kept.closing.aclose()


async def _run(client: Client, calls: Sequence[Call], until: float) -> list[Any]:
    from redis.exceptions import NoScriptError

    replies = await client.execute([_command(call, "EVALSHA", call.script.sha) for call in calls], until)
    unknown = [index for index, reply in enumerate(replies) if isinstance(reply, NoScriptError)]
    if unknown:
        # EVAL runs the script and makes it known, in one step that nobody can come between.
        again = [_command(calls[index], "EVAL", calls[index].script.source) for index in unknown]
        for index, reply in zip(unknown, await client.execute(again, until), strict=True):
            replies[index] = reply
    return replies


def _command(call: Call, how: str, script: str) -> Command:
    return (how, script, len(call.keys), *call.keys, *call.args)


@lru_cache(maxsize=64)
def _sha(source: str) -> str:
    return hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()
