"""Calls that nobody waits for any more."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

_left: set[asyncio.Task[Any]] = set()  # the event loop itself holds tasks only weakly


async def leave(tasks: Iterable[asyncio.Task[Any]], grace_s: float) -> int:
    """Cancel what is under way and give it a moment to end.

    Args:
        tasks: Tasks of the running loop. What those raise that are done, or end later, is not logged.
        grace_s: Most seconds to wait.

    Returns:
        How many did not end: they go on, and nobody hears of them any more.

    If the caller is cancelled meanwhile, it waits no longer.

    Example:
        >>> async def show():
        ...     return await leave([asyncio.create_task(asyncio.sleep(60))], 1.0)
        >>> asyncio.run(show())
        0
    """
    pending = set[asyncio.Task[Any]]()
    for task in tasks:
        if task.done():
            _ended(task)
        else:
            task.cancel()
            _left.add(task)
            task.add_done_callback(_ended)
            pending.add(task)
    if not pending:
        return 0
    _, stuck = await asyncio.wait(pending, timeout=grace_s)
    return len(stuck)


def _ended(task: asyncio.Task[Any]) -> None:
    _left.discard(task)
    if not task.cancelled():
        task.exception()  # somebody has looked: asyncio would log the message, which may quote a text
