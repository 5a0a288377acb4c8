"""The shared cache on a real server: what lies there, for how long, how much of it, and what happens without it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import pytest

from guardrail import Guardrail, Verifier
from guardrail.protocols import Pair
from guardrail.redis_store import RedisStore
from guardrail.scoring.entailment import OnnxEntailment
from guardrail.scoring.entailment.onnx import embedded_model_dir
from guardrail.scoring.entailment.shared_cache import CacheCounts, SharedCache
from guardrail.scoring.entailment.shared_entries import Entries
from guardrail.testing import FakeEntailment, ScriptedGenerator
from tests.redis_server import silent_listener

PATIENT_S = 10.0  # for tests that are not about time


def scored(premise, hypothesis):
    return (len(premise) * 31 + len(hypothesis)) % 97 / 97


def pairs(count, start=0):
    return [Pair(f"The office {number} opens at ten.", "It opens at ten.") for number in range(start, start + count)]


def cached(url, model=None, **settings):
    return SharedCache(model or FakeEntailment(scored), url, timeout_s=PATIENT_S, **settings)


async def test_another_instance_scores_nothing(redis_url):
    asked = pairs(30)
    async with cached(redis_url) as cache:
        expected = await cache.score(asked)
    fake = FakeEntailment(scored)
    async with cached(redis_url, fake) as other:
        assert await other.score(asked[::-1]) == expected[::-1]
    assert fake.pairs == []
    assert other.counts == CacheCounts(hits=30)
    assert [score.entailment for score in expected] == [scored(*pair) for pair in asked]


_PROCESS = """
import asyncio, sys
from guardrail.protocols import Pair
from guardrail.scoring.entailment.shared_cache import SharedCache
from guardrail.testing import FakeEntailment

async def main():
    fake = FakeEntailment(1 / 3)
    async with SharedCache(fake, sys.argv[1], timeout_s=10.0) as cache:
        (score,) = await cache.score([Pair("a premise", "a claim")])
    print(len(fake.pairs), score.entailment.hex())

asyncio.run(main())
"""


def test_another_process_scores_nothing(redis_url):
    def run():
        command = [sys.executable, "-c", _PROCESS, redis_url]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=100).stdout.split()

    assert [run(), run()] == [["1", (1 / 3).hex()], ["0", (1 / 3).hex()]]


async def test_every_key_ends(redis_server, redis_url):
    async with cached(redis_url, ttl_s=60) as cache:
        await cache.score(pairs(5))
    keys = redis_server.do("KEYS", "*")
    assert len(keys) == 6
    assert all(0 < redis_server.do("PTTL", key) <= 60_000 for key in keys)


async def test_the_index_lives_as_long_as_its_entries(redis_server, redis_url):
    for ttl_s in (600, 60):
        async with cached(redis_url, ttl_s=ttl_s, version=str(ttl_s)) as cache:
            await cache.score(pairs(1))
    lives = sorted(redis_server.do("PTTL", key) > 60_000 for key in redis_server.do("KEYS", "*"))
    assert lives == [False, True, True]
    assert redis_server.do("PTTL", "{guardrail:scores}:index") > 60_000


async def test_the_bound_is_kept_and_the_oldest_leave(redis_server, redis_url):
    async with cached(redis_url, max_entries=50) as cache:
        for start in range(0, 200, 20):
            await cache.score(pairs(20, start))
            while any(cache._state().writes):
                await asyncio.wait(cache._state().writes)
            assert redis_server.do("DBSIZE") <= 51
    assert redis_server.do("DBSIZE") == 51
    assert redis_server.do("ZCARD", "{guardrail:scores}:index") == 50
    fake = FakeEntailment(scored)
    async with cached(redis_url, fake, max_entries=50) as other:
        await other.score(pairs(40, 160))
        assert fake.pairs == []
        await other.score(pairs(100))
        assert fake.pairs == pairs(100)


async def test_one_call_past_the_bound(redis_server, redis_url):
    async with cached(redis_url, max_entries=10) as cache:
        await cache.score(pairs(1200))
    assert redis_server.do("DBSIZE") == 11


async def test_a_bound_that_was_lowered_is_reached_in_steps(redis_server, redis_url):
    async with cached(redis_url) as cache:
        await cache.score(pairs(2500))
    assert redis_server.do("DBSIZE") == 2501
    sizes = []
    for number in range(3):
        async with cached(redis_url, max_entries=10) as cache:
            await cache.score(pairs(1, 3000 + number))
        sizes.append(redis_server.do("DBSIZE") - 1)
    assert sizes == [1501, 502, 10]


async def test_what_has_ended_leaves_the_index(redis_server, redis_url):
    store = RedisStore(redis_url, timeout_s=PATIENT_S)
    short, long = (Entries("shop", ttl_ms=ttl_ms, max_entries=100) for ttl_ms in (5, 60_000))
    await store.call(short.calls({"{shop:scores}:aa": b"1", "{shop:scores}:bb": b"1"}))
    while redis_server.do("EXISTS", "{shop:scores}:aa", "{shop:scores}:bb"):
        await asyncio.sleep(0.001)
    await store.call(long.calls({"{shop:scores}:cc": b"1"}))
    assert redis_server.do("ZRANGE", "{shop:scores}:index", 0, -1) == [b"cc"]
    await store.aclose()


async def test_a_score_that_is_stored_again_is_young_again(redis_server, redis_url):
    store = RedisStore(redis_url, timeout_s=PATIENT_S)
    for ttl_ms, key in ((50_000, "aa"), (55_000, "bb"), (60_000, "aa"), (60_000, "cc")):
        await store.call(Entries("shop", ttl_ms=ttl_ms, max_entries=2).calls({f"{{shop:scores}}:{key}": b"1"}))
    assert sorted(redis_server.do("KEYS", "*")) == [b"{shop:scores}:aa", b"{shop:scores}:cc", b"{shop:scores}:index"]
    await store.aclose()


DESK = "The zebrafish desk opens at ten. Entry is free on Mondays. Dogs have to stay outside."
ANSWER = "The zebrafish desk opens at ten. On Mondays entry is free. Dogs may come inside."
WORDS = ("zebrafish", "desk", "monday", "entry", "dogs", "inside", "passage-7", "tenant-3", "embedded", "onnx")


@pytest.fixture(scope="module")
def directory():
    return embedded_model_dir()


async def outcome(entailment):
    guard = Guardrail(policy="balanced", entailment=entailment)
    context = [{"id": "passage-7", "text": DESK}, "The dogs of visitors have to stay outside the building."]
    generate = ScriptedGenerator(ANSWER, "The zebrafish desk opens at nine.", "Entry is free on Mondays.")
    found = await guard.run(generate, question="When does the zebrafish desk open?", context=context, key="tenant-3")
    return found.status, found.text, [attempt.verdicts for attempt in found.attempts]


async def test_verdicts_are_the_same_with_and_without_and_no_text_is_stored(redis_server, redis_url, directory):
    plain = await outcome(OnnxEntailment(directory, batch_size=1))  # numbers do not depend on who shares a batch
    async with cached(redis_url, OnnxEntailment(directory, batch_size=1)) as first:
        assert await outcome(first) == plain
    async with cached(redis_url, OnnxEntailment(directory, batch_size=1)) as second:
        assert await outcome(second) == plain
    assert first.counts.misses == second.counts.hits > 0
    assert second.counts.misses == 0
    assert any(verdict.entailment for claims in plain[2] for verdict in claims)
    everything = redis_server.do("KEYS", "*")
    for key in tuple(everything):
        kind = redis_server.do("TYPE", key)
        everything += [redis_server.do("GET", key)] if kind == b"string" else redis_server.do("ZRANGE", key, 0, -1)
    assert len(everything) == 3 * first.counts.misses + 1
    assert not [part for part in everything for word in WORDS if word.encode() in part.lower()]
    assert max(map(len, everything)) <= 64


async def test_what_a_model_declares_reaches_the_verdicts(redis_url, directory):
    german = "Das Büro ist von neun bis zwölf Uhr geöffnet und am Montag geschlossen."
    plain = await Verifier(entailment=OnnxEntailment(directory)).verify(german, [german])
    for _ in range(2):
        async with cached(redis_url, OnnxEntailment(directory)) as cache:
            assert await Verifier(entailment=cache).verify(german, [german]) == plain
    assert plain.claims[0].language == "de"


class Fingerprint(FakeEntailment):
    def __init__(self, fingerprint):
        super().__init__(scored)
        self._fingerprint = fingerprint

    def fingerprint(self):
        return self._fingerprint


async def test_two_fingerprints_do_not_mix(redis_url):
    models = [Fingerprint(name) for name in ("a", "b", "a")]
    for model in models:
        async with cached(redis_url, model) as cache:
            await cache.score(pairs(3))
    assert [len(model.pairs) for model in models] == [3, 3, 0]


async def test_two_names_do_not_mix(redis_server, redis_url):
    models = [FakeEntailment(scored) for _ in range(2)]
    for name, model in zip(("shop", "hotel"), models, strict=True):
        async with cached(redis_url, model, name=name) as cache:
            await cache.score(pairs(3))
    assert [len(model.pairs) for model in models] == [3, 3]
    assert redis_server.do("DBSIZE") == 8


@pytest.mark.parametrize("damage", ["SET", "HSET", "index"])
async def test_what_others_put_in_its_place(redis_server, redis_url, damage):
    async with cached(redis_url) as cache:
        await cache.score(pairs(2))
    for key in redis_server.do("KEYS", "*"):
        redis_server.do("DEL", key)
        if damage == "HSET":
            redis_server.do("HSET", key, "field", "value")
        elif damage == "SET" or key.endswith(b"index"):
            redis_server.do("SET", key, "something else")
    async with cached(redis_url) as cache:
        assert [score.entailment for score in await cache.score(pairs(2))] == [scored(*pair) for pair in pairs(2)]


async def test_a_server_that_was_emptied_and_forgot_its_scripts(redis_server, redis_url):
    fake = FakeEntailment(scored)
    for _ in range(2):
        async with cached(redis_url, fake) as cache:
            await cache.score(pairs(2))
        redis_server.do("FLUSHDB")
        redis_server.do("SCRIPT", "FLUSH")
    assert fake.pairs == pairs(2) * 2
    assert cache.counts == CacheCounts(misses=2)


def counted(url, monkeypatch, **settings):
    """A store whose breaker, once open, stays open, and for each question whether it was put to the server."""
    store = RedisStore(url, clock=lambda: 0.0, **settings)
    admit, put = store.breaker.admit, []

    def counting():
        permit = admit()
        put.append(permit is not None)
        return permit

    monkeypatch.setattr(store.breaker, "admit", counting)
    return store, put


async def test_a_server_that_dies_costs_no_time(start_redis, monkeypatch):
    server = start_redis()
    store, put = counted(server.url, monkeypatch, timeout_s=PATIENT_S)
    fake = FakeEntailment(scored)
    async with SharedCache(fake, store) as cache:
        await cache.score(pairs(2))
        await cache.aclose()
        assert put == [True, True]
        server.kill()
        for number in range(200):
            (score,) = await cache.score(pairs(1, number))
            assert score.entailment == scored(*pairs(1, number)[0])
    assert len(put) == 202
    assert 1 <= sum(put[2:]) <= 3
    assert cache.counts == CacheCounts(misses=2, unread=200)
    assert len(fake.pairs) == 202
    await store.aclose()


async def test_a_server_that_does_not_answer_costs_little_time(monkeypatch, caplog):
    with silent_listener() as url:
        store, put = counted(url, monkeypatch, timeout_s=0.05)
        async with SharedCache(FakeEntailment(scored), store) as cache:
            for number in range(200):
                await cache.score(pairs(1, number))
        await store.aclose()
    assert sum(put) == 3
    assert cache.counts == CacheCounts(unread=200)
    assert sum(record.name == "guardrail" for record in caplog.records) == 1
    assert not [record for record in caplog.records if "office" in record.getMessage()]


async def test_a_server_that_comes_back_is_used_again(start_redis):
    server = start_redis()
    store = RedisStore(server.url, timeout_s=PATIENT_S)
    async with SharedCache(FakeEntailment(scored), store) as cache:
        server.kill()
        await cache.score(pairs(1))
        server.start()
        async with asyncio.timeout(30):
            while not cache.counts.misses:
                await asyncio.sleep(0.01)
                await cache.score(pairs(1))
    assert server.do("DBSIZE") == 2
    await store.aclose()


async def test_cancelled_callers_leave_a_cache_that_works(redis_url):
    async with cached(redis_url) as cache:
        for turns in range(40):
            task = asyncio.ensure_future(cache.score(pairs(3, turns % 7)))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        assert [score.entailment for score in await cache.score(pairs(10))] == [scored(*pair) for pair in pairs(10)]
    async with cached(redis_url) as other:
        assert [score.entailment for score in await other.score(pairs(10))] == [scored(*pair) for pair in pairs(10)]
    assert other.counts == CacheCounts(hits=10)


def test_event_loops_in_threads_and_one_after_the_other(redis_url):
    fake = FakeEntailment(scored)
    cache = cached(redis_url, fake)
    found = {}

    def work(number):
        found[number] = [asyncio.run(cache.score(pairs(5, number))), asyncio.run(cache.score(pairs(5, number)))]

    threads = [threading.Thread(target=work, args=(number * 5,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {number: [score.entailment for score in first] for number, (first, _) in found.items()} == {
        number: [scored(*pair) for pair in pairs(5, number)] for number in range(0, 20, 5)
    }
    assert all(first == second for first, second in found.values())
    assert len(fake.pairs) == 20


def test_a_synchronous_verifier_shares_too(redis_url, directory):
    first, second = (cached(redis_url, OnnxEntailment(directory)) for _ in range(2))
    checked = [Verifier(entailment=cache).verify_sync(ANSWER, [DESK]) for cache in (first, second)]
    assert checked[0] == checked[1]
    assert second.counts.misses == 0
    assert second.counts.hits == first.counts.misses > 0
