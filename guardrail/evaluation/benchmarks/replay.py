"""Replays recorded answers of several models through a guard: what would readers have got?

The answers of weaker models play the part of a generator that is asked again: the first attempt returns the weakest
model's answer, the next attempts those of stronger ones. Labels are used only afterwards, to count.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from guardrail.errors import InputError
from guardrail.evaluation.labelled import LabelledAnswer, read_answers
from guardrail.guard import Guardrail
from guardrail.policy import Policy
from guardrail.types import Outcome

WEAKEST_FIRST = ("mistral-7B-instruct", "llama-2-7b-chat", "llama-2-13b-chat")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRow:
    """Figures over a set of prompts. Shares are in [0, 1]; ``None`` where there is nothing to divide by.

    Attributes:
        prompts: Number of prompts.
        hallucinated_without: Share of prompts whose first answer is hallucinated: what readers get without a guard.
        hallucinated_delivered: Share of the delivered answers that are hallucinated.
        refused: Share of prompts that end in a refusal.
        refused_hallucinated: The same among prompts whose first answer is hallucinated.
        refused_grounded: The same among prompts whose first answer is grounded.
        attempts_mean: Generator calls per prompt.
        claims: Number of claims that were scored.
        ms_per_claim: Scoring time per claim in milliseconds.
    """

    prompts: int
    hallucinated_without: float | None
    hallucinated_delivered: float | None
    refused: float | None
    refused_hallucinated: float | None
    refused_grounded: float | None
    attempts_mean: float | None
    claims: int
    ms_per_claim: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayReport:
    """The result of a replay.

    Attributes:
        overall: Over all prompts.
        by_task: Per ``detail.task_type``.
        policy: Name of the policy.
        scorer: ``model_id`` of the entailment model.
    """

    overall: ReplayRow
    by_task: dict[str, ReplayRow]
    policy: str
    scorer: str

    def to_json(self) -> dict[str, Any]:
        """The report as plain values."""
        return {
            "policy": self.policy,
            "scorer": self.scorer,
            "overall": asdict(self.overall),
            "by_task": {task: asdict(row) for task, row in self.by_task.items()},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Played:
    task: str
    answers: Sequence[LabelledAnswer]
    outcome: Outcome

    @property
    def delivered(self) -> LabelledAnswer | None:
        number = self.outcome.delivered_attempt
        return None if number is None else self.answers[min(number, len(self.answers)) - 1]


def replay(
    path: Path,
    *,
    policy: Policy | str = "balanced",
    limit: int | None = None,
    entailment: Any = None,
    progress: Callable[[int, int], None] | None = None,
) -> ReplayReport:
    """Replay a file of labelled answers.

    Args:
        path: See :func:`guardrail.evaluation.labelled.read_answers`; ``detail`` needs ``source_id`` and ``model``.
        policy: The policy.
        limit: Use only the first prompts.
        entailment: As for :class:`~guardrail.guard.Guardrail`.
        progress: Called with (prompts done, prompts in all).

    Returns:
        The report.

    Raises:
        InputError: If the file has no prompt with an answer of the weakest model.
    """
    prompts = _prompts(read_answers(path))[:limit]
    if not prompts:
        raise InputError(f"{path} holds no answers of {WEAKEST_FIRST[0]} with detail.source_id and detail.model")
    guard = Guardrail(policy=policy, entailment=entailment, observers=())
    played = asyncio.run(_play_all(guard, prompts, progress))
    tasks = sorted({p.task for p in played})
    return ReplayReport(
        overall=_row(played),
        by_task={task: _row([p for p in played if p.task == task]) for task in tasks},
        policy=guard.policy.name,
        scorer=guard.verifier.scorer,
    )


def _prompts(answers: Iterable[LabelledAnswer]) -> list[list[LabelledAnswer]]:
    by_source: dict[str, dict[str, LabelledAnswer]] = defaultdict(dict)
    for answer in answers:
        model = answer.detail.get("model")
        if model in WEAKEST_FIRST and "source_id" in answer.detail:
            by_source[str(answer.detail["source_id"])].setdefault(model, answer)
    ordered = ([models[name] for name in WEAKEST_FIRST if name in models] for models in by_source.values())
    return [prompt for prompt in ordered if prompt[0].detail["model"] == WEAKEST_FIRST[0]]


async def _play_all(
    guard: Guardrail, prompts: Sequence[Sequence[LabelledAnswer]], progress: Callable[[int, int], None] | None
) -> list[_Played]:
    played = []
    for number, answers in enumerate(prompts, start=1):
        played.append(await _play(guard, answers))
        if progress is not None:
            progress(number, len(prompts))
    return played


async def _play(guard: Guardrail, answers: Sequence[LabelledAnswer]) -> _Played:
    async def recorded(attempt: int) -> str:
        return answers[min(attempt, len(answers)) - 1].answer

    outcome = await guard.run(recorded, question=answers[0].question.strip() or "Answer.", context=answers[0].context)
    return _Played(task=str(answers[0].detail.get("task_type", "all")), answers=answers, outcome=outcome)


def _row(played: Sequence[_Played]) -> ReplayRow:
    refused = [p for p in played if p.delivered is None]
    delivered = [p.delivered for p in played if p.delivered is not None]
    bad_first = [p for p in played if not p.answers[0].grounded]
    good_first = [p for p in played if p.answers[0].grounded]
    claims = sum(v.checked for p in played for a in p.outcome.attempts for v in a.verdicts)
    scoring_ms = sum(p.outcome.timings.scoring_ms for p in played)
    return ReplayRow(
        prompts=len(played),
        hallucinated_without=_share(len(bad_first), len(played)),
        hallucinated_delivered=_share(sum(not a.grounded for a in delivered), len(delivered)),
        refused=_share(len(refused), len(played)),
        refused_hallucinated=_share(sum(not p.answers[0].grounded for p in refused), len(bad_first)),
        refused_grounded=_share(sum(p.answers[0].grounded for p in refused), len(good_first)),
        attempts_mean=_share(sum(len(p.outcome.attempts) for p in played), len(played)),
        claims=claims,
        ms_per_claim=_share(scoring_ms, claims),
    )


def _share(part: float, whole: int) -> float | None:
    return part / whole if whole else None
