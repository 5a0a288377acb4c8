"""How long an event loop is busy between two looks at its selector: what every other task has to wait for."""

from __future__ import annotations

import asyncio
import gc
import selectors
import threading
import time
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass
class LoopTurns:
    """One entry per turn of a loop, in seconds.

    Attributes:
        wall: Time from the end of one wait to the beginning of the next.
        cpu: The part of it in which the loop's thread ran; a busy machine does not change it.
        collector: The part of that in which the interpreter looked for garbage among all objects of the process, which
            takes as long as the process is large, whatever the turn was about.
    """

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    collector: list[float] = field(default_factory=list)

    @property
    def work(self) -> list[float]:
        """``cpu`` without ``collector``."""
        return [cpu - collector for cpu, collector in zip(self.cpu, self.collector, strict=True)]


class _TimedSelector(selectors.DefaultSelector):  # type: ignore[misc, valid-type]
    """Asked once per turn, so what lies between two questions is the turn."""

    def __init__(self, turns: LoopTurns, collections: _Collections) -> None:
        super().__init__()
        self._turns = turns
        self._collections = collections
        self._woken: tuple[float, float] | None = None

    def select(self, timeout: float | None = None) -> Any:
        if self._woken is not None:
            self._turns.wall.append(time.perf_counter() - self._woken[0])
            self._turns.cpu.append(time.thread_time() - self._woken[1])
            self._turns.collector.append(self._collections.taken())
        ready = super().select(timeout)
        self._collections.taken()
        self._woken = time.perf_counter(), time.thread_time()
        return ready


class _Collections:
    """Seconds that one thread has spent in full collections."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self._began = self._total = 0.0

    def __call__(self, phase: str, info: dict[str, int]) -> None:
        if info["generation"] < 2 or threading.get_ident() != self._thread:
            return
        if phase == "start":
            self._began = time.thread_time()
        else:
            self._total += time.thread_time() - self._began

    def taken(self) -> float:
        """What it was since the last call."""
        total, self._total = self._total, 0.0
        return total


def run_timed(main: Coroutine[Any, Any, T]) -> tuple[T, LoopTurns]:
    """``asyncio.run`` on a loop whose turns are measured.

    Args:
        main: What to run.

    Returns:
        What it returns, and the turns that the loop took for it.
    """
    turns, collections = LoopTurns(), _Collections()
    gc.callbacks.append(collections)
    try:
        with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(_TimedSelector(turns, collections))) as own:
            return own.run(main), turns
    finally:
        gc.callbacks.remove(collections)


class TurnCounter:
    """Counts the turns of the running loop while it is entered; nothing is measured, so it is the same every time.

    Attributes:
        now: Number of the turn that is going on.
    """

    def __init__(self) -> None:
        self.now = 0

    async def __aenter__(self) -> TurnCounter:
        self._counting = asyncio.create_task(self._count())
        await asyncio.sleep(0)
        return self

    async def _count(self) -> None:
        while True:
            self.now += 1
            await asyncio.sleep(0)

    async def __aexit__(self, *_: object) -> None:
        self._counting.cancel()
