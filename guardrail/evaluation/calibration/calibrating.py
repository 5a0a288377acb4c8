"""Labelled answers in, a profile out."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import hashlib
import json
import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from guardrail._version import __version__
from guardrail.errors import CalibrationError, ConfigurationError, InputError, PolicyError
from guardrail.evaluation.calibration.acceptance import (
    Acceptance,
    AnswerSignals,
    score_with_citations,
    signals_of,
)
from guardrail.evaluation.calibration.assumptions import assumptions
from guardrail.evaluation.calibration.conformal import binomial_interval
from guardrail.evaluation.calibration.drift import distribution
from guardrail.evaluation.calibration.fitting import Fitted, Wanted, fit, released, too_few
from guardrail.evaluation.calibration.profile import Cost, CurvePoint, Data, Profile, Promise, Scores, model_identity
from guardrail.evaluation.labelled import LabelledAnswer, read_answers
from guardrail.policy import Policy, as_policy
from guardrail.scoring.verifier import Verifier

_CURVE_POINTS = 100
_NOT_KEPT = frozenset({"name", "formula", "delta", "lexical_weight"})

Progress = Callable[[int, int], None]


def calibrate(
    answers: str | Path | Iterable[LabelledAnswer],
    *,
    target_miss: float,
    confidence: float | None = None,
    policy: Policy | str = "balanced",
    entailment: Any = None,
    max_refusal: float | None = None,
    group: str | None = None,
    seed: int = 0,
    name: str = "calibrated",
    created: datetime.date | None = None,
    progress: Progress | None = None,
) -> Profile:
    """Set δ and the lexical weight so that a hallucinated answer is accepted with at most a given probability.

    The promise holds for finitely many answers and without assuming how scores are distributed; what it does assume is
    written in :attr:`Profile.assumptions`, and why it holds in :mod:`~guardrail.evaluation.calibration.conformal`.

    Args:
        answers: A file of labelled answers, see :func:`~guardrail.evaluation.labelled.read_answers`, or such answers.
        target_miss: α, the probability in (0, 1) with which a hallucinated answer may be accepted at most.
        confidence: ``None`` promises that on average over calibrations. A number in (0.5, 1) promises with this
            confidence that the miss rate of this calibration is at most ``target_miss``, which costs a smaller δ.
        policy: The policy to calibrate, with everything but δ: what counts as a claim, what happens without claims, and
            so on. If it has a lexical weight, that stays. Only the evidence formula can be calibrated.
        entailment: As in ``Guardrail(entailment=…)``; ``None`` is the embedded model.
        max_refusal: Largest share of grounded answers in [0, 1] that may be refused; ``None`` for any.
        group: Field of ``detail`` that answers share if they answer the same prompt. They resemble each other, so one
            per group is drawn, before its label is looked at; n counts groups. An answer without the field is an error.
        seed: Of that draw and of the split that keeps choosing the weight apart from setting δ.
        name: Name of the profile and of its policy.
        created: Date of the profile; ``None`` for today in UTC.
        progress: Called with (answers scored, answers in all).

    Returns:
        The profile.

    Raises:
        CalibrationError: If no δ keeps the promise: too few hallucinated answers, too many that are accepted at any δ,
            or a higher refusal than ``max_refusal``. The message says what would help.
        ConfigurationError: If an argument is out of range.
        InputError: If the answers cannot be used.
        ScoringError: If the model fails on an answer, or a judge gives no verdict about a claim of it. Nothing is
            promised from the rest.
        RuntimeError: Inside a running event loop; use ``await acalibrate(...)`` there.

    Example:
        >>> right = LabelledAnswer(id="1", question="", context=("The desk opens at ten.",),
        ...                        answer="The desk opens at ten.", grounded=True)
        >>> wrong = dataclasses.replace(right, answer="Elephants enjoy warm puddles.", grounded=False)
        >>> profile = calibrate([right] * 9 + [wrong] * 9, target_miss=0.1, entailment=lambda pairs: [
        ...     float(hypothesis in premise) for premise, hypothesis in pairs])
        >>> profile.delta, profile.promise.hallucinated, profile.promise.bound, profile.cost.share
        (0.999, 9, 0.1, 1.0)
        >>> calibrate([right, wrong], target_miss=0.1)
        Traceback (most recent call last):
        ...
        guardrail.errors.CalibrationError: a miss of at most 0.1 can be promised from 9 hallucinated answers on, and \
there are 1: label more answers, or choose a larger target_miss
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        raise RuntimeError("this is the synchronous call and an event loop is running: use `await acalibrate(...)`")
    return asyncio.run(
        acalibrate(
            answers,
            target_miss=target_miss,
            confidence=confidence,
            policy=policy,
            entailment=entailment,
            max_refusal=max_refusal,
            group=group,
            seed=seed,
            name=name,
            created=created,
            progress=progress,
        )
    )


async def acalibrate(
    answers: str | Path | Iterable[LabelledAnswer],
    *,
    target_miss: float,
    confidence: float | None = None,
    policy: Policy | str = "balanced",
    entailment: Any = None,
    max_refusal: float | None = None,
    group: str | None = None,
    seed: int = 0,
    name: str = "calibrated",
    created: datetime.date | None = None,
    progress: Progress | None = None,
) -> Profile:
    """:func:`calibrate` for asynchronous code; arguments, result and errors are the same.

    Cancellation drops scoring that has not begun; there is no profile then. Arithmetic that has begun after the scoring
    ends in its thread, unheard.
    """
    wanted = Wanted(target_miss=target_miss, confidence=confidence, max_refusal=max_refusal)
    least = wanted.needed  # checks both numbers
    rules = _check(as_policy(policy), max_refusal, name)
    labelled = await asyncio.to_thread(_labelled, answers)
    drawn = labelled.rows if group is None else _one_per_group(labelled.rows, group, seed)
    bad = sum(not row.grounded for row in drawn)
    if bad < least:  # before anything is scored
        raise too_few(bad, wanted)
    scorer, fingerprint = await asyncio.to_thread(model_identity, entailment)
    verifier = Verifier(policy=rules, entailment=entailment)
    model = verifier.entailment if entailment is None else entailment
    found: list[AnswerSignals] = []
    for row in drawn:
        found.append(await signals_of(row, verifier, model=model))
        if progress is not None:
            progress(len(found), len(drawn))
        await asyncio.sleep(0)  # an interrupt arrives only where a task pauses, and scoring need not
    weight = verifier.lexical_weight
    fitted = await asyncio.to_thread(fit, found, wanted, policy=rules, own_weight=weight, seed=seed)
    repeated = len(drawn) - len({(row.question, tuple(row.context), row.answer) for row in drawn})
    live = rules.override(name=name, delta=fitted.delta, lexical_weight=fitted.lexical_weight)
    live_verifier = Verifier(policy=live, entailment=entailment)
    scores = [await score_with_citations(row, own, live_verifier) for row, own in zip(drawn, found, strict=True)]
    return Profile(
        name=name,
        created=f"{created or datetime.datetime.now(datetime.UTC):%Y-%m-%d}",
        library=__version__,
        scorer=scorer,
        fingerprint=fingerprint,
        delta=fitted.delta,
        lexical_weight=fitted.lexical_weight,
        weight_source=fitted.weight_source,
        fields=_own_fields(rules),
        promise=_promise(fitted, wanted),
        cost=_cost(fitted),
        data=Data(
            file=labelled.file,
            sha256=labelled.sha256,
            answers=len(labelled.rows),
            hallucinated=sum(not row.grounded for row in labelled.rows),
            group=group,
            groups=None if group is None else len(drawn),
            fitting=fitted.fitting,
            repeated=repeated,
            seed=seed,
        ),
        curve=_curve(fitted),
        scores=_scores(scores, found, live),
        assumptions=assumptions(
            live,
            wanted,
            n=len(fitted.hallucinated),
            group=group,
            fingerprint=fingerprint,
            repeated=repeated,
            judged=any(window.judged for own in found for claim in own.claims for window in claim.windows),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Labelled:
    rows: Sequence[LabelledAnswer]
    file: str | None
    sha256: str


def _check(policy: Policy, max_refusal: float | None, name: str) -> Policy:
    if policy.formula != "evidence":
        raise PolicyError("formula", "only the evidence formula can be calibrated: it decides by the worst claim")
    if not isinstance(name, str) or not name.strip():
        raise ConfigurationError(f"name must be a text that is not empty, not {name!r}")
    if max_refusal is not None:
        is_number = isinstance(max_refusal, (int, float)) and not isinstance(max_refusal, bool)
        if not is_number or not 0 <= max_refusal <= 1:
            raise ConfigurationError(f"max_refusal must be a number from 0 to 1, not {max_refusal!r}")
    return policy


def _labelled(answers: str | Path | Iterable[LabelledAnswer]) -> _Labelled:
    if isinstance(answers, (str, Path)):
        path = Path(answers)
        rows = list(read_answers(path))
        with path.open("rb") as file:
            return _Labelled(rows=rows, file=path.name, sha256=hashlib.file_digest(file, "sha256").hexdigest())
    rows = list(answers)
    digest = hashlib.sha256()
    for row in rows:
        if not isinstance(row, LabelledAnswer):
            raise InputError(f"answers must be LabelledAnswer values or a file, not {type(row).__name__}")
        if not isinstance(row.grounded, bool):
            raise InputError(f"answer {row.id}: grounded must be True or False, not {row.grounded!r}")
        context: object = row.context
        if isinstance(context, str):
            raise InputError(f"answer {row.id}: context must be a tuple of texts, not one text")
        digest.update(json.dumps([row.question, row.context, row.answer, row.grounded]).encode())
    return _Labelled(rows=rows, file=None, sha256=digest.hexdigest())


def _one_per_group(rows: Sequence[LabelledAnswer], group: str, seed: int) -> list[LabelledAnswer]:
    """One answer of each group, whatever its label: a random answer to a random prompt."""
    groups: dict[str, list[LabelledAnswer]] = {}
    for number, row in enumerate(rows, start=1):
        if row.detail.get(group) is None:
            raise InputError(f"answer {number} (id {row.id}) has no detail.{group} to group it by")
        groups.setdefault(str(row.detail[group]), []).append(row)
    draw = random.Random(seed)
    return [draw.choice(own) for own in groups.values()]


def _own_fields(policy: Policy) -> dict[str, Any]:
    usual = Policy()
    names = [field.name for field in dataclasses.fields(Policy) if field.name not in _NOT_KEPT]
    changed = {name: getattr(policy, name) for name in names if getattr(policy, name) != getattr(usual, name)}
    return {name: str(value) if isinstance(value, str) else value for name, value in changed.items()}


def _promise(fitted: Fitted, wanted: Wanted) -> Promise:
    n = len(fitted.hallucinated)
    return Promise(
        target_miss=float(wanted.target_miss),
        confidence=None if wanted.confidence is None else float(wanted.confidence),
        hallucinated=n,
        rank=fitted.k,
        bound=fitted.k / (n + 1),
        accepted=released(fitted.hallucinated, fitted.delta),
    )


def _cost(fitted: Fitted) -> Cost:
    n, passed = len(fitted.grounded), released(fitted.grounded, fitted.delta)
    return Cost(grounded=n, released=passed, share=passed / n if n else None, interval=binomial_interval(passed, n))


def _curve(fitted: Fitted) -> tuple[CurvePoint, ...]:
    def share(accepted: Sequence[Acceptance], delta: float) -> float | None:
        return released(accepted, delta) / len(accepted) if accepted else None

    turns = {a.critical_delta for a in (*fitted.hallucinated, *fitted.grounded)}
    values = sorted(turn for turn in turns if 0.0 < turn < 1.0)
    step = max(1, math.ceil(len(values) / (_CURVE_POINTS - 3)))
    grid = sorted({0.0, *values[::step], fitted.delta, 1.0})
    return tuple(
        CurvePoint(delta=at, missed=share(fitted.hallucinated, at) or 0.0, released=share(fitted.grounded, at))
        for at in grid
    )


def _scores(scores: Sequence[float | None], answers: Sequence[AnswerSignals], policy: Policy) -> Scores:
    known = [score for score in scores if score is not None]
    if not known:
        raise CalibrationError("none of the labelled answers can be checked: give them the contexts that they rest on")
    weight = policy.lexical_weight or 0.0
    unsure = min(answer.uncertain_score(policy, weight) for answer in answers)
    return distribution(known, clip=policy.delta if unsure > policy.delta else math.nextafter(unsure, -math.inf))
