"""Whether live scores are still distributed as those of the answers that a profile was made from.

The promise of a profile is about answers that are like the labelled ones. Live answers have no labels, but they have
scores, and if these are distributed otherwise, live answers are others: another model, other prompts, other
documents, or another share of hallucinated answers among them. The reverse does not follow: answers may change and
score as before.

**What is compared.** A live run stops at the first claim that fails and does not know how bad the rest would have been.
So the labelled answers are scored as far as a live run would have read them, and scores above δ count as one and the
same, as policies differ in what they read behind it (:attr:`Scores.clip` of the profile; where wrong citations are
corrected it may lie below δ). Answers that no live run has a score for, as there was nothing to check them against, are
left out on both sides. The statistic of the
two-sample Kolmogorov-Smirnov test is then the largest distance between the shares of answers up to a score, over the
scores that the profile has kept. Looking at some scores only, and ties, can only make it smaller.

**False alarms.** If nothing has changed and answers are independent, a single look warns with a probability of at most
:data:`WARNING_RATE` and is critical with at most :data:`CRITICAL_RATE`, from the limiting distribution of Kolmogorov
(1933) and Smirnov (1939), which is on the safe side for small samples too. Who looks every day with fresh answers has a
false warning once in a hundred days at most, on average. Answers that are looked at again are not a new look.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable
from dataclasses import dataclass

from guardrail.errors import ConfigurationError
from guardrail.evaluation.alarms import AlarmLevel
from guardrail.evaluation.calibration.profile import Profile, Scores

WARNING_RATE = 0.01
CRITICAL_RATE = 0.001
LEAST_SCORES = 50
MOST_POINTS = 200
_TERMS = 100
_BISECTIONS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftAlarm:
    """Live scores beside those of a profile.

    Attributes:
        level: ``ok``, ``warning`` or ``critical``.
        statistic: Largest distance between both distributions, in [0, 1].
        threshold: The distance from which on it is a warning.
        n: Number of live scores.
        p_value: At most how likely a distance this large is if nothing has changed.
    """

    level: AlarmLevel
    statistic: float
    threshold: float
    n: int
    p_value: float


def drift_alarm(profile: Profile, scores: Iterable[float], *, min_n: int = LEAST_SCORES) -> DriftAlarm | None:
    """Compare live scores with those of a profile.

    Args:
        profile: The profile whose policy was live, with the same model.
        scores: One per live answer, of its first attempt, as
            :func:`~guardrail.evaluation.benchmarks.quality.answer_score` gives
            it; a history records that as ``answer_score``.
        min_n: Fewer scores than this say nothing; at least 1.

    Returns:
        The alarm, with level ``ok`` if there is none; ``None`` if there are fewer than ``min_n`` scores.

    Raises:
        ConfigurationError: If ``min_n`` is below 1.
        ValueError: If a score is not a number.

    Example:
        >>> from guardrail.evaluation.calibration import calibrate
        >>> from guardrail.evaluation.labelled import LabelledAnswer
        >>> answers = [LabelledAnswer(id=str(n), question="", context=("The desk opens at ten.",),
        ...                           answer="The desk opens at ten.", grounded=n % 2 == 0) for n in range(100)]
        >>> profile = calibrate(answers, target_miss=0.1, entailment=lambda pairs: [0.9] * len(pairs))
        >>> drift_alarm(profile, [0.7] * 49) is None, drift_alarm(profile, [0.7] * 60).level.value
        (True, 'ok')
    """
    if isinstance(min_n, bool) or not isinstance(min_n, int) or min_n < 1:
        raise ConfigurationError(f"min_n must be a whole number of at least 1, not {min_n!r}")
    live = sorted(scores)
    if any(math.isnan(score) for score in live):
        raise ValueError("a score is NaN")
    if len(live) < min_n:
        return None
    return compare(profile.scores, live)


def compare(reference: Scores, live: list[float]) -> DriftAlarm:
    """The alarm for sorted live scores; see :func:`drift_alarm`.

    Example:
        >>> same = [i / 100 for i in range(100)]
        >>> reference = distribution(same, clip=0.7)
        >>> compare(reference, same).level.value, compare(reference, [0.9] * 100).level.value
        ('ok', 'critical')
    """
    n = len(live)
    distances = (abs(bisect.bisect_right(live, score) / n - share) for score, share in reference.points)
    statistic = max(distances, default=0.0)
    scale = math.sqrt(reference.n * n / (reference.n + n))
    p_value = exceedance(scale * statistic)
    level = AlarmLevel.OK
    if p_value <= CRITICAL_RATE:
        level = AlarmLevel.CRITICAL
    elif p_value <= WARNING_RATE:
        level = AlarmLevel.WARNING
    return DriftAlarm(level=level, statistic=statistic, threshold=_quantile(WARNING_RATE) / scale, n=n, p_value=p_value)


def distribution(scores: Iterable[float], *, clip: float) -> Scores:
    """What a profile keeps of scores: at most :data:`MOST_POINTS` of them, with the share of scores up to each.

    Args:
        scores: One per answer.
        clip: Scores above this count as one.

    Raises:
        ValueError: Without scores.

    Example:
        >>> distribution([0.1, 0.1, 0.9, 0.8], clip=0.5).points
        ((0.1, 0.5), (0.5, 0.5))
    """
    ordered = sorted(scores)
    if not ordered:
        raise ValueError("a distribution needs scores")
    values = sorted({score for score in ordered if score < clip})
    step = max(1, math.ceil(len(values) / (MOST_POINTS - 1)))
    kept = [*values[step - 1 :: step], clip]
    return Scores(
        n=len(ordered),
        clip=clip,
        points=tuple((score, bisect.bisect_right(ordered, score) / len(ordered)) for score in kept),
    )


def exceedance(distance: float) -> float:
    """P(K > x) of Kolmogorov's distribution.

    Example:
        >>> round(exceedance(1.3581), 4), exceedance(0.0)
        (0.05, 1.0)
    """
    if distance < 0.2:  # there it is 1 to twelve places, and the series converges slowly
        return 1.0
    terms = ((-1) ** (j - 1) * math.exp(-2.0 * (j * distance) ** 2) for j in range(1, _TERMS))
    return min(1.0, max(0.0, 2.0 * math.fsum(terms)))


def _quantile(rate: float) -> float:
    low, high = 0.2, 5.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if exceedance(middle) > rate else (low, middle)
    return high
