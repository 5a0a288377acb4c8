"""Files to train on, and the split."""

from __future__ import annotations

import pytest

from guardrail.errors import ConfigurationError, InputError
from guardrail.training.data import read_training_data
from tests.unit.training.toy import write_rows


def _pairs(premises: int, each: int = 3) -> list[dict]:
    return [
        {"premise": f"Door {p} opens at nine.", "hypothesis": f"Door {p} opens at {h}.", "label": "neutral"}
        for p in range(premises)
        for h in range(each)
    ]


ANSWERS = [
    {"context": f"The mill was sold in {year}. It is big.", "answer": f"The mill was sold in {year}. It is big.",
     "label": 1} for year in range(1900, 1910)
] + [{"context": "The mill is old.", "answer": "The mill is new. It is tall.", "label": 0}]  # fmt: skip


def test_no_premise_is_on_both_sides_and_nothing_is_lost(tmp_path):
    path = write_rows(tmp_path / "pairs.jsonl", _pairs(20))
    data = read_training_data([path], hold_out=0.2)
    assert (len(data.train), len(data.held_out)) == (48, 12)
    assert not {p.premise for p in data.train} & {p.premise for p in data.held_out}
    assert data == read_training_data([path], hold_out=0.2)
    assert data.held_out != read_training_data([path], hold_out=0.2, seed=8).held_out
    assert data.files[0].held_out == 12


def test_a_premise_in_two_files_stays_on_one_side(tmp_path):
    first = write_rows(tmp_path / "a.jsonl", _pairs(6, 1))
    second = write_rows(tmp_path / "b.jsonl", _pairs(6, 2))
    data = read_training_data([first, second], hold_out=0.5)
    assert not {p.premise for p in data.train} & {p.premise for p in data.held_out}
    assert [(f.name, f.pairs, f.held_out) for f in data.files] == [("a.jsonl", 6, 3), ("b.jsonl", 12, 6)]


def test_answers_are_recognised_and_split_by_their_context(tmp_path):
    data = read_training_data([write_rows(tmp_path / "answers.jsonl", ANSWERS)], hold_out=0.2)
    (file,) = data.files
    assert (file.kind, file.rows, file.pairs, file.held_out, file.silent) == ("answers", 11, 20, 4, 1)
    years = [{p.hypothesis for p in side if "19" in p.hypothesis} for side in (data.train, data.held_out)]
    assert [len(found) for found in years] == [8, 2]


def test_an_entailed_pair_has_no_unsupported_word(tmp_path):
    rows = [
        {"premise": f"p{i}", "hypothesis": "h", "label": label} for i, label in enumerate(["entailment", "neutral"])
    ]
    data = read_training_data([write_rows(tmp_path / "pairs.jsonl", rows)], hold_out=0)
    assert [p.unsupported for p in data.train] == [(), None]
    assert not data.held_out


def test_the_digest_is_of_the_pairs(tmp_path):
    one = read_training_data([write_rows(tmp_path / "a.jsonl", _pairs(3))], hold_out=0)
    same = read_training_data([write_rows(tmp_path / "b.jsonl", _pairs(3))], hold_out=0)
    other = read_training_data([write_rows(tmp_path / "c.jsonl", _pairs(4))], hold_out=0)
    assert one.digest == same.digest != other.digest


@pytest.mark.parametrize("share", [-0.1, 1.0, float("nan")])
def test_the_share_has_to_be_one(tmp_path, share):
    with pytest.raises(ConfigurationError, match="the share to hold out must be from 0 to below 1"):
        read_training_data([write_rows(tmp_path / "p.jsonl", _pairs(3))], hold_out=share)


def test_one_premise_alone_cannot_be_split(tmp_path):
    path = write_rows(tmp_path / "p.jsonl", _pairs(1))
    with pytest.raises(ConfigurationError, match="all pairs share one premise"):
        read_training_data([path])
    assert len(read_training_data([path], hold_out=0).train) == 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("\n \n", "is empty"),
        ("{", "line 1: is not JSON"),
        ('\n{"text": "a"}', "line 2: neither a training pair"),
        ("[1]", "line 1: neither a training pair"),
        ('{"context": "The mill is old.", "answer": "Hello!", "label": 1}', "gives no pair to train on"),
        ('{"context": "The mill is old.", "answer": "It is.", "label": 0, "detail": {"spans": [1]}}',
         "p.jsonl: row 1: detail.spans"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_used_says_why(tmp_path, text, said):
    path = tmp_path / "p.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_training_data([path])
    assert said in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"none\.jsonl"):
        read_training_data([tmp_path / "none.jsonl"])
