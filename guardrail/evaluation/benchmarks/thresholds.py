"""The threshold at which F1 is best on a set itself: what no threshold that was fixed before can exceed there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from guardrail.evaluation.figures import Confusion


@dataclass(frozen=True, slots=True, kw_only=True)
class BestThreshold:
    """Figures of flagging whatever scores at least ``threshold``, which was chosen on the same items.

    It is an upper bound and no promise: on other items the same threshold does less well.

    Attributes:
        threshold: Lowest score that is flagged.
        f1: The highest F1 that any threshold has.
        precision: Share of the flagged items that are positive.
        recall: Share of the positive items that are flagged.
        balanced_accuracy: At this threshold, not the best of all.
    """

    threshold: float
    f1: float | None
    precision: float | None
    recall: float | None
    balanced_accuracy: float | None


def best_threshold(scores: Sequence[float], positive: Sequence[bool]) -> BestThreshold | None:
    """Find the threshold with the best F1, the highest of several.

    Args:
        scores: One number per item; higher means more likely positive.
        positive: What is true, per item.

    Returns:
        The threshold with its figures; ``None`` if there is only one class, where flagging everything, or nothing, is
        always right.

    Raises:
        ValueError: If the lengths differ or a score is NaN.

    Example:
        >>> best_threshold([0.9, 0.7, 0.4, 0.1], [True, False, True, False])
        BestThreshold(threshold=0.4, f1=0.8, precision=0.6666666666666666, recall=1.0, balanced_accuracy=0.75)
    """
    values, truth = np.asarray(scores, dtype=np.float64), np.asarray(positive, dtype=np.bool_)
    if len(values) != len(truth):
        raise ValueError(f"{len(values)} scores for {len(truth)} items")
    if np.isnan(values).any():
        raise ValueError("a score is NaN")
    positives = int(truth.sum())
    if positives in (0, len(truth)):
        return None
    order = np.argsort(-values, kind="stable")
    found = np.cumsum(truth[order])
    flagged = np.arange(1, len(values) + 1)
    last_of_its_score = np.append(np.diff(values[order]) != 0, True)  # equal scores are flagged together
    f1 = np.where(last_of_its_score, 2 * found / (flagged + positives), -1.0)
    threshold = float(values[order][int(np.argmax(f1))])
    confusion = Confusion.of([bool(value >= threshold) for value in values], [bool(is_so) for is_so in truth])
    return BestThreshold(
        threshold=threshold,
        f1=confusion.f1,
        precision=confusion.precision,
        recall=confusion.recall,
        balanced_accuracy=confusion.balanced_accuracy,
    )
