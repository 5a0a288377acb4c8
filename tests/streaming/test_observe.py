"""Mode observe: the reader gets everything at once, whatever checking costs, and the receipt covers all of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from guardrail import EntailmentScore, GenerationError, Guardrail, OutcomeStatus, Policy, ReceiptStatus
from guardrail.events import Finished, Held, Released, RodeAlong
from guardrail.protocols import Pair
from guardrail.testing import FakeEntailment, ScriptedGenerator
from guardrail.types import Outcome
from tests.streaming.helpers import HALL, QUESTION, assert_receipt, others, told, turns

ONE, WRONG = "The old hall keeps a wooden clock near its door.", "The zqx cellar hides rare coins."


def observing(entailment: Any = None, **fields: Any) -> Guardrail:
    policy = Policy(lexical_weight=0.0, release="observe", **fields)
    return Guardrail(policy=policy, entailment=FakeEntailment(1.0) if entailment is None else entailment, observers=[])


class Gated:
    """A model that scores nothing until it is told to."""

    model_id = "gated"

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.asked = 0

    async def score(self, pairs: Sequence[Pair]) -> list[EntailmentScore]:
        self.asked += len(pairs)
        await self.go_on.wait()
        return [EntailmentScore(entailment=1.0) for _ in pairs]


# --- who waits for whom ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("pauses", [0, 1, 5])
@pytest.mark.parametrize("entailment", [1.0, 0.0])
async def test_a_slow_reader_gets_every_event(pauses: int, entailment: float):
    """Text and verdicts come from two tasks through one bounded channel."""
    sentences = [f"The old room number {i} is quiet. " for i in range(60)]

    async def generate(question: str) -> AsyncIterator[str]:
        for sentence in sentences:
            yield sentence

    stream = observing(FakeEntailment(entailment), timeout_s=5).stream(generate, question=QUESTION, context=sentences)
    events: list[Any] = []
    async with asyncio.timeout(10):
        async for event in stream.events():
            events.append(event)
            await turns(pauses)
    assert told(events) == "".join(sentences)
    assert isinstance(events[-1], Finished)
    outcome = await stream.outcome()
    assert sum(isinstance(e, Held) for e in events) == (0 if entailment == 1.0 else 60)
    assert outcome.accepted == (entailment == 1.0)
    assert_receipt(outcome)
    assert others() == set()


async def test_text_does_not_wait_for_the_model():
    """More text than any buffer holds has arrived while not one claim is scored."""
    model = Gated()
    sentences = [f"The old room number {i} is quiet. " for i in range(200)]

    async def generate(question: str) -> AsyncIterator[str]:
        for sentence in sentences:
            yield sentence

    stream = observing(model).stream(generate, question=QUESTION, context=[HALL])
    seen = ""
    async with asyncio.timeout(10):
        while seen != "".join(sentences):
            seen += await anext(aiter(stream))
    assert not model.go_on.is_set()
    assert model.asked > 0
    model.go_on.set()
    outcome = await stream.outcome()
    assert outcome.text == seen
    assert {r.status for r in outcome.receipt} == {ReceiptStatus.CHECKED_AFTER}
    assert sum(v.checked for v in outcome.attempts[0].verdicts) == 200


async def test_a_reader_who_leaves_while_the_model_is_slow_leaves_nothing_behind():
    model = Gated()
    closed: list[bool] = []

    async def generate(question: str) -> AsyncIterator[str]:
        try:
            for i in range(100):
                yield f"The old room number {i} is quiet. "
            await asyncio.Event().wait()
        finally:
            closed.append(True)

    stream = observing(model).stream(generate, question=QUESTION, context=[HALL])
    await anext(aiter(stream))
    async with asyncio.timeout(1):
        await stream.aclose()
    assert closed == [True]
    assert others() == set()
    assert (await stream.outcome()).status is OutcomeStatus.CANCELLED


async def test_objects_come_at_once_and_in_their_place():
    items = [{"text": ONE + " ", "n": 1}, {"text": "", "usage": {"total_tokens": 1}}, {"text": WRONG, "n": 2}]
    stream = observing(FakeEntailment(0.0)).stream(ScriptedGenerator(items), question=QUESTION, context=[HALL])
    events = [e async for e in stream.events()]
    order = [e.text if isinstance(e, Released) else e.raw for e in events if isinstance(e, (Released, RodeAlong))]
    assert order == [ONE + " ", items[0], items[1], WRONG, items[2]]


# --- the receipt ----------------------------------------------------------------------------------------------


async def outcome_of(guard: Guardrail, chunks: list[Any]) -> Outcome:
    stream = guard.stream(ScriptedGenerator(chunks), question=QUESTION, context=[HALL])
    events = [event async for event in stream.events()]
    outcome = await stream.outcome()
    assert outcome.text == told(events)
    assert_receipt(outcome)
    return outcome


@pytest.mark.parametrize("tail", ["The garden", "The garden grows.", " ", "x" * 400])
async def test_the_receipt_covers_the_text_of_an_answer_that_is_too_long(tail: str):
    beginning = f"{ONE} " * 21
    outcome = await outcome_of(observing(max_answer_chars=1000), [beginning + tail])
    assert len(outcome.text) > 1000
    assert outcome.reason == "too_long"
    assert not outcome.accepted
    last = outcome.receipt[-1]
    assert (last.end, last.status, last.reason) == (len(outcome.text), ReceiptStatus.NOT_CHECKED, "too_long")
    assert outcome.would_have == "refuse"


@pytest.mark.parametrize(
    "chunks",
    [
        [ONE + "\ud83d"],
        [ONE, "\ud83d"],
        [ONE + " \ud83d", " The end."],
        ["\udd50" + ONE],
        [ONE + "\ud83d", "\udd50"],
        [{"text": ONE + "\ud83d"}],
    ],
)
async def test_half_characters_are_in_the_text_and_in_the_receipt(chunks: list[Any]):
    outcome = await outcome_of(observing(), chunks)
    outcome.text.encode("utf-8")
    assert outcome.text == outcome.attempts[0].text
    if chunks == [ONE + "\ud83d", "\udd50"]:
        assert outcome.text == ONE + "\U0001f550"
    else:
        assert outcome.text.count("\ufffd") == 1
    assert {r.status for r in outcome.receipt} == {ReceiptStatus.CHECKED_AFTER}


@pytest.mark.parametrize("place", [0, 1, 2])
async def test_the_receipt_covers_the_text_of_an_answer_that_breaks_off(place: int):
    chunks: list[Any] = [ONE + " ", WRONG + " The "]
    chunks.insert(place, OSError("gone"))
    stream = observing().stream(ScriptedGenerator(chunks), question=QUESTION, context=[HALL])
    seen = ""
    with pytest.raises(GenerationError) as caught:
        async for text in stream:
            seen += text
    outcome = caught.value.outcome
    assert seen == outcome.text == "".join(c for c in chunks[:place])
    assert sum(r.end - r.start for r in outcome.receipt) == len(outcome.text)
    assert_receipt(outcome)
