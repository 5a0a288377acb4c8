"""Limits and budgets in whole runs: what is asked when, how a run ends, what it says, what is settled."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from guardrail import (
    Decision,
    OutcomeStatus,
    Policy,
    RateLimitedError,
    RedisRegenerationBudget,
    RegenerationBudget,
)
from guardrail.errors import PolicyError
from guardrail.events import Regenerating, Retracted
from guardrail.policy import STRICT
from guardrail.telemetry.spans import SpanObserver
from guardrail.testing import ManualClock, ScriptedGenerator
from tests.integration.limited_runs import CONTEXT, NO, ONE, TWO, WRONG, YES, Log, policy, run
from tests.redis_server import free_port
from tests.streaming.helpers import (
    QUESTION,
    Counts,
    Recorder,
    assert_balanced,
    generator,
    guard_for,
    others,
    quiet,
)

# --- order ----------------------------------------------------------------------------------------------------


async def test_the_budget_is_asked_before_the_limiter_and_a_first_attempt_counts_once_it_was_charged():
    log = Log()
    outcome = await run(log.guard(), WRONG, WRONG, ONE, key="k")
    assert outcome.accepted
    assert log.asked == [
        ("acquire", "k"),
        ("first", "k"),
        ("take", "k", 2),
        ("acquire", "k"),
        ("take", "k", 3),
        ("acquire", "k"),
    ]


async def test_an_answer_that_passes_asks_for_no_regeneration():
    log = Log()
    assert (await run(log.guard(), ONE)).accepted
    assert log.asked == [("acquire", "tenant"), ("first", "tenant")]


async def test_a_refused_first_attempt_is_not_counted():
    log = Log(limiter=[NO])
    model = ScriptedGenerator(ONE)
    with pytest.raises(RateLimitedError) as caught:
        await log.guard().run(model, question=QUESTION, context=CONTEXT)
    assert caught.value.retry_after_s == 2.5
    assert "60 calls per 60 s" in str(caught.value)
    assert (caught.value.outcome.status, caught.value.outcome.reason) == (OutcomeStatus.ERROR, "rate_limited")
    assert model.requests == []
    assert log.asked == [("acquire", "default")]


async def test_a_budget_needs_no_limiter():
    log = Log(budget=[YES, NO])
    outcome = await run(guard_for(ONE, budget=log, policy=policy()), WRONG)
    assert (outcome.reason, len(outcome.attempts)) == ("regeneration_budget", 2)
    assert log.asked == [("first", "tenant"), ("take", "tenant", 2), ("take", "tenant", 3)]


async def test_nothing_is_asked_when_no_attempt_could_follow():
    log = Log()
    assert (await run(log.guard(policy=policy(max_attempts=1)), WRONG)).reason == "attempts_exhausted"
    assert (await run(log.guard(policy=policy(release="observe")), WRONG)).would_have == "regenerate"
    assert ("take", "tenant", 2) not in log.asked


# --- a budget that is used up ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("on_exhausted", "status", "text"),
    [("refuse", OutcomeStatus.REFUSED, None), ("best", OutcomeStatus.BEST_ATTEMPT, f"{ONE} {WRONG}")],
)
async def test_a_used_up_budget_ends_the_loop_as_the_policy_says(
    on_exhausted: str, status: OutcomeStatus, text: str | None
):
    recorder, log = Recorder(), Log(budget=[NO])
    guard = log.guard(policy=policy(on_exhausted=on_exhausted), observers=[recorder])
    outcome = await run(guard, f"{ONE} {WRONG}", ONE)
    assert (outcome.status, outcome.reason, outcome.error) == (status, "regeneration_budget", None)
    assert outcome.text == (text or guard.policy.refusal)
    assert len(outcome.attempts) == 1
    assert not [e for e in recorder.events if isinstance(e, (Regenerating, Retracted))]
    assert_balanced(recorder.events)


async def test_what_was_released_stays_and_the_tail_follows():
    log = Log(budget=[NO])
    guard = log.guard(policy=policy(release="sentence"))
    stream = guard.stream(ScriptedGenerator(f"{ONE} {WRONG}", TWO), question=QUESTION, context=CONTEXT)
    events = [event async for event in stream.events(retractable=True)]
    outcome = await stream.outcome()
    assert (outcome.status, outcome.reason, outcome.repair) == (OutcomeStatus.REFUSED, "regeneration_budget", "")
    assert outcome.text.startswith(ONE)
    assert outcome.text.endswith(guard.policy.refusal_tail)
    assert not [e for e in events if isinstance(e, (Regenerating, Retracted))]


async def test_the_budget_of_a_key_spans_its_requests():
    clock = ManualClock()
    budget = RegenerationBudget(share=0.0, floor_per_min=4, clock=clock)
    guard = guard_for(ONE, budget=budget, policy=policy())
    ends = [await run(guard, WRONG) for _ in range(5)]
    # Two third attempts at most, while less than half of the budget is used; the rest is for second ones.
    assert [len(o.attempts) for o in ends] == [3, 2, 2, 1, 1]
    assert [o.reason for o in ends] == ["attempts_exhausted", *["regeneration_budget"] * 4]
    assert len((await run(guard, WRONG, key="other")).attempts) == 3
    clock.advance(60)
    assert len((await run(guard, WRONG)).attempts) == 3


async def test_first_attempts_of_many_requests_pay_for_regenerations():
    guard = guard_for(ONE, budget=RegenerationBudget(share=0.25, floor_per_min=0), policy=policy(max_attempts=2))
    for _ in range(7):
        assert (await run(guard, ONE)).accepted
    ends = [await run(guard, WRONG, ONE) for _ in range(4)]
    # One for the first eight requests, a second one for the ninth; a third would need twelve.
    assert [o.accepted for o in ends] == [True, True, False, False]
    assert {o.reason for o in ends[2:]} == {"regeneration_budget"}


BAD = [ConnectionError("zqx"), asyncio.CancelledError("zqx"), TimeoutError("zqx"), None, True]


@pytest.mark.parametrize("bad", BAD, ids=repr)
@pytest.mark.parametrize("on_exhausted", ["refuse", "best"])
async def test_a_budget_that_cannot_decide_has_refused(bad: Any, on_exhausted: str):
    log = Log(budget=[bad])
    outcome = await run(log.guard(policy=policy(on_exhausted=on_exhausted)), WRONG, ONE)
    assert outcome.reason == "regeneration_budget"
    assert outcome.status is (OutcomeStatus.BEST_ATTEMPT if on_exhausted == "best" else OutcomeStatus.REFUSED)
    assert isinstance(outcome.error, RateLimitedError)
    assert "the budget" in str(outcome.error)
    assert "zqx" not in str(outcome.error)
    assert len(outcome.attempts) == 1


@pytest.mark.parametrize("bad", BAD[:3], ids=repr)
async def test_a_first_attempt_that_cannot_be_counted_goes_on(bad: BaseException, caplog: pytest.LogCaptureFixture):
    log = Log(first=bad)
    with caplog.at_level(logging.WARNING, logger="guardrail"):
        assert (await run(log.guard(), ONE)).accepted
    assert "first attempt was not counted" in caplog.text
    assert "zqx" not in caplog.text


@pytest.mark.parametrize("where", ["first", "take"])
@pytest.mark.parametrize("way", ["cancel", "aclose"])
async def test_going_away_while_the_budget_is_asked(where: str, way: str):
    class Waits(Log):
        def _answer(self, *what: Any) -> Any:
            super()._answer(*what)
            return YES

        async def first(self, key: str) -> None:
            await super().first(key)
            if where == "first":
                await asyncio.Event().wait()

        async def take(self, key: str, attempt: int) -> Decision:
            await super().take(key, attempt)
            await asyncio.Event().wait()
            return YES

    waits, recorder = Waits(), Recorder()
    with quiet():
        guard = guard_for(ONE, budget=waits, policy=policy(), observers=[recorder])
        stream = guard.stream(generator([[WRONG]], Counts()), question=QUESTION, context=CONTEXT)
        task = asyncio.create_task(anext(aiter(stream)))
        while not waits.asked or waits.asked[-1][0] != where:
            await asyncio.sleep(0)
        if way == "cancel":
            task.cancel()
        else:
            await stream.aclose()
        result = (await asyncio.gather(task, return_exceptions=True))[0]
        assert isinstance(result, (asyncio.CancelledError, StopAsyncIteration))
        await stream.aclose()
    assert_balanced(recorder.events)
    assert others() == set()


# --- degraded decisions ---------------------------------------------------------------------------------------

DEGRADED = Decision(allowed=True, source="local", degraded="redis_timeout", remaining=4.0)


async def test_degraded_decisions_are_in_the_outcome_and_on_spans():
    provider, exporter = TracerProvider(), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    broken = Decision(allowed=True, source="local", degraded="redis_breaker_open")
    log = Log(limiter=[DEGRADED, broken, broken], budget=[DEGRADED, NO])
    outcome = await run(log.guard(observers=[SpanObserver(tracer_provider=provider)]), WRONG)
    provider.shutdown()
    assert outcome.degraded == outcome.for_reader().degraded == ("redis_timeout", "redis_breaker_open")
    spans: dict[str, list[Any]] = {}
    for span in exporter.get_finished_spans():
        spans.setdefault(span.name, []).append(span.attributes)
    assert list(spans["guardrail.run"][0]["guardrail.degraded"]) == list(outcome.degraded)
    first, second = spans["guardrail.limiter_wait"]
    assert (first["guardrail.degraded"], second["guardrail.degraded"]) == outcome.degraded
    assert (first["guardrail.source"], first["guardrail.remaining"], first["guardrail.allowed"]) == ("local", 4.0, True)
    allowed, refused = spans["guardrail.regeneration_budget"]
    assert (allowed["guardrail.attempt.number"], allowed["guardrail.allowed"]) == (2, True)
    assert (refused["guardrail.attempt.number"], refused["guardrail.allowed"]) == (3, False)
    assert refused["guardrail.limit"] == "60 calls per 60 s"
    assert "guardrail.degraded" not in refused


async def test_nothing_is_degraded_normally():
    provider, exporter = TracerProvider(), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    outcome = await run(Log().guard(observers=[SpanObserver(tracer_provider=provider)]), ONE)
    provider.shutdown()
    assert outcome.degraded == ()
    assert not [s for s in exporter.get_finished_spans() if "guardrail.degraded" in s.attributes]


async def test_a_policy_may_refuse_a_degraded_first_attempt():
    log = Log(limiter=[DEGRADED])
    with pytest.raises(RateLimitedError) as caught:
        await run(log.guard(policy=policy(on_degraded_limits="refuse")), ONE)
    assert "redis_timeout" in str(caught.value)
    assert "on_degraded_limits" in str(caught.value)
    assert caught.value.outcome.degraded == ("redis_timeout",)
    assert log.asked == [("acquire", "tenant")]


@pytest.mark.parametrize(
    ("answers", "reason"),
    [({"limiter": [YES, DEGRADED]}, "rate_limited"), ({"budget": [DEGRADED]}, "regeneration_budget")],
)
async def test_a_policy_may_refuse_a_degraded_regeneration(answers: dict[str, Any], reason: str):
    outcome = await run(Log(**answers).guard(policy=policy(on_degraded_limits="refuse")), WRONG, ONE)
    assert (outcome.status, outcome.reason, len(outcome.attempts)) == (OutcomeStatus.REFUSED, reason, 1)
    assert outcome.degraded == ("redis_timeout",)


def test_the_choice_for_degraded_limits_is_checked():
    assert STRICT.on_degraded_limits == "allow"
    assert STRICT.override(on_degraded_limits="refuse").strict
    with pytest.raises(PolicyError, match="on_degraded_limits"):
        Policy(on_degraded_limits="sometimes")


async def test_a_budget_whose_redis_is_gone_is_seen_in_the_outcome():
    url = f"redis://127.0.0.1:{free_port()}/0"
    async with RedisRegenerationBudget(url, share=0.0, floor_per_min=1) as budget:
        outcome = await run(guard_for(ONE, budget=budget, policy=policy()), WRONG)
    assert (outcome.reason, len(outcome.attempts)) == ("regeneration_budget", 2)
    assert outcome.degraded
    assert set(outcome.degraded) <= {"redis_refused", "redis_breaker_open"}
