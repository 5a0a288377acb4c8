"""How well the verifier tells hallucinated answers from grounded ones, on answers that people have labelled.

Every answer goes through the :class:`~guardrail.scoring.verifier.Verifier` that serves requests, with thresholds that
were fixed before; labels are used only afterwards, to count. The positive class is *hallucinated* (label 0).

Two thresholds are measured. A policy decides for readers and must not stop many grounded answers: its decisions are
``grounded_released`` and ``hallucinated_stopped``. Published figures of detectors are taken where F1 is best instead:
an answer is *flagged* if it ranks above the scorer's ``detection_delta``, which is fitted like δ on other data. A
scorer without one flags what the policy stops. ``best`` says what the threshold that is best on the set itself would
have given: an upper bound, chosen with the labels in sight.

A :class:`~guardrail.evaluation.benchmarks.simulated.Simulation` adds what a cascade would do whose judge knows the
labels.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from guardrail.errors import InputError, ScoringError
from guardrail.evaluation.benchmarks.published import Published, published
from guardrail.evaluation.benchmarks.ranking import NO_CLAIM, answer_score, ranked_claims, vetoed
from guardrail.evaluation.benchmarks.simulated import Simulation
from guardrail.evaluation.benchmarks.thresholds import BestThreshold, best_threshold
from guardrail.evaluation.figures import Confusion, Interval, auroc, bootstrap
from guardrail.evaluation.labelled import LabelledAnswer, read_answers
from guardrail.scoring.verifier import Verifier
from guardrail.types import Verification

__all__ = [
    "NO_CLAIM",
    "CascadeQuality",
    "QualityReport",
    "QualityRow",
    "SetQuality",
    "answer_score",
    "measure",
    "vetoed",
]

_UNSCORED = ("no_context", "scoring_error")


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityRow:
    """Figures over a set of answers. All but counts and milliseconds are in [0, 1]; ``None`` where not defined.

    Attributes:
        n: Number of answers that were scored.
        auroc: P(a hallucinated answer ranks above a grounded one); see :func:`answer_score`. Independent of δ.
        f1: Harmonic mean of precision and recall.
        precision: Share of the flagged answers that are hallucinated.
        recall: Share of the hallucinated answers that are flagged.
        balanced_accuracy: Mean of ``recall`` and the share of the grounded answers that are not flagged.
        grounded_released: Share of the grounded answers that the policy accepts.
        false_refusals: Share of the grounded answers that it does not: ``1 - grounded_released``.
        hallucinated_stopped: Share of the hallucinated answers that it does not.
        best: The same figures at the threshold that is best on these answers themselves; see
            :class:`~guardrail.evaluation.benchmarks.thresholds.BestThreshold`.
        without_claim: How many of the answers have nothing that is checked; they rank lowest.
        ms_per_claim: Wall time per claim in milliseconds, with segmenting the answer and indexing its context; ``None``
            for a simulated cascade, of which it would say nothing.
        skipped: Why answers could not be scored (``no_context``, ``scoring_error``, ``empty_answer``), with counts.
        ci95: Bootstrap confidence intervals; see :func:`guardrail.evaluation.figures.bootstrap`.
    """

    n: int
    auroc: float | None
    f1: float | None
    precision: float | None
    recall: float | None
    balanced_accuracy: float | None
    grounded_released: float | None
    false_refusals: float | None
    hallucinated_stopped: float | None
    best: BestThreshold | None
    without_claim: int
    ms_per_claim: float | None
    skipped: dict[str, int]
    ci95: dict[str, Interval | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class CascadeQuality:
    """Figures of a simulated cascade on one labelled file.

    Attributes:
        error_rate: Probability that the judge is wrong about a claim.
        seed: Of its errors.
        claims_asked: Share of the claims whose verdict rests on what it was asked; ``None`` without claims.
        answers_asked: Share of the answers that have such a claim.
        overall: Over all answers.
        by_task: Per ``detail.task_type``.
    """

    error_rate: float
    seed: int
    claims_asked: float | None
    answers_asked: float | None
    overall: QualityRow
    by_task: dict[str, QualityRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetQuality:
    """Figures of one labelled file.

    Attributes:
        overall: Over all its answers.
        by_task: Per ``detail.task_type``; empty if the file does not have it.
        cascade: The same with a simulated cascade, if there was one.
    """

    overall: QualityRow
    by_task: dict[str, QualityRow]
    cascade: CascadeQuality | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityReport:
    """Figures of several labelled files.

    Attributes:
        policy: Name of the policy.
        scorer: ``model_id`` of the entailment model.
        delta: δ that was applied.
        detection_delta: Threshold above which an answer is flagged; ``None`` if what the policy stops is.
        sets: Per name of the file.
    """

    policy: str
    scorer: str
    delta: float
    detection_delta: float | None = None
    sets: dict[str, SetQuality]

    def to_json(self) -> dict[str, Any]:
        """The report as plain values.

        ``sets`` is ``{name: {..., "by_task": {task: {...}}, "cascade": {...} or None, "published": [...]}}``.
        """
        rows = {
            name: {
                **_row_json(found.overall, found.by_task),
                "cascade": None if found.cascade is None else _cascade_json(found.cascade),
                "published": [_published_json(other) for other in published(name)],
            }
            for name, found in self.sets.items()
        }
        return {
            "policy": self.policy,
            "scorer": self.scorer,
            "delta": self.delta,
            "detection_delta": self.detection_delta,
            "sets": rows,
        }


def _row_json(overall: QualityRow, by_task: Mapping[str, QualityRow]) -> dict[str, Any]:
    return {**asdict(overall), "by_task": {task: asdict(row) for task, row in by_task.items()}}


def _cascade_json(found: CascadeQuality) -> dict[str, Any]:
    about = ("error_rate", "seed", "claims_asked", "answers_asked")
    return {**{name: getattr(found, name) for name in about}, **_row_json(found.overall, found.by_task)}


def _published_json(other: Published) -> dict[str, Any]:
    return {
        **{name: getattr(other, name) for name in ("system", "task", "source", "note")},
        "figures": dict(other.figures),
        "f1_by_task": dict(other.f1_by_task),
    }


def measure(
    path: Path,
    *,
    verifier: Verifier,
    limit: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    simulation: Simulation | None = None,
) -> SetQuality:
    """Measure a verifier on a file of labelled answers.

    The file is read twice, the first time to count and to find errors before the work begins; of an answer only its
    score, decision and label stay in memory.

    Args:
        path: See :func:`guardrail.evaluation.labelled.read_answers`.
        verifier: The verifier, with its policy.
        limit: Use only the first answers.
        progress: Called with (answers done, answers in all).
        simulation: A cascade to measure beside the verifier.

    Returns:
        The figures.

    Raises:
        InputError: If the file cannot be used or holds no answers.
        RuntimeError: Inside a running event loop.
    """
    total = sum(1 for _ in islice(read_answers(path), limit))
    if not total:
        raise InputError(f"{path} holds no labelled answers")
    return asyncio.run(_measure(islice(read_answers(path), limit), verifier, simulation, total, progress))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scored:
    score: float
    stopped: bool
    flagged: bool
    hallucinated: bool
    claims: int
    asked: int
    took_s: float


@dataclass(slots=True, kw_only=True)
class _Tally:
    scores: list[float] = field(default_factory=list)
    stopped: list[bool] = field(default_factory=list)
    flagged: list[bool] = field(default_factory=list)
    hallucinated: list[bool] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    claims: int = 0
    asked: int = 0
    answers_asked: int = 0
    took_s: float = 0.0

    def add(self, result: _Scored | str) -> None:
        if isinstance(result, str):
            self.skipped[result] += 1
            return
        self.scores.append(result.score)
        self.stopped.append(result.stopped)
        self.flagged.append(result.flagged)
        self.hallucinated.append(result.hallucinated)
        self.claims += result.claims
        self.asked += result.asked
        self.answers_asked += result.asked > 0
        self.took_s += result.took_s

    def row(self, *, timed: bool = True) -> QualityRow:
        released = Confusion.of(self.stopped, self.hallucinated)
        found = Confusion.of(self.flagged, self.hallucinated)
        return QualityRow(
            n=len(self.scores),
            auroc=auroc(self.scores, self.hallucinated),
            f1=found.f1,
            precision=found.precision,
            recall=found.recall,
            balanced_accuracy=found.balanced_accuracy,
            grounded_released=released.specificity,
            false_refusals=None if released.specificity is None else 1 - released.specificity,
            hallucinated_stopped=released.recall,
            best=best_threshold(self.scores, self.hallucinated),
            without_claim=self.scores.count(NO_CLAIM),
            ms_per_claim=1000 * self.took_s / self.claims if self.claims and timed else None,
            skipped=dict(sorted(self.skipped.items())),
            ci95=bootstrap(self.scores, self.flagged, self.hallucinated),
        )


class _Tallies:
    """Over all answers, and per task."""

    def __init__(self) -> None:
        self.overall = _Tally()
        self._by_task: dict[str, _Tally] = {}

    def add(self, row: LabelledAnswer, result: _Scored | str) -> None:
        self.overall.add(result)
        task = row.detail.get("task_type")
        if task is not None:
            self._by_task.setdefault(str(task), _Tally()).add(result)

    def by_task(self, *, timed: bool = True) -> dict[str, QualityRow]:
        return {task: self._by_task[task].row(timed=timed) for task in sorted(self._by_task)}

    def cascade(self, simulation: Simulation) -> CascadeQuality:
        whole = self.overall
        return CascadeQuality(
            error_rate=simulation.judge.error_rate,
            seed=simulation.judge.seed,
            claims_asked=whole.asked / whole.claims if whole.claims else None,
            answers_asked=whole.answers_asked / len(whole.scores) if whole.scores else None,
            overall=whole.row(timed=False),
            by_task=self.by_task(timed=False),
        )


async def _measure(
    rows: Iterable[LabelledAnswer],
    verifier: Verifier,
    simulation: Simulation | None,
    total: int,
    progress: Callable[[int, int], None] | None,
) -> SetQuality:
    alone, judged = _Tallies(), _Tallies()
    for done, row in enumerate(rows, start=1):
        found = await _verify(row, verifier)
        alone.add(row, found if isinstance(found, str) else _scored(row, *found, verifier))
        if simulation is not None:
            if not isinstance(found, str):
                await simulation.judge.learn(row, found[0], simulation.verifier.policy)
                found = await _verify(row, simulation.verifier)
            judged.add(row, found if isinstance(found, str) else _scored(row, *found, simulation.verifier))
        if progress is not None:
            progress(done, total)
        await asyncio.sleep(0)  # an interrupt arrives only where a task pauses, and scoring need not
    return SetQuality(
        overall=alone.overall.row(),
        by_task=alone.by_task(),
        cascade=None if simulation is None else judged.cascade(simulation),
    )


async def _verify(row: LabelledAnswer, verifier: Verifier) -> tuple[Verification, float] | str:
    """What the verifier says and how many seconds that took, or why there is nothing to measure."""
    began = time.perf_counter()
    try:
        found = await verifier.verify(row.answer, row.context, question=row.question or None)
    except ScoringError:
        return "scoring_error"
    took_s = time.perf_counter() - began
    if found.reason in _UNSCORED:
        return found.reason
    return (found, took_s) if found.claims else "empty_answer"


def _scored(row: LabelledAnswer, found: Verification, took_s: float, verifier: Verifier) -> _Scored:
    claims = ranked_claims(found)
    score, threshold = answer_score(claims), verifier.detection_delta
    return _Scored(
        score=score,
        stopped=not found.accepted,
        flagged=not found.accepted if threshold is None else score > threshold,
        hallucinated=not row.grounded,
        claims=len(claims),
        asked=sum(bool(claim.judged) for claim in found.claims),
        took_s=took_s,
    )
