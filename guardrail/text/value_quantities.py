"""Scanning for amounts: numeral, magnitude, unit, currency, ranges."""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal

from guardrail.text.dates import PartialDate, is_year, year_date
from guardrail.text.numbers import LETTER_MAGNITUDES, MAGNITUDES, VULGAR, NumberReading
from guardrail.text.quantities import Reading, Value, ValueKind
from guardrail.text.units import Unit, currency_before, unit_at
from guardrail.text.value_calendar import JOINTS, ONE, PLAIN_AFTER_YEAR, CalendarScanner, ranges
from guardrail.text.value_lexer import is_unspaced, is_wordlike

_LENGTH_WORDS = frozenset(
    "tall long high wide deep above below away from race sprint thick across apart altitude".split()
)
_COMPOUNDS = frozenset(
    (
        ("duration", "h", "min"),
        ("duration", "min", "s"),
        ("duration", "day", "h"),
        ("duration", "week", "day"),
        ("length", "ft", "in"),
        ("length", "m", "cm"),
        ("mass", "lb", "oz"),
        ("mass", "kg", "g"),
        ("months", "year", "month"),
    )
)
_MAGNITUDE_WORD = re.compile(r"[ \t]{0,5}-?([^\W\d_]{1,40})")
_OF = re.compile(r"[ ](?:di|de|d') ?")
_SPACED_LETTER = re.compile(r"[ ]?([kmbt])(?![\w])")
_NEXT_WORD = re.compile(r"[ ]{1,2}([^\W\d_]{1,40})")


class QuantityScanner(CalendarScanner):
    """Builds amounts from a numeral and the words beside it."""

    def _quantity(
        self,
        first: int,
        after: int,
        numbers: tuple[NumberReading, ...],
        end: int,
        *,
        fraction: bool = False,
        digits: bool = False,
    ) -> int:
        """Add a number with its magnitude, unit, sign and qualifiers; returns the next token."""
        money, money_start = self._money_before(first)
        scale, end, million = self._magnitude(end, bool(money), digits)
        units, unit_end = unit_at(self.text, self.low, end)
        if not units and scale != 1 and (link := _OF.match(self.low, end)):
            units, unit_end = unit_at(self.text, self.low, link.end() - 1)
        if units and money and not units[0].dimension.startswith("money"):
            units, unit_end = (), end
        if million and units[:1] and units[0].symbol == "m":
            million = self._may_be_million(unit_end)
        units = units or money
        end = unit_end if unit_end > end else end
        if digits and end < len(self.low) and is_wordlike(self.low[end]):
            return after  # glued letters: a name such as 3D or 4f9a
        after = self._index_after(end, after)
        negative = digits and self._is_negative(first)
        if negative:
            numbers = tuple(number._replace(amount=-number.amount) for number in numbers)
        readings = self._readings(numbers, scale, units, fraction)
        if million:
            readings += self._readings(numbers, Decimal(1_000_000), money, False)
        start_token = first - 1 if negative else first
        qualifier = self._qualifier(first - (1 if money or negative else 0), after)
        dates: tuple[PartialDate, ...] = ()
        if digits and not units and scale == 1 and self.words[first].isdecimal() and len(self.words[first]) == 4:
            year = int(self.words[first])
            dates = (year_date(year),) if is_year(year) else ()
        self._add(
            start_token,
            end,
            _kind(units),
            qualifier,
            amount=numbers[0].amount * scale,
            unit=units[0].symbol if units else "",
            readings=readings,
            dates=dates,
        )
        if money_start >= 0 and self.values[-1].start > money_start:
            value = self.values[-1]
            self.values[-1] = replace(value, start=money_start, text=self.original[money_start : value.end])
        self._scales[end] = scale
        self._units_of[end] = units
        self._join()
        return after

    def _money_before(self, first: int) -> tuple[tuple[Unit, ...], int]:
        start = self.starts[first]
        if first == 0 or start - self.ends[first - 1] > 1:
            return (), -1
        prefix = self.low[max(0, start - 5) : start].rstrip()
        units = currency_before(prefix)
        if units and len(self._at(first - 1)) > 1 and not self.text[self.starts[first - 1]].isupper():
            return (), -1
        if units and self.kinds[first] == "w" and prefix[-1:].isalpha():
            return (), -1  # "Rub one side"
        return (units, self.starts[first - 1]) if units else ((), -1)

    def _magnitude(self, end: int, money: bool, digits: bool) -> tuple[Decimal, int, bool]:
        """Multiplier of the words after a numeral, the offset after them, and whether "m" may mean million."""
        scale = ONE
        while match := _MAGNITUDE_WORD.match(self.low, end):
            word = match[1]
            factor = MAGNITUDES.get(word) or MAGNITUDES.get(word[:1] if is_unspaced(word[0]) else word)
            if factor is None:
                break
            scale *= factor
            end = match.start(1) + (len(word) if not is_unspaced(word[0]) else max(1, 2 * word.startswith("百万")))
            if self.low[end : end + 1] == "." and word in ("mio", "mrd", "mn", "bn", "mln"):
                end += 1
            if not digits:
                break
        if scale != 1 or not digits:
            return scale, end, False
        glued = self.text[end : end + 1]
        follows = self.low[end + 1 : end + 2]
        if glued in LETTER_MAGNITUDES and not follows.isalnum() and (glued not in "BT" or money):
            return LETTER_MAGNITUDES[glued], end + 1, False
        letter = _SPACED_LETTER.match(self.low, end)
        if letter and money:
            return LETTER_MAGNITUDES[letter[1].upper()], letter.end(), False
        return scale, end, bool(letter and letter[1] == "m")

    def _may_be_million(self, end: int) -> bool:
        match = _NEXT_WORD.match(self.low, end)
        return bool(match and match[1] not in _LENGTH_WORDS and match[1] not in PLAIN_AFTER_YEAR)

    def _readings(
        self, numbers: tuple[NumberReading, ...], scale: Decimal, units: tuple[Unit, ...], fraction: bool
    ) -> tuple[Reading, ...]:
        if len(numbers) > 1 and units and self.language == "en":
            numbers = numbers[:1]  # "2.500 mg" in an English text is a decimal
        found: list[Reading] = []
        for number in numbers:
            amount, step = number.amount * scale, number.step * scale
            for unit in units:
                base = unit.to_base(amount)
                found.append(
                    Reading(
                        dimension=unit.dimension,
                        low=base,
                        high=base,
                        step=step * unit.factor,
                        digits=number.digits,
                        symbol=unit.symbol,
                    )
                )
            if not units:
                dimensions = ("ratio", "count") if fraction else ("count",)
                found += (
                    Reading(dimension=dimension, low=amount, high=amount, step=step, digits=number.digits)
                    for dimension in dimensions
                )
        return tuple(found)

    def _fraction(
        self, readings: tuple[NumberReading, ...], after: int, end: int
    ) -> tuple[tuple[NumberReading, ...], int, int, bool]:
        whole = readings[0].amount
        symbol, below = self._at(after), self._at(after + 1)
        if symbol in VULGAR and self.starts[after] <= end + 1:
            amount = whole + VULGAR[symbol]
            return (NumberReading(amount, Decimal("0.01"), 2),), after + 1, self.ends[after], False
        if (
            symbol == "/"
            and self.starts[after] == end
            and below.isdecimal()
            and len(below) <= 3
            and int(below) > whole > 0
        ):
            amount = whole / int(below)
            return (NumberReading(amount, Decimal("0.01"), 3),), after + 2, self.ends[after + 1], True
        return self._mixed(whole, after, end) or (readings, after, end, False)

    def _mixed(self, whole: Decimal, after: int, end: int) -> tuple[tuple[NumberReading, ...], int, int, bool] | None:
        """A fraction behind a whole number: "1 1/2", "1-1/2"."""
        hyphen = self._at(after) == "-" and self.starts[after] == end
        upper_at = after + 1 if hyphen else after
        upper, slash, lower = self._at(upper_at), self._at(upper_at + 1), self._at(upper_at + 2)
        if slash != "/" or not (upper.isdecimal() and lower.isdecimal() and len(lower) <= 2):
            return None
        if self.starts[upper_at] > end + 1 or self.starts[upper_at + 2] > self.ends[upper_at] + 1:
            return None
        if whole != whole.to_integral_value() or not 0 < int(upper) < int(lower):
            return None
        if after == 1 and whole >= 10:
            return None  # "11 1/4 cup" at the start of a line: its number in a list
        reading = NumberReading(whole + Decimal(upper) / int(lower), Decimal("0.01"), 3)
        return (reading,), upper_at + 3, self.ends[upper_at + 2], False

    def _is_negative(self, first: int) -> bool:
        if self._at(first - 1) != "-" or self.ends[first - 1] != self.starts[first]:
            return False
        at = self.starts[first] - 2
        return at < 0 or self.low[at] in " (\t\n|:"

    def _join(self) -> None:
        """Merge the last two values into a range, or into one compound amount ("1 h 30 min")."""
        if len(self.values) < 2:
            return
        left, right = self.values[-2:]
        if not left.readings or not right.readings or right.start - left.end > 12 or left.amount is None:
            return
        between = self.low[left.end : right.start].split()
        if (not between or between == ["and"]) and self._join_compound(left, right):
            return
        if between and between[0] in (*JOINTS, "and", "or", "x", "×", "by") and len(between) <= 2:
            left = self._inherit_unit(left, right)
            self.values[-2:] = [left, self.values[-1]]
            is_range = between[0] in JOINTS or (
                between[0] == "and" and "between" in self.low[max(0, left.start - 22) : left.start]
            )
            if is_range and len(self.values) >= 2 and self.values[-1] is right:
                self._join_range(left, right)

    def _inherit_unit(self, left: Value, right: Value) -> Value:
        """Give the start of a range the unit ("5 to 10 mg") or the magnitude ("2 to 3 million") of its end."""
        if left.unit or left.kind is not ValueKind.NUMBER or left.amount is None:
            return left
        scale = ONE if self._scales.get(left.end, ONE) != 1 else self._scales.get(right.end, ONE)
        if right.unit:
            units = self._units_of.get(right.end, ())
        elif scale != 1 and not left.dates:
            units = ()
        else:
            return left
        numbers = tuple(NumberReading(r.low, r.step, r.digits) for r in left.readings)
        readings = self._readings(numbers, scale, units, False)
        return replace(left, kind=right.kind, unit=right.unit, amount=left.amount * scale, readings=readings)

    def _join_range(self, left: Value, right: Value) -> None:
        readings = ranges(left.readings, right.readings)
        if not readings or left.amount is None or right.amount is None or (left.dates and right.dates):
            return
        self.values[-2:] = [
            replace(
                left,
                text=self.original[left.start : right.end],
                end=right.end,
                high=right.amount,
                readings=readings,
                dates=(),
                bound=None,
            )
        ]

    def _join_compound(self, left: Value, right: Value) -> bool:
        one, two = left.readings[0], right.readings[0]
        parts = (one.dimension, left.unit, right.unit)
        if one.dimension != two.dimension or parts not in _COMPOUNDS:
            return False
        total = one.low + two.low
        reading = replace(one, low=total, high=total, step=two.step, digits=one.digits + two.digits)
        self.values[-2:] = [
            replace(left, text=self.original[left.start : right.end], end=right.end, readings=(reading,))
        ]
        return True


def _kind(units: tuple[Unit, ...]) -> ValueKind:
    if not units:
        return ValueKind.NUMBER
    dimension = units[0].dimension
    if dimension == "ratio":
        return ValueKind.PERCENT
    return ValueKind.MONEY if dimension.startswith("money") else ValueKind.QUANTITY
