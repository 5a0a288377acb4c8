"""The reference formula (S1) as a verification of one whole answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from guardrail.policy import Policy
from guardrail.protocols import Pair
from guardrail.scoring.claims import needs_check
from guardrail.scoring.delta_r import ROUNDING, delta_r
from guardrail.scoring.faithfulness import faithfulness
from guardrail.scoring.rouge import reference_tokens, rouge_l_f1, rouge_n_f1
from guardrail.types import ClaimVerdict, ContextState, Segment, SegmentKind, Verification

INLINE_CHARS = 20_000


async def score_whole(
    answer: str,
    segments: Sequence[Segment],
    context: str,
    state: ContextState,
    *,
    policy: Policy,
    ask: Callable[[Pair], Awaitable[float]] | None,
    scorer: str,
    language: Callable[[str], str | None],
) -> Verification:
    """Score a whole answer against the whole context.

    Args:
        answer: The answer.
        segments: Its segments.
        context: All passages, joined.
        state: Whether there is something to check against.
        policy: δ and the strict choices.
        ask: The entailment model; ``None`` if there is none, so that ROUGE-L stands in for it (S1).
        scorer: What appears as the scorer.
        language: Says which untrained language answer and context are in, given the context.

    Raises:
        ScoringError: If the entailment model fails.
    """
    small = len(answer) + len(context) <= INLINE_CHARS
    left, right, (rouge_l, rouge_1, rouge_2) = (
        _rouge(answer, context) if small else await asyncio.to_thread(_rouge, answer, context)
    )
    entailment = rouge_l
    if ask is not None and left and right:
        entailment = await ask(Pair(context, answer))
    score = delta_r(rouge_l, entailment)
    strange = language(context)
    visible = [s for s in segments if s.kind is not SegmentKind.BLANK]
    if not visible:
        reason, accepted = "empty_answer", False
    elif state is not ContextState.GIVEN:
        reason, accepted = "no_context", False
    elif strange is not None and policy.on_unknown_language == "fail":
        reason, accepted = "unsupported_language", False
    else:
        accepted, reason = _accepts(policy, score, entailment, visible)
    return Verification(
        accepted=accepted,
        reason=reason,
        formula="reference",
        policy=policy.name,
        delta=policy.delta,
        scorer=scorer,
        delta_r=round(score, 4),
        worst_delta_r=round(score, 4),
        rouge_l=round(rouge_l, 4),
        rouge_1=round(rouge_1, 4),
        rouge_2=round(rouge_2, 4),
        entailment=round(entailment, 4),
        faithfulness=faithfulness([entailment], policy.strict_threshold) if visible else 0.0,
        claims=tuple(replace(ClaimVerdict.unscored(s, "reference_formula", scorer), language=strange) for s in visible),
        context_state=state,
    )


def _accepts(policy: Policy, score: float, entailment: float, visible: Sequence[Segment]) -> tuple[bool, str]:
    if policy.no_claims == "refuse" and not any(needs_check(segment) for segment in visible):
        return False, "no_claims"
    if policy.strict_threshold is not None and entailment < policy.strict_threshold:
        return False, "claims_failed"
    return (True, "passed") if score <= policy.delta + ROUNDING else (False, "delta_r_above_delta")


def _rouge(answer: str, context: str) -> tuple[bool, bool, tuple[float, float, float]]:
    """Whether answer and context have tokens at all, and ROUGE-L, -1 and -2 of one against the other."""
    left, right = reference_tokens(answer), reference_tokens(context)
    scores = rouge_l_f1(left, right), rouge_n_f1(left, right, 1), rouge_n_f1(left, right, 2)
    return bool(left), bool(right), scores
