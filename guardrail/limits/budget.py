"""The regeneration budget: how many second attempts the first ones pay for."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import Any

from guardrail.errors import ConfigurationError
from guardrail.limits.costs import check_key, digest_of
from guardrail.protocols import Clock, Decision

_MILLIONTHS = 1_000_000
_MAX_WINDOW_S = 600


@dataclass(frozen=True, slots=True)
class BudgetTerms:
    """What a regeneration budget allows, as integers, so that every implementation decides alike.

    Args:
        share: Regenerations per first attempt, from 0 to 1.
        floor_per_min: Regenerations per minute that need no first attempts, 0 or more.
        window_s: Whole seconds that are looked back on, from 1 to 600.

    Raises:
        ConfigurationError: If a value is out of range.

    Example:
        >>> terms = BudgetTerms(share=0.2, floor_per_min=0.0)
        >>> [terms.allows(first_attempts=10, regenerations=used, attempt=2) for used in (0, 1, 2)]
        [True, True, False]
        >>> [terms.allows(first_attempts=10, regenerations=used, attempt=3) for used in (0, 1, 2)]
        [True, False, False]
    """

    share: float = 0.2
    floor_per_min: float = 10.0
    window_s: int = 60

    def __post_init__(self) -> None:
        _check_number("share", self.share, 1.0)
        _check_number("floor_per_min", self.floor_per_min, 1e8)
        whole = isinstance(self.window_s, int) and not isinstance(self.window_s, bool)
        if not whole or not 1 <= self.window_s <= _MAX_WINDOW_S:
            raise ConfigurationError(
                f"regeneration budget: window_s must be a whole number from 1 to {_MAX_WINDOW_S}, got {self.window_s!r}"
            )

    def check_that_something_passes(self) -> None:
        """See that the budget is not one of zero.

        Raises:
            ConfigurationError: If it would never allow anything.
        """
        if self.share_millionths == 0 and self.floor_millionths < _MILLIONTHS:
            raise ConfigurationError(
                "regeneration budget: with this share and floor_per_min no regeneration would ever be allowed; "
                "raise one of them, or set Policy(max_attempts=1) if there shall be none"
            )

    @property
    def share_millionths(self) -> int:
        """Millionths of a regeneration per first attempt."""
        return round(self.share * _MILLIONTHS)

    @property
    def floor_millionths(self) -> int:
        """Millionths of a regeneration per window that need no first attempt."""
        return round(self.floor_per_min * self.window_s / 60 * _MILLIONTHS)

    def allows(self, *, first_attempts: int, regenerations: int, attempt: int) -> bool:
        """Whether one more regeneration fits.

        Args:
            first_attempts: First attempts in the window.
            regenerations: Regenerations in the window, without this one.
            attempt: Number of the attempt that is asked for, from 2.
        """
        size = self.share_millionths * first_attempts + self.floor_millionths
        used = regenerations * _MILLIONTHS
        return used + _MILLIONTHS <= size and used * (attempt - 1) < size

    def left(self, *, first_attempts: int, regenerations: int) -> int:
        """How many regenerations (second attempts) are left in the window."""
        size = self.share_millionths * first_attempts + self.floor_millionths
        return max(0, size // _MILLIONTHS - regenerations)

    def __str__(self) -> str:
        return (
            f"regenerations: {self.share * 100:g} % of first attempts "
            f"and {self.floor_per_min:g} per minute, over {self.window_s} s"
        )


class RegenerationBudget:
    """A retry budget for the attempt loop, in process.

    When many answers fail at once (a bad index, a model that has changed), every request would cost three calls of the
    generator. The budget bounds that: per key, the regenerations of the last ``window_s`` seconds are at most
    ``share × first attempts + floor_per_min × window_s / 60``. It never waits, and it degrades in a fixed order: a
    second attempt may use the whole budget, a third one only while less than half of it is used, attempt *n* only while
    less than ``1 / (n − 1)`` of it is used. When it runs low, third attempts are given up first, then second ones; what
    the reader gets then is for ``Policy.on_exhausted`` to say.

    It counts by the second, so something counts for at least ``window_s − 1`` and at most ``window_s`` seconds. The
    memory is bounded: an entry per second and key, keys that were idle for a window are dropped, and past ``max_keys``
    those that have been idle longest are forgotten.

    Args:
        share: Regenerations per first attempt, from 0 (only the floor counts) to 1.
        floor_per_min: Regenerations per minute that every key has without any first attempts.
        window_s: Whole seconds that are looked back on, from 1 to 600.
        max_keys: Most keys that are remembered.
        clock: Monotonic seconds; for tests.

    Raises:
        ConfigurationError: If a value is out of range, or nothing would ever be allowed.

    One object serves any number of threads and event loops.

    Example:
        >>> import asyncio
        >>> budget = RegenerationBudget(share=0.0, floor_per_min=2)
        >>> async def show():
        ...     return [(await budget.take("tenant", attempt)).allowed for attempt in (2, 3, 2, 2)]
        >>> asyncio.run(show())
        [True, False, True, False]
    """

    def __init__(
        self,
        *,
        share: float = 0.2,
        floor_per_min: float = 10.0,
        window_s: int = 60,
        max_keys: int = 100_000,
        clock: Clock = time.monotonic,
    ) -> None:
        terms = BudgetTerms(share, floor_per_min, window_s)
        terms.check_that_something_passes()
        if not isinstance(max_keys, int) or isinstance(max_keys, bool) or max_keys < 1:
            raise ConfigurationError(f"regeneration budget: max_keys must be a whole number from 1, got {max_keys!r}")
        self._tally = Tally(terms, max_keys=max_keys, clock=clock)

    async def first(self, key: str) -> None:
        """Count a first attempt.

        Args:
            key: Who asks, for example a tenant.

        Raises:
            ConfigurationError: If the key is not a text.
        """
        self._tally.count(key, first_attempts=1)

    async def take(self, key: str, attempt: int) -> Decision:
        """Ask for a regeneration, and count it if it is allowed; never waits, so cancellation finds nothing to undo.

        Args:
            key: Who asks.
            attempt: Number of the attempt, from 2.

        Returns:
            The decision; ``remaining`` counts second attempts. There is no ``retry_after_s``, as that depends on the
            first attempts to come.

        Raises:
            ConfigurationError: If the key is not a text or ``attempt`` is not a whole number from 2.
        """
        return self._tally.take(key, attempt)


class _Counts:
    """What happened under one key, by the second."""

    __slots__ = ("_seconds", "first_attempts", "regenerations")

    def __init__(self) -> None:
        self._seconds: deque[list[int]] = deque()  # [second, first attempts, regenerations]
        self.first_attempts = 0
        self.regenerations = 0

    @property
    def newest(self) -> int:
        return self._seconds[-1][0]

    def add(self, second: int, first_attempts: int, regenerations: int) -> None:
        if not self._seconds or self.newest < second:
            self._seconds.append([second, 0, 0])
        self._seconds[-1][1] += first_attempts
        self._seconds[-1][2] += regenerations
        self.first_attempts += first_attempts
        self.regenerations += regenerations

    def forget_before(self, oldest: int) -> None:
        while self._seconds and self._seconds[0][0] < oldest:
            _, first_attempts, regenerations = self._seconds.popleft()
            self.first_attempts -= first_attempts
            self.regenerations -= regenerations


class Tally:
    """The counts behind a budget in process; its lock is never held across an ``await``.

    Args:
        terms: What is allowed.
        max_keys: Most keys that are remembered.
        clock: Monotonic seconds.

    Example:
        >>> tally = Tally(BudgetTerms(share=1.0, floor_per_min=0.0), max_keys=10)
        >>> tally.count("tenant", first_attempts=1)
        >>> tally.take("tenant", 2).allowed, tally.take("tenant", 2).allowed
        (True, False)
    """

    def __init__(self, terms: BudgetTerms, *, max_keys: int, clock: Clock = time.monotonic) -> None:
        self._terms = terms
        self._max_keys = max_keys
        self._clock = clock
        self._lock = threading.Lock()
        self._keys: OrderedDict[str, _Counts] = OrderedDict()  # by the time of their last count

    def count(self, key: str, *, first_attempts: int = 0, regenerations: int = 0) -> None:
        """Count what happened, whether or not the budget would have allowed it.

        Raises:
            ConfigurationError: If the key is not a text.
        """
        place = digest_of(check_key(key))
        with self._lock:
            self._add(place, math.floor(self._clock()), first_attempts, regenerations)

    def take(self, key: str, attempt: int) -> Decision:
        """See :meth:`RegenerationBudget.take`."""
        place = digest_of(check_key(key))
        check_attempt(attempt)
        with self._lock:
            now = math.floor(self._clock())
            counts = self._keys.get(place) or _Counts()
            counts.forget_before(now - self._terms.window_s + 1)
            first_attempts, regenerations = counts.first_attempts, counts.regenerations
            allowed = self._terms.allows(first_attempts=first_attempts, regenerations=regenerations, attempt=attempt)
            if allowed:
                self._add(place, now, 0, 1)
        left = self._terms.left(first_attempts=first_attempts, regenerations=regenerations + allowed)
        return Decision(
            allowed=allowed, remaining=float(left), source="local", limit="" if allowed else str(self._terms)
        )

    def _add(self, place: str, now: int, first_attempts: int, regenerations: int) -> None:
        oldest = now - self._terms.window_s + 1
        counts = self._keys.setdefault(place, _Counts())
        counts.forget_before(oldest)
        counts.add(now, first_attempts, regenerations)
        self._keys.move_to_end(place)
        while len(self._keys) > self._max_keys or next(iter(self._keys.values())).newest < oldest:
            self._keys.popitem(last=False)


def check_attempt(attempt: Any) -> None:
    """See that a budget is asked for a regeneration.

    Raises:
        ConfigurationError: If ``attempt`` is not a whole number from 2.
    """
    if not isinstance(attempt, int) or isinstance(attempt, bool) or attempt < 2:
        raise ConfigurationError(f"a regeneration is attempt number 2 or later, got {attempt!r}")


def _check_number(name: str, value: Any, high: float) -> None:
    fits = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    if not fits or not 0 <= value <= high:
        raise ConfigurationError(f"regeneration budget: {name} must be a number from 0 to {high:g}, got {value!r}")
