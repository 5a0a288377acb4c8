from __future__ import annotations

import time
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guardrail.text.values import Value, ValueKind, compatible, parse_values


def only(text: str) -> Value:
    values = parse_values(text)
    assert len(values) == 1, values
    return values[0]


def amounts(text: str) -> set[Decimal]:
    return {reading.low for reading in only(text).readings}


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("holds 12,480 photographs", 12480),
        ("holds 12 480 photographs", 12480),
        ("holds 12\u202f480 photographs", 12480),
        ("holds 12'480 photographs", 12480),
        ("la rete conta 23.940 abbonati", 23940),
        ("sie fasst 2.400 Besucher", 2400),
        ("a total of 12,34,567 rupees", 1234567),
        ("a total of 890.500.000 units", 890500000),
        ("1.234.567,89 in total", "1234567.89"),
        ("**912** million people", 912_000_000),
        ("2.7K users", 2700),
        ("3.2 million litres", 3_200_000),
        ("nine hundred and ninety-nine million people", 999_000_000),
        ("twenty-five thousand visitors", 25_000),
        ("two hundred and five people", 205),
        ("a dozen eggs", 12),
        ("a hundred people", 100),
        ("einundzwanzig Besucher und die Kinder", 21),
        ("i ventitré abitanti della valle", 23),
        ("40 ألف كتاب", 40_000),
        ("عدد ١٩٨ كتاب", 198),
        ("１２ people", 12),
        ("共有三层展厅", 3),
        ("大约500人", 500),
        ("3万人", 30_000),
        ("1.2亿元", 120_000_000),
        ("2½ cups of it", "2.5"),
        ("-5 points", -5),
    ],
)
def test_amounts(text: str, amount: int | str) -> None:
    assert Decimal(amount) in amounts(text)


def test_an_ambiguous_point_keeps_both_readings_in_unknown_language_only() -> None:
    assert amounts("| 23.940 |") == {Decimal("23.940"), Decimal(23940)}
    assert amounts("a dose of 2.500 mg is given") == {Decimal("0.0025")}
    assert amounts("il totale è di 2.500 abbonati") == {Decimal(2500)}


@pytest.mark.parametrize(
    ("text", "kind", "unit"),
    [
        ("12%", ValueKind.PERCENT, "%"),
        ("twelve per cent", ValueKind.PERCENT, "%"),
        ("5 percentage points", ValueKind.QUANTITY, "pp"),
        ("$890M", ValueKind.MONEY, "USD"),
        ("USD 890,000,000", ValueKind.MONEY, "USD"),
        ("€ 5.5bn", ValueKind.MONEY, "EUR"),
        ("3 milioni di euro", ValueKind.MONEY, "EUR"),
        ("5 Mio. Euro", ValueKind.MONEY, "EUR"),
        ("2.5 mg", ValueKind.QUANTITY, "mg"),
        ("100 IU/ml", ValueKind.QUANTITY, "IU/ml"),
        ("60 km/h", ValueKind.QUANTITY, "km/h"),
        ("21 °C", ValueKind.QUANTITY, "°C"),
        ("a 2-year warranty", ValueKind.QUANTITY, "year"),
        ("512 GB", ValueKind.QUANTITY, "GB"),
        ("150 m (see below)", ValueKind.QUANTITY, "m"),
        ("+1 555 0100", ValueKind.PHONE, ""),
        ("help@example.org", ValueKind.EMAIL, ""),
        ("https://docs.example.org/setup.", ValueKind.URL, ""),
        ("see [guide](https://docs.example.org/setup).", ValueKind.URL, ""),
        ("v2.1.3", ValueKind.VERSION, ""),
        ("run `tidekit init` now", ValueKind.CODE, ""),
        ("the third floor", ValueKind.ORDINAL, ""),
    ],
)
def test_kinds_and_units(text: str, kind: ValueKind, unit: str) -> None:
    value = only(text)
    assert (value.kind, value.unit) == (kind, unit)


@pytest.mark.parametrize(
    "text",
    [
        "The dam is high [1].",
        "The dam is high [2, 3] and [C1].",
        "1. The dam is high.",
        "- The dam is high",
        "## 2. Summary",
        "Model A1 and B2, COVID-19, 3D, 5G",
        "one of the best, no one",
        "in their 20s",
    ],
)
def test_marks_and_names_are_no_values(text: str) -> None:
    assert parse_values(text) == ()


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("between 80% and 90%", "0.8", "0.9"),
        ("5-10 mg", "0.005", "0.010"),
        ("5 to 10 mg", "0.005", "0.010"),
        ("2 to 3 million people", "2000000", "3000000"),
        ("-10 to -5 °C", "263.15", "268.15"),
        ("100,000–200,000 visitors", "100000", "200000"),
    ],
)
def test_ranges(text: str, low: str, high: str) -> None:
    reading = only(text).readings[0]
    assert (reading.low, reading.high) == (Decimal(low), Decimal(high))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("about 5,000", (True, False, None, False)),
        ("exactly 5,000", (False, True, None, False)),
        ("at least 5,000", (False, False, "min", False)),
        ("more than 5,000", (False, False, "min", True)),
        ("up to 5,000", (False, False, "max", False)),
        ("less than 5,000", (False, False, "max", True)),
        ("no more than 5,000", (False, False, "max", False)),
        ("must not exceed 5,000", (False, False, "max", False)),
        ("5,000 or more", (False, False, "min", False)),
        ("5,000+", (False, False, "min", False)),
        ("~5,000", (True, False, None, False)),
        ("over a million", (False, False, "min", False)),
    ],
)
def test_qualifiers(text: str, expected: tuple[bool, bool, str | None, bool]) -> None:
    value = only(text)
    assert (value.approximate, value.exact, value.bound, value.strict) == expected


@pytest.mark.parametrize(
    ("claim", "evidence", "expected"),
    [
        ("2.50 mg", "2.5 mg", True),
        ("25 mg", "2.5 mg", False),
        ("2,500 µg", "2.5 mg", True),
        ("13 mg", "12.5 mg", False),
        ("10 miles", "10 km", False),
        ("about 6.2 miles", "10 km", True),
        ("492 feet", "150 m", True),
        ("492 metres", "150 m", False),
        ("392 °F", "200 °C", True),
        ("about 5,000", "4,987", True),
        ("exactly 5,000", "4,987", False),
        ("5,000", "4,987", False),
        ("4,987", "about 5,000", None),
        ("85%", "85.19%", True),
        ("86%", "85.19%", False),
        ("1.25%", "12.5%", False),
        ("16", "15", False),
        ("above 85%", "81%", False),
        ("above 85%", "88.5%", True),
        ("between 80% and 90%", "84%", True),
        ("between 80% and 90%", "94%", False),
        ("12 euro", "12%", None),
        ("12 euro", "12 dollars", None),
        ("$890M", "USD 890,000,000", True),
        ("twelve per cent", "12%", True),
        ("half of it", "50%", True),
        ("two weeks", "14 days", True),
        ("2.5 hours", "2 h 30 min", True),
        ("25 basis points", "0.25 percentage points", True),
        ("twice", "two times", True),
        ("+1-555-0100", "+1 555 0100", True),
        ("+1 555 0199", "+1 555 0100", False),
        ("(555) 010-0100", "+1 555 010 0100", True),
        ("at least 18 years", "at least 21 years", False),
        ("up to 10 MB", "10 MB", True),
        ("20 MB", "up to 10 MB", False),
        ("4.2 million", "4,187,320", True),
        ("150 m people", "150 million people", True),
        ("150 m tall", "150 million", None),
    ],
)
def test_compatible(claim: str, evidence: str, expected: bool | None) -> None:
    assert compatible(only(claim), only(evidence)) is expected


_PIECES = st.lists(
    st.sampled_from(
        "12,480 2.5 23.940 1.2.3 mg km % $ € 5 - – "
        "to between and 9:30 15/01/1967 January May 2016 three hundred twenty-five "
        "thousand million half quarter past of about at least Mon Fri a.m. ½ 三 层 "
        "万 ١٩ ألف [1] ** `x` +1 555 0100 s th / m K "
        "2. i.e. https://a.example/b a@b.example v1.2 .. , ( ) | \n".split(" ")
    ),
    max_size=14,
)


@settings(max_examples=400)
@given(st.one_of(st.text(), _PIECES.map(" ".join), _PIECES.map("".join)))
def test_parsing_never_fails_and_spans_lie_in_order(text: str) -> None:
    values = parse_values(text)
    assert all(0 <= v.start < v.end <= len(text) and v.text == text[v.start : v.end] for v in values)
    assert [v.start for v in values] == sorted(v.start for v in values)
    for value in values:
        assert compatible(value, value) is not False


@settings(max_examples=200)
@given(st.decimals(min_value=0, max_value=10**9, places=2), st.decimals(min_value=0, max_value=10**9, places=2))
def test_exact_values_compare_the_same_both_ways(one: Decimal, other: Decimal) -> None:
    left, right = only(f"exactly {one} km"), only(f"exactly {other} km")
    assert compatible(left, right) is compatible(right, left) is (one == other)


@pytest.mark.parametrize(
    "piece",
    [
        "1 ",
        "111'",
        "111 ",
        "1a",
        "_",
        "a_",
        "*1",
        "万",
        "1万",
        "一",
        "one ",
        "twenty-",
        "a.",
        "a@",
        "[1,",
        "`",
        "+1 ",
        "5-",
        "5 to ",
    ],
)
def test_the_time_to_parse_grows_linearly(piece: str) -> None:
    def seconds(count: int) -> float:
        text = piece * count + "x"
        best = float("inf")
        for _ in range(3):
            start = time.thread_time()  # of this thread alone: other load on the machine does not count
            parse_values(text)
            best = min(best, time.thread_time() - start)
        return best

    seconds(200)
    # A burst of noise passes; work that grows with the square of the length is above the bound every time.
    assert any(seconds(8000) < 8 * 4 * seconds(1000) + 0.02 for _ in range(3))
