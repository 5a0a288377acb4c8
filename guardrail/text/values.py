"""Finding the numbers, dates, times and identifiers of a text, whatever notation they are written in."""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal
from functools import lru_cache

from guardrail.text.dates import DAY_GROUPS, MONTHS, NAMED_TIMES, WEEKDAYS, day_times, is_year, numeric_dates, year_date
from guardrail.text.identifiers import find_identifiers, same_length_fold
from guardrail.text.numbers import (
    COLLECTIVES,
    ENGLISH,
    FOREIGN,
    FOREIGN_WORDS,
    FRACTIONS,
    MAGNITUDES,
    MULTIPLICATIVES,
    ORDINALS,
    VULGAR,
    NumberReading,
    cjk_number,
    english_number,
    literal_readings,
)
from guardrail.text.quantities import Reading, Value, ValueKind, compatible
from guardrail.text.value_calendar import CLOCK_WORDS, ONE
from guardrail.text.value_lexer import is_wordlike
from guardrail.text.value_quantities import QuantityScanner

__all__ = ["Reading", "Value", "ValueKind", "compatible", "parse_values"]

_MULTIPLES = frozenset(("hundred", "thousand", "million", "billion", "trillion", "dozen"))
_NOT_AFTER_ONE = frozenset(
    "of in is was has and or can may must should will would who which that to another more".split()
)
_NOT_BEFORE_ONE = frozenset("no any some every the this that which each another only last next previous".split())
_TRIGGERS = (
    frozenset(MONTHS) | frozenset(WEEKDAYS) | frozenset(DAY_GROUPS) | frozenset(NAMED_TIMES) | frozenset(ENGLISH)
    | frozenset(ORDINALS) | frozenset(MULTIPLICATIVES) | FOREIGN_WORDS | _MULTIPLES
    | {"half", "quarter", "third"} | frozenset(VULGAR)
)  # fmt: skip
_KEPT_TEXTS = 4096
_KEPT_CHARS = 1000  # sentences recur between attempts; whole passages would only fill memory
_RATE_WORDS = frozenset(("a", "per", "daily", "weekly", "monthly", "yearly", "every", "each", "an", "only"))
_DECADE = re.compile(r"'?s(?!\w)")
_NUMERAL = re.compile(r"\d")
_ASCII_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?")


def parse_values(text: str) -> tuple[Value, ...]:
    """Find every value of a text.

    Citation marks (``[1]``), list marks and markdown emphasis are no values. Where a notation is ambiguous
    (``23.940``, ``03/04/2020``, ``150 m``) the value keeps every reading.

    Args:
        text: Any text; best one sentence, as neighbouring words decide readings.

    Returns:
        The values in order of their offsets.

    Example:
        >>> [(v.kind.value, str(v.amount), v.unit) for v in parse_values("**4.1 million** people, 12 % of $5bn [3].")]
        [('number', '4100000.0', ''), ('percent', '12', '%'), ('money', '5000000000', 'USD')]
    """
    return _parse_kept(text) if len(text) <= _KEPT_CHARS else _parse(text)


def _parse(text: str) -> tuple[Value, ...]:
    identifiers, masked = find_identifiers(same_length_fold(text))
    values = _Scanner(text, masked).run() if _may_hold_values(masked) else []
    if identifiers:
        copied = (replace(found, text=text[found.start : found.end]) for found in identifiers)
        values = sorted((*values, *copied), key=lambda value: value.start)
    return tuple(values)


def _may_hold_values(text: str) -> bool:
    """Whether a scan can find anything: half of all sentences have no numeral and no word that begins a value."""
    if not text.isascii() or _NUMERAL.search(text):
        return True
    return not _TRIGGERS.isdisjoint(_ASCII_WORD.findall(text.lower()))


_parse_kept = lru_cache(maxsize=_KEPT_TEXTS)(_parse)


class _Scanner(QuantityScanner):
    """One pass over the words of a text."""

    def run(self) -> list[Value]:
        at, count = 0, len(self.words)
        kinds, words = self.kinds, self.words
        while at < count:
            kind = kinds[at]
            if kind == "w":
                at = self._word(at) if words[at] in _TRIGGERS else at + 1
            elif kind == "s":
                at += 1
            elif kind == "z":
                at = self._cjk(at)
            elif kind == "d":
                at = self._slashed(at)
            else:
                at = self._literal(at)
        if "周" in self.text or "星" in self.text:
            self._cjk_weekdays()
        return self.values

    def _vulgar(self, at: int) -> int:
        reading = NumberReading(VULGAR[self.words[at]], Decimal("0.01"), 2)
        return self._quantity(at, at + 1, (reading,), self.ends[at], fraction=True)

    def _cjk(self, at: int) -> int:
        number, end = cjk_number(self.words[at]), self.ends[at]
        if self.low[end : end + 1] == "年" and is_year(number):
            self._add(at, end + 1, ValueKind.DATE, dates=(year_date(number),))
            return at + 1
        reading = NumberReading(Decimal(number), ONE, max(len(str(number).rstrip("0")), 1))
        return self._quantity(at, at + 1, (reading,), end)

    def _word(self, at: int) -> int:
        word = self.words[at]
        if word in MONTHS and (after := self._month(at)):
            return after
        if word in WEEKDAYS and (after := self._weekday(at)):
            return after
        if word in DAY_GROUPS and word != "daily":
            self._add(at, self.ends[at], ValueKind.WEEKDAY, days=DAY_GROUPS[word])
            return at + 1
        if word in NAMED_TIMES:
            self._add_time(at, self.ends[at], (NAMED_TIMES[word],))
            return at + 1
        if word in MULTIPLICATIVES and (word != "once" or self._at(at + 1) in _RATE_WORDS):
            return self._multiplicative(at)
        if word in ENGLISH or word in _MULTIPLES:
            return self._english(at)
        if word in ("half", "quarter"):
            return self._half(at)
        if word in ORDINALS:
            return self._ordinal(at)
        if word in VULGAR:
            return self._vulgar(at)
        return self._foreign(at)

    def _english(self, at: int) -> int:
        first = at
        if self.words[at] in _MULTIPLES:
            if at == 0 or self.words[at - 1] not in ("a", "an", "per", "one"):
                return at + 1
            number, taken = {"dozen": 12}.get(self.words[at], 0), 1
            number = number or int(MAGNITUDES[self.words[at]])
        else:
            number, taken = english_number(self._run_of_words(at), 0)
        if taken == 0:
            return at + 1
        if number == 1 and taken == 1 and self._is_pronoun(at):
            return at + 1
        if taken == 1 and 1 <= number <= 12 and self._at(at - 1) in CLOCK_WORDS and self._ends_clause(at + 1):
            self._bare_hour(at, self.ends[at], day_times(number, 0, ""), number)
            return at + 1
        after, end = at + taken, self.ends[at + taken - 1]
        if (scale := COLLECTIVES.get(self._at(after))) and self._at(after) == "dozen":
            number, after, end = number * scale, after + 1, self.ends[after]
        amount, fraction = Decimal(number), False
        if self._at(after) in ("thirds", "quarters", "fifths", "tenths", "third", "quarter", "fifth", "tenth"):
            amount, fraction = amount * FRACTIONS[self.words[after]], True
            after, end = after + 1, self.ends[after]
        elif self._at(after) == "and" and self._at(after + 1) == "a" and self._at(after + 2) == "half":
            amount, end, after = amount + Decimal("0.5"), self.ends[after + 2], after + 3
        digits = max(len(str(number).rstrip("0")), 1)
        step = ONE if number % 10 or not number else ONE.scaleb(len(str(number)) - digits)
        return self._quantity(first, after, (NumberReading(amount, step, digits),), end, fraction=fraction)

    def _run_of_words(self, at: int) -> list[str]:
        """The words from ``at`` on that can form one number: only spaces or a hyphen stand between them."""
        run: list[str] = []
        last = self.ends[at]
        for index in range(at, min(at + 24, len(self.words))):
            word = self.words[index]
            if (word not in ENGLISH and word not in _MULTIPLES and word != "and") or self.starts[index] > last + 3:
                break
            run.append(word)
            last = self.ends[index]
        return run

    def _is_pronoun(self, at: int) -> bool:
        following = self._at(at + 1)
        return (
            self._at(at - 1) in _NOT_BEFORE_ONE
            or following in _NOT_AFTER_ONE
            or not following
            or not following[0].isalpha()
        )

    def _half(self, at: int) -> int:
        word, following = self.words[at], self._at(at + 1)
        if (word == "half" and following == "past") or (following in ("past", "to") and self._at(at + 2) in ENGLISH):
            return self._past(at)
        if word == "half" and following in ("a", "an", "of", "the") and self._at(at - 1) not in ("second", "first"):
            after = at + 2 if following in ("a", "an") else at + 1
            reading = NumberReading(Decimal("0.5"), Decimal("0.1"), 1)
            return self._quantity(at, after, (reading,), self.ends[after - 1], fraction=True)
        if word == "quarter" and self._at(at - 1) == "a" and following == "of":
            self._quantity(
                at, at + 1, (NumberReading(Decimal("0.25"), Decimal("0.01"), 2),), self.ends[at], fraction=True
            )
        return at + 1

    def _multiplicative(self, at: int) -> int:
        amount = Decimal(MULTIPLICATIVES[self.words[at]])
        reading = Reading(dimension="times", low=amount, high=amount, step=ONE, digits=1, symbol="times")
        self._add(at, self.ends[at], ValueKind.QUANTITY, amount=amount, unit="times", readings=(reading,))
        return at + 1

    def _ordinal(self, at: int) -> int:
        number = ORDINALS[self.words[at]]
        if self._at(at + 1) in MONTHS or (self._at(at + 1) == "of" and self._at(at + 2) in MONTHS):
            return self._day_first(at, at + (2 if self._at(at + 1) == "of" else 1), number) or at + 1
        self._add_ordinal(at, self.ends[at], number)
        return at + 1

    def _add_ordinal(self, at: int, end: int, number: int) -> None:
        if self.low[end : end + 10].strip().startswith("centur"):
            century_end = self.low.index("centur", end) + 7
            dates = (year_date((number - 1) * 100, number * 100),)
            self._add(at, century_end, ValueKind.DATE, dates=dates)
            return
        amount = Decimal(number)
        reading = Reading(dimension="ordinal", low=amount, high=amount, step=ONE, digits=9)
        self._add(at, end, ValueKind.ORDINAL, amount=amount, readings=(reading,))

    def _foreign(self, at: int) -> int:
        number = FOREIGN.get(self.language, {}).get(self.words[at])
        if number is None:
            return at + 1
        end = self.ends[at]
        if self.words[at - 1] in CLOCK_WORDS and at > 0 and number <= 24 and self._ends_clause(at + 1):
            self._add_time(at, end, day_times(number, 0, ""))
            return at + 1
        reading = NumberReading(Decimal(number), ONE, max(len(str(number).rstrip("0")), 1))
        return self._quantity(at, at + 1, (reading,), end)

    def _literal(self, at: int) -> int:
        literal, start, end = self.words[at], self.starts[at], self.ends[at]
        if start and is_wordlike(self.low[start - 1]):
            return at + 1  # a part of a name such as A1
        if start > 1 and self.low[start - 1] == "-" and self.low[start - 2].isalpha() and len(literal) != 4:
            return at + 1  # COVID-19
        if len(literal) == 2 and _DECADE.match(self.low, end):
            return at + 1  # "in their 20s" is vague
        if "." in literal and (dates := numeric_dates(literal)):
            self._add(at, end, ValueKind.DATE, dates=dates)
            return at + 1
        return self._cjk_date(at) or self._date_from(at) or self._clock(at) or self._number(at)

    def _number(self, at: int) -> int:
        literal, end = self.words[at], self.ends[at]
        after = at + 1
        suffix = self._at(after)
        if (
            suffix in ("st", "nd", "rd", "th", "er", "ème", "°", "º")
            and self.starts[after] == end
            and literal.isdecimal()
        ):
            if suffix not in "°º" or self.low[end + 1 : end + 2] not in ("c", "f", " "):
                self._add_ordinal(at, self.ends[after], int(literal[:9]))
                return after + 1
        readings = literal_readings(literal, self.language if "." in literal or "," in literal else "")
        if not readings:
            return after
        readings, after, end, fraction = self._fraction(readings, after, end)
        return self._quantity(at, after, readings, end, fraction=fraction, digits=True)
