"""Invariants of units of evidence over arbitrary text and arbitrary JSON."""

from __future__ import annotations

import json
import re
import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail.scoring.json_units import is_text
from guardrail.scoring.structured import units
from guardrail.text.segmenter import segment

_PIECES = st.sampled_from(
    [
        *" \n\t,;:|=\\\"'{}[]`~#-*1aéД中\ud83c\udf89",
        "\n\n",
        "\r\n",
        "Key: value\n",
        "key = 5\n",
        "- **Key:** v\n",
        "| a | b |\n",
        "|---|---|\n",
        "a,b,c\n",
        'x,"y\n',
        "1;2\n",
        "```\n",
        "```json\n",
        '{"a": ',
        '"b": true,\n',
        '[{"name": "X", "n": 1}]',
        "{'k': None}",
        "\\u00e9",
        "\\ud83c",
        "## Heading\n",
        "Label:\n",
        "A sentence of six words. Another one here. ",
    ]
)
_TEXT = st.one_of(st.lists(_PIECES, max_size=60).map("".join), st.text(max_size=200))
# Long strings, and documents inside strings, are read in another way: see the tests of examples.
_WORDS = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=40).filter(
    lambda s: not is_text(s) and not s.startswith("{")
)
_SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), _WORDS)
_DOCUMENTS = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=5), st.dictionaries(_WORDS, inner, max_size=6)),
    max_leaves=30,
)
_SENTENCES = st.lists(
    st.sampled_from(
        [
            "The Po rose on Monday, after days of rain.",
            "Nobody was hurt; 12 houses were evacuated.",
            "He told CNN: “We were lucky.”",
            "Il ponte è chiuso dalle 8:00 alle 18:00.",
            "(CNN) It was the third flood in five years.",
            "The Seller, i.e. Acme Ltd., shall deliver [1].",
            "Prices rose by 3.5 % in 2023, he said.",
        ]
    ),
    min_size=1,
    max_size=12,
)


def _leaves(value):
    if isinstance(value, dict):
        return [leaf for inner in value.values() for leaf in _leaves(inner)]
    if isinstance(value, list):
        return [leaf for inner in value for leaf in _leaves(inner)]
    return [value]


def _as_said(leaf) -> str:
    if isinstance(leaf, bool) or leaf is None:
        return {True: "yes", False: "no", None: "not given"}[leaf]
    if isinstance(leaf, str):
        return leaf.strip() or "not given"
    return json.dumps(leaf)


@given(_TEXT)
def test_offsets_are_valid_and_units_follow_each_other(text):
    found = units(text)
    if found is None:
        return
    assert found
    assert all(0 <= unit.start < unit.end <= len(text) for unit in found)
    assert all(a.end <= b.start for a, b in pairwise(found))
    assert all(unit.said.strip() for unit in found)


@given(_DOCUMENTS.filter(lambda d: isinstance(d, dict) and _leaves(d)), st.sampled_from([None, 1]), st.booleans())
def test_every_leaf_of_a_document_is_said(document, indent, ascii_only):
    text = json.dumps(document, indent=indent, ensure_ascii=ascii_only)
    found = units(text)
    assert found is not None
    for leaf in _leaves(document):
        assert any(_as_said(leaf) in unit.said for unit in found)


@given(st.lists(st.one_of(st.integers(), st.floats(-1e6, 1e6)), min_size=1, max_size=5), st.integers(0, 80))
def test_a_document_cut_short_never_says_half_a_value(values, cut):
    rows = [{"power": value, "price": f"{value} EUR"} for value in values]
    text = json.dumps(rows)[: -cut or None]
    written = {json.dumps(value) for value in values}
    for unit in units(text) or []:
        assert set(re.findall(r"-?\d[-+.e\d]*(?<!\.)", unit.said)) <= written


@given(_SENTENCES, st.sampled_from([" ", "\n", "\n\n"]))
def test_prose_is_left_to_the_segmenter(parts, between):
    text = between.join(parts)
    found = units(text)
    assert found is None or [u.said for u in found] == [piece.body for piece in segment(text)]


@given(st.lists(st.lists(st.integers(0, 9999), min_size=2, max_size=2), min_size=2, max_size=8))
def test_csv_and_markdown_say_the_same(rows):
    comma = "size,price\n" + "\n".join(",".join(map(str, row)) for row in rows)
    table = "| size | price |\n|---|---|\n" + "\n".join("| " + " | ".join(map(str, row)) + " |" for row in rows)
    assert [u.said for u in units(comma)] == [u.said for u in units(table)]


@pytest.mark.parametrize(
    "piece",
    [
        "[\n",
        '{"a":\n',
        '[{"a":1},\n',
        "a: b\n",
        "a,b\n",
        'a,"b\n',
        "| a |\n",
        "|a|\n|-|\n",
        "a: " + " " * 3000,
        '"a": [\n',
    ],
)
def test_time_is_linear_in_the_text(piece):
    def seconds(length: int) -> float:
        text = piece * (length // len(piece))
        best = float("inf")
        for _ in range(2):
            start = time.perf_counter()
            units(text)
            best = min(best, time.perf_counter() - start)
        return best

    short, long = seconds(10_000), seconds(80_000)
    assert long < 24 * short + 0.2  # 8 times the text; quadratic time would be 64 times as much
