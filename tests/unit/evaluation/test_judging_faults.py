"""Which errors are worth another try, told without importing who raised them."""

from __future__ import annotations

import email.utils
import errno
import socket
import time
import urllib.error

import httpx
import openai
import pytest

from guardrail.errors import RateLimitedError
from guardrail.evaluation.judging.faults import retry_after_s, transport_fault

REQUEST = httpx.Request("POST", "http://localhost/v1")


def response(status, **headers):
    return httpx.Response(status, request=REQUEST, headers={k.replace("_", "-"): v for k, v in headers.items()})


def status_error(status, **headers):
    return httpx.HTTPStatusError("no", request=REQUEST, response=response(status, **headers))


def wrapped(error):
    try:
        raise RuntimeError("the framework says") from error
    except RuntimeError as raised:
        return raised


class Plain(Exception):
    def __init__(self, **attributes):
        super().__init__("plain")
        self.__dict__.update(attributes)


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (ConnectionResetError(), "transport"),
        (ConnectionRefusedError(), "transport"),
        (BrokenPipeError(), "transport"),
        (TimeoutError(), "timeout"),
        (socket.gaierror(), "transport"),
        (OSError(errno.ENETUNREACH, "no network"), "transport"),
        (httpx.ConnectError("x"), "transport"),
        (httpx.ReadTimeout("x"), "timeout"),
        (httpx.RemoteProtocolError("x"), "transport"),
        (openai.APIConnectionError(request=REQUEST), "transport"),
        (openai.APITimeoutError(request=REQUEST), "timeout"),
        (openai.RateLimitError("x", response=response(429), body=None), "rate_limited"),
        (openai.InternalServerError("x", response=response(500), body=None), "transport"),
        (RateLimitedError("x"), "rate_limited"),
        (wrapped(httpx.ConnectError("x")), "transport"),
        (Plain(status=503), "transport"),
        (Plain(code=429), "rate_limited"),
        *[(status_error(status), "transport") for status in (409, 500, 502, 503)],
        *[(status_error(status), "timeout") for status in (408, 504)],
        *[(status_error(status), "rate_limited") for status in (429, 529)],
    ],
    ids=repr,
)
def test_a_fault_of_the_transport(error, fault):
    assert transport_fault(error) == fault


@pytest.mark.parametrize(
    "error",
    [
        ValueError("429"),
        TypeError(),
        KeyError(),
        RuntimeError("timeout"),
        FileNotFoundError(),
        PermissionError(),
        OSError("anything"),
        httpx.UnsupportedProtocol("x"),
        httpx.LocalProtocolError("x"),
        urllib.error.HTTPError("http://localhost", 404, "no", None, None),
        openai.AuthenticationError("x", response=response(401), body=None),
        openai.BadRequestError("x", response=response(400), body=None),
        Plain(status_code="429"),
        Plain(status_code=True),
        Plain(code=104),
        *[status_error(status) for status in (400, 401, 403, 404, 413, 422, 501)],
    ],
    ids=repr,
)
def test_no_other_try_helps(error):
    assert transport_fault(error) == ""


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        (status_error(429), None),
        (status_error(429, Retry_After="7"), 7.0),
        (status_error(429, retry_after="0.5"), 0.5),
        (status_error(429, retry_after_ms="250", retry_after="9"), 0.25),
        (status_error(429, retry_after="soon"), None),
        (status_error(429, retry_after="-1"), None),
        (status_error(429, retry_after="inf"), None),
        (status_error(429, retry_after="Wed, 21 Oct 2015 07:28:00 GMT"), 0.0),
        (RateLimitedError("x", retry_after_s=3.0), 3.0),
        (RateLimitedError("x"), None),
        (wrapped(status_error(429, retry_after="4")), 4.0),
        (Plain(retry_after=2), 2.0),
        (Plain(headers={"RETRY-AFTER": "6"}), 6.0),
        (Plain(headers="nonsense"), None),
        (ValueError(), None),
    ],
    ids=repr,
)
def test_what_the_server_asks_to_wait(error, seconds):
    assert retry_after_s(error) == seconds


def test_a_date_in_the_future_is_a_wait():
    date = email.utils.formatdate(time.time() + 100, usegmt=True)
    assert 90 < retry_after_s(status_error(429, retry_after=date)) <= 101
