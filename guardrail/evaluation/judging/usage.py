"""What a judge has cost so far."""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from guardrail.errors import ConfigurationError

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """A snapshot of what was asked and what it cost.

    Attributes:
        calls: Calls of the model, repeated ones included.
        cached: Questions that were answered without a call of their own.
        errors: How many questions ended without a readable reply, by error.
        prompt_tokens: Tokens sent, as far as the model reported them.
        completion_tokens: Tokens received, as far as the model reported them.
        cost: Price of these tokens, in the unit of the price that was given; ``None`` without a price.
        unmetered: Calls without token counts: they failed, or the model reports none. Their cost is not in ``cost``.
    """

    calls: int = 0
    cached: int = 0
    errors: Mapping[str, int] = field(default_factory=dict)
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    unmetered: int = 0


class UsageMeter:
    """Counts; any number of threads may use it.

    Args:
        price: Price of a million tokens sent and of a million tokens received, in any unit; ``None`` if unknown.

    Raises:
        ConfigurationError: If the price is not two finite numbers of at least 0.

    Example:
        >>> meter = UsageMeter((2.0, 8.0))
        >>> meter.called()
        >>> meter.metered(1_000, 10)
        >>> meter.snapshot().cost
        0.00208
    """

    def __init__(self, price: tuple[float, float] | None = None) -> None:
        self._price = None if price is None else _checked(price)
        self._lock = threading.Lock()
        self._calls = self._cached = self._sent = self._received = self._metered = 0
        self._errors: Counter[str] = Counter()

    def called(self) -> None:
        """Count a call that begins."""
        with self._lock:
            self._calls += 1

    def metered(self, sent: int, received: int) -> None:
        """Count the tokens of a call that reported them."""
        with self._lock:
            self._sent += sent
            self._received += received
            self._metered += 1

    def failed(self, error: str) -> None:
        """Count a question without a readable reply."""
        with self._lock:
            self._errors[error] += 1

    def spared(self) -> None:
        """Count a question that needed no call of its own."""
        with self._lock:
            self._cached += 1

    def snapshot(self) -> Usage:
        """What was counted so far."""
        with self._lock:
            cost = None
            if self._price is not None:
                cost = (self._sent * self._price[0] + self._received * self._price[1]) / _MILLION
            return Usage(
                calls=self._calls,
                cached=self._cached,
                errors=dict(self._errors),
                prompt_tokens=self._sent,
                completion_tokens=self._received,
                cost=cost,
                unmetered=self._calls - self._metered,
            )


def _checked(price: tuple[float, float]) -> tuple[float, float]:
    sent = received = math.nan
    if isinstance(price, tuple | list) and len(price) == 2 and not any(isinstance(value, str) for value in price):
        with suppress(TypeError, ValueError):
            sent, received = (float(value) for value in price)
    if not (0 <= sent < math.inf and 0 <= received < math.inf):
        raise ConfigurationError(
            f"price must be two numbers of at least 0, per million tokens sent and received, got {price!r}"
        )
    return sent, received
