"""Sentences about opening hours, faithful or with one error between « and »."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import groupby

from guardrail.training.record_business import DAYS, Business
from guardrail.training.record_claims import Claim, listed

_CLOCK_STYLES = 4


def hours(b: Business, rng: random.Random, bad: bool) -> Claim | None:
    """Opening hours: of a day, of a run of days, or of two runs.

    Args:
        b: The business.
        rng: Source of chance.
        bad: Whether to put in an error.

    Returns:
        The claim, or ``None`` if the record has no hours to speak of.
    """
    record = b.record.get("hours")
    if not record:
        return None
    runs = [(value, [d for d, _ in run]) for value, run in groupby(record.items(), key=lambda item: item[1])]
    given = [(value, days) for value, days in runs if value and "-" in value and _unbroken(days)]
    if not given:
        return None
    roll = rng.random()
    if roll < (0.12 if bad else 0.3) and (claim := _unlisted(record, rng, bad)):
        return claim
    if rng.random() < 0.25:
        return _one_end(*rng.choice(given), rng, bad)
    picked = rng.sample(given, min(len(given), rng.choice([1, 1, 2])))
    spoiled = rng.randrange(len(picked)) if bad else -1
    style = rng.randrange(_CLOCK_STYLES)
    parts: list[str] = []
    needs: list[str] = []
    for i, (value, days) in enumerate(picked):
        when, said = _days(days, rng), [_clock(part, style) for part in value.split("-")]
        needs += [_need(d, value) for d in days]
        if i == spoiled:
            others = [d for d, v in record.items() if v and "-" in v and v != value]
            if others and rng.random() < 0.4:
                other = rng.choice(others)
                needs.append(_need(other, record[other]))
                when = _wrong_days(days, other, rng)
            else:
                at = int(rng.random() < 0.6)
                said[at] = f"«{_clock(_wrong_time(value.split('-')[at], rng), style)}»"
        times = rng.choice(["from {} to {}", "{} to {}", "{} - {}", "from {} until {}"]).format(*said)
        parts.append(f"{times} {when}" if rng.random() < 0.7 else f"{when} {times}")
    text = f"{rng.choice(['is open', 'operates', 'is open'])} {listed(parts)}"
    return Claim(text=text, needs=tuple(needs), wrong="contradiction" if bad else "")


def _unlisted(record: dict[str, str | None], rng: random.Random, bad: bool) -> Claim | None:
    """Days without hours: their hours are not given; to say more is an error, as is a closed day that has hours."""
    without = [d for d, v in record.items() if v is None]
    if without:
        needs = tuple(_need(d, None) for d in without)
        if bad:
            return Claim(
                text=f"is open «{rng.choice(['seven days a week', 'every day'])}»", needs=needs, wrong="neutral"
            )
        text = rng.choice(["The hours for {} are not specified", "No hours are listed for {}"])
        return Claim(text=text.format(listed(without)), needs=needs, whole=True)
    closed = [d for d, v in record.items() if v == "Closed"]
    if not bad:
        day = rng.choice(closed) if closed else ""
        return Claim(text=f"is closed on {day}s", needs=(_need(day, "Closed"),)) if day else None
    day = rng.choice([d for d in record if d not in closed])
    return Claim(text=f"is «closed» on {day}s", needs=(_need(day, record[day]),), wrong="contradiction")


def _one_end(value: str, days: Sequence[str], rng: random.Random, bad: bool) -> Claim:
    at = rng.randrange(2)
    part = value.split("-")[at]
    said = _clock(_wrong_time(part, rng) if bad else part, rng.randrange(_CLOCK_STYLES))
    said = f"«{said}»" if bad else said
    when = _days(days, rng)
    needs = tuple(_need(d, value) for d in days)
    return Claim(text=f"{('opens', 'closes')[at]} at {said} {when}", needs=needs, wrong="contradiction" if bad else "")


def _need(day: str, value: str | None) -> str:
    return f"{day} {value or 'not given'}".lower()


def _unbroken(days: Sequence[str]) -> bool:
    first = DAYS.index(days[0])
    return tuple(days) == DAYS[first : first + len(days)]


def _days(days: Sequence[str], rng: random.Random) -> str:
    if tuple(days) == DAYS:
        return rng.choice(["every day", "daily", "seven days a week", "from Monday to Sunday"])
    if tuple(days) == DAYS[:5] and rng.random() < 0.6:
        return rng.choice(["on weekdays", "during the week", "Monday through Friday"])
    if tuple(days) == DAYS[5:] and rng.random() < 0.6:
        return rng.choice(["on weekends", "on Saturdays and Sundays"])
    if len(days) == 1:
        return f"on {days[0]}s"
    if len(days) == 2:
        return f"on {days[0]} and {days[1]}"
    return rng.choice(["from {} to {}", "{} through {}", "{} to {}"]).format(days[0], days[-1])


def _wrong_days(days: Sequence[str], other: str, rng: random.Random) -> str:
    """Days with one among them that has other hours."""
    if DAYS.index(other) > DAYS.index(days[-1]):
        return rng.choice(["from {} to «{}»", "{} through «{}»"]).format(days[0], other)
    if DAYS.index(other) < DAYS.index(days[0]):
        return rng.choice(["from «{}» to {}", "«{}» through {}"]).format(other, days[-1])
    return f"on «{other}s»"


def _clock(value: str, style: int) -> str:
    hour, minute = (int(part) for part in value.split(":"))
    half, short = ("AM" if hour < 12 else "PM"), f"{(hour - 1) % 12 + 1}"
    digits = f"{short}:{minute:02}" if minute or style < 2 else short
    return [f"{digits} {half}", f"{digits} {half[0].lower()}.m.", f"{digits} {half}", f"{digits}{half.lower()}"][style]


def _wrong_time(value: str, rng: random.Random) -> str:
    hour, minute = (int(part) for part in value.split(":"))
    return f"{rng.choice([(hour + 12) % 24, (hour + 1) % 24, hour - 1, (hour + 2) % 24])}:{minute}"
