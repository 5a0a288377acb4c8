"""Errors of the client library, sorted into reasons, without secrets; and the constructor of a store."""

from __future__ import annotations

import socket
import ssl
import sys

import pytest
from redis import exceptions as redis

from guardrail.errors import ConfigurationError, GuardrailError, MissingExtraError
from guardrail.redis_store import RedisStore, StoreUnavailableError
from guardrail.redis_store.errors import fault_of, unavailable


def caused(error: Exception, cause: Exception) -> Exception:
    """As if one had been raised while the other was handled."""
    error.__context__ = cause
    return error


def wrapped(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


SCRIPT_ON_REPLICA = (
    "Error running script (call to f_x): @user_script:1: @user_script: 1: -READONLY You can't write against a read "
    "only replica."
)


@pytest.mark.parametrize(
    ("error", "reason", "lasting", "alive"),
    [
        (caused(redis.ConnectionError("Error 111"), ConnectionRefusedError()), "refused", True, False),
        (caused(redis.ConnectionError("Error 2"), FileNotFoundError()), "refused", True, False),
        (caused(redis.ConnectionError("Error -2"), socket.gaierror()), "refused", True, False),
        (caused(redis.ConnectionError("Error 1"), ssl.SSLError()), "refused", True, False),
        (redis.ConnectionError("Connection closed by server."), "refused", False, False),
        (caused(redis.ConnectionError("Error while reading"), ConnectionResetError()), "refused", False, False),
        (BrokenPipeError(), "refused", False, False),
        (redis.TimeoutError("Timeout reading"), "timeout", False, False),
        (TimeoutError(), "timeout", False, False),
        (wrapped(redis.ConnectionError("Timeout"), redis.TimeoutError("Timeout")), "timeout", False, False),
        (redis.AuthenticationError("invalid username-password pair"), "auth", True, False),
        (wrapped(redis.ConnectionError("wrong"), redis.AuthenticationError("wrong")), "auth", True, False),
        (wrapped(redis.ConnectionError("loading"), redis.BusyLoadingError("loading")), "server_error", False, False),
        (redis.NoPermissionError("no permissions to run 'evalsha'"), "auth", True, False),
        (redis.ResponseError("WRONGPASS invalid username-password pair"), "auth", True, False),
        (redis.ReadOnlyError("You can't write"), "read_only", True, False),
        (redis.ResponseError(SCRIPT_ON_REPLICA), "read_only", True, False),
        (redis.MaxConnectionsError("Too many connections"), "pool_exhausted", False, False),
        (redis.BusyLoadingError("Redis is loading"), "server_error", False, False),
        (redis.ClusterDownError("The cluster is down"), "server_error", False, False),
        (redis.OutOfMemoryError("command not allowed"), "server_error", False, False),
        (redis.ResponseError("-OOM command not allowed, in a script"), "server_error", False, False),
        (redis.ResponseError("MISCONF Redis is configured to save"), "server_error", False, False),
        (redis.ResponseError("WRONGTYPE Operation against a key"), "server_error", False, True),
        (redis.DataError("Invalid input of type"), "server_error", False, True),
        (redis.RedisClusterException("all keys must map to the same key slot"), "server_error", False, True),
        (wrapped(redis.RedisClusterException("no node"), redis.TimeoutError("Timeout")), "timeout", False, False),
    ],
)
def test_reasons(error, reason, lasting, alive):
    fault = fault_of(error)
    assert (fault.reason, fault.lasting, fault.alive) == (reason, lasting, alive)
    shown = unavailable(fault, "redis://host:6379/0")
    assert isinstance(shown, GuardrailError)
    assert shown.reason == reason
    assert f"Redis at redis://host:6379/0 cannot be used ({reason})" in str(shown)


def test_what_the_caller_was_handling_is_no_origin():
    before = TimeoutError()
    lost = caused(redis.ConnectionError("Connection closed by server."), before)
    assert fault_of(lost, handled=before).reason == "refused"
    assert fault_of(lost).reason == "timeout"


def test_no_secret_and_no_argument_is_shown():
    unknown = redis.ResponseError("unknown command `AUTH`, with args beginning with: `tim` `s3cr3t`")
    assert fault_of(unknown).detail == "unknown command `AUTH`"
    assert fault_of(redis.ResponseError("bad: s3cr3t!\nof tim"), ("tim", "s3cr3t")).detail == "bad: ***! of ***"
    assert len(fault_of(redis.ResponseError("x" * 5000)).detail) == 200


@pytest.mark.parametrize(
    "reason", ["refused", "timeout", "auth", "read_only", "pool_exhausted", "breaker_open", "server_error"]
)
def test_an_error_can_be_made_from_its_reason(reason):
    error = StoreUnavailableError(reason)
    assert error.reason == reason
    assert f"({reason}): " in str(error)


@pytest.mark.parametrize(
    "settings",
    [{"timeout_s": 0}, {"timeout_s": float("nan")}, {"connect_timeout_s": float("inf")}, {"max_connections": 0}],
)
def test_wrong_settings(settings):
    with pytest.raises(ConfigurationError, match=f"RedisStore.{next(iter(settings))}: must be"):
        RedisStore("redis://localhost", **settings)


def test_the_extra_is_named_where_the_client_library_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "redis.asyncio", None)
    with pytest.raises(MissingExtraError, match=r"guardrail-stream\[redis\]") as caught:
        RedisStore("redis://localhost")
    assert caught.value.extra == "redis"
