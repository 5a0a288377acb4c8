"""One limit for a whole run, which stands still while the reader of the answer takes their time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType


class Deadline:
    """An async context manager that cancels its body after ``timeout_s`` seconds, pauses excluded.

    Args:
        timeout_s: The limit in seconds; ``None`` for no limit.

    Raises:
        TimeoutError: On exit, if the limit was exceeded; :attr:`expired` tells it from any other ``TimeoutError``.
    """

    def __init__(self, timeout_s: float | None) -> None:
        self._timeout_s = timeout_s
        self._timer = asyncio.timeout(None)
        self._entered = False
        self._active = False
        self._pauses = 0
        self._left: float | None = None

    @property
    def expired(self) -> bool:
        """Whether the limit was exceeded."""
        return self._entered and self._timer.expired()

    def remaining_s(self) -> float | None:
        """Seconds left; ``None`` without a limit."""
        when = self._timer.when()
        return None if when is None else max(0.0, when - asyncio.get_running_loop().time())

    async def __aenter__(self) -> Deadline:
        await self._timer.__aenter__()
        self._entered = self._active = True
        if self._timeout_s is not None:
            self._timer.reschedule(asyncio.get_running_loop().time() + self._timeout_s)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._active = False
        await self._timer.__aexit__(kind, error, traceback)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the clock for the body."""
        if self._pauses == 0 and self._active and not self._timer.expired():
            self._left = self.remaining_s()
            self._timer.reschedule(None)
        self._pauses += 1
        try:
            yield
        finally:
            self._pauses -= 1
            if self._pauses == 0 and self._active and self._left is not None and not self._timer.expired():
                self._timer.reschedule(asyncio.get_running_loop().time() + self._left)
