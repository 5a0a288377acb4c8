"""A stand-in for a Redis store: a dictionary that can be slow, down or damaged."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from guardrail.redis_store import Call, StoreUnavailableError


class StubStore:
    """Keeps what the cache stores, without ends of life and bounds, and counts round trips.

    Attributes:
        values: What lies in it.
        down: Every call fails with this reason, if any.
        gate: Writes wait for it.
    """

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.down: Any = ""
        self.gate = asyncio.Event()
        self.gate.set()
        self.reads: list[tuple[Any, ...]] = []
        self.writes: list[Sequence[Call]] = []
        self.closed = 0

    async def command(self, *args: Any) -> Any:
        self.reads.append(args)
        await asyncio.sleep(0)
        self._fail()
        assert args[0] == "MGET"
        return [self.values.get(key) for key in args[1:]]

    async def call(self, calls: Sequence[Call]) -> list[Any]:
        self.writes.append(calls)
        await self.gate.wait()
        self._fail()
        for call in calls:
            self.values.update(zip(call.keys[1:], call.args[3:], strict=True))
        return [len(call.keys) - 1 for call in calls]

    async def aclose(self) -> None:
        self.closed += 1

    def _fail(self) -> None:
        if isinstance(self.down, Exception):
            raise self.down
        if self.down:
            raise StoreUnavailableError(self.down)
