"""Labelled answers as pairs."""

from __future__ import annotations

import pytest

from guardrail.errors import InputError
from guardrail.evaluation.labelled import LabelledAnswer
from guardrail.training.answers import pairs_of

CONTEXT = ("The mill was sold in 1932. It burned down in 1950. Anna Rossi built it again in 1955.",)


def _row(answer: str, *, grounded: bool = False, marked: str = "") -> LabelledAnswer:
    start = answer.index(marked)
    spans = [{"start": start, "end": start + len(marked)}] if marked else []
    return LabelledAnswer(
        id="7", question="", context=CONTEXT, answer=answer, grounded=grounded, detail={"spans": spans}
    )


def _words(pair) -> list[str]:
    return [pair.hypothesis[start:end] for start, end in pair.unsupported]


@pytest.mark.parametrize(
    ("answer", "marked", "claims", "words"),
    [
        ("The mill was sold in **1940**.", "1940", ["The mill was sold in 1940."], ["1940"]),
        ("- The **mill** was sold in _1940_.", "1940", ["The mill was sold in 1940."], ["1940"]),
        ("## Mill\n\n1. The mill was sold by *Bo Lind* in 1932.", "Bo Lind",
         ["The mill was sold by Bo Lind in 1932."], ["Bo Lind"]),
        ("The mill was sold **by Bo Lind** in 1932.", "by Bo Lind", ["The mill was sold by Bo Lind in 1932."],
         ["by Bo Lind"]),
    ],
)  # fmt: skip
def test_marked_ranges_follow_the_claim_through_markdown(answer, marked, claims, words):
    pairs = list(pairs_of(_row(answer, marked=marked)))
    assert [claim in pair.hypothesis for claim, pair in zip(claims, pairs, strict=True)] == [True]
    assert [pair.label for pair in pairs] == ["not_entailment"]
    assert _words(pairs[0]) == words


def test_only_claims_that_a_range_touches_are_not_entailed():
    pairs = list(pairs_of(_row("The mill was sold in 1932. It burned down in 1960.", marked="1960"), source="mine"))
    assert [(p.label, p.source) for p in pairs] == [("entailment", "mine"), ("not_entailment", "mine")]
    assert pairs[0].unsupported == ()
    assert _words(pairs[1]) == ["1960"]
    assert "The mill was sold in 1932." in pairs[0].premise


def test_a_range_over_two_claims_counts_for_both():
    answer = "The mill was sold in 1940. It burned down in 1960."
    pairs = list(pairs_of(_row(answer, marked="1940. It burned")))
    assert [p.label for p in pairs] == ["not_entailment"] * 2
    assert _words(pairs[0]) == ["1940."]
    assert _words(pairs[1]) == ["It burned"]


def test_an_answer_without_marks_tells_only_if_it_has_one_claim():
    assert list(pairs_of(_row("The mill was sold in 1940. It burned down in 1950."))) == []
    (single,) = pairs_of(_row("The mill was sold in 1940."))
    assert (single.label, single.unsupported) == ("not_entailment", None)


def test_what_asserts_nothing_gives_no_pair():
    assert list(pairs_of(_row("Hello! How can I help?", grounded=True))) == []


@pytest.mark.parametrize(
    "spans", [[{"start": 0}], [[0, 1]], [{"start": "a", "end": 2}], [{"start": 0, "end": 999}], "all", 3]
)
def test_spans_that_are_none_name_the_row(spans):
    row = LabelledAnswer(
        id="7", question="", context=CONTEXT, answer="It burned.", grounded=False, detail={"spans": spans}
    )
    with pytest.raises(InputError, match=r"row 7: detail\.spans"):
        list(pairs_of(row))
