"""Work in one background thread with an event loop of its own, for those who must never wait for it."""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import threading
import time
import weakref
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar

from guardrail.errors import ConfigurationError

T = TypeVar("T")
_log = logging.getLogger("guardrail")
_AT_EXIT_S = 2.0
_CANCELLING_S = 1.0


class Background(Generic[T]):
    """Does one thing after the other in a daemon thread, which begins with the first.

    After a fork the child has a thread of its own; what was waiting belongs to the parent. When the interpreter exits,
    what is waiting gets two seconds.

    Args:
        work: Called for everything that is handed over, in the thread's event loop. An exception is logged.
        name: Name of the thread.
        max_waiting: How much may wait; at least 1.

    Raises:
        ConfigurationError: If ``max_waiting`` is no integer of at least 1.

    Example:
        >>> async def work(what):
        ...     background.count(what)
        >>> background = Background(work, name="example", max_waiting=2)
        >>> background.offer("tea"), background.close(10.0), background.offer("tea"), background.counts["tea"]
        (True, True, False, 1)
    """

    def __init__(self, work: Callable[[T], Awaitable[None]], *, name: str, max_waiting: int) -> None:
        if isinstance(max_waiting, bool) or not isinstance(max_waiting, int) or max_waiting < 1:
            raise ConfigurationError(f"max_waiting must be an integer of at least 1, got {max_waiting!r}")
        self._call = work
        self._name = name
        self._max_waiting = max_waiting
        self._closed = False
        self._changed = threading.Condition()
        self._waiting: deque[T] = deque()
        self._counts: Counter[str] = Counter()
        self._busy = False
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None
        _all.add(self)

    def offer(self, what: T) -> bool:
        """Hand something over; never waits for the work.

        Args:
            what: What to work on.

        Returns:
            ``False`` if it was not taken: too much is waiting, no thread can be started, or this is closed.
        """
        with self._changed:
            self._counts["offered"] += 1
            if self._closed or len(self._waiting) >= self._max_waiting or not self._has_thread():
                self._counts["dropped"] += 1
                return False
            self._waiting.append(what)
            self._changed.notify_all()
            return True

    def count(self, what: str) -> None:
        """Count something, in whatever thread."""
        with self._changed:
            self._counts[what] += 1

    @property
    def counts(self) -> Counter[str]:
        """What was counted, with ``"offered"`` and, of those, ``"dropped"``; a copy."""
        with self._changed:
            return +self._counts

    def flush(self, timeout_s: float | None = None) -> bool:
        """Wait until nothing is waiting or being worked on.

        Args:
            timeout_s: How long to wait; ``None`` for as long as it takes.

        Returns:
            Whether that is so.
        """
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting and not self._busy, timeout_s)

    def close(self, timeout_s: float | None = None) -> bool:
        """Take nothing more, and finish what is waiting; what is not finished in time is cancelled or dropped.

        Args:
            timeout_s: How long to wait; ``None`` for as long as it takes.

        Returns:
            Whether everything was finished.
        """
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        finished = self.flush(timeout_s)
        with self._changed:
            self._drop_waiting()
            thread, loop, task = self._thread, self._loop, self._task
        if not finished and loop is not None and task is not None:
            with suppress(RuntimeError):  # the loop has been closed: the task has ended
                loop.call_soon_threadsafe(task.cancel)
        if thread is not None and thread is not threading.current_thread():
            thread.join(_CANCELLING_S)  # a thread that is stuck outside its event loop is left behind
        return finished

    def _has_thread(self) -> bool:
        """Whether there is a thread, which is begun if there is none."""
        if self._thread is None:
            thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            try:
                thread.start()
            except RuntimeError:  # no more threads, or the interpreter is about to exit
                return False
            self._thread = thread
        return True

    def _run(self) -> None:
        try:
            with asyncio.Runner() as runner:
                with self._changed:
                    self._loop = runner.get_loop()
                try:
                    while self._take():
                        runner.run(self._work())
                finally:
                    with self._changed:
                        self._loop = None
        except BaseException as error:  # no event loop could be made, or something beside the work ended it
            _log.error("%s: its thread ended with %s", self._name, type(error).__name__)
        finally:
            with self._changed:  # what is offered next gets a thread of its own
                self._drop_waiting()
                self._busy, self._task, self._thread = False, None, None
                self._changed.notify_all()

    def _drop_waiting(self) -> None:
        self._counts["dropped"] += len(self._waiting)
        self._waiting.clear()

    def _take(self) -> bool:
        """Wait for something to do; ``False`` when there will be nothing more."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            self._busy = bool(self._waiting)
            return self._busy

    async def _work(self) -> None:
        try:
            with self._changed:
                what = self._waiting.popleft() if self._waiting else None
                self._task = asyncio.current_task()
            if what is not None:
                await self._call(what)
        except asyncio.CancelledError:
            _log.warning("%s: the work was not finished when it had to end", self._name)
        except BaseException as error:  # work that calls sys.exit must not end the thread
            _log.error("%s: the work failed with %s", self._name, type(error).__name__)
        finally:
            with self._changed:
                self._busy, self._task = False, None
                self._changed.notify_all()

    def after_fork(self) -> None:
        """Begin anew in a child process: threads do not survive a fork, and one may have held the lock."""
        self._changed = threading.Condition()
        self._waiting, self._counts = deque(), Counter()
        self._busy, self._thread, self._loop, self._task = False, None, None, None


_all: weakref.WeakSet[Background[Any]] = weakref.WeakSet()


def _forked() -> None:
    for background in list(_all):
        background.after_fork()


def _at_exit() -> None:
    give_up = time.monotonic() + _AT_EXIT_S
    for background in list(_all):
        background.close(max(0.0, give_up - time.monotonic()))


atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
