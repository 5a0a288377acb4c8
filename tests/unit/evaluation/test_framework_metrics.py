"""What the metric objects for ragas and deepeval have in common, and what happens without the frameworks."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from guardrail import ConfigurationError, InputError, Passage, ScoringError, Verifier
from guardrail.evaluation.datasets.metrics import METRICS, Measurement
from guardrail.evaluation.frameworks import deepeval, ragas
from guardrail.evaluation.frameworks.measuring import Measured, MissingFrameworkError
from tests.framework_stand_ins import (
    PASSAGES,
    RIGHT,
    Fixed,
    YesJudge,
    no_scores,
    stand_ins,
)


@pytest.fixture(autouse=True)
def _frameworks() -> Iterator[None]:
    with stand_ins():
        yield


@pytest.mark.parametrize("name", [name for name in METRICS if name != "judge"])
async def test_every_metric_by_name_has_a_score_for_a_plain_answer(name: str) -> None:
    found = await Measured(name, verifier=Verifier()).score(f"{RIGHT} [1]", PASSAGES, "When?")
    assert 0.0 <= found.score <= 1.0
    assert found.reason.startswith(f"{name} ")
    assert "desk" not in found.reason


@pytest.mark.parametrize("name", [name for name in METRICS if name != "judge"])
async def test_no_metric_has_a_score_without_context(name: str) -> None:
    with pytest.raises(ScoringError, match="no_context"):
        await Measured(name, verifier=Verifier()).score(RIGHT, [])


@pytest.mark.parametrize(("result", "message"), no_scores(), ids=lambda value: str(value)[:40])
async def test_what_is_no_score_is_an_error(result: Any, message: str) -> None:
    with pytest.raises(ScoringError) as caught:
        await Measured(Fixed(result), verifier=Verifier()).score(RIGHT, PASSAGES)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("answer", "context", "question"),
    [
        (None, PASSAGES, None),
        (RIGHT, None, None),
        (RIGHT, "one text", None),
        (RIGHT, [None], None),
        (RIGHT, {"a": 1}, None),
        (RIGHT, PASSAGES, 7),
    ],
)
async def test_what_is_no_answer_or_context_is_an_error(answer: Any, context: Any, question: Any) -> None:
    metric = Fixed(Measurement(score=1.0))
    with pytest.raises(InputError):
        await Measured(metric, verifier=Verifier()).score(answer, context, question)
    assert metric.calls == 0


async def test_passages_and_question_reach_the_metric() -> None:
    seen = []
    metric = Fixed(lambda progress: seen.append(progress.item) or Measurement(score=0.25))
    passage = Passage(id="a", text="Entry is free.")
    await Measured(metric, verifier=Verifier()).score(RIGHT, ["one", passage], "When?")
    assert [(i.answer, i.context, i.question) for i in seen] == [(RIGHT, ("one", passage), "When?")]


async def test_the_reason_has_the_details_of_the_measurement() -> None:
    detail = {"claims": 3, "share": 1 / 3, "reason": "passed", "worst": [0, 22], "errors": {"timeout": 1}}
    found = await Measured(Fixed(Measurement(score=2 / 3, detail=detail)), verifier=Verifier()).score("a", ["b"])
    assert found.reason == (
        "fixed 0.6667 (claims 3, share 0.3333, reason passed, worst [0, 22], errors {'timeout': 1})"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"wanted": "faithfullness"}, "there is no metric 'faithfullness'"),
        ({"wanted": "judge"}, "needs a judge"),
        ({"wanted": "faithfulness", "judge": print}, "a judge goes with the metric 'judge' only"),
        ({"wanted": None}, "not NoneType"),
        ({"wanted": Fixed}, "not type"),
        ({"wanted": object()}, "not object"),
        ({"wanted": "faithfulness", "verifier": "strict"}, "verifier must be a guardrail.Verifier, not str"),
    ],
)
def test_what_is_no_metric_is_refused_when_it_is_made(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        Measured(**{"verifier": Verifier(), **arguments})


async def test_a_judge_is_asked_and_named() -> None:
    measured = Measured("judge", verifier=Verifier(), judge=YesJudge())
    assert (await measured.score(RIGHT, PASSAGES)).score == 1.0
    assert measured.model == "yes"


@pytest.mark.parametrize(("module", "package", "minimum"), [(deepeval, "deepeval", "4"), (ragas, "ragas", "0.4")])
def test_without_the_framework_the_error_says_what_to_install(module: Any, package: str, minimum: str) -> None:
    with stand_ins(package), pytest.raises(MissingFrameworkError) as caught:
        _ = module.GuardrailMetric
    assert isinstance(caught.value, ImportError)
    assert caught.value.package == package
    assert f"needs {package}: pip install '{package}>={minimum}'" in str(caught.value)
    assert module.GuardrailMetric().measured.name == "faithfulness"


def test_a_framework_that_cannot_be_imported_is_not_called_missing() -> None:
    with stand_ins(missing="langchain_community.chat_models"), pytest.raises(MissingFrameworkError) as caught:
        _ = ragas.GuardrailMetric
    assert "cannot import ragas (No module named 'langchain_community.chat_models')" in str(caught.value)
    assert caught.value.name == "langchain_community.chat_models"


@pytest.mark.parametrize("module", [deepeval, ragas])
def test_the_class_can_be_found_by_its_name(module: Any) -> None:
    assert pickle.loads(pickle.dumps(module.GuardrailMetric)) is module.GuardrailMetric
    with pytest.raises(AttributeError, match="GuardrailMetrics"):
        _ = module.GuardrailMetrics


def test_importing_the_adapters_loads_no_framework() -> None:
    code = (
        "import sys; import guardrail.evaluation.frameworks.deepeval, guardrail.evaluation.frameworks.ragas; "
        "print({'deepeval', 'ragas'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
