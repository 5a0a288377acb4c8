"""Judges and models that behave as badly as they can: late, deaf to cancellation, without end."""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
import random
import threading

import pytest

from guardrail.errors import ConfigurationError
from guardrail.evaluation.cascade.cascading import Cascade
from guardrail.evaluation.cascade.deadline import judge_in_time
from guardrail.evaluation.judging import Judgement, JudgeVerdict, LLMJudge
from guardrail.evaluation.judging.calls import CallFault, ModelCalls
from guardrail.evaluation.judging.prompts import judge_prompt
from guardrail.protocols import Pair
from guardrail.scoring.entailment.shared_cache import SharedCache
from guardrail.scoring.verifier import Verifier
from guardrail.testing import FakeEntailment, ScriptedJudge
from guardrail.types import EntailmentScore, VerdictLabel
from tests.judge_models import data
from tests.stub_judges import YES, StubJudge
from tests.stub_stores import StubStore

PAIR = Pair("Entry is free on Sundays.", "Entry is free.")
PROMPT = judge_prompt(PAIR)


def alive():
    return {task for task in asyncio.all_tasks() if task is not asyncio.current_task()}


class Deaf:
    """An async model that ignores cancellation until it is let go, and says YES then."""

    def __init__(self):
        self.calls = 0
        self.begun = asyncio.Event()
        self.let_go = asyncio.Event()

    async def __call__(self, prompt):
        self.calls += 1
        self.begun.set()
        while not self.let_go.is_set():
            try:
                await self.let_go.wait()
            except asyncio.CancelledError:
                continue
        return "YES"


# --- time


@pytest.mark.timeout(5)
async def test_a_model_that_ignores_cancellation_does_not_hold_the_judge_up():
    model = Deaf()
    judge = LLMJudge(model, timeout_s=0.01, max_concurrency=1)
    found = await judge.judge([PAIR, Pair("a", "b")])
    assert found == [Judgement(error="timeout")] * 2  # the second one got the place of the first
    model.let_go.set()
    while alive():
        await asyncio.sleep(0)
    assert judge.usage.calls == 2
    assert (await judge.judge([PAIR]))[0].cached is False  # what came late is not kept


@pytest.mark.timeout(5)
async def test_cancelling_who_waits_for_a_model_that_ignores_it():
    model = Deaf()
    judge = LLMJudge(model, max_concurrency=1)
    task = asyncio.create_task(judge.judge([PAIR]))
    await model.begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    model.let_go.set()
    assert (await judge.judge([Pair("a", "b")]))[0].verdict is JudgeVerdict.YES
    while alive():
        await asyncio.sleep(0)


async def test_an_answer_that_gives_way_to_the_deadline_but_comes_is_late():
    async def model(prompt):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "YES"

    assert await LLMJudge(model, timeout_s=0.01).judge([PAIR]) == [Judgement(error="timeout")]


async def test_an_answer_of_a_model_that_blocks_the_event_loop_is_late():
    async def model(prompt):
        threading.Event().wait(0.05)
        return "YES"

    assert await LLMJudge(model, timeout_s=0.01).judge([PAIR]) == [Judgement(error="timeout")]


async def test_a_judge_that_blocks_the_event_loop_is_late_and_asked_no_more():
    class Blocking(StubJudge):
        async def judge(self, pairs):
            threading.Event().wait(0.05)
            return await super().judge(pairs)

    judge = Blocking(YES)
    found = await judge_in_time(judge, [Pair("p", str(n)) for n in range(4)], 0.02)
    assert found == [Judgement(error="timeout")] * 4
    assert len(judge.asked) == 1


async def test_a_cancelled_call_is_not_tried_again():
    """Clients that turn a cancellation into an error of the connection must not begin another call by it."""
    calls, begun = [], asyncio.Event()

    async def model(prompt):
        calls.append(prompt)
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError as error:
            raise ConnectionResetError from error

    made = ModelCalls(model, sleep=lambda seconds: asyncio.sleep(0))
    task = asyncio.create_task(made.ask(PROMPT))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(calls) == 1
    with pytest.raises(CallFault) as caught:
        await ModelCalls(model, timeout_s=0.01, sleep=lambda seconds: asyncio.sleep(0)).ask(PROMPT)
    assert (caught.value.error, len(calls)) == ("timeout", 2)


# --- judges


@pytest.mark.timeout(5)
@pytest.mark.parametrize("reply", [itertools.repeat(YES), GeneratorExit("YES")], ids=["endless", "exit"])
async def test_a_judge_without_end_has_failed(reply):
    (found,) = await Cascade(StubJudge(reply), model=FakeEntailment(0.5)).score([PAIR])
    assert (found.entailment, found.judged) == (0.05, "error:failed")


async def test_an_error_is_never_free():
    judge = StubJudge(Judgement(error="rate_limited", cached=True))
    cascade = Cascade(judge, model=FakeEntailment(0.5), budget=2)
    for _ in range(3):
        await cascade.score([PAIR, Pair("a", "b")])
    assert (len(judge.asked), cascade.budget.left) == (2, 0)


def test_an_object_that_is_no_judge_is_named_without_its_keys():
    class Client:
        def __repr__(self):
            return "Client(key='secret')"

    with pytest.raises(ConfigurationError, match="Client") as caught:
        Cascade(Client())
    assert "secret" not in str(caught.value)


# --- many at once


def test_one_cascade_in_many_threads_keeps_its_budget_and_its_counts():
    model = Counting()
    judge = LLMJudge(model, max_concurrency=3, cache_size=0)
    cascade = Cascade(judge, model=FakeEntailment(0.5), budget=50, deadline_s=None)
    said = []

    async def work(own):
        found = await asyncio.gather(
            *(cascade.score([Pair("p", f"{own} {turn} {n}") for n in range(5)]) for turn in range(4))
        )
        said.extend(score.judged for scores in found for score in scores)

    def run(own):
        for half in range(2):
            asyncio.run(work(f"{own}/{half}"))

    threads = [threading.Thread(target=run, args=(own,)) for own in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(said) == 160
    assert (said.count("yes"), said.count("error:budget")) == (50, 110)
    assert (model.calls, judge.usage.calls, judge.usage.cached, cascade.budget.left) == (50, 50, 0, 0)


class Counting:
    def __init__(self):
        self.calls = 0
        self._lock = threading.Lock()

    async def __call__(self, prompt):
        json.dumps(data(prompt))
        with self._lock:
            self.calls += 1
        await asyncio.sleep(0)
        return "YES"


# --- what the model objects to


class Calibrated(FakeEntailment):
    """A model whose N is a fitted probability, as the embedded one's is."""

    missing_log_odds = 4.0
    lexical_weight = 0.0


@pytest.mark.parametrize("policy", ["balanced", "strict"])
@pytest.mark.parametrize(("said", "judged"), [("no", "no"), ("timeout", "error:timeout"), ("yes", "yes")])
async def test_a_doubtful_claim_does_not_pass_unasked_because_the_model_objects_to_it(policy, said, judged):
    """A calibrated model that gives N = 0.4 beside a contradiction lets the claim pass with ``balanced``."""
    model = Calibrated(lambda premise, hypothesis: EntailmentScore(entailment=0.4, contradiction=0.6))
    verifier = Verifier(policy=policy, entailment=Cascade(ScriptedJudge(said), model=model))
    found = await verifier.verify("Entry is free.", ["Entry is free."])
    assert (found.claims[0].judged, found.claims[0].screened) == (judged, 0.4)
    assert found.accepted is (said == "yes" and policy == "balanced")


async def test_a_yes_does_not_take_back_an_objection():
    model = Calibrated(lambda premise, hypothesis: EntailmentScore(entailment=0.25, contradiction=0.6))
    verifier = Verifier(entailment=Cascade(ScriptedJudge("yes"), model=model))
    (claim,) = (await verifier.verify("Entry is free.", ["Entry is free."])).claims
    assert (claim.verdict, claim.entailment, claim.judged) == (VerdictLabel.CONTRADICTED, 0.25, "yes")


@pytest.mark.parametrize("late", [True, False])
async def test_what_a_model_raises_is_never_logged_with_its_text(late, caplog):
    """Asyncio logs the message of an exception that nobody has looked at."""
    blocked = threading.Event()

    async def model(prompt):
        if late:
            blocked.wait(0.03)
        else:
            task.cancel()  # in the same turn of the loop in which the call ends
        raise ValueError("the secret answer")

    task = asyncio.create_task(LLMJudge(model, timeout_s=0.01).judge([PAIR]))
    if late:
        assert await task == [Judgement(error="timeout")]
    else:
        with pytest.raises(asyncio.CancelledError):
            await task
    gc.collect()
    assert "secret" not in caplog.text


@pytest.mark.timeout(20)
async def test_places_come_back_whoever_leaves():
    rng = random.Random(5)
    running = 0

    async def model(prompt):
        nonlocal running
        running += 1
        assert running <= 2
        try:
            for _ in range(rng.randrange(4)):
                await asyncio.sleep(0)
            if rng.random() < 0.2:
                raise ConnectionResetError
            return "NO"
        finally:
            running -= 1

    judge = LLMJudge(model, max_concurrency=2, cache_size=0, sleep=lambda seconds: asyncio.sleep(0))
    callers = []
    for _ in range(300):
        callers.append(asyncio.create_task(judge.judge([Pair("e", str(rng.randrange(20))) for _ in range(3)])))
        for _ in range(rng.randrange(3)):
            await asyncio.sleep(0)
        rng.choice(callers).cancel() if rng.random() < 0.4 else None
    ended = await asyncio.gather(*callers, return_exceptions=True)
    assert any(isinstance(one, asyncio.CancelledError) for one in ended)
    assert all(
        j.verdict is JudgeVerdict.NO or j.error == "transport" for own in ended if isinstance(own, list) for j in own
    )
    assert (running, alive()) == (0, set())


async def test_a_shared_cache_keeps_nothing_that_a_judge_decided():
    store = StubStore()
    model = FakeEntailment({"a": 0.5, "b": 0.9})
    cascade = Cascade(ScriptedJudge("timeout"), model=model)
    async with SharedCache(lambda pairs: cascade.score(pairs), store) as cache:
        found = await cache.score([Pair("p", "a"), Pair("p", "b")])
        assert [score.judged for score in found] == ["error:timeout", ""]
        assert cache.counts.unwritten == 1
    assert len(store.values) == 1
