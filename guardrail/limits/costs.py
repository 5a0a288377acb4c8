"""What every limiter checks and counts alike: keys, costs, timeouts, and the arithmetic of gcra in whole numbers.

Costs are counted in thousandths of a unit ("milli"), times in microseconds, both as integers: sums stay exact, and a
script that runs elsewhere comes to the same numbers.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from hashlib import blake2b
from typing import Any

from guardrail.errors import ConfigurationError
from guardrail.limits.limit import Limit

_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
MILLI = 1000
MICRO = 1_000_000

_MOST_SPELLED_OUT = 2**53
"""Below it a whole float is the number that was written."""

_MOST_ROUNDED = 1000
"""For how many charges of one unit a full bucket makes up for rounding."""


def check_key(key: Any) -> str:
    """The key that is charged: any text, also an empty one.

    Raises:
        ConfigurationError: If it is not a text; the message does not show it.

    Example:
        >>> check_key("tenant-7")
        'tenant-7'
    """
    if not isinstance(key, str):
        raise ConfigurationError(f"the key of a limit must be a str, got {type(key).__name__}")
    return key


def check_name(name: Any) -> str:
    """The name of a limiter or budget, with which the names of its keys in Redis begin.

    Raises:
        ConfigurationError: If it is not 1 to 64 letters, digits, dots, hyphens and underscores.

    Example:
        >>> check_name("chat")
        'chat'
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConfigurationError(
            "the name of a limiter or budget has to be 1 to 64 letters, digits, dots, hyphens and underscores, because "
            f"the names of its keys in Redis begin with it, got {name!r}"
        )
    return name


def digest_of(text: str, size: int = 16) -> str:
    """A text of any length and content as ``2 * size`` characters.

    Example:
        >>> len(digest_of("tenant")), digest_of("tenant") == digest_of("tenant ")
        (32, False)
    """
    # Half of a surrogate pair is no text that UTF-8 knows, but a key may hold one.
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=size).hexdigest()


def check_cost(cost: Any) -> int:
    """A cost in thousandths, rounded up: what costs anything costs at least one thousandth.

    Raises:
        ConfigurationError: If it is not a finite number from 0 on.

    Example:
        >>> check_cost(1.5), check_cost(0.07), check_cost(1e-9), check_cost(0)
        (1500, 70, 1, 0)
    """
    number = isinstance(cost, (int, float)) and not isinstance(cost, bool)
    if not number or not 0 <= cost < math.inf:
        raise ConfigurationError(f"the cost of a charge must be a finite number from 0 on, got {cost!r}")
    whole = int(cost)
    if whole == cost and whole < _MOST_SPELLED_OUT:
        return whole * MILLI  # fractions of numbers are slow
    return math.ceil(_exact(cost) * MILLI)


def check_timeout(timeout_s: Any) -> float | None:
    """How long a charge may wait, in seconds; ``None``, and infinity, for as long as it takes.

    Raises:
        ConfigurationError: If it is neither ``None`` nor a number from 0 on.

    Example:
        >>> check_timeout(2), check_timeout(None), check_timeout(float("inf"))
        (2.0, None, None)
    """
    if timeout_s is None:
        return None
    number = isinstance(timeout_s, (int, float)) and not isinstance(timeout_s, bool)
    if not number or not timeout_s >= 0:
        raise ConfigurationError(f"timeout_s of a charge must be None or a number from 0 on, got {timeout_s!r}")
    try:
        seconds = float(timeout_s)
    except OverflowError:
        return None
    return None if math.isinf(seconds) else seconds


def check_tokens_per_call(tokens: Any) -> int:
    """The tokens that are reserved for a call, in thousandths.

    Raises:
        ConfigurationError: If it is not a finite number above 0.
    """
    number = isinstance(tokens, (int, float)) and not isinstance(tokens, bool)
    if not number or not 0 < tokens < math.inf:
        raise ConfigurationError(f"tokens_per_call must be a finite number above 0, got {tokens!r}")
    return check_cost(tokens)


def amount(limit: Limit, milli: int, tokens_per_call_milli: int) -> int:
    """What a cost takes from a limit, in thousandths of the limit's unit.

    Example:
        >>> amount(Limit(60, 60.0), 1500, 800_000), amount(Limit(9000, 60.0, unit="tokens"), 1500, 800_000)
        (1500, 1200000)
    """
    return milli if limit.unit == "calls" else _ceil_div(milli * tokens_per_call_milli, MILLI)


def rate_milli(limit: Limit) -> int:
    """What fits into a period, in thousandths, rounded down."""
    return math.floor(_exact(limit.rate) * MILLI)


def capacity_milli(limit: Limit) -> int:
    """Most that a limit takes at once, in thousandths; a higher amount never passes."""
    return math.floor(_exact(limit.capacity) * MILLI)


def period_us(limit: Limit) -> int:
    """The period in microseconds, rounded up, at least one."""
    return math.ceil(_exact(limit.period_s) * MICRO)


def micros(seconds: float) -> int:
    """A reading of a clock in whole microseconds, the nearest."""
    return round(seconds * MICRO)


def seconds(us: int) -> float:
    """Microseconds in seconds; infinity for more than a float holds."""
    try:
        return us / MICRO
    except OverflowError:
        return math.inf


@dataclass(frozen=True, slots=True)
class GcraTerms:
    """A gcra limit in whole numbers.

    The state of a bucket is one time, when it will be full again (TAT, in microseconds). A charge at ``now`` makes it
    ``new = max(TAT, now) + interval_us(amount)``; it passes if ``new - tolerance_us <= now``, and else after
    ``new - tolerance_us - now``.

    Intervals are rounded up to whole microseconds, so the rate is never exceeded in the long run. The tolerance makes
    up for that rounding, so that a full bucket really gives its burst in charges of one unit (the first thousand of
    them); what else it may give too much by that is less than what one millisecond brings.

    Attributes:
        tolerance_us: Time that a full bucket takes to fill.
        numerator: With ``denominator``: microseconds per thousandth of a unit.
        denominator: See ``numerator``.

    Example:
        >>> terms = GcraTerms.of(Limit(3, 1.0, burst=1))
        >>> terms.interval_us(1000), terms.tolerance_us
        (333334, 333334)
        >>> terms.left_milli(terms.tolerance_us)
        1000
    """

    tolerance_us: int
    numerator: int
    denominator: int

    @classmethod
    def of(cls, limit: Limit) -> GcraTerms:
        """The terms of a limit whose mode is ``"gcra"``."""
        per_milli = _exact(limit.period_s) * MICRO / (_exact(limit.rate) * MILLI)
        burst = _exact(limit.capacity)
        whole = min(math.floor(burst), _MOST_ROUNDED)
        tolerance = whole * math.ceil(per_milli * MILLI) + math.ceil((burst - whole) * MILLI * per_milli)
        return cls(tolerance, per_milli.numerator, per_milli.denominator)

    def interval_us(self, milli: int) -> int:
        """Time that an amount takes to come in, rounded up; a negative amount gives a negative time."""
        return _ceil_div(milli * self.numerator, self.denominator)

    def left_milli(self, room_us: int) -> int:
        """Thousandths that come in during a time, rounded down: with ``tolerance_us - (TAT - now)``, what is left."""
        return max(room_us, 0) * self.denominator // self.numerator


def _exact(number: float) -> Fraction:
    """The number as it was written: 0.1 is a tenth, not the binary number beside it."""
    return Fraction(number) if isinstance(number, int) else Fraction(repr(float(number)))


def _ceil_div(dividend: int, divisor: int) -> int:
    return -(-dividend // divisor)
