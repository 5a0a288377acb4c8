"""Summaries of many scores."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail.evaluation.summary import Summary, summarise

EXAMPLE = [1, 1, 0.75, 1, 0, 0.5, 1, 1]
UNDEFINED = Summary(n=0, mean=None, sd=None, p10=None, below_half=None, minimum=None, maximum=None)


@pytest.mark.parametrize("scores", [EXAMPLE, tuple(EXAMPLE), iter(EXAMPLE), np.array(EXAMPLE)])
def test_the_figures_of_the_specification(scores):
    found = summarise(scores)
    assert (found.n, found.minimum, found.maximum) == (8, 0.0, 1.0)
    assert [round(x, 3) for x in (found.mean, found.sd, found.p10, found.below_half)] == [0.781, 0.364, 0.35, 0.125]
    assert all(type(x) is float for x in (found.mean, found.sd, found.p10, found.below_half, found.minimum))


@pytest.mark.parametrize("nothing", [[], (), iter([]), np.array([])])
def test_nothing_has_no_figures(nothing):
    assert summarise(nothing) == UNDEFINED


def test_one_score_has_no_deviation():
    assert summarise([0.4]) == Summary(n=1, mean=0.4, sd=None, p10=0.4, below_half=1.0, minimum=0.4, maximum=0.4)


@pytest.mark.parametrize(("scores", "share"), [([0.5, 0.5], 0.0), ([0.4999, 0.5], 0.5), ([0.1], 1.0)])
def test_half_itself_is_not_below_half(scores, share):
    assert summarise(scores).below_half == share


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        ([0.5, math.nan], r"scores\[1\] must be finite, got nan"),
        (np.array([math.nan]), r"scores\[0\] must be finite, got nan"),
        ([math.inf], r"scores\[0\] must be finite, got inf"),
        ([0.5, None], r"scores\[1\] must be a number, got NoneType"),
        ([True], r"scores\[0\] must be a number, got bool"),
        (["0.5"], r"scores\[0\] must be a number, got str"),
        (np.array([[0.5]]), r"scores\[0\] must be a number, got list"),
        ("0.5", "scores must be a sequence of numbers, got str"),
        (0.5, "scores must be a sequence of numbers, got float"),
    ],
)
def test_what_is_no_score_is_refused(scores, said):
    with pytest.raises(ValueError, match=said):
        summarise(scores)


@given(st.lists(st.floats(min_value=0, max_value=1), min_size=2, max_size=50))
def test_it_agrees_with_others(scores):
    found = summarise(scores)
    assert found.mean == pytest.approx(statistics.fmean(scores), abs=1e-12)
    assert found.sd == pytest.approx(float(np.std(scores, ddof=1)), abs=1e-9)
    assert found.p10 == pytest.approx(float(np.percentile(scores, 10)), abs=1e-12)
    assert found.minimum <= found.p10 <= found.maximum
    assert found.minimum <= found.mean <= found.maximum
