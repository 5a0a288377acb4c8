"""ΔR of the evidence formula, and the verdict that follows from the signals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from guardrail.errors import ScoringError
from guardrail.types import Clash, ClashKind, VerdictLabel

CONTRADICTED_CAP = 0.05
MISSING_VALUE_CAP = 0.2
UNKNOWN_NAME_LOG_ODDS = 3.0
"""By how much a name that stands in no passage lowers the log-odds of N. Fitted on held-out RAGTruth *train* answers,
where 0.3 % of the claims of grounded answers have one and 2 % of others, and on the development part of WiCE."""
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


def capped(entailment: float, clashes: Sequence[Clash], *, missing_log_odds: float | None = None) -> float:
    """N after the comparison of values, names, negations and roles.

    What contradicts is a veto that no model score outweighs. A value that is merely missing from the evidence may have
    been read wrongly, or stand in a sentence that was not selected: to a calibrated model it is one more signal. A name
    that no passage has is one to every model, as it may be another name for what the passages speak of.

    Args:
        entailment: N in [0, 1].
        clashes: What comparison found.
        missing_log_odds: By how much a missing value lowers the log-odds of N; ``None`` caps N instead, which is right
            for scores that are no probabilities.
    """
    if any(clash.contradicts for clash in clashes):
        return min(entailment, CONTRADICTED_CAP)
    names = any(clash.kind is ClashKind.NAME for clash in clashes)
    values = any(clash.kind is not ClashKind.NAME for clash in clashes)
    if values and missing_log_odds is None:
        entailment = min(entailment, MISSING_VALUE_CAP)
    lowered_by = (UNKNOWN_NAME_LOG_ODDS if names else 0.0) + ((missing_log_odds or 0.0) if values else 0.0)
    if not lowered_by:
        return entailment
    odds = math.exp(-lowered_by) * entailment
    return odds / (odds + 1.0 - entailment)


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
        on_subject: Whether the window has a word of what the claim is about.
        missing_log_odds: See :func:`capped`.
        screened: The model's own N, if a judge was asked as well.
        judged: What the judge said; see :class:`~guardrail.types.EntailmentScore`.
    """

    passage_ids: tuple[str, ...]
    twins: tuple[str, ...] = ()
    rouge_l: float
    entailment: float
    contradiction: float | None
    clashes: tuple[Clash, ...]
    on_subject: bool = True
    missing_log_odds: float | None = None
    screened: float | None = None
    judged: str = ""

    @property
    def capped_entailment(self) -> float:
        """N after the comparison; a judge that says yes has seen the names."""
        seen = self.judged == "yes"
        clashes = [c for c in self.clashes if c.contradicts or c.kind is not ClashKind.NAME] if seen else self.clashes
        return capped(self.entailment, clashes, missing_log_odds=self.missing_log_odds)

    @property
    def objected(self) -> bool:
        """Whether comparison objects to more than a name that may be another name for something known."""
        return any(clash.contradicts or clash.kind is not ClashKind.NAME for clash in self.clashes)

    @property
    def calibrated(self) -> bool:
        """Whether N is a fitted probability."""
        return self.missing_log_odds is not None

    @property
    def vetoed(self) -> bool:
        """Whether comparison found that this window says otherwise."""
        return any(clash.contradicts for clash in self.clashes)

    @property
    def contradicts(self) -> bool:
        """Whether this window says otherwise, by comparison or by the model."""
        own = self.entailment if self.screened is None else self.screened  # a judge says nothing of contradiction
        against = self.contradiction is not None and self.contradiction > max(CONTRADICTION_THRESHOLD, own)
        # Models take what is merely about something else for a contradiction.
        return (against and self.on_subject) or self.vetoed

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
    best = _ground(windows, lexical_weight)
    passes = [w.delta_r(lexical_weight) <= delta + ROUNDING for w in windows]
    near = same_subject(windows)
    against = [
        w
        for w, passed in zip(windows, passes, strict=True)
        # A calibrated model has put its doubt into N already: what passes in spite of it is not contradicted.
        if (w is windows[0] or w in near) and (w.vetoed or (w.contradicts and not (passed and w.calibrated)))
    ]
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


def same_subject(windows: Sequence[WindowSignals]) -> list[WindowSignals]:
    """Those that share about as many words with the claim as the best one; others speak of something else."""
    overlap = max((w.rouge_l for w in windows), default=0.0)
    return [w for w in windows if w.rouge_l >= SAME_SUBJECT * overlap]


def decisive(windows: Sequence[WindowSignals]) -> list[bool]:
    """Which windows a verdict can rest on and turn with: where a second opinion on N is worth its price.

    Args:
        windows: As for :func:`judge`; N need not be known.

    Returns:
        Per window, whether another N can change the verdict. Never where comparison has found a contradiction or a
        missing value: those caps come after any model.
    """
    near = same_subject(windows)
    if any(w.vetoed and (w is windows[0] or w in near) for w in windows):
        return [False] * len(windows)
    return [not w.objected and (w is windows[0] or windows[0].objected) for w in windows]


def _ground(windows: Sequence[WindowSignals], lexical_weight: float) -> WindowSignals:
    """What a verdict rests on: the joined evidence; if there is an objection to it, perhaps a passage without one.

    The best of all windows would give a wrong claim many chances.
    """
    alone = [w for w in windows[1:] if not w.objected] if windows[0].objected else []
    return min([windows[0], *alone], key=lambda w: w.delta_r(lexical_weight))
