"""Limiters, rerankers, clocks, observers and models that misbehave: a typed end with an outcome, never a silent one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from guardrail import (
    Decision,
    EntailmentScore,
    Guardrail,
    OutcomeStatus,
    Policy,
    RateLimitedError,
    ReceiptStatus,
    Verifier,
)
from guardrail.errors import RerankingError
from guardrail.protocols import Pair
from guardrail.testing import FakeEntailment, ManualClock, ScriptedGenerator
from tests.streaming.helpers import (
    HALL,
    LENIENT_WORDS,
    QUESTION,
    Recorder,
    assert_balanced,
    assert_receipt,
    guard_for,
    others,
    quiet,
)

ONE, TWO, THREE = (
    "The old hall keeps a wooden clock near its door.",
    "The garden grows tall roses by the wall.",
    "A stone bridge leads to the northern gate.",
)
WRONG, OTHER_WRONG = "The zqx cellar hides rare coins.", "The zqy tower burned down last winter."
CONTEXT = [HALL, THREE]


def raises(error: BaseException) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    return fail


# --- limiter --------------------------------------------------------------------------------------------------


class Limiter:
    """Allows some calls, then does something else."""

    def __init__(self, then: Callable[[], Any], *, allowed: int = 0) -> None:
        self._then = then
        self._allowed = allowed

    async def acquire(self, key: str, cost: float = 1.0, timeout_s: float | None = None) -> Any:
        self._allowed -= 1
        return Decision(allowed=True) if self._allowed >= 0 else self._then()


BAD_LIMITS: dict[str, Callable[[], Any]] = {
    "raises": raises(ConnectionError("zqx")),
    "cancelled from inside": raises(asyncio.CancelledError("zqx")),
    "None": lambda: None,
    "True": lambda: True,
    "times out": raises(TimeoutError("zqx")),
}


@pytest.mark.parametrize("bad", BAD_LIMITS)
async def test_a_limiter_that_cannot_decide_refuses(bad: str):
    model, recorder = ScriptedGenerator(ONE), Recorder()
    guard = guard_for(ONE, limiter=Limiter(BAD_LIMITS[bad]), observers=[recorder])
    stream = guard.stream(model, question=QUESTION, context=CONTEXT)
    with pytest.raises(RateLimitedError) as caught:
        async for _ in stream:
            pass
    assert "zqx" not in str(caught.value)
    assert model.requests == []
    outcome = caught.value.outcome
    assert (outcome.status, outcome.reason, outcome.text) == (OutcomeStatus.ERROR, "rate_limited", "")
    assert_balanced(recorder.events)
    assert others() == set()


@pytest.mark.parametrize("bad", BAD_LIMITS)
async def test_a_limiter_that_fails_later_ends_the_loop_with_the_tail(bad: str):
    model = ScriptedGenerator(f"{ONE} {WRONG}", TWO)
    guard = guard_for(
        ONE, TWO, limiter=Limiter(BAD_LIMITS[bad], allowed=1), policy=LENIENT_WORDS.override(release="sentence")
    )
    outcome = await guard.run(model, question=QUESTION, context=CONTEXT)
    assert (outcome.status, outcome.reason) == (OutcomeStatus.REFUSED, "rate_limited")
    assert isinstance(outcome.error, RateLimitedError)
    assert outcome.text.startswith(ONE)
    assert outcome.text.endswith(guard.policy.refusal_tail)
    assert len(outcome.attempts) == len(model.requests) == 1


# --- reranker -------------------------------------------------------------------------------------------------


class Reranker:
    def __init__(self, choose: Callable[..., Any]) -> None:
        self.next_context = choose


class AsyncReranker:
    async def next_context(self, **_: Any) -> None:
        return None


BAD_RERANKERS: dict[str, Any] = {
    "raises": Reranker(raises(ConnectionError("zqx"))),
    "StopIteration": Reranker(raises(StopIteration("zqx"))),
    "texts": Reranker(lambda **_: ["zqx"]),
    "a text": Reranker(lambda **_: "zqx"),
    "a number": Reranker(lambda **_: 7),
    "mixed": Reranker(lambda passages, **_: [passages[0], {"text": "zqx"}]),
}


@pytest.mark.parametrize("bad", BAD_RERANKERS)
@pytest.mark.parametrize("on_exhausted", ["refuse", "best"])
async def test_a_reranker_that_fails_ends_the_loop(bad: str, on_exhausted: str):
    model = ScriptedGenerator(WRONG, ONE)
    guard = guard_for(ONE, reranker=BAD_RERANKERS[bad], policy=LENIENT_WORDS.override(on_exhausted=on_exhausted))
    async with asyncio.timeout(10):
        outcome = await guard.run(model, question=QUESTION, context=CONTEXT)
    assert outcome.reason == "reranking_error"
    assert isinstance(outcome.error, RerankingError)
    assert "zqx" not in str(outcome.error)
    if on_exhausted == "best":
        assert (outcome.status, outcome.text) == (OutcomeStatus.BEST_ATTEMPT, WRONG)
    else:
        assert (outcome.status, outcome.text) == (OutcomeStatus.REFUSED, guard.policy.refusal)
    assert len(model.requests) == 1
    assert_receipt(outcome)


@pytest.mark.filterwarnings("ignore:.*AsyncReranker")  # Python's own hint: the coroutine was never awaited
async def test_a_reranker_that_is_a_coroutine_function_is_an_error_and_not_a_selection():
    outcome = await guard_for(ONE, reranker=AsyncReranker()).run(
        ScriptedGenerator(WRONG, ONE), question=QUESTION, context=CONTEXT
    )
    assert (outcome.status, outcome.reason) == (OutcomeStatus.REFUSED, "reranking_error")


@pytest.mark.parametrize("choose", [lambda **_: None, lambda **_: (), lambda shown, **_: shown])
async def test_a_reranker_without_another_selection_ends_the_loop(choose: Callable[..., Any]):
    """Nothing, no passages, or what was tried already: the generator is never called without context."""
    model = ScriptedGenerator(WRONG, ONE)
    outcome = await guard_for(ONE, reranker=Reranker(choose)).run(model, question=QUESTION, context=CONTEXT)
    assert (outcome.status, outcome.reason, len(model.requests)) == (OutcomeStatus.REFUSED, "context_exhausted", 1)


# --- clock ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", ["sentence", "answer", "observe"])
async def test_a_clock_that_fails_at_any_call_is_heard(release: str):
    calls_needed = 0

    async def fails_at(call: int) -> bool:
        nonlocal calls_needed
        calls = 0

        def clock() -> float:
            nonlocal calls
            calls += 1
            if calls >= call:
                raise OSError("no clock")
            return float(calls)

        model = ScriptedGenerator(f"{ONE} {WRONG}", f"{ONE} {TWO}")
        guard = guard_for(ONE, TWO, clock=clock, policy=LENIENT_WORDS.override(release=release))
        stream = guard.stream(model, question=QUESTION, context=CONTEXT)
        error: BaseException | None = None
        limit = asyncio.timeout(2)
        try:
            async with limit:
                async for _ in stream:
                    pass
        except Exception as caught:
            error = caught
        assert not limit.expired(), f"the reader waits for ever if call {call} of the clock fails"
        if calls >= call:
            assert error is not None, "the text must not end as if it were complete"
            assert isinstance(error, OSError) or isinstance(error.__cause__, OSError)
            with pytest.raises(type(error)):
                await stream.outcome()
        await stream.aclose()
        assert model.opened == model.closed
        assert others() == set()
        calls_needed = call
        return calls < call

    with quiet():
        for call in range(1, 100):
            if await fails_at(call):
                break
    assert 5 < calls_needed < 99


async def test_what_the_reader_takes_is_not_added_by_the_guard():
    """Scoring takes no time here, so the guard adds none, however slowly the reader reads."""
    clock = ManualClock()
    text = " ".join([ONE, TWO] * 15)
    guard = guard_for(ONE, TWO, clock=clock, policy=LENIENT_WORDS.override(release="sentence"))
    stream = guard.stream(ScriptedGenerator([text]), question=QUESTION, context=CONTEXT)
    async for _ in stream:
        clock.advance(1.0)
        await asyncio.sleep(0)
    outcome = await stream.outcome()
    assert outcome.accepted
    assert outcome.timings.added_ms == 0.0


async def test_time_spent_scoring_after_the_last_word_is_added_by_the_guard():
    clock = ManualClock()

    class Slow:
        model_id = "slow"

        async def score(self, pairs: Sequence[Pair]) -> list[EntailmentScore]:
            await asyncio.sleep(0)
            clock.advance(0.5)
            return [EntailmentScore(entailment=1.0) for _ in pairs]

    guard = Guardrail(policy=LENIENT_WORDS, entailment=Slow(), clock=clock, observers=[])
    outcome = await guard.run(ScriptedGenerator(ONE), question=QUESTION, context=CONTEXT)
    assert outcome.timings.added_ms == pytest.approx(500)
    assert outcome.timings.scoring_ms == pytest.approx(500)


# --- observers ------------------------------------------------------------------------------------------------


class Exits:
    """An observer whose activation fails on the way out, or claims to have handled the error."""

    def __init__(self, leave: Callable[..., Any]) -> None:
        self._leave = leave
        self.events: list[Any] = []

    def open_run(self, run_id: str) -> Exits:
        return self

    def on_event(self, event: Any) -> None:
        self.events.append(event)

    def activate(self, step_id: int) -> Exits:
        return self

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: Any) -> Any:
        return self._leave()


@pytest.mark.parametrize("leave", [raises(RuntimeError("zqx")), lambda: True])
async def test_an_observer_cannot_change_the_end_of_a_run_by_the_way_it_leaves(leave: Callable[..., Any]):
    observer = Exits(leave)
    guard = guard_for(ONE, observers=[observer])
    outcome = await guard.run(ScriptedGenerator(ONE), question=QUESTION, context=CONTEXT)
    assert outcome.accepted
    failing = ScriptedGenerator([ONE + " ", OSError("gone")])
    with pytest.raises(Exception, match="OSError"):
        await guard.run(failing, question=QUESTION, context=CONTEXT)


# --- entailment -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["lexical", "embedded", "overlap"])
async def test_a_model_is_asked_whatever_its_function_is_called(name: str):
    asked: list[int] = []

    def score(pairs: Sequence[Pair]) -> list[float]:
        asked.append(len(pairs))
        return [0.0 for _ in pairs]

    score.__name__ = score.__qualname__ = name
    for policy in ("reference", "balanced"):
        asked.clear()
        result = await Verifier(policy=policy, entailment=score).verify(ONE, [ONE])
        assert asked == [1]
        assert (result.accepted, result.entailment) == (False, 0.0)


class FailsOn:
    """A model that cannot score claims with a word, and says no to everything else."""

    model_id = "fails-on"

    def __init__(self, word: str) -> None:
        self._word = word

    async def score(self, pairs: Sequence[Pair]) -> list[EntailmentScore]:
        if any(self._word in p.hypothesis for p in pairs):
            raise RuntimeError("zqx")
        return [EntailmentScore(entailment=0.0) for _ in pairs]


@pytest.mark.parametrize("on_exhausted", ["refuse", "best"])
async def test_a_claim_that_failed_is_not_carried_out_by_one_that_could_not_be_scored(on_exhausted: str):
    """With "pass_marked", only an answer in which nothing failed passes marked."""
    model = ScriptedGenerator([ONE + " ", "", WRONG])
    policy = Policy(on_error="pass_marked", on_exhausted=on_exhausted, release="answer", max_segment_chars=60)
    guard = Guardrail(policy=policy, entailment=FailsOn("clock"), observers=[])

    async def slowly(question: str) -> Any:  # so that the claims are scored in two batches
        async for chunk in model.__call__(question):  # type: ignore[arg-type]
            yield chunk
            for _ in range(20):
                await asyncio.sleep(0)

    outcome = await guard.run(slowly, question=QUESTION, context=CONTEXT)
    assert outcome.status is not OutcomeStatus.ERROR
    assert len(outcome.attempts) > 1, "there was another attempt"
    if on_exhausted == "refuse":
        assert outcome.status is OutcomeStatus.REFUSED
        assert WRONG not in outcome.text
    else:
        assert outcome.status is OutcomeStatus.BEST_ATTEMPT
        assert ReceiptStatus.NOT_CHECKED in {r.status for r in outcome.receipt}


async def test_the_same_failure_alone_passes_marked():
    policy = Policy(on_error="pass_marked", release="answer")
    guard = Guardrail(policy=policy, entailment=FailsOn("clock"), observers=[])
    outcome = await guard.run(ScriptedGenerator(ONE), question=QUESTION, context=CONTEXT)
    assert (outcome.status, outcome.reason, outcome.text) == (OutcomeStatus.ERROR, "scoring_error", ONE)
    assert {r.status for r in outcome.receipt} == {ReceiptStatus.NOT_CHECKED}


async def test_scores_of_numpy_are_scores():
    np = pytest.importorskip("numpy")
    for value, accepted in ((np.float32(1.0), True), (np.float64(0.0), False)):
        outcome = await Guardrail(policy=LENIENT_WORDS, entailment=FakeEntailment(value), observers=[]).run(
            ScriptedGenerator(ONE), question=QUESTION, context=CONTEXT
        )
        assert outcome.accepted is accepted
