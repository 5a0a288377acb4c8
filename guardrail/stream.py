"""What the reader of an answer holds: an async iterator of checked text that can be closed at any moment."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import suppress
from types import TracebackType

from guardrail.channel import ChannelEnd
from guardrail.engine import Run
from guardrail.errors import StreamStateError
from guardrail.events import Event, Finished, Released
from guardrail.pacing import Pace
from guardrail.types import Outcome

_beginnings = Pace(4)


class GuardedStream:
    """The guarded answer of one request.

    Iterating it gives text that has passed; :meth:`events` gives everything a reader may know. Nothing happens before
    the first read: no generator call, no span, no charge. Use it as an async context manager, or close it, whenever
    you may stop early: ``break`` alone leaves closing to the garbage collector.

    Args:
        open_run: Creates the run; called at the first read with whether the reader understands retractions.

    Raises (while iterating):
        GenerationError: If the first attempt's generator fails, or falls silent.
        DeadlineExceededError: If the run takes too long and no attempt has come to a decision.
        RateLimitedError: If a limiter refuses the first attempt.
        ScoringError: If the checker fails and ``Policy.on_error`` is ``"raise"``.
        StreamStateError: If it is read after it was closed, or by two readers at once.

    Cancelling a read, or closing, ends the run: the generator's stream is closed, queued scoring is dropped and every
    span is ended before the cancellation goes on. A generator whose own clean-up hangs is left behind after two
    seconds, with a warning in the log ``guardrail``.

    Example:
        >>> import asyncio
        >>> from guardrail import Guardrail
        >>> async def show():
        ...     stream = Guardrail().stream(
        ...         lambda question, context: "It opens at ten.", question="When?", context=["It opens at ten."])
        ...     async with stream:
        ...         return [text async for text in stream]
        >>> asyncio.run(show())
        ['It opens at ten.']
    """

    def __init__(self, open_run: Callable[[bool], Run]) -> None:
        self._open_run = open_run
        self._run: Run | None = None
        self._task: asyncio.Task[None] | None = None
        self._reading = False
        self._retractable: bool | None = None
        self._closed = False
        self._ended = False
        self._complete = False
        self._error: BaseException | None = None

    def __aiter__(self) -> AsyncIterator[str]:
        return self

    async def __anext__(self) -> str:
        if self._retractable:
            raise StreamStateError("this stream is read as retractable events: text alone could not be taken back")
        while True:
            event = await self._next_event(retractable=False)
            if isinstance(event, Released) and event.text:
                return event.text

    def events(self, *, retractable: bool = False) -> AsyncIterator[Event]:
        """Iterate over events instead of text.

        Args:
            retractable: Promise that this reader removes text when a ``Retracted`` event says so. Failures after a
                partial release are then followed by a clean new attempt.

        Returns:
            An iterator over reader-safe events; the last one is ``Finished``.

        Raises:
            StreamStateError: If the stream was begun with the other setting.
        """
        if self._retractable not in (None, retractable):
            raise StreamStateError("this stream was begun with another value of retractable")
        return _Events(self, retractable)

    async def outcome(self) -> Outcome:
        """Run to the end and return how it ended; text that was not read yet is not lost, it is in the outcome.

        Raises:
            What iterating raises; the error's ``outcome`` attribute holds what is known.
            StreamStateError: If the stream was closed before its first read.
        """
        while not self._ended:
            try:
                await self._next_event(retractable=bool(self._retractable))
            except StopAsyncIteration:
                break
        if self._error is not None:
            raise self._error
        if self._run is None or self._run.outcome is None:
            raise StreamStateError("the stream was closed before its first read: there is no outcome")
        return self._run.outcome

    def __await__(self) -> Generator[None, None, Outcome]:
        return self.outcome().__await__()

    async def aclose(self) -> None:
        """End the run and wait until everything it opened is closed. Idempotent; safe while a read is pending."""
        self._closed = self._ended = True
        task = self._task
        if task is None:
            return
        task.cancel()
        await _wait_for_end(task)

    async def __aenter__(self) -> GuardedStream:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _next_event(self, *, retractable: bool) -> Event:
        if self._ended:
            if self._closed and not self._complete:
                raise StreamStateError("the stream was closed before its end")
            raise StopAsyncIteration
        if self._reading:
            raise StreamStateError("two readers at once: a stream has one reader")
        self._reading = True
        try:
            run = self._run or await self._begin(retractable)
            event = await run.events.get()
        except ChannelEnd:
            self._ended = True
            self._complete = self._complete or not self._closed
            raise StopAsyncIteration from None
        except asyncio.CancelledError:
            self._ended = True
            await self.aclose()
            raise
        except BaseException as error:
            self._ended = True
            self._error = error
            raise
        finally:
            self._reading = False
        if isinstance(event, Finished):
            self._ended = self._complete = True
        return event

    async def _begin(self, retractable: bool) -> Run:
        self._retractable = retractable
        await _beginnings.turn()
        if self._closed:
            raise ChannelEnd
        self._run = run = self._open_run(retractable)
        self._task = asyncio.create_task(run.execute(), name="guardrail-run")
        _keep(self._task, run)
        weakref.finalize(self, _cancel_from_anywhere, self._task, asyncio.get_running_loop()).atexit = False
        return run


class _Events:
    """The events of a stream as an iterator of its own, so that closing it while a read is pending is safe."""

    def __init__(self, stream: GuardedStream, retractable: bool) -> None:
        self._stream = stream
        self._retractable = retractable

    def __aiter__(self) -> _Events:
        return self

    async def __anext__(self) -> Event:
        return await self._stream._next_event(retractable=self._retractable)

    async def aclose(self) -> None:
        await self._stream.aclose()


_running: set[asyncio.Task[None]] = set()


def _keep(task: asyncio.Task[None], run: Run) -> None:
    """Event loops hold tasks weakly; a run must reach its end to close what it opened.

    A task that is cancelled before its first step never gets to close its channel: a reader would wait for ever.
    """
    _running.add(task)
    task.add_done_callback(_running.discard)
    task.add_done_callback(lambda done: run.events.close(None if done.cancelled() else done.exception()))


def _cancel_from_anywhere(task: asyncio.Task[None], loop: asyncio.AbstractEventLoop) -> None:
    """The stream was dropped without being closed, possibly in another thread, possibly after its loop has ended."""
    if not task.done():
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(task.cancel)


async def _wait_for_end(task: asyncio.Task[None]) -> None:
    """Wait for a cancelled task; a cancellation of the caller goes on once the task has ended."""
    interrupted = False
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            interrupted = True
    if interrupted:
        raise asyncio.CancelledError
