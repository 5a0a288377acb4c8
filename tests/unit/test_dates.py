from __future__ import annotations

import pytest

from guardrail.text.dates import PartialDate, clock_minutes, numeric_dates
from guardrail.text.values import Value, ValueKind, compatible, parse_values


def only(text: str) -> Value:
    values = parse_values(text)
    assert len(values) == 1, values
    return values[0]


def date(year: int | None = None, month: int | None = None, day: int | None = None) -> PartialDate:
    return PartialDate(year=year, last_year=year, month=month, day=day)


@pytest.mark.parametrize(
    "text",
    [
        "on January 15, 1967",
        "on Jan 15, 1967",
        "on Jan. 15, 1967",
        "on 15 January 1967",
        "on the 15th of January, 1967",
        "on 15/01/1967",
        "on 1967-01-15",
        "am 15. Januar 1967",
        "il 15 gennaio 1967",
        "le 15 janvier 1967",
        "el 15 de enero de 1967",
        "1967年1月15日",
    ],
)
def test_one_day_in_many_notations(text: str) -> None:
    assert only(text).dates[0] == date(1967, 1, 15)


def test_day_and_month_in_either_order() -> None:
    assert set(numeric_dates("03/04/2020")) == {date(2020, 4, 3), date(2020, 3, 4)}
    assert numeric_dates("03.04.2020") == (date(2020, 4, 3),)
    assert numeric_dates("31/02/2020") == ()


@pytest.mark.parametrize(
    ("claim", "evidence", "expected"),
    [
        ("in 1967", "on January 15, 1967", True),
        ("in January 1967", "on January 15, 1967", True),
        ("on January 15, 1967", "in 1967", None),
        ("on January 16, 1967", "on January 15, 1967", False),
        ("am 3. Juli 2011", "am 3. Juni 2011", False),
        ("on 4 March 2020", "on 03/04/2020", True),
        ("in the 1960s", "in 1967", True),
        ("in the 1970s", "in 1967", False),
        ("in the 20th century", "in 1967", True),
        ("in May", "in 1967", None),
        ("a gennaio", "in January", True),
    ],
)
def test_comparing_dates(claim: str, evidence: str, expected: bool | None) -> None:
    assert compatible(only(claim), only(evidence)) is expected


@pytest.mark.parametrize("text", ["You may go.", "They march on.", "The sun sat low.", "The second one"])
def test_everyday_words_are_no_dates(text: str) -> None:
    assert not any(value.kind in (ValueKind.DATE, ValueKind.WEEKDAY) for value in parse_values(text))


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("Mon–Fri", {0, 1, 2, 3, 4}),
        ("Monday to Saturday", {0, 1, 2, 3, 4, 5}),
        ("every Monday", {0}),
        ("on Sundays", {6}),
        ("il martedì", {1}),
        ("montags", {0}),
        ("le samedi", {5}),
        ("Friday to Monday", {4, 5, 6, 0}),
        ("on weekdays", {0, 1, 2, 3, 4}),
        ("星期一", {0}),
    ],
)
def test_weekdays(text: str, days: set[int]) -> None:
    assert only(text).days == days


@pytest.mark.parametrize(
    ("claim", "evidence", "expected"),
    [
        ("opens at ten", "opens at 10:00", True),
        ("opens at 9 a.m.", "opens at 9.30 am", False),
        ("opens at 9.30", "opens at 9:30 a.m.", True),
        ("at 9 pm", "at 9 am", False),
        ("at noon", "at 12:00", True),
        ("at half past nine", "at 9:30", True),
        ("9:00–17:00", "from 9 to 17", True),
        ("10:00–16:00", "10:00–14:00", False),
        ("11:30 a.m. to 9 p.m.", "11:30-21:0", True),
        ("9 am to 6 pm", "9:0-17:0", False),
        ("until 17:00", "9:00–17:00", True),
        ("at 12:00", "9:00–17:00", None),
        ("dalle 7 alle 19", "from 7 am to 7 pm", True),
    ],
)
def test_clock_times(claim: str, evidence: str, expected: bool | None) -> None:
    assert compatible(only(claim), only(evidence)) is expected


def test_a_clock_needs_sixty_minutes() -> None:
    assert clock_minutes("9:75") is None
    assert clock_minutes("25:00") is None
