"""Release modes, repairs, receipts, refusals, limits: what the reader gets, and what is known about it."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from guardrail import (
    DeadlineExceededError,
    Decision,
    EntailmentScore,
    Guardrail,
    OutcomeStatus,
    Policy,
    RateLimitedError,
    ReceiptStatus,
    ReleaseMode,
    ScoringError,
    ScoringTimeoutError,
    StreamStateError,
)
from guardrail.events import Finished, Held, Regenerating, Released, Retracted, RunEnded
from guardrail.testing import FakeEntailment, ManualClock, ScriptedGenerator
from tests.streaming.helpers import (
    HALL,
    QUESTION,
    Counts,
    Recorder,
    assert_balanced,
    assert_receipt,
    generator,
    guard_for,
    others,
    quiet,
    strings_in,
    told,
    turns,
)

ONE, TWO, THREE = (
    "The old hall keeps a wooden clock near its door.",
    "The garden grows tall roses by the wall.",
    "A stone bridge leads to the northern gate.",
)
WRONG, OTHER_WRONG = "The zqx cellar hides rare coins.", "The zqy tower burned down last winter."
CONTEXT = [HALL, THREE]


def policy(**fields: Any) -> Policy:
    return Policy(lexical_weight=0.0, **fields)


async def collect(
    attempts: list[list[Any]], rules: Policy, *, can_continue: bool = False, retractable: bool = False, **more: Any
) -> tuple[list[Any], Any, Counts]:
    counts = Counts()
    guard = guard_for(ONE, TWO, THREE, policy=rules, **more)
    stream = guard.stream(generator(attempts, counts, can_continue=can_continue), question=QUESTION, context=CONTEXT)
    events = [e async for e in stream.events(retractable=retractable)]
    outcome = await stream.outcome()
    assert told(events) == outcome.text
    assert isinstance(events[-1], Finished)
    assert counts.all_closed
    assert_receipt(outcome)
    return events, outcome, counts


# --- what is meant by auto ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("profile", "streaming", "can_continue", "expected"),
    [
        ("balanced", True, False, ReleaseMode.SENTENCE),
        ("balanced", True, True, ReleaseMode.SENTENCE),
        ("balanced", False, False, ReleaseMode.ANSWER),
        ("balanced", False, True, ReleaseMode.SENTENCE),
        ("lenient", True, False, ReleaseMode.SENTENCE),
        ("strict", True, False, ReleaseMode.ANSWER),
        ("strict", True, True, ReleaseMode.ANSWER),
        ("strict", False, False, ReleaseMode.ANSWER),
        ("reference", True, False, ReleaseMode.ANSWER),
    ],
)
async def test_auto(profile: str, streaming: bool, can_continue: bool, expected: ReleaseMode):
    guard = Guardrail(policy=profile, entailment=FakeEntailment(1.0), observers=[])
    source = generator([[ONE]], Counts(), can_continue=can_continue)
    if streaming:
        stream = guard.stream(source, question=QUESTION, context=[ONE])
        async for _ in stream:
            pass
        outcome = await stream.outcome()
    else:
        outcome = await guard.run(source, question=QUESTION, context=[ONE])
    assert outcome.release is expected


# --- sentence -------------------------------------------------------------------------------------------------


async def test_a_sentence_leaves_before_the_next_is_generated():
    """The first sentence is out while the generator still waits to write the third."""
    go_on = asyncio.Event()

    async def generate(question: str) -> Any:
        yield ONE + " "
        yield TWO[:5]
        await go_on.wait()
        yield TWO[5:]

    stream = guard_for(ONE, TWO).stream(generate, question=QUESTION, context=CONTEXT)
    reader = aiter(stream)
    assert await anext(reader) == ONE + " "
    go_on.set()
    assert await anext(reader) == TWO
    with pytest.raises(StopAsyncIteration):
        await anext(reader)
    assert (await stream.outcome()).accepted


async def test_answer_mode_waits_for_the_last_character():
    go_on = asyncio.Event()

    async def generate(question: str) -> Any:
        yield ONE + " "
        await go_on.wait()
        yield TWO

    stream = guard_for(ONE, TWO, policy=policy(release="answer")).stream(generate, question=QUESTION, context=CONTEXT)
    first = asyncio.create_task(anext(aiter(stream)))
    await turns(50)
    assert not first.done()
    go_on.set()
    assert (await first).startswith(ONE)
    assert (await stream.outcome()).text == ONE + " " + TWO


# --- the three repairs ----------------------------------------------------------------------------------------


async def test_continued():
    events, outcome, counts = await collect(
        [[ONE + " ", WRONG], [TWO + " ", THREE]], policy(release="sentence"), can_continue=True
    )
    assert outcome.text == f"{ONE} {TWO} {THREE}"
    assert (outcome.repair, outcome.delivered_attempt, outcome.reason) == ("continued", 2, "passed")
    assert counts.released_texts == ["", ONE + " "]
    assert outcome.attempts[1].text == outcome.text
    assert [(r.start, r.attempt) for r in outcome.receipt] == [
        (0, 1),
        (len(ONE) + 1, 2),
        (len(ONE + TWO) + 2, 2),
    ] or [(r.start, r.attempt) for r in outcome.receipt] == [(0, 1), (len(ONE) + 1, 2)]
    kinds = [type(e) for e in events]
    assert kinds.index(Held) < kinds.index(Regenerating)
    assert Retracted not in kinds


async def test_a_continuation_that_begins_anew():
    """Models often repeat what they were told to continue."""
    _, outcome, _ = await collect(
        [[ONE + " ", WRONG], [ONE + " " + TWO]], policy(release="sentence"), can_continue=True
    )
    assert outcome.text == ONE + " " + TWO
    assert outcome.accepted


async def test_a_continuation_that_repeats_a_sentence_later():
    _, outcome, _ = await collect(
        [[ONE + " ", WRONG], [TWO + " ", ONE + " ", THREE]], policy(release="sentence"), can_continue=True
    )
    assert Counter(s for s in (ONE, TWO, THREE) for _ in range(outcome.text.count(s))) == {ONE: 1, TWO: 1, THREE: 1}


async def test_a_continuation_without_a_space_is_still_readable():
    _, outcome, _ = await collect([[ONE + " ", WRONG], [TWO]], policy(release="sentence"), can_continue=True)
    assert outcome.text == ONE + " " + TWO


async def test_retracted():
    events, outcome, _ = await collect(
        [[ONE + " ", WRONG], [TWO + " ", THREE]], policy(release="sentence"), retractable=True
    )
    assert outcome.text == f"{TWO} {THREE}"
    assert (outcome.repair, outcome.delivered_attempt) == ("retracted", 2)
    (retracted,) = [e for e in events if isinstance(e, Retracted)]
    assert (retracted.start, retracted.attempt) == (0, 1)
    assert {r.attempt for r in outcome.receipt} == {2}


async def test_a_retracting_reader_of_a_continuing_generator_is_continued():
    events, outcome, _ = await collect(
        [[ONE + " ", WRONG], [TWO]], policy(release="sentence"), can_continue=True, retractable=True
    )
    assert (outcome.text, outcome.repair) == (ONE + " " + TWO, "continued")
    assert not any(isinstance(e, Retracted) for e in events)


async def test_appended():
    events, outcome, _ = await collect([[ONE + " ", WRONG], [ONE + " ", TWO + " ", THREE]], policy(release="sentence"))
    assert outcome.text == f"{ONE} {TWO} {THREE}"
    assert (outcome.repair, outcome.accepted) == ("appended", True)
    assert not any(isinstance(e, Retracted) for e in events)


async def test_appended_sentences_wait_for_the_whole_attempt():
    """A second attempt that fails at its end adds nothing, although its first sentences are fine."""
    _, outcome, _ = await collect(
        [[ONE + " ", WRONG], [ONE + " ", TWO + " ", OTHER_WRONG]], policy(release="sentence", max_attempts=2)
    )
    assert outcome.status is OutcomeStatus.REFUSED
    assert TWO not in outcome.text
    assert outcome.text.startswith(ONE)
    assert outcome.text.endswith(Policy().refusal_tail)


async def test_when_nothing_fits_the_run_ends_with_the_tail():
    """What the second attempt says is out already: nothing to add."""
    _, outcome, _ = await collect(
        [[ONE + " ", TWO + " ", WRONG], [TWO + " ", ONE]], policy(release="sentence", max_attempts=2)
    )
    assert outcome.text.count(ONE) == outcome.text.count(TWO) == 1
    assert outcome.text.startswith(ONE + " " + TWO)


async def test_a_failure_in_the_first_sentence_needs_no_repair():
    _, outcome, _ = await collect([[WRONG], [ONE + " ", TWO]], policy(release="sentence"))
    assert (outcome.text, outcome.repair, outcome.delivered_attempt) == (ONE + " " + TWO, "", 2)


@pytest.mark.parametrize("retractable", [False, True])
async def test_a_later_failure_of_the_generator_ends_in_a_refusal(retractable: bool):
    _, outcome, _ = await collect(
        [[ONE + " ", WRONG], [ConnectionError("gone")]], policy(release="sentence"), retractable=retractable
    )
    assert outcome.status is OutcomeStatus.REFUSED
    assert isinstance(outcome.error.__cause__, ConnectionError)
    assert WRONG not in outcome.text


async def test_a_later_failure_of_the_generator_can_end_in_the_best_attempt():
    _, outcome, _ = await collect([[WRONG], [ConnectionError("gone")]], policy(release="answer", on_exhausted="best"))
    assert (outcome.status, outcome.text, outcome.delivered_attempt) == (OutcomeStatus.BEST_ATTEMPT, WRONG, 1)
    assert not outcome.accepted


# --- observe --------------------------------------------------------------------------------------------------


async def test_observe_shows_text_at_once_and_verdicts_afterwards():
    go_on = asyncio.Event()

    async def generate(question: str) -> Any:
        yield WRONG[:10]
        await go_on.wait()
        yield WRONG[10:]

    stream = guard_for(ONE, policy=policy(release="observe")).stream(generate, question=QUESTION, context=CONTEXT)
    reader = aiter(stream)
    assert await anext(reader) == WRONG[:10]
    go_on.set()
    assert await anext(reader) == WRONG[10:]
    with pytest.raises(StopAsyncIteration):
        await anext(reader)
    outcome = await stream.outcome()
    assert outcome.text == WRONG
    assert not outcome.accepted
    assert {r.status for r in outcome.receipt} == {ReceiptStatus.CHECKED_AFTER}
    assert outcome.would_have in ("regenerate", "refuse")
    assert len(outcome.attempts) == 1


@pytest.mark.parametrize(
    ("chunks", "attempts", "would_have", "status"),
    [
        ([ONE + " ", TWO], 3, "accept", OutcomeStatus.ACCEPTED),
        ([ONE + " ", WRONG], 3, "regenerate", OutcomeStatus.BEST_ATTEMPT),
        ([ONE + " ", WRONG], 1, "refuse", OutcomeStatus.BEST_ATTEMPT),
    ],
)
async def test_observe_says_what_a_gate_would_have_done(
    chunks: list[str], attempts: int, would_have: str, status: OutcomeStatus
):
    events, outcome, counts = await collect([chunks], policy(release="observe", max_attempts=attempts))
    assert outcome.text == "".join(chunks)
    assert (outcome.would_have, outcome.status) == (would_have, status)
    assert counts.calls == 1
    assert {r.status for r in outcome.receipt} == {ReceiptStatus.CHECKED_AFTER}
    assert outcome.attempts[0].verdicts
    assert not any(isinstance(e, (Regenerating, Retracted)) for e in events)


async def test_observe_delivers_although_the_scorer_fails():
    def broken(premise: str, claim: str) -> float:
        raise RuntimeError("gone")

    guard = Guardrail(policy=policy(release="observe"), entailment=FakeEntailment(broken), observers=[])
    outcome = await guard.run(ScriptedGenerator(ONE), question=QUESTION, context=CONTEXT)
    assert outcome.text == ONE
    assert not outcome.accepted
    assert {r.status for r in outcome.receipt} == {ReceiptStatus.NOT_CHECKED}
    assert outcome.would_have == "refuse"


async def test_observe_without_context_is_marked():
    guard = Guardrail(policy=policy(release="observe"), entailment=FakeEntailment(1.0), observers=[])
    outcome = await guard.run(ScriptedGenerator(ONE), question=QUESTION, context=[])
    assert outcome.text == ONE
    assert not outcome.accepted
    assert {r.status for r in outcome.receipt} == {ReceiptStatus.NOT_CHECKED}
    assert outcome.would_have == "refuse"


# --- errors of the checker ------------------------------------------------------------------------------------


def failing_on(word: str) -> FakeEntailment:
    def score(premise: str, claim: str) -> float:
        if word in claim:
            raise RuntimeError("gone")
        return 1.0

    return FakeEntailment(score)


@pytest.mark.parametrize("release", ["sentence", "answer"])
async def test_on_error_refuse(release: str):
    guard = Guardrail(policy=policy(release=release), entailment=failing_on("garden"), observers=[])
    outcome = await guard.run(ScriptedGenerator([ONE + " ", TWO]), question=QUESTION, context=CONTEXT)
    assert (outcome.status, outcome.reason) == (OutcomeStatus.REFUSED, "scoring_error")
    assert "garden" not in outcome.text
    assert len(outcome.attempts) == 1
    assert_receipt(outcome)


@pytest.mark.parametrize("release", ["sentence", "answer"])
async def test_on_error_raise(release: str):
    guard = Guardrail(policy=policy(release=release, on_error="raise"), entailment=failing_on("garden"), observers=[])
    stream = guard.stream(ScriptedGenerator([ONE + " ", TWO]), question=QUESTION, context=CONTEXT)
    out: list[str] = []
    with pytest.raises(ScoringError) as caught:
        async for text in stream:
            out.append(text)
    assert caught.value.scorer == "fake"
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert caught.value.outcome.status is OutcomeStatus.ERROR
    assert "".join(out) in ("", ONE + " ")


@pytest.mark.parametrize("release", ["sentence", "answer"])
async def test_on_error_pass_marked(release: str):
    rules = policy(release=release, on_error="pass_marked")
    guard = Guardrail(policy=rules, entailment=failing_on("garden"), observers=[])
    stream = guard.stream(ScriptedGenerator([ONE + " ", TWO]), question=QUESTION, context=CONTEXT)
    assert "".join([t async for t in stream]) == ONE + " " + TWO
    outcome = await stream.outcome()
    assert (outcome.status, outcome.reason) == (OutcomeStatus.ERROR, "scoring_error")
    assert not outcome.accepted
    last = outcome.receipt[-1]
    assert (last.status, last.end) == (ReceiptStatus.NOT_CHECKED, len(outcome.text))
    assert_receipt(outcome)


async def test_a_failed_claim_still_fails_when_errors_pass_marked():
    rules = policy(release="sentence", on_error="pass_marked", max_attempts=1)

    def score(premise: str, claim: str) -> float:
        if "garden" in claim:
            raise RuntimeError("gone")
        return 0.0 if "zqx" in claim else 1.0

    guard = Guardrail(policy=rules, entailment=FakeEntailment(score), observers=[])
    outcome = await guard.run(ScriptedGenerator([WRONG + " ", TWO]), question=QUESTION, context=CONTEXT)
    assert not outcome.accepted
    assert "zqx" not in outcome.text


# --- conflicts ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("on_conflict", "accepted"), [("release", True), ("fail", False)])
async def test_conflicting_passages(on_conflict: str, accepted: bool):
    claim = "The permit needs a photo."

    def score(premise: str, hypothesis: str) -> EntailmentScore:
        yes, no = claim in premise, "without any photo" in premise
        return EntailmentScore(entailment=0.97 if yes and not no else 0.0, contradiction=0.95 if no else 0.0)

    filler = " ".join(["The office lies beside the river and opens early."] * 20)
    context = [claim + " " + filler, "The permit is given without any photo. " + filler]
    guard = Guardrail(
        policy=policy(on_conflict=on_conflict, max_attempts=1, evidence_words=20),
        entailment=FakeEntailment(score),
        observers=[],
    )
    outcome = await guard.run(ScriptedGenerator(claim), question="What does a permit need?", context=context)
    (verdict,) = outcome.attempts[0].verdicts
    assert verdict.verdict is not None
    if verdict.verdict.value == "conflict":
        assert outcome.accepted is accepted
    else:
        assert not outcome.accepted


# --- refusals -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tail", [False, True])
async def test_the_refusal_template(tail: bool):
    rules = policy(
        release="sentence",
        max_attempts=2,
        refusal="No answer to {question!r} after {attempts} attempts: {reason}.",
        refusal_tail="No more about {question} ({attempts}, {reason}).",
    )
    chunks = [[ONE + " ", WRONG], [OTHER_WRONG]] if tail else [[WRONG], [OTHER_WRONG]]
    events, outcome, _ = await collect(chunks, rules)
    words = (
        f"No more about {QUESTION} (2, attempts_exhausted)."
        if tail
        else f"No answer to {QUESTION!r} after 2 attempts: attempts_exhausted."
    )
    assert outcome.text.endswith(words)
    assert outcome.delivered_attempt is None or tail
    own = [e for e in events if isinstance(e, Released) and e.attempt == 0]
    assert "".join(e.text for e in own).strip() == words
    assert all(e.verdict is None for e in own)
    assert outcome.receipt[-1].attempt == 0


async def test_a_question_with_braces_is_not_a_template():
    guard = guard_for(ONE, policy=policy(max_attempts=1, refusal="About {question}: no."))
    outcome = await guard.run(ScriptedGenerator(WRONG), question="What is {reason} {x} {0} {?", context=CONTEXT)
    assert outcome.text == "About What is {reason} {x} {0} {?: no."


async def test_a_tail_is_set_off_from_what_is_out():
    _, outcome, _ = await collect([[ONE + " ", WRONG]], policy(release="sentence", max_attempts=1))
    assert outcome.text.startswith(ONE)
    between = outcome.text[len(ONE) : -len(Policy().refusal_tail)]
    assert between
    assert between.isspace()


# --- readers --------------------------------------------------------------------------------------------------


async def test_a_stream_has_one_reader_at_a_time():
    stream = guard_for(ONE).stream(generator([[ONE]], Counts(), pause=3), question=QUESTION, context=CONTEXT)
    reads = [asyncio.create_task(anext(aiter(stream))) for _ in range(2)]
    results = await asyncio.gather(*reads, return_exceptions=True)
    assert results[0] == ONE
    assert isinstance(results[1], StreamStateError)
    assert [t async for t in stream] == []
    assert (await stream.outcome()).accepted
    assert await stream.outcome() is await stream.outcome()


async def test_another_reader_may_go_on_where_the_first_stopped():
    stream = guard_for(ONE, TWO).stream(ScriptedGenerator([ONE + " ", TWO]), question=QUESTION, context=CONTEXT)
    first = await anext(aiter(stream))
    rest = [e.text async for e in stream.events() if isinstance(e, Released)]
    assert [first, *rest] == [ONE + " ", TWO]


async def test_a_reader_cannot_change_its_mind_about_retractions():
    stream = guard_for(ONE, TWO).stream(ScriptedGenerator([ONE + " ", TWO]), question=QUESTION, context=CONTEXT)
    async for _ in stream.events(retractable=True):
        break
    with pytest.raises(StreamStateError):
        async for _ in stream:
            pass
    await stream.aclose()


@pytest.mark.parametrize("leave", ["aclose", "async with"])
async def test_the_outcome_holds_what_the_reader_got_and_no_more(leave: str):
    """The run may be ahead of its reader, even finished; text that waits for the reader is not delivered text."""
    recorder = Recorder()
    stream = guard_for(ONE, TWO, observers=[recorder]).stream(
        ScriptedGenerator([ONE + " ", TWO]), question=QUESTION, context=CONTEXT
    )
    if leave == "aclose":
        assert await anext(aiter(stream)) == ONE + " "
        await turns(50)
        await stream.aclose()
    else:
        async with stream:
            assert await anext(aiter(stream)) == ONE + " "
            await turns(50)
    (ended,) = [e for e in recorder.events if isinstance(e, RunEnded)]
    assert ended.outcome.status is OutcomeStatus.CANCELLED
    assert ended.outcome.reason == "closed_by_reader"
    assert ended.outcome.text == ONE + " "


async def test_awaiting_a_stream_gives_the_outcome():
    outcome = await guard_for(ONE).stream(ScriptedGenerator(ONE), question=QUESTION, context=CONTEXT)
    assert (outcome.text, outcome.accepted) == (ONE, True)


async def test_outcome_finishes_a_partly_read_stream():
    stream = guard_for(ONE, TWO).stream(ScriptedGenerator([ONE + " ", TWO]), question=QUESTION, context=CONTEXT)
    async for _ in stream:
        break
    outcome = await stream.outcome()
    assert outcome.text == ONE + " " + TWO
    await stream.aclose()
    assert others() == set()


async def test_reading_after_closing_is_misuse():
    stream = guard_for(ONE).stream(ScriptedGenerator(ONE), question=QUESTION, context=CONTEXT)
    await stream.aclose()
    with pytest.raises(StreamStateError):
        async for _ in stream:
            pass
    with pytest.raises(StreamStateError):
        await stream.outcome()


async def test_events_hold_no_text_of_what_was_held():
    events, outcome, _ = await collect([[ONE + " ", WRONG], [OTHER_WRONG]], policy(release="sentence", max_attempts=2))
    for event in events:
        assert not any("zq" in s for s in strings_in(event))
    full = "\x00".join(strings_in(outcome))
    assert "zqx" in full, "the caller's own outcome keeps everything"
    assert not any("zq" in s for s in strings_in(outcome.for_reader()))
    assert "zq" not in repr(outcome)
    (held,) = [e for e in events if isinstance(e, Held)][:1]
    assert (held.attempt, held.start, held.end) == (1, len(ONE) + 1, len(ONE) + 1 + len(WRONG))
    assert held.verdict.delta_r == 1.0


async def test_values_do_not_show_text_in_their_repr():
    recorder = Recorder()
    guard = guard_for(ONE, policy=policy(max_attempts=2), observers=[recorder])
    outcome = await guard.run(ScriptedGenerator([ONE + " ", WRONG]), question=QUESTION, context=CONTEXT)
    for value in [*recorder.events, outcome, *outcome.attempts]:
        for secret in (ONE, WRONG, QUESTION, "clock", "zqx"):
            assert secret not in repr(value), type(value)
    assert_balanced(recorder.events)


# --- limits ---------------------------------------------------------------------------------------------------


class Limiter:
    def __init__(self, *decisions: Decision, wait: asyncio.Event | None = None) -> None:
        self._decisions, self._wait = decisions, wait
        self.calls: list[tuple[str, float]] = []
        self.cancelled = 0

    async def acquire(self, key: str, cost: float = 1.0, timeout_s: float | None = None) -> Decision:
        self.calls.append((key, cost))
        if self._wait is not None:
            try:
                await self._wait.wait()
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
        return self._decisions[min(len(self.calls), len(self._decisions)) - 1]


async def test_every_generator_call_is_charged_to_the_key():
    limiter = Limiter(Decision(allowed=True, waited_s=0.25, remaining=5.0, source="local"))
    guard = guard_for(ONE, limiter=limiter, policy=policy(release="answer"))
    outcome = await guard.run(ScriptedGenerator(WRONG, ONE), question=QUESTION, context=CONTEXT, key="tenant-7")
    assert outcome.accepted
    assert [key for key, _ in limiter.calls] == ["tenant-7", "tenant-7"]
    assert all(cost > 0 for _, cost in limiter.calls)
    assert outcome.timings.limiter_ms >= 0


async def test_a_refused_request_never_reaches_the_generator():
    limiter = Limiter(Decision(allowed=False, retry_after_s=2.5, source="local"))
    model = ScriptedGenerator(ONE)
    stream = guard_for(ONE, limiter=limiter).stream(model, question=QUESTION, context=CONTEXT)
    with pytest.raises(RateLimitedError) as caught:
        async for _ in stream:
            pass
    assert caught.value.retry_after_s == 2.5
    assert caught.value.outcome.reason == "rate_limited"
    assert model.requests == []


@pytest.mark.parametrize("on_exhausted", ["refuse", "best"])
async def test_a_refused_regeneration_ends_the_loop(on_exhausted: str):
    limiter = Limiter(Decision(allowed=True), Decision(allowed=False, retry_after_s=9.0))
    guard = guard_for(ONE, limiter=limiter, policy=policy(release="answer", on_exhausted=on_exhausted))
    model = ScriptedGenerator(WRONG)
    outcome = await guard.run(model, question=QUESTION, context=CONTEXT)
    assert len(model.requests) == 1
    assert not outcome.accepted
    expected = OutcomeStatus.REFUSED if on_exhausted == "refuse" else OutcomeStatus.BEST_ATTEMPT
    assert outcome.status is expected
    assert outcome.reason == "rate_limited"


@pytest.mark.parametrize("way", ["cancel", "aclose"])
async def test_going_away_while_the_limiter_waits(way: str):
    limiter = Limiter(Decision(allowed=True), wait=asyncio.Event())
    model = ScriptedGenerator(ONE)
    recorder = Recorder()
    with quiet():
        stream = guard_for(ONE, limiter=limiter, observers=[recorder]).stream(model, question=QUESTION, context=CONTEXT)
        task = asyncio.create_task(anext(aiter(stream)))
        await turns(5)
        assert limiter.calls
        if way == "cancel":
            task.cancel()
        else:
            await stream.aclose()
        result = (await asyncio.gather(task, return_exceptions=True))[0]
        assert isinstance(result, (asyncio.CancelledError, StopAsyncIteration))
        await stream.aclose()
    assert limiter.cancelled == 1
    assert model.requests == []
    assert_balanced(recorder.events)


async def test_a_limiter_that_waits_is_waited_for():
    gate = asyncio.Event()
    limiter = Limiter(Decision(allowed=True, waited_s=0.1), wait=gate)
    guard = guard_for(ONE, limiter=limiter)
    task = asyncio.create_task(guard.run(ScriptedGenerator(ONE), question=QUESTION, context=CONTEXT))
    await turns(10)
    assert not task.done()
    gate.set()
    assert (await task).accepted


# --- time -----------------------------------------------------------------------------------------------------


async def test_timings_come_from_the_clock_that_was_given():
    clock = ManualClock()

    async def generate(question: str) -> Any:
        clock.advance(1.0)
        yield ONE + " "
        clock.advance(2.0)
        yield TWO

    guard = guard_for(ONE, TWO, clock=clock, policy=policy(timeout_s=None))
    outcome = await guard.run(generate, question=QUESTION, context=CONTEXT)
    assert outcome.accepted
    assert outcome.timings.total_ms == pytest.approx(3000)
    assert outcome.attempts[0].duration_ms == pytest.approx(3000)


async def test_the_time_of_the_reader_does_not_count():
    stream = guard_for(ONE, TWO, THREE, policy=policy(timeout_s=0.15, release="sentence")).stream(
        ScriptedGenerator([ONE + " ", TWO + " ", THREE]), question=QUESTION, context=CONTEXT
    )
    seen = ""
    async for text in stream:
        seen += text
        await asyncio.sleep(0.1)
    assert seen == f"{ONE} {TWO} {THREE}"
    assert (await stream.outcome()).accepted


@pytest.mark.parametrize("limits", [{"first_token_timeout_s": 0.05}, {"timeout_s": 0.1}])
@pytest.mark.parametrize("on_exhausted", ["refuse", "best"])
async def test_a_later_attempt_that_hangs_ends_the_loop(limits: dict[str, float], on_exhausted: str):
    calls: list[int] = []

    async def generate(question: str) -> Any:
        calls.append(1)
        if len(calls) > 1:
            await asyncio.Event().wait()
        yield WRONG

    rules = policy(release="answer", on_exhausted=on_exhausted, **limits)
    outcome = await guard_for(ONE, policy=rules).run(generate, question=QUESTION, context=CONTEXT)
    assert outcome.reason == "timeout"
    assert isinstance(outcome.error, TimeoutError)
    assert len(outcome.attempts) == len(calls) == 2
    if on_exhausted == "best":
        assert (outcome.status, outcome.text) == (OutcomeStatus.BEST_ATTEMPT, WRONG)
    else:
        assert (outcome.status, outcome.text) == (OutcomeStatus.REFUSED, rules.refusal)


async def test_attempts_say_why_they_ended():
    async def hangs(question: str) -> Any:
        yield ONE[:5]
        await asyncio.Event().wait()

    stream = guard_for(ONE, policy=policy(timeout_s=0.05)).stream(hangs, question=QUESTION, context=CONTEXT)
    with pytest.raises(DeadlineExceededError) as caught:
        await stream.outcome()
    assert [a.reason for a in caught.value.outcome.attempts] == ["timeout"]

    recorder = Recorder()
    stream = guard_for(ONE, observers=[recorder]).stream(hangs, question=QUESTION, context=CONTEXT)
    task = asyncio.create_task(stream.outcome())
    await turns(20)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    (ended,) = [e for e in recorder.events if isinstance(e, RunEnded)]
    assert [a.reason for a in ended.outcome.attempts] == ["cancelled"]


async def test_a_time_limit_of_scoring_and_a_scorers_own_time_out_are_told_apart():
    class Slow:
        model_id = "slow"

        async def score(self, pairs: Any) -> Any:
            await asyncio.Event().wait()

    class Own:
        model_id = "own"

        async def score(self, pairs: Any) -> Any:
            raise TimeoutError("the model server did not answer")

    rules = policy(scoring_timeout_s=0.05)
    errors = []
    for entailment in (Slow(), Own()):
        guard = Guardrail(policy=rules, entailment=entailment, observers=[])
        outcome = await guard.run(ScriptedGenerator(ONE), question=QUESTION, context=CONTEXT)
        assert (outcome.status, outcome.reason) == (OutcomeStatus.REFUSED, "scoring_error")
        errors.append(outcome.error)
    assert isinstance(errors[0], ScoringTimeoutError)
    assert isinstance(errors[1], ScoringError)
    assert not isinstance(errors[1], ScoringTimeoutError)
    assert isinstance(errors[1].__cause__, TimeoutError)
