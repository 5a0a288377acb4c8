"""Many scores in a few figures: how good they are on average, how far they spread, how bad the bad ones are."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

HALF = 0.5
_LOW_PERCENT = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Figures of many scores. A figure that is not defined is ``None``.

    Attributes:
        n: Number of scores.
        mean: Their mean; ``None`` without scores.
        sd: Sample standard deviation, with n − 1; ``None`` for fewer than two scores.
        p10: 10th percentile, interpolated linearly between scores; ``None`` without scores.
        below_half: Share of the scores below 0.5; ``None`` without scores.
        minimum: The lowest score; ``None`` without scores.
        maximum: The highest score; ``None`` without scores.
    """

    n: int
    mean: float | None
    sd: float | None
    p10: float | None
    below_half: float | None
    minimum: float | None
    maximum: float | None


def summarise(scores: Iterable[float]) -> Summary:
    """Summarise scores.

    Args:
        scores: Finite numbers: a list, any iterable, or a one-dimensional numpy array.

    Returns:
        The figures, as plain Python numbers.

    Raises:
        ValueError: If a score is not a finite number; the message names its position.

    Example:
        >>> found = summarise([1, 1, 0.75, 1, 0, 0.5, 1, 1])
        >>> [round(x, 3) for x in (found.mean, found.sd, found.p10, found.below_half)]
        [0.781, 0.364, 0.35, 0.125]
        >>> summarise([]).mean is None, summarise([0.9]).sd is None
        (True, True)
    """
    values = sorted(finite(value, f"scores[{at}]") for at, value in enumerate(_flat(scores)))
    n = len(values)
    if not n:
        return Summary(n=0, mean=None, sd=None, p10=None, below_half=None, minimum=None, maximum=None)
    # A mean of equal scores must not leave their range by a rounding error.
    mean = min(max(math.fsum(values) / n, values[0]), values[-1])
    return Summary(
        n=n,
        mean=mean,
        sd=math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1)) if n > 1 else None,
        p10=_percentile(values, _LOW_PERCENT),
        below_half=sum(value < HALF for value in values) / n,
        minimum=values[0],
        maximum=values[-1],
    )


def finite(value: Any, name: str) -> float:
    """A number as a ``float``.

    Args:
        value: What should be a number.
        name: What the error calls it.

    Raises:
        ValueError: If it is not a finite number.
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ValueError(f"{name} must be a number, got {type(value).__name__}")
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, got {number!r}")
    return number


def _flat(scores: Any) -> Iterable[Any]:
    # Arrays and tensors turn into Python numbers by themselves; whatever is no flat list of numbers fails afterwards.
    values = scores.tolist() if hasattr(scores, "tolist") else scores
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise ValueError(f"scores must be a sequence of numbers, got {type(scores).__name__}")
    return values


def _percentile(ordered: Sequence[float], percent: int) -> float:
    whole, hundredths = divmod((len(ordered) - 1) * percent, 100)
    low, high = ordered[whole], ordered[min(whole + 1, len(ordered) - 1)]
    return low + (high - low) * hundredths / 100
