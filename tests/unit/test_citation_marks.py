"""Citation marks: which are read, whether they lead to what is claimed, and how they are written."""

from __future__ import annotations

from typing import Any

import pytest

from guardrail import CitationStatus, Policy, Verifier
from guardrail.policy import BALANCED, STRICT
from guardrail.reasons import why_failed
from guardrail.scoring.citations import read_marks
from guardrail.scoring.cited_text import cited_text
from guardrail.testing import FakeEntailment
from guardrail.types import Citation, ClaimVerdict, Segment, SegmentKind, VerdictLabel

HEIGHT, YEAR, LAKE = (
    "The Orrin dam is 212 m high.",
    "The Orrin dam was finished in 1974.",
    "The lake behind the Orrin dam holds 90 million cubic metres.",
)
CONTEXT = [HEIGHT, YEAR, LAKE]
RIGHT, WRONG, DANGLING, MISSING, UNSUPPORTED = (
    CitationStatus.RIGHT,
    CitationStatus.WRONG,
    CitationStatus.DANGLING,
    CitationStatus.MISSING,
    CitationStatus.UNSUPPORTED,
)


# --- reading ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("It is high [1].", [(1,)]),
        ("It is high [2, 3].", [(2, 3)]),
        ("It is high [2;3].", [(2, 3)]),
        ("It is high [C1].", [(1,)]),
        ("It is high [C1, C2].", [(1, 2)]),
        ("It is high [^4].", [(4,)]),
        ("It is high [1-3].", [(1, 2, 3)]),
        ("It is high [1–3, 5].", [(1, 2, 3, 5)]),
        ("It is high [3-1].", [(3, 1)]),
        ("It is high [1-900].", [(1, 900)]),
        ("It is high [1][2].", [(1,), (2,)]),
        ("It is high [1] and [2].", [(1,), (2,)]),
        ("It is high [1], and it leaks [2]", [(1,), (2,)]),
        ("It is high. [1]\n", [(1,)]),
        ("Take [50] mg.", []),
        ("In [2004] it was built.", []),
        ("It is high [see p. 1].", []),
        ("It is high [a].", []),
        ("", []),
    ],
)
def test_which_marks_are_read(text: str, numbers: list[tuple[int, ...]]):
    assert [mark.numbers for mark in read_marks(text)] == numbers


def test_the_offsets_of_marks_include_the_space_before():
    text = "It is high [1], it leaks [C2]."
    assert [text[m.start : m.end] for m in read_marks(text)] == [" [1]", " [C2]"]
    assert [m.opening for m in read_marks(text)] == [" [", " [C"]


# --- looking up -------------------------------------------------------------------------------------------------


def found(answer: str, context: list[Any] = CONTEXT, *, policy: Policy | str = "balanced") -> list[Any]:
    result = Verifier(policy=policy).verify_sync(answer, context)
    return [[(c.status, c.number, c.passage_id, c.right) for c in v.citations] for v in result.claims]


@pytest.mark.parametrize(
    ("answer", "citations"),
    [
        ("The Orrin dam is 212 m high [1].", [(RIGHT, 1, "1", ())]),
        ("The Orrin dam is 212 m high [2].", [(WRONG, 2, "2", ("1",))]),
        ("The Orrin dam is 212 m high [7].", [(DANGLING, 7, None, ("1",))]),
        ("The Orrin dam is 212 m high [0].", [(DANGLING, 0, None, ("1",))]),
        ("The Orrin dam is 221 m high [1].", [(UNSUPPORTED, 1, "1", ())]),
        ("The Orrin dam is 212 m high.", [(MISSING, None, None, ())]),
        ("The Orrin dam is 221 m high.", []),
        ("The Orrin dam is 212 m high [1, 2].", [(RIGHT, 1, "1", ()), (WRONG, 2, "2", ())]),
        ("The Orrin dam is 212 m high [1][1].", [(RIGHT, 1, "1", ())]),
        (
            "The Orrin dam is 212 m high and was finished in 1974 [1][2].",
            [(RIGHT, 1, "1", ()), (RIGHT, 2, "2", ())],
        ),
    ],
)
def test_what_becomes_of_citations(answer: str, citations: list[Any]):
    assert found(answer) == [citations]


def test_a_passage_that_says_the_same_word_for_word_is_right_too():
    assert found("The Orrin dam is 212 m high [2].", [HEIGHT, HEIGHT, YEAR]) == [[(RIGHT, 2, "2", ())]]


def test_a_claim_that_leans_on_the_sentence_before_is_looked_up_with_it():
    answer = "The Orrin dam is 212 m high [1]. It was finished in 1974 [2]. It was finished in 1974 [1]."
    assert found(answer) == [[(RIGHT, 1, "1", ())], [(RIGHT, 2, "2", ())], [(WRONG, 1, "1", ("2",))]]


def test_nothing_is_looked_up_if_the_policy_says_so():
    assert found("The Orrin dam is 212 m high [7].", policy=BALANCED.override(cite="ignore")) == [[]]


def test_what_is_not_a_claim_has_no_citations():
    assert found("# The dam\n\nHello!\n\nThe documents do not say who built it.") == [[], [], []]


def test_nothing_is_looked_up_without_a_context():
    result = Verifier().verify_sync("The Orrin dam is 212 m high [1].", [])
    assert [v.citations for v in result.claims] == [()]


@pytest.mark.parametrize(("mark", "accepted"), [("[1]", True), ("[2]", False), ("[9]", False), ("[1, 2]", True)])
def test_strict_mode_fails_what_is_wrongly_cited(mark: str, accepted: bool):
    answer = f"The Orrin dam is 212 m high {mark}."
    assert Verifier(policy="balanced").verify_sync(answer, CONTEXT).accepted
    assert Verifier(policy="strict").verify_sync(answer, CONTEXT).accepted is accepted


def test_a_model_that_errs_about_the_cited_passage_alone_is_not_believed_for_all():
    """Support comes from the joined evidence; what is cited is asked alone, with the model's own answer."""
    model = FakeEntailment(lambda premise, claim: 1.0 if HEIGHT in premise else 0.0)
    verifier = Verifier(policy=BALANCED.override(lexical_weight=0.0), entailment=model)
    result = verifier.verify_sync("The Orrin dam is 212 m high [3].", CONTEXT)
    assert [c.status for c in result.claims[0].citations] == [WRONG]
    assert result.claims[0].citations[0].right == ("1",)


@pytest.mark.parametrize(
    ("citation", "words"),
    [
        (Citation(status=DANGLING, number=7), "it cites [7], and there is no such passage"),
        (
            Citation(status=WRONG, number=2, passage_id="b", right=("a",)),
            "the cited passage [2] does not say so; a does",
        ),
        (Citation(status=WRONG, number=2, passage_id="b"), "the cited passage [2] does not say so"),
    ],
)
def test_the_next_attempt_is_told(citation: Citation, words: str):
    claim = ClaimVerdict(
        segment=Segment(start=0, end=2, text="x."), verdict=VerdictLabel.SUPPORTED, delta_r=0.1, citations=(citation,)
    )
    assert claim.wrongly_cited
    assert why_failed(claim) == words


# --- writing ----------------------------------------------------------------------------------------------------


def said(text: str, *citations: Citation, kind: SegmentKind = SegmentKind.CLAIM) -> ClaimVerdict:
    segment = Segment(start=0, end=len(text), text=text, kind=kind)
    return ClaimVerdict(segment=segment, verdict=VerdictLabel.SUPPORTED, delta_r=0.1, citations=citations)


def right(number: int, pid: str) -> Citation:
    return Citation(status=RIGHT, number=number, passage_id=pid)


def wrong(number: int, pid: str, *instead: str) -> Citation:
    return Citation(status=WRONG, number=number, passage_id=pid, right=instead)


A1 = Citation(status=MISSING, right=("a",))
AB = Citation(status=MISSING, right=("b", "a"))
NUMBERS = {"a": 1, "b": 2, "c": 3}


@pytest.mark.parametrize(
    ("text", "citation", "written"),
    [
        ("It is high. ", A1, "It is high [1]. "),
        ("It is high", A1, "It is high"),
        ("It is high!\n\n", A1, "It is high [1]!\n\n"),
        ("- It is high\n", A1, "- It is high [1]\n"),
        ('He said "it is high."', A1, 'He said "it is high [1]."'),
        ("**It is high.** ", A1, "**It is high [1].** "),
        ("It is high.", AB, "It is high [1, 2]."),
        ("大坝高212米。", A1, "大坝高212米[1]。"),
        ("| dam | 212 m |\n", A1, "| dam | 212 m |\n"),
        ("It is high:", A1, "It is high:"),
        ("It is high, ", A1, "It is high, "),
        ("It is high.", Citation(status=MISSING), "It is high."),
        ("It is high.", Citation(status=MISSING, right=("z",)), "It is high."),
    ],
)
def test_missing_citations_are_written(text: str, citation: Citation, written: str):
    for fix in (False, True):
        assert cited_text(said(text, citation), numbers=NUMBERS, fix=fix) == written


def test_code_is_left_alone():
    verdict = said("```\nx = 1\n```", A1, kind=SegmentKind.CODE)
    assert cited_text(verdict, numbers=NUMBERS, fix=True) == verdict.segment.text


@pytest.mark.parametrize(
    ("text", "citations", "written"),
    [
        ("It is high [2].", [wrong(2, "b", "a")], "It is high [1]."),
        ("It is high [C2].", [wrong(2, "b", "a")], "It is high [C1]."),
        ("It is high [9].", [Citation(status=DANGLING, number=9, right=("c",))], "It is high [3]."),
        ("It is high [1, 2].", [right(1, "a"), wrong(2, "b")], "It is high [1]."),
        ("It is high [2][1].", [wrong(2, "b"), right(1, "a")], "It is high [1]."),
        ("It is high [2], and old [9].", [wrong(2, "b", "a"), Citation(status=DANGLING, number=9, right=("a",))], None),
        ("It is high [2].", [wrong(2, "b")], "It is high."),
        ("It is high [1].", [right(1, "a")], "It is high [1]."),
    ],
)
def test_wrong_citations_are_corrected(text: str, citations: list[Citation], written: str | None):
    expected = "It is high [1], and old." if written is None else written
    assert cited_text(said(text, *citations), numbers=NUMBERS, fix=True) == expected


def test_adding_leaves_wrong_citations_and_renumbers_all():
    verdict = said("It is high [1, 2].", right(1, "b"), wrong(2, "a"))
    assert cited_text(verdict, numbers=NUMBERS, fix=False) == "It is high [2, 1]."


def test_every_citing_policy_is_strict_by_itself():
    assert STRICT.on_wrong_citation == "fail"
    assert BALANCED.cite == "check"
    assert BALANCED.on_wrong_citation == "mark"
