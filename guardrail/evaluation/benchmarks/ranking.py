"""Where an answer stands among others: what δ is moved over, and what AUROC is measured on."""

from __future__ import annotations

from collections.abc import Iterable

from guardrail.types import ClaimVerdict, VerdictLabel, Verification

NO_CLAIM = -1.0
_VETOED = 2.0  # added to ΔR, which is at most 1: whatever is stopped at any δ stands above whatever is not


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


def vetoed(claim: ClaimVerdict, delta: float) -> bool:
    """Whether a claim is stopped whatever δ is: contradicted by comparison, or though its ΔR is within δ."""
    contradicted = claim.verdict is VerdictLabel.CONTRADICTED
    within = claim.delta_r is not None and claim.delta_r <= delta
    return contradicted and (within or any(clash.contradicts for clash in claim.clashes))


def ranked_claims(found: Verification) -> list[tuple[bool, float]]:
    """What :func:`answer_score` takes, of one answer; the reference formula takes the whole answer for one claim.

    Args:
        found: What a verifier says about the answer.

    Returns:
        Whether it is stopped at any δ, and ΔR, per claim.
    """
    if found.formula == "reference":
        return [] if found.worst_delta_r is None else [(False, found.worst_delta_r)]
    return [(vetoed(claim, found.delta), claim.delta_r) for claim in found.claims if claim.delta_r is not None]
