"""Asynchronous work for synchronous callers, also for those inside a running event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Coroutine, Generator
from concurrent.futures import Future, wait
from types import TracebackType
from typing import Any, TypeVar

T = TypeVar("T")
_END: Any = object()


class LoopThread:
    """An event loop in a thread of its own.

    A loop of its own works wherever the caller is, and goes on between two reads of a stream, so that generation and
    checking overlap with what the caller does. Context variables of the caller are visible in it. Used as a context
    manager; at its end every task in the loop has ended and every asynchronous generator is closed.

    Example:
        >>> async def twice(number):
        ...     return 2 * number
        >>> with LoopThread() as loop:
        ...     loop.run(twice(21))
        42
    """

    def __init__(self) -> None:
        self._started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="guardrail-sync", daemon=True)

    def __enter__(self) -> LoopThread:
        self._thread.start()
        self._loop, self._stop = self._started.result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    async def _serve(self) -> None:
        stop = asyncio.Event()
        self._started.set_result((asyncio.get_running_loop(), stop))
        await stop.wait()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for a coroutine.

        An interrupt of the caller (Ctrl-C) cancels it, and goes on once it has ended.
        """
        ended: Future[None] = Future()
        future: Future[T] = Future()
        cancel: list[asyncio.Task[None]] = []

        async def settle() -> None:
            try:
                future.set_result(await work)
            except BaseException as error:  # handed to the caller's thread, whatever it is
                future.set_exception(error)
            finally:
                ended.set_result(None)

        # The callback runs in the caller's context variables, and so does the task that it creates.
        self._loop.call_soon_threadsafe(lambda: cancel.append(asyncio.ensure_future(settle())))
        try:
            wait([ended])
        except BaseException:
            self._loop.call_soon_threadsafe(lambda: cancel[0].cancel())
            wait([ended])
            raise
        return future.result()

    def iterate(self, items: AsyncGenerator[T, None]) -> Generator[T, None, None]:
        """The items of an asynchronous generator; closing this iterator closes it."""
        try:
            while (item := self.run(_next(items))) is not _END:
                yield item
        finally:
            self.run(items.aclose())


async def _next(items: AsyncGenerator[T, None]) -> T:
    return await anext(items, _END)
