"""The metric object for deepeval, against a stand-in of the framework."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from typing import Any

import pytest

from guardrail import ConfigurationError, InputError, ScoringError, Verifier
from guardrail.evaluation.datasets.metrics import Measurement
from guardrail.evaluation.frameworks import deepeval
from tests.framework_stand_ins import (
    PASSAGES,
    RIGHT,
    WRONG,
    Fixed,
    LLMTestCase,
    MissingTestCaseParamsError,
    RetrievedContextData,
    YesJudge,
    copied,
    measured_by_deepeval,
    no_scores,
    stand_ins,
)


@pytest.fixture(autouse=True)
def _frameworks() -> Iterator[None]:
    with stand_ins():
        yield


def case(answer: str | None = RIGHT, context: list[Any] | None = None, question: str | None = "When?") -> LLMTestCase:
    return LLMTestCase(question, answer, PASSAGES if context is None else context)


def test_deepeval_is_given_what_it_reads() -> None:
    metric = deepeval.GuardrailMetric("accepted", threshold=1.0, verifier=Verifier(policy="strict"))
    assert metric.measure(case()) == 1.0
    assert (metric.score, metric.success, metric.error) == (1.0, True, None)
    assert metric.reason == "accepted 1 (reason passed)"
    assert metric.is_successful() is True
    assert (metric.__name__, metric.threshold, metric.evaluation_cost) == ("Guardrail accepted", 1.0, 0.0)
    assert metric.evaluation_model == f"{Verifier().scorer} (strict)"
    assert (metric.async_mode, metric.strict_mode, metric.verbose_mode) == (True, False, False)
    assert metric.measure(case(WRONG)) == 0.0
    assert (metric.score, metric.success, metric.error) == (0.0, False, None)


def test_before_the_first_measurement_nothing_has_passed() -> None:
    metric = deepeval.GuardrailMetric()
    assert (metric.score, metric.is_successful()) == (None, False)


@pytest.mark.parametrize(
    ("value", "higher", "score", "passed", "name"),
    [
        (0.9, True, 0.9, True, "Guardrail fixed"),
        (0.89, True, 0.89, False, "Guardrail fixed"),
        (0.1, False, 0.9, True, "Guardrail 1 - fixed"),
        (0.11, False, 0.89, False, "Guardrail 1 - fixed"),
        (0.0, False, 1.0, True, "Guardrail 1 - fixed"),
        (1.0, False, 0.0, False, "Guardrail 1 - fixed"),
    ],
)
def test_for_deepeval_a_higher_score_is_always_better(
    value: float, higher: bool, score: float, passed: bool, name: str
) -> None:
    metric = deepeval.GuardrailMetric(Fixed(Measurement(score=value), higher_is_better=higher), threshold=0.9)
    assert metric.measure(case()) == score
    assert (metric.score, metric.success, metric.__name__) == (score, passed, name)


@pytest.mark.parametrize("at", range(101))
def test_a_score_equal_to_the_threshold_passes(at: int) -> None:
    value, threshold = (100 - at) / 100, at / 100
    metric = deepeval.GuardrailMetric(Fixed(Measurement(score=value), higher_is_better=False), threshold=threshold)
    metric.measure(case())
    assert metric.success is True


def test_an_error_that_deepeval_notes_after_a_score_is_no_pass() -> None:
    metric = deepeval.GuardrailMetric(Fixed(Measurement(score=1.0)))
    metric.measure(case())
    metric.error = "timed out"
    assert metric.is_successful() is False


@pytest.mark.parametrize(("result", "message"), no_scores(), ids=lambda value: str(value)[:40])
@pytest.mark.parametrize("threshold", [0.0, 0.5, None])
def test_deepeval_sees_an_error_and_no_pass(result: Any, message: str, threshold: float | None) -> None:
    metric = deepeval.GuardrailMetric(Fixed(lambda item: results.pop()), threshold=threshold)
    results: list[Any] = [result, Measurement(score=1.0)]
    metric.measure(case())
    with pytest.raises(ScoringError):
        metric.measure(case())
    assert (metric.score, metric.reason, metric.error) == (None, None, message)
    assert metric.success is (None if threshold is None else False)
    assert metric.is_successful() is (None if threshold is None else False)


async def test_deepeval_does_not_call_twice_after_a_type_error() -> None:
    own = Fixed(TypeError())
    metric = deepeval.GuardrailMetric(own)
    await measured_by_deepeval(metric, case(), ignore_errors=True)
    assert own.calls == 1
    assert (metric.score, metric.success, metric.error) == (None, False, "the metric 'fixed' raised TypeError")


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (LLMTestCase(None, None, ["x"]), MissingTestCaseParamsError, "actual_output must not be None"),
        (LLMTestCase("q", "a", None), MissingTestCaseParamsError, "retrieval_context must not be None"),
        (LLMTestCase(None, None, None), MissingTestCaseParamsError, "actual_output and retrieval_context must not"),
        (LLMTestCase("q", "a", ["x"], multimodal=True), InputError, "images"),
        ("a test case", InputError, "must be an LLMTestCase, not str"),
        (LLMTestCase("q", "a", []), ScoringError, "no_context"),
    ],
)
def test_a_test_case_that_lacks_something_is_an_error(given: Any, error: type[Exception], message: str) -> None:
    metric = deepeval.GuardrailMetric()
    with pytest.raises(error, match=message):
        metric.measure(given)
    assert metric.score is None
    assert metric.success is False
    assert message in metric.error


def test_passages_that_name_their_source_and_a_missing_question_are_taken() -> None:
    metric = deepeval.GuardrailMetric("accepted")
    assert metric.measure(case(context=[RetrievedContextData(PASSAGES[0], "a.pdf")], question=None)) == 1.0


def test_a_copy_of_a_metric_measures_the_same() -> None:
    judge = YesJudge()
    verifier = Verifier(policy="strict")
    metric = deepeval.GuardrailMetric("judge", threshold=0.75, verifier=verifier, judge=judge, flaky=True)
    metric.measure(case())
    copy = copied(metric)
    assert type(copy) is type(metric)
    assert (copy.metric, copy.threshold, copy.flaky) == ("judge", 0.75, True)
    assert copy.verifier is verifier
    assert copy.judge is judge
    assert (copy.score, copy.success, copy.error, copy.evaluation_cost) == (None, None, None, None)


def test_copies_share_the_calls_of_a_judge_that_is_a_model() -> None:
    metric = deepeval.GuardrailMetric("judge", judge=lambda prompt: "YES")
    assert copied(metric).measured.judge is metric.measured.judge


async def test_concurrent_measurements_return_each_their_own_score() -> None:
    metric = deepeval.GuardrailMetric(Fixed(lambda progress: Measurement(score=float(progress.item.answer))))
    scores = await asyncio.gather(*(metric.a_measure(case(str(at / 10))) for at in range(11)))
    assert scores == [at / 10 for at in range(11)]
    assert (metric.score, metric.reason) == (1.0, "fixed 1")


async def test_a_cancelled_measurement_leaves_no_score() -> None:
    gate = asyncio.Event()
    gate.set()
    metric = deepeval.GuardrailMetric(Fixed(Measurement(score=1.0), gate=gate))
    await metric.a_measure(case())
    assert metric.success is True
    gate.clear()
    task = asyncio.create_task(metric.a_measure(case()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (metric.score, metric.success, metric.error) == (None, False, "CancelledError")


async def test_measure_works_where_an_event_loop_is_running() -> None:
    assert deepeval.GuardrailMetric("accepted").measure(case()) == 1.0


@pytest.mark.parametrize("threshold", [-0.1, 1.1, math.nan, math.inf, True, "0.5"])
def test_a_threshold_that_is_no_share_is_refused(threshold: Any) -> None:
    with pytest.raises(ConfigurationError, match="threshold must be a number from 0 to 1"):
        deepeval.GuardrailMetric(threshold=threshold)
