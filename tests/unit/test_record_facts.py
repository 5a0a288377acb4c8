"""The leaves of structured passages, typed."""

from __future__ import annotations

from decimal import Decimal

import pytest

from guardrail.scoring.record_facts import FactKind, record_facts, typed
from guardrail.scoring.record_words import key_words


@pytest.mark.parametrize(
    ("value", "text", "kind"),
    [
        ("yes", False, FactKind.YES),
        ("no", False, FactKind.NO),
        ("True", True, FactKind.YES),
        ("u'no'", True, FactKind.NO),
        ("'free'", True, FactKind.YES),
        ("none", True, FactKind.NO),
        ("None", True, FactKind.UNKNOWN),
        ("not given", False, FactKind.UNKNOWN),
        ("N/A", True, FactKind.UNKNOWN),
        ("", True, FactKind.UNKNOWN),
        ("9am-5pm", True, FactKind.HOURS),
        ("11:00 - 14:00, 17:00 - 22:00", True, FactKind.HOURS),
        ("Closed", True, FactKind.HOURS),
        ("4.5", True, FactKind.NUMBER),
        ("-3", False, FactKind.NUMBER),
        ("nothing special", True, FactKind.TEXT),
        ("room 3 to 5 pm", True, FactKind.TEXT),
    ],
)
def test_kinds_of_values(value: str, text: bool, kind: FactKind) -> None:
    assert typed(value, text=text)[0] is kind


@pytest.mark.parametrize(
    ("value", "opens", "closes"),
    [
        ("11:0-21:0", {660}, {1260}),
        ("12:0-0:0", {720}, {0}),
        ("9am-5pm", {540}, {1020}),
        ("9:30 a.m. – 12 p.m.", {570}, {720}),
        ("9-5", {540}, {300, 1020}),
        ("noon to midnight", {720}, {0}),
        ("17:30-2:0", {1050}, {120, 840}),
    ],
)
def test_opening_times(value: str, opens: set[int], closes: set[int]) -> None:
    assert typed(value)[2] == ((frozenset(opens), frozenset(closes)),)


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("BusinessAcceptsCreditCards", ("business", "accept", "credit", "card")),
        ("dogs_allowed", ("dog", "allowed")),
        ("Wi-Fi", ("wifi",)),
        ("hasTV", ("has", "tv")),
        ("Wheelchair access", ("wheelchair", "accessible")),
        ("DriveThru", ("drivethrough",)),
        ("USB-C port", ("usb", "c", "port")),
    ],
)
def test_words_of_keys(key: str, words: tuple[str, ...]) -> None:
    assert key_words(key) == words


def test_facts_have_their_place_and_their_record() -> None:
    text = 'Listing: {"name": "Elm Inn", "parking": {"garage": true}, "stars": 4.0, "tags": ["quiet", "old"]}'
    facts = record_facts(text, source="p1")
    assert [text[fact.start : fact.end] for fact in facts] == [
        '"name": "Elm Inn"', '"garage": true', '"stars": 4.0', '"tags": ["quiet", "old"]'
    ]  # fmt: skip
    assert {(fact.subject, fact.record, fact.row, fact.source) for fact in facts} == {("Elm Inn", 0, False, "p1")}
    assert facts[1].path == (("parking",), ("garage",))
    assert facts[2].number == Decimal("4.0")
    assert facts[3].value == "quiet, old"


def test_rows_are_records_of_their_own() -> None:
    facts = record_facts(
        '{"name": "Elm Inn", "rooms": [{"name": "Attic", "tv": true}, {"name": "Cellar", "tv": null}]}'
    )
    assert [(f.subject, f.row, f.kind.value) for f in facts if f.path[-1] == ("tv",)] == [
        ("Attic", True, "yes"), ("Cellar", True, "unknown")
    ]  # fmt: skip
    lines = record_facts('{"name": "A1", "gps": true}\n{"name": "B2", "gps": false}\n')
    assert [(f.subject, f.row, f.record) for f in lines if f.path[-1] == ("gps",)] == [
        ("A1", False, 0),
        ("B2", False, 1),
    ]


def test_nested_text_of_an_object_is_read() -> None:
    facts = record_facts("""{"BusinessParking": "{'garage': False, 'street': True}", "WiFi": "u'free'"}""")
    assert [(f.path, f.kind.value) for f in facts] == [
        ((("business", "parking"), ("garage",)), "no"),
        ((("business", "parking"), ("street",)), "yes"),
        ((("wifi",),), "yes"),
    ]


def test_a_document_without_its_beginning() -> None:
    facts = record_facts('"OutdoorSeating": false, "HasTV": true}, "stars": 4.5}')
    assert [f.kind for f in facts] == [FactKind.NO, FactKind.YES, FactKind.NUMBER]


@pytest.mark.parametrize(
    "text",
    [
        "The hotel has a pool. Note: it closes at nine.",
        "Ingredients: flour.\nMix it well.\nBake it for an hour.\nServe it warm.",
        "See [1] and {this}.",
        "def f(x):\n    return {x: 1}\n",
        "{broken",
        "",
    ],
)
def test_prose_has_no_facts(text: str) -> None:
    assert record_facts(text) == ()
