"""Verdict cases from the field, as one table: what the shipped default lets through, and what it stops."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from guardrail import Verification, Verifier
from guardrail.policy import Policy, as_policy
from tests.field_cases import built

_FILE = Path(__file__).resolve().parents[3] / "shared" / "cases" / "cases.dev.jsonl"
_MOST_FALSE_REJECTS = 0.10
_POLICIES = ("balanced", "strict")

pytestmark = [
    pytest.mark.shared_data,
    pytest.mark.skipif(not _FILE.parent.is_dir(), reason="the shared field cases are not beside the repository"),
]

# What the embedded model misses, found by running this table with it; whoever makes a better one deletes the rows.
MISSED = {
    ("balanced", "V069", "b"): "a founder of whom the evidence says nothing",
    ("balanced", "V078", "b"): "the opposite of a request, in other words",
    ("strict", "V070", "a"): "a list item whose remark says that it is not mentioned",
}


class Row(NamedTuple):
    case: str
    answer: str
    hard: bool
    text: str
    contexts: list[str]
    question: str | None
    outcomes: dict[str, str]
    labels: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.case}.{self.answer}"


def _rows() -> list[Row]:
    if not _FILE.parent.is_dir():
        return []
    rows: list[Row] = []
    for case in map(json.loads, _FILE.read_text(encoding="utf-8").splitlines()):
        if case["kind"] != "verdict":
            continue
        given = case["input"]
        for answer, expected in case["expected"].items():
            outcome = expected["outcome"]
            row = Row(
                case=case["id"],
                answer=answer,
                hard=bool(case.get("hard")),
                text=built(given["answers"][answer]),
                contexts=built(given["contexts"]) or [],
                question=given.get("question"),
                outcomes={"balanced": outcome, "strict": expected.get("strict", outcome)},
                labels=tuple(label for _, label in expected.get("sentences", ())),
            )
            rows.append(row)
    return rows


ROWS = _rows()
_CELLS = [(policy, row) for policy in _POLICIES for row in ROWS]


@cache
def _verifier(policy: str) -> Verifier:
    return Verifier(policy=policy)


@cache
def _verification(policy: str, at: int) -> Verification:
    row = ROWS[at]
    return _verifier(policy).verify_sync(row.text, row.contexts, question=row.question)


def _result(policy: str, row: Row) -> Verification:
    return _verification(policy, ROWS.index(row))


def _must_be_delivered(policy: str, row: Row) -> bool:
    """Strict mode refuses on purpose what asserts nothing, so there only supported claims must get through."""
    if row.outcomes[policy] != "deliver":
        return False
    return policy != "strict" or (bool(row.labels) and set(row.labels) == {"supported"})


def _is_falsely_rejected(policy: str, row: Row) -> bool:
    found = _result(policy, row)
    refused_language = policy == "strict" and any(claim.language is not None for claim in found.claims)
    return not found.accepted and not refused_language  # a language that the model does not know is refused by policy


def _cells(outcome: str, *, hard: bool) -> list[tuple[str, Row]]:
    if outcome == "block":
        chosen = [(policy, row) for policy, row in _CELLS if row.outcomes[policy] == "block"]
    else:
        chosen = [(policy, row) for policy, row in _CELLS if _must_be_delivered(policy, row)]
    return [(policy, row) for policy, row in chosen if row.hard is hard]


def _report(cells: list[tuple[str, Row]]) -> str:
    lines = []
    for policy, row in cells:
        found = _result(policy, row)
        claims = "; ".join(
            f"{claim.segment.body!r} {claim.verdict} N={claim.entailment} L={claim.rouge_l} "
            f"clashes={[str(clash.kind) for clash in claim.clashes]}"
            for claim in found.claims
            if claim.checked
        )
        lines.append(f"{policy} {row}: accepted={found.accepted} ({found.reason}) {claims}")
    return "\n".join(lines)


@pytest.mark.parametrize(("policy", "row"), _cells("block", hard=False), ids=str)
def test_what_the_passages_do_not_support_is_not_accepted(policy: str, row: Row) -> None:
    accepted = _result(policy, row).accepted
    if accepted and (policy, row.case, row.answer) in MISSED:
        pytest.xfail(f"missed by the embedded model: {MISSED[policy, row.case, row.answer]}")
    assert not accepted, _report([(policy, row)])


@pytest.mark.parametrize("policy", _POLICIES)
def test_few_supported_answers_are_rejected(policy: str) -> None:
    if _verifier(policy).scorer == "lexical":
        pytest.skip("word overlap is a baseline, not a judge: the share is promised for the embedded model")
    cells = [cell for cell in _cells("deliver", hard=False) if cell[0] == policy]
    rejected = [cell for cell in cells if _is_falsely_rejected(*cell)]
    assert len(rejected) <= _MOST_FALSE_REJECTS * len(cells), f"{len(rejected)} of {len(cells)}:\n{_report(rejected)}"


@pytest.mark.parametrize("policy", _POLICIES)
def test_hard_cases_are_reported(policy: str, record_property: pytest.RecordProperty) -> None:
    """Cases beyond a small model are counted, not judged; the counts are properties of the test report."""
    accepted = [c for c in _cells("block", hard=True) if c[0] == policy and _result(*c).accepted]
    rejected = [c for c in _cells("deliver", hard=True) if c[0] == policy and _is_falsely_rejected(*c)]
    record_property("hard_false_accepts", [str(row) for _, row in accepted])
    record_property("hard_false_rejects", [str(row) for _, row in rejected])
    assert all(_result(*cell).reason for cell in accepted + rejected), _report(accepted + rejected)


@pytest.mark.parametrize("policy", _POLICIES)
def test_the_table_has_both_sorts_of_cases(policy: str) -> None:
    chosen: Policy = as_policy(policy)
    assert chosen.name == policy
    for outcome in ("block", "deliver"):
        assert sum(cell[0] == policy for cell in _cells(outcome, hard=False)) >= 20
