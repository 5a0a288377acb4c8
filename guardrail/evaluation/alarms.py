"""Whether quality fell: the newest value against those before it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from guardrail.evaluation.summary import finite

DEFAULT_WINDOW = 4
WARNING_FALL = 0.05
CRITICAL_FALL = 0.10
LOW_IS_GOOD = frozenset(
    {
        *("refused", "contradicted", "unverifiable", "contradiction"),
        *("delta_r", "worst_delta_r", "reference_delta_r"),
    }
)
"""Metrics in [0, 1] of which a low score is good."""
_ROUNDING = 1e-9  # (0.8 − 0.76) / 0.8 is not quite 0.05 in binary


class AlarmLevel(StrEnum):
    """How bad a fall is."""

    OK = "ok"
    WARNING = "warning"
    CRITICAL = "critical"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """The newest value against the mean of those before it.

    Attributes:
        level: How bad it is.
        value: The newest value.
        base: The mean of the ``window`` values before it.
        fall: By which share of ``base`` the value is lower: 0.1 is a fall by 10 %, negative is a rise. 0.0 for a base
            of 0, from which nothing can fall.
    """

    level: AlarmLevel
    value: float
    base: float
    fall: float


def alarm(
    history: Sequence[float],
    *,
    window: int = DEFAULT_WINDOW,
    warning: float = WARNING_FALL,
    critical: float = CRITICAL_FALL,
) -> Alarm | None:
    """Judge the newest value of a history.

    Args:
        history: Values in [0, 1] of which higher is better, oldest first, such as a mean score per day.
        window: How many values before the newest make the base; at least 1.
        warning: Fall from which on it is a warning, as a share of the base, above 0.
        critical: Fall from which on it is critical; not below ``warning``.

    Returns:
        The alarm, with level ``ok`` if there is none; ``None`` if there are fewer than ``window`` values before the
        newest.

    Raises:
        ValueError: If one of the values that are looked at is not a number in [0, 1], or a setting is out of range.

    Example:
        >>> found = alarm([0.88, 0.86, 0.89, 0.87, 0.85, 0.84, 0.82, 0.76])
        >>> found.level.value, round(found.base, 3), f"{found.fall:.1%}"
        ('critical', 0.845, '10.1%')
        >>> alarm([0.88, 0.86]) is None
        True
    """
    if isinstance(window, bool) or not isinstance(window, int) or window < 1:
        raise ValueError(f"window must be a whole number of at least 1, got {window!r}")
    if not 0.0 < warning <= critical <= 1.0:
        raise ValueError(f"0 < warning <= critical <= 1 does not hold for warning {warning!r}, critical {critical!r}")
    if len(history) <= window:
        return None
    first = len(history) - window - 1
    *before, value = (_share(history[at], f"history[{at}]") for at in range(first, len(history)))
    base = math.fsum(before) / window
    fall = (base - value) / base if base else 0.0
    if fall >= critical - _ROUNDING:
        level = AlarmLevel.CRITICAL
    elif fall >= warning - _ROUNDING:
        level = AlarmLevel.WARNING
    else:
        level = AlarmLevel.OK
    return Alarm(level=level, value=value, base=base, fall=fall)


def alarms(
    history: Sequence[float],
    *,
    window: int = DEFAULT_WINDOW,
    warning: float = WARNING_FALL,
    critical: float = CRITICAL_FALL,
) -> list[Alarm | None]:
    """What :func:`alarm` would have said at every value of a history.

    Args:
        history: As for :func:`alarm`.
        window: As for :func:`alarm`.
        warning: As for :func:`alarm`.
        critical: As for :func:`alarm`.

    Returns:
        One entry per value, ``None`` for the first ``window``.

    Raises:
        ValueError: As for :func:`alarm`.

    Example:
        >>> [found and found.level.value for found in alarms([0.8, 0.8, 0.76, 0.7], window=2)]
        [None, None, 'warning', 'critical']
    """
    return [
        alarm(history[max(0, end - window - 1) : end], window=window, warning=warning, critical=critical)
        for end in range(1, len(history) + 1)
    ]


def metric_alarms(
    means: Sequence[float], *, low_is_good: bool = False, window: int = DEFAULT_WINDOW
) -> list[Alarm | None]:
    """What :func:`alarm` says at every mean of a metric, whichever end of its scale is good.

    Args:
        means: One value per stretch of time, oldest first.
        low_is_good: Whether a low score is good, see :data:`LOW_IS_GOOD`; then what is left to 1 is looked at: a share
            of refusals that rises from 0.1 to 0.2 is a fall of 0.9 to 0.8.
        window: As for :func:`alarm`.

    Returns:
        One entry per value; only ``None`` for a metric that leaves [0, 1], as its zero is no natural one.

    Raises:
        ValueError: If a value is not a finite number, or the window is out of range.

    Example:
        >>> [found and found.level.value for found in metric_alarms([0.1, 0.2], low_is_good=True, window=1)]
        [None, 'critical']
    """
    values = [finite(value, f"means[{at}]") for at, value in enumerate(means)]
    if not all(0.0 <= value <= 1.0 for value in values):
        return [None] * len(values)
    return alarms([1.0 - value for value in values] if low_is_good else values, window=window)


def _share(value: object, name: str) -> float:
    number = finite(value, name)
    if not 0.0 <= number <= 1.0:
        raise ValueError(f"{name} must be in [0, 1], got {number!r}")
    return number
