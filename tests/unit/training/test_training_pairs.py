"""Files of training pairs."""

from __future__ import annotations

import gzip
import json

import pytest

from guardrail.errors import InputError
from guardrail.training.pairs import TrainingPair, read_pairs, write_pairs

GOOD = {"premise": "The mill was sold.", "hypothesis": "It was sold.", "label": "entailment"}
PAIRS = [
    TrainingPair(premise="a", hypothesis="b é", label="neutral", source="s", unsupported=((0, 1), (2, 3))),
    TrainingPair(premise="c", hypothesis="d", label="not_entailment"),
    TrainingPair(premise="e", hypothesis="f", label="entailment", unsupported=()),
]


@pytest.mark.parametrize("name", ["pairs.jsonl", "pairs.jsonl.gz"])
def test_what_is_written_is_read_again(tmp_path, name):
    assert write_pairs(tmp_path / name, PAIRS) == 3
    assert list(read_pairs(tmp_path / name)) == PAIRS


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"label": "maybe"}, "label 'maybe' is none of contradiction, entailment, neutral, not_entailment"),
        ({"premise": " "}, "premise and hypothesis must be texts that are not blank"),
        ({"hypothesis": 7}, "premise and hypothesis must be texts that are not blank"),
        ({"unsupported": [[3, 3]]}, "unsupported has a range outside the hypothesis"),
        ({"unsupported": [[0, 99]]}, "unsupported has a range outside the hypothesis"),
        ({"unsupported": "all"}, "not a training pair"),
    ],
)
def test_a_bad_row_is_named_by_file_and_line(tmp_path, change, said):
    path = tmp_path / "pairs.jsonl"
    path.write_text("\n".join([json.dumps(GOOD), "", json.dumps(GOOD | change)]), encoding="utf-8")
    with pytest.raises(InputError, match=r"pairs\.jsonl, line 3: ") as caught:
        list(read_pairs(path))
    assert said in str(caught.value)


@pytest.mark.parametrize("line", ["{", "[]", '"text"', '{"premise": "a"}'])
def test_a_line_that_is_no_row_is_named(tmp_path, line):
    path = tmp_path / "pairs.jsonl"
    path.write_text(line, encoding="utf-8")
    with pytest.raises(InputError, match="line 1: not a training pair"):
        list(read_pairs(path))


def test_a_file_that_is_cut_or_missing_is_an_input_error(tmp_path):
    path = tmp_path / "pairs.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(GOOD).encode() * 50)[:-12])
    with pytest.raises(InputError, match="cannot read"):
        list(read_pairs(path))
    with pytest.raises(InputError, match="FileNotFoundError"):
        list(read_pairs(tmp_path / "none.jsonl"))
