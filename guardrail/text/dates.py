"""Calendar dates, weekdays and clock times, in full or in part."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_MONTH_NAMES = (
    "january jan gennaio genn januar jänner janvier janv enero ene يناير",
    "february feb febbraio febbr februar février févr febrero فبراير",
    "march mar marzo märz mars مارس",
    "april apr aprile avril avr abril أبريل إبريل",
    "may maggio magg mai mayo مايو",
    "june jun giugno giu juni juin junio يونيو",
    "july jul luglio lug juli juillet juil julio يوليو",
    "august aug agosto ago août أغسطس",
    "september sept sep settembre sett septembre septiembre سبتمبر",
    "october oct ottobre ott oktober okt octobre octubre أكتوبر",
    "november nov novembre noviembre نوفمبر",
    "december dec dicembre dic dezember dez décembre déc diciembre ديسمبر",
)
_WEEKDAY_NAMES = (
    "monday mon mondays lunedì lunedi lun montag montags lundi lunes الاثنين الإثنين 星期一 周一",
    "tuesday tue tues tuesdays martedì martedi dienstag dienstags mardi martes الثلاثاء 星期二 周二",
    "wednesday wed wednesdays mercoledì mercoledi mercredi mittwoch mittwochs miércoles الأربعاء 星期三 周三",
    "thursday thu thur thurs thursdays giovedì giovedi gio donnerstag donnerstags jeudi jueves الخميس 星期四 周四",
    "friday fri fridays venerdì venerdi freitag freitags vendredi viernes الجمعة 星期五 周五",
    "saturday sat saturdays sabato sab samstag samstags sonnabend samedi sábado السبت 星期六 周六",
    "sunday sun sundays domenica domeniche sonntag sonntags dimanche domingo الأحد 星期日 星期天 周日",
)
MONTHS: dict[str, int] = {name: n for n, names in enumerate(_MONTH_NAMES, start=1) for name in names.split()}
WEEKDAYS: dict[str, int] = {name: n for n, names in enumerate(_WEEKDAY_NAMES) for name in names.split()}
DAY_GROUPS: dict[str, frozenset[int]] = {
    "weekdays": frozenset(range(5)),
    "weekend": frozenset((5, 6)),
    "weekends": frozenset((5, 6)),
    "daily": frozenset(range(7)),
}
# Everyday words too: a month or a weekday only with a capital letter, and next to a day, a year or a preposition.
DOUBTFUL = frozenset(
    {"may", "mar", "march", "mars", "sun", "sat", "wed", "mon", "mai", "ago", "gio", "ene", "dec", "dic"}
)

FIRST_YEAR, LAST_YEAR = 1000, 2199
_DAYS_IN_MONTH = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialDate:
    """A date of which parts may be unknown.

    Attributes:
        year: First year it can mean; ``None`` if no year is given.
        last_year: Last year it can mean: differs from ``year`` for a decade or a century.
        month: 1 to 12.
        day: 1 to 31.
    """

    year: int | None = None
    last_year: int | None = None
    month: int | None = None
    day: int | None = None

    def shares_a_field(self, other: PartialDate) -> bool:
        """Whether both dates give a year, both a month or both a day."""
        return any(
            mine is not None and its is not None
            for mine, its in ((self.year, other.year), (self.month, other.month), (self.day, other.day))
        )

    def agrees(self, other: PartialDate) -> bool:
        """Whether no part that both give differs."""
        if self.year is not None and other.year is not None:
            low, high = max(self.year, other.year), min(self.last_year or self.year, other.last_year or other.year)
            if low > high:
                return False
        return all(
            mine is None or its is None or mine == its
            for mine, its in ((self.month, other.month), (self.day, other.day))
        )

    def is_within(self, other: PartialDate) -> bool:
        """Whether ``other`` gives every part that this date gives."""
        return all(
            mine is None or its is not None
            for mine, its in ((self.year, other.year), (self.month, other.month), (self.day, other.day))
        )


def year_date(year: int, last_year: int | None = None) -> PartialDate:
    """A date that is known to the year, or to a span of years."""
    return PartialDate(year=year, last_year=last_year or year)


def is_year(number: int) -> bool:
    """Whether a four-digit number can be a calendar year."""
    return FIRST_YEAR <= number <= LAST_YEAR


def is_day(number: int, month: int | None = None) -> bool:
    """Whether a number can be a day of the month."""
    return 1 <= number <= (_DAYS_IN_MONTH[month - 1] if month else 31)


def numeric_dates(text: str) -> tuple[PartialDate, ...]:
    """Read a date in digits: ``1967-01-15``, ``15/01/1967``, ``15.1.67``.

    Day and month are taken in both orders where both are possible; points mean day first.

    Args:
        text: Three groups of digits with the same separator.

    Returns:
        The possible dates, likeliest first; empty if it is none.

    Example:
        >>> [(d.day, d.month) for d in numeric_dates("03/04/2020")]
        [(3, 4), (4, 3)]
    """
    parts = re.split(r"[/.\-]", text)
    if len(parts) != 3 or not all(part.isdecimal() for part in parts):
        return ()
    first, second, third = (int(part) for part in parts)
    if len(parts[0]) == 4:
        return _dates(first, ((second, third),))
    if len(parts[2]) not in (2, 4) or max(len(parts[0]), len(parts[1])) > 2:
        return ()
    year = third if len(parts[2]) == 4 else third + (2000 if third < 50 else 1900)
    orders = ((second, first),) if "." in text else ((second, first), (first, second))
    return _dates(year, orders)


def _dates(year: int, orders: Iterable[tuple[int, int]]) -> tuple[PartialDate, ...]:
    return tuple(
        PartialDate(year=year, last_year=year, month=month, day=day)
        for month, day in dict.fromkeys(orders)
        if is_year(year) and 1 <= month <= 12 and is_day(day, month)
    )


# ------------------------------------------------------------------ clock

NAMED_TIMES: dict[str, int] = {
    "noon": 720,
    "midday": 720,
    "midnight": 0,
    "mezzogiorno": 720,
    "mezzanotte": 0,
    "mittag": 720,
    "mitternacht": 0,
    "midi": 720,
    "minuit": 0,
}
_CLOCK = re.compile(
    r"(?P<h>\d{1,2})(?:(?P<sep>[:.h])(?P<m>\d{2}))?(?::\d{2})?"
    r"[ ]?(?P<half>[ap]\.?[ ]?m\b\.?)?(?P<mark>[ ]?(?:uhr|o'clock|heures|hrs)\b|[点時时])?"
)


def clock_minutes(text: str) -> tuple[tuple[int, ...], int, bool] | None:
    """Read a time of day at the start of a text.

    Args:
        text: Lower-case text that starts with a digit.

    Returns:
        Minutes after midnight (two values if morning or evening is open), the length of what was read, and
        whether it is certain to be a time; ``None`` if it cannot be one.

    Example:
        >>> clock_minutes("9:30 a.m. sharp")
        ((570,), 9, True)
        >>> clock_minutes("9.30")
        ((570, 1290), 4, False)
    """
    match = _CLOCK.match(text)
    if match is None:
        return None
    after = text[match.end() : match.end() + 2]
    if after[:1].isdecimal() or after[:1] == "%" or (after[:1] in ".,:" and after[1:].isdecimal()):
        return None
    hour, minute = int(match["h"]), int(match["m"] or 0)
    if hour > 24 or minute > 59:
        return None
    certain = bool(match["half"] or match["mark"] or match["sep"] == ":" or match["sep"] == "h")
    half = match["half"]
    return (
        day_times(hour, minute, half[0] if half else "", match["h"].startswith("0")),
        len(match.group().rstrip()),
        certain,
    )


def day_times(hour: int, minute: int, half: str, leading_zero: bool = False) -> tuple[int, ...]:
    """Minutes after midnight of an hour and minute.

    Args:
        hour: 0 to 24.
        minute: 0 to 59.
        half: ``"a"``, ``"p"`` or ``""`` if it is not said.
        leading_zero: ``09:30`` is the 24-hour clock.

    Returns:
        One value, or two where morning or evening is open.
    """
    if half and 1 <= hour <= 12:
        return ((hour % 12 + (12 if half == "p" else 0)) * 60 + minute,)
    at = hour % 24 * 60 + minute
    if 1 <= hour <= 12 and not leading_zero:
        return (at, (at + 720) % 1440)
    return (at,)
