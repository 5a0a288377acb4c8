"""How long an event loop is busy between two looks at its selector: what every other task has to wait for."""

from __future__ import annotations

import asyncio
import selectors
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
    """

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)


class _TimedSelector(selectors.DefaultSelector):  # type: ignore[misc, valid-type]
    """Asked once per turn, so what lies between two questions is the turn."""

    def __init__(self, turns: LoopTurns) -> None:
        super().__init__()
        self._turns = turns
        self._woken: tuple[float, float] | None = None

    def select(self, timeout: float | None = None) -> Any:
        if self._woken is not None:
            self._turns.wall.append(time.perf_counter() - self._woken[0])
            self._turns.cpu.append(time.thread_time() - self._woken[1])
        ready = super().select(timeout)
        self._woken = time.perf_counter(), time.thread_time()
        return ready


def run_timed(main: Coroutine[Any, Any, T]) -> tuple[T, LoopTurns]:
    """``asyncio.run`` on a loop whose turns are measured.

    Args:
        main: What to run.

    Returns:
        What it returns, and the turns that the loop took for it.
    """
    turns = LoopTurns()
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(_TimedSelector(turns))) as runner:
        return runner.run(main), turns
