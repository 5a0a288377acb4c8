"""From signals of labelled answers to δ and the lexical weight, with nothing chosen twice on the same answers.

Whatever is chosen by looking at answers is chosen on a part of them that δ is not set on: a weight that was picked
because it looks good on some answers makes exactly these look better than new ones, and they are exchangeable with
new ones no longer. Grounded answers only measure what the promise costs. Those of the part that sets δ had no say in
it, so their share is an honest estimate for new ones.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from guardrail.errors import CalibrationError
from guardrail.evaluation.calibration.acceptance import Acceptance, AnswerSignals
from guardrail.evaluation.calibration.conformal import largest_delta, needed, rank
from guardrail.policy import Policy

WEIGHTS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0)
FITTING_SHARE = 0.3
LEAST_TO_FIT = 50
_SAMPLES = 200
_CLEARLY = 0.975  # share of the samples in which another weight has to be better
_STEPS = 1000  # targets are proposed in tenths of a percent
_FRESH = "Whatever is changed because of this result needs fresh answers for its promise"

WeightSource = Literal["fitted", "confirmed", "model", "policy"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is to be promised.

    Attributes:
        target_miss: α; see :mod:`~guardrail.evaluation.calibration.conformal`.
        confidence: c, or ``None``.
        max_refusal: Largest share of grounded answers that may be refused; ``None`` for any.
    """

    target_miss: float
    confidence: float | None = None
    max_refusal: float | None = None

    @property
    def needed(self) -> int:
        """How many hallucinated answers it takes at least."""
        return needed(self.target_miss, self.confidence)

    def rank(self, n: int) -> int:
        """The rank k for n hallucinated answers."""
        return rank(n, self.target_miss, self.confidence)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """What came of it.

    Attributes:
        delta: δ.
        lexical_weight: w.
        weight_source: ``fitted`` on the fitting part; ``confirmed``: as without fitting (what the model declares, or
            the usual one), as the fitting part had nothing clearly better; ``model``: the same, as there was too little
            to fit it on; ``policy``: set there.
        k: At most k − 1 of the hallucinated answers of the part that sets δ have a critical δ within it.
        hallucinated: These answers.
        grounded: The grounded answers of the same part.
        fitting: How many answers chose the weight.
    """

    delta: float
    lexical_weight: float
    weight_source: WeightSource
    k: int
    hallucinated: tuple[Acceptance, ...]
    grounded: tuple[Acceptance, ...]
    fitting: int


def fit(
    answers: Sequence[AnswerSignals], wanted: Wanted, *, policy: Policy, own_weight: float, seed: int = 0
) -> Fitted:
    """Choose the lexical weight, then δ.

    Args:
        answers: Signals of labelled answers, one per group if they come in groups.
        wanted: The promise.
        policy: The policy, whose δ does not count; its lexical weight stays if it has one.
        own_weight: What the weight is without fitting.
        seed: Of the split in two parts. Equal seeds give equal splits.

    Raises:
        CalibrationError: If there is no δ for the promise; the message says what would help.
    """
    bad = sum(answer.hallucinated for answer in answers)
    if not wanted.rank(bad):
        raise too_few(bad, wanted)
    chosen, rest = _split(answers, wanted, fixed=policy.lexical_weight is not None, seed=seed)
    source: WeightSource = "policy" if policy.lexical_weight is not None else "model"
    weight = own_weight if policy.lexical_weight is None else policy.lexical_weight
    if chosen:
        weight = _best_weight(chosen, wanted, policy, own_weight, random.Random(seed))
        source = "confirmed" if weight == own_weight else "fitted"
    bad_ones = tuple(a.accepted(policy, weight) for a in rest if a.hallucinated)
    good_ones = tuple(a.accepted(policy, weight) for a in rest if not a.hallucinated)
    k = wanted.rank(len(bad_ones))
    delta = _delta(bad_ones, k, good_ones)
    if delta is None:
        raise _always_accepted(bad_ones, k, policy)
    if wanted.max_refusal is not None:
        _check_refusal(bad_ones, good_ones, delta, k, wanted)
    return Fitted(
        delta=delta,
        lexical_weight=weight,
        weight_source=source,
        k=k,
        hallucinated=bad_ones,
        grounded=good_ones,
        fitting=len(chosen),
    )


def too_few(hallucinated: int, wanted: Wanted) -> CalibrationError:
    """The error for fewer hallucinated answers than the promise needs."""
    sure = "" if wanted.confidence is None else f" with confidence {wanted.confidence:g}"
    return CalibrationError(
        f"a miss of at most {wanted.target_miss:g}{sure} can be promised from {wanted.needed} hallucinated answers on, "
        f"and there are {hallucinated}: label more answers, or choose a larger target_miss",
        needed=wanted.needed,
    )


def released(accepted: Sequence[Acceptance], delta: float) -> int:
    """How many answers are accepted at a δ."""
    return sum(answer.at(delta) for answer in accepted)


def _split(
    answers: Sequence[AnswerSignals], wanted: Wanted, *, fixed: bool, seed: int
) -> tuple[list[AnswerSignals], list[AnswerSignals]]:
    """The part that chooses the weight, empty if it would be too small to, and the part that sets δ.

    Each class is split alone, so whether there is enough depends on counts only, which nothing is chosen by.
    """
    chosen: list[AnswerSignals] = []
    rest: list[AnswerSignals] = []
    random_ = random.Random(seed)
    for hallucinated in (True, False):
        own = [answer for answer in answers if answer.hallucinated is hallucinated]
        random_.shuffle(own)
        cut = math.floor(FITTING_SHARE * len(own))
        enough = cut >= max(LEAST_TO_FIT, needed(wanted.target_miss) if hallucinated else 0)
        if fixed or not enough or (hallucinated and len(own) - cut < 2 * wanted.needed):
            return [], list(answers)
        chosen += own[:cut]
        rest += own[cut:]
    return chosen, rest


def _best_weight(
    answers: Sequence[AnswerSignals], wanted: Wanted, policy: Policy, own: float, random_: random.Random
) -> float:
    """The weight that releases most grounded answers at the target; the own one unless another is clearly better.

    Both the grounded answers and the threshold that they are held against are drawn, so both are drawn again: another
    weight is clearly better if it releases more in nearly all of many samples from these answers (the bootstrap).
    """
    critical = {
        weight: tuple(
            [a.accepted(policy, weight).critical_delta for a in answers if a.hallucinated is hallucinated]
            for hallucinated in (True, False)
        )
        for weight in dict.fromkeys((own, *WEIGHTS))
    }
    bad, good = (range(len(part)) for part in critical[own])
    k = rank(len(bad), wanted.target_miss)

    def below(weight: float, bad_ones: Sequence[int], good_ones: Sequence[int]) -> int:
        of_bad, of_good = critical[weight]
        bound = sorted(of_bad[at] for at in bad_ones)[k - 1]
        return sum(of_good[at] < bound for at in good_ones)

    best = max(critical, key=lambda weight: below(weight, bad, good))
    if best == own:
        return own
    better = 0
    for _ in range(_SAMPLES):
        drawn = random_.choices(bad, k=len(bad)), random_.choices(good, k=len(good))
        better += below(best, *drawn) > below(own, *drawn)
    return best if better >= _CLEARLY * _SAMPLES else own


def _delta(bad: Sequence[Acceptance], k: int, good: Sequence[Acceptance]) -> float | None:
    return largest_delta([a.critical_delta for a in bad], k, others=[a.critical_delta for a in good])


def _always_accepted(bad: Sequence[Acceptance], k: int, policy: Policy) -> CalibrationError:
    always = Counter(a.reason for a in bad if a.critical_delta == -math.inf)
    proven = sum(a.critical_delta == 0.0 for a in bad)
    reasons = [f"{number} ({reason})" for reason, number in sorted(always.items())]
    reasons += [f"{proven} (ΔR 0: the model takes them for proven)"] if proven else []
    advice = ["choose a larger target_miss"]
    if always["no_claims"] and policy.no_claims != "refuse":
        advice.insert(0, 'set no_claims="refuse" in the policy')
    if proven:
        advice.insert(0, "use another entailment model")
    return CalibrationError(
        f"no δ keeps the promise: of {len(bad)} hallucinated answers at most {k - 1} may be accepted, and even δ = 0 "
        f"accepts {' and '.join(reasons)}: {' or '.join(advice)}. {_FRESH}"
    )


def _check_refusal(bad: Sequence[Acceptance], good: Sequence[Acceptance], delta: float, k: int, wanted: Wanted) -> None:
    allowed = wanted.max_refusal
    if allowed is None:
        return
    if not good:
        raise CalibrationError("max_refusal needs grounded answers among the labelled ones, and there are none")
    refused = 1 - released(good, delta) / len(good)
    if refused <= allowed:
        return
    reachable = _reachable(bad, good, k, wanted, allowed)
    advice = "no target reaches that" if reachable is None else f"target_miss {reachable:g} would keep to that"
    raise CalibrationError(
        f"a miss of at most {wanted.target_miss:g} costs the refusal of {refused:.1%} of the grounded answers "
        f"({len(good)} measured), and max_refusal allows {allowed:.1%}; on these answers {advice}. {_FRESH}"
    )


def _reachable(
    bad: Sequence[Acceptance], good: Sequence[Acceptance], k: int, wanted: Wanted, allowed: float
) -> float | None:
    """The smallest target, in tenths of a percent, whose δ refuses no more grounded answers than allowed."""

    def refuses_few(rank_: int) -> bool:
        delta = _delta(bad, rank_, good)
        return delta is not None and 1 - released(good, delta) / len(good) <= allowed

    low, high = k + 1, len(bad)
    if low > high or not refuses_few(high):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if refuses_few(middle) else (middle + 1, high)
    targets = (step / _STEPS for step in range(1, _STEPS))
    return next((target for target in targets if rank(len(bad), target, wanted.confidence) >= low), None)
