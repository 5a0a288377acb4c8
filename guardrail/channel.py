"""A bounded hand-over between one sender and one receiver on the same event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class ChannelEnd(Exception):
    """The sender has ended and everything was received."""


class Channel(Generic[T]):
    """A queue with an end: the sender closes it, with or without an error, and nothing that was sent is lost.

    Args:
        maxsize: How many items may wait; a sender waits while it is full.
    """

    __slots__ = ("_closed", "_error", "_getter", "_items", "_maxsize", "_putter")

    def __init__(self, maxsize: int) -> None:
        self._items: deque[T] = deque()
        self._maxsize = maxsize
        self._getter: asyncio.Future[None] | None = None
        self._putter: asyncio.Future[None] | None = None
        self._closed = False
        self._error: BaseException | None = None

    @property
    def full(self) -> bool:
        """Whether a sender would have to wait."""
        return len(self._items) >= self._maxsize

    def put_nowait(self, item: T) -> None:
        """Send without waiting, also beyond the bound: for items of which there are few."""
        self._items.append(item)
        _wake(self._getter)

    async def put(self, item: T) -> None:
        """Send, waiting while the channel is full. On cancellation nothing was sent."""
        while self.full:
            self._putter = asyncio.get_running_loop().create_future()
            try:
                await self._putter
            finally:
                self._putter = None
        self.put_nowait(item)

    def close(self, error: BaseException | None = None) -> None:
        """End the channel; the receiver gets what is queued, then the error or the end. Idempotent."""
        if not self._closed:
            self._closed = True
            self._error = error
            _wake(self._getter)

    async def get(self) -> T:
        """Receive.

        Raises:
            ChannelEnd: If the sender closed without an error.
            BaseException: The error with which the sender closed.

        On cancellation nothing is lost.
        """
        while not self._items:
            if self._closed:
                if self._error is not None:
                    raise self._error
                raise ChannelEnd
            self._getter = asyncio.get_running_loop().create_future()
            try:
                await self._getter
            finally:
                self._getter = None
        item = self._items.popleft()
        _wake(self._putter)
        return item


def _wake(waiter: asyncio.Future[None] | None) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)
