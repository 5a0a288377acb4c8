"""A limiter whose time passes only when a test says so: sleepers are woken by a clock that jumps to the next alarm."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from itertools import count
from typing import Any

from guardrail.limits.local import LocalLimiter
from guardrail.protocols import Decision
from guardrail.testing import ManualClock


class VirtualLimiter(LocalLimiter):
    """As the real one; ``alarms_set`` counts how often somebody went to sleep, ``taken`` lists what was charged."""

    def __init__(self, limits: Any, **options: Any) -> None:
        self.time = ManualClock(1000.0)
        super().__init__(limits, clock=self.time, **options)
        self.alarms_set = 0
        self.taken: list[tuple[float, Hashable, int]] = []
        self._alarms: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()

    def _set_alarm(self, delay_s: float, ring: Callable[[], None]) -> Callable[[], None]:
        self.alarms_set += 1
        alarm = (self.time() + delay_s, next(self._numbers), ring)
        heapq.heappush(self._alarms, alarm)

        def call_off() -> None:
            if alarm in self._alarms:
                self._alarms.remove(alarm)
                heapq.heapify(self._alarms)

        return call_off

    def _take(self, slot: Hashable, milli: int, now: int) -> Any:
        self.taken.append((round(self.elapsed_s, 6), slot, milli))
        return super()._take(slot, milli, now)

    @property
    def elapsed_s(self) -> float:
        return self.time() - 1000.0

    def ring_next(self) -> bool:
        """Jump to the next alarm and ring it; says whether there was one."""
        if not self._alarms:
            return False
        at, _, ring = heapq.heappop(self._alarms)
        self.time.advance(max(at - self.time(), 0.0))
        ring()
        return True

    async def pass_time(self, until_s: float) -> None:
        """Let everybody act, alarm by alarm, up to a time."""
        await turns()
        while self._alarms and self._alarms[0][0] <= 1000.0 + until_s + 1e-9:
            self.ring_next()
            await turns()
        self.time.advance(max(1000.0 + until_s - self.time(), 0.0))

    def at_rest(self) -> bool:
        """Whether nobody waits, and nothing is kept for anybody who did."""
        return len(self._gate) == 0 and not self._sleepers


@dataclass
class Grant:
    name: Any
    at_s: float
    decision: Decision


class Crowd:
    """Waiters of one limiter, and what they got, in order."""

    def __init__(self, limiter: VirtualLimiter) -> None:
        self.limiter = limiter
        self.grants: list[Grant] = []
        self.refusals: list[Grant] = []
        self.tasks: list[asyncio.Task[None]] = []

    def add(self, name: Any, key: str = "k", cost: float = 1.0, timeout_s: float | None = None) -> asyncio.Task[None]:
        async def wait() -> None:
            decision = await self.limiter.acquire(key, cost, timeout_s)
            grant = Grant(name, round(self.limiter.elapsed_s, 6), decision)
            (self.grants if decision.allowed else self.refusals).append(grant)

        task = asyncio.create_task(wait())
        self.tasks.append(task)
        return task

    @property
    def names(self) -> list[Any]:
        return [grant.name for grant in self.grants]

    @property
    def times(self) -> list[float]:
        return [grant.at_s for grant in self.grants]

    async def served(self) -> None:
        """Let time pass until nobody waits; fails if that does not happen."""
        for _ in range(1000):
            if all(task.done() for task in self.tasks):
                return
            await turns()
            self.limiter.ring_next()
        raise AssertionError("somebody waits for ever")


async def turns(number: int = 6) -> None:
    """Let every task run until it waits."""
    for _ in range(number):
        await asyncio.sleep(0)
