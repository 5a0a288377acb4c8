"""What can go wrong with a Redis server, as few reasons as callers act on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from guardrail.errors import GuardrailError, MissingExtraError

Reason = Literal["refused", "timeout", "auth", "read_only", "pool_exhausted", "breaker_open", "server_error"]

_HINTS: dict[Reason, str] = {
    "refused": "it cannot be reached; is it running, and is the address right?",
    "timeout": "it did not answer in time",
    "auth": "it refuses these credentials; check user, password and access rules",
    "read_only": "it is a read-only replica; give the address of the primary, or of its sentinels",
    "pool_exhausted": "all connections are in use; raise max_connections",
    "breaker_open": "it failed just now and is left alone for a moment",
    "server_error": "it answered with an error",
}
_AUTH = ("WRONGPASS", "NOAUTH", "NOPERM")
# Codes of a server that cannot work now; any other error is an answer to what was asked.
_TROUBLE = ("LOADING", "CLUSTERDOWN", "MASTERDOWN", "OOM", "MISCONF", "NOREPLICAS", "BUSY", "TRYAGAIN")
_CODE = re.compile(r"\b[A-Z]{3,}\b")
_MAX_DETAIL = 200


class StoreUnavailableError(GuardrailError):
    """The Redis server could not do what was asked of it.

    Whether a script has run is not known after ``timeout``, nor after a connection was lost.

    Attributes:
        reason: ``refused`` (no connection, or it was lost), ``timeout``, ``auth``, ``read_only``, ``pool_exhausted``,
            ``breaker_open`` (not tried, because it failed just before) or ``server_error`` (it answered with an error).
        replies: If only some of several calls failed: what each came to, such an error in the place of its reply.

    Example:
        >>> StoreUnavailableError("timeout").reason
        'timeout'
    """

    def __init__(self, reason: Reason, message: str = "", *, replies: Sequence[Any] | None = None) -> None:
        super().__init__(message or f"Redis cannot be used ({reason}): {_HINTS[reason]}")
        self.reason = reason
        self.replies = replies


@dataclass(frozen=True, slots=True)
class Fault:
    """An error of the client library, sorted.

    Attributes:
        reason: For callers.
        lasting: It will not pass by itself within a few calls: nothing listens, wrong password, wrong server.
        alive: The server works and has answered; what was asked is wrong.
        detail: What the server or the system says, without secrets and arguments.
    """

    reason: Reason
    lasting: bool = False
    alive: bool = False
    detail: str = ""


def fault_of(error: BaseException, secrets: tuple[str, ...] = (), handled: BaseException | None = None) -> Fault:
    """Sort an error that came out of the client library.

    Args:
        error: What was raised, or came back in the place of a reply.
        secrets: Texts that must not be in ``detail``.
        handled: An exception that was there before, and is no origin of this one.

    Returns:
        The fault; it holds no reference to the error.

    Example:
        >>> fault_of(TimeoutError()).reason
        'timeout'
    """
    from redis import exceptions as redis

    if isinstance(error, redis.RedisClusterException) and isinstance(error.__cause__, Exception):
        return fault_of(error.__cause__, secrets, handled)  # the cluster client wraps what its last node said
    if type(error) is redis.ConnectionError and isinstance(error.__cause__, redis.ConnectionError):
        return fault_of(
            error.__cause__, secrets, handled
        )  # over unix sockets all that fails while connecting is wrapped
    detail = _detail(error, secrets)
    origins: list[BaseException] = [error] if isinstance(error, redis.ResponseError) else _origins(error, handled)
    if any(isinstance(one, (redis.TimeoutError, TimeoutError)) for one in origins):
        return Fault("timeout")  # over unix sockets it is wrapped into a connection error
    if isinstance(error, (redis.AuthenticationError, redis.AuthorizationError, redis.NoPermissionError)):
        return Fault("auth", lasting=True, detail=detail)
    if isinstance(error, redis.MaxConnectionsError):
        return Fault("pool_exhausted")
    # An error inside a script comes with the code somewhere in its text, where that is depends on the server's version.
    codes = _CODE.findall(str(error))
    if isinstance(error, redis.BusyLoadingError):
        return Fault("server_error", detail=f"LOADING {detail}")
    if isinstance(error, (redis.ConnectionError, OSError)):
        return Fault("refused", lasting=_never_connected(origins), detail=detail)
    if isinstance(error, redis.ReadOnlyError) or "READONLY" in codes:
        return Fault("read_only", lasting=True)
    if any(code in codes for code in _AUTH):
        return Fault("auth", lasting=True, detail=detail)
    trouble = isinstance(error, (redis.ClusterError, redis.OutOfMemoryError)) or any(c in codes for c in _TROUBLE)
    return Fault("server_error", alive=not trouble, detail=detail)


def unavailable(fault: Fault, where: str, replies: Sequence[Any] = ()) -> StoreUnavailableError:
    """The error that callers see.

    Args:
        fault: What went wrong.
        where: Address of the server, for people, without credentials.
        replies: What each of several calls came to, a fault for some.
    """
    detail = f" ({fault.detail})" if fault.detail else ""
    return StoreUnavailableError(
        fault.reason,
        f"Redis at {where} cannot be used ({fault.reason}): {_HINTS[fault.reason]}{detail}",
        replies=[unavailable(one, where) if isinstance(one, Fault) else one for one in replies] or None,
    )


def require_redis() -> None:
    """Make sure that the client library is there.

    Raises:
        MissingExtraError: If it is not installed.
    """
    try:
        import redis.asyncio  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("RedisStore", "redis") from error


def _origins(error: BaseException, handled: BaseException | None) -> list[BaseException]:
    """An error, and what led to it."""
    found = [error]
    while (before := found[-1].__cause__ or found[-1].__context__) is not None and before is not handled:
        found.append(before)
    return found


def _never_connected(origins: list[BaseException]) -> bool:
    """Whether the system refused the connection, as against one that was lost."""
    lost = (ConnectionResetError, BrokenPipeError, ConnectionAbortedError)
    of_system = [one for one in origins if isinstance(one, OSError)]
    return bool(of_system) and not any(isinstance(one, lost) for one in of_system)


def _detail(error: BaseException, secrets: tuple[str, ...]) -> str:
    # A server repeats the arguments of a command that it does not know, AUTH with its password among them.
    text = " ".join(str(error).split()).partition(", with args beginning with")[0]
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "***")
    return text[:_MAX_DETAIL].strip()
