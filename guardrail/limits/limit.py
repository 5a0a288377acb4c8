"""A limit as a value: how much, in how long, of what, for whom."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, Literal

from guardrail.errors import ConfigurationError

_SECONDS = {
    "s": 1.0,
    "sec": 1.0,
    "second": 1.0,
    "min": 60.0,
    "minute": 60.0,
    "h": 3600.0,
    "hour": 3600.0,
    "day": 86400.0,
}
_TEXT = re.compile(
    r"\s*(?P<rate>\d+(?:\.\d+)?)\s*(?P<unit>calls?|requests?|tokens?)?\s*(?:/|\bper\b)\s*"
    r"(?P<count>\d+(?:\.\d+)?)?\s*(?P<period>[a-z]+?)s?\s*",
    re.IGNORECASE,
)
_EXAMPLES = '"60/min", "0.5/s", "10 per 2 s" or "100000 tokens/min"'


@dataclass(frozen=True, slots=True)
class Limit:
    """How much may be charged in a period.

    There are two modes. ``"window"``: in every stretch of ``period_s`` seconds, wherever it begins, at most ``rate`` is
    charged. ``"gcra"`` (a token bucket that is kept as one number): up to ``burst`` at once, and ``rate`` per
    ``period_s`` in the long run; a stretch of ``t`` seconds gets at most ``burst + rate * t / period_s``. A window
    keeps an entry for every charge in it, gcra one number.

    Args:
        rate: Units per period; above 0, fractions allowed.
        period_s: Length of the period in seconds, above 0.
        burst: For ``"gcra"``: most units at once, at least 1; 1 if not given.
        mode: ``"gcra"`` or ``"window"``; if not given, ``"gcra"`` where there is a burst, otherwise ``"window"``, which
            is what "60 per minute" says.
        unit: What is counted: ``"calls"`` of the generator, or the ``"tokens"`` it reports.
        scope: ``"key"`` for each key (a tenant, a user) its own, ``"global"`` for one that all share.

    Raises:
        ConfigurationError: If a value is out of range or contradicts another. There is no limit of zero: whoever wants
            to let nothing through does not call the generator.

    Example:
        >>> Limit(60, 60.0)
        Limit(rate=60, period_s=60.0, burst=None, mode='window', unit='calls', scope='key')
        >>> Limit.parse("100000 tokens/min").period_s
        60.0
        >>> Limit.at_most(50, period_s=1.0, burst=10).rate
        40
    """

    rate: float
    period_s: float = 1.0
    burst: float | None = None
    mode: Literal["gcra", "window"] | None = None
    unit: Literal["calls", "tokens"] = "calls"
    scope: Literal["key", "global"] = "key"

    def __post_init__(self) -> None:
        _check_number("rate", self.rate)
        _check_number("period_s", self.period_s)
        mode = self.mode or ("window" if self.burst is None else "gcra")
        if mode not in ("gcra", "window"):
            raise ConfigurationError(f'Limit.mode: must be "gcra" or "window", got {mode!r}')
        if self.unit not in ("calls", "tokens"):
            raise ConfigurationError(f'Limit.unit: must be "calls" or "tokens", got {self.unit!r}')
        if self.scope not in ("key", "global"):
            raise ConfigurationError(f'Limit.scope: must be "key" or "global", got {self.scope!r}')
        burst = self.burst
        if mode == "window" and burst is not None:
            raise ConfigurationError('Limit.burst: a window has no burst; leave it out, or take mode="gcra"')
        if mode == "gcra":
            burst = 1 if burst is None else burst
            _check_number("burst", burst)
            if burst < 1:
                raise ConfigurationError(f"Limit.burst: below 1 nothing would ever pass, got {burst!r}")
        if mode == "window" and self.rate < 1:
            # One call would never fit: "0.5 per second" means one in two seconds.
            object.__setattr__(self, "period_s", self.period_s / self.rate)
            object.__setattr__(self, "rate", 1)
        object.__setattr__(self, "mode", mode)
        object.__setattr__(self, "burst", burst)

    @classmethod
    def parse(cls, text: str) -> Limit:
        """Read a limit as people write it.

        Args:
            text: A number, optionally ``calls`` or ``tokens``, ``/`` or ``per``, and a period: ``s``, ``min``, ``h`` or
                ``day``, optionally with a number before it.

        Raises:
            ConfigurationError: If it is not of that form.

        Example:
            >>> Limit.parse("10 per 2 s")
            Limit(rate=10, period_s=2.0, burst=None, mode='window', unit='calls', scope='key')
        """
        found = _TEXT.fullmatch(text) if isinstance(text, str) else None
        seconds = _SECONDS.get(found["period"].lower()) if found else None
        if found is None or seconds is None:
            raise ConfigurationError(f"not a limit: {text!r}; write it like {_EXAMPLES}")
        rate = float(found["rate"])
        tokens = (found["unit"] or "").lower().startswith("token")
        return cls(
            rate=int(rate) if rate.is_integer() else rate,
            period_s=seconds * float(found["count"] or 1),
            unit="tokens" if tokens else "calls",
        )

    @classmethod
    def at_most(
        cls,
        count: float,
        *,
        period_s: float = 1.0,
        burst: float = 1,
        unit: Literal["calls", "tokens"] = "calls",
        scope: Literal["key", "global"] = "key",
    ) -> Limit:
        """A gcra limit that charges at most ``count`` in any stretch of ``period_s`` seconds, bursts included.

        Its rate is ``count - burst``, because a full bucket and its refill can fall into one stretch.

        Raises:
            ConfigurationError: If ``burst`` is not below ``count``.
        """
        _check_number("count", count)
        if not burst < count:
            raise ConfigurationError(f"Limit.at_most: burst must be below count, got {burst!r} and {count!r}")
        return cls(count - burst, period_s, burst=burst, mode="gcra", unit=unit, scope=scope)

    @property
    def capacity(self) -> float:
        """Most that can be charged at once; a higher cost never passes."""
        return self.rate if self.burst is None else self.burst

    @property
    def most_per_period(self) -> float:
        """Most that a stretch of ``period_s`` seconds can get."""
        return self.rate + (self.burst or 0)

    def __str__(self) -> str:
        burst = f", burst {self.burst:g}" if self.mode == "gcra" else ""
        shared = ", all keys together" if self.scope == "global" else ""
        return f"{self.rate:g} {self.unit} per {self.period_s:g} s{burst}{shared}"


def as_limits(limits: Any) -> tuple[Limit, ...]:
    """Limits as callers hand them in: one or several, as values or texts.

    Raises:
        ConfigurationError: If there is none, one of them is neither a :class:`Limit` nor such a text, or one is there
            twice.

    Example:
        >>> [str(limit) for limit in as_limits(["60/min", Limit(5, 1.0, burst=5, scope="global")])]
        ['60 calls per 60 s', '5 calls per 1 s, burst 5, all keys together']
    """
    several = limits if isinstance(limits, (list, tuple)) else [limits]
    found = []
    for item in several:
        if isinstance(item, str):
            item = Limit.parse(item)
        if not isinstance(item, Limit):
            raise ConfigurationError(f"a limit must be a Limit or a text like {_EXAMPLES}, got {type(item).__name__}")
        if item in found:
            raise ConfigurationError(f"the limit {item} is there twice")
        found.append(item)
    if not found:
        raise ConfigurationError("name at least one limit; for no limits, give the guard no limiter")
    return tuple(found)


def _check_number(name: str, value: Any) -> None:
    fits = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value > 0
    if not fits:
        raise ConfigurationError(f"Limit.{name}: must be a finite number above 0, got {value!r}")
