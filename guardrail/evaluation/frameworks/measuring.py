"""What the adapters have in common: one metric of this package, measured on one answer, or an error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from guardrail.errors import ConfigurationError, GuardrailError, InputError, ScoringError
from guardrail.evaluation.datasets.items import Item
from guardrail.evaluation.datasets.metrics import ItemInProgress, Measurement, Metric, as_judge, metric
from guardrail.scoring.verifier import Verifier
from guardrail.types import Passage


class MissingFrameworkError(ConfigurationError, ImportError):
    """An evaluation framework is not installed, or it is and cannot be imported.

    Attributes:
        package: The distribution to install. It is not an extra of this package: who has no use for the framework
            should not get its dependencies.
    """

    def __init__(self, package: str, minimum: str, cause: ImportError) -> None:
        advice = f"pip install '{package}>={minimum}'"
        if cause.name == package:
            problem = f"guardrail's metric for {package} needs {package}: {advice}"
        else:
            problem = f"guardrail's metric for {package} cannot import {package} ({cause}); it is written for: {advice}"
        super().__init__(problem)
        self.name = cause.name
        self.package = package


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """A score, and where it comes from.

    Attributes:
        score: In [0, 1].
        reason: One line: name, value and details of the metric; without text of the question, passages or answer.
    """

    score: float
    reason: str


class Measured:
    """One metric and what it needs, ready to be asked about answers.

    Args:
        wanted: The name of a metric (see :func:`~guardrail.evaluation.datasets.metrics.metric`), or a metric of your
            own with scores in [0, 1].
        verifier: Checks the answers.
        judge: For the metric ``judge``: see there.

    Raises:
        ConfigurationError: If there is no such metric, it does not go with the policy, or it asks no judge.

    Any number of calls may run at the same time; nothing of a call is kept.

    Example:
        >>> import asyncio
        >>> measured = Measured("accepted", verifier=Verifier())
        >>> asyncio.run(measured.score("Entry is free.", ["The desk opens at ten. Entry is free."])).score
        1.0
    """

    def __init__(self, wanted: str | Metric, *, verifier: Verifier, judge: Any = None) -> None:
        if not isinstance(verifier, Verifier):
            raise ConfigurationError(f"verifier must be a guardrail.Verifier, not {type(verifier).__name__}")
        if judge is not None and wanted != "judge":
            raise ConfigurationError("a judge goes with the metric 'judge' only")
        self.verifier = verifier
        self.judge = None if judge is None else as_judge(judge)
        self.metric: Metric = (
            metric(wanted, verifier=verifier, judge=self.judge) if isinstance(wanted, str) else _own(wanted)
        )

    @property
    def name(self) -> str:
        """Name of the metric."""
        return self.metric.name

    @property
    def higher_is_better(self) -> bool:
        """Whether a good answer has a high score."""
        return self.metric.higher_is_better

    @property
    def model(self) -> str:
        """Who decides, in words: the judge, or the entailment model and the policy."""
        if self.judge is not None:
            return str(self.judge.judge_id)
        return f"{self.verifier.scorer} ({self.verifier.policy.name})"

    async def score(self, answer: object, context: object, question: object = None) -> Scored:
        """Measure one answer.

        Args:
            answer: The answer.
            context: The retrieved passages: texts, or :class:`~guardrail.Passage`.
            question: What was asked, if known.

        Returns:
            The score. An answer that cannot be scored has none: that is an error, never a number.

        Raises:
            InputError: If the answer, the context or the question are missing or of another type.
            ScoringError: If the metric has no score for this answer; the message says why.

        Cancellation reaches the verifier and the judge; see there.
        """
        item = ItemInProgress(_item(answer, context, question), verifier=self.verifier)
        try:
            found = await self.metric.measure(item)
        except Exception as error:
            if isinstance(error, GuardrailError) and not isinstance(error, TypeError):
                raise
            # deepeval takes a TypeError for one about arguments, and calls again with others
            raise ScoringError(f"the metric {self.name!r} raised {type(error).__name__}") from error
        return Scored(score=self._checked(found), reason=self._reason(found))

    def _checked(self, found: object) -> float:
        if not isinstance(found, Measurement):
            raise ScoringError(f"the metric {self.name!r} returned {type(found).__name__} instead of a Measurement")
        if found.score is None:
            raise ScoringError(f"{self.name} could not be measured: {found.error}")
        if not 0.0 <= found.score <= 1.0:
            raise ScoringError(f"the metric {self.name!r} returned {found.score!r}, outside [0, 1]")
        return found.score

    def _reason(self, found: Measurement) -> str:
        figures = ", ".join(f"{key} {_short(value)}" for key, value in found.detail.items())
        return f"{self.name} {_short(found.score)}" + (f" ({figures})" if figures else "")


def _own(wanted: Any) -> Metric:
    named = isinstance(getattr(wanted, "name", None), str) and callable(getattr(wanted, "measure", None))
    if isinstance(wanted, type) or not named or not isinstance(getattr(wanted, "higher_is_better", None), bool):
        raise ConfigurationError(
            f"metric must be the name of a metric, or have name, higher_is_better and measure: see "
            f"guardrail.evaluation.datasets.metrics.Metric; not {type(wanted).__name__}"
        )
    chosen: Metric = wanted
    return chosen


def _item(answer: object, context: object, question: object) -> Item:
    if not isinstance(answer, str):
        raise InputError(f"the answer must be a str, not {type(answer).__name__}")
    if question is not None and not isinstance(question, str):
        raise InputError(f"the question must be a str or None, not {type(question).__name__}")
    if not isinstance(context, Sequence) or isinstance(context, (str, bytes)):
        raise InputError(f"the context must be a list of str or Passage, not {type(context).__name__}")
    if not all(isinstance(passage, (str, Passage)) for passage in context):
        raise InputError("the context must be a list of str or Passage, and holds something else")
    return Item(id="1", question=question or "", context=tuple(context), answer=answer)


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
