"""Passages that a reranker retrieves again are evidence for every attempt from then on; nothing else is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from guardrail import Citation, CitationStatus, Guardrail, OutcomeStatus, Passage, Policy
from guardrail.context import excerpt
from guardrail.events import RunEnded
from guardrail.testing import FakeEntailment, ScriptedGenerator

HEIGHT, YEAR = "The dam is 212 m high.", "The dam was finished in 1974."
QUESTION = "When was the dam finished?"


class Retrieves:
    """A reranker that answers each failure with prepared passages, and remembers what it was told of."""

    def __init__(self, *selections: Any) -> None:
        self._selections = list(selections)
        self.told: list[tuple[str, ...]] = []

    def next_context(self, *, passages: Any, shown: Any, **_: Any) -> Any:
        self.told.append(tuple(p.id for p in passages))
        chosen = self._selections.pop(0) if self._selections else None
        return chosen(shown) if callable(chosen) else chosen


class Watching:
    def __init__(self) -> None:
        self.ended: list[RunEnded] = []

    def open_run(self, run_id: str) -> Any:
        return self

    def on_event(self, event: Any) -> None:
        if isinstance(event, RunEnded):
            self.ended.append(event)

    def activate(self, step_id: int) -> Any:
        from contextlib import nullcontext

        return nullcontext()


def guard(reranker: Any, *observers: Any, **policy: Any) -> Guardrail:
    return Guardrail(
        policy=Policy(lexical_weight=0.0, release="answer", **policy),
        entailment=FakeEntailment(lambda premise, claim: 1.0 if claim in premise else 0.0),
        reranker=reranker,
        observers=observers,
    )


async def test_what_is_retrieved_again_supports_the_next_attempt():
    reranker, watching = Retrieves((Passage(id="new", text=YEAR),)), Watching()
    model = ScriptedGenerator("The dam was finished in 1980.", YEAR)
    outcome = await guard(reranker, watching).run(model, question=QUESTION, context=[HEIGHT])
    assert outcome.status is OutcomeStatus.ACCEPTED
    assert outcome.text == YEAR
    assert outcome.verdicts[0].evidence[0].passage_id == "new"
    assert [p.id for p in watching.ended[0].passages] == ["1", "new"]


async def test_earlier_passages_stay_evidence():
    """A selection of new passages only does not hide what the request came with."""
    reranker = Retrieves((Passage(id="new", text=YEAR),))
    model = ScriptedGenerator("The dam was finished in 1980.", f"{HEIGHT} {YEAR}")
    outcome = await guard(reranker).run(model, question=QUESTION, context=[HEIGHT])
    assert outcome.accepted
    assert [v.evidence[0].passage_id for v in outcome.verdicts] == ["1", "new"]


async def test_the_reranker_is_told_of_all_that_is_known():
    first, second = Passage(id="a", text="The lake is 9 km long."), Passage(id="b", text=YEAR)
    reranker = Retrieves((first,), (second,))
    model = ScriptedGenerator("The dam was finished in 1980.", "The dam was finished in 1981.", YEAR)
    outcome = await guard(reranker).run(model, question=QUESTION, context=[HEIGHT])
    assert outcome.accepted
    assert reranker.told == [("1",), ("1", "a")]


@pytest.mark.parametrize(
    "rewrite",
    [
        pytest.param(lambda shown: (excerpt(shown[0], YEAR, suffix="#0-9"),), id="an excerpt"),
        pytest.param(lambda shown: (replace(shown[0], text=YEAR), shown[0]), id="a known id with another text"),
    ],
)
async def test_a_rewritten_passage_is_no_evidence(rewrite: Any):
    model = ScriptedGenerator("The dam was finished in 1980.", YEAR)
    outcome = await guard(Retrieves(rewrite), max_attempts=2).run(model, question=QUESTION, context=[HEIGHT])
    assert outcome.status is OutcomeStatus.REFUSED


async def test_a_citation_of_an_excerpt_is_one_of_its_passage():
    def cut(shown: Any) -> Any:
        return (excerpt(shown[1], YEAR, suffix="#0-29"),)

    model = ScriptedGenerator("The dam was finished in 1980.", "The dam was finished in 1974 [1].")
    outcome = await guard(Retrieves(cut)).run(model, question=QUESTION, context=[HEIGHT, f"{YEAR} It is grey."])
    assert outcome.accepted
    assert outcome.verdicts[0].citations == (Citation(status=CitationStatus.RIGHT, number=1, passage_id="2"),)


async def test_written_citations_count_new_passages_after_the_old_ones():
    reranker = Retrieves((Passage(id="new", text=YEAR),))
    model = ScriptedGenerator("The dam was finished in 1980.", f"{HEIGHT} The dam was finished in 1974 [1].")
    outcome = await guard(reranker, cite="fix").run(model, question=QUESTION, context=[HEIGHT])
    assert outcome.text == "The dam is 212 m high [1]. The dam was finished in 1974 [2]."
