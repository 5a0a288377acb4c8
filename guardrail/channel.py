"""A bounded hand-over from any number of senders to one receiver on the same event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class ChannelEnd(Exception):
    """The sender has ended and everything was received."""


class Channel(Generic[T]):
    """A queue with an end: the sender closes it, with or without an error, and nothing that was sent is lost.

    Args:
        maxsize: How many items may wait; a sender waits while it is full.
        on_get: Called with every item at the moment it is received.
    """

    __slots__ = ("_closed", "_error", "_getter", "_items", "_maxsize", "_on_get", "_putters")

    def __init__(self, maxsize: int, *, on_get: Callable[[T], None] | None = None) -> None:
        self._items: deque[T] = deque()
        self._maxsize = maxsize
        self._on_get = on_get
        self._getter: asyncio.Future[None] | None = None
        self._putters: list[asyncio.Future[None]] = []
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
        await self._wait_until_fewer(self._maxsize)
        self.put_nowait(item)

    async def drained(self) -> None:
        """Wait until everything that was sent has been received."""
        await self._wait_until_fewer(1)

    async def _wait_until_fewer(self, count: int) -> None:
        while len(self._items) >= count:
            turn = asyncio.get_running_loop().create_future()
            self._putters.append(turn)
            try:
                await turn
            finally:
                self._putters.remove(turn)

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
        for turn in self._putters:  # all of them: each looks again whether its turn has come
            _wake(turn)
        if self._on_get is not None:
            self._on_get(item)
        return item


def _wake(waiter: asyncio.Future[None] | None) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)
