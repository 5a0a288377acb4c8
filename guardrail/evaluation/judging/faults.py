"""What went wrong with a call of a model, told without importing the package that raised it."""

from __future__ import annotations

import errno
import math
import socket
import time
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from typing import Any

_STATUS_FAULTS = {
    408: "timeout",
    409: "transport",
    429: "rate_limited",
    500: "transport",
    502: "transport",
    503: "transport",
    504: "timeout",
    529: "rate_limited",
}
# Class names of httpx, openai, anthropic, aiohttp, requests, urllib3, botocore and google.api_core.
_NAMES = {
    "timeout": {
        "TimeoutException", "APITimeoutError", "Timeout", "ConnectTimeoutError", "ReadTimeoutError", "DeadlineExceeded",
        "GatewayTimeout",
    },
    "rate_limited": {"RateLimitError", "RateLimitedError", "TooManyRequests", "ResourceExhausted"},
    "transport": {
        "TransportError", "APIConnectionError", "ClientConnectionError", "ServerDisconnectedError", "ConnectionError",
        "EndpointConnectionError", "ConnectionClosedError", "ProtocolError", "ServiceUnavailable",
        "InternalServerError", "ServiceUnavailableError", "OverloadedError",
    },
}  # fmt: skip
_MISTAKES = {"UnsupportedProtocol", "LocalProtocolError", "InvalidURL"}
"""Errors of the caller that some libraries file under transport."""
_NETWORK = {
    errno.ENETDOWN, errno.ENETUNREACH, errno.ENETRESET, errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ETIMEDOUT,
    errno.EPIPE, errno.ENOTCONN,
}  # fmt: skip
_DEEPEST = 5


def transport_fault(error: BaseException) -> str:
    """Whether another try of the same call may succeed, and what went wrong.

    An HTTP status decides if there is one; then the type; then the names of its classes. What an exception was
    explicitly raised ``from`` counts too, as frameworks wrap the errors of their clients.

    Args:
        error: What a model raised.

    Returns:
        ``"timeout"``, ``"rate_limited"`` or ``"transport"``; empty for everything else, such as a wrong key, a
        request that the server does not accept, or a mistake in the code.

    Example:
        >>> transport_fault(ConnectionResetError()), transport_fault(TimeoutError()), transport_fault(ValueError())
        ('transport', 'timeout', '')
    """
    for raised in _chain(error):
        status = _status(raised)
        if status is not None:
            return _STATUS_FAULTS.get(status, "")
        fault = _by_type(raised)
        if fault:
            return fault
    return ""


def retry_after_s(error: BaseException) -> float | None:
    """How long the server asks to wait: ``Retry-After`` (seconds or a date), ``retry-after-ms``, or an attribute.

    Args:
        error: What a model raised.

    Returns:
        Seconds of at least 0; ``None`` if it asks for nothing that can be read.
    """
    for raised in _chain(error):
        for name in ("retry_after_s", "retry_after"):
            seconds = _seconds(getattr(raised, name, None))
            if seconds is not None:
                return seconds
        headers = getattr(getattr(raised, "response", None), "headers", None) or getattr(raised, "headers", None)
        milliseconds = _seconds(_header(headers, "retry-after-ms"))
        if milliseconds is not None:
            return milliseconds / 1000
        asked = _header(headers, "retry-after")
        seconds = _seconds(asked)
        if seconds is None and asked is not None:
            seconds = _until(asked)
        if seconds is not None:
            return seconds
    return None


def _chain(error: BaseException) -> Iterator[BaseException]:
    current: BaseException | None = error
    for _ in range(_DEEPEST):
        if current is None:
            return
        yield current
        current = current.__cause__


def _status(error: BaseException) -> int | None:
    """The HTTP status that an exception carries, under the names that clients use."""
    for holder in (error, getattr(error, "response", None)):
        for name in ("status_code", "status", "code"):
            value = getattr(holder, name, None)
            if isinstance(value, int) and not isinstance(value, bool) and 100 <= value <= 599:
                return int(value)
    return None


def _by_type(error: BaseException) -> str:
    names = {kind.__name__ for kind in type(error).__mro__}
    if names & _MISTAKES:
        return ""
    if isinstance(error, TimeoutError):
        return "timeout"
    if isinstance(error, ConnectionError | socket.gaierror) or (isinstance(error, OSError) and error.errno in _NETWORK):
        return "transport"
    return next((fault for fault, known in _NAMES.items() if names & known), "")


def _header(headers: Any, name: str) -> str | None:
    try:
        items = list(headers.items())
    except (AttributeError, TypeError):
        return None
    return next((str(value) for key, value in items if str(key).lower() == name), None)


def _seconds(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        seconds = float(value)
    except (ValueError, OverflowError):
        return None
    return seconds if 0 <= seconds < math.inf else None


def _until(date: str) -> float | None:
    try:
        return max(0.0, parsedate_to_datetime(date).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None
