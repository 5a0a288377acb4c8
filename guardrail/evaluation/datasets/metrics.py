"""What is measured of one answer: metrics by name, and the protocol for metrics of your own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

from guardrail.errors import ConfigurationError, ModelLoadError, ScoringError
from guardrail.evaluation.datasets import measures
from guardrail.evaluation.datasets.items import Item
from guardrail.evaluation.datasets.measurement import ItemInProgress, Measurement
from guardrail.scoring.verifier import Verifier

__all__ = ["METRICS", "Item", "ItemInProgress", "Measurement", "Metric", "as_judge", "metric"]

_Measure = Callable[[ItemInProgress], Awaitable[Measurement]]


class Metric(Protocol):
    """Measures one aspect of an answer.

    A metric may also have ``settings``, a mapping of what its scores depend on: results of other settings are then not
    mixed with its own when an evaluation goes on after an interrupt. Its class is compared too, but not its code.
    """

    @property
    def name(self) -> str:
        """Name in results; unique within an evaluation."""
        ...

    @property
    def higher_is_better(self) -> bool:
        """Whether a good answer has a high score."""
        ...

    async def measure(self, item: ItemInProgress) -> Measurement:
        """Measure an item that has an answer.

        Args:
            item: The item; several may be measured at the same time.

        Returns:
            The score, or an error; a metric must not guess one for an item that it cannot measure. An exception that
            it raises counts as an error of the name of its type, with file and line in the details, except for
            :class:`~guardrail.errors.ConfigurationError` and :class:`~guardrail.errors.ModelLoadError`, which end the
            evaluation.

        Cancellation must reach whatever it waits for.
        """
        ...


METRICS: Mapping[str, str] = MappingProxyType(
    {
        "faithfulness": "mean entailment of the claims; strict: 0 if one is below the threshold; 0 without claims",
        "delta_r": "mean ΔR of the claims; low is good",
        "worst_delta_r": "largest ΔR of a claim; low is good",
        "accepted": "1 if the policy accepts the answer, else 0",
        "contradicted": "share of the claims that the evidence contradicts; low is good",
        "unverifiable": "share of the claims that the evidence is silent about; low is good",
        "contradiction": "share of the claims that at least one passage contradicts; low is good",
        "citation_precision": "share of the citations whose passage supports the claim",
        "citation_recall": "share of the claims that one of their citations supports",
        "citation_f1": "harmonic mean of both",
        "judge": "share of the claims that a judge finds supported",
        "reference_delta_r": "ΔR of the whole answer against the whole context; low is good",
        "rouge_l": "ROUGE-L F1 of the whole answer against the whole context",
    }
)
"""The metrics that :func:`metric` knows, and what each measures."""

_MEASURES: Mapping[str, _Measure] = {
    "faithfulness": measures.faithfulness,
    "delta_r": measures.delta_r,
    "worst_delta_r": measures.worst_delta_r,
    "accepted": measures.accepted,
    "contradicted": measures.contradicted,
    "unverifiable": measures.unverifiable,
    "contradiction": measures.contradiction,
    "citation_precision": measures.citation_precision,
    "citation_recall": measures.citation_recall,
    "citation_f1": measures.citation_f1,
    "reference_delta_r": measures.reference_delta_r,
    "rouge_l": measures.rouge_l,
}
_LOW_IS_GOOD = frozenset(
    {"delta_r", "worst_delta_r", "contradicted", "unverifiable", "contradiction", "reference_delta_r"}
)
_PER_CLAIM = frozenset({"contradicted", "unverifiable"})


def metric(name: str, *, verifier: Verifier, judge: Any = None, decomposer: Any = None) -> Metric:
    """A metric by name.

    Args:
        name: One of :data:`METRICS`.
        verifier: The verifier of the evaluation; some metrics do not go with every policy.
        judge: For ``judge``: a :class:`~guardrail.evaluation.judging.Judge`, or what
            :class:`~guardrail.evaluation.judging.LLMJudge` takes: a callable or a LangChain chat model.
        decomposer: For ``judge``: who breaks answers up into claims; ``None`` takes their sentences, see
            :func:`~guardrail.evaluation.judging.judge_answer`.

    Raises:
        ConfigurationError: If there is no such metric, it needs a judge, or it does not go with the policy.

    Example:
        >>> import asyncio
        >>> item = Item(id="1", context=("The desk opens at ten.",), answer="The desk opens at nine.")
        >>> verifier = Verifier()
        >>> chosen = metric("accepted", verifier=verifier)
        >>> asyncio.run(chosen.measure(ItemInProgress(item, verifier=verifier))).score
        0.0
    """
    if name not in METRICS:
        raise ConfigurationError(f"there is no metric {name!r}; there are {', '.join(METRICS)}")
    if name in _PER_CLAIM and verifier.policy.formula != "evidence":
        raise ConfigurationError(f"{name} needs a verdict per claim: choose a policy with formula 'evidence'")
    if name != "judge":
        return _BuiltIn(name=name, higher_is_better=name not in _LOW_IS_GOOD, run=_MEASURES[name])
    if judge is None:
        raise ConfigurationError("the metric 'judge' needs a judge: --judge package.module:attribute, or judge=...")
    asked = as_judge(judge)

    async def judged(item: ItemInProgress) -> Measurement:
        return await measures.judged(item.item, asked, decomposer)

    settings = {"judge": asked.judge_id}
    if decomposer is not None:
        settings["decomposer"] = type(decomposer).__name__
    return _BuiltIn(name=name, higher_is_better=True, run=judged, settings=MappingProxyType(settings))


def as_judge(judge: Any) -> Any:
    """A judge as it is, and anything else as the model of an :class:`~guardrail.evaluation.judging.LLMJudge`.

    Raises:
        ConfigurationError: If it cannot be asked.
    """
    if hasattr(judge, "judge_id") and callable(getattr(judge, "judge", None)):
        return judge
    from guardrail.evaluation.judging.judge import LLMJudge

    return LLMJudge(judge)


@dataclass(frozen=True, slots=True, kw_only=True)
class _BuiltIn:
    name: str
    higher_is_better: bool
    run: _Measure = field(repr=False)
    settings: Mapping[str, Any] = field(default_factory=dict)  # what else its scores depend on

    async def measure(self, item: ItemInProgress) -> Measurement:
        try:
            return await self.run(item)
        except ModelLoadError:
            raise
        except ScoringError:
            return Measurement(error="scoring_error")
