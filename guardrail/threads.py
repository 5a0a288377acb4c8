"""Runs synchronous user code beside the event loop: one daemon thread per call, items handed over one by one."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from guardrail.channel import Channel, ChannelEnd

_log = logging.getLogger("guardrail")

_ITEMS_AHEAD = 64
_CLOSE_GRACE_S = 0.1


def is_sync_stream(value: object) -> bool:
    """Whether a value is something that yields chunks one after the other (an iterator, not a container)."""
    return isinstance(value, Iterator) or (
        hasattr(value, "__iter__") and hasattr(value, "close") and not isinstance(value, (str, bytes, bytearray))
    )


class ThreadCall:
    """Calls a synchronous function in a thread of its own.

    The thread also iterates and closes what the function returns if that is an iterator, so that generators see one
    thread throughout. Context variables of the caller are visible in it. A thread that is stuck in user code cannot
    be stopped: it is left behind, closes its iterator as soon as it gets control back, and never keeps the
    interpreter alive.

    Args:
        function: Called without arguments.
    """

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function
        self._loop = asyncio.get_running_loop()
        self._items: Channel[Any] = Channel(maxsize=_ITEMS_AHEAD)
        self._room = threading.Semaphore(_ITEMS_AHEAD)
        self._stopped = threading.Event()
        self._finished: asyncio.Future[None] = self._loop.create_future()
        self._result: asyncio.Future[Any] = self._loop.create_future()

    async def start(self) -> Any:
        """Run the function and return what it returned; an iterator is returned as an async one with ``aclose``."""
        context = contextvars.copy_context()
        thread = threading.Thread(target=context.run, args=(self._body,), name="guardrail-generator", daemon=True)
        thread.start()
        try:
            return await self._result
        except asyncio.CancelledError:
            self.stop()
            raise

    async def next_item(self) -> Any:
        """The next item of the iterator; raises ``ChannelEnd`` after the last."""
        item = await self._items.get()
        self._room.release()
        return item

    async def wait_closed(self) -> None:
        """Give the thread a moment to close its iterator."""
        if not self._finished.done():
            await asyncio.wait({self._finished}, timeout=_CLOSE_GRACE_S)
        if not self._finished.done():
            _log.warning("a synchronous generator is still busy; it is closed as soon as it returns control")

    def stop(self) -> None:
        """Ask the thread to close its iterator and end."""
        self._stopped.set()
        self._room.release()

    def _body(self) -> None:
        try:
            value = self._function()
            if self._stopped.is_set():
                self._post(_close_late, value)
            elif is_sync_stream(value):
                self._post(_settle, self._result, _ThreadStream(self))
                self._pump(value)
            else:
                self._post(_settle, self._result, value)
        except BaseException as error:  # handed to the loop, whatever it is
            self._post(_fail, self._result, error)
        finally:
            self._post(_settle, self._finished, None)

    def _pump(self, value: Any) -> None:
        error: BaseException | None = None
        try:
            for item in () if self._stopped.is_set() else value:
                self._room.acquire()
                if self._stopped.is_set():
                    break
                self._post(self._items.put_nowait, item)
        except BaseException as raised:
            error = _carriable(raised)
        finally:
            close = getattr(value, "close", None)
            if callable(close):
                with suppress(Exception):
                    close()
        self._post(self._items.close, error)

    def _post(self, function: Callable[..., None], *args: Any) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody is left to tell
            self._loop.call_soon_threadsafe(function, *args)


class _ThreadStream:
    """The items of a :class:`ThreadCall` as an async iterator, which may be closed before its first read."""

    def __init__(self, call: ThreadCall) -> None:
        self._call = call

    def __aiter__(self) -> _ThreadStream:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self._call.next_item()
        except ChannelEnd:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        self._call.stop()
        await self._call.wait_closed()


_closing: set[asyncio.Task[None]] = set()


def _close_late(value: object) -> None:
    """Close what a call returned after nobody wanted it any more; its close may be a coroutine function."""

    async def close() -> None:
        with suppress(Exception):
            await close_source(value)

    task = asyncio.get_running_loop().create_task(close())
    _closing.add(task)
    task.add_done_callback(_closing.discard)


async def close_source(source: object) -> None:
    """Close something once, by whatever closing method it has: ``aclose`` or ``close``, sync or async."""
    for name in ("aclose", "close"):
        method = getattr(source, name, None)
        if callable(method):
            result = method()
            if inspect.isawaitable(result):
                await result
            return


def _settle(future: asyncio.Future[Any], value: Any) -> None:
    if not future.done():
        future.set_result(value)


def _fail(future: asyncio.Future[Any], error: BaseException) -> None:
    if not future.done():
        future.set_exception(_carriable(error))


def _carriable(error: BaseException) -> Exception:
    """Exceptions that steer control flow (StopIteration, GeneratorExit, SystemExit) mean nothing in another thread."""
    if isinstance(error, Exception) and not isinstance(error, (StopIteration, StopAsyncIteration)):
        return error
    wrapped = RuntimeError(f"the generator raised {type(error).__name__}")
    wrapped.__cause__ = error
    return wrapped
