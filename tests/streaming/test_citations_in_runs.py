"""Citations in guarded runs: looked up, written, corrected, and held where they mislead."""

from __future__ import annotations

import random
from typing import Any

import pytest

from guardrail import CitationStatus, Guardrail, OutcomeStatus, Policy
from guardrail.testing import FakeEntailment, ScriptedGenerator
from guardrail.types import ReleaseMode

HEIGHT, YEAR, LAKE = "The dam is 212 m high.", "The dam was finished in 1974.", "The lake is 9 km long."
CONTEXT = [HEIGHT, YEAR, LAKE]
QUESTION = "What is known about the dam?"


def _says(premise: str, claim: str) -> float:
    return 1.0 if claim in premise else 0.0


class _Reversed:
    def next_context(self, *, passages: Any, **_: Any) -> Any:
        return tuple(reversed(passages))


def guard(**policy: Any) -> Guardrail:
    return Guardrail(
        policy=Policy(lexical_weight=0.0, **policy),
        entailment=FakeEntailment(_says),
        reranker=_Reversed(),
        observers=[],
    )


async def run(answer: Any, *, context: list[str] = CONTEXT, **policy: Any) -> Any:
    generator = answer if isinstance(answer, ScriptedGenerator) else ScriptedGenerator(answer)
    outcome = await guard(**policy).run(generator, question=QUESTION, context=context)
    assert "".join(outcome.text[r.start : r.end] for r in outcome.receipt) == outcome.text
    return outcome


ANSWER = "# Facts\n\nThe dam is 212 m high [2]. The dam was finished in 1974.\n\n- The lake is 9 km long [3].\n"
CASES = [
    ("ignore", ANSWER),
    ("check", ANSWER),
    ("add", ANSWER.replace("in 1974.", "in 1974 [2].")),
    ("fix", ANSWER.replace("in 1974.", "in 1974 [2].").replace("high [2]", "high [1]")),
]


@pytest.mark.parametrize("release", ["sentence", "answer"])
@pytest.mark.parametrize(("cite", "text"), CASES)
async def test_what_the_reader_gets(cite: str, text: str, release: str):
    outcome = await run(ANSWER, cite=cite, release=release)
    assert outcome.status is OutcomeStatus.ACCEPTED
    assert outcome.text == text
    assert outcome.attempts[-1].text == text
    assert "".join(v.segment.text for v in outcome.verdicts) == text
    assert [text[v.segment.start : v.segment.end] for v in outcome.verdicts] == [
        v.segment.text for v in outcome.verdicts
    ]


@pytest.mark.parametrize("seed", range(6))
async def test_the_text_does_not_depend_on_the_chunks(seed: int):
    chance = random.Random(seed)
    chunks, rest = [], ANSWER
    while rest:
        size = chance.randint(1, 9)
        chunks.append(rest[:size])
        rest = rest[size:]
    stream = guard(cite="fix").stream(ScriptedGenerator(chunks), question=QUESTION, context=CONTEXT)
    assert "".join([piece async for piece in stream]) == dict(CASES)["fix"]


async def test_observing_changes_nothing():
    outcome = await run(ANSWER, cite="fix", release="observe")
    assert outcome.text == ANSWER
    statuses = [c.status for v in outcome.verdicts for c in v.citations]
    assert statuses == [CitationStatus.WRONG, CitationStatus.MISSING, CitationStatus.RIGHT]


async def test_what_cannot_be_put_right_stays_as_it_is():
    """Two passages support the claim only together with a third: nothing that could be written is known to be right."""
    context = ["The dam is high.", "The dam is old.", "The dam is grey.", "The dam is wet."]
    whole = "The dam is high. The dam is old. The dam is grey. The dam is wet."
    model = FakeEntailment(lambda premise, claim: 1.0 if premise == whole else 0.0)
    guarded = Guardrail(policy=Policy(lexical_weight=0.0, cite="fix"), entailment=model, observers=[])
    outcome = await guarded.run(
        ScriptedGenerator("The dam is high, old, grey and wet [1]."), question=QUESTION, context=context
    )
    assert outcome.text == "The dam is high, old, grey and wet [1]."
    assert [c.status for c in outcome.verdicts[0].citations] == [CitationStatus.WRONG]


async def test_failing_wrong_citations_asks_again_and_says_why():
    model = ScriptedGenerator("The dam is 212 m high [2].", "The dam is 212 m high [3].")
    outcome = await run(model, on_wrong_citation="fail", release="answer")
    second = model.requests[1]
    assert [claim.why for claim in second.failed_claims] == [
        f"the cited passage [2] does not say so; the one that says {HEIGHT!r} does"
    ]
    assert outcome.status is OutcomeStatus.ACCEPTED
    assert outcome.text == "The dam is 212 m high [3]."  # the third of the passages in reverse


async def test_numbers_count_the_selection_that_the_generator_was_shown():
    """The second attempt sees another order, so the same number means another passage there."""
    model = ScriptedGenerator("The dam is 300 m high [1]. ", "The dam is 212 m high [1]. The lake is 9 km long [1].")
    outcome = await run(model, release="answer")
    assert outcome.attempts[1].passage_ids == ("3", "2", "1")
    cited = [v.citations[0] for v in outcome.verdicts]
    assert [(c.status, c.passage_id, c.right) for c in cited] == [
        (CitationStatus.WRONG, "3", ("1",)),
        (CitationStatus.RIGHT, "3", ()),
    ]


@pytest.mark.parametrize("cite", ["add", "fix"])
async def test_what_is_written_counts_the_passages_as_they_were_handed_in(cite: str):
    model = ScriptedGenerator("The dam is 300 m high [1].", "The dam is 212 m high [3]. The lake is 9 km long.")
    outcome = await run(model, cite=cite, release="answer")
    assert [p.id for p in model.requests[1].passages] == ["3", "2", "1"]
    assert outcome.text == "The dam is 212 m high [1]. The lake is 9 km long [3]."
    assert [c.passage_id for v in outcome.verdicts for c in v.citations] == ["1", "3"]


async def test_a_continued_prefix_keeps_its_written_citations():
    model = ScriptedGenerator(
        "The dam is 212 m high. The dam is old and blue.", "The lake is 9 km long.", can_continue=True
    )
    stream = guard(cite="add", release=ReleaseMode.SENTENCE).stream(model, question=QUESTION, context=CONTEXT)
    text = "".join([piece async for piece in stream])
    outcome = await stream.outcome()
    assert model.requests[1].released_text == "The dam is 212 m high [1]. "
    assert text == "The dam is 212 m high [1]. The lake is 9 km long [3]."
    assert outcome.text == text == outcome.attempts[-1].text


async def test_a_sentence_is_not_repeated_because_it_is_cited_differently():
    model = ScriptedGenerator(
        "The dam is 212 m high [1]. The dam is old and blue.",
        "The dam is 212 m high [3]. The lake is 9 km long.",
    )
    stream = guard(cite="check", release=ReleaseMode.SENTENCE).stream(model, question=QUESTION, context=CONTEXT)
    text = "".join([piece async for piece in stream])
    assert text == "The dam is 212 m high [1]. The lake is 9 km long."


async def test_the_second_check_is_part_of_the_time_limit():
    """Writing asks the model once more; a model that fails then fails the attempt like any other failure."""
    asked: list[str] = []

    def once(premise: str, claim: str) -> float:
        asked.append(claim)
        if len(asked) > 2:
            raise RuntimeError("no more")
        return _says(premise, claim)

    guarded = Guardrail(policy=Policy(lexical_weight=0.0, cite="fix"), entailment=FakeEntailment(once), observers=[])
    outcome = await guarded.run(
        ScriptedGenerator("The dam is 212 m high and the lake is 9 km long [2]."), question=QUESTION, context=CONTEXT
    )
    assert outcome.status is OutcomeStatus.REFUSED
    assert "212" not in outcome.text
