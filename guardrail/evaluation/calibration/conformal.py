"""Split conformal prediction for one threshold: the arithmetic behind the promise, and nothing else.

**The promise.** Take n hallucinated answers. Each has a critical δ (see
:mod:`~guardrail.evaluation.calibration.acceptance`): whenever the policy accepts it at δ, its critical δ is at most
δ. Let k = ⌊α (n + 1)⌋ and choose δ strictly below the k-th smallest of them. Then a further hallucinated answer is
accepted with probability at most k / (n + 1) ≤ α.

**Why.** It is accepted only if its critical δ is below the k-th smallest of the others. Then at most k − 1 of the
others are as small as its own, so however ties are broken it is among the k smallest of all n + 1. If the n + 1
answers are exchangeable, that is, if every order of them is equally likely, it has each of the n + 1 ranks with the
same probability, so it is among the k smallest with probability k / (n + 1). No distribution is assumed, and n may be
small; below n = ⌈1/α⌉ − 1 there is no such k, hence no promise. This is split conformal prediction (Vovk, Gammerman,
Shafer: *Algorithmic Learning in a Random World*, 2005; Lei et al., *Distribution-free predictive inference for
regression*, JASA 2018), read one-sided; equally it is conformal risk control for the loss "accepted", which never
falls with δ (Angelopoulos, Bates, Fisch, Lei, Schuster: *Conformal risk control*, ICLR 2024): their condition (misses
+ 1) / (n + 1) ≤ α allows k − 1 misses.

**What it is about.** The probability is over both, the draw of the n answers and the further answer. For one given
calibration the miss rate varies around k / (n + 1), with a standard deviation of about √(α (1 − α) / n): with
many answers about half of all calibrations miss a little more than α, the others a little less.

**The stronger reading.** For independent answers the miss rate of a given calibration has, if no critical values are
equal, the distribution Beta(k, n + 1 − k) (Vovk: *Conditional validity of inductive conformal predictors*, 2012);
ties only lower it. It is above α only if fewer than k of n answers fall where a share of α does, so with probability
at most P(Binomial(n, α) ≤ k − 1). With the largest k for which this is at most 1 − c, the miss rate is at most α with
confidence c over the draw of the n answers. This is the exact tolerance bound of Wilks (1941) and the inversion of
Clopper and Pearson (1934).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Sequence
from decimal import ROUND_FLOOR, Decimal
from fractions import Fraction

from guardrail.errors import ConfigurationError

_CAUTION = 1e-9
_EXACT_UP_TO = 2000  # answers; for more, an exact sum would take long
_BISECTIONS = 60
_DECIMALS = range(3, 16)


def rank(n: int, target_miss: float, confidence: float | None = None) -> int:
    """k: δ goes below the k-th smallest critical δ of n hallucinated answers.

    Args:
        n: Number of hallucinated answers.
        target_miss: α in (0, 1), taken as the decimal number that it is written as.
        confidence: c in (0.5, 1) for the stronger reading; ``None`` for the marginal one.

    Returns:
        k; 0 if n is too small for a promise.

    Raises:
        ConfigurationError: If α or c is out of range.

    Example:
        >>> rank(19, 0.05), rank(18, 0.05), rank(1000, 0.05)
        (1, 0, 50)
        >>> rank(59, 0.05, confidence=0.95), rank(58, 0.05, confidence=0.95), rank(1000, 0.05, confidence=0.95)
        (1, 0, 39)
    """
    share = _share(target_miss, confidence)
    marginal = math.floor(share * (n + 1))
    if confidence is None:
        return marginal
    low, high = 0, marginal  # never more than the marginal promise allows
    while low < high:  # P(Binomial ≤ k − 1) grows with k
        middle = (low + high + 1) // 2
        if _rare_enough(middle - 1, n, share, 1 - _exact(confidence)):
            low = middle
        else:
            high = middle - 1
    return low


def needed(target_miss: float, confidence: float | None = None) -> int:
    """How many hallucinated answers a promise needs at least.

    Args:
        target_miss: See :func:`rank`.
        confidence: See :func:`rank`.

    Raises:
        ConfigurationError: If one of them is out of range.

    Example:
        >>> needed(0.05), needed(0.01), needed(0.05, confidence=0.95)
        (19, 99, 59)
    """
    share = _share(target_miss, confidence)
    low = high = math.ceil(1 / share) - 1
    if confidence is None:
        return low

    def enough(n: int) -> bool:
        return _rare_enough(0, n, share, 1 - _exact(confidence))

    while not enough(high):
        low, high = high, 2 * high + 1
    while low < high:  # enough answers stay enough when there are more
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    return high


def largest_delta(critical: Sequence[float], k: int, *, others: Iterable[float] = ()) -> float | None:
    """The δ of the promise: below the k-th smallest critical δ, and as large as that allows.

    Of all δ with the same critical values below them as the largest, it is the largest one with the fewest decimals,
    but at least three, so that people can read it. It is a number that JSON gives back as it was.

    Args:
        critical: Critical δ of the hallucinated answers, infinities included.
        k: See :func:`rank`; at least 1 and at most the number of answers.
        others: Critical δ of further answers, about which rounding should not change the decision.

    Returns:
        A number in [0, 1]; ``None`` if even δ = 0 accepts too many.

    Example:
        >>> largest_delta([0.71234567, 0.9, 0.2], 2)
        0.712
        >>> largest_delta([0.4, 0.4, 0.4], 3), largest_delta([0.4], 1, others=[0.39995])
        (0.399, 0.39999)
        >>> largest_delta([float("-inf"), 0.5], 1) is None, largest_delta([float("inf")], 1)
        (True, 1.0)
    """
    bound = sorted(critical)[k - 1]
    if bound <= 0.0:
        return None
    if bound > 1.0:
        return 1.0
    below = max((value for value in (*critical, *others) if value < bound), default=0.0)
    for decimals in _DECIMALS:
        step = Decimal(1).scaleb(-decimals)
        exact = Decimal(bound).quantize(step, rounding=ROUND_FLOOR)
        rounded = float(exact)
        if rounded >= bound:
            rounded = float(exact - step)
        if max(0.0, below) <= rounded < bound:
            return rounded
    return math.nextafter(bound, 0.0)


def binomial_cdf(k: int, n: int, p: float) -> float:
    """P(Binomial(n, p) ≤ k).

    Example:
        >>> round(binomial_cdf(1, 4, 0.5), 4), binomial_cdf(-1, 4, 0.5), binomial_cdf(4, 4, 0.5)
        (0.3125, 0.0, 1.0)
    """
    if k < 0:
        return 0.0
    if k >= n or p <= 0.0:
        return 1.0
    if p >= 1.0:
        return 0.0
    whole, hit, miss = math.lgamma(n + 1), math.log(p), math.log1p(-p)
    if k == 0:
        return math.exp(n * miss)
    terms = (
        math.exp(whole - math.lgamma(i + 1) - math.lgamma(n - i + 1) + i * hit + (n - i) * miss) for i in range(k + 1)
    )
    return min(1.0, math.fsum(terms))


def binomial_interval(k: int, n: int, *, confidence: float = 0.95) -> tuple[float, float] | None:
    """The exact interval of Clopper and Pearson for a share of which k in n were seen.

    Args:
        k: How many.
        n: Of how many.
        confidence: Of the interval, in (0, 1).

    Returns:
        (low, high); ``None`` for n = 0.

    Example:
        >>> tuple(round(x, 4) for x in binomial_interval(8, 10))
        (0.4439, 0.9748)
        >>> binomial_interval(0, 0) is None
        True
    """
    if n == 0:
        return None
    tail = (1.0 - confidence) / 2.0
    low = 0.0 if k == 0 else _solve(lambda p: 1.0 - binomial_cdf(k - 1, n, p) < tail)
    high = 1.0 if k == n else _solve(lambda p: binomial_cdf(k, n, p) > tail)
    return low, high


def _rare_enough(k: int, n: int, share: Fraction, allowed: Fraction) -> bool:
    """P(Binomial(n, share) ≤ k) ≤ allowed; exact where rounding could decide, or else no."""
    about = binomial_cdf(k, n, float(share))
    caution = _CAUTION + 8.0 * sys.float_info.epsilon * math.lgamma(n + 1.0) * (k > 0)  # relative: more than its error
    if not float(allowed) * (1.0 - caution) <= about <= float(allowed) * (1.0 + caution) or n > _EXACT_UP_TO:
        return about * (1.0 + caution) <= float(allowed)
    return sum(math.comb(n, i) * share**i * (1 - share) ** (n - i) for i in range(k + 1)) <= allowed


def _solve(below: Callable[[float], bool]) -> float:
    """Where a condition that holds for small p stops to hold."""
    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if below(middle) else (low, middle)
    return (low + high) / 2.0


def _share(target_miss: float, confidence: float | None) -> Fraction:
    checks = [("target_miss", target_miss, 0.0)]
    if confidence is not None:
        checks.append(("confidence", confidence, 0.5))
    for name, value, least in checks:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not is_number or not least < value < 1:
            raise ConfigurationError(f"{name} must be a number above {least:g} and below 1, not {value!r}")
    return _exact(target_miss)


def _exact(value: float) -> Fraction:
    """The decimal number that a float is written as."""
    return Fraction(repr(float(value)))
