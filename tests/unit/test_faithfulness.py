from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail.scoring.faithfulness import faithfulness

UNIT = st.floats(0.0, 1.0)


@pytest.mark.parametrize("kind", [list, tuple, iter, np.array], ids=["list", "tuple", "iterator", "array"])
@pytest.mark.parametrize(
    ("scores", "threshold", "expected"),
    [
        ([0.9, 0.8, 1.0], None, 0.9),
        ([0.95, 0.6, 1.0], 0.7, 0.0),
        ([0.95, 0.8, 1.0], 0.7, 0.9166666666666666),
        ([0.7, 0.7], 0.7, 0.7),
        ([0.0, 1.0], 0.0, 0.5),
        ([0.99], 1.0, 0.0),
        ([], None, 0.0),
        ([], 0.5, 0.0),
    ],
)
def test_values(kind, scores, threshold, expected):
    result = faithfulness(kind(scores), threshold)
    assert result == expected
    assert type(result) is float


def test_numpy_scalars_and_half_precision():
    assert faithfulness([np.float32(0.5), np.float64(1.0), 1, 0]) == 0.625
    assert type(faithfulness(np.array([0.5, 1.0], dtype=np.float16), np.float32(0.25))) is float


@pytest.mark.parametrize("bad", [math.nan, math.inf, -0.1, 1.1, True, None, "0.9", 0.5j])
def test_a_bad_score_or_threshold_is_named(bad):
    with pytest.raises(ValueError, match=r"claim_scores\[1\]"):
        faithfulness([0.5, bad])
    if bad is not None:
        with pytest.raises(ValueError, match="strict_threshold"):
            faithfulness([], bad)


@pytest.mark.parametrize("bad", [0.9, "0.9", b"1", None, np.array(0.9), np.ones((2, 2))])
def test_something_else_than_a_flat_sequence(bad):
    with pytest.raises(ValueError, match="claim_scores"):
        faithfulness(bad)


@given(scores=st.lists(UNIT, min_size=1), threshold=st.none() | UNIT)
def test_strict_mode_is_the_mean_or_nothing(scores, threshold):
    result = faithfulness(scores, threshold)
    if threshold is not None and min(scores) < threshold:
        assert result == 0.0
    else:
        assert min(scores) - 1e-12 <= result <= max(scores) + 1e-12
    assert result == faithfulness(sorted(scores), threshold)
