"""Limits and budgets in whole runs: what is asked when, how a run ends, what it says, what is settled."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from guardrail import (
    Decision,
    Guardrail,
    LocalLimiter,
    Outcome,
    OutcomeStatus,
    Policy,
    RateLimitedError,
    RedisLimiter,
    RedisRegenerationBudget,
    RegenerationBudget,
    SettlingLimiter,
)
from guardrail.errors import PolicyError
from guardrail.events import Regenerating, Retracted
from guardrail.limits.charging import tokens_of
from guardrail.policy import STRICT
from guardrail.redis_store import RedisStore
from guardrail.telemetry.spans import SpanObserver
from guardrail.testing import ManualClock, ScriptedGenerator
from tests.redis_server import free_port
from tests.streaming.helpers import (
    HALL,
    LENIENT_WORDS,
    QUESTION,
    Counts,
    Recorder,
    assert_balanced,
    generator,
    guard_for,
    others,
    quiet,
    turns,
)

ONE, TWO = "The old hall keeps a wooden clock near its door.", "The garden grows tall roses by the wall."
WRONG = "The zqx cellar hides rare coins."
CONTEXT = [HALL, "The cellar is empty.", "A river passes the town."]
YES, NO = Decision(allowed=True), Decision(allowed=False, retry_after_s=2.5, source="local", limit="60 calls per 60 s")


def policy(**settings: Any) -> Policy:
    return LENIENT_WORDS.override(**{"release": "answer", "stop_on_repeat": False, **settings})


def usage(given: int | None, answered: int | None) -> dict[str, Any]:
    counts = {"input_tokens": given, "output_tokens": answered}
    return {"text": "", "usage_metadata": {name: count for name, count in counts.items() if count is not None}}


class Log:
    """A limiter and a budget that say what they are told to, and write down what they are asked."""

    def __init__(self, *, limiter: Sequence[Any] = (YES,), budget: Sequence[Any] = (YES,), first: Any = None) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self._answers = {"acquire": list(limiter), "take": list(budget), "first": [first]}

    def _answer(self, *what: Any) -> Any:
        self.asked.append(what)
        answers = self._answers[what[0]]
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, BaseException):
            raise answer
        return answer

    async def acquire(self, key: str, cost: float = 1.0, timeout_s: float | None = None) -> Any:
        return self._answer("acquire", key)

    async def first(self, key: str) -> Any:
        return self._answer("first", key)

    async def take(self, key: str, attempt: int) -> Any:
        return self._answer("take", key, attempt)

    def guard(self, **more: Any) -> Guardrail:
        more.setdefault("policy", policy())
        return guard_for(ONE, TWO, limiter=self, budget=self, **more)


async def run(guard: Guardrail, *answers: Any, key: str = "tenant") -> Outcome:
    return await guard.run(ScriptedGenerator(*answers), question=QUESTION, context=CONTEXT, key=key)


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


def raises(error: BaseException) -> Callable[..., Any]:
    async def fail(*_: Any) -> Any:
        raise error

    return fail


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


# --- settling -------------------------------------------------------------------------------------------------


class Settling:
    """A limiter that reserves tokens, and gets told what was used."""

    def __init__(self, *, then: Callable[[], Any] | None = None) -> None:
        self.reserved = 0
        self.settled: list[tuple[int, float]] = []
        self._then = then

    async def acquire(self, key: str, cost: float = 1.0, timeout_s: float | None = None) -> Decision:
        self.reserved += 1
        return Decision(allowed=True, reservation=self.reserved)

    async def settle(self, decision: Decision, tokens: float) -> None:
        self.settled.append((decision.reservation, tokens))
        if self._then is not None:
            await self._then()


async def test_every_attempt_is_settled_with_what_it_reported():
    limiter = Settling()
    assert isinstance(limiter, SettlingLimiter)
    outcome = await run(
        guard_for(ONE, limiter=limiter, policy=policy()),
        [WRONG, usage(30, 7)],
        [WRONG],
        [ONE, usage(25, 5)],
    )
    assert outcome.accepted
    assert limiter.settled == [(1, 37.0), (3, 30.0)]  # the second reported nothing: its reservation stays


@pytest.mark.parametrize(
    ("reported", "tokens"),
    [
        ({"input_tokens": 3, "output_tokens": 4, "total_tokens": 9}, 7.0),
        ({"output_tokens": 4}, 4.0),
        ({"total_tokens": 9}, 9.0),
        ({"input_tokens": 0}, 0.0),
        ({"input_tokens": -5, "output_tokens": 4}, 4.0),
        ({}, None),
        ({"cached": 3}, None),
    ],
)
def test_the_tokens_of_a_call(reported: dict[str, int], tokens: float | None):
    assert tokens_of(reported) == tokens


@pytest.mark.parametrize("way", ["aclose", "cancel", "break"])
async def test_a_reader_who_leaves_early_still_settles(way: str):
    limiter, counts = Settling(then=lambda: turns(3)), Counts()
    guard = guard_for(ONE, TWO, limiter=limiter, policy=policy(release="sentence"))
    source = generator([[usage(30, 2), ONE + " ", TWO + " ", *["and so on "] * 50]], counts, pause=1)
    with quiet():
        stream = guard.stream(source, question=QUESTION, context=CONTEXT)
        if way == "break":
            async with stream:
                async for _ in stream:
                    break
        else:
            assert await anext(stream)
            task = asyncio.create_task(anext(stream))
            await asyncio.sleep(0)
            if way == "cancel":
                task.cancel()
            else:
                await stream.aclose()
            await asyncio.gather(task, return_exceptions=True)
            await stream.aclose()
    assert limiter.settled == [(1, 32.0)]
    assert counts.all_closed
    assert others() == set()


@pytest.mark.parametrize("bad", [ConnectionError("zqx"), TimeoutError("zqx"), asyncio.CancelledError("zqx")], ids=repr)
async def test_an_attempt_that_fails_still_settles(bad: BaseException):
    limiter = Settling()
    guard = guard_for(ONE, limiter=limiter, policy=policy())
    with pytest.raises(Exception, match="generator") as caught:
        await run(guard, [usage(12, 1), ONE + " ", bad])
    assert caught.value.outcome.reason == "generation_error"
    assert limiter.settled == [(1, 13.0)]


@pytest.mark.parametrize("way", ["cancel", "timeout"])
async def test_a_charge_for_an_attempt_that_never_began_is_given_back(way: str):
    class Waits(Log):
        async def first(self, key: str) -> None:
            await super().first(key)
            await asyncio.Event().wait()

    limiter, budget = Settling(then=lambda: turns(3)), Waits()
    settings = policy(timeout_s=0.05) if way == "timeout" else policy()
    guard = guard_for(ONE, limiter=limiter, budget=budget, policy=settings)
    task = asyncio.create_task(run(guard, ONE))
    while way == "cancel" and not budget.asked:
        await asyncio.sleep(0)
    if way == "cancel":
        task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert limiter.settled == [(1, 0.0)]
    assert others() == set()


async def test_a_degraded_charge_that_the_policy_does_not_accept_is_given_back():
    class Degraded(Settling):
        async def acquire(self, key: str, cost: float = 1.0, timeout_s: float | None = None) -> Decision:
            return replace(await super().acquire(key, cost, timeout_s), degraded="redis_timeout")

    limiter = Degraded()
    with pytest.raises(RateLimitedError):
        await run(guard_for(ONE, limiter=limiter, policy=policy(on_degraded_limits="refuse")), ONE)
    assert limiter.settled == [(1, 0.0)]


@pytest.mark.parametrize("limit", ["timeout_s", "token_timeout_s"])
async def test_an_attempt_that_takes_too_long_still_settles(limit: str):
    async def hangs(question: str) -> Any:
        yield usage(12, 1)
        await asyncio.Event().wait()

    limiter = Settling()
    guard = guard_for(ONE, limiter=limiter, policy=policy(**{limit: 0.05}))
    with pytest.raises(TimeoutError):
        await guard.run(hangs, question=QUESTION, context=CONTEXT)
    assert limiter.settled == [(1, 13.0)]
    assert others() == set()


async def test_settling_does_not_delay_the_text():
    gate = asyncio.Event()
    limiter = Settling(then=gate.wait)
    guard = guard_for(ONE, limiter=limiter, policy=policy())
    stream = guard.stream(ScriptedGenerator([ONE, usage(3, 4)]), question=QUESTION, context=CONTEXT)
    assert "".join([text async for text in stream]) == ONE
    assert limiter.settled == [(1, 7.0)]
    assert others()  # still settling
    gate.set()
    await stream.aclose()
    assert others() == set()


async def test_settling_that_hangs_is_given_up(caplog: pytest.LogCaptureFixture):
    limiter = Settling(then=asyncio.Event().wait)
    guard = guard_for(ONE, limiter=limiter, policy=policy())
    started = asyncio.get_running_loop().time()
    with caplog.at_level(logging.WARNING, logger="guardrail"):
        assert (await run(guard, [ONE, usage(3, 4)])).accepted
    assert asyncio.get_running_loop().time() - started < 2.0
    assert "settling a charge took too long" in caplog.text
    assert others() == set()


@pytest.mark.parametrize("bad", [ConnectionError("zqx"), TimeoutError("zqx"), asyncio.CancelledError("zqx")], ids=repr)
async def test_settling_that_fails_is_logged_by_type(bad: BaseException, caplog: pytest.LogCaptureFixture):
    guard = guard_for(ONE, limiter=Settling(then=raises(bad)), policy=policy())
    with caplog.at_level(logging.WARNING, logger="guardrail"):
        assert (await run(guard, [WRONG, usage(3, 4)], [ONE, usage(3, 4)])).accepted
    assert caplog.text.count(f"settling a charge raised {type(bad).__name__}") == 2
    assert "zqx" not in caplog.text


async def test_the_next_attempt_waits_for_the_settlement_of_the_last():
    log: list[str] = []

    class Ordered(Settling):
        async def acquire(self, key: str, cost: float = 1.0, timeout_s: float | None = None) -> Decision:
            log.append("acquire")
            return await super().acquire(key, cost, timeout_s)

        async def settle(self, decision: Decision, tokens: float) -> None:
            await turns(50)
            log.append("settled")

    guard = guard_for(ONE, limiter=Ordered(), policy=policy())
    assert (await run(guard, [WRONG, usage(3, 4)], [ONE, usage(3, 4)])).accepted
    assert log == ["acquire", "settled", "acquire", "settled"]


@pytest.mark.parametrize("where", ["local", "redis"])
async def test_tokens_that_were_not_used_are_there_for_others(where: str, redis_url: str):
    limits = ["1000 tokens/min", "100/min"]
    limiter = LocalLimiter(limits, tokens_per_call=400) if where == "local" else None
    async with limiter or RedisLimiter(redis_url, limits, tokens_per_call=400) as one:
        guard = guard_for(ONE, limiter=one, policy=policy(timeout_s=5.0))
        for _ in range(7):  # 400 are reserved for each, 100 used
            outcome = await run(guard, [ONE, usage(60, 40)])
            assert outcome.accepted
            assert outcome.degraded == ()
        with pytest.raises(RateLimitedError) as caught:
            await run(guard, [ONE, usage(60, 40)])
        assert 5.0 < caught.value.retry_after_s <= 60.0
        assert "1000 tokens per 60 s" in str(caught.value)
        assert (await run(guard, [ONE, usage(900, 40)], key="other")).accepted


@pytest.mark.parametrize("on_error", ["local", "open", "closed"])
async def test_a_limiter_and_a_budget_whose_redis_is_gone(on_error: Any):
    store = RedisStore(f"redis://127.0.0.1:{free_port()}/0")
    limiter = RedisLimiter(store, "60/min", on_error=on_error)
    budget = RedisRegenerationBudget(store, on_error=on_error)
    guard = guard_for(ONE, limiter=limiter, budget=budget, policy=policy())
    if on_error == "closed":
        with pytest.raises(RateLimitedError) as caught:
            await run(guard, WRONG, [ONE, usage(3, 4)])
        outcome = caught.value.outcome
    else:
        outcome = await run(guard, WRONG, [ONE, usage(3, 4)])
        assert outcome.accepted
    assert set(outcome.degraded) <= {"redis_refused", "redis_breaker_open"}
    assert outcome.degraded
    await limiter.aclose()
    await store.aclose()


async def test_settling_that_cannot_even_be_cancelled_is_left_behind(caplog: pytest.LogCaptureFixture):
    gate = asyncio.Event()

    async def clings() -> None:
        while not gate.is_set():
            try:
                await gate.wait()
            except asyncio.CancelledError:
                continue

    guard = guard_for(ONE, limiter=Settling(then=clings), policy=policy())
    with caplog.at_level(logging.WARNING, logger="guardrail"):
        assert (await run(guard, [ONE, usage(3, 4)])).accepted
    assert "settling a charge did not end" in caplog.text
    (left,) = others()
    gate.set()
    await asyncio.wait({left})


def test_whenever_the_reader_leaves_each_charge_is_settled_once_and_nothing_is_left():
    async def leave_after(step: int) -> bool:
        limiter, counts = Settling(then=lambda: turns(2)), Counts()
        budget = RegenerationBudget(share=0.0, floor_per_min=100)
        guard = guard_for(ONE, TWO, limiter=limiter, budget=budget, policy=policy())
        source = generator([[usage(30, 2), WRONG], [usage(20, 1), ONE]], counts)
        stream = guard.stream(source, question=QUESTION, context=CONTEXT)
        task = asyncio.create_task(stream.outcome())
        await turns(step)
        done = task.done()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await stream.aclose()
        assert counts.all_closed
        assert others() == set()
        expected = {1: 32.0, 2: 21.0}
        assert limiter.settled == [(number, expected[number]) for number, _ in limiter.settled]
        assert len(limiter.settled) == len(set(limiter.settled)) <= limiter.reserved
        if counts.pulled in (2, 4):  # every generator that was called had reported
            assert len(limiter.settled) == counts.calls
        return done

    with quiet():
        for step in range(400):
            if asyncio.run(leave_after(step)):
                return
    raise AssertionError("the run does not end")
