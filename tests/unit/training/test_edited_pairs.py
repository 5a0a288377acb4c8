"""Training pairs made from the grounded claims of answers."""

from __future__ import annotations

import pytest

from guardrail.evaluation.labelled import LabelledAnswer
from guardrail.training.perturb import edited_pairs

CONTEXT = (
    "The old mill was built by Anna Rossi in 1932 and sold to the town in 1950 for 900 crowns. It can hold 40 guests.",
    "Marco Bianchi ran the bakery next to the mill until 1961. He may reopen it in May. Guests must never smoke.",
)
ANSWER = (
    "1. Anna Rossi built the old mill in 1932. The town bought it in 1950 for 900 crowns. "
    "Marco Bianchi may reopen the bakery in May. It glows at night. Here is what you should know about the mill:"
)
START = ANSWER.index("It glows")


def _row(**changes):
    spans = [{"start": START, "end": START + len("It glows at night.")}]
    values = {
        "id": "1",
        "question": "",
        "context": CONTEXT,
        "answer": ANSWER,
        "grounded": False,
        "detail": {"spans": spans},
    }
    return LabelledAnswer(**(values | changes))


@pytest.fixture(scope="module")
def pairs():
    return list(edited_pairs([_row()] * 60, count=120, seed=3))


def test_errors_are_marked_and_faithful_ones_have_none(pairs):
    assert len(pairs) > 15
    for pair in pairs:
        faithful = pair.source == "edited_faithful"
        assert (pair.label == "entailment") is faithful
        assert bool(pair.unsupported) is not faithful
        for start, end in pair.unsupported:
            assert pair.hypothesis[start:end].strip()


def test_kinds_of_errors_are_mixed(pairs):
    kinds = {pair.source for pair in pairs}
    assert {"edited_faithful", "edited_value", "edited_name"} <= kinds


def test_what_people_marked_and_introductions_are_left_out(pairs):
    assert not [p for p in pairs if "glows" in p.hypothesis or "Here is what" in p.hypothesis]


def test_marks_of_lists_are_not_part_of_a_claim(pairs):
    assert not [p for p in pairs if p.hypothesis.startswith("1.")]


def test_no_claim_comes_twice_and_the_seed_decides(pairs):
    assert len({p.hypothesis for p in pairs}) == len(pairs)
    assert list(edited_pairs([_row()] * 60, count=120, seed=3)) == pairs
    assert list(edited_pairs([_row()] * 60, count=120, seed=4)) != pairs


def test_a_hallucinated_answer_without_marks_teaches_nothing():
    assert not list(edited_pairs([_row(detail={})] * 20, count=20))


@pytest.mark.parametrize("count", [0, -1])
def test_no_pairs_wanted(count):
    assert not list(edited_pairs([_row()], count=count))
