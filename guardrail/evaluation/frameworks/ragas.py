"""The metrics of this package as a metric of ragas, version 0.4 or later.

One object serves both interfaces of ragas: ``ragas.evaluate`` and experiments.

::

    from ragas import EvaluationDataset, evaluate
    from guardrail.evaluation.frameworks.ragas import GuardrailMetric

    rows = [{"user_input": "When?", "response": "At ten.", "retrieved_contexts": ["The desk opens at ten."]}]
    evaluate(EvaluationDataset.from_list(rows), metrics=[GuardrailMetric("faithfulness")])

    @experiment()
    async def run(row):
        found = await GuardrailMetric("faithfulness").ascore(
            user_input=row["question"], response=row["answer"], retrieved_contexts=row["passages"]
        )
        return {**row, "faithfulness": found.value, "reason": found.reason}

ragas is imported when ``GuardrailMetric`` is first named; without it that raises
:class:`~guardrail.evaluation.frameworks.measuring.MissingFrameworkError`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from guardrail.errors import ConfigurationError
from guardrail.evaluation.datasets.metrics import Metric
from guardrail.evaluation.frameworks.measuring import Measured, MissingFrameworkError
from guardrail.scoring.verifier import Verifier


def __getattr__(name: str) -> Any:
    if name == "GuardrailMetric":
        return _metric_class()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@cache
def _metric_class() -> type[Any]:
    """The class, made at first use because its bases are those of ragas."""
    try:
        from ragas.metrics.base import MetricType, SingleTurnMetric
        from ragas.metrics.collections.base import BaseMetric
        from ragas.metrics.result import MetricResult
    except ImportError as error:
        raise MissingFrameworkError("ragas", "0.4", error) from error

    class GuardrailMetric(SingleTurnMetric, BaseMetric):  # type: ignore[misc]
        """One metric of this package, as ragas knows metrics: a value in [0, 1], as the metric defines it.

        ``worst_delta_r`` and other metrics that count what is wrong stay as they are: lower is better.

        An answer that cannot be scored raises. ``ragas.evaluate`` then has NaN in its row and leaves the row out of
        the mean, unless it is called with ``raise_exceptions=True``: look at the rows, not at the mean alone.

        Args:
            metric: The name of a metric, see :func:`~guardrail.evaluation.datasets.metrics.metric`; or a metric of
                your own.
            verifier: Checks the answers, with its policy; by default ``Verifier()``.
            judge: For the metric ``judge``.
            name: Of the column of results; by default ``guardrail_`` and the name of the metric.

        Raises:
            ConfigurationError: If there is no such metric, it cannot be used so, or the name is no text.
            MissingFrameworkError: If ragas is not installed, when the class is first named.

        One object serves any number of concurrent calls.
        """

        def __init__(
            self,
            metric: str | Metric = "faithfulness",
            *,
            verifier: Verifier | None = None,
            judge: Any = None,
            name: str | None = None,
        ) -> None:
            if name is not None and (not isinstance(name, str) or not name):
                raise ConfigurationError(f"name must be a text that is not empty, or None, not {name!r}")
            self.measured = Measured(metric, verifier=Verifier() if verifier is None else verifier, judge=judge)
            name = f"guardrail_{self.measured.name}" if name is None else name
            needed = {MetricType.SINGLE_TURN: {"response", "retrieved_contexts", "user_input:optional"}}
            SingleTurnMetric.__init__(self, needed, name)
            BaseMetric.__init__(self, name, (0.0, 1.0))

        def init(self, run_config: Any) -> None:
            """What ``ragas.evaluate`` calls first; there is nothing to prepare."""

        async def _single_turn_ascore(self, sample: Any, callbacks: Any) -> float:
            found = await self.measured.score(sample.response, sample.retrieved_contexts, sample.user_input)
            return found.score

        async def ascore(
            self, *, response: str, retrieved_contexts: Sequence[str], user_input: str | None = None
        ) -> Any:
            """Score one answer.

            Args:
                response: The answer.
                retrieved_contexts: The passages.
                user_input: The question, if known.

            Returns:
                A ``MetricResult`` with the score and, as its reason, one line of figures.

            Raises:
                InputError: If the answer or the passages are missing.
                ScoringError: If the answer cannot be scored.

            Cancellation reaches the verifier and the judge.
            """
            found = await self.measured.score(response, retrieved_contexts, user_input)
            return MetricResult(value=found.score, reason=found.reason)

    GuardrailMetric.__qualname__ = "GuardrailMetric"
    return GuardrailMetric
