"""What has been charged to one limit, kept in this process. Plain arithmetic: no waiting, no locks, no I/O."""

from __future__ import annotations

from collections import deque
from typing import Any, Protocol

from asyncio_throttle.throttler import Throttler

from guardrail.limits.costs import GcraTerms, period_us, rate_milli
from guardrail.limits.limit import Limit

_FINE_ENTRIES = 1000
"""So many entries a log keeps apart; beyond that it joins neighbours."""


class Meter(Protocol):
    """The state of one limit. Amounts are thousandths of its unit, times microseconds."""

    def wait_us(self, amount: int, now: int) -> int:
        """How long until ``amount`` fits if nothing else is charged: 0 if it fits now.

        More than the capacity means charges one after another, each as early as it fits: when the last one does.
        """
        ...

    def take(self, amount: int, now: int) -> Any:
        """Charge, whether it fits or not; what comes back is for :meth:`settle`."""
        ...

    def note(self, amount: int, now: int) -> None:
        """Charge what another limiter let through: it takes what is there and makes no lasting debt."""
        ...

    def settle(self, mark: Any, before: int, after: int, now: int) -> Any:
        """Change a charge of ``before`` into one of ``after``, made when that was made; returns its new mark."""
        ...

    def left(self, now: int) -> int:
        """What still fits now."""
        ...

    def idle(self, now: int) -> bool:
        """Whether it is as good as new."""
        ...


class GcraMeter:
    """A gcra limit: one number, the time at which the bucket is full again.

    Example:
        >>> meter = GcraMeter(GcraTerms.of(Limit(2, 10.0, burst=2)))
        >>> [meter.wait_us(1000, 0), meter.take(2000, 0), meter.wait_us(1000, 0)]
        [0, 10000000, 5000000]
    """

    __slots__ = ("_full_at", "_terms")

    def __init__(self, terms: GcraTerms) -> None:
        self._terms = terms
        self._full_at = 0

    def wait_us(self, amount: int, now: int) -> int:
        """See :class:`Meter`."""
        terms = self._terms
        return max(max(self._full_at, now) + terms.interval_us(amount) - terms.tolerance_us - now, 0)

    def take(self, amount: int, now: int) -> int:
        """See :class:`Meter`."""
        self._full_at = max(self._full_at, now) + self._terms.interval_us(amount)
        return self._full_at

    def note(self, amount: int, now: int) -> None:
        """See :class:`Meter`."""
        empty = now + self._terms.tolerance_us
        self._full_at = max(self._full_at, min(max(self._full_at, now) + self._terms.interval_us(amount), empty))

    def settle(self, mark: int, before: int, after: int, now: int) -> int:
        """See :class:`Meter`."""
        difference = self._terms.interval_us(after) - self._terms.interval_us(before)
        if difference > 0:
            self._full_at = max(self._full_at, mark)
        else:
            # What has come in since the charge cannot be given back as well: the bucket would run over.
            difference = -min(-difference, max(mark - now, 0))
        self._full_at += difference
        return mark + difference

    def left(self, now: int) -> int:
        """See :class:`Meter`."""
        return self._terms.left_milli(self._terms.tolerance_us - max(self._full_at - now, 0))

    def idle(self, now: int) -> bool:
        """See :class:`Meter`."""
        return self._full_at <= now


class WindowLog(Throttler):
    """A window limit: the log of asyncio-throttle, whose entries also say how much.

    The log and :meth:`flush` are the throttler's, with two differences: the time is the limiter's, and an entry leaves
    exactly one period after its stamp (windows are half-open). Waiting is not: a throttler polls, and serves whoever
    happens to come next.

    Charges of one moment share an entry. A log that has a thousand entries also joins charges that lie less than a
    thousandth of the period apart, at the later time; that can make a wait longer by as much, never shorter.

    Example:
        >>> log = WindowLog(Limit(2, 10.0))
        >>> _ = log.take(1000, now=0), log.take(1000, now=4_000_000)
        >>> log.wait_us(1000, now=5_000_000), log.wait_us(1000, now=10_000_000)
        (5000000, 0)
    """

    rate_limit: int
    period: int
    _task_logs: deque[_Entry]  # type: ignore[assignment]

    def __init__(self, limit: Limit) -> None:
        super().__init__(rate_limit=rate_milli(limit), period=period_us(limit))
        self._used = 0

    def flush(self, now: int) -> None:  # type: ignore[override]
        """Drop what has left the window."""
        log = self._task_logs
        while log and now - log[0].stamp >= self.period:
            entry = log.popleft()
            entry.log = None
            self._used -= entry.amount

    async def acquire(self) -> None:
        """Not for use: who waits for a log, and in what order, is the limiter's business."""
        raise TypeError("a log of a limit does not wait: ask wait_us(), then take()")

    def wait_us(self, amount: int, now: int) -> int:
        """See :class:`Meter`."""
        self.flush(now)
        periods, rest = divmod(amount - 1, self.rate_limit)
        missing = self._used + rest + 1 - self.rate_limit
        delay = 0
        for entry in self._task_logs:
            if missing <= 0:
                break
            missing -= entry.amount
            delay = entry.stamp + self.period - now
        return periods * self.period + delay

    def take(self, amount: int, now: int) -> _Entry:
        """See :class:`Meter`."""
        self.flush(now)
        log = self._task_logs
        entry = log[-1] if log else None
        if entry is None or not self._joins(entry, now):
            entry = _Entry(self, max(now, entry.stamp) if entry else now)
            log.append(entry)
        entry.stamp = max(now, entry.stamp)
        entry.amount += amount
        self._used += amount
        return entry

    def note(self, amount: int, now: int) -> None:
        """See :class:`Meter`."""
        self.take(amount, now)  # whose entry leaves by itself

    def _joins(self, entry: _Entry, now: int) -> bool:
        if now <= entry.stamp:
            return True
        return len(self._task_logs) >= _FINE_ENTRIES and now - entry.since < self.period // _FINE_ENTRIES

    def settle(self, mark: _Entry, before: int, after: int, now: int) -> _Entry:
        """See :class:`Meter`."""
        self.flush(now)
        if mark.log is self:
            mark.amount += after - before
            self._used += after - before
        return mark

    def left(self, now: int) -> int:
        """See :class:`Meter`."""
        self.flush(now)
        return max(self.rate_limit - self._used, 0)

    def idle(self, now: int) -> bool:
        """See :class:`Meter`."""
        self.flush(now)
        return not self._task_logs


class _Entry:
    """What was charged at ``stamp``, or from ``since`` to then."""

    __slots__ = ("amount", "log", "since", "stamp")

    def __init__(self, log: WindowLog, stamp: int) -> None:
        self.log: WindowLog | None = log
        self.since = stamp
        self.stamp = stamp
        self.amount = 0
