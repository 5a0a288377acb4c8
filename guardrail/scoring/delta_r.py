"""ΔR of the evidence formula, and the verdict that follows from the signals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from guardrail.errors import ScoringError
from guardrail.types import Clash, VerdictLabel

CONTRADICTED_CAP = 0.05
MISSING_VALUE_CAP = 0.2
CONTRADICTION_THRESHOLD = 0.5
FIRM_SUPPORT = 0.9
ROUNDING = 1e-12  # 1 − 0.85 is more than 0.15 in binary
SAME_SUBJECT = 0.6  # a passage that shares much less with the claim than the best one speaks of something else


def delta_r(rouge_l: float, entailment: float, *, lexical_weight: float = 1.0) -> float:
    """ΔR = 1 − L^w × N (S1, with the lexical weight of the evidence formula).

    Args:
        rouge_l: L in [0, 1].
        entailment: N in [0, 1].
        lexical_weight: w ≥ 0; at 0 word overlap does not count.

    Returns:
        The hallucination score in [0, 1]; lower is better.

    Raises:
        ScoringError: If a signal is not a number in [0, 1].

    Example:
        >>> delta_r(0.9, 0.8)
        0.28
        >>> delta_r(0.1, 0.8, lexical_weight=0.0)
        0.2
    """
    for name, value in (("ROUGE-L", rouge_l), ("entailment", entailment)):
        if not (math.isfinite(value) and 0.0 <= value <= 1.0):
            raise ScoringError(f"{name} is {value!r}, which is not in [0, 1]")
    similarity = float(rouge_l**lexical_weight) * entailment
    return min(1.0, max(0.0, round(1.0 - similarity, 12)))


def capped(entailment: float, clashes: Sequence[Clash]) -> float:
    """N after the comparison of values, negations and roles: a clash is a veto that no model score outweighs."""
    for clash in clashes:
        entailment = min(entailment, CONTRADICTED_CAP if clash.contradicts else MISSING_VALUE_CAP)
    return entailment


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowSignals:
    """The signals of a claim against one window of evidence.

    Attributes:
        passage_ids: Where the window comes from.
        twins: Other passages that say the same, word for word.
        rouge_l: LCS precision of the claim against the window.
        entailment: N before any cap.
        contradiction: The model's contradiction, if it gives one.
        clashes: What comparison found.
    """

    passage_ids: tuple[str, ...]
    twins: tuple[str, ...] = ()
    rouge_l: float
    entailment: float
    contradiction: float | None
    clashes: tuple[Clash, ...]

    @property
    def capped_entailment(self) -> float:
        """N after the caps."""
        return capped(self.entailment, self.clashes)

    @property
    def contradicts(self) -> bool:
        """Whether this window says otherwise."""
        if any(clash.contradicts for clash in self.clashes):
            return True
        return self.contradiction is not None and self.contradiction > max(CONTRADICTION_THRESHOLD, self.entailment)

    def delta_r(self, lexical_weight: float) -> float:
        """ΔR against this window."""
        return delta_r(self.rouge_l, self.capped_entailment, lexical_weight=lexical_weight)


def judge(
    windows: Sequence[WindowSignals], *, delta: float, lexical_weight: float
) -> tuple[VerdictLabel, WindowSignals]:
    """Decide what the evidence says about a claim.

    Contradiction is tested before support: a claim that some window contradicts is ``contradicted``, unless another
    window supports it firmly and without any objection; then the passages disagree (``conflict``).

    Args:
        windows: At least one window, the joined best evidence first.
        delta: δ.
        lexical_weight: Exponent on ROUGE-L.

    Returns:
        The verdict and the window it rests on.
    """
    best = min(windows, key=lambda w: w.delta_r(lexical_weight))
    overlap = max(w.rouge_l for w in windows)
    against = [w for w in windows if w.contradicts and (w is windows[0] or w.rouge_l >= SAME_SUBJECT * overlap)]
    if not against:
        passed = best.delta_r(lexical_weight) <= delta + ROUNDING
        return (VerdictLabel.SUPPORTED if passed else VerdictLabel.UNVERIFIABLE), best
    strongest = max(against, key=lambda w: (w.rouge_l, w.contradiction or 0.0))
    firm = [
        w
        for w in windows
        if not w.clashes
        and not w.contradicts
        and w.entailment >= FIRM_SUPPORT
        and w.rouge_l >= strongest.rouge_l
        and w.delta_r(lexical_weight) <= delta + ROUNDING
    ]
    if firm:
        return VerdictLabel.CONFLICT, min(firm, key=lambda w: w.delta_r(lexical_weight))
    return VerdictLabel.CONTRADICTED, strongest
