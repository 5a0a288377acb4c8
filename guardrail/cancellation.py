"""Telling a cancellation that was asked for from one that user code raised by itself."""

from __future__ import annotations

import asyncio


def cancelled_from_outside() -> bool:
    """Whether the current task was asked to end; a ``CancelledError`` without that comes from code inside it."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
