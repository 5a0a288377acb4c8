"""The metric objects inside the real ragas and deepeval, where they are installed; offline, without keys."""

from __future__ import annotations

import asyncio
import math
import warnings
from pathlib import Path
from typing import Any

import pytest

from guardrail import ScoringError, Verifier
from guardrail.evaluation.frameworks import deepeval as deepeval_adapter
from guardrail.evaluation.frameworks import ragas as ragas_adapter

PASSAGES = ["The desk opens at ten. Entry is free."]
RIGHT, WRONG = "The desk opens at ten.", "The desk opens at nine."

# Both frameworks warn about their own dependencies; ragas also about `evaluate`, and loses tasks after an error.
pytestmark = [pytest.mark.filterwarnings("ignore")]


@pytest.fixture(autouse=True)
def _quiet_and_in_a_folder_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DEEPEVAL_TELEMETRY_OPT_OUT", "YES")
    monkeypatch.setenv("RAGAS_DO_NOT_TRACK", "true")
    for name in ("OPENAI_API_KEY", "CONFIDENT_API_KEY", "DEEPEVAL_RESULTS_FOLDER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)  # deepeval writes into the current folder


def _framework(name: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return __import__(name)
        except ImportError as error:
            pytest.skip(f"{name} cannot be imported here: {error}; it is not a dependency, pip install {name}")


@pytest.fixture
def deepeval(_quiet_and_in_a_folder_of_its_own: None) -> Any:
    return _framework("deepeval")


@pytest.fixture
def ragas(_quiet_and_in_a_folder_of_its_own: None) -> Any:
    return _framework("ragas")


def _cases(*answers_and_contexts: tuple[str | None, list[Any] | None]) -> list[Any]:
    from deepeval.test_case import LLMTestCase

    return [
        LLMTestCase(
            name=f"case {at}", input="When does the desk open?", actual_output=answer, retrieval_context=context
        )
        for at, (answer, context) in enumerate(answers_and_contexts)
    ]


def _evaluate(deepeval: Any, cases: list[Any], metrics: list[Any], *, run_async: bool, **errors: bool) -> list[Any]:
    from deepeval.evaluate.configs import AsyncConfig, CacheConfig, DisplayConfig, ErrorConfig

    found = deepeval.evaluate(
        cases,
        metrics,
        async_config=AsyncConfig(run_async=run_async),
        display_config=DisplayConfig(show_indicator=False, print_results=False),
        cache_config=CacheConfig(write_cache=False, use_cache=False),
        error_config=ErrorConfig(**errors),
    )
    return sorted(found.test_results, key=lambda result: result.name)  # they come as they end


@pytest.mark.parametrize("run_async", [True, False])
def test_deepeval_evaluates_and_marks_what_cannot_be_scored(deepeval: Any, run_async: bool) -> None:
    metrics = [
        deepeval_adapter.GuardrailMetric("accepted", threshold=1.0, verifier=Verifier(policy="strict")),
        deepeval_adapter.GuardrailMetric("worst_delta_r", threshold=0.5),
    ]
    cases = _cases((RIGHT, PASSAGES), (WRONG, PASSAGES), (RIGHT, []), (RIGHT, None), ("Hello!", PASSAGES))
    results = _evaluate(deepeval, cases, metrics, run_async=run_async, ignore_errors=True)
    assert [result.success for result in results] == [True, False, False, False, False]
    accepted = [next(m for m in result.metrics_data if m.name == "Guardrail accepted") for result in results]
    assert [m.score for m in accepted] == [1.0, 0.0, None, None, None]
    assert [m.error is None for m in accepted] == [True, True, False, False, False]
    assert [m.evaluation_model for m in accepted] == [f"{Verifier().scorer} (strict)"] * 5
    assert accepted[0].reason == "accepted 1 (reason passed)"
    turned = [next(m for m in result.metrics_data if m.name == "Guardrail 1 - worst_delta_r") for result in results]
    assert turned[0].score > 0.5 > turned[1].score
    assert [m.success for m in turned] == [True, False, False, False, False]


@pytest.mark.parametrize("run_async", [True, False])
def test_deepeval_raises_what_cannot_be_scored_unless_it_is_told_not_to(deepeval: Any, run_async: bool) -> None:
    metric = deepeval_adapter.GuardrailMetric()
    with pytest.raises(ScoringError, match="no_context"):
        _evaluate(deepeval, _cases((RIGHT, [])), [metric], run_async=run_async)


@pytest.mark.parametrize("run_async", [True, False])
def test_deepeval_skips_a_case_without_passages_if_it_is_told_to(deepeval: Any, run_async: bool) -> None:
    cases = _cases((RIGHT, PASSAGES), (RIGHT, None))
    results = _evaluate(
        deepeval, cases, [deepeval_adapter.GuardrailMetric()], run_async=run_async, skip_on_missing_params=True
    )
    assert [len(result.metrics_data or []) for result in results] == [1, 0]


@pytest.mark.parametrize("run_async", [True, False])
def test_assert_test_passes_and_fails(deepeval: Any, run_async: bool) -> None:
    metric = deepeval_adapter.GuardrailMetric("contradicted", threshold=1.0)
    right, wrong, empty = _cases((RIGHT, PASSAGES), (WRONG, PASSAGES), (RIGHT, []))
    deepeval.assert_test(right, [metric], run_async=run_async)
    with pytest.raises(AssertionError, match=r"Guardrail 1 - contradicted \(score: 0.0, threshold: 1.0"):
        deepeval.assert_test(wrong, [metric], run_async=run_async)
    with pytest.raises(ScoringError, match="no_context"):
        deepeval.assert_test(empty, [metric], run_async=run_async)


def test_deepeval_copies_a_metric_with_its_verifier(deepeval: Any) -> None:
    from deepeval.metrics.utils import copy_metrics

    verifier = Verifier(policy="strict")
    metric = deepeval_adapter.GuardrailMetric("accepted", threshold=0.75, verifier=verifier, flaky=True)
    (copy,) = copy_metrics([metric])
    assert copy is not metric
    assert copy.verifier is verifier
    assert (copy.metric, copy.threshold, copy.flaky, copy.score) == ("accepted", 0.75, True, None)


def test_deepeval_passages_with_a_source_are_read(deepeval: Any) -> None:
    from deepeval.test_case.llm_test_case import RetrievedContextData

    (case,) = _cases((RIGHT, [RetrievedContextData(context=PASSAGES[0], source="opening.txt")]))
    assert deepeval_adapter.GuardrailMetric("accepted").measure(case) == 1.0


def test_deepeval_images_are_refused(deepeval: Any) -> None:
    from deepeval.test_case import LLMTestCase, MLLMImage

    image = MLLMImage(dataBase64="aGVsbG8=", mimeType="image/png")
    case = LLMTestCase(input=f"What is this? {image}", actual_output=RIGHT, retrieval_context=PASSAGES)
    assert case.multimodal
    metric = deepeval_adapter.GuardrailMetric("accepted")
    with pytest.raises(ValueError, match="images"):
        metric.measure(case)
    assert (metric.score, metric.success) == (None, False)


def _rows(*answers_and_contexts: tuple[str | None, list[str] | None]) -> list[dict[str, Any]]:
    return [
        {"user_input": "When does the desk open?", "response": answer, "retrieved_contexts": context}
        for answer, context in answers_and_contexts
    ]


def test_ragas_evaluates_and_has_nan_for_what_cannot_be_scored(ragas: Any) -> None:
    rows = _rows((RIGHT, PASSAGES), (WRONG, PASSAGES), (RIGHT, []), ("Hello!", PASSAGES))
    metrics = [
        ragas_adapter.GuardrailMetric("accepted", verifier=Verifier(policy="strict")),
        ragas_adapter.GuardrailMetric("worst_delta_r", name="worst"),
    ]
    found = ragas.evaluate(ragas.EvaluationDataset.from_list(rows), metrics=metrics, show_progress=False)
    column = found["guardrail_accepted"]
    assert column[:2] == [1.0, 0.0]
    assert all(math.isnan(value) for value in column[2:])
    worst = found["worst"]
    assert worst[0] < 0.5 < worst[1]
    assert all(math.isnan(value) for value in worst[2:])
    assert list(found.to_pandas().columns[-2:]) == ["guardrail_accepted", "worst"]


def test_ragas_raises_what_cannot_be_scored_if_it_is_told_to(ragas: Any) -> None:
    dataset = ragas.EvaluationDataset.from_list(_rows((RIGHT, [])))
    with pytest.raises(ScoringError, match="no_context"):
        ragas.evaluate(dataset, metrics=[ragas_adapter.GuardrailMetric()], show_progress=False, raise_exceptions=True)


def test_ragas_refuses_a_data_set_without_passages(ragas: Any) -> None:
    dataset = ragas.EvaluationDataset.from_list([{"user_input": "When?", "response": RIGHT}])
    with pytest.raises(ValueError, match="retrieved_contexts"):
        ragas.evaluate(dataset, metrics=[ragas_adapter.GuardrailMetric()], show_progress=False)


def test_ragas_scores_one_sample_without_a_question(ragas: Any) -> None:
    sample = ragas.SingleTurnSample(response=RIGHT, retrieved_contexts=PASSAGES)
    assert ragas_adapter.GuardrailMetric("accepted").single_turn_score(sample) == 1.0


def test_ragas_experiments_take_the_same_object(ragas: Any) -> None:
    from ragas.backends import InMemoryBackend

    metric = ragas_adapter.GuardrailMetric("accepted")
    rows = _rows((RIGHT, PASSAGES), (WRONG, PASSAGES))

    @ragas.experiment()
    async def run(row: dict[str, Any]) -> dict[str, Any]:
        found = await metric.ascore(**row)
        return {"answer": row["response"], "accepted": found.value, "reason": found.reason}

    dataset = ragas.Dataset(name="desk", backend=InMemoryBackend(), data=rows)
    results = asyncio.run(run.arun(dataset, name="first", backend=InMemoryBackend()))
    assert {row["answer"]: row["accepted"] for row in results} == {RIGHT: 1.0, WRONG: 0.0}
    assert {row["reason"] for row in results} == {"accepted 1 (reason passed)", "accepted 0 (reason claims_failed)"}


def test_ragas_batches_take_the_same_object(ragas: Any) -> None:
    metric = ragas_adapter.GuardrailMetric("accepted")
    rows = _rows((RIGHT, PASSAGES), (WRONG, PASSAGES))
    assert [found.value for found in metric.batch_score(rows)] == [1.0, 0.0]
    assert metric.validate_result_value(metric.score(**rows[0]).value) is None
    with pytest.raises(ScoringError, match="no_context"):
        metric.batch_score([*rows, *_rows((RIGHT, []))])
