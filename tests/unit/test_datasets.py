"""Labelled answers: every bad row is named by file and line, and a replay survives every good file."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from guardrail.errors import InputError
from guardrail.evaluation.benchmarks.replay import replay
from guardrail.evaluation.labelled import read_answers
from guardrail.testing import FakeEntailment

GOOD: dict[str, Any] = {"context": "Entry is free.", "answer": "Entry is free.", "label": 1}
GOATS = {
    "question": "How many stomach chambers does a goat have?",
    "context": ["Goats have four stomach chambers."],
    "label": 1,
    "detail": {"source_id": 1, "model": "mistral-7B-instruct"},
}


def rows(folder: Path, *values: Any) -> Path:
    path = folder / "answers.jsonl"
    path.write_text("\n".join(v if isinstance(v, str) else json.dumps(v) for v in values), encoding="utf-8")
    return path


def test_rows_are_read_in_order(tmp_path: Path) -> None:
    claim = {
        "context": ["One.", "Two."],
        "claim": "One.",
        "label": 0,
        "id": 7,
        "question": "Which?",
        "detail": {"a": 1},
    }
    first, second = read_answers(rows(tmp_path, GOOD, "", claim))
    assert (first.id, first.question, first.context, first.grounded) == ("1", "", ("Entry is free.",), True)
    assert (second.id, second.question, second.context, second.answer) == ("7", "Which?", ("One.", "Two."), "One.")
    assert (second.grounded, dict(second.detail)) == (False, {"a": 1})
    assert "One." not in repr(second)


def test_nulls_of_optional_fields_count_as_missing(tmp_path: Path) -> None:
    (row,) = read_answers(rows(tmp_path, {**GOOD, "question": None, "detail": None}))
    assert (row.question, dict(row.detail)) == ("", {})


BAD_ROWS: dict[str, Any] = {
    "no JSON": "{",
    "no object": "[1, 2]",
    "a number": "7",
    "no context": {"answer": "x", "label": 1},
    "no answer": {"context": "x", "label": 1},
    "no label": {"context": "x", "answer": "x"},
    "context null": {**GOOD, "context": None},
    "context a number": {**GOOD, "context": 7},
    "context with null": {**GOOD, "context": ["x", None]},
    "context an object": {**GOOD, "context": {"text": "x"}},
    "answer null": {**GOOD, "answer": None},
    "answer a list": {**GOOD, "answer": ["x"]},
    "question a number": {**GOOD, "question": 7},
    "label 2": {**GOOD, "label": 2},
    "label a list": {**GOOD, "label": [1]},
    "label a text": {**GOOD, "label": "1"},
    "label null": {**GOOD, "label": None},
    "detail a text": {**GOOD, "detail": "abc"},
    "detail a list": {**GOOD, "detail": [1]},
}


@pytest.mark.parametrize("name", BAD_ROWS)
def test_a_bad_row_is_named_by_file_and_line(name: str, tmp_path: Path) -> None:
    path = rows(tmp_path, GOOD, GOOD, BAD_ROWS[name])
    with pytest.raises(InputError, match=r"answers\.jsonl, line 3"):
        list(read_answers(path))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    line = json.dumps(GOOD).encode() + b"\n"
    whole = gzip.compress(line * 1000)
    for name, data in {
        "cut.jsonl.gz": whole[: len(whole) // 2],
        "no.jsonl.gz": b"no gzip at all",
        "changed.jsonl.gz": whole[:20] + b"\xff" * 40 + whole[60:],
        "latin.jsonl": line.replace(b"Entry", b"Entr\xe9"),
    }.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(InputError, match=name):
            list(read_answers(tmp_path / name))
    with pytest.raises(InputError, match="missing"):
        list(read_answers(tmp_path / "missing.jsonl"))
    (tmp_path / "good.jsonl.gz").write_bytes(whole)
    assert len(list(read_answers(tmp_path / "good.jsonl.gz"))) == 1000


def test_a_prompt_may_have_fewer_answers_than_attempts(tmp_path: Path) -> None:
    """An avoidable abstention is asked again, and the only recorded answer is delivered as attempt 2."""
    row = replay(rows(tmp_path, {**GOATS, "answer": "I don't know."}), entailment=FakeEntailment(1.0)).overall
    assert (row.prompts, row.attempts_mean, row.refused, row.hallucinated_delivered) == (1, 2.0, 0.0, 0.0)


@pytest.mark.parametrize("question", [" ", "", None, "\n"])
def test_a_prompt_may_have_no_question(question: Any, tmp_path: Path) -> None:
    row = {**GOATS, "question": question, "answer": "Goats have four stomach chambers."}
    assert replay(rows(tmp_path, row), entailment=FakeEntailment(1.0)).overall.refused == 0.0


def test_a_file_without_answers_of_the_weakest_model_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="mistral"):
        replay(rows(tmp_path, GOOD), entailment=FakeEntailment(1.0))
