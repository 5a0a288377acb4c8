"""How well the verifier tells hallucinated answers from grounded ones, on answers that people have labelled.

Every answer goes through the :class:`~guardrail.scoring.verifier.Verifier` that serves requests, with thresholds that
were fixed before; labels are used only afterwards, to count. The positive class is *hallucinated* (label 0).

Two thresholds are measured. A policy decides for readers and must not stop many grounded answers: its decisions are
``grounded_released`` and ``hallucinated_stopped``. Published figures of detectors are taken where F1 is best instead:
an answer is *flagged* if it ranks above the scorer's ``detection_delta``, which is fitted like δ on other data. A
scorer without one flags what the policy stops.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from guardrail.errors import InputError, ScoringError
from guardrail.evaluation.datasets import LabelledAnswer, read_answers
from guardrail.evaluation.figures import Confusion, Interval, auroc, bootstrap
from guardrail.scoring.verifier import Verifier
from guardrail.types import ClaimVerdict, VerdictLabel, Verification

NO_CLAIM = -1.0
_VETOED = 2.0  # added to ΔR, which is at most 1: whatever is stopped at any δ stands above whatever is not
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
        hallucinated_stopped: Share of the hallucinated answers that it does not.
        without_claim: How many of the answers have nothing that is checked; they rank lowest.
        ms_per_claim: Wall time per claim in milliseconds, with segmenting the answer and indexing its context.
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
    hallucinated_stopped: float | None
    without_claim: int
    ms_per_claim: float | None
    skipped: dict[str, int]
    ci95: dict[str, Interval | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetQuality:
    """Figures of one labelled file.

    Attributes:
        overall: Over all its answers.
        by_task: Per ``detail.task_type``; empty if the file does not have it.
    """

    overall: QualityRow
    by_task: dict[str, QualityRow]


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
        """The report as plain values, with ``sets`` as ``{name: {..., "by_task": {task: {...}}}}``."""
        rows = {
            name: {**asdict(found.overall), "by_task": {task: asdict(row) for task, row in found.by_task.items()}}
            for name, found in self.sets.items()
        }
        return {
            "policy": self.policy,
            "scorer": self.scorer,
            "delta": self.delta,
            "detection_delta": self.detection_delta,
            "sets": rows,
        }


def answer_score(claims: Iterable[tuple[bool, float]]) -> float:
    """Where an answer stands in the order in which answers are stopped: at its worst claim.

    Args:
        claims: Of every claim that was scored, whether it is stopped at any δ, and its ΔR.

    Returns:
        The largest ΔR; of claims that are stopped at any δ plus 2, so that they rank above all others;
        :data:`NO_CLAIM`, which is below all others, for an answer without a claim.

    Example:
        >>> answer_score([(False, 0.1), (False, 0.8)])
        0.8
        >>> answer_score([(True, 0.5), (False, 1.0)])
        2.5
        >>> answer_score([])
        -1.0
    """
    worst = (delta_r + _VETOED * vetoed for vetoed, delta_r in claims)
    return max(worst, default=NO_CLAIM)


def measure(
    path: Path,
    *,
    verifier: Verifier,
    limit: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> SetQuality:
    """Measure a verifier on a file of labelled answers.

    The file is read twice, the first time to count and to find errors before the work begins; of an answer only its
    score, decision and label stay in memory.

    Args:
        path: See :func:`guardrail.evaluation.datasets.read_answers`.
        verifier: The verifier, with its policy.
        limit: Use only the first answers.
        progress: Called with (answers done, answers in all).

    Returns:
        The figures.

    Raises:
        InputError: If the file cannot be used or holds no answers.
        RuntimeError: Inside a running event loop.
    """
    total = sum(1 for _ in islice(read_answers(path), limit))
    if not total:
        raise InputError(f"{path} holds no labelled answers")
    return asyncio.run(_measure(islice(read_answers(path), limit), verifier, total, progress))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scored:
    score: float
    stopped: bool
    flagged: bool
    hallucinated: bool
    claims: int
    took_s: float


@dataclass(slots=True, kw_only=True)
class _Tally:
    scores: list[float] = field(default_factory=list)
    stopped: list[bool] = field(default_factory=list)
    flagged: list[bool] = field(default_factory=list)
    hallucinated: list[bool] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    claims: int = 0
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
        self.took_s += result.took_s

    def row(self) -> QualityRow:
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
            hallucinated_stopped=released.recall,
            without_claim=self.scores.count(NO_CLAIM),
            ms_per_claim=1000 * self.took_s / self.claims if self.claims else None,
            skipped=dict(sorted(self.skipped.items())),
            ci95=bootstrap(self.scores, self.flagged, self.hallucinated),
        )


async def _measure(
    rows: Iterable[LabelledAnswer], verifier: Verifier, total: int, progress: Callable[[int, int], None] | None
) -> SetQuality:
    overall = _Tally()
    by_task: dict[str, _Tally] = {}
    for done, row in enumerate(rows, start=1):
        result = await _score(row, verifier)
        overall.add(result)
        task = row.detail.get("task_type")
        if task is not None:
            by_task.setdefault(str(task), _Tally()).add(result)
        if progress is not None:
            progress(done, total)
        await asyncio.sleep(0)  # an interrupt arrives only where a task pauses, and scoring need not
    return SetQuality(overall=overall.row(), by_task={task: by_task[task].row() for task in sorted(by_task)})


async def _score(row: LabelledAnswer, verifier: Verifier) -> _Scored | str:
    """The result for one answer, or why there is none."""
    began = time.perf_counter()
    try:
        found = await verifier.verify(row.answer, row.context, question=row.question or None)
    except ScoringError:
        return "scoring_error"
    took_s = time.perf_counter() - began
    if found.reason in _UNSCORED:
        return found.reason
    if not found.claims:
        return "empty_answer"
    claims = _claims(found)
    score, threshold = answer_score(claims), verifier.detection_delta
    return _Scored(
        score=score,
        stopped=not found.accepted,
        flagged=not found.accepted if threshold is None else score > threshold,
        hallucinated=not row.grounded,
        claims=len(claims),
        took_s=took_s,
    )


def vetoed(claim: ClaimVerdict, delta: float) -> bool:
    """Whether a claim is stopped whatever δ is: contradicted by comparison, or though its ΔR is within δ."""
    contradicted = claim.verdict is VerdictLabel.CONTRADICTED
    within = claim.delta_r is not None and claim.delta_r <= delta
    return contradicted and (within or any(clash.contradicts for clash in claim.clashes))


def _claims(found: Verification) -> list[tuple[bool, float]]:
    """Whether it is stopped at any δ, and ΔR, per claim; the reference formula takes the whole answer for one claim."""
    if found.formula == "reference":
        return [] if found.worst_delta_r is None else [(False, found.worst_delta_r)]
    return [(vetoed(claim, found.delta), claim.delta_r) for claim in found.claims if claim.delta_r is not None]
