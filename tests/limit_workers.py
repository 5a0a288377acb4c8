"""Processes whose clocks are wrong and who share one limit, and how much of it fell into one second of the server.

Each process is ``python -m tests.limit_workers``, told on its standard input what to do. Admissions carry the server's
time, taken in the run of the script that admits: ours answers with it; the scripts of other libraries get a line that
writes it into a list. A time taken by a call of its own would be too late by as long as the answer took.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LOG = "admitted"
"""The list that the scripts of other libraries write to."""

_NOTE = "local at = redis.call('TIME') redis.call('RPUSH', '{log}', string.format('%.0f', at[1] * 1000000 + at[2])) "
_POLL_S = 0.01


@dataclass(frozen=True, kw_only=True)
class Work:
    """What one process does.

    Attributes:
        who: ``ours``, ``limits`` or ``pyrate``.
        url: Of the server.
        count: Most admissions in a second.
        mode: For ours: ``window``, or ``gcra`` with a burst of a fifth.
        share: For ours: whether round trips are shared.
        keys: The tasks take turns with them.
        tasks: How many ask at the same time.
        seconds: How long.
        skew_s: How much the clocks of the process are wrong.
    """

    who: str = "ours"
    url: str
    count: int = 50
    mode: str = "window"
    share: bool = True
    keys: tuple[str, ...] = ("tenant",)
    tasks: int = 10
    seconds: float
    skew_s: float = 0.0


def run_all(works: Sequence[Work]) -> list[dict[str, Any]]:
    """Run processes side by side, from the same moment on.

    Returns:
        What each found: ``granted`` admissions, ``sources`` of the decisions, ``stamps`` of ours by key.
    """
    command = [sys.executable, "-m", "tests.limit_workers"]
    processes = [
        subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in works
    ]
    try:
        for process, work in zip(processes, works, strict=True):
            process.stdin.write(json.dumps(asdict(work)) + "\n")
            process.stdin.flush()
        for process in processes:
            assert process.stdout.readline() == "ready\n", "a process did not get ready; its error is above"
        for process in processes:
            process.stdin.write("go\n")
            process.stdin.flush()
        return [json.loads(process.communicate(timeout=60)[0]) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def skewed(skew_s: float, count: int = 4, **work: Any) -> list[Work]:
    """So many processes, half of them with clocks ahead, half behind."""
    return [Work(skew_s=skew_s if number % 2 else -skew_s, **work) for number in range(count)]


def worst_window(stamps: Sequence[int], period_us: int = 1_000_000) -> int:
    """Most stamps in a half-open stretch of a period, wherever it begins.

    Example:
        >>> worst_window([0, 1, 999_999, 1_000_000])
        3
    """
    ordered = sorted(stamps)
    worst = first = 0
    for number, stamp in enumerate(ordered, start=1):
        while stamp - ordered[first] >= period_us:
            first += 1
        worst = max(worst, number - first)
    return worst


def _set_clocks_wrong(skew_s: float) -> None:
    skew_ns = round(skew_s * 1e9)
    for name, skew in (("time", skew_s), ("monotonic", skew_s), ("time_ns", skew_ns), ("monotonic_ns", skew_ns)):
        right = getattr(time, name)
        setattr(time, name, lambda right=right, skew=skew: right() + skew)


class Recording:
    """A store that writes down when the server admitted what."""

    def __init__(self, store: Any) -> None:
        self.stamps: dict[str, list[int]] = {}
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def call(self, calls: Sequence[Any]) -> list[Any]:
        """Pass them on."""
        replies = await self._store.call(calls)
        for call, reply in zip(calls, replies, strict=True):
            lines = reply.split(b"\n") if call.script.name == "acquire" else ()
            granted = [int(line.split()[1]) for line in lines if line.startswith(b"1 ")]
            self.stamps.setdefault(call.keys[0].decode(), []).extend(granted)
        return replies


Acquire = Callable[[str, float | None], Awaitable[str]]


async def _ours(work: Work) -> tuple[Acquire, Recording, Callable[[], Awaitable[None]]]:
    from guardrail.limits.limit import Limit
    from guardrail.limits.redis import RedisLimiter
    from guardrail.redis_store import RedisStore

    store = RedisStore(work.url, timeout_s=20.0, connect_timeout_s=20.0)
    recording = Recording(store)
    limit = Limit(work.count, 1.0)
    if work.mode == "gcra":
        limit = Limit.at_most(work.count, period_s=1.0, burst=work.count // 5)
    limiter = RedisLimiter(recording, limit, share_round_trips=work.share)  # type: ignore[arg-type]

    async def acquire(key: str, timeout_s: float | None) -> str:
        decision = await limiter.acquire(key, timeout_s=timeout_s)
        return f"{decision.source}{decision.degraded}" if decision.allowed else ""

    async def close() -> None:
        await limiter.aclose()
        await store.aclose()

    return acquire, recording, close


def moving_window(url: str, *, log: str = "", **options: Any) -> tuple[Any, Any]:
    """The exact strategy of ``limits``, and its storage; admissions are written to a list ``log`` if it has a name."""
    from limits.aio.storage.redis import RedisStorage
    from limits.aio.storage.redis.redispy import RedispyBridge
    from limits.aio.strategies import MovingWindowRateLimiter

    if log:
        source = RedispyBridge.SCRIPT_ACQUIRE_MOVING_WINDOW
        assert source.count(b"return true") == 1
        noted = (_NOTE.format(log=log) + "return true").encode()
        RedispyBridge.SCRIPT_ACQUIRE_MOVING_WINDOW = source.replace(b"return true", noted)
    storage = RedisStorage(f"async+{url}", implementation="redispy", **options)
    return MovingWindowRateLimiter(storage), storage.bridge.storage


async def redis_bucket(url: str, count: int, key: str, *, period_s: float = 1.0, log: str = "") -> tuple[Any, Any]:
    """The Redis bucket of ``pyrate-limiter``, and its client; ``log`` as above."""
    from pyrate_limiter import Rate
    from pyrate_limiter.buckets.redis_bucket import LuaScript, RedisBucket
    from redis.asyncio import Redis

    if log:
        assert LuaScript.PUT_ITEM.count("return {-1, -1}") == 1
        LuaScript.PUT_ITEM = LuaScript.PUT_ITEM.replace("return {-1, -1}", _NOTE.format(log=log) + "return {-1, -1}")
    client = Redis.from_url(url)
    return await RedisBucket.init([Rate(count, round(period_s * 1000))], client, key), client


async def _others(work: Work) -> tuple[Acquire, None, Callable[[], Awaitable[None]]]:
    (key,) = work.keys
    if work.who == "limits":
        from limits import RateLimitItemPerSecond

        strategy, client = moving_window(work.url, log=LOG)
        item = RateLimitItemPerSecond(work.count)

        async def ask() -> bool:
            return await strategy.hit(item, key)
    else:
        from pyrate_limiter import RateItem

        bucket, client = await redis_bucket(work.url, work.count, key, log=LOG)

        async def ask() -> bool:
            return await bucket.put(RateItem(key, bucket.now()))

    async def acquire(key: str, timeout_s: float | None) -> str:
        return "redis" if await ask() else ""

    return acquire, None, client.aclose


async def _work(work: Work) -> dict[str, Any]:
    """Take as much as there is; only the first of a process waits for as long as it takes, so that each gets some."""
    acquire, recording, close = await (_ours if work.who == "ours" else _others)(work)
    await asyncio.to_thread(_ready)
    until = time.monotonic() + work.seconds
    sources: list[str] = []

    async def ask(number: int) -> None:
        key = work.keys[number % len(work.keys)]
        patient = number < len(work.keys) and work.who == "ours"
        while (left_s := until - time.monotonic()) > 0 or patient:
            # Half of them wait in the limiter, the others come back by themselves.
            source = await acquire(key, None if patient else left_s if number % 4 < 2 else 0)
            patient = False
            if source:
                sources.append(source)
            else:
                await asyncio.sleep(_POLL_S)

    await asyncio.gather(*(ask(number) for number in range(work.tasks)))
    await close()
    stamps = recording.stamps if recording else {}
    return {"granted": len(sources), "sources": sorted(set(sources)), "stamps": stamps}


def _ready() -> None:
    print("ready", flush=True)
    sys.stdin.readline()


def main() -> None:
    """Do what the first line of the standard input says, and print what came of it."""
    told = json.loads(sys.stdin.readline())
    work = Work(**{**told, "keys": tuple(told["keys"])})
    _set_clocks_wrong(work.skew_s)  # before anything takes a clock by its name
    print(json.dumps(asyncio.run(_work(work))))


if __name__ == "__main__":
    main()
