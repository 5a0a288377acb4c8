"""Verdict cases from the field: what a comparison finds, and what it must leave to a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import pytest

from guardrail.scoring.clashes import find_clashes
from guardrail.scoring.markup import plain
from guardrail.text.segmenter import segment
from guardrail.text.tokens import tokens
from tests.field_cases import built

_FILE = Path(__file__).resolve().parents[3] / "shared" / "cases" / "cases.dev.jsonl"

pytestmark = [
    pytest.mark.shared_data,
    pytest.mark.skipif(not _FILE.parent.is_dir(), reason="the shared field cases are not beside the repository"),
]

# Contradictions that no comparison of words and values can see, with what it would take. The set is exact: when the
# checks learn one of them, it must leave.
NEEDS_A_MODEL = {
    ("V015", "a"): "whose illness it is depends on the heading a line stands under",
    ("V020", "a"): "nine is more than two: a superlative over counts of two sentences",
    ("V037", "b"): "one sentence names the service, the next denies it",
    ("V056", "b"): "claim and evidence are in different languages",
    ("V078", "b"): "opposite advice in words that share nothing",
}


class Row(NamedTuple):
    case: str
    answer: str
    claim: str
    label: str
    evidence: list[str]
    question: str | None


def _rows() -> list[Row]:
    if not _FILE.parent.is_dir():
        return []
    rows: list[Row] = []
    for case in map(json.loads, _FILE.read_text(encoding="utf-8").splitlines()):
        if case["kind"] != "verdict":
            continue
        contexts = built(case["input"]["contexts"]) or []
        sentences = list(dict.fromkeys(s.body for text in contexts if text for s in segment(text) if s.body))
        for answer, expected in case["expected"].items():
            for text, label in expected.get("sentences", ()):
                claim = plain(text)
                words = set(tokens(claim))
                ranked = sorted(sentences, key=lambda s: -len(words & set(tokens(s))))
                rows.append(Row(case["id"], answer, claim, label, ranked, case["input"].get("question")))
    return rows


ROWS = _rows()


def _clashes(row: Row) -> list[bool]:
    return [clash.contradicts for clash in find_clashes(row.claim, row.evidence, question=row.question)]


@pytest.mark.parametrize("row", [r for r in ROWS if r.label == "supported"], ids=lambda r: f"{r.case}.{r.answer}")
def test_a_supported_sentence_never_clashes(row: Row) -> None:
    assert _clashes(row) == []


def test_every_contradiction_is_found_or_needs_a_model() -> None:
    missed = {(r.case, r.answer) for r in ROWS if r.label == "contradicted" and True not in _clashes(r)}
    assert missed == set(NEEDS_A_MODEL)


@pytest.mark.parametrize("row", [r for r in ROWS if r.label == "unsupported"], ids=lambda r: f"{r.case}.{r.answer}")
def test_an_unsupported_sentence_is_not_called_contradicted(row: Row) -> None:
    assert True not in _clashes(row)


def test_an_invented_package_name_clashes() -> None:
    evidence = ["Install the tool with `pip install tidekit`, then run `tidekit init`."]
    assert find_clashes("```bash\npip install tide-kit-pro\n```", evidence)[0].contradicts
    assert find_clashes("```bash\npip install tidekit\ntidekit init\n```", evidence) == ()
