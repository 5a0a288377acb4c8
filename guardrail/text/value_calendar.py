"""Scanning for dates, weekdays and times of day."""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal
from typing import Any

from guardrail.text.dates import (
    DOUBTFUL,
    MONTHS,
    WEEKDAYS,
    PartialDate,
    clock_minutes,
    day_times,
    is_day,
    is_year,
    numeric_dates,
    year_date,
)
from guardrail.text.numbers import ENGLISH, MAGNITUDES, ORDINALS
from guardrail.text.quantities import Reading, Value, ValueKind
from guardrail.text.units import UNITS, unit_at
from guardrail.text.value_lexer import Lexer

_CJK_DATE = re.compile(r"年(?:[ ]?(\d{1,2})[ ]?月(?:[ ]?(\d{1,2})[ ]?[日号])?)?|月(?:[ ]?(\d{1,2})[ ]?[日号])?")
_CJK_WEEKDAY = re.compile("(?:星期|周)[一二三四五六日天]")
_PLACE_WORDS = frozenset(
    "in since until till by from after before during of year years circa for nel dal dall del dell anno im jahr seit "
    "en depuis año عام سنة early late mid to through and around".split()
)
CLOCK_WORDS = frozenset("at until till by from before after around alle dalle ore um bis ab à between past".split())
JOINTS = frozenset(("-", "to", "bis", "a", "al", "alle", "à", "until", "till", "through", "thru", "til", "fino"))
ONE = Decimal(1)
_ENGLISH_VERBS = frozenset(("may", "march", "mar"))
PLAIN_AFTER_YEAR = frozenset(
    "and or but the a by to in on at for with from of as after before when while is was were it until through "
    "e il la und der die das et le than under over because if that which who so then since".split()
)
_NO_DAY = re.compile(r"[:%]|\.\d")
_PLAIN_SPAN = re.compile(r"[ ]?\d{1,2}(?=[ ]?(?:[,;.!?)\n]|and\b|on\b|$))")
_SPAN = re.compile(r"(\d{1,2}):(\d{1,2})-(\d{1,2}):(\d{1,2})(?!\d)")
_SPAN_REST = re.compile(r"[ ]?(?:\d{1,2}[:.]\d{2}|\d{1,2}[ ]?(?:[ap]\.?m|uhr))")

_AFTER_WEEKDAY = frozenset(
    "and or und et e y closed open opens morning afternoon evening night from chiuso geschlossen".split()
)


def _exceeds_a_day(literal: str) -> bool:
    return literal.isdecimal() and int(literal) > 24


class CalendarScanner(Lexer):
    """Finds what a calendar or a clock can show."""

    def _cjk_date(self, at: int) -> int:
        match = _CJK_DATE.match(self.low, self.ends[at])
        if match is None or not self.words[at].isdecimal() or len(self.words[at]) > 4:
            return 0
        number = int(self.words[at])
        if match.group().startswith("年"):
            if not is_year(number):
                return 0  # a duration
            month, day = (int(part) if part else None for part in match.group(1, 2))
            date = PartialDate(year=number, last_year=number, month=month, day=day)
        elif 1 <= number <= 12:
            date = PartialDate(month=number, day=int(match[3]) if match[3] else None)
        else:
            return 0
        self._add(at, match.end(), ValueKind.DATE, dates=(date,))
        return self._index_after(match.end(), at)

    def _cjk_weekdays(self) -> None:
        for match in _CJK_WEEKDAY.finditer(self.text):
            day = WEEKDAYS.get(match.group().replace("周天", "周日"))
            if day is not None:
                self.values.append(
                    Value(
                        kind=ValueKind.WEEKDAY,
                        text=match.group(),
                        start=match.start(),
                        end=match.end(),
                        days=frozenset((day,)),
                    )
                )
        self.values.sort(key=lambda value: value.start)

    def _slashed(self, at: int) -> int:
        dates = numeric_dates(self.words[at])
        if dates:
            self._add(at, self.ends[at], ValueKind.DATE, dates=dates)
        return at + 1

    def _month(self, at: int) -> int:
        """A month that does not follow a day: "January 15, 1967", "January 1967", "in January"."""
        word, month = self.words[at], MONTHS[self.words[at]]
        after = at + 1
        if self._at(after) == "." and len(word) <= 5:
            after += 1
        day = self._at(after)
        number = ORDINALS.get(day) if not day.isdecimal() else int(day[:9])
        if (number is not None and len(day) <= 2) or day in ORDINALS:
            if number is not None and is_day(number, month) and not _NO_DAY.match(self.low, self.ends[after]):
                return self._with_year(at, after + 1, month, number)
        if word in DOUBTFUL and not (self._is_name(at) and (day.isdecimal() or self._at(at - 1) in _PLACE_WORDS)):
            return 0
        if len(word) <= 3 and not self._is_name(at):
            return 0
        return self._with_year(at, after if day.isdecimal() else at + 1, month, None)

    def _day_first(self, at: int, month_at: int, day: int) -> int:
        month = MONTHS[self.words[month_at]]
        if not is_day(day, month):
            return 0
        return self._with_year(at, month_at + 1, month, day)

    def _with_year(self, first: int, after: int, month: int, day: int | None) -> int:
        """Finish a date whose year, if any, stands at token ``after``, perhaps behind an ordinal suffix or a comma."""
        while self._at(after) in ("st", "nd", "rd", "th", ",", ".", "of", "de", "del"):
            following = self._at(after + 1)
            if self.words[after] in ("st", "nd", "rd", "th") and self.starts[after] == self.ends[after - 1]:
                after += 1
            elif following.isdecimal() and len(following) == 4 and is_year(int(following)):
                after += 1
            else:
                break
        year_text = self._at(after)
        year = int(year_text) if year_text.isdecimal() and len(year_text) == 4 else None
        if year is not None and is_year(year):
            after += 1
        else:
            year = None
        date = PartialDate(year=year, last_year=year, month=month, day=day)
        self._add(first, self.ends[after - 1], ValueKind.DATE, self._qualifier(first, after), dates=(date,))
        return after

    def _weekday(self, at: int) -> int:
        word = self.words[at]
        if word in DOUBTFUL | {"lun", "ven", "dom", "gio"} and not self._is_name(at):
            return 0
        if word in DOUBTFUL and self._begins_a_phrase(at):
            return 0  # "Sun protection", where a capital says nothing
        days = {WEEKDAYS[word]}
        after = at + 1
        if self._at(after) == "." and len(word) <= 5:
            after += 1
        joint = self._at(after)
        if (joint in JOINTS or (joint == "and" and self._at(at - 1) == "between")) and self._at(after + 1) in WEEKDAYS:
            last = WEEKDAYS[self.words[after + 1]]
            day = WEEKDAYS[word]
            while day != last:
                days.add(day)
                day = (day + 1) % 7
            days.add(last)
            after += 2
        else:
            after = at + 1
        self._add(at, self.ends[after - 1], ValueKind.WEEKDAY, days=frozenset(days))
        return after

    def _begins_a_phrase(self, at: int) -> bool:
        """Whether a word stands first, before an ordinary word that does not go with a weekday."""
        following = self._at(at + 1)
        if (at and self.kinds[at - 1] != "s") or self.kinds[at + 1 : at + 2] != ["w"]:
            return False
        return self.text[self.starts[at + 1]].islower() and following not in (*JOINTS, *_AFTER_WEEKDAY)

    def _date_from(self, at: int) -> int:
        """Digits that begin a date: "15 January 1967", "the 1960s", "2016"."""
        literal = self.words[at]
        if not literal.isdecimal() or len(literal) > 4:
            return 0
        number, following = int(literal), self._at(at + 1)
        if len(literal) <= 2:
            month_at = at + 1
            while self._at(month_at) in ("st", "nd", "rd", "th", "er", "º", "°", ".", "of", "de") and month_at < at + 4:
                month_at += 1
            if self._at(month_at) in MONTHS and (self._at(month_at) not in _ENGLISH_VERBS or self._is_name(month_at)):
                return self._day_first(at, month_at, number)
            return 0
        if len(literal) != 4 or not is_year(number):
            return 0
        glued = self.low[self.ends[at] : self.ends[at] + 2]
        if (following == "s" and glued.startswith("s")) or (following == "'" and glued == "'s"):
            last = number + (99 if number % 100 == 0 and number < 1900 else 9)
            self._add(
                at, self.ends[at] + (1 if glued[0] == "s" else 2), ValueKind.DATE, dates=(year_date(number, last),)
            )
            return self._index_after(self.ends[at] + 2, at)
        return self._year(at, number)

    def _year(self, at: int, number: int) -> int:
        """A four-digit number that words beside it make a year; otherwise it may be both."""
        before, end = self._at(at - 1), self.ends[at]
        if unit_at(self.text, self.low, end)[0] or self._at(at + 1) in MAGNITUDES or before in UNITS:
            return 0
        if self._at(at + 1) in JOINTS and self._at(at + 2) and unit_at(self.text, self.low, self.ends[at + 2])[0]:
            return 0  # "around 1600-2200 calories"
        follows_noun = (
            self.kinds[at + 1 : at + 2] == ["w"]
            and self._at(at + 1) not in PLAIN_AFTER_YEAR
            and not self.text[self.starts[at + 1]].isupper()
        )
        if (before in _PLACE_WORDS and not follows_noun) or before in ("since", "year", "anno", "jahr", "عام", "سنة"):
            self._add(at, end, ValueKind.DATE, dates=(year_date(number),))
            return at + 1
        return 0

    def _clock(self, at: int) -> int:
        literal = self.words[at]
        if len(literal) > 5 or len(literal.partition(".")[0]) > 2:
            return 0
        if after := self._digital_span(at):
            return after
        read = clock_minutes(self.low[self.starts[at] : self.starts[at] + 24])
        if read is None:
            return 0
        times, length, certain = read
        end = self.starts[at] + length
        after = self._index_after(end, at)
        if not certain and not self._reads_as_clock(at, after, literal):
            return 0
        if not certain and literal.isdecimal():
            self._bare_hour(at, end, times, int(literal))
        else:
            self._add_time(at, end, times)
        return after

    def _digital_span(self, at: int) -> int:
        """A span of the 24-hour clock without leading zeros, as data dumps write it: "9:0-17:30"."""
        span = _SPAN.match(self.low, self.starts[at])
        if span is None or min(len(span[2]), len(span[4])) > 1:
            return 0
        hour, minute, hour_to, minute_to = (int(part) for part in span.groups())
        if max(hour, hour_to) > 24 or max(minute, minute_to) > 59:
            return 0
        times, times_to = day_times(hour, minute, "", True), day_times(hour_to, minute_to, "", True)
        self._add(at, span.end(), ValueKind.TIME, times=times, times_to=times_to)
        return self._index_after(span.end(), at)

    def _reads_as_clock(self, at: int, after: int, literal: str) -> bool:
        """Whether "9" or "9.30" stands where a time is expected."""
        in_span = bool(self.values and self.values[-1].times and self.values[-1].end >= self.starts[at] - 6)
        placed = self._at(at - 1) in CLOCK_WORDS or (in_span and self._at(at - 1) in (*JOINTS, "and"))
        opens_span = self._at(after) == "-" and _SPAN_REST.match(self.low, self.ends[after]) is not None
        if not (placed or opens_span):
            return False
        if "." in literal:
            return True
        if self._at(after) == "-":
            return opens_span or _PLAIN_SPAN.match(self.low, self.ends[after]) is not None
        if self._at(after) in (*JOINTS, "and") and _exceeds_a_day(self._at(after + 1)):
            return False  # "between 0 and 80 degrees"
        return self._ends_clause(after) or self._at(after) in JOINTS or opens_span

    def _bare_hour(self, at: int, end: int, times: tuple[int, ...], hour: int) -> None:
        """Add "until 5": an hour or a plain number."""
        amount = Decimal(hour)
        reading = Reading(dimension="count", low=amount, high=amount, step=ONE, digits=1)
        self._add_time(at, end, times, amount=amount, readings=(reading,))

    def _past(self, at: int) -> int:
        hour = ENGLISH.get(self._at(at + 2), 0)
        if hour == 0 and self._at(at + 2).isdecimal():
            hour = int(self._at(at + 2)[:2])
        if not 1 <= hour <= 12:
            return at + 1
        minutes = (30 if self.words[at] == "half" else 15) * (1 if self._at(at + 1) == "past" else -1)
        self._add_time(at, self.ends[at + 2], tuple((t + minutes) % 1440 for t in day_times(hour, 0, "")))
        return at + 3

    def _add_time(self, first: int, end: int, times: tuple[int, ...], **fields: Any) -> None:
        """Add a clock time, or close a span with the one before it."""
        last = self.values[-1] if self.values else None
        if last is not None and last.times and not last.times_to:
            between = self.low[last.end : self.starts[first]].split()
            if (
                between
                and len(between) <= 2
                and between[0] in (*JOINTS, "and")
                and (between[0] != "and" or "between" in self.low[max(0, last.start - 9) : last.start])
            ):
                readings = ranges(last.readings, fields.get("readings", ()))
                text = self.original[last.start : end]
                self.values[-1] = replace(
                    last, kind=ValueKind.TIME, text=text, end=end, times_to=times, readings=readings
                )
                return
        self._add(first, end, ValueKind.TIME, times=times, **fields)


def ranges(lows: tuple[Reading, ...], highs: tuple[Reading, ...]) -> tuple[Reading, ...]:
    """Readings of a range from the readings of its two ends."""
    return tuple(
        replace(low, high=high.low)
        for low in lows
        for high in highs
        if low.dimension == high.dimension and low.low < high.low
    )
