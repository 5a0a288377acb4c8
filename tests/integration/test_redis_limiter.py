"""The limiter in Redis against a real server: names, times to live, clocks, failures, shared round trips."""

from __future__ import annotations

import asyncio
import logging
import re
import time

import pytest

from guardrail.errors import ConfigurationError
from guardrail.limits.limit import Limit
from guardrail.limits.redis import RedisLimiter
from guardrail.redis_store import RedisStore
from tests.redis_server import Proxy, free_port, silent_listener

PER_KEY = [Limit(5, 600.0), Limit(5000, 600.0, burst=5000, unit="tokens")]
TOGETHER = [*PER_KEY, Limit(100, 600.0, scope="global")]
AWKWARD = ["a", "b c", "{x}y", "", "{x}", "a:b", "team\nDEL *", "x" * 10**6, "\x00\x1f", "é", "e\u0301", "\udc00"]


class Spy:
    """A store that also writes down what is asked of it."""

    def __init__(self, store):
        self.store = store
        self.calls, self.trips = [], 0

    def __getattr__(self, name):
        return getattr(self.store, name)

    async def call(self, calls):
        self.calls += calls
        self.trips += 1
        return await self.store.call(calls)

    @property
    def keys(self):
        return {key for call in self.calls for key in call.keys}


@pytest.fixture
async def spy(redis_url):
    store = RedisStore(redis_url, timeout_s=10.0, connect_timeout_s=10.0)
    yield Spy(store)
    await store.aclose()


def slot(key):
    """The slot of a cluster that a key is in: CRC16 (XMODEM) of its hash tag, if it has one, modulo 16384."""
    begin = key.find(b"{")
    end = key.find(b"}", begin + 1) if begin >= 0 else -1
    hashed = key[begin + 1 : end] if end > begin + 1 else key
    crc = 0
    for byte in hashed:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x1021 if crc & 0x8000 else crc << 1) & 0xFFFF
    return crc % 16384


def test_the_slot_function_is_that_of_redis():
    assert (slot(b"123456789"), slot(b"{user1000}.following")) == (0x31C3, slot(b"user1000"))


async def grants(limiter, key="tenant", at_most=100):
    for count in range(at_most):
        if not (await limiter.acquire(key, timeout_s=0)).allowed:
            return count
    return at_most


# Names of keys (R008, R010)


@pytest.mark.parametrize("limits", [PER_KEY, TOGETHER], ids=["per key", "with a global one"])
async def test_all_keys_of_a_charge_are_declared_and_in_one_slot(spy, redis_server, limits):
    limiter = RedisLimiter(spy, limits)
    for key in AWKWARD:
        decision = await limiter.acquire(key)
        await limiter.settle(decision, 2000)
    for call in spy.calls:
        assert len({slot(key) for key in call.keys}) == 1
        assert all(re.fullmatch(rb"[A-Za-z0-9._:{}-]+", key) for key in call.keys)
    assert {bytes(key) for key in redis_server.do("KEYS", "*")} == spy.keys


async def test_names_are_distinct_short_and_without_control_characters(spy):
    limiter = RedisLimiter(spy, PER_KEY)
    pairs = [f"{a}{b}" for a, b in (("a:b", "c"), ("t", "u"), ("t ", "u"), ("{x}", "1"), ("{x}", "2"))]
    ids = [*AWKWARD, *pairs]
    for key in ids:
        await limiter.acquire(key)
    assert len(spy.keys) == 2 * len(ids)
    assert max(map(len, spy.keys)) <= 200
    assert not any(re.search(rb"[\x00-\x20\x7f-\xff]", key) for key in spy.keys)


async def test_keys_without_a_shared_limit_spread_over_slots(spy):
    limiter = RedisLimiter(spy, PER_KEY)
    for number in range(20):
        await limiter.acquire(f"tenant {number}")
    assert len({slot(key) for key in spy.keys}) > 10


async def test_limiters_of_one_name_share_and_others_do_not(redis_url):
    async with (
        RedisLimiter(redis_url, Limit(3, 600), timeout_s=10.0) as one,
        RedisLimiter(redis_url, Limit(3.0, 600.0), timeout_s=10.0) as same,
        RedisLimiter(redis_url, Limit(3, 600), name="other", timeout_s=10.0) as other,
        RedisLimiter(redis_url, Limit(4, 600), timeout_s=10.0) as changed,
    ):
        assert await grants(one) == 3
        assert [await grants(limiter) for limiter in (same, other, changed)] == [0, 3, 4]


@pytest.mark.parametrize("name", ["", "a b", "{a}", "a:b", "x" * 65, "é", None, 5, "a\n"])
def test_wrong_names(name):
    with pytest.raises(ConfigurationError, match="name"):
        RedisLimiter("redis://localhost", "1/min", name=name)


@pytest.mark.parametrize("limit", [Limit(10**13, 1.0), Limit(1, 10**10), Limit(1, 10**7, burst=10**4)])
def test_limits_beyond_exact_counting(limit):
    with pytest.raises(ConfigurationError, match="beyond"):
        RedisLimiter("redis://localhost", limit)


# Time to live (R018), scripts (R006), clocks (R009)


async def test_every_key_has_a_time_to_live_after_every_call(spy, redis_server):
    limiter = RedisLimiter(spy, TOGETHER)

    def check():
        with redis_server.client() as client:
            names = client.keys("*")
            assert names
            for name in names:
                assert 0 < client.pttl(name) <= 600_001

    for number in range(6):
        decision = await limiter.acquire(f"tenant {number % 2}", timeout_s=0)
        check()
        await limiter.settle(decision, 100 * number)
        check()


async def test_keys_go_when_they_say_nothing_any_more(redis_url, redis_server):
    async with RedisLimiter(redis_url, [Limit(5, 0.1), Limit(50, 1.0, burst=5)], timeout_s=10.0) as limiter:
        assert (await limiter.acquire("tenant")).allowed
        end = time.monotonic() + 20
        while redis_server.do("DBSIZE") and time.monotonic() < end:
            await asyncio.sleep(0.02)
        assert redis_server.do("DBSIZE") == 0


async def test_a_flushed_script_is_loaded_again_and_counted_once(start_redis):
    server = start_redis()
    async with RedisLimiter(server.url, Limit(5, 600.0), timeout_s=10.0) as limiter:
        for left in range(4, -1, -1):
            server.script_flush()
            decision = await limiter.acquire("tenant", timeout_s=0)
            assert (decision.allowed, decision.remaining, decision.source) == (True, left, "redis")
        assert not (await limiter.acquire("tenant", timeout_s=0)).allowed


@pytest.mark.parametrize("limit", [Limit(5, 600.0), Limit(5, 600.0, burst=5)], ids=["window", "gcra"])
async def test_clocks_of_the_clients_do_not_matter(redis_url, limit):
    late = RedisLimiter(redis_url, limit, timeout_s=10.0, clock=lambda: time.monotonic() + 1e6)
    early = RedisLimiter(redis_url, limit, timeout_s=10.0, clock=lambda: time.monotonic() - 1e6)
    async with late, early:
        decisions = [await limiter.acquire("tenant", timeout_s=0) for _ in range(6) for limiter in (late, early)]
    assert [decision.allowed for decision in decisions] == [True] * 5 + [False] * 7
    assert all(0 < decision.retry_after_s <= 600 for decision in decisions[5:])


async def test_a_server_whose_clock_went_back_frees_nothing(spy, redis_server):
    limiter = RedisLimiter(spy, Limit(3, 10.0))
    assert await grants(limiter) == 3
    (key,) = spy.keys
    with redis_server.client() as client:
        ahead = 3600 * 10**6
        for member, score in client.zrange(key, 1, -1, withscores=True):
            client.zadd(key, {member: score + ahead})
        refused = await limiter.acquire("tenant", timeout_s=0)
        assert refused.allowed is False
        assert 0 < refused.retry_after_s <= 10  # not an hour: nothing that is older than a period counts
        client.zadd(key, {"total": -2000})
        client.zrem(key, client.zrange(key, 1, 1)[0])
        assert (await limiter.acquire("tenant", timeout_s=0)).allowed
        newest = client.zrange(key, -1, -1, withscores=True)[0][1]
        assert newest > time.time() * 1e6 + ahead / 2


# Round trips


async def test_a_decision_is_one_round_trip_and_concurrent_ones_share_it(spy):
    limiter = RedisLimiter(spy, TOGETHER)
    await limiter.acquire("tenant")
    assert spy.trips == 1
    await asyncio.gather(*(limiter.acquire(f"tenant {number % 10}") for number in range(40)))
    assert spy.trips <= 4
    assert len(spy.calls) <= 1 + 4 * 10


async def test_without_sharing_each_goes_alone(spy):
    limiter = RedisLimiter(spy, "50/min", share_round_trips=False)
    decisions = await asyncio.gather(*(limiter.acquire("tenant") for _ in range(20)))
    assert spy.trips == 20
    assert sorted(decision.remaining for decision in decisions) == list(range(30, 50))


async def test_only_the_first_who_waits_asks(spy):
    limiter = RedisLimiter(spy, Limit(1, 600.0))
    await limiter.acquire("tenant")
    waiting = [asyncio.create_task(limiter.acquire("tenant")) for _ in range(50)]
    await asyncio.sleep(0.2)
    asked = spy.trips
    for _ in range(20):
        assert not (await limiter.acquire("tenant", timeout_s=0)).allowed
    assert spy.trips == asked
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)


async def test_the_sleep_is_what_redis_said_and_a_little_more(redis_url):
    async with RedisLimiter(redis_url, Limit(1, 0.3), timeout_s=10.0, rng=lambda: 0.99) as limiter:
        await limiter.acquire("tenant")
        decision = await limiter.acquire("tenant")
        assert decision.allowed
        assert decision.waited_s > 0.25


@pytest.mark.parametrize("mode", ["window", "gcra"])
async def test_a_charge_that_nobody_took_is_given_back(start_redis, mode):
    limit = Limit(3, 600.0) if mode == "window" else Limit(3, 600.0, burst=3)
    server = start_redis()
    async with Proxy(server.socket, delay_s=0.2) as proxy:
        async with RedisLimiter(proxy.url, limit, timeout_s=10.0) as limiter:
            assert (await limiter.acquire("tenant")).allowed
            lost = [asyncio.create_task(limiter.acquire("tenant")) for _ in range(2)]
            await asyncio.sleep(0.05)
            for task in lost:
                task.cancel()
            await asyncio.gather(*lost, return_exceptions=True)
        async with RedisLimiter(server.url, limit, timeout_s=10.0) as limiter:
            assert await grants(limiter) == 2


async def test_a_waiter_asks_again_when_something_is_given_back(redis_url):
    async with RedisLimiter(redis_url, Limit(1000, 600.0, unit="tokens"), timeout_s=10.0) as limiter:
        first = await limiter.acquire("tenant")
        waiting = asyncio.create_task(limiter.acquire("tenant", 0.5))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        await limiter.settle(first, 200)
        assert (await asyncio.wait_for(waiting, 30)).remaining == 300


async def test_after_a_cancelled_call_answers_still_belong_to_their_questions(start_redis):
    server = start_redis()
    async with (
        Proxy(server.socket, delay_s=0.1) as proxy,
        RedisLimiter(proxy.url, Limit(60, 600.0), timeout_s=10.0) as limiter,
    ):
        for key in range(5):
            for _ in range(key):
                await limiter.acquire(f"tenant {key}")
        proxy.delay_s = 0.05
        cancelled = asyncio.create_task(limiter.acquire("cancelled"))
        await asyncio.sleep(0.01)
        cancelled.cancel()
        keys = [number % 5 for number in range(50)]
        decisions = await asyncio.gather(*(limiter.acquire(f"tenant {key}") for key in keys))
        for key in range(5):
            left = [decision.remaining for decision, of in zip(decisions, keys, strict=True) if of == key]
            assert left == [59 - key - number for number in range(10)]
        assert (await limiter.acquire("cancelled")).remaining == 59


# Without Redis


def at(url, on_error, **options):
    return RedisLimiter(url, Limit(4, 600.0), on_error=on_error, **options)


@pytest.mark.parametrize(
    ("on_error", "allowed", "source"),
    [("open", [True] * 4, "open"), ("closed", [False] * 4, "closed"), ("local", [True, True, False, False], "local")],
)
async def test_nothing_listens(on_error, allowed, source, caplog):
    async with at(f"redis://127.0.0.1:{free_port()}", on_error, replicas=2, timeout_s=10.0) as limiter:
        decisions = [await limiter.acquire("tenant", timeout_s=0) for _ in range(4)]
        assert [decision.allowed for decision in decisions] == allowed
        assert {decision.source for decision in decisions} == {source}
        assert [decision.degraded for decision in decisions] == ["redis_refused"] + ["redis_breaker_open"] * 3
        assert limiter.degraded_decisions == 4
        assert all(decision.allowed or decision.retry_after_s > 0 for decision in decisions)
    assert len([record for record in caplog.records if record.levelno >= logging.WARNING]) == 1


async def test_a_server_that_never_answers(caplog):
    with silent_listener() as url:
        async with at(url, "closed", timeout_s=0.1) as limiter:
            began = time.monotonic()
            decisions = await asyncio.gather(*(limiter.acquire(f"tenant {n}") for n in range(20)))
            assert time.monotonic() - began < 5
            assert {decision.degraded for decision in decisions} <= {"redis_timeout", "redis_breaker_open"}
            assert not any(decision.allowed for decision in decisions)


async def test_closed_says_when_the_breaker_tries_again():
    async with at(f"redis://127.0.0.1:{free_port()}", "closed", timeout_s=10.0) as limiter:
        await limiter.acquire("tenant")
        assert 0 < (await limiter.acquire("tenant")).retry_after_s <= 1.0


@pytest.mark.parametrize("share", [True, False])
async def test_gone_and_back(start_redis, share, caplog):
    server = start_redis()
    async with at(server.url, "local", replicas=2, timeout_s=5.0, share_round_trips=share) as limiter:
        assert (await limiter.acquire("tenant", timeout_s=0)).source == "redis"
        server.kill()
        during = [await limiter.acquire("tenant", timeout_s=0) for _ in range(3)]
        # Its share is two, and one was used while Redis was there.
        assert [decision.allowed for decision in during] == [True, False, False]
        assert {decision.source for decision in during} == {"local"}
        server.start()
        end = time.monotonic() + 60
        while (after := await limiter.acquire("other", timeout_s=0)).source != "redis" and time.monotonic() < end:
            await asyncio.sleep(0.05)
        assert (after.source, after.degraded) == ("redis", "")
        assert await grants(limiter) == 4
    assert [record.levelname for record in caplog.records if record.levelno >= logging.WARNING] == ["WARNING"]


async def test_a_waiter_is_not_left_alone_when_redis_goes(start_redis):
    server = start_redis()
    async with RedisLimiter(server.url, Limit(1, 2.0), on_error="open", timeout_s=5.0) as limiter:
        await limiter.acquire("tenant")
        waiting = [asyncio.create_task(limiter.acquire("tenant")) for _ in range(3)]
        await asyncio.sleep(0.1)
        server.kill()
        decisions = await asyncio.wait_for(asyncio.gather(*waiting), 30)
        assert {decision.source for decision in decisions} == {"open"}


async def test_settling_goes_to_where_the_charge_is(start_redis, caplog):
    server = start_redis()
    limit = Limit(2000, 600.0, unit="tokens")
    async with RedisLimiter(server.url, limit, timeout_s=5.0) as limiter:
        in_redis = await limiter.acquire("tenant")
        server.kill()
        here = await limiter.acquire("tenant", timeout_s=0)
        assert (here.allowed, here.source) == (True, "local")
        await limiter.settle(here, 100)
        assert (await limiter.acquire("tenant", 0.9, 0)).allowed
        assert limiter.unsettled == 0
        for tokens in (100, 200, 300):
            await limiter.settle(in_redis, tokens)
        assert limiter.unsettled == 3
    settling = [record for record in caplog.records if record.name == "guardrail.limits"]
    assert len(settling) == 1
    assert "tenant" not in settling[0].getMessage()


def test_the_constructor_does_nothing():
    began = time.monotonic()
    limiters = [at("redis://10.255.255.1:6379", rule) for rule in ("local", "open", "closed")]
    assert time.monotonic() - began < 5
    assert [limiter.degraded_decisions + limiter.unsettled for limiter in limiters] == [0, 0, 0]
