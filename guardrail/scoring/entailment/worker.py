"""Where models run: a few daemon threads per process, off the event loop."""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar, TypeVarTuple

from guardrail.errors import ConfigurationError

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class ScoringWorker:
    """Runs synchronous scoring code in first-in-first-out order, without blocking any event loop.

    One worker serves several event loops and survives a fork. Its threads are daemons, so a stuck model never keeps
    the interpreter alive. Whoever calls :meth:`run` waits for its own result: the queue can never be longer than the
    number of tasks that wait, which is the back-pressure.

    Args:
        threads: Number of threads. One is right for most models, which use more cores by themselves.

    Example:
        >>> asyncio.run(ScoringWorker().run(max, 1, 2))
        2
    """

    def __init__(self, threads: int = 1) -> None:
        if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
            raise ConfigurationError(f"threads must be an integer of at least 1, got {threads!r}")
        self.threads = threads
        self._reset()

    async def run(self, fn: Callable[[*Ts], T], *args: *Ts) -> T:
        """Call ``fn(*args)`` in a thread of the worker and wait for the result.

        The caller's context variables are visible in ``fn``, so spans that it opens nest under the caller's.

        Args:
            fn: Synchronous code.
            *args: Its arguments.

        Returns:
            What ``fn`` returns; its exceptions are raised here.

        On cancellation the call is dropped if it has not begun; otherwise it ends unobserved in its thread.
        """
        job = _Job(fn, args)
        self._submit(job)
        try:
            return await job.future  # type: ignore[no-any-return]
        except asyncio.CancelledError:
            self._drop(job)
            raise

    @property
    def queued(self) -> int:
        """Number of calls that have not begun."""
        with self._ready:
            return len(self._jobs)

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._jobs: deque[_Job] = deque()
        self._ready = threading.Condition()
        self._started = 0

    def _submit(self, job: _Job) -> None:
        if self._pid != os.getpid():
            self._reset()  # threads do not survive a fork, and the lock may have been held at that moment
        with self._ready:
            self._jobs.append(job)
            if self._started < self.threads:
                self._started += 1
                name = f"guardrail-scoring-{self._started}"
                threading.Thread(target=self._work, args=(self._jobs, self._ready), name=name, daemon=True).start()
            self._ready.notify()

    def _drop(self, job: _Job) -> None:
        with self._ready:
            if job in self._jobs:
                self._jobs.remove(job)

    @staticmethod
    def _work(jobs: deque[_Job], ready: threading.Condition) -> None:
        while True:
            with ready:
                while not jobs:
                    ready.wait()
                job = jobs.popleft()
            job.execute()
            del job  # an idle thread keeps no text alive


class _Job:
    """One call and the future of the task that waits for it."""

    __slots__ = ("args", "context", "fn", "future", "loop")

    def __init__(self, fn: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.fn = fn
        self.args = args
        self.context = contextvars.copy_context()
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()

    def execute(self) -> None:
        result: Any = None
        error: BaseException | None = None
        try:
            result = self.context.run(self.fn, *self.args)
        except (StopIteration, asyncio.CancelledError) as raised:
            # A future takes no StopIteration, and a cancellation that nobody asked for would look like one.
            error = RuntimeError(f"scoring code raised {type(raised).__name__}")
            error.__cause__ = raised
        except BaseException as raised:
            error = raised
        try:
            self.loop.call_soon_threadsafe(self._deliver, result, error)
        except RuntimeError:
            pass  # the loop has been closed: nobody waits any more

    def _deliver(self, result: Any, error: BaseException | None) -> None:
        if self.future.done():
            return
        if error is None:
            self.future.set_result(result)
        else:
            self.future.set_exception(error)


_shared_lock = threading.Lock()
_shared: ScoringWorker | None = None


def shared_worker() -> ScoringWorker:
    """The worker that models share unless they are given their own: one thread per process."""
    global _shared
    with _shared_lock:
        if _shared is None:
            _shared = ScoringWorker()
        return _shared
