"""Faithfulness: the mean of the entailment scores of an answer's claims, with a strict mode."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Real
from typing import Any


def faithfulness(claim_scores: Iterable[float], strict_threshold: float | None = None) -> float:
    """Average the claims of an answer; in strict mode one bad claim spoils it.

    Args:
        claim_scores: One entailment score in [0, 1] per claim: a list, a tuple, any iterable, or a one-dimensional
            numpy array.
        strict_threshold: With a value in [0, 1], a single score below it makes the result 0.0; a score equal to it
            passes. ``None`` switches strict mode off.

    Returns:
        The mean as a plain ``float`` in [0, 1]; 0.0 without claims, as nothing was shown to be faithful.

    Raises:
        ValueError: If a score or the threshold is not a finite number in [0, 1].

    Example:
        >>> faithfulness([0.9, 0.8, 1.0])
        0.9
        >>> faithfulness([0.95, 0.6, 1.0], strict_threshold=0.7)
        0.0
    """
    threshold = None if strict_threshold is None else _unit(strict_threshold, "strict_threshold")
    scores = [_unit(value, f"claim_scores[{i}]") for i, value in enumerate(_values(claim_scores))]
    if not scores:
        return 0.0
    if threshold is not None and min(scores) < threshold:
        return 0.0
    return math.fsum(scores) / len(scores)


def _values(claim_scores: Any) -> Iterable[Any]:
    # Arrays and tensors turn into Python numbers by themselves; whatever is no flat list of numbers fails in _unit.
    values = claim_scores.tolist() if hasattr(claim_scores, "tolist") else claim_scores
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise ValueError(f"claim_scores must be a sequence of numbers, got {type(claim_scores).__name__}")
    return values


def _unit(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ValueError(f"{name} must be a number in [0, 1], got {type(value).__name__}")
    number = float(value)
    if not 0.0 <= number <= 1.0:  # false for NaN, too
        raise ValueError(f"{name} must be in [0, 1], got {number!r}")
    return number
