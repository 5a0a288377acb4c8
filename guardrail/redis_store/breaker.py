"""A circuit breaker: a server that failed is left alone for a while, then one call tries whether it is back."""

from __future__ import annotations

import logging
import threading
import time
from typing import Literal

from guardrail.errors import ConfigurationError
from guardrail.protocols import Clock

_log = logging.getLogger("guardrail.redis_store")


class Breaker:
    """Stops calls to a server that fails, and lets them through again when one succeeds.

    Closed: all calls pass. After ``failures`` failures in a row, or one that will not pass by itself, it opens: no call
    passes for ``open_s`` seconds. Then exactly one may try; the others still do not pass. If that one succeeds, the
    breaker closes; if it fails, it stays open for twice as long as before, at most ``max_open_s``.

    All methods return at once and may be called from several threads. When it opens a warning is logged, when it
    closes an info line, to the logger ``guardrail.redis_store``.

    Args:
        failures: So many in a row open it, at least 1.
        open_s: How long it stays open the first time, in seconds, above 0.
        max_open_s: The longest, at least ``open_s``.
        server: What the log calls the server; without credentials.
        clock: Seconds, monotonic.

    Raises:
        ConfigurationError: If a setting is out of range.

    Example:
        >>> breaker = Breaker(failures=1)
        >>> breaker.admit().failed("timeout")
        True
        >>> breaker.state, breaker.admit()
        ('open', None)
    """

    def __init__(
        self,
        *,
        failures: int = 3,
        open_s: float = 1.0,
        max_open_s: float = 15.0,
        server: str = "Redis",
        clock: Clock = time.monotonic,
    ) -> None:
        if failures < 1:
            raise ConfigurationError(f"Breaker.failures: must be at least 1, got {failures!r}")
        if not 0 < open_s <= max_open_s:
            raise ConfigurationError(
                f"Breaker.open_s: must be above 0 and at most max_open_s, got {open_s!r} and {max_open_s!r}"
            )
        self._needed, self._first_open_s, self._max_open_s = failures, open_s, max_open_s
        self._server = server
        self._clock = clock
        self._lock = threading.Lock()
        self._failed = 0
        self._open_s = open_s
        self._until: float | None = None  # of the stay in open; None if closed
        self._probe: Permit | None = None
        self._era = 0  # grows when it opens or closes: what began before has no say any more

    @property
    def state(self) -> Literal["closed", "open", "half_open"]:
        """``half_open`` while one call tries."""
        with self._lock:
            if self._until is None:
                return "closed"
            return "open" if self._probe is None else "half_open"

    @property
    def retry_in_s(self) -> float:
        """Seconds until the next call may try; 0 if one may now."""
        with self._lock:
            return 0.0 if self._until is None else max(self._until - self._clock(), 0.0)

    def admit(self) -> Permit | None:
        """Ask for one call.

        Returns:
            A permit, to be told how the call went; ``None`` if the call must not be made.
        """
        with self._lock:
            if self._until is None:
                return Permit(self, self._era)
            if self._probe is not None or self._clock() < self._until:
                return None
            self._probe = Permit(self, self._era)
            return self._probe

    def _succeed(self, permit: Permit) -> None:
        with self._lock:
            if permit.era != self._era:
                return
            self._failed = 0
            if permit is not self._probe:
                return
            self._probe, self._until, self._open_s = None, None, self._first_open_s
            self._era += 1
        _log.info("%s works again", self._server)

    def _fail(self, permit: Permit, reason: str, *, lasting: bool) -> bool:
        with self._lock:
            if permit.era != self._era:
                return self._until is not None
            probing = permit is self._probe
            self._failed += 1
            if not (probing or lasting or self._failed >= self._needed):
                return False
            self._until = self._clock() + self._open_s
            stays_s, self._open_s = self._open_s, min(2 * self._open_s, self._max_open_s)
            self._failed, self._probe = 0, None
            self._era += 1
        if not probing:
            _log.warning("%s cannot be used (%s); not tried again for %g s", self._server, reason, stays_s)
        return True

    def _give_back(self, permit: Permit) -> None:
        with self._lock:
            if permit is self._probe:
                self._probe = None


class Permit:
    """Leave for one call; the first of its methods that is called counts."""

    __slots__ = ("_breaker", "_told", "era")

    def __init__(self, breaker: Breaker, era: int) -> None:
        self._breaker = breaker
        self._told = False
        self.era = era

    def succeeded(self) -> None:
        """The server answered."""
        if not self._told:
            self._told = True
            self._breaker._succeed(self)

    def failed(self, reason: str, *, lasting: bool = False) -> bool:
        """The server did not do its work.

        Args:
            reason: For the log.
            lasting: Do not wait for more failures.

        Returns:
            Whether the breaker is open now.
        """
        if self._told:
            return False
        self._told = True
        return self._breaker._fail(self, reason, lasting=lasting)

    def give_back(self) -> None:
        """The call ended without telling anything about the server, for example because it was cancelled."""
        if not self._told:
            self._told = True
            self._breaker._give_back(self)
