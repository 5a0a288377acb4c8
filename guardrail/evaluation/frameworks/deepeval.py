"""The metrics of this package as a metric of deepeval, version 4 or later.

::

    from deepeval import evaluate
    from deepeval.test_case import LLMTestCase
    from guardrail.evaluation.frameworks.deepeval import GuardrailMetric

    case = LLMTestCase(
        input="When does the desk open?",
        actual_output="The desk opens at nine.",
        retrieval_context=["The desk opens at ten. Entry is free."],
    )
    evaluate([case], [GuardrailMetric("faithfulness", threshold=0.7)])

deepeval is imported when ``GuardrailMetric`` is first named; without it that raises
:class:`~guardrail.evaluation.frameworks.measuring.MissingFrameworkError`.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

from guardrail.errors import ConfigurationError, InputError
from guardrail.evaluation.datasets.metrics import Metric
from guardrail.evaluation.frameworks.measuring import Measured, MissingFrameworkError, Scored
from guardrail.scoring.verifier import Verifier

_DIGITS = 12  # 1 - 0.9 is 0.1 again, so that a score equal to the threshold passes


def __getattr__(name: str) -> Any:
    if name == "GuardrailMetric":
        return _metric_class()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@cache
def _metric_class() -> type[Any]:
    """The class, made at first use because its base is deepeval's."""
    try:
        from deepeval.metrics import BaseMetric
        from deepeval.test_case import SingleTurnParams
    except ImportError as error:
        raise MissingFrameworkError("deepeval", "4", error) from error

    class GuardrailMetric(BaseMetric):  # type: ignore[misc]
        """One metric of this package, as deepeval knows metrics: the score in [0, 1], and higher is better.

        A metric that counts what is wrong (``worst_delta_r``, ``contradicted``) is turned round: its score is 1 minus
        the value, and its name says so. ``threshold`` applies to the score.

        Args:
            metric: The name of a metric, see :func:`~guardrail.evaluation.datasets.metrics.metric`; or a metric of
                your own.
            threshold: The smallest score that passes; with ``None`` nothing passes or fails.
            verifier: Checks the answers, with its policy; by default ``Verifier()``.
            judge: For the metric ``judge``.
            flaky: deepeval's: whether the metric may decide if a test passes.

        Raises:
            ConfigurationError: If there is no such metric, it cannot be used so, or the threshold is not from 0 to 1.
            MissingFrameworkError: If deepeval is not installed, when the class is first named.

        deepeval reads results from the object. It makes a copy per test case where it measures at the same time; if
        you call ``a_measure`` of one object concurrently, each call returns its own score, and the attributes are
        those of the call that ended last.
        """

        _required_params = (SingleTurnParams.ACTUAL_OUTPUT, SingleTurnParams.RETRIEVAL_CONTEXT)

        # deepeval copies a metric by handing its attributes to the parameters of the same names.
        def __init__(
            self,
            metric: str | Metric = "faithfulness",
            threshold: float | None = 0.5,
            verifier: Verifier | None = None,
            judge: Any = None,
            flaky: bool = False,
        ) -> None:
            _check_threshold(threshold)
            self.metric = metric
            self.threshold = threshold
            self.verifier = Verifier() if verifier is None else verifier
            self.flaky = flaky
            self.measured = Measured(metric, verifier=self.verifier, judge=judge)
            self.judge = self.measured.judge
            self.evaluation_model = self.measured.model
            self.evaluation_cost = None if judge is not None else 0.0
            self.async_mode = True
            self.include_reason = True
            self.verbose_mode = False

        @property
        def __name__(self) -> str:
            return f"Guardrail {'' if self.measured.higher_is_better else '1 - '}{self.measured.name}"

        def measure(self, test_case: Any, *args: Any, **kwargs: Any) -> float:
            """Score a test case.

            Args:
                test_case: An ``LLMTestCase`` with ``actual_output`` and ``retrieval_context``; ``input`` is the
                    question.
                *args: What deepeval passes on to metrics of its own; not used.
                **kwargs: As ``args``.

            Returns:
                The score.

            Raises:
                MissingTestCaseParamsError: deepeval's, if the test case lacks what is needed.
                ScoringError: If the answer cannot be scored. ``score`` is then ``None`` and ``success`` false.

            Where an event loop is running, it is blocked until the score is there: use :meth:`a_measure`.
            """
            return _run(lambda: _measure(self, test_case))

        async def a_measure(self, test_case: Any, *args: Any, **kwargs: Any) -> float:
            """:meth:`measure` without blocking.

            Cancellation reaches the verifier and the judge; the metric then has no score and has not passed.
            """
            return await _measure(self, test_case)

        def is_successful(self) -> bool | None:
            """Whether the last test case passed; ``None`` without a threshold, false after an error."""
            if self.threshold is None:
                self.success = None
            else:
                self.success = self.error is None and self.score is not None and self.score >= self.threshold
            return self.success

    GuardrailMetric.__qualname__ = "GuardrailMetric"
    return GuardrailMetric


def _check_threshold(threshold: object) -> None:
    is_number = isinstance(threshold, (int, float)) and not isinstance(threshold, bool)
    if threshold is not None and not (is_number and 0.0 <= threshold <= 1.0):  # type: ignore[operator]
        raise ConfigurationError(f"threshold must be a number from 0 to 1, or None, not {threshold!r}")


async def _measure(metric: Any, test_case: Any) -> float:
    try:
        _check(metric, test_case)
        context = [_text(passage) for passage in test_case.retrieval_context]
        found = await metric.measured.score(test_case.actual_output, context, test_case.input)
    except BaseException as error:
        _record(metric, None, str(error) or type(error).__name__)
        raise
    score: float = found.score if metric.measured.higher_is_better else round(1.0 - found.score, _DIGITS)
    _record(metric, Scored(score=score, reason=found.reason), None)
    return score


def _check(metric: Any, test_case: Any) -> None:
    from deepeval.errors import MissingTestCaseParamsError
    from deepeval.test_case import LLMTestCase

    if not isinstance(test_case, LLMTestCase):
        raise InputError(f"the test case must be an LLMTestCase, not {type(test_case).__name__}")
    if getattr(test_case, "multimodal", False):
        raise InputError("the test case holds images, which cannot be checked")
    missing = [param.value for param in metric._required_params if getattr(test_case, param.value) is None]
    if missing:
        raise MissingTestCaseParamsError(f"{' and '.join(missing)} must not be None for {metric.__name__}")


def _text(passage: Any) -> Any:
    """The text of a passage; deepeval wraps those that name their source."""
    return getattr(passage, "context", passage)


def _record(metric: Any, found: Scored | None, error: str | None) -> None:
    """Set everything that deepeval reads, without a pause in between."""
    metric.score = None if found is None else found.score
    metric.reason = None if found is None else found.reason
    metric.error = error
    metric.is_successful()


def _run(call: Callable[[], Coroutine[Any, Any, float]]) -> float:
    """Run a coroutine to its end, in a thread of its own if this one has a running event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(call())
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(contextvars.copy_context().run, lambda: asyncio.run(call())).result()
