"""Addresses of Redis servers."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import parse_qsl, unquote, urlsplit

from guardrail.errors import ConfigurationError

_FORMS = (
    "redis://host:6379/0, rediss://host:6379/0 (TLS), unix:///run/redis.sock?db=0, "
    "redis+sentinel://host:26379,host2:26379/service/0 or redis+cluster://host:6379,host2:6379, "
    "each optionally with user:password@ before the host"
)
_SCHEMES: dict[str, tuple[Literal["single", "unix", "sentinel", "cluster"], bool]] = {
    "redis": ("single", False),
    "rediss": ("single", True),
    "unix": ("unix", False),
    "redis+sentinel": ("sentinel", False),
    "rediss+sentinel": ("sentinel", True),
    "redis+cluster": ("cluster", False),
    "rediss+cluster": ("cluster", True),
}
_TLS_OPTIONS = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile", "ssl_cert_reqs", "ssl_check_hostname")
_SENTINEL_OPTIONS = ("sentinel_username", "sentinel_password")
_HOST = re.compile(r"(?:\[(?P<v6>[0-9A-Fa-f:.%]+)\]|(?P<name>[^\s:\[\]@/,]+))(?::(?P<port>\d{1,5}))?")
_SCHEME = re.compile(r"[a-z][a-z+]*")


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server is, and how to log in. Its ``repr`` shows no credentials.

    Attributes:
        kind: One server over TCP or a unix socket, the primary that sentinels name, or a cluster.
        hosts: Hosts and ports; several for sentinels and clusters.
        path: Of the unix socket.
        db: Number of the database.
        tls: Whether connections are encrypted.
        service: What the sentinels call the servers.
        tls_options: Settings of the client library for TLS.
        username: Of the server.
        password: Of the server.
        sentinel_username: Of the sentinels.
        sentinel_password: Of the sentinels.
    """

    kind: Literal["single", "unix", "sentinel", "cluster"]
    hosts: tuple[tuple[str, int], ...] = ()
    path: str = ""
    db: int = 0
    tls: bool = False
    service: str = ""
    tls_options: tuple[tuple[str, Any], ...] = ()
    username: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    sentinel_username: str | None = field(default=None, repr=False)
    sentinel_password: str | None = field(default=None, repr=False)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Texts that must not be shown to anyone."""
        found = (self.username, self.password, self.sentinel_username, self.sentinel_password)
        return tuple(text for text in found if text)

    def __str__(self) -> str:
        if self.kind == "unix":
            return f"unix://{self.path}" + (f"?db={self.db}" if self.db else "")
        scheme = next(name for name, what in _SCHEMES.items() if what == (self.kind, self.tls))
        hosts = ",".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in self.hosts)
        service = f"/{self.service}" if self.service else ""
        return f"{scheme}://{hosts}{service}" + ("" if self.kind == "cluster" else f"/{self.db}")


def parse_url(url: str) -> Address:
    """Read the URL of a server, of several sentinels, or of a cluster.

    Args:
        url: In one of the forms that the README lists. Special characters in credentials are percent-encoded.

    Raises:
        ConfigurationError: If it is of none of them. The message holds nothing of the URL but its scheme.

    Example:
        >>> str(parse_url("redis+sentinel://user:secret@one,two:26380/main/2"))
        'redis+sentinel://one:26379,two:26380/main/2'
    """
    if not isinstance(url, str):
        raise ConfigurationError(f"the URL of Redis must be a text, got {type(url).__name__}")
    scheme, mark, _ = url.partition("://")
    if not mark or scheme not in _SCHEMES:
        named = f"it has the scheme {scheme!r}" if mark and _SCHEME.fullmatch(scheme) else "it has no known scheme"
        raise ConfigurationError(f"not the URL of a Redis server: {named}; write it like {_FORMS}")
    kind, tls = _SCHEMES[scheme]
    if any(character.isspace() or not character.isprintable() for character in url):
        raise _wrong(scheme, "it contains white space or control characters")
    try:
        parts = urlsplit(url)
    except ValueError:
        raise _wrong(scheme, "its host cannot be read") from None
    if parts.fragment or "@" in parts.path + parts.query:
        raise _wrong(scheme, "it has a '#', or an '@' after the host; percent-encode them in user and password")
    credentials, _, hosts = parts.netloc.rpartition("@")
    user, _, password = credentials.partition(":")
    options = _options(scheme, parts.query, allowed=_allowed(kind, tls))
    return Address(
        kind=kind,
        hosts=_hosts(scheme, hosts, kind),
        tls=tls,
        tls_options=tuple((name, _tls_value(value)) for name, value in options.items() if name in _TLS_OPTIONS),
        username=unquote(user) or None,
        password=unquote(password) or None,
        sentinel_username=options.get("sentinel_username"),
        sentinel_password=options.get("sentinel_password"),
        **_place(scheme, kind, unquote(parts.path), options.get("db")),
    )


def _allowed(kind: str, tls: bool) -> tuple[str, ...]:
    return (
        (() if kind == "cluster" else ("db",))
        + (_TLS_OPTIONS if tls else ())
        + (_SENTINEL_OPTIONS if kind == "sentinel" else ())
    )


def _options(scheme: str, query: str, *, allowed: tuple[str, ...]) -> dict[str, str]:
    options = dict(parse_qsl(query, keep_blank_values=True))
    unknown = [name for name in options if name not in allowed]
    if unknown:
        named = ", ".join(name for name in unknown if re.fullmatch(r"[a-z_]{1,40}", name)) or "an unknown option"
        known = ", ".join(allowed) or "none"
        raise _wrong(scheme, f"it has options that are not read here: {named}; known: {known}")
    return options


def _hosts(scheme: str, text: str, kind: str) -> tuple[tuple[str, int], ...]:
    if kind == "unix":
        if text:
            raise _wrong(scheme, "a path begins with '/': write three of them, unix:///run/redis.sock")
        return ()
    several = text.split(",")
    if kind == "single" and len(several) > 1:
        raise _wrong(scheme, "several hosts are for redis+sentinel:// and redis+cluster://")
    default = 26379 if kind == "sentinel" else 6379
    found = []
    for item in several:
        read = _HOST.fullmatch(item)
        port = int(read["port"] or default) if read else 0
        if read is None or not 0 < port < 65536:
            raise _wrong(scheme, "a host is missing, or a port is not a number from 1 to 65535")
        found.append((unquote(read["v6"] or read["name"]), port))
    return tuple(found)


def _place(scheme: str, kind: str, path: str, db: str | None) -> dict[str, Any]:
    """What stands after the host: a socket, a service, a database."""
    place: dict[str, Any] = {}
    rest = path.strip("/")
    if kind == "unix":
        if not rest:
            raise _wrong(scheme, "it has no path to a socket")
        place["path"], rest = path, ""
    elif kind == "sentinel":
        place["service"], _, rest = rest.partition("/")
        if not place["service"]:
            raise _wrong(scheme, "it does not say which service: redis+sentinel://host:26379/service")
    elif kind == "cluster" and rest:
        raise _wrong(scheme, "a cluster has only database 0: leave out what is after the hosts")
    number = db if db is not None else rest or "0"
    if (db is not None and rest) or not (number.isascii() and number.isdigit()):
        raise _wrong(scheme, "the database must be one number: redis://host:6379/0")
    return {**place, "db": int(number)}


def _tls_value(value: str) -> Any:
    return {"true": True, "yes": True, "false": False, "no": False}.get(value.lower(), value)


def _wrong(scheme: str, what: str) -> ConfigurationError:
    return ConfigurationError(f"wrong {scheme}:// URL of Redis: {what}")
