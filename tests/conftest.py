"""Fixtures that tests of several kinds share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from tests.redis_server import RedisServer, SharedServer

# A busy machine is no failure; pytest's own timeout ends what hangs.
settings.register_profile("guardrail", deadline=None, derandomize=True)
settings.load_profile("guardrail")

# The helpers are imported by the fixtures: tests that need no Redis must not load its client library.


@pytest.fixture(scope="session")
def _shared_redis() -> Iterator[SharedServer]:
    from tests.redis_server import SharedServer

    server = SharedServer()
    try:
        yield server
    finally:
        server.close()


@pytest.fixture
def redis_server(_shared_redis: SharedServer) -> SharedServer:
    """A server that other tests use too, empty; do it no harm."""
    _shared_redis.empty()
    return _shared_redis


@pytest.fixture
def redis_url(redis_server: SharedServer) -> str:
    """The URL of that server."""
    return redis_server.url


@pytest.fixture
def start_redis() -> Iterator[Callable[..., RedisServer]]:
    """Starts servers of the test's own, to be killed, stopped and restarted: ``start_redis(tcp=True)``."""
    from tests.redis_server import own_servers

    with own_servers() as start:
        yield start
