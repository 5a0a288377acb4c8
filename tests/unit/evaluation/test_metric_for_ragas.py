"""The metric object for ragas, against a stand-in of the framework."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from typing import Any

import pytest

from guardrail import ConfigurationError, ScoringError
from guardrail.evaluation.datasets.metrics import Measurement
from guardrail.evaluation.frameworks import ragas
from tests.framework_stand_ins import (
    PASSAGES,
    RIGHT,
    WRONG,
    Fixed,
    MetricType,
    SingleTurnSample,
    evaluated_by_ragas,
    no_scores,
    stand_ins,
)


@pytest.fixture(autouse=True)
def _frameworks() -> Iterator[None]:
    with stand_ins():
        yield


async def test_ragas_evaluate_has_nan_for_what_cannot_be_scored() -> None:
    samples = [
        SingleTurnSample(RIGHT, PASSAGES, "When?"),
        SingleTurnSample(WRONG, PASSAGES),
        SingleTurnSample(RIGHT, []),
        SingleTurnSample(RIGHT, None),
        SingleTurnSample(None, PASSAGES),
    ]
    column = await evaluated_by_ragas(ragas.GuardrailMetric("accepted"), samples)
    assert column[:2] == [1.0, 0.0]
    assert all(math.isnan(value) for value in column[2:])


async def test_ragas_hands_over_question_answer_and_passages() -> None:
    seen = []
    metric = ragas.GuardrailMetric(Fixed(lambda progress: seen.append(progress.item) or Measurement(score=0.25)))
    await metric.single_turn_ascore(SingleTurnSample(RIGHT, PASSAGES, "When?"))
    await metric.ascore(response=WRONG, retrieved_contexts=PASSAGES, user_input="Who?")
    assert [(item.question, item.answer, item.context) for item in seen] == [
        ("When?", RIGHT, tuple(PASSAGES)),
        ("Who?", WRONG, tuple(PASSAGES)),
    ]


async def test_ragas_keeps_the_value_of_a_metric_that_counts_what_is_wrong() -> None:
    metric = ragas.GuardrailMetric(Fixed(Measurement(score=0.125), higher_is_better=False))
    assert await metric.single_turn_ascore(SingleTurnSample(RIGHT, PASSAGES)) == 0.125


def test_ragas_is_told_which_columns_are_needed() -> None:
    metric = ragas.GuardrailMetric("citation_f1")
    needed = metric._required_columns[MetricType.SINGLE_TURN]
    assert needed == {"response", "retrieved_contexts", "user_input:optional"}
    assert (metric.name, metric.allowed_values) == ("guardrail_citation_f1", (0.0, 1.0))
    assert ragas.GuardrailMetric(name="grounded").name == "grounded"
    assert metric.init(object()) is None


def test_an_experiment_has_value_and_reason() -> None:
    found = ragas.GuardrailMetric("accepted").score(response=RIGHT, retrieved_contexts=PASSAGES, user_input="When?")
    assert (found.value, found.reason) == (1.0, "accepted 1 (reason passed)")


@pytest.mark.parametrize(("result", "message"), no_scores(), ids=lambda value: str(value)[:40])
async def test_an_experiment_raises_for_what_cannot_be_scored(result: Any, message: str) -> None:
    metric = ragas.GuardrailMetric(Fixed(result))
    with pytest.raises(ScoringError) as caught:
        await metric.ascore(response=RIGHT, retrieved_contexts=PASSAGES)
    assert str(caught.value) == message


async def test_concurrent_rows_do_not_mix() -> None:
    metric = ragas.GuardrailMetric(Fixed(lambda progress: Measurement(score=float(progress.item.answer))))
    rows = [{"response": str(at / 10), "retrieved_contexts": PASSAGES} for at in range(11)]
    found = await asyncio.gather(*(metric.ascore(**row) for row in rows))
    assert [each.value for each in found] == [at / 10 for at in range(11)]


async def test_a_timeout_of_ragas_reaches_the_metric() -> None:
    metric = ragas.GuardrailMetric(Fixed(Measurement(score=1.0), gate=asyncio.Event()))
    with pytest.raises(TimeoutError):
        await metric.single_turn_ascore(SingleTurnSample(RIGHT, PASSAGES), timeout=0.001)


@pytest.mark.parametrize("name", ["", 7])
def test_a_column_needs_a_name(name: Any) -> None:
    with pytest.raises(ConfigurationError, match="name must be a text"):
        ragas.GuardrailMetric(name=name)
