"""Pairs from invented records: labels and ranges belong together, and the same seed gives the same pairs."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest

from guardrail.training.pairs import LABELS, NOT_ENTAILMENT
from guardrail.training.record_business import Business, invent_business
from guardrail.training.record_claims import amenity, article, listed, marked, parking, rating
from guardrail.training.record_domains import entry_claim, invent_entry
from guardrail.training.record_hours import hours
from guardrail.training.record_opinions import praised, said_by_one
from guardrail.training.record_pairs import record_pairs, unmarked

PAIRS = list(record_pairs(1500, seed=3))


def business(**fields: object) -> Business:
    """A business with just these fields."""
    record = {
        "name": "Rosa",
        "city": "Reno",
        "state": "NV",
        "categories": "Thai, Restaurants",
        "attributes": {},
        **fields,
    }
    return Business(record=record, cuisine="Thai", noun="restaurant", reviews=())


def test_as_many_pairs_as_asked_for() -> None:
    assert len(PAIRS) == 1500
    assert list(record_pairs(0)) == []


def test_the_same_seed_gives_the_same_pairs() -> None:
    assert list(record_pairs(50, seed=3)) == PAIRS[:50]
    assert list(record_pairs(50, seed=4)) != PAIRS[:50]


def test_only_what_is_wrong_has_ranges() -> None:
    for pair in PAIRS:
        assert pair.label in (*LABELS, NOT_ENTAILMENT)
        assert pair.unsupported is not None
        assert bool(pair.unsupported) is (pair.label != "entailment"), pair.hypothesis
        for start, end in pair.unsupported:
            assert 0 <= start < end <= len(pair.hypothesis)
            assert pair.hypothesis[start:end].strip() == pair.hypothesis[start:end]
        assert not set("«»{}") & set(pair.hypothesis)


def test_about_half_is_faithful_and_every_label_occurs() -> None:
    labels = Counter(pair.label for pair in PAIRS)
    assert 0.42 < labels["entailment"] / len(PAIRS) < 0.58
    assert labels["contradiction"] > 150
    assert labels["neutral"] > 100
    assert labels[NOT_ENTAILMENT] > 10


def test_seven_in_ten_are_businesses() -> None:
    share = Counter(pair.source for pair in PAIRS)["records_business"] / len(PAIRS)
    assert 0.6 < share < 0.8


def test_sentences_differ() -> None:
    assert len({pair.hypothesis for pair in PAIRS}) > 1300


def test_prose_becomes_reviews() -> None:
    prose = ["I walked along the quay all morning. The gulls were stealing chips from a small boy."]
    assert any("gulls were stealing" in pair.premise for pair in record_pairs(200, prose=prose))


@pytest.mark.parametrize(
    ("text", "plain", "spans"),
    [
        ("It has «free» parking.", "It has free parking.", ((7, 11),)),
        ("«All» like «it».", "All like it.", ((0, 3), (9, 11))),
        ("Nothing.", "Nothing.", ()),
    ],
)
def test_marks_become_ranges(text: str, plain: str, spans: tuple[tuple[int, int], ...]) -> None:
    assert unmarked(text) == (plain, spans)


@pytest.mark.parametrize(
    ("phrase", "expected"),
    [
        ("offers delivery", "offers «delivery»"),
        ("does not deliver", "«does not deliver»"),
        ("has no TV", "«has no TV»"),
        ("is dog-friendly", "«is dog-friendly»"),
    ],
)
def test_what_a_phrase_asserts_is_marked(phrase: str, expected: str) -> None:
    assert marked(phrase) == expected


def test_lists_and_articles() -> None:
    assert [listed(["a"]), listed(["a", "b"], "or"), listed(["a", "b", "c"])] == ["a", "a or b", "a, b, and c"]
    assert [article("«Italian» restaurant"), article("casual place")] == ["an «Italian» restaurant", "a casual place"]


@pytest.mark.parametrize(
    ("value", "wrong"),
    [(True, "contradiction"), (False, "contradiction"), (None, "neutral"), ("free", "contradiction")],
)
def test_a_wrong_attribute_contradicts_unless_it_is_left_open(value: object, wrong: str) -> None:
    key = "WiFi" if value == "free" else "OutdoorSeating"
    claim = amenity(business(attributes={key: value}), random.Random(1), True)
    assert claim is not None
    assert claim.wrong == wrong
    assert "«" in claim.text


@pytest.mark.parametrize("seed", range(30))
def test_faithful_parking_names_what_there_is(seed: int) -> None:
    flags = {"garage": True, "street": False, "validated": False, "lot": False, "valet": False}
    claim = parking(business(attributes={"BusinessParking": flags}), random.Random(seed), False)
    assert claim is not None
    assert claim.wrong == ""
    assert "garage" in claim.text.split("not have")[0]


@pytest.mark.parametrize("seed", range(40))
def test_hours_are_read_on_a_clock_of_twelve(seed: int) -> None:
    record = dict.fromkeys(("Monday", "Tuesday", "Wednesday"), "11:0-21:30")
    claim = hours(business(hours=record), random.Random(seed), False)
    assert claim is not None
    assert "11" in claim.text or "9:30" in claim.text
    assert "Monday" in claim.text
    assert "Wednesday" in claim.text
    wrong = hours(business(hours=record), random.Random(seed), True)
    assert wrong is not None
    assert wrong.wrong == "contradiction"
    assert not wrong.text.count("«11") or "«11:00 AM»" not in wrong.text


def test_a_wrong_rating_is_another_rating() -> None:
    for seed in range(30):
        claim = rating(business(business_stars=3.5), random.Random(seed), True)
        assert claim is not None
        assert "«3.5»" not in claim.text


def test_an_inverted_review_is_not_held_by_anyone() -> None:
    rng = random.Random(5)
    for _ in range(200):
        b = invent_business(rng, ())
        text = json.dumps(b.record).lower()
        for maker in (said_by_one, praised):
            claim = maker(b, rng, True)
            if claim is not None:
                assert claim.wrong
                assert "«" in claim.text
                assert all(json.dumps(need.lower())[1:-1] in text for need in claim.needs if "review stars" not in need)


def test_entries_of_other_kinds_say_one_field() -> None:
    rng = random.Random(2)
    for bad in (True, False) * 100:
        claim = entry_claim(invent_entry(rng), rng, bad)
        assert bool(claim.wrong) is bad
        assert ("«" in claim.text) is bad
