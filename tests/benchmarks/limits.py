"""Limits in Redis, ours beside ``limits`` and ``pyrate-limiter``: how fast, and how exact.

Usage::

    python -m tests.benchmarks.limits [--json] [--seconds 6] [--quick]

One server is started, for all of it. ``acquire_per_s``, ``p50_ms`` and ``p99_ms``: one process, 100 tasks that acquire
one after the other, a limit that never refuses (ten million an hour); the median of rounds in which all take turns.
Ours is a gcra limit, each acquire in a round trip of its own (``ours_plain``) and with shared ones (``ours_shared``,
the default); ``window_mode_acquire_per_s`` is the same with an exact window. ``limits`` is its moving window,
``pyrate`` its Redis bucket, asked directly: its ``Limiter`` would let only one task at a time. Both are exact by their
descriptions.

``worst_window``: 4 processes of 10 tasks on one key, clocks wrong by 0.6 s in both directions, a limit of 50 a second;
the most that was admitted within a second of the server, see :mod:`tests.limit_workers`. For ours the worse of both
modes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from statistics import median, quantiles
from typing import Any

from guardrail import Limit, RedisLimiter
from tests.limit_workers import LOG, moving_window, redis_bucket, run_all, skewed, worst_window
from tests.redis_server import RedisServer

ROWS = ("ours_plain", "ours_shared", "limits", "pyrate")
NEVER, HOUR_S = 10_000_000, 3600.0  # slow enough that no bucket is ever full again between two charges
TASKS = 100
ROUNDS = 3
SKEW_S = 0.6

Acquire = Callable[[], Awaitable[Any]]


async def open_all(url: str, stack: AsyncExitStack) -> dict[str, Acquire]:
    """What is measured, by name; ours in both modes."""
    from limits import RateLimitItemPerHour
    from pyrate_limiter import RateItem

    ways: dict[str, Acquire] = {}
    for mode, limit in (("", Limit(NEVER, HOUR_S, burst=NEVER)), ("window ", Limit(NEVER, HOUR_S))):
        # As many connections as the others have; with shared round trips two are used.
        plain = RedisLimiter(url, limit, name="plain", share_round_trips=False, max_connections=TASKS, timeout_s=5.0)
        shared = RedisLimiter(url, limit, name="shared", timeout_s=5.0)
        for name, limiter in (("ours_plain", plain), ("ours_shared", shared)):
            await stack.enter_async_context(limiter)
            ways[mode + name] = lambda limiter=limiter: limiter.acquire("tenant")
    strategy, client = moving_window(url)
    stack.push_async_callback(client.aclose)
    item = RateLimitItemPerHour(NEVER)
    ways["limits"] = lambda: strategy.hit(item, "tenant")
    bucket, client = await redis_bucket(url, NEVER, "pyrate", period_s=HOUR_S)
    stack.push_async_callback(client.aclose)
    ways["pyrate"] = lambda: bucket.put(RateItem("tenant", bucket.now()))
    return ways


async def acquire_for(seconds: float, acquire: Acquire) -> tuple[float, list[float]]:
    """Acquires per second, and how long each took, in milliseconds."""
    took: list[float] = []
    started = time.perf_counter()
    until = started + seconds

    async def loop() -> None:
        while (begun := time.perf_counter()) < until:
            granted = await acquire()
            assert granted is True or (granted.allowed and granted.source == "redis")
            took.append((time.perf_counter() - begun) * 1e3)

    await asyncio.gather(*(loop() for _ in range(TASKS)))
    return len(took) / (time.perf_counter() - started), took


async def measure_speed(server: RedisServer, seconds: float) -> dict[str, dict[str, float]]:
    """Speeds by name, each measured for so many seconds together."""
    async with AsyncExitStack() as stack:
        ways = await open_all(server.tcp_url, stack)
        rates: dict[str, list[float]] = {name: [] for name in ways}
        times: dict[str, list[float]] = {name: [] for name in ways}
        for acquire in ways.values():
            await acquire_for(0.1, acquire)
        for _ in range(ROUNDS):
            for name, acquire in ways.items():
                rate, took = await acquire_for(seconds / ROUNDS, acquire)
                rates[name].append(rate)
                times[name] += took
                server.do("FLUSHDB")
    found = {}
    for name, took in times.items():
        cuts = quantiles(took, n=100)
        found[name] = {"acquire_per_s": median(rates[name]), "p50_ms": cuts[49], "p99_ms": cuts[98]}
    return found


def measure_worst(server: RedisServer, row: str, seconds: float) -> int:
    """The worst second."""
    if not row.startswith("ours"):
        server.do("FLUSHDB")
        run_all(skewed(SKEW_S, who=row, url=server.tcp_url, seconds=seconds))
        return worst_window([int(stamp) for stamp in server.do("LRANGE", LOG, 0, -1)])
    worst = 0
    for mode in ("window", "gcra"):
        server.do("FLUSHDB")
        share = row == "ours_shared"
        found = run_all(skewed(SKEW_S, url=server.tcp_url, seconds=seconds, mode=mode, share=share))
        stamps = [stamp for one in found for of_key in one["stamps"].values() for stamp in of_key]
        assert len(stamps) == sum(one["granted"] for one in found) > 0, "not all admissions were stamped"
        worst = max(worst, worst_window(stamps))
    return worst


def measure(seconds: float, skewed_s: float) -> dict[str, Any]:
    """All figures, in one run on one server."""
    server = RedisServer(tcp=True)
    try:
        speed = asyncio.run(measure_speed(server, seconds))
        result: dict[str, Any] = {}
        for row in ROWS:
            result[row] = {**speed[row], "worst_window": measure_worst(server, row, skewed_s)}
            if f"window {row}" in speed:
                result[row]["window_mode_acquire_per_s"] = speed[f"window {row}"]["acquire_per_s"]
    finally:
        server.close()
    ratio = result["ours_shared"]["acquire_per_s"] / result["limits"]["acquire_per_s"]
    return {**result, "ratio_shared_to_limits": ratio}


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=6.0, help="how long each is measured for its speed")
    parser.add_argument("--quick", action="store_true", help="short, for a look: the figures are rough")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    quick = arguments.quick
    result = measure(min(arguments.seconds, 0.9) if quick else arguments.seconds, 1.2 if quick else 3.2)
    if arguments.json:
        print(json.dumps(result))
        return
    print(
        f"{'':12s} {'acquire/s':>10s} {'p50 ms':>8s} {'p99 ms':>8s} {'worst 1 s of 50':>16s} {'window acquire/s':>17s}"
    )
    for row in ROWS:
        found = result[row]
        window = found.get("window_mode_acquire_per_s")
        print(
            f"{row:12s} {found['acquire_per_s']:10.0f} {found['p50_ms']:8.2f} {found['p99_ms']:8.2f}"
            f" {found['worst_window']:13d} {'' if window is None else f'{window:.0f}':>17s}"
        )
    print(f"shared round trips are {result['ratio_shared_to_limits']:.1f} times as fast as limits")


if __name__ == "__main__":
    main()
