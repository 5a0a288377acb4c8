"""Closes what LangChain leaves open when a stream ends early.

Sequences and models of langchain-core drop the stream inside them instead of closing it, and after a cancellation the
traceback may keep it alive until the garbage collector runs: a provider's connection stays open, and bills. So the
asynchronous generators that an attempt begins are watched, and those of langchain-core are closed with it.
"""

from __future__ import annotations

import asyncio
import sys
import weakref
from collections.abc import AsyncGenerator, Callable
from contextvars import ContextVar
from typing import Any

_Opened = list["weakref.ref[AsyncGenerator[Any, Any]]"]
_opened: ContextVar[_Opened | None] = ContextVar("guardrail_opened", default=None)
_CORE = "langchain_core."
_LAYERS = 16


class _Watcher:
    """The hook of the event loop, which also notes generators that are begun under :func:`watch`."""

    def __init__(self, following: Callable[[AsyncGenerator[Any, Any]], None] | None) -> None:
        self._following = following

    def __call__(self, generator: AsyncGenerator[Any, Any]) -> None:
        opened = _opened.get()
        if opened is not None:
            opened.append(weakref.ref(generator))
        if self._following is not None:
            self._following(generator)


def watch() -> _Opened:
    """Note every asynchronous generator that is begun from here on, in this task and in tasks that it creates.

    Returns:
        The list of them, outermost first.
    """
    hook = sys.get_asyncgen_hooks().firstiter
    if not isinstance(hook, _Watcher):  # the loop puts its own hooks back when it stops
        sys.set_asyncgen_hooks(firstiter=_Watcher(hook))
    opened: _Opened = []
    _opened.set(opened)
    return opened


async def close_watched(opened: _Opened) -> None:
    """Close what langchain-core has left of an attempt.

    Args:
        opened: What :func:`watch` has noted.

    A generator in the middle of a step is left to the task that runs it. What the closed generators held is closed by
    the event loop in turns of its own, one per layer; these are waited for.
    """
    for reference in opened:
        generator: Any = reference()
        frame = None if generator is None else getattr(generator, "ag_frame", None)
        if frame is None or generator.ag_running or not frame.f_globals.get("__name__", "").startswith(_CORE):
            continue
        await generator.aclose()
        del generator, frame
    for _ in range(_LAYERS):
        await asyncio.sleep(0)
