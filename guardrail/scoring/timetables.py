"""Opening hours of a record, told as people tell them: one sentence for the week instead of a line per day."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby

from guardrail.scoring.json_reader import NOT_GIVEN

WEEK = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_DAY_OF = {name[:length].casefold(): day for day, name in enumerate(WEEK) for length in (3, 4, 5, len(name))}
_SPAN = re.compile(r"\s*(\d{1,2}):(\d{1,2})\s*[-–—]\s*(\d{1,2}):(\d{1,2})\s*")
_CLOSED = "closed"
_LEAST_DAYS = 2
_NOON, _HOURS = 12, 24


def timetable(fields: Sequence[tuple[str, str]]) -> str:
    """Tell the hours of a week, if that is what some fields are.

    Neighbouring days with the same hours are told together, days without hours are named, and how many days there are
    is said: what an answer concludes from such a list then stands in its evidence. Times are told in halves of the day
    if the list counts to 24, as answers do; "9:00-5:00" is left as it is.

    Args:
        fields: Keys and values in order.

    Returns:
        The wording; empty if a key is no English weekday or a value no span of hours.

    Example:
        >>> timetable([("Monday", "11:0-21:30"), ("Tuesday", "11:0-21:30"), ("Friday", "11:0-0:0")])
        'Monday and Tuesday 11 AM to 9:30 PM, Friday 11 AM to midnight, none on Wednesday, Thursday, Saturday and \
Sunday (3 days a week)'
        >>> timetable([("Monday", "9:00-5:00"), ("Saturday", "closed")])
        'Monday 9:00 to 5:00, none on Tuesday to Sunday (1 day a week)'
        >>> timetable([("weekdays", "9-17")])
        ''
    """
    spans: dict[int, str] = {}
    for key, value in fields:
        day = _DAY_OF.get(key.strip().rstrip(".").casefold())
        known = _SPAN.fullmatch(value) or value.strip().casefold() in (_CLOSED, NOT_GIVEN)
        if day is None or day in spans or not known:
            return ""
        spans[day] = value.strip()
    if len(spans) < _LEAST_DAYS or not any(map(_SPAN.fullmatch, spans.values())):
        return ""
    matches = filter(None, map(_SPAN.fullmatch, spans.values()))
    halves = any(int(hour) > _NOON for match in matches for hour in match.group(1, 3))
    told = [_told(spans.get(day, _CLOSED), halves=halves) for day in range(7)]
    parts = [f"{_days(list(days))} {hours}" for hours, days in groupby(range(7), key=told.__getitem__) if hours]
    without = [day for day in range(7) if not told[day]]
    if without:
        parts.append(f"none on {_days(without)}")
    if NOT_GIVEN in told:
        return ", ".join(parts)
    count = 7 - len(without)
    return f"{', '.join(parts)} ({count} {'day' if count == 1 else 'days'} a week)"


def _told(span: str, *, halves: bool) -> str:
    match = _SPAN.fullmatch(span)
    if match is None:
        return NOT_GIVEN if span.casefold() == NOT_GIVEN else ""
    opens, closes = match.group(1, 2), match.group(3, 4)
    if opens == closes:
        return span  # "0:0-0:0" is always open, or not known
    return f"{_time(*opens, halves=halves)} to {_time(*closes, halves=halves)}"


def _time(hour: str, minute: str, *, halves: bool) -> str:
    at, past = int(hour), int(minute)
    if not halves or at > _HOURS:
        return f"{at}:{past:02}"
    if not past and at in (0, _NOON, _HOURS):
        return "noon" if at == _NOON else "midnight"
    half = "PM" if _NOON <= at < _HOURS else "AM"
    return f"{(at - 1) % _NOON + 1}{f':{past:02}' if past else ''} {half}"


def _days(days: Sequence[int]) -> str:
    """Days of a week in order: three or more that follow each other as "Monday to Wednesday"."""
    runs = [[day for _, day in run] for _, run in groupby(enumerate(days), key=lambda pair: pair[1] - pair[0])]
    parts: list[str] = []
    for run in runs:
        names = [WEEK[day] for day in run]
        parts += [f"{names[0]} to {names[-1]}"] if len(names) > 2 else names
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
