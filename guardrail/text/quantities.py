"""The value that a text mentions, and whether two of them can be the same thing."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Literal

from guardrail.text.dates import PartialDate
from guardrail.text.units import DOSE_SYMBOLS

Bound = Literal["min", "max"]

_CONVERSION_NOISE = Decimal("1e-9")
_APPROXIMATE_ROUNDED = Decimal("0.10")  # "about 5,000" covers 5,400: rounds to it and is within a tenth
_APPROXIMATE = Decimal("0.02")  # "about 5,030" covers 5,100 although it does not round to it
_SIMILAR_BOUND = Decimal("0.10")  # "over 5,000" is a fair way to say "more than 5,200"
_PHONE_SUFFIX = 7  # a national number is the end of the international one


class ValueKind(StrEnum):
    """What a value is."""

    NUMBER = "number"
    PERCENT = "percent"
    MONEY = "money"
    QUANTITY = "quantity"
    ORDINAL = "ordinal"
    DATE = "date"
    WEEKDAY = "weekday"
    TIME = "time"
    URL = "url"
    EMAIL = "email"
    PHONE = "phone"
    VERSION = "version"
    CODE = "code"

    @property
    def is_identifier(self) -> bool:
        """Whether values of this kind must be copied exactly."""
        return self in _IDENTIFIERS


_IDENTIFIERS = frozenset((ValueKind.URL, ValueKind.EMAIL, ValueKind.PHONE, ValueKind.VERSION, ValueKind.CODE))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One meaning of a number with its unit, in the base unit of its dimension.

    Attributes:
        dimension: What is measured: ``"count"``, ``"ratio"``, ``"length"``, ``"money:EUR"`` ...
        low: The amount, or the lower end of a range.
        high: Equal to ``low`` unless it is a range.
        step: Place value of the last written digit.
        digits: Significant digits as written.
        symbol: Canonical unit symbol.
    """

    dimension: str
    low: Decimal
    high: Decimal
    step: Decimal
    digits: int
    symbol: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A number, date, time or identifier in a text.

    Attributes:
        kind: What it is, in its likeliest reading.
        text: The words as written, approximators and bounds not included.
        start: Offset of the first code point in the text that was parsed.
        end: Offset after the last code point.
        amount: The number in its own unit; ``None`` for dates, times and identifiers.
        high: Upper end of a range in its own unit.
        unit: Canonical unit symbol; ``""`` for a bare number.
        approximate: Whether the text says "about".
        exact: Whether the text says "exactly".
        bound: ``"min"`` for "at least", ``"max"`` for "at most"; ``None`` otherwise.
        strict: Whether the bound excludes the amount itself ("more than").
        readings: Every meaning of the number, likeliest first.
        dates: Every calendar meaning.
        times: Minutes after midnight it can mean.
        times_to: End of a span of clock time.
        days: Weekdays, Monday = 0.
        key: Normalised text of an identifier.
    """

    kind: ValueKind
    text: str = field(repr=False)
    start: int
    end: int
    amount: Decimal | None = None
    high: Decimal | None = None
    unit: str = ""
    approximate: bool = False
    exact: bool = False
    bound: Bound | None = None
    strict: bool = False
    readings: tuple[Reading, ...] = ()
    dates: tuple[PartialDate, ...] = ()
    times: tuple[int, ...] = ()
    times_to: tuple[int, ...] = ()
    days: frozenset[int] = frozenset()
    key: str = ""


def compatible(claim: Value, evidence: Value) -> bool | None:
    """Whether a claim's value can be the value that the evidence gives.

    Units are converted. A claim may round the evidence where it says "about", or where it keeps at least two digits
    of a more precise figure; never where it says "exactly", never for doses, and never from one integer to another.

    Args:
        claim: Value of the claim.
        evidence: Value of the evidence.

    Returns:
        ``True`` if both are the same quantity, ``False`` if they measure the same and differ, ``None`` if they cannot
        be compared, or if the evidence is too vague for the claim.

    Example:
        >>> from guardrail.text.values import parse_values
        >>> ask = lambda a, b: compatible(parse_values(a)[0], parse_values(b)[0])
        >>> ask("about 6.2 miles", "10 km"), ask("10 miles", "10 km"), ask("12 euro", "12%")
        (True, False, None)
    """
    if claim.kind.is_identifier or evidence.kind.is_identifier:
        return _same_identifier(claim, evidence)
    answers = [_same_weekday(claim, evidence), _same_date(claim, evidence), _same_time(claim, evidence)]
    answers += [
        _same_amount(claim, mine, evidence, its)
        for mine in claim.readings
        for its in evidence.readings
        if mine.dimension == its.dimension
    ]
    if True in answers:
        return True
    if bool(claim.dates) != bool(evidence.dates) and claim.readings and evidence.readings:
        return None  # a bare 1913 is likelier a year than another amount
    return False if False in answers else None


def _same_identifier(claim: Value, evidence: Value) -> bool | None:
    if claim.kind is not evidence.kind:
        return None
    if claim.key == evidence.key:
        return True
    if claim.kind is ValueKind.PHONE:
        short, long = sorted((claim.key.lstrip("0"), evidence.key), key=len)
        return len(short) >= _PHONE_SUFFIX and long.endswith(short)
    # A site without a page is where any of its pages are.
    return claim.kind is ValueKind.URL and "/" not in claim.key and evidence.key.startswith(claim.key + "/")


def _same_weekday(claim: Value, evidence: Value) -> bool | None:
    return claim.days <= evidence.days if claim.days and evidence.days else None


def _same_date(claim: Value, evidence: Value) -> bool | None:
    pairs = [(mine, its) for mine in claim.dates for its in evidence.dates if mine.shares_a_field(its)]
    if not pairs:
        return None
    agreeing = [mine.is_within(its) for mine, its in pairs if mine.agrees(its)]
    if not agreeing:
        return False
    return True if any(agreeing) else None


def _same_time(claim: Value, evidence: Value) -> bool | None:
    if not claim.times or not evidence.times:
        return None
    if claim.times_to and evidence.times_to:
        return _meet(claim.times, evidence.times) and _meet(claim.times_to, evidence.times_to)
    ends = evidence.times + evidence.times_to if evidence.times_to else evidence.times
    if _meet(claim.times, ends):
        return True
    if not evidence.times_to:
        return _meet(claim.times_to, evidence.times)
    inside = any(evidence.times[0] < time < evidence.times_to[-1] for time in claim.times)
    return None if inside else False


def _meet(some: tuple[int, ...], others: tuple[int, ...]) -> bool:
    return not set(some).isdisjoint(others)


def _same_amount(claim: Value, mine: Reading, evidence: Value, its: Reading) -> bool | None:
    if claim.bound or evidence.bound:
        return _within_bounds(claim, mine, evidence, its)
    if mine.low != mine.high or its.low != its.high:
        return _within_ranges(claim, mine, evidence, its)
    return _same_point(claim, mine, evidence, its)


def _same_point(claim: Value, mine: Reading, evidence: Value, its: Reading) -> bool | None:
    if mine.low == its.low or (mine.symbol != its.symbol and _equal(mine.low, its.low)):
        return True
    if claim.exact:
        return False
    difference, size = abs(mine.low - its.low), abs(its.low)
    rounds = difference * 2 <= mine.step
    if claim.approximate:
        return difference <= size * _APPROXIMATE or (rounds and difference <= size * _APPROXIMATE_ROUNDED)
    if evidence.approximate and difference <= size * _APPROXIMATE_ROUNDED:
        return None
    return rounds and _may_round(mine, its)


def _may_round(mine: Reading, its: Reading) -> bool:
    if mine.digits < 2 or mine.symbol in DOSE_SYMBOLS or its.symbol in DOSE_SYMBOLS:
        return False
    if mine.symbol != its.symbol:
        return True  # a converted amount is rounded of necessity
    plain_integers = mine.step >= 1 and its.low == its.low.to_integral_value() and not _magnified(mine)
    return its.step < mine.step and not plain_integers


def _magnified(reading: Reading) -> bool:
    return reading.low >= 1_000_000 and reading.step >= 1000


def _equal(one: Decimal, other: Decimal) -> bool:
    return abs(one - other) <= _CONVERSION_NOISE * max(abs(one), abs(other))


def _within_ranges(claim: Value, mine: Reading, evidence: Value, its: Reading) -> bool | None:
    if mine.low == mine.high:
        if _equal(mine.low, its.low) or _equal(mine.low, its.high):
            return True
        return None if its.low < mine.low < its.high else False
    if its.low == its.high:
        return mine.low <= its.low <= mine.high
    return _equal(mine.low, its.low) and _equal(mine.high, its.high)


def _within_bounds(claim: Value, mine: Reading, evidence: Value, its: Reading) -> bool | None:
    if claim.bound and evidence.bound:
        return _same_bound(claim, mine, evidence, its)
    if claim.bound:
        if evidence.approximate and _equal(mine.low, its.low):
            return True  # "over 1.3 million" for "about 1.3 million"
        if _satisfies(its.low, claim, mine) and _satisfies(its.high, claim, mine):
            return True
        return None if _satisfies(its.low, claim, mine) or _satisfies(its.high, claim, mine) else False
    if _equal(mine.low, its.low):
        return True
    return None if _satisfies(mine.low, evidence, its) else False


def _satisfies(amount: Decimal, limit: Value, reading: Reading) -> bool:
    if _equal(amount, reading.low):
        return not limit.strict
    return amount > reading.low if limit.bound == "min" else amount < reading.low


def _same_bound(claim: Value, mine: Reading, evidence: Value, its: Reading) -> bool | None:
    if claim.bound == evidence.bound:
        if _equal(mine.low, its.low):
            return True
        weaker = mine.low < its.low if claim.bound == "min" else mine.low > its.low
        return weaker and abs(mine.low - its.low) <= _SIMILAR_BOUND * abs(its.low)
    apart = mine.low >= its.low if claim.bound == "min" else mine.low <= its.low
    return False if apart else None
