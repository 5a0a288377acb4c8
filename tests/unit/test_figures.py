"""Figures of a decision, against brute force and by hand."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail.evaluation.figures import Confusion, auroc, bootstrap

ITEMS = st.lists(st.tuples(st.sampled_from([-1.0, 0.0, 0.1, 0.3, 0.5, 1.0, 2.5]), st.booleans()), max_size=30)
FLOATS = st.lists(st.tuples(st.floats(allow_nan=False), st.booleans()), max_size=20)
DECISIONS = st.lists(st.tuples(st.booleans(), st.booleans()), max_size=30)


def _split(items):
    return [first for first, _ in items], [second for _, second in items]


def _auroc_by_pairs(items):
    positives = [score for score, positive in items if positive]
    negatives = [score for score, positive in items if not positive]
    pairs = list(itertools.product(positives, negatives))
    return sum(1.0 if p > n else 0.5 if p == n else 0.0 for p, n in pairs) / len(pairs) if pairs else None


@given(ITEMS | FLOATS)
def test_auroc_is_the_share_of_pairs_in_the_right_order(items):
    expected = _auroc_by_pairs(items)
    found = auroc(*_split(items))
    assert found is expected if expected is None else found == pytest.approx(expected, abs=1e-12)


@given(ITEMS)
def test_auroc_of_the_reversed_order_is_the_rest(items):
    scores, positive = _split(items)
    found = auroc(scores, positive)
    if found is not None:
        assert auroc([-s for s in scores], positive) == pytest.approx(1 - found)
        assert auroc(scores, [not p for p in positive]) == pytest.approx(1 - found)


@pytest.mark.parametrize(
    ("scores", "positive", "said"),
    [([0.1], [True, False], "1 scores for 2 items"), ([0.1, math.nan], [True, False], "NaN")],
)
def test_scores_that_cannot_be_ranked_are_errors(scores, positive, said):
    with pytest.raises(ValueError, match=said):
        auroc(scores, positive)


@given(DECISIONS)
def test_shares_are_what_counting_gives(items):
    predicted, positive = _split(items)
    found = Confusion.of(predicted, positive)
    hits = sum(p and t for p, t in items)
    left = sum(not p and not t for p, t in items)
    share = {
        "precision": (hits, sum(predicted)),
        "recall": (hits, sum(positive)),
        "specificity": (left, len(items) - sum(positive)),
    }
    for name, (part, whole) in share.items():
        assert getattr(found, name) == (part / whole if whole else None)


@given(DECISIONS)
def test_f1_and_balanced_accuracy_are_means_of_their_parts(items):
    found = Confusion.of(*_split(items))
    if found.recall is None:
        assert found.f1 is None
    elif found.precision is None or not found.precision + found.recall:
        assert found.f1 == 0
    else:
        harmonic = 2 * found.precision * found.recall / (found.precision + found.recall)
        assert found.f1 == pytest.approx(harmonic)
    one_class = found.recall is None or found.specificity is None
    assert (found.balanced_accuracy is None) == one_class
    if not one_class:
        assert found.balanced_accuracy == pytest.approx((found.recall + found.specificity) / 2)


def test_a_decision_for_every_item_is_needed():
    with pytest.raises(ValueError, match="zip"):
        Confusion.of([True], [True, False])


def test_intervals_hold_the_figure_and_narrow_with_more_items():
    pattern = ([0.9, 0.8, 0.3, 0.6, 0.2, 0.1], [True, True, False, True, False, False], [1, 1, 1, 0, 0, 0])
    widths = []
    for repeats in (5, 50):
        scores, predicted, positive = (list(part) * repeats for part in pattern)
        positive = [bool(p) for p in positive]
        found = bootstrap(scores, predicted, positive)
        whole = {"auroc": auroc(scores, positive), "f1": Confusion.of(predicted, positive).f1}
        for name, (low, high) in found.items():
            assert 0 <= low < whole[name] < high <= 1
        widths.append([high - low for low, high in found.values()])
    assert all(narrow < wide / 2 for wide, narrow in zip(*widths, strict=True))


def test_the_same_seed_gives_the_same_intervals():
    items = ([0.9, 0.2, 0.4, 0.1], [True, False, True, False], [True, True, False, False])
    first = bootstrap(*items, seed=3)
    assert first == bootstrap(*items, seed=3)


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0]), st.booleans(), st.booleans()), max_size=8))
def test_there_is_an_interval_exactly_where_there_is_a_figure(items):
    scores, predicted, positive = ([item[i] for item in items] for i in range(3))
    found = bootstrap(scores, predicted, positive, resamples=200)
    assert (found["auroc"] is None) == (auroc(scores, positive) is None)
    assert (found["f1"] is None) == (Confusion.of(predicted, positive).f1 is None)
    assert all(0 <= low <= high <= 1 for low, high in (i for i in found.values() if i is not None))
