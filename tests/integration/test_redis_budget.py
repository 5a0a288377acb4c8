"""The regeneration budget in Redis: the same decisions as in process, shared, and what holds when Redis does not."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable
from typing import Any

import pytest

from guardrail.errors import ConfigurationError
from guardrail.limits.budget import RegenerationBudget
from guardrail.limits.costs import digest_of
from guardrail.limits.redis_budget import RedisRegenerationBudget
from guardrail.redis_store import RedisStore
from guardrail.testing import ManualClock
from tests.redis_server import RedisServer, SharedServer, free_port, silent_listener

KEY = "tenant"
NAME = f"{{guardrail:{digest_of(KEY)}}}:budget-60"


async def taken(of: Any, attempt: int = 2, key: str = KEY, at_most: int = 100) -> int:
    for count in range(at_most):
        if not (await of.take(key, attempt)).allowed:
            return count
    return at_most


def seconds(server: SharedServer, shift: int = 0) -> int:
    """The server's time."""
    return int(server.do("TIME")[0]) + shift


@pytest.mark.parametrize(
    ("share", "floor", "attempt"),
    [(0.2, 10, 2), (0.2, 10, 3), (0.2, 0, 2), (0.0, 7, 4), (1.0, 0, 3), (1 / 3, 0.5, 2), (0.07, 1, 2)],
)
async def test_it_decides_like_the_one_in_process(redis_url: str, share: float, floor: float, attempt: int):
    random_ = random.Random(f"{share} {floor} {attempt}")
    local = RegenerationBudget(share=share, floor_per_min=floor, clock=ManualClock())
    async with RedisRegenerationBudget(redis_url, share=share, floor_per_min=floor) as shared:
        for _ in range(150):
            if random_.random() < 0.6:
                await local.first(KEY)
                await shared.first(KEY)
                continue
            asked = random_.choice([2, attempt])
            expected, found = await local.take(KEY, asked), await shared.take(KEY, asked)
            assert (found.allowed, found.remaining, found.limit) == (
                expected.allowed,
                expected.remaining,
                expected.limit,
            )
            assert (found.source, found.degraded) == ("redis", "")


async def test_what_the_window_has_left_behind_does_not_count(redis_server: SharedServer):
    now = seconds(redis_server)
    with redis_server.client() as client:
        client.hset(NAME, mapping={f"r{now - 61}": 5, f"f{now - 61}": 50, f"r{now - 30}": 2, f"f{now - 30}": 30})
        client.expire(NAME, 61)
    async with RedisRegenerationBudget(redis_server.url, share=0.1, floor_per_min=0) as budget:
        assert (await budget.take(KEY, 2)).remaining == 0
        assert not (await budget.take(KEY, 2)).allowed
    left = {name[:1] for name in redis_server.do("HKEYS", NAME)}
    assert left == {b"r", b"f"}
    assert redis_server.do("HLEN", NAME) == 3


async def test_seconds_of_a_far_future_do_not_count(redis_server: SharedServer):
    """The server's clock was put back by hours."""
    redis_server.do("HSET", NAME, f"r{seconds(redis_server, 7200)}", 100)
    async with RedisRegenerationBudget(redis_server.url, share=0.0, floor_per_min=3) as budget:
        assert await taken(budget) == 3


async def test_every_key_has_a_time_to_live_and_few_fields(redis_server: SharedServer):
    async with RedisRegenerationBudget(redis_server.url, window_s=5, share=0.5, floor_per_min=0) as budget:
        await budget.first("a")
        (name,) = redis_server.do("KEYS", "*")
        assert 0 < redis_server.do("TTL", name) <= 6
        redis_server.do("PERSIST", name)
        now = seconds(redis_server)
        for second in range(now - 100, now - 80):
            redis_server.do("HSET", name, f"f{second}", 1)
        await budget.first("a")
        assert 0 < redis_server.do("TTL", name) <= 6
        assert redis_server.do("HLEN", name) <= 2
        assert (await budget.take("a", 2)).allowed
        assert redis_server.do("TTL", name) > 0
        await budget.take("b", 2)
        assert len(redis_server.do("KEYS", "*")) == 1


async def test_keys_do_not_share_and_show_nothing(redis_server: SharedServer):
    keys = ["", "a:b", "a:", "{x}1", "{x}2", "team\nDEL *", "x" * 1_000_000, "\u00e9", "e\u0301", "\ud800"]
    async with RedisRegenerationBudget(redis_server.url, share=0.0, floor_per_min=1) as budget:
        assert [await taken(budget, key=key) for key in keys] == [1] * len(keys)
    names = redis_server.do("KEYS", "*")
    assert len(names) == len(keys)
    for name in names:
        assert len(name) <= 200
        assert name.startswith(b"{guardrail:")
        assert name.endswith(b"}:budget-60")
        assert name.decode().isprintable()


async def test_budgets_of_one_name_are_one(redis_url: str):
    async with (
        RedisRegenerationBudget(redis_url, share=0.0, floor_per_min=4) as one,
        RedisRegenerationBudget(redis_url, share=0.0, floor_per_min=4) as same,
        RedisRegenerationBudget(redis_url, share=0.0, floor_per_min=4, name="other") as other,
    ):
        await asyncio.gather(*(budget.take(KEY, 2) for budget in [one, same] * 10))
        assert await taken(one) == 0
        assert await taken(other) == 4


async def test_twenty_at_once_are_exact(redis_url: str):
    async with RedisRegenerationBudget(redis_url, share=0.1, floor_per_min=0) as budget:
        await asyncio.gather(*(budget.first(KEY) for _ in range(70)))
        decisions = await asyncio.gather(*(budget.take(KEY, 2) for _ in range(20)))
    assert sum(d.allowed for d in decisions) == 7
    assert sorted(d.remaining for d in decisions if d.allowed) == [0, 1, 2, 3, 4, 5, 6]


async def test_scripts_that_the_server_forgot_are_sent_again(start_redis: Callable[..., RedisServer]):
    server = start_redis()
    async with RedisRegenerationBudget(server.url, share=0.0, floor_per_min=3) as budget:
        assert (await budget.take(KEY, 2)).remaining == 2
        server.script_flush()
        assert (await budget.take(KEY, 2)).remaining == 1


async def test_a_store_that_was_handed_in_stays_open(redis_url: str):
    store = RedisStore(redis_url)
    async with RedisRegenerationBudget(store, share=0.0, floor_per_min=3) as budget:
        assert (await budget.take(KEY, 2)).source == "redis"
    assert await store.command("PING") in (b"PONG", True, "PONG")
    await store.aclose()


@pytest.mark.parametrize("on_error", ["local", "open", "closed"])
async def test_a_server_that_was_killed(start_redis: Callable[..., RedisServer], on_error: Any):
    server = start_redis()
    clock = ManualClock()
    async with RedisRegenerationBudget(
        server.url, share=0.5, floor_per_min=4, replicas=4, on_error=on_error, clock=clock
    ) as budget:
        for _ in range(4):
            await budget.first(KEY)
        decisions = [await budget.take(KEY, 2) for _ in range(2)]
        assert [(d.allowed, d.source, d.degraded) for d in decisions] == [(True, "redis", "")] * 2
        server.kill()
        await budget.first(KEY)
        await budget.first(KEY)
        decisions = [await budget.take(KEY, 2) for _ in range(3)]
        # Locally: half of six first attempts and one of the floor, of which two were taken while Redis was there.
        allowed = {"local": [True, True, False], "open": [True] * 3, "closed": [False] * 3}[on_error]
        assert [d.allowed for d in decisions] == allowed
        assert {d.source for d in decisions} == {on_error}
        assert {d.degraded for d in decisions} <= {"redis_refused", "redis_breaker_open"}
        server.start()
        clock.advance(60)  # past the breaker's pause
        decision = await budget.take(KEY, 2)
        assert (decision.allowed, decision.source, decision.degraded) == (True, "redis", "")
        assert decision.remaining == 3


async def test_nothing_listens_and_nothing_is_raised(caplog: pytest.LogCaptureFixture):
    url = f"redis://user:zqxsecret@127.0.0.1:{free_port()}/0"
    with caplog.at_level(logging.DEBUG):
        async with RedisRegenerationBudget(url, share=0.0, floor_per_min=1) as budget:
            await budget.first(KEY)
            decisions = [await budget.take(KEY, 2) for _ in range(2)]
    assert [d.allowed for d in decisions] == [True, False]
    assert all(d.degraded.startswith("redis_") for d in decisions)
    assert "zqxsecret" not in caplog.text
    assert KEY not in caplog.text


async def test_a_server_that_never_answers_is_not_waited_for():
    with silent_listener() as url:
        async with RedisRegenerationBudget(url, share=0.0, floor_per_min=1, on_error="closed", timeout_s=0.1) as budget:
            started = time.monotonic()
            decision = await budget.take(KEY, 2)
            assert time.monotonic() - started < 2.0
    assert (decision.allowed, decision.source, decision.degraded) == (False, "closed", "redis_timeout")


def test_loop_after_loop(redis_url: str):
    budget = RedisRegenerationBudget(redis_url, share=0.0, floor_per_min=10)

    async def once() -> float | None:
        return (await budget.take(KEY, 2)).remaining

    assert [asyncio.run(once()) for _ in range(3)] == [9, 8, 7]


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"share": 1.5}, "share"),
        ({"share": float("nan")}, "share"),
        ({"floor_per_min": -1}, "floor_per_min"),
        ({"share": 0, "floor_per_min": 0}, "max_attempts=1"),
        ({"window_s": 0}, "window_s"),
        ({"on_error": "ignore"}, "on_error"),
        ({"replicas": 0}, "replicas"),
        ({"replicas": 1.5}, "replicas"),
        ({"name": ""}, "name"),
        ({"name": "a{b}"}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"name": "x" * 65}, "name"),
        ({"name": "\u00e9"}, "name"),
        ({"name": None}, "name"),
    ],
    ids=str,
)
def test_settings_that_cannot_work(settings: dict[str, Any], told: str):
    with pytest.raises(ConfigurationError, match=told):
        RedisRegenerationBudget("redis://localhost", **settings)


@pytest.mark.parametrize("url", ["localhost:6379", "http://zqxsecret@localhost", "", None])
def test_a_url_that_cannot_be_used(url: Any):
    with pytest.raises(ConfigurationError) as caught:
        RedisRegenerationBudget(url)
    assert "zqxsecret" not in str(caught.value)


async def test_keys_and_attempts_are_checked(redis_url: str):
    async with RedisRegenerationBudget(redis_url) as budget:
        for key in (None, 7, b"tenant"):
            with pytest.raises(ConfigurationError, match="key"):
                await budget.first(key)  # type: ignore[arg-type]
        for attempt in (1, 2.0, True):
            with pytest.raises(ConfigurationError, match="attempt"):
                await budget.take(KEY, attempt)
