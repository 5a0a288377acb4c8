"""The next context: other than every one before, evidence first, misleading passages out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document

from guardrail import Guardrail, Policy
from guardrail.context import as_passages
from guardrail.rerank import FailureDirectedReranker
from guardrail.testing import FakeEntailment, ScriptedGenerator
from guardrail.types import EvidenceSpan, FailedClaim, Passage, VerdictLabel

NOISE = ("The hall is old.", "The garden has roses.", "A bridge leads north.")
FACT = "The permit costs 12 euro."
QUESTION = "What does a permit cost?"


def passages(*texts: str) -> tuple[Passage, ...]:
    return as_passages(list(texts))[0]


def failed(text: str, **more: Any) -> FailedClaim:
    fields: dict[str, Any] = {"verdict": VerdictLabel.CONTRADICTED, "why": "the passages say otherwise", "delta_r": 1.0}
    return FailedClaim(text=text, attempt=1, **(fields | more))


def ids(chosen: tuple[Passage, ...]) -> tuple[str, ...]:
    return tuple(p.id for p in chosen)


def test_evidence_comes_first():
    given_passages = passages(*NOISE, FACT)
    chosen = FailureDirectedReranker().next_context(
        question=QUESTION,
        passages=given_passages,
        shown=given_passages,
        failed=[failed("The permit costs 15 euro.", contradicting=("4",))],
        tried=[ids(given_passages)],
    )
    assert chosen is not None
    assert chosen[0].text == FACT
    assert {p.text for p in chosen} == {*NOISE, FACT}


def test_a_passage_that_was_left_out_comes_in():
    given_passages = passages(*NOISE, FACT)
    shown = given_passages[:2]
    chosen = FailureDirectedReranker(context_size=2).next_context(
        question=QUESTION,
        passages=given_passages,
        shown=shown,
        failed=[failed("The permit costs 15 euro.")],
        tried=[ids(shown)],
    )
    assert chosen is not None
    assert len(chosen) <= 2
    assert chosen[0].text == FACT


def test_a_misleading_passage_is_left_out():
    """Passage 1 led to the claim; passages 2 and 3 say otherwise."""
    given_passages = passages("The permit costs 15 euro.", FACT, "Since May the permit costs 12 euro.")
    chosen = FailureDirectedReranker().next_context(
        question=QUESTION,
        passages=given_passages,
        shown=given_passages,
        failed=[
            failed(
                "The permit costs 15 euro.",
                verdict=VerdictLabel.CONFLICT,
                supporting=("1",),
                contradicting=("2", "3"),
            )
        ],
        tried=[ids(given_passages)],
    )
    assert chosen is not None
    assert "1" not in ids(chosen)
    assert {"2", "3"} <= set(ids(chosen))


def test_a_conflict_never_empties_the_context():
    only = passages("The permit costs 15 euro.")
    claim = failed("The permit costs 15 euro.", verdict=VerdictLabel.CONFLICT, supporting=("1",), contradicting=())
    chosen = FailureDirectedReranker().next_context(
        question=QUESTION, passages=only, shown=only, failed=[claim], tried=[("1",)]
    )
    assert chosen is None or len(chosen) >= 1


def test_without_passages_there_is_nothing_to_choose():
    assert FailureDirectedReranker().next_context(question=QUESTION, passages=(), shown=(), failed=[], tried=[]) is None


@settings(deadline=None, max_examples=100)
@given(
    count=st.integers(1, 6),
    size=st.one_of(st.none(), st.integers(1, 4)),
    rounds=st.integers(1, 10),
    data=st.data(),
)
def test_no_selection_is_repeated(count: int, size: int | None, rounds: int, data: st.DataObject):
    words = ["permit", "hall", "garden", "bridge", "tower", "clock"]
    given_passages = passages(
        *(f"The {w} number {i} costs {i} euro. It is old." for i, w in enumerate(words[:count], 2))
    )
    reranker = FailureDirectedReranker(context_size=size)
    shown = given_passages[:size]
    tried = [ids(shown)]
    for _ in range(rounds):
        claims = []
        for index in data.draw(st.lists(st.integers(0, count - 1), max_size=2, unique=True)):
            source = given_passages[index]
            span = EvidenceSpan(passage_id=source.id, start=0, end=10, text=source.text[:10])
            label = data.draw(st.sampled_from([*VerdictLabel]))
            claims.append(failed(source.text, verdict=label, supporting=(source.id,), evidence=(span,)))
        chosen = reranker.next_context(
            question=QUESTION, passages=given_passages, shown=shown, failed=claims, tried=tried
        )
        if chosen is None:
            break
        assert chosen
        assert ids(chosen) not in tried
        assert len(set(ids(chosen))) == len(chosen)
        base = {p.id for p in given_passages}
        assert all(p.id.split("#")[0] in base for p in chosen)
        assert all(p.text.strip() for p in chosen)
        tried.append(ids(chosen))
        shown = chosen


def test_one_passage_still_gives_other_contexts():
    only = passages(FACT)
    reranker = FailureDirectedReranker()
    tried = [ids(only)]
    for _ in range(2):
        chosen = reranker.next_context(
            question=QUESTION, passages=only, shown=only, failed=[failed("The permit costs 15 euro.")], tried=tried
        )
        assert chosen is not None
        assert ids(chosen) not in tried
        tried.append(ids(chosen))


def test_the_same_failure_gives_the_same_choice():
    given_passages = passages(*NOISE, FACT)
    choices = {
        ids(
            FailureDirectedReranker().next_context(
                question=QUESTION,
                passages=given_passages,
                shown=given_passages,
                failed=[failed("The permit costs 15 euro.")],
                tried=[ids(given_passages)],
            )
            or ()
        )
        for _ in range(20)
    }
    assert len(choices) == 1


def test_an_excerpt_has_the_type_the_caller_handed_in():
    documents = [Document(page_content=FACT + " The office is near the river.", metadata={"page": 3})]
    given_passages = as_passages(documents)[0]
    span = EvidenceSpan(passage_id=given_passages[0].id, start=0, end=len(FACT), text=FACT)
    chosen = FailureDirectedReranker().next_context(
        question=QUESTION,
        passages=given_passages,
        shown=given_passages,
        failed=[failed("The permit costs 15 euro.", evidence=(span,))],
        tried=[ids(given_passages)],
    )
    assert chosen is not None
    assert all(isinstance(p.source, Document) for p in chosen)
    assert all(p.source.page_content == p.text for p in chosen)
    assert all(p.source.metadata == {"page": 3} for p in chosen)
    assert documents[0].page_content == FACT + " The office is near the river."


# --- in a run -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", ["sentence", "answer"])
def test_every_attempt_of_a_run_sees_another_context(release: str):
    model = ScriptedGenerator(
        "The zqx cellar hides coins.", "The zqy cellar hides coins.", "The zqz cellar hides coins."
    )
    guard = Guardrail(policy=Policy(release=release), entailment=FakeEntailment(0.0), observers=[])
    outcome = guard.run_sync(model, question=QUESTION, context=[*NOISE, FACT])
    selections = [a.passage_ids for a in outcome.attempts]
    assert len(selections) == 3
    assert len(set(selections)) == 3
    assert [tuple(p.id for p in r.passages) for r in model.requests] == selections
    assert [len(r.failed_claims) for r in model.requests] == [0, 1, 2]
    assert all(c.text and c.why for c in model.requests[2].failed_claims)


def test_a_reranker_that_gives_up_ends_the_run():
    class GivesUp:
        def next_context(self, **_: Any) -> None:
            return None

    model = ScriptedGenerator("The zqx cellar hides coins.")
    guard = Guardrail(entailment=FakeEntailment(0.0), reranker=GivesUp(), observers=[])
    outcome = guard.run_sync(model, question=QUESTION, context=[FACT])
    assert (outcome.status.value, outcome.reason, len(model.requests)) == ("refused", "context_exhausted", 1)


def test_the_first_context_is_the_callers_order():
    model = ScriptedGenerator(FACT)
    guard = Guardrail(policy=Policy(context_size=2), entailment=FakeEntailment(1.0), observers=[])
    outcome = guard.run_sync(model, question=QUESTION, context=[NOISE[0], FACT, NOISE[1]])
    assert outcome.accepted
    assert [p.text for p in model.requests[0].passages] == [NOISE[0], FACT]
