"""How limits, keys and charges are put for the scripts in Redis."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from guardrail.errors import ConfigurationError
from guardrail.limits.costs import MILLI, GcraTerms, amount, capacity_milli, check_name, digest_of, period_us
from guardrail.limits.limit import Limit
from guardrail.limits.script import ACQUIRE, SETTLE
from guardrail.redis_store import Call

_MOST = 10**15
"""Largest number that is handed to Redis: sums of a few with a time of today are still whole numbers in a script."""

_MOST_KNOWN = 1024
_LONGEST_KNOWN = 100
"""So many names are kept, of keys that are no longer than that; hashing takes longer than looking up."""


class KeyNames:
    """Names of the keys in Redis.

    A caller's key appears as a hash only, so what is in it decides about nothing: not about the length of a name, nor
    where its parts begin, nor which node of a cluster holds it. All names of one charge have the same hash tag. Where
    all keys share a limit, the tag is the limiter's name; otherwise it holds the caller's key, so that keys spread over
    a cluster.

    Args:
        name: Name of the limiter: 1 to 64 letters, digits, dots, hyphens and underscores.
        limits: Its limits. One that is changed counts afresh, under a name of its own.

    Raises:
        ConfigurationError: If the name has another form.

    Example:
        >>> KeyNames("chat", [Limit(60, 60.0)]).of("tenant-7")
        (b'{chat:b31b021eb330bb0d53a4c61f2e671183}:1fcbad202afc885c',)
    """

    __slots__ = ("_forms", "_known")

    def __init__(self, name: str, limits: Sequence[Limit]) -> None:
        check_name(name)
        together = any(limit.scope == "global" for limit in limits)
        tag = f"{{{name}}}" if together else f"{{{name}:%s}}"
        forms = []
        for limit in limits:
            who = "" if not together else ":all" if limit.scope == "global" else ":%s"
            forms.append(f"{tag}{who}:{digest_of(_spelled(limit), 8)}".encode())
        self._forms = tuple(forms)
        self._known: dict[str, tuple[bytes, ...]] = {}

    def of(self, key: str) -> tuple[bytes, ...]:
        """The names for a caller's key, one per limit."""
        known = self._known.get(key)
        if known is not None:
            return known
        hashed = digest_of(key, 16).encode()
        names = tuple([form.replace(b"%s", hashed) for form in self._forms])
        if len(key) <= _LONGEST_KNOWN:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[key] = names
        return names


class Terms:
    """A limit in the whole numbers that the scripts work with.

    Args:
        limit: The limit.
        tokens_per_call_milli: What a cost of 1 takes from a limit of tokens, in thousandths.

    Raises:
        ConfigurationError: If the limit is beyond what the scripts can count exactly.
    """

    __slots__ = ("_gcra", "_tokens_per_call_milli", "allowance", "capacity", "kind", "limit", "period")

    def __init__(self, limit: Limit, tokens_per_call_milli: int) -> None:
        self.limit = limit
        self.kind = "window" if limit.mode == "window" else "gcra"
        self.capacity = capacity_milli(limit)
        self.period = period_us(limit)
        self._gcra = GcraTerms.of(limit) if limit.mode == "gcra" else None
        self.allowance = self._gcra.tolerance_us if self._gcra else self.capacity
        self._tokens_per_call_milli = tokens_per_call_milli
        if max(self.capacity, self.period, self.allowance) > _MOST:
            raise ConfigurationError(
                f"the limit {limit} is beyond what can be counted in Redis: at most {_MOST // MILLI} units and "
                f"{_MOST // 10**6} s, also for a burst to come back"
            )

    def amount(self, cost_milli: int) -> int:
        """What a cost takes from this limit, in thousandths of its unit."""
        return amount(self.limit, cost_milli, self._tokens_per_call_milli)

    def argument(self, milli: int) -> int:
        """An amount as the scripts take it: an interval for gcra, the amount itself for a window."""
        return min(self._gcra.interval_us(milli) if self._gcra else milli, _MOST)

    def demand(self, milli: int) -> bytes:
        """An amount with what decides about it, as the script takes it."""
        return f"{self.kind} {self.argument(milli)} {self.allowance} {self.period}".encode()

    def left(self, state: int, now_us: int) -> float:
        """What is left after a charge, in units, from what the script answered."""
        if self._gcra:
            return self._gcra.left_milli(self.allowance - (state - now_us)) / MILLI
        return max(self.capacity - state, 0) / MILLI

    def earliest_s(self, first_s: float, first: int, behind: int) -> float:
        """Seconds before which an amount cannot pass that is queued behind another one, which waits for this limit.

        Args:
            first_s: How long the first one still waits.
            first: Its amount, in thousandths.
            behind: The amounts behind it together, up to and with the one in question.
        """
        if self._gcra:
            return first_s + self._gcra.interval_us(behind) / 1e6
        return first_s + (first + behind - 1) // self.capacity * self.period / 1e6


@dataclass(slots=True)
class Reservation:
    """A charge in Redis, as it is found again when it is settled.

    Attributes:
        id: Names the charge; random, so that no two processes name theirs alike, also not after a fork.
        terms: The limits.
        names: Names of the keys, one per limit.
        arguments: What was charged, as the scripts take it.
        states: What the script answered, per limit; for gcra the time when the bucket is full again.
    """

    id: str
    terms: tuple[Terms, ...]
    names: tuple[bytes, ...]
    arguments: list[int]
    states: list[int]


def new_id() -> str:
    """A name for a charge that no other charge has."""
    return os.urandom(12).hex()


def acquire_call(charge_id: str, names: tuple[bytes, ...], demands: tuple[bytes, ...]) -> Call:
    """The call that charges all limits, or none.

    It answers ``1 now state...`` if it charged, ``0 number wait`` if not: which limit refused, of several the one with
    the longest wait, counted from 1. Times are in microseconds.

    Args:
        charge_id: See :func:`new_id`.
        names: Names of the keys, one per limit.
        demands: What each limit is charged: :meth:`Terms.demand`.
    """
    return Call(ACQUIRE, names, (charge_id, *demands))


def undo_call(reservation: Reservation) -> Call | None:
    """The call that takes a charge back for good."""
    return settle_call(reservation, [0] * len(reservation.terms), window="undo")


def settle_call(reservation: Reservation, amounts: Sequence[int | None], *, window: str = "window") -> Call | None:
    """The call that replaces what was charged; the reservation takes note of what it will be then.

    Args:
        reservation: The charge.
        amounts: New amounts in thousandths; ``None`` for a limit whose charge stays.
        window: What becomes of an entry of a window: ``"window"`` changes it, ``"undo"`` removes it.

    Returns:
        The call, or ``None`` if nothing changes.
    """
    names: list[bytes] = []
    changes: list[str] = []
    for i, (term, milli) in enumerate(zip(reservation.terms, amounts, strict=True)):
        if milli is None:
            continue
        before, after = reservation.arguments[i], term.argument(milli)
        if before == after:
            continue
        names.append(reservation.names[i])
        kind = window if term.kind == "window" else term.kind
        changes.append(f"{kind} {before} {after} {reservation.states[i]}")
        reservation.arguments[i] = after
        reservation.states[i] += after - before
    return Call(SETTLE, tuple(names), (reservation.id, *changes)) if names else None


def refused(answer: Sequence[int]) -> tuple[int, float] | None:
    """Which limit refused, counted from 0, and for how many seconds; ``None`` if the answer grants the charge.

    Example:
        >>> refused([0, 2, 1500000]), refused([1, 1767225600000000, 1000])
        ((1, 1.5), None)
    """
    return None if answer[0] == 1 else (answer[1] - 1, answer[2] / 1e6)


def _spelled(limit: Limit) -> str:
    # 60 and 60.0 are one limit, so they are one key.
    numbers = (float(limit.rate), float(limit.period_s), float(limit.burst or 0))
    return " ".join(map(str, (*numbers, limit.mode, limit.unit, limit.scope)))
