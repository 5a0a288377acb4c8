"""Figures of a yes-or-no decision: ranking quality, hits and misses, and how far chance moves them.

The positive class is what the decision is meant to find; for a guard, the hallucinated answers. A figure that is not
defined, because a class or a decision never occurs, is ``None``, never NaN and never a flattering 0 or 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Confusion:
    """How often a decision was right and wrong, and the shares that follow.

    Attributes:
        true_positive: Positives that were found.
        false_positive: Negatives that were taken for positives.
        false_negative: Positives that were missed.
        true_negative: Negatives that were left alone.

    Example:
        >>> found = Confusion.of([True, True, False, False], [True, False, True, False])
        >>> found.precision, found.recall, found.f1, found.balanced_accuracy
        (0.5, 0.5, 0.5, 0.5)
    """

    true_positive: int
    false_positive: int
    false_negative: int
    true_negative: int

    @classmethod
    def of(cls, predicted: Sequence[bool], positive: Sequence[bool]) -> Confusion:
        """Count.

        Args:
            predicted: What was decided, per item.
            positive: What is true, per item.

        Raises:
            ValueError: If the lengths differ.
        """
        counts = Counter(zip(predicted, positive, strict=True))
        return cls(
            true_positive=counts[True, True],
            false_positive=counts[True, False],
            false_negative=counts[False, True],
            true_negative=counts[False, False],
        )

    @property
    def precision(self) -> float | None:
        """Share of the decisions "positive" that are right; ``None`` if there is none."""
        return _share(self.true_positive, self.true_positive + self.false_positive)

    @property
    def recall(self) -> float | None:
        """Share of the positives that were found; ``None`` without positives."""
        return _share(self.true_positive, self.true_positive + self.false_negative)

    @property
    def specificity(self) -> float | None:
        """Share of the negatives that were left alone; ``None`` without negatives."""
        return _share(self.true_negative, self.true_negative + self.false_positive)

    @property
    def f1(self) -> float | None:
        """Harmonic mean of precision and recall, 0 if no positive was found; ``None`` without positives."""
        if self.recall is None:
            return None
        return _share(2 * self.true_positive, 2 * self.true_positive + self.false_positive + self.false_negative)

    @property
    def balanced_accuracy(self) -> float | None:
        """Mean of recall and specificity; ``None`` if there is only one class."""
        if self.recall is None or self.specificity is None:
            return None
        return (self.recall + self.specificity) / 2


def auroc(scores: Sequence[float], positive: Sequence[bool]) -> float | None:
    """Area under the ROC curve: P(a positive scores higher than a negative), ties count half.

    This is the Mann-Whitney statistic U divided by the number of pairs, from ranks, in O(n log n).

    Args:
        scores: One finite or infinite number per item; higher means more likely positive.
        positive: What is true, per item.

    Returns:
        A number in [0, 1]; ``None`` if there is only one class.

    Raises:
        ValueError: If the lengths differ or a score is NaN.

    Example:
        >>> auroc([0.9, 0.4, 0.4, 0.1], [True, True, False, False])
        0.875
        >>> auroc([0.9, 0.4], [True, True]) is None
        True
    """
    ranks, truth = _ranks(scores, positive)
    return _auroc(ranks, truth)


def bootstrap(
    scores: Sequence[float],
    predicted: Sequence[bool],
    positive: Sequence[bool],
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> dict[str, Interval | None]:
    """95 % confidence intervals of AUROC and F1 by the percentile bootstrap.

    Items are drawn with replacement as if they were independent; several answers to one prompt are not, so the
    intervals are then too narrow. Draws in which a figure is not defined are left out.

    Args:
        scores: As for :func:`auroc`.
        predicted: What was decided, per item.
        positive: What is true, per item.
        resamples: Number of draws, at least 1.
        seed: Equal seeds give equal intervals.

    Returns:
        ``{"auroc": (low, high), "f1": (low, high)}``, ``None`` in place of an interval for a figure that is not
        defined on the items themselves.

    Raises:
        ValueError: As for :func:`auroc`.

    Example:
        >>> bootstrap([0.9, 0.1] * 20, [True, False] * 20, [True, False] * 20)
        {'auroc': (1.0, 1.0), 'f1': (1.0, 1.0)}
    """
    ranks, truth = _ranks(scores, positive)
    whole = {"auroc": _auroc(ranks, truth), "f1": Confusion.of(predicted, positive).f1}
    cells = 2 * np.asarray(predicted, dtype=np.intp) + truth
    draws: dict[str, list[float]] = {name: [] for name in whole}
    random = np.random.default_rng(seed)
    for _ in range(resamples if len(truth) else 0):
        drawn = random.integers(len(truth), size=len(truth))
        true_negative, false_negative, false_positive, true_positive = np.bincount(cells[drawn], minlength=4).tolist()
        confusion = Confusion(
            true_positive=true_positive,
            false_positive=false_positive,
            false_negative=false_negative,
            true_negative=true_negative,
        )
        for name, value in (("auroc", _auroc(ranks[drawn], truth[drawn])), ("f1", confusion.f1)):
            if value is not None:
                draws[name].append(value)
    return {name: None if value is None else _middle(draws[name]) for name, value in whole.items()}


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _ranks(scores: Sequence[float], positive: Sequence[bool]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The position of each score among the different scores, and the truth as 0 and 1."""
    values = np.asarray(scores, dtype=np.float64)
    truth = np.asarray(positive, dtype=np.intp)
    if len(values) != len(truth):
        raise ValueError(f"{len(values)} scores for {len(truth)} items")
    if np.isnan(values).any():
        raise ValueError("a score is NaN")
    return np.unique(values, return_inverse=True)[1].reshape(-1), truth


def _auroc(ranks: NDArray[np.intp], truth: NDArray[np.intp]) -> float | None:
    positives = np.bincount(ranks[truth == 1])
    negatives = np.bincount(ranks[truth == 0], minlength=len(positives))
    pairs = int(positives.sum()) * int(negatives.sum())
    if not pairs:
        return None
    twice_below = 2 * np.cumsum(negatives) - negatives  # per rank: negatives below count twice, equal ones once
    return int(positives @ twice_below[: len(positives)]) / (2 * pairs)


def _middle(values: list[float]) -> Interval | None:
    if not values:
        return None
    bounds: Any = np.percentile(values, (2.5, 97.5))
    return float(bounds[0]), float(bounds[1])
