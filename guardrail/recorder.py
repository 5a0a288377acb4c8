"""Tells observers what happens, and guarantees that every step that began also ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from itertools import count
from typing import Any

from guardrail.events import Event, StepEnded, StepStarted
from guardrail.protocols import Observer, RunObserver

_log = logging.getLogger("guardrail")


class Recorder:
    """Fans events out to the observers of one run; an observer that fails is logged and never breaks the run.

    Args:
        observers: The observers.
    """

    def __init__(self, observers: Sequence[RunObserver]) -> None:
        self._observers = tuple(observers)
        self._ids = count(1)

    def notify(self, event: Event) -> None:
        """Tell every observer."""
        for observer in self._observers:
            try:
                observer.on_event(event)
            except Exception as error:
                _log.error("an observer raised %s on %s", type(error).__name__, type(event).__name__)

    @contextmanager
    def step(self, name: str, attempt: int, **attributes: Any) -> Iterator[dict[str, Any]]:
        """A piece of work: current for the code inside, ended exactly once, also on cancellation.

        Args:
            name: ``generate``, ``score``, ``rerank``, ``budget`` or ``limit``.
            attempt: The attempt it belongs to.
            **attributes: Known at the start.

        Yields:
            A dictionary for what becomes known in the meantime.
        """
        step_id = next(self._ids)
        self.notify(StepStarted(step_id=step_id, name=name, attempt=attempt, attributes=attributes))
        found: dict[str, Any] = {}
        failure: BaseException | None = None
        cancelled = False
        try:
            with ExitStack() as active:
                for observer in self._observers:
                    active.enter_context(_quietly(observer, step_id))
                yield found
        except (asyncio.CancelledError, GeneratorExit):
            cancelled = True
            raise
        except BaseException as error:
            failure = error
            raise
        finally:
            self.notify(StepEnded(step_id=step_id, attributes=found, error=failure, cancelled=cancelled))


@contextmanager
def _quietly(observer: RunObserver, step_id: int) -> Iterator[None]:
    manager: AbstractContextManager[None] | None = None
    try:
        manager = observer.activate(step_id)
        manager.__enter__()
    except Exception as error:
        _log.error("an observer raised %s on activate", type(error).__name__)
        manager = None
    try:
        yield
    finally:
        if manager is not None:
            with suppress(Exception):
                manager.__exit__(None, None, None)


def open_observers(observers: Sequence[Observer], run_id: str) -> tuple[RunObserver, ...]:
    """One observer per run; one that fails to open is logged and left out.

    Args:
        observers: The configured observers.
        run_id: The run.
    """
    opened: list[RunObserver] = []
    for observer in observers:
        try:
            opened.append(observer.open_run(run_id))
        except Exception as error:
            _log.error("an observer raised %s when a run was opened", type(error).__name__)
    return tuple(opened)
