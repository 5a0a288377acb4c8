"""The arithmetic of the promise: ranks, thresholds, binomial bounds, and that the promise holds."""

from __future__ import annotations

import json
import math
import random
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail.errors import ConfigurationError
from guardrail.evaluation.calibration.conformal import (
    binomial_cdf,
    binomial_interval,
    largest_delta,
    needed,
    rank,
)

INF = math.inf
CRITICAL = st.one_of(st.floats(0, 1), st.sampled_from([-INF, 0.0, 0.5, 0.5000000001, 1.0, INF]))


@pytest.mark.parametrize(
    ("n", "target", "k"),
    [
        (0, 0.05, 0),
        (18, 0.05, 0),
        (19, 0.05, 1),
        (38, 0.05, 1),
        (39, 0.05, 2),
        (99, 0.07, 7),
        (99, 0.29, 29),
        (9, 0.1, 1),
    ],
)
def test_the_rank_is_the_whole_part_of_the_target_of_one_more(n, target, k):
    assert rank(n, target) == k  # 0.29 * 100 is 28.999999999999996 in binary


@pytest.mark.parametrize(("target", "least"), [(0.5, 1), (0.2, 4), (0.1, 9), (0.05, 19), (0.03, 33), (0.01, 99)])
def test_the_number_that_is_needed_is_the_first_that_has_a_rank(target, least):
    assert needed(target) == least == math.ceil(1 / Fraction(str(target))) - 1
    assert rank(least, target) == 1
    assert rank(least - 1, target) == 0


@pytest.mark.parametrize(
    ("target", "confidence", "least"), [(0.05, 0.95, 59), (0.1, 0.95, 29), (0.01, 0.99, 459), (0.1, 0.9, 22)]
)
def test_with_confidence_the_known_sample_sizes_are_needed(target, confidence, least):
    assert needed(target, confidence) == least
    assert (1 - target) ** least <= 1 - confidence < (1 - target) ** (least - 1)


@pytest.mark.parametrize("n", [59, 100, 777])
@pytest.mark.parametrize("target", [0.05, 0.2])
def test_the_rank_with_confidence_is_the_largest_that_is_sure_enough(n, target):
    k = rank(n, target, confidence=0.95)
    assert 1 <= k <= rank(n, target)
    assert exact_cdf(k - 1, n, Fraction(str(target))) <= Fraction(1, 20) < exact_cdf(k, n, Fraction(str(target)))


def exact_cdf(k, n, p):
    return sum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k + 1))


@pytest.mark.parametrize("bad", [0, 1, -0.1, 1.5, math.nan, INF, True, "0.1", None])
def test_a_target_that_is_no_probability_is_refused(bad):
    with pytest.raises(ConfigurationError, match="target_miss must be a number above 0 and below 1"):
        rank(100, bad)


@pytest.mark.parametrize("bad", [0, 0.5, 1, math.nan, True, "0.9"])
def test_a_confidence_out_of_range_is_refused(bad):
    with pytest.raises(ConfigurationError, match=r"confidence must be a number above 0\.5 and below 1"):
        needed(0.1, bad)


@given(st.lists(CRITICAL, min_size=1, max_size=30), st.data())
def test_delta_lies_below_the_kth_smallest_and_decides_as_the_largest_would(critical, data):
    k = data.draw(st.integers(1, len(critical)))
    others = data.draw(st.lists(CRITICAL, max_size=5))
    bound = sorted(critical)[k - 1]
    delta = largest_delta(critical, k, others=others)
    if delta is None:
        assert bound <= 0.0
        return
    assert 0.0 <= delta <= 1.0
    assert delta < bound
    assert sum(value <= delta for value in critical) <= k - 1
    largest = min(1.0, math.nextafter(bound, 0.0))
    assert all((value <= delta) == (value <= largest) for value in (*critical, *others))
    assert json.loads(json.dumps(delta)) == delta


@pytest.mark.parametrize(
    ("critical", "k", "delta"),
    [
        ([0.5, 0.5, 0.5], 1, 0.499),
        ([0.5, 0.5, 0.5], 3, 0.499),
        ([0.3, INF, INF], 2, 1.0),
        ([0.3, 1.0], 2, 0.999),
        ([-INF, 0.4], 2, 0.399),
        ([-INF, 0.4], 1, None),
        ([0.0, 0.4], 1, None),
        ([0.6543219876], 1, 0.654),
        ([math.nextafter(0.5, 1)], 1, 0.5),
        ([5e-324], 1, 0.0),
    ],
)
def test_ties_infinities_and_zero(critical, k, delta):
    assert largest_delta(critical, k) == delta


@pytest.mark.parametrize(("n", "p"), [(1, 0.5), (7, 0.05), (60, 0.2), (300, 0.01)])
def test_the_binomial_sum_is_exact(n, p):
    for k in range(n + 1):
        assert binomial_cdf(k, n, p) == pytest.approx(float(exact_cdf(k, n, Fraction(str(p)))), rel=1e-10)


def test_the_binomial_sum_at_its_ends():
    assert (binomial_cdf(3, 10, 0.0), binomial_cdf(3, 10, 1.0), binomial_cdf(10, 10, 1.0)) == (1.0, 0.0, 1.0)
    assert binomial_cdf(0, 5000, 0.5) == 0.0


@pytest.mark.parametrize(
    ("k", "n", "interval"),
    [
        (0, 10, (0.0, 0.3085)),
        (10, 10, (0.6915, 1.0)),
        (5, 10, (0.1871, 0.8129)),
        (1, 1, (0.025, 1.0)),
        (50, 1000, (0.0373, 0.0654)),
    ],
)
def test_the_interval_of_clopper_and_pearson(k, n, interval):
    assert binomial_interval(k, n) == pytest.approx(interval, abs=5e-5)


def test_no_interval_without_a_trial():
    assert binomial_interval(0, 0) is None


def drawn(random_, kind):
    """A critical δ; exchangeable with all others of its kind."""
    value = random_.random()
    if kind == "smooth":
        return value
    if kind == "tied":
        return round(value, 1)
    return -INF if value < 0.03 else INF if value > 0.6 else round(value, 2)


@pytest.mark.parametrize("kind", ["smooth", "tied", "infinite"])
@pytest.mark.parametrize("target", [0.05, 0.1, 0.2])
@pytest.mark.parametrize("n", [19, 60])
def test_the_promise_holds_for_exchangeable_answers_with_ties_and_infinities(kind, target, n):
    random_ = random.Random(f"{kind} {target} {n}")
    k, rounds, missed, made = rank(n, target), 4000, 0, 0
    for _ in range(rounds):
        delta = largest_delta([drawn(random_, kind) for _ in range(n)], k)
        if delta is not None:  # without a δ nothing is accepted, as there is no profile
            made += 1
            missed += drawn(random_, kind) <= delta
    error = math.sqrt(target / rounds)
    assert missed / rounds <= k / (n + 1) + 3 * error
    if kind == "smooth":  # and no smaller than it has to be
        assert made == rounds
        assert missed / rounds >= k / (n + 1) - 3 * error


@pytest.mark.parametrize("kind", ["smooth", "tied"])
def test_with_confidence_few_calibrations_miss_more_than_the_target(kind):
    random_ = random.Random(kind)
    n, target, rounds, over = 80, 0.1, 3000, 0
    k = rank(n, target, confidence=0.9)
    for _ in range(rounds):
        delta = largest_delta([drawn(random_, kind) for _ in range(n)], k) or 0.0
        # P(critical ≤ δ): of a number in [0, 1], and of one that was rounded to a tenth
        rate = delta if kind == "smooth" else min(1.0, math.floor(delta * 10 + 1e-9) / 10 + 0.05)
        over += rate > target
    assert over / rounds <= 0.1 + 3 * math.sqrt(0.09 / rounds)
    if kind == "smooth":
        marginal = rank(n, target)
        often = sum(sorted(random_.random() for _ in range(n))[marginal - 1] > target for _ in range(1000))
        assert 0.3 < often / 1000 < 0.7  # which the marginal promise does not say
