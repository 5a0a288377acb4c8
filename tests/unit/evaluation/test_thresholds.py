"""The best threshold of a set, against trying all of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail.evaluation.benchmarks.thresholds import best_threshold
from guardrail.evaluation.figures import Confusion

ITEMS = st.lists(st.tuples(st.sampled_from([-1.0, 0.0, 0.1, 0.5, 0.9, 2.5]), st.booleans()), max_size=12)


@given(ITEMS)
def test_no_threshold_has_a_better_f1(items):
    scores, positive = [score for score, _ in items], [is_so for _, is_so in items]
    found = best_threshold(scores, positive)
    if len(set(positive)) < 2:
        assert found is None
        return
    tried = {t: Confusion.of([s >= t for s in scores], positive) for t in set(scores)}
    best = max(confusion.f1 for confusion in tried.values())
    assert found.f1 == best
    assert found.threshold == max(t for t, confusion in tried.items() if confusion.f1 == best)
    own = tried[found.threshold]
    assert (found.precision, found.recall) == (own.precision, own.recall)
    assert found.balanced_accuracy == own.balanced_accuracy


@pytest.mark.parametrize(
    ("scores", "positive", "said"),
    [([0.5, float("nan")], [True, False], "NaN"), ([0.5], [True, False], "1 scores for 2 items")],
)
def test_nonsense_is_an_error(scores, positive, said):
    with pytest.raises(ValueError, match=said):
        best_threshold(scores, positive)
