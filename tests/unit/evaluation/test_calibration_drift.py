"""Whether live scores have drifted from a profile: false alarms, power, and what is not compared."""

from __future__ import annotations

import math
import random

import pytest

from guardrail.errors import ConfigurationError
from guardrail.evaluation.alarms import AlarmLevel
from guardrail.evaluation.calibration import calibrate, drift_alarm
from guardrail.evaluation.calibration.drift import (
    CRITICAL_RATE,
    LEAST_SCORES,
    MOST_POINTS,
    WARNING_RATE,
    compare,
    distribution,
    exceedance,
)
from guardrail.evaluation.labelled import LabelledAnswer
from guardrail.testing import FakeEntailment


@pytest.mark.parametrize(
    ("x", "p"), [(0.0, 1.0), (0.5, 0.9639), (1.0, 0.2700), (1.3581, 0.05), (1.6276, 0.01), (1.9495, 0.001)]
)
def test_the_distribution_of_kolmogorov(x, p):
    assert exceedance(x) == pytest.approx(p, abs=5e-5)


def like(random_, kind):
    score = random_.betavariate(2, 3)
    return score if kind == "smooth" else -1.0 if score < 0.15 else round(score, 1) + 2 * (score > 0.8)


@pytest.mark.parametrize("kind", ["smooth", "tied"])
@pytest.mark.parametrize(("reference", "live"), [(60, 50), (200, 80)])
def test_false_alarms_are_as_rare_as_stated(kind, reference, live):
    random_ = random.Random(f"{kind} {reference} {live}")
    rounds, levels = 800, []
    for _ in range(rounds):
        profile = distribution((like(random_, kind) for _ in range(reference)), clip=0.5)
        levels.append(compare(profile, sorted(like(random_, kind) for _ in range(live))).level)
    alarms = sum(level is not AlarmLevel.OK for level in levels)
    assert alarms / rounds <= WARNING_RATE + 3 * math.sqrt(WARNING_RATE / rounds)
    assert levels.count(AlarmLevel.CRITICAL) / rounds <= CRITICAL_RATE + 3 * math.sqrt(CRITICAL_RATE / rounds)


def test_a_clear_change_is_critical_and_a_small_one_is_not():
    random_ = random.Random(5)
    reference = distribution((random_.betavariate(2, 3) for _ in range(500)), clip=0.7)
    other = [compare(reference, sorted(random_.betavariate(3, 2) for _ in range(200))) for _ in range(20)]
    assert {found.level for found in other} == {AlarmLevel.CRITICAL}
    near = [compare(reference, sorted(random_.betavariate(2.05, 3) for _ in range(200))).level for _ in range(20)]
    assert near.count(AlarmLevel.CRITICAL) == 0


def test_the_threshold_is_where_warnings_begin():
    reference = distribution([i / 1000 for i in range(1000)], clip=1.0)
    for shift in range(100, 400, 10):
        found = compare(reference, [min(0.999, (i * 5 + shift) / 1000) for i in range(200)])
        assert (found.statistic >= found.threshold) is (found.level is not AlarmLevel.OK)
        assert (found.p_value <= WARNING_RATE) is (found.level is not AlarmLevel.OK)
        assert found.n == 200


def test_what_lies_above_the_clip_is_one_and_the_same():
    low = [i / 100 for i in range(50)]
    reference = distribution([*low, *[0.6] * 50], clip=0.5)
    assert compare(reference, sorted([*low, *[2.9] * 50])).statistic == 0.0
    assert compare(reference, sorted([*low, *[0.51] * 50])).statistic == 0.0
    assert compare(reference, sorted([*low, *[0.5] * 50])).statistic == 0.5  # at the clip is not above it


def test_a_distribution_keeps_few_points_and_their_exact_shares():
    scores = [i / 10_000 for i in range(10_000)]
    kept = distribution(scores, clip=0.8)
    assert kept.n == 10_000
    assert 100 <= len(kept.points) <= MOST_POINTS
    assert kept.points[-1] == (0.8, 0.8001)
    assert all(share == pytest.approx(score + 1e-4) for score, share in kept.points)
    with pytest.raises(ValueError, match="needs scores"):
        distribution([], clip=0.5)


@pytest.fixture(scope="module")
def profile():
    context = ("The desk opens at ten.",)
    rows = [
        LabelledAnswer(
            id="", question="", context=context, answer=f"The desk opens at ten, room {n} said.", grounded=n % 2 > 0
        )
        for n in range(100)
    ]
    random_ = random.Random(1)
    return calibrate(rows, target_miss=0.1, entailment=FakeEntailment(lambda p, h: random_.random()))


def test_too_few_scores_say_nothing(profile):
    assert drift_alarm(profile, [0.1] * (LEAST_SCORES - 1)) is None
    assert drift_alarm(profile, []) is None
    assert drift_alarm(profile, iter([0.1] * LEAST_SCORES)).n == LEAST_SCORES
    assert drift_alarm(profile, [0.1] * 3, min_n=3).n == 3


def test_its_own_scores_are_no_drift(profile):
    shares = [(score, share) for score, share in profile.scores.points]
    own = [
        score
        for (score, share), before in zip(shares, [0.0, *(s for _, s in shares)], strict=False)
        for _ in range(round(100 * (share - before)))
    ]
    own += [3.0] * (100 - len(own))
    found = drift_alarm(profile, own)
    assert (found.level, found.statistic) == (AlarmLevel.OK, pytest.approx(0.0))
    assert drift_alarm(profile, [-1.0] * 100).level is AlarmLevel.CRITICAL


@pytest.mark.parametrize("bad", [0, -1, 2.5, True])
def test_a_least_number_that_is_none_is_refused(profile, bad):
    with pytest.raises(ConfigurationError, match="min_n must be"):
        drift_alarm(profile, [0.1] * 100, min_n=bad)


def test_a_score_that_is_none_is_refused(profile):
    with pytest.raises(ValueError, match="NaN"):
        drift_alarm(profile, [0.1] * 100 + [math.nan])
