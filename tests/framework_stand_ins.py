"""What the adapters use of deepeval 4.3 and ragas 0.4, in a few lines, for tests without the packages.

``tests/integration/test_metric_frameworks.py`` runs the same adapters against the real ones where they are installed.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from importlib.abc import MetaPathFinder
from types import ModuleType
from typing import Any

from guardrail import GenerationTypeError, ScoringError
from guardrail.evaluation.datasets.metrics import ItemInProgress, Measurement
from guardrail.evaluation.frameworks import deepeval as deepeval_adapter
from guardrail.evaluation.frameworks import ragas as ragas_adapter
from guardrail.evaluation.judging import Judgement, JudgeVerdict


class SingleTurnParams(Enum):
    INPUT = "input"
    ACTUAL_OUTPUT = "actual_output"
    RETRIEVAL_CONTEXT = "retrieval_context"


class MissingTestCaseParamsError(Exception):
    pass


@dataclass
class LLMTestCase:
    input: str | None = None
    actual_output: str | None = None
    retrieval_context: list[Any] | None = None
    multimodal: bool = False


@dataclass
class RetrievedContextData:
    context: str
    source: str


class DeepevalBaseMetric:
    """The attributes that deepeval reads from a metric, with its defaults."""

    threshold: float | None = None
    score: float | None = None
    reason: str | None = None
    success: bool | None = None
    evaluation_model: str | None = None
    strict_mode = False
    async_mode = True
    verbose_mode = True
    error: str | None = None
    evaluation_cost: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    verbose_logs: str | None = None
    skipped = False
    flaky = False


def copied(metric: Any) -> Any:
    """A copy as deepeval makes it per test case: attributes to the parameters of the same names."""
    names = [name for cls in type(metric).__mro__ for name in inspect.signature(cls.__init__).parameters]
    return type(metric)(**{name: vars(metric)[name] for name in set(names) if name in vars(metric)})


async def measured_by_deepeval(metric: Any, case: LLMTestCase, *, ignore_errors: bool) -> None:
    """One measurement as deepeval makes it, with its second try after a ``TypeError``."""
    try:
        await metric.a_measure(case, _show_indicator=False, _in_component=False)
    except TypeError:
        await metric.a_measure(case)
    except Exception as error:
        if not ignore_errors:
            raise
        metric.error = str(error)
        metric.success = False


class MetricType(Enum):
    SINGLE_TURN = "single_turn"


@dataclass
class RagasMetric:
    _required_columns: dict[MetricType, set[str]] = field(default_factory=dict)
    name: str = ""


class SingleTurnMetric(RagasMetric):
    async def single_turn_ascore(self, sample: Any, callbacks: Any = None, timeout: float | None = None) -> float:
        return await asyncio.wait_for(self._single_turn_ascore(sample=sample, callbacks=callbacks), timeout=timeout)


@dataclass
class SimpleBaseMetric:
    name: str
    allowed_values: tuple[float, float]


class CollectionsBaseMetric(SimpleBaseMetric):
    def __init__(self, name: str = "base_metric", allowed_values: tuple[float, float] = (0.0, 1.0)) -> None:
        super().__init__(name=name, allowed_values=allowed_values)

    def score(self, **kwargs: Any) -> Any:
        return asyncio.run(self.ascore(**kwargs))


@dataclass
class MetricResult:
    value: Any
    reason: str | None = None


@dataclass
class SingleTurnSample:
    response: str | None = None
    retrieved_contexts: list[str] | None = None
    user_input: str | None = None


async def evaluated_by_ragas(metric: Any, samples: list[SingleTurnSample]) -> list[float]:
    """The column of results that ``ragas.evaluate`` makes: NaN where the metric raised."""

    async def one(sample: SingleTurnSample) -> float:
        try:
            return await metric.single_turn_ascore(sample, None, timeout=60)
        except Exception:
            return float("nan")

    return await asyncio.gather(*(one(sample) for sample in samples))


_MODULES: dict[str, dict[str, Any]] = {
    "deepeval": {},
    "deepeval.errors": {"MissingTestCaseParamsError": MissingTestCaseParamsError},
    "deepeval.metrics": {"BaseMetric": DeepevalBaseMetric},
    "deepeval.test_case": {"LLMTestCase": LLMTestCase, "SingleTurnParams": SingleTurnParams},
    "ragas": {},
    "ragas.metrics": {},
    "ragas.metrics.base": {"MetricType": MetricType, "SingleTurnMetric": SingleTurnMetric},
    "ragas.metrics.collections": {},
    "ragas.metrics.collections.base": {"BaseMetric": CollectionsBaseMetric},
    "ragas.metrics.result": {"MetricResult": MetricResult},
}


@contextmanager
def stand_ins(*without: str, missing: str | None = None) -> Iterator[None]:
    """Put the stand-ins in the place of the packages.

    Args:
        *without: Packages that cannot be imported, as if they were not installed.
        missing: A module that is imported by ``ragas.metrics.base`` and is not there.
    """
    ours = {name for name in sys.modules if name.partition(".")[0] in ("deepeval", "ragas")}
    kept = {name: sys.modules.pop(name) for name in ours}
    for name, values in _MODULES.items():
        module = ModuleType(name)
        vars(module).update(values, __path__=[])
        sys.modules[name] = module
    for name in without:
        for inside in [each for each in _MODULES if each.partition(".")[0] == name]:
            del sys.modules[inside]
    if missing is not None:
        sys.modules["ragas.metrics.base"] = _Broken("ragas.metrics.base", missing)
    blocker = _NotInstalled(without)
    sys.meta_path.insert(0, blocker)
    _forget()
    try:
        yield
    finally:
        sys.meta_path.remove(blocker)
        for name in _MODULES:
            sys.modules.pop(name, None)
        sys.modules.update(kept)
        _forget()


class _NotInstalled(MetaPathFinder):
    def __init__(self, packages: tuple[str, ...]) -> None:
        self._packages = packages

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> None:
        if fullname in self._packages:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


class _Broken(ModuleType):
    def __init__(self, name: str, missing: str) -> None:
        super().__init__(name)
        self._missing = missing

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise ModuleNotFoundError(f"No module named {self._missing!r}", name=self._missing)


def _forget() -> None:
    deepeval_adapter._metric_class.cache_clear()
    ragas_adapter._metric_class.cache_clear()


PASSAGES = ["The desk opens at ten. Entry is free."]
RIGHT, WRONG = "The desk opens at ten.", "The desk opens at nine."


class Fixed:
    """A metric that says what it is told, after it was allowed to."""

    def __init__(self, result: Any, *, higher_is_better: bool = True, gate: asyncio.Event | None = None) -> None:
        self.name = "fixed"
        self.higher_is_better = higher_is_better
        self.result = result
        self.gate = gate
        self.calls = 0

    async def measure(self, item: ItemInProgress) -> Measurement:
        self.calls += 1
        if self.gate is not None:
            await self.gate.wait()
        found = self.result(item) if callable(self.result) else self.result
        if isinstance(found, BaseException):
            raise found
        return found


class YesJudge:
    """A judge that says yes."""

    judge_id = "yes"

    async def judge(self, pairs: Any) -> list[Judgement]:
        return [Judgement(verdict=JudgeVerdict.YES) for _ in pairs]


def no_scores() -> list[tuple[Any, str]]:
    """What a metric may say or do instead of giving a score, and the error that follows."""
    return [
        (Measurement(error="no_context"), "fixed could not be measured: no_context"),
        (Measurement(score=1.5), "the metric 'fixed' returned 1.5, outside [0, 1]"),
        (Measurement(score=-0.1), "the metric 'fixed' returned -0.1, outside [0, 1]"),
        (1.0, "the metric 'fixed' returned float instead of a Measurement"),
        (None, "the metric 'fixed' returned NoneType instead of a Measurement"),
        (TypeError("The desk opens"), "the metric 'fixed' raised TypeError"),
        (GenerationTypeError("The desk opens"), "the metric 'fixed' raised GenerationTypeError"),
        (KeyError("The desk opens"), "the metric 'fixed' raised KeyError"),
        (ScoringError("the model is gone"), "the model is gone"),
    ]
