"""After a claim failed with text already out: what the repaired answer may say, and may not say by accident."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import guardrail.delivery
from guardrail import Guardrail, OutcomeStatus, Policy, StreamStateError
from guardrail.attempt import words_of
from guardrail.events import Released, Retracted, RodeAlong
from guardrail.testing import FakeEntailment, ScriptedGenerator
from guardrail.types import Outcome
from tests.streaming.helpers import LENIENT_WORDS, assert_receipt, guard_for, told

TOWER, CASTLE = "The Tower opens at ten.", "The Castle opens at nine."
CAFE = "It has a café."
WRONG, OTHER_WRONG = "The zqx cellar hides rare coins.", "The zqy tower burned down last winter."
CONTEXT = ["The Tower opens at ten. It has a café.", "The Castle opens at nine.", "Entry is free."]
QUESTION = "What about the Tower?"
RELEASE = LENIENT_WORDS.override(release="sentence")


async def collect(
    answers: list[Any], *, can_continue: bool, known: tuple[str, ...], context: list[str] = CONTEXT
) -> tuple[list[Any], Outcome]:
    model = ScriptedGenerator(*answers, can_continue=can_continue)
    stream = guard_for(*known, policy=RELEASE).stream(model, question=QUESTION, context=context)
    events = [event async for event in stream.events()]
    outcome = await stream.outcome()
    assert told(events) == outcome.text
    assert_receipt(outcome)
    return events, outcome


# --- pronouns -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pronoun", [CAFE, "Its café is large.", "There is a café in this one.", "They serve tea."])
@pytest.mark.parametrize("can_continue", [True, False])
async def test_a_sentence_that_leans_on_a_dropped_one_is_not_handed_to_another(pronoun: str, can_continue: bool):
    """The Tower has a café; behind "The Castle opens at nine." the same words would speak of the Castle."""
    if can_continue:  # the continuation begins anew: its first sentence is out already, and not the last one
        answers = [f"{TOWER} {CASTLE} {WRONG}", f"{TOWER} {pronoun}"]
    else:
        answers = [f"{TOWER} {WRONG}", f"{CASTLE} {TOWER} {pronoun}"]
    _, outcome = await collect(answers, can_continue=can_continue, known=(TOWER, CASTLE, pronoun))
    assert pronoun not in outcome.text
    assert outcome.text.count(TOWER) == 1


async def test_a_sentence_that_leans_on_what_the_reader_read_last_passes():
    _, outcome = await collect([f"{TOWER} {WRONG}", f"{TOWER} {CAFE}"], can_continue=True, known=(TOWER, CASTLE, CAFE))
    assert (outcome.accepted, outcome.text, outcome.repair) == (True, f"{TOWER} {CAFE}", "continued")


async def test_a_sentence_that_leans_on_a_new_one_passes():
    _, outcome = await collect(
        [f"{CASTLE} {WRONG}", f"{CASTLE} {TOWER} {CAFE}"], can_continue=True, known=(TOWER, CASTLE, CAFE)
    )
    assert (outcome.accepted, outcome.text) == (True, f"{CASTLE} {TOWER} {CAFE}")


async def test_the_same_where_the_attempt_is_appended():
    _, outcome = await collect(
        [f"{CASTLE} {WRONG}", f"{CASTLE} {TOWER} {CAFE}"], can_continue=False, known=(TOWER, CASTLE, CAFE)
    )
    assert (outcome.accepted, outcome.text) == (True, f"{CASTLE} {TOWER} {CAFE}")


async def test_sentences_after_a_left_out_pronoun_are_not_lost():
    free = "Entry is free."
    _, outcome = await collect(
        [f"{TOWER} {CASTLE} {WRONG}", f"{CASTLE} {TOWER} {CAFE} {free}"],
        can_continue=False,
        known=(TOWER, CASTLE, CAFE, free),
    )
    assert CAFE not in outcome.text
    assert outcome.text == f"{TOWER} {CASTLE} {free}"


# --- empty continuations --------------------------------------------------------------------------------------


@pytest.mark.parametrize("nothing", ["", " ", "  \n", "\n\n"])
@pytest.mark.parametrize("greeting", ["Hello! ", "Hello! Nice to meet you. "])
async def test_an_empty_continuation_of_a_greeting_is_no_answer(greeting: str, nothing: str):
    _, outcome = await collect([greeting + WRONG, nothing], can_continue=True, known=())
    assert outcome.status is OutcomeStatus.REFUSED
    assert not any(a.accepted for a in outcome.attempts)
    assert {a.reason for a in outcome.attempts[1:]} == {"empty_answer"}
    assert outcome.text.startswith("Hello!")
    assert outcome.text.endswith(Policy().refusal_tail)


@pytest.mark.parametrize("nothing", ["", " "])
async def test_an_empty_continuation_of_a_claim_that_passed_ends_the_answer(nothing: str):
    _, outcome = await collect([f"{TOWER} {WRONG}", nothing], can_continue=True, known=(TOWER,))
    assert outcome.accepted
    assert outcome.text.rstrip() == TOWER


# --- repetitions ----------------------------------------------------------------------------------------------


async def test_a_continuation_keeps_short_repetitions():
    """A second rule, a second "Yes." and equal table cells are no sentence that the reader has read."""
    one, two = "Yes.\n\n---\n\n" + TOWER + "\n\n", "---\n\n" + CASTLE + "\n\nYes.\n"
    _, outcome = await collect([one + WRONG, two], can_continue=True, known=(TOWER, CASTLE, "Yes."))
    assert outcome.accepted
    assert outcome.text.count("---") == 2
    assert outcome.text.count("Yes.") == 2


@pytest.mark.parametrize("place", ["first", "in the middle", "last"])
async def test_a_continuation_drops_a_sentence_that_is_out(place: str):
    free = "Entry is free."
    later = {"first": [TOWER, CASTLE, free], "in the middle": [CASTLE, TOWER, free], "last": [CASTLE, free, TOWER]}
    _, outcome = await collect(
        [f"{TOWER} {WRONG}", " ".join(later[place])], can_continue=True, known=(TOWER, CASTLE, free)
    )
    assert outcome.accepted
    assert outcome.text.rstrip() == f"{TOWER} {CASTLE} {free}"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The low is 5 °C today.", "The low is -5 °C today."),
        ("The fee is $5 per day.", "The fee is €5 per day."),
        ("Sales grew by 5 in May.", "Sales grew by 5% in May."),
        ("Doses > 5 mg are safe.", "Doses < 5 mg are safe."),
        ("Take .5 mg every day.", "Take 5 mg every day."),
        ("The tool is in C.", "The tool is in C++."),
    ],
)
@pytest.mark.parametrize("can_continue", [True, False])
async def test_sentences_that_differ_in_a_sign_are_different(one: str, other: str, can_continue: bool):
    guard = Guardrail(
        policy=RELEASE,
        entailment=FakeEntailment(lambda premise, claim: 0.0 if claim == WRONG else 1.0),
        observers=[],
    )
    model = ScriptedGenerator(f"{one} {WRONG}", f"{TOWER} {other}", can_continue=can_continue)
    stream = guard.stream(model, question=QUESTION, context=[one, other, TOWER])
    async for _ in stream:
        pass
    outcome = await stream.outcome()
    assert one in outcome.text
    assert other in outcome.text


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("The low is 5 °C.", "The low is -5 °C.", False),
        ("The fee is $5.", "The fee is €5.", False),
        ("Take .5 mg.", "Take 5 mg.", False),
        ("Written in C#.", "Written in C++.", False),
        ("Knives: ✅", "Knives: ❌", False),
        ("The Tower opens at ten.", "the  tower opens\nat TEN!", True),
        ("“Entry is free.”", '"Entry is free"', True),
        ("**Entry** is free.", "Entry is free", True),
    ],
)
def test_what_counts_as_the_same_sentence(one: str, other: str, same: bool):
    assert (words_of(one) == words_of(other)) is same


async def test_what_is_out_is_cut_into_words_once(monkeypatch: pytest.MonkeyPatch):
    """Comparing every new sentence with every old one must not cut the old ones anew each time."""
    count = 60
    old = [f"The old room number {i} is quiet." for i in range(count)]
    new = [f"The new shed number {i} is large." for i in range(count)]
    calls: list[str] = []

    def counting(text: str) -> tuple[str, ...]:
        calls.append(text)
        return words_of(text)

    monkeypatch.setattr(guardrail.delivery, "words_of", counting)
    _, outcome = await collect(
        [" ".join([*old, WRONG]), " ".join([*old, *new])],
        can_continue=False,
        known=(*old, *new),
        context=[*old, *new],
    )
    assert outcome.repair == "appended"
    assert outcome.text == " ".join([*old, *new])
    assert len(calls) <= 4 * 2 * count


# --- the appended attempt -------------------------------------------------------------------------------------


async def test_the_outcome_for_the_reader_has_nothing_of_an_appended_attempt_that_was_left_out():
    other_wording = "At ten the Tower opens."
    events, outcome = await collect(
        [f"{TOWER} {WRONG}", f"{other_wording} {CASTLE} {TOWER} {CAFE}"],
        can_continue=False,
        known=(TOWER, CASTLE, CAFE, other_wording),
    )
    assert outcome.repair == "appended"
    given = outcome.text
    own = events[-1].outcome
    assert own.text == given
    for reader_safe in (own, outcome.for_reader()):
        for attempt in reader_safe.attempts:
            assert attempt.text in given
            for verdict in attempt.verdicts:
                assert verdict.segment.text.strip() in given
        assert CAFE not in given
        assert "zqx" not in "".join(a.text for a in reader_safe.attempts)
    assert any(CAFE in a.text for a in outcome.attempts), "the full outcome keeps everything"


@pytest.mark.parametrize("can_continue", [True, False])
async def test_the_outcome_for_the_reader_of_a_plain_repair_keeps_what_was_read(can_continue: bool):
    events, outcome = await collect(
        [f"{TOWER} {WRONG}", f"{TOWER} {CASTLE}"], can_continue=can_continue, known=(TOWER, CASTLE)
    )
    assert outcome.text == f"{TOWER} {CASTLE}"
    assert events[-1].outcome.text == outcome.text


# --- retractions ----------------------------------------------------------------------------------------------


async def test_text_alone_cannot_follow_on_a_retractable_beginning():
    """The reader of plain text could not take back what was retracted."""
    model = ScriptedGenerator(f"{TOWER} {WRONG}", CASTLE)
    stream = guard_for(TOWER, CASTLE, policy=RELEASE).stream(model, question=QUESTION, context=CONTEXT)
    events = stream.events(retractable=True)
    seen: list[Any] = [await anext(events)]
    with pytest.raises(StreamStateError, match="retractable"):
        await anext(aiter(stream))
    seen += [event async for event in events]
    assert any(isinstance(event, Retracted) for event in seen)
    assert told(seen) == (await stream.outcome()).text == CASTLE


# --- tool calls -----------------------------------------------------------------------------------------------

CHAT_CALL = {"choices": [{"index": 0, "delta": {"content": None, "tool_calls": [{"id": "1"}]}}]}
PLAIN_CALL = {"content": "", "tool_calls": [{"id": "1", "function": {"name": "pay", "arguments": "{}"}}]}


@pytest.mark.parametrize("call", [PLAIN_CALL, CHAT_CALL], ids=["plain", "chat"])
@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("retractable", [True, False])
async def test_a_tool_call_of_a_rejected_attempt_is_never_handed_out(call: Any, place: int, retractable: bool):
    """An agent would act on it, and once more on that of the next attempt."""

    def answer(text: str) -> list[Any]:
        chunks: list[Any] = [text]
        chunks.insert(place, call)
        return chunks

    model = ScriptedGenerator(answer(WRONG), answer(TOWER))
    stream = guard_for(TOWER, policy=RELEASE).stream(model, question=QUESTION, context=CONTEXT)
    events = [event async for event in stream.events(retractable=retractable)]
    rides = [event for event in events if isinstance(event, RodeAlong)]
    assert [(ride.raw, ride.attempt) for ride in rides] == [(call, 2)]
    assert (await stream.outcome()).text == TOWER


async def test_a_tool_call_of_a_refused_answer_is_never_handed_out():
    model = ScriptedGenerator([PLAIN_CALL, WRONG])
    stream = guard_for(policy=RELEASE).stream(model, question=QUESTION, context=CONTEXT)
    events = [event async for event in stream.events()]
    assert not any(isinstance(event, RodeAlong) for event in events)
    assert (await stream.outcome()).status is OutcomeStatus.REFUSED


@pytest.mark.parametrize("profile", ["balanced", "strict"])
async def test_a_tool_call_does_not_carry_a_heading_that_states_something(profile: str):
    message = {"content": "**Aspirin heals everybody**", "tool_calls": [{"id": "1"}]}
    guard = Guardrail(policy=profile, entailment=FakeEntailment(1.0), observers=[])
    stream = guard.stream(ScriptedGenerator([message]), question=QUESTION, context=CONTEXT)
    events = [event async for event in stream.events()]
    assert not (await stream.outcome()).accepted
    assert not any("Aspirin" in event.text for event in events if isinstance(event, Released))
    assert not any(isinstance(event, RodeAlong) for event in events)


# --- the same failure again -----------------------------------------------------------------------------------


@pytest.mark.parametrize("spelt", [str.lower, lambda text: text.rstrip(".") + "!", lambda text: f"**{text}**"])
async def test_the_same_claim_in_another_dress_is_the_same_failure(spelt: Callable[[str], str]):
    _, outcome = await collect([WRONG, spelt(WRONG), TOWER], can_continue=False, known=(TOWER,))
    assert (outcome.status, outcome.reason) == (OutcomeStatus.REFUSED, "same_claim_failed_twice")
    _, outcome = await collect([WRONG, OTHER_WRONG, TOWER], can_continue=False, known=(TOWER,))
    assert (outcome.accepted, outcome.text) == (True, TOWER)
