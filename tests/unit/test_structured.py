"""Passages that are not prose, read as sentences that name what they speak of."""

from __future__ import annotations

import json

import pytest

from guardrail.scoring.json_units import label_of
from guardrail.scoring.structured import units
from guardrail.text.segmenter import segment


def said(text: str) -> list[str]:
    return [unit.said for unit in units(text) or []]


def pieces(text: str) -> list[str]:
    return [text[unit.start : unit.end] for unit in units(text) or []]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"hours": {"Monday": "17:30-23:0"}}', ["hours Monday: 17:30-23:0."]),
        (
            '{"name": "Elm", "hours": {"Friday": "17:30-0:0", "Saturday": "17:30-0:0", "Sunday": null}}',
            [
                "name: Elm.",
                "Elm, hours: Friday and Saturday 5:30 PM to midnight, Sunday not given, none on Monday to Thursday.",
            ],
        ),
        ('{"hours": {"Monday": "9-17", "noon": "shut"}}', ["hours: Monday 9-17, noon shut."]),
        (
            '{"attributes": {"Parking": {"garage": true, "lot": false, "valet": null}}}',
            ["attributes Parking: garage yes, lot no, valet not given."],
        ),
        (
            '[{"model": "A1", "price": "59 EUR"}, {"model": "B2", "price": 84.50}]',
            ["model A1: price 59 EUR.", "model B2: price 84.50."],
        ),
        (
            '{"model": "A1", "price": 59}\n{"model": "B2", "price": 84}\n',
            ["model A1: price 59.", "model B2: price 84."],
        ),
        ('{"name": "Elm & Oak", "city": "Turin", "seats": 40}', ["Elm & Oak: city Turin, seats 40."]),
        ('[{"name": "A1", "specs": {"power": "900 W"}}]', ["name: A1.", "A1, specs: power 900 W."]),
        ('[{"day": "Monday", "open": 9}]', ["day Monday: open 9."]),
        ('{"tags": ["quiet", "green"], "stars": 4.0}', ["tags: quiet, green.", "stars: 4.0."]),
        ('{"city": "Turin", "dishes": "agnolotti, bagna cauda"}', ["city: Turin; dishes: agnolotti, bagna cauda."]),
        ("{'Parking': {'garage': False, 'lot': None}}", ["Parking: garage no, lot not given."]),
        ("{\"parking\": \"{'garage': False, 'lot': True}\"}", ["parking: garage no, lot yes."]),
        ('The record: {"seats": 40, "stars": 4}', ["The record: seats 40, stars 4."]),
        ('```json\n{"seats": 40}\n```', ["seats: 40."]),
        ('{"size": -1.5e3, "phone": ""}', ["size: -1.5e3, phone: not given."]),
    ],
)
def test_json(text, expected):
    assert said(text) == expected


def test_offsets_of_a_group_run_from_the_first_key_to_the_last_value():
    text = '{\n "a": 1,\n "b": "x",\n "c": {"d": true}\n}'
    assert pieces(text) == ['"a": 1,\n "b": "x"', '"d": true']


def test_a_large_object_is_cut_into_facts_that_keep_their_subject():
    record = {"name": "Elm", "hours": {f"day {i}": f"{i}:00 to {i + 8}:00 sharp" for i in range(12)}}
    found = said(json.dumps(record))
    assert len(found) > 3
    assert all(len(sentence.split()) <= 30 for sentence in found)
    assert all(sentence.startswith("Elm, hours: ") for sentence in found[1:])


def test_a_long_text_is_cut_into_sentences_with_offsets_through_escapes():
    review = 'The "mimosa" was good \u2014 really. We paid 16 \u20ac each.\nOur server was kind.'
    text = json.dumps({"review_text": review, "stars": 5})
    assert said(text) == [
        'review text: The "mimosa" was good — really.',
        "We paid 16 € each.",
        "Our server was kind.",
        "stars: 5.",
    ]
    assert pieces(text)[:3] == [
        'The \\"mimosa\\" was good \\u2014 really.',
        "We paid 16 \\u20ac each.",
        "Our server was kind.",
    ]


def test_the_sentences_of_a_named_row_stay_with_it():
    rows = [{"name": "A1", "text": "It is light and small. It costs 59 EUR."}, {"name": "B2", "text": "It is heavy."}]
    assert said(json.dumps(rows))[1:3] == ["A1, text: It is light and small.", "A1: It costs 59 EUR."]


def test_escaped_pairs_are_one_character_and_halves_are_replaced():
    assert said('{"a": "\\ud83c\\udf89", "b": "\\ud83c"}') == ["a: 🎉, b: \ufffd."]


def test_a_document_that_the_end_of_the_passage_cuts_is_read_as_far_as_it_goes():
    assert said('{"name": "Elm", "hours": {"Monday": "9-17", "Tuesday": "9-1') == [
        "name: Elm.",
        "Elm, hours: Monday 9-17.",
    ]


def test_a_document_whose_beginning_is_missing_is_read_from_the_first_key():
    text = '  "Tuesday": "9-17",\n  "Friday": "9-12"\n },\n "attributes": {\n  "OutdoorSeating": true\n }\n}'
    assert said(text) == ["Tuesday: 9-17, Friday: 9-12.", "attributes outdoor seating: yes."]


@pytest.mark.parametrize(
    "text",
    [
        "[1]",
        "[1] Smith, J. A study of goats.",
        "{}",
        "[]",
        '{"a": }',
        '{"a": 1.2.3}',
        '{"a" 1}',
        '{"a": [1, 2}',
        "[see the appendix]",
        '"The Raven": a poem of 1845.',
        '{"a": "\t"}',
    ],
)
def test_what_only_looks_like_json_is_prose(text):
    assert units(text) is None


def test_json_too_deep_to_be_data_is_prose():
    assert units("[" * 100 + "1" + "]" * 100) is None


def test_keys_are_read_as_words():
    keys = ["OutdoorSeating", "business_stars", "user.name", "HTMLPage", "HasTV", "iPhone", "WiFi", "v1.2", "Max. load"]
    assert [label_of(key) for key in keys] == [
        "outdoor seating",
        "business stars",
        "user name",
        "HTML page",
        "has TV",
        "iPhone",
        "WiFi",
        "v1.2",
        "Max. load",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "| Model | Power | Price |\n|---|---|---|\n| A1 | 900 W | 59 EUR |\n| B2 | 1200 W | 84 EUR |",
            ["Model A1: Power 900 W, Price 59 EUR.", "Model B2: Power 1200 W, Price 84 EUR."],
        ),
        ("Model | Price\n--- | ---\nA1 | 59", ["Model A1: Price 59."]),
        ("| | Basic | Pro |\n|---|:-:|--:|\n| Price | 5 | |", ["Price: Basic 5."]),
        ("| Flag | Use |\n|---|---|\n| a\\|b | either |", ["Flag a|b: Use either."]),
        ("| Model |\n|---|\n| A1 |", ["Model: A1."]),
        ("| A | B |\n|---|---|\n| 1 | 2 | 3 |", ["A 1: B 2, 3."]),
        (
            "## Prices 2026\n\n| Model | Price |\n|---|---|\n| A1 | 59 |",
            ["## Prices 2026", "Prices 2026, Model A1: Price 59."],
        ),
    ],
)
def test_markdown_tables(text, expected):
    assert said(text) == expected


def test_a_long_row_is_cut_and_its_pieces_tile_the_row():
    cells = " | ".join(["A1", *(f"value {i} of it" for i in range(30))])
    header = " | ".join(["Model", *(f"field {i}" for i in range(30))])
    text = f"| {header} |\n|{'---|' * 31}\n| {cells} |"
    found = units(text)
    assert len(found) > 2
    assert all(unit.said.startswith("Model A1: field ") for unit in found)
    assert text[found[0].start :].startswith("| A1 |")
    assert found[-1].end == len(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name,price\nA1,59\nB2,84", ["name A1: price 59.", "name B2: price 84."]),
        ('name;note\nA1;"new; red"\nB2;old', ["name A1: note new; red.", "name B2: note old."]),
        ("id\tname\n1\tAda\n2\tBob\n", ["id 1: name Ada.", "id 2: name Bob."]),
        ('name,price\r\nA1,"1,059"\r\nB2,84\r\n', ["name A1: price 1,059.", "name B2: price 84."]),
    ],
)
def test_csv(text, expected):
    assert said(text) == expected


def test_rows_of_csv_have_offsets_of_their_own():
    assert pieces('name,price\nA1,"1,059"\nB2,84') == ['A1,"1,059"', "B2,84"]


@pytest.mark.parametrize(
    "text",
    [
        "I went to Rome, Italy.\nI saw Paris, France.\nI ate bread, cheese.",
        "Roses are red, my love\nViolets are blue, my love\nSugar is sweet, my love",
        "foo(a,b);\nbar(c,d);\nbaz(e,f);",
        "In 2019, sales fell.\nIn 2020, sales rose.\nIn 2021, sales fell.",
    ],
)
def test_lines_with_as_many_commas_are_no_table(text):
    assert units(text) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Warranty: 24 months", ["Warranty: 24 months."]),
        ("Warranty: 24 months\nweight = 1.9 kg", ["Warranty: 24 months.", "weight: 1.9 kg."]),
        (
            "Family history: type 2 diabetes (mother).\nPersonal history: no diabetes, mild asthma.",
            ["Family history: type 2 diabetes (mother).", "Personal history: no diabetes, mild asthma."],
        ),
        (
            "## Model A1\n- **Weight:** 3 kg\n- **Power**: 900 W",
            ["## Model A1", "Model A1, Weight: 3 kg.", "Model A1, Power: 900 W."],
        ),
        ("Name: Ada\nAge: 36\n\nName: Bob\nAge: 7", ["Name: Ada.", "Ada, Age: 36.", "Name: Bob.", "Bob, Age: 7."]),
        (
            "Room: 12\nBeds: 2\n\nRoom: 14\nBeds: 3",
            ["Room: 12.", "Room 12, Beds: 2.", "Room: 14.", "Room 14, Beds: 3."],
        ),
        (
            "seats: 40\nhours:\n  Monday: 9-17\n  Friday: 9-12\nstars: 4",
            ["seats: 40.", "hours:", "hours, Monday: 9-17.", "hours, Friday: 9-12.", "stars: 4."],
        ),
        ("保修期：24个月\n重量：1.9公斤", ["保修期: 24个月.", "重量: 1.9公斤."]),
        (
            "Q: What does it cost?\nA: It costs 5 EUR in all shops. Shipping is free.",
            ["Q: What does it cost?", "A: It costs 5 EUR in all shops.", "Shipping is free."],
        ),
    ],
)
def test_key_value_lines(text, expected):
    assert said(text) == expected


def test_prose_around_a_block_is_cut_into_its_sentences():
    text = (
        "We sell two models. Both are new.\n\n| Model | Price |\n|---|---|\n| A1 | 59 |\n\nPrices include tax. Call us."
    )
    assert said(text) == [
        "We sell two models.",
        "Both are new.",
        "Model A1: Price 59.",
        "Prices include tax.",
        "Call us.",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "It costs 59 EUR. Shipping is free.",
        "He said: we will go.\nThen they went, and that was that.",
        "Note: the shop is closed on Mondays and\nopens again on Tuesdays.",
        "Il negozio apre alle 9:00. La domenica è chiuso: nessuno risponde.",
        "def area(r):\n    pi = 3.14\n    return pi * r ** 2",
        "total = compute(a, b)\nresult = total.sum()",
        "class A:\n    name: str\n    size: int = 5",
        "```python\nname = 'A1'\nprice = 59\n```",
        "CONTRACT\n\n1. The Buyer shall pay: (a) the price; and (b) the tax.\n2. The Seller shall deliver.",
        "By: ________\nName: ________",
        "See https://example.org/a?b=c, and then\nhttps://example.org/d.",
    ],
)
def test_prose_and_code_are_left_to_the_segmenter(text):
    assert units(text) is None


def test_a_headline_with_a_colon_does_not_make_news_a_record():
    text = "Flood in Turin: the river rose by night\n\nThe Po rose on Monday. Nobody was hurt."
    found = units(text)
    assert found is None or [u.said for u in found] == [piece.body for piece in segment(text)]


def test_halves_of_surrogate_pairs_keep_the_offsets():
    text = "\ud83c\udf89\nWarranty: 24 months\nWeight: 2 kg"
    assert pieces(text) == ["Warranty: 24 months", "Weight: 2 kg"]
