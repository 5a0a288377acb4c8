"""URLs of Redis: what they say, and that no error or repr shows a credential."""

from __future__ import annotations

import pytest

from guardrail.errors import ConfigurationError
from guardrail.redis_store import RedisStore, parse_url

SECRET = "s3cr3t"


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("redis://localhost", {"kind": "single", "hosts": (("localhost", 6379),), "db": 0, "tls": False}),
        ("redis://10.0.0.1:7000/3", {"hosts": (("10.0.0.1", 7000),), "db": 3}),
        ("redis://host/?db=4", {"hosts": (("host", 6379),), "db": 4}),
        ("redis://[::1]:7000/1", {"hosts": (("::1", 7000),), "db": 1}),
        ("redis://:s3cr3t@host", {"username": None, "password": SECRET}),
        ("redis://tim:s3cr3t@host", {"username": "tim", "password": SECRET}),
        ("redis://tim:a%40b%2Fc%23%3A@host", {"username": "tim", "password": "a@b/c#:"}),
        ("redis://tim:a:b@host", {"username": "tim", "password": "a:b"}),
        ("rediss://host", {"kind": "single", "tls": True, "tls_options": ()}),
        (
            "rediss://host?ssl_ca_certs=/ca.pem&ssl_check_hostname=false",
            {"tls_options": (("ssl_ca_certs", "/ca.pem"), ("ssl_check_hostname", False))},
        ),
        ("unix:///run/redis.sock", {"kind": "unix", "path": "/run/redis.sock", "hosts": (), "db": 0}),
        ("unix://:s3cr3t@/run/redis.sock?db=2", {"path": "/run/redis.sock", "db": 2, "password": SECRET}),
        (
            "redis+sentinel://tim:s3cr3t@one,two:26380/main/2",
            {"kind": "sentinel", "hosts": (("one", 26379), ("two", 26380)), "service": "main", "db": 2},
        ),
        ("redis+sentinel://one/main", {"service": "main", "db": 0, "password": None}),
        (
            "rediss+sentinel://one/main?sentinel_username=sue&sentinel_password=s3cr3t",
            {"tls": True, "sentinel_username": "sue", "sentinel_password": SECRET},
        ),
        ("redis+cluster://one,two:7001", {"kind": "cluster", "hosts": (("one", 6379), ("two", 7001)), "tls": False}),
        ("rediss+cluster://:s3cr3t@one/", {"kind": "cluster", "tls": True, "password": SECRET}),
    ],
)
def test_what_a_url_says(url, found):
    address = parse_url(url)
    assert {name: getattr(address, name) for name in found} == found


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://tim:s3cr3t@localhost", "redis://localhost:6379/0"),
        ("rediss://:s3cr3t@[::1]:7000/2", "rediss://[::1]:7000/2"),
        ("unix://:s3cr3t@/run/redis.sock?db=2", "unix:///run/redis.sock?db=2"),
        ("unix:///run/redis.sock", "unix:///run/redis.sock"),
        (
            "redis+sentinel://:s3cr3t@one,two/main?sentinel_password=s3cr3t",
            "redis+sentinel://one:26379,two:26379/main/0",
        ),
        ("rediss+cluster://tim:s3cr3t@one,two:7001", "rediss+cluster://one:6379,two:7001"),
    ],
)
def test_what_is_shown_has_no_credentials(url, shown):
    store = RedisStore(url)
    assert str(parse_url(url)) == store.url_for_display == shown
    assert repr(store) == f"RedisStore({shown!r})"
    for text in (repr(parse_url(url)), repr(store)):
        assert SECRET not in text
        assert "tim" not in text


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("", "no known scheme"),
        ("localhost:6379", "no known scheme"),
        ("http://:s3cr3t@host", "'http'"),
        (":s3cr3t@host://x", "no known scheme"),
        ("redis:// host", "white space"),
        ("redis://:s3cr3t@host\n", "white space"),
        ("redis://:s3cr3t@", "a host is missing"),
        ("redis://:s3cr3t@host:port", "a port is not a number"),
        ("redis://:s3cr3t@host:0", "1 to 65535"),
        ("redis://:s3cr3t@host:70000", "1 to 65535"),
        ("redis://:s3cr3t@[host", "host cannot be read"),
        ("redis://:s3cr3t#x@host:6379", "percent-encode"),
        ("redis://:s3cr3t/x@host:6379", "percent-encode"),
        ("redis://:s3cr3t?x@host:6379", "percent-encode"),
        ("redis://:s3cr3t@host/x", "one number"),
        ("redis://:s3cr3t@host/-1", "one number"),
        ("redis://:s3cr3t@host/1?db=2", "one number"),
        ("redis://:s3cr3t@one,two", "several hosts"),
        ("redis://:s3cr3t@host?socket_timeout=3", "socket_timeout; known: db"),
        ("redis://host?password=s3cr3t", "password; known: db"),
        ("redis://host?s3cr3t", "an unknown option"),
        ("redis://host?ssl_cert_reqs=none", "ssl_cert_reqs; known: db"),
        ("unix://:s3cr3t@run/redis.sock", "three of them"),
        ("unix://:s3cr3t@", "no path to a socket"),
        ("redis+sentinel://:s3cr3t@host", "which service"),
        ("redis+sentinel://:s3cr3t@host/main/x", "one number"),
        ("redis+cluster://:s3cr3t@host/1", "only database 0"),
        ("redis+cluster://:s3cr3t@host?db=1", "known: none"),
    ],
)
def test_a_wrong_url_is_refused_without_showing_it(url, says):
    with pytest.raises(ConfigurationError, match=r"URL of (a )?Redis") as caught:
        RedisStore(url)
    assert says in str(caught.value)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("url", [None, 6379, b"redis://localhost"])
def test_a_url_is_a_text(url):
    with pytest.raises(ConfigurationError, match=f"must be a text, got {type(url).__name__}"):
        RedisStore(url)
