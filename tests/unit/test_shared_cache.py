from __future__ import annotations

import asyncio
import logging
import math

import pytest

from guardrail import Verifier
from guardrail.errors import ConfigurationError, ModelLoadError, ScoringError
from guardrail.protocols import Entailment, Pair
from guardrail.scoring.entailment import (
    LexicalEntailment,
    OnnxEntailment,
    as_entailment,
)
from guardrail.scoring.entailment.shared_cache import CacheCounts, SharedCache
from guardrail.scoring.entailment.shared_entries import pack, unpack
from guardrail.testing import FakeEntailment
from tests.model_servers import remote
from tests.stub_encoders import StubEncoder
from tests.stub_stores import StubStore
from tests.tiny_models import copy_of, tiny_models
from tests.unit.shared_caches import DAMAGED, FULL, PAIRS, A, B, C, model


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    return tiny_models(tmp_path_factory)


@pytest.fixture
def store():
    return StubStore()


def values(scores):
    return [score.entailment for score in scores]


# --- reading, scoring, writing ------------------------------------------------------------------------------------


async def test_another_process_scores_nothing(store):
    first, second = model(), model()
    async with SharedCache(first, store) as cache:
        expected = await cache.score(PAIRS)
    assert values(expected) == [0.1, 0.25, 1.0]
    other = SharedCache(second, store)
    assert await other.score([C, A, B, A]) == [expected[2], expected[0], expected[1], expected[0]]
    assert second.pairs == []
    assert cache.counts == CacheCounts(misses=3)
    assert other.counts == CacheCounts(hits=3)


async def test_only_what_is_missing_is_scored(store):
    async with SharedCache(model(), store) as cache:
        await cache.score([B])
    fake = model()
    async with SharedCache(fake, store) as cache:
        assert values(await cache.score(PAIRS)) == [0.1, 0.25, 1.0]
    assert fake.pairs == [A, C]
    assert len(store.values) == 3


async def test_a_call_is_one_round_trip_to_read_and_one_to_write(store):
    async with SharedCache(model(), store) as cache:
        await cache.score([*PAIRS, A])
    assert [len(read) - 1 for read in store.reads] == [3]
    assert [[len(call.keys) - 1 for call in write] for write in store.writes] == [[3]]


async def test_no_pairs_are_no_round_trip(store):
    assert await SharedCache(model(), store).score([]) == []
    assert store.reads == store.writes == []


async def test_the_answer_does_not_wait_for_the_write(store):
    store.gate.clear()
    cache = SharedCache(model(), store)
    assert values(await cache.score([A])) == [0.1]
    assert store.values == {}
    closing = asyncio.ensure_future(cache.aclose())
    await asyncio.sleep(0)
    assert not closing.done()
    store.gate.set()
    await closing
    assert len(store.values) == 1


async def test_writes_on_their_way_are_bounded(store):
    store.gate.clear()
    fake = FakeEntailment(0.5)
    cache = SharedCache(fake, store)
    for number in range(70):
        await cache.score([Pair("premise", f"claim {number}")])
    assert cache.counts.unwritten == 6
    store.gate.set()
    await cache.aclose()
    assert len(store.values) == 64
    assert len(fake.pairs) == 70


@pytest.mark.parametrize("data", DAMAGED[1:])
async def test_damaged_values_are_scored_and_stored_again(store, data):
    async with SharedCache(model(), store) as cache:
        await cache.score(PAIRS)
    damaged = next(key for key in store.values if unpack(store.values[key]).entailment == 0.25)
    good, store.values[damaged] = store.values[damaged], data
    fake = model()
    async with SharedCache(fake, store) as cache:
        assert values(await cache.score(PAIRS)) == [0.1, 0.25, 1.0]
    assert fake.pairs == [B]
    assert store.values[damaged] == good
    assert cache.counts == CacheCounts(hits=2, misses=1, damaged=1)


@pytest.mark.parametrize("reply", [None, b"OK", [], [None], [pack(FULL)] * 4])
async def test_a_reply_of_another_shape_is_no_reply(store, reply):
    async def command(*args):
        return reply

    store.command = command
    async with SharedCache(model(), store) as cache:
        assert values(await cache.score(PAIRS)) == [0.1, 0.25, 1.0]


@pytest.mark.parametrize("reason", ["refused", "timeout", "auth", "breaker_open", "server_error", "read_only"])
async def test_without_a_store_the_model_is_asked(store, reason, caplog):
    store.down = reason
    fake = model()
    async with SharedCache(fake, store) as cache:
        for _ in range(3):
            assert values(await cache.score([A, B])) == [0.1, 0.25]
    assert fake.pairs == [A, B] * 3
    assert store.writes == []  # what could not be read a moment ago is not written either
    assert cache.counts == CacheCounts(unread=6)
    (said,) = caplog.records
    assert (said.levelno, said.name) == (logging.WARNING, "guardrail")
    assert reason in said.getMessage()
    assert "desk" not in said.getMessage()


@pytest.mark.parametrize("down", ["timeout", RuntimeError("odd")])
async def test_a_failed_write_is_counted_and_said_once(store, down, caplog):
    store.gate.clear()
    cache = SharedCache(model(), store)
    await cache.score([A, B])
    await cache.score([C])
    store.down = down
    store.gate.set()
    await cache.aclose()
    assert cache.counts == CacheCounts(misses=3, unwritten=3)
    assert len(caplog.records) == 1


async def test_errors_of_the_model_are_errors_and_nothing_is_stored(store):
    def score(premise, hypothesis):
        raise ValueError(premise)

    cache = SharedCache(FakeEntailment(score), store)
    with pytest.raises(ScoringError, match="fake raised ValueError") as caught:
        await cache.score([A])
    assert caught.value.scorer == "fake"
    await cache.aclose()
    assert store.writes == []


async def test_what_a_model_returns_is_checked_before_it_is_stored(store):
    cache = SharedCache(lambda pairs: [math.nan for _ in pairs], store)
    with pytest.raises(ScoringError, match="nan"):
        await cache.score([A])
    assert store.writes == []


class SlowModel(FakeEntailment):
    """Answers when it is told to."""

    def __init__(self):
        super().__init__(0.5)
        self.go = asyncio.Event()

    async def score(self, pairs):
        found = await super().score(pairs)
        await self.go.wait()
        return found


async def until(condition):
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0)


async def test_concurrent_misses_are_scored_once(store):
    slow = SlowModel()
    cache = SharedCache(slow, store)
    tasks = [asyncio.ensure_future(cache.score(pairs)) for pairs in ([A, B], [B, A], [B, C])]
    await until(lambda: len(slow.pairs) == 3)
    slow.go.set()
    assert [values(found) for found in await asyncio.gather(*tasks)] == [[0.5, 0.5]] * 3
    assert slow.pairs == [A, B, C]
    await cache.aclose()


async def test_a_cancelled_caller_stores_nothing_and_the_others_go_on(store):
    slow = SlowModel()
    cache = SharedCache(slow, store)
    first = asyncio.ensure_future(cache.score([A, B]))
    await until(lambda: slow.pairs == [A, B])
    second = asyncio.ensure_future(cache.score([B]))
    await until(lambda: len(store.reads) == 1)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert store.writes == []
    slow.go.set()
    assert values(await second) == [0.5]
    await cache.aclose()
    assert slow.pairs == [A, B, B]
    assert len(store.values) == 1


async def test_cancelling_while_closing_leaves_the_writes_alone(store):
    store.gate.clear()
    cache = SharedCache(model(), store)
    await cache.score([A])
    closing = asyncio.ensure_future(cache.aclose())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    store.gate.set()
    await cache.aclose()
    assert len(store.values) == 1


def test_the_last_write_survives_the_end_of_its_event_loop():
    store = StubStore()
    cache = SharedCache(model(), store)
    assert values(asyncio.run(cache.score([A]))) == [0.1]
    assert len(store.values) == 1
    assert values(asyncio.run(cache.score([A, B]))) == [0.1, 0.25]
    assert cache.counts == CacheCounts(hits=1, misses=2)


async def test_a_write_does_not_carry_the_context_of_its_run(store):
    import contextvars

    variable = contextvars.ContextVar("variable", default="unset")
    variable.set("of the run")
    seen = []
    original = store.call

    async def call(calls):
        seen.append(variable.get())
        return await original(calls)

    store.call = call
    async with SharedCache(model(), store) as cache:
        await cache.score([A])
    assert seen == ["unset"]


# --- in the place of the model ------------------------------------------------------------------------------------


class Declaring(FakeEntailment):
    """Declares what it knows once it is loaded, as models in files do."""

    def __init__(self):
        super().__init__(0.5)
        self.loads = 0
        self.closed = 0

    def load(self, path):
        raise AssertionError("its own business")

    def fingerprint(self):
        self.loads += 1
        self.languages, self.missing_log_odds, self.lexical_weight, self.detection_delta = {"en"}, 3.0, 0.07, 0.4
        return "declaring"

    async def aclose(self):
        self.closed += 1


DECLARED = {"languages": {"en"}, "missing_log_odds": 3.0, "lexical_weight": 0.07, "detection_delta": 0.4}


async def test_what_the_model_declares_is_known_although_every_score_is_cached(store):
    async with SharedCache(Declaring(), store) as cache:
        await cache.score([A])
    declaring = Declaring()
    cache = SharedCache(declaring, store)
    assert [getattr(cache, name) for name in DECLARED] == [None] * 4
    await cache.score([A])
    await cache.score([A])
    assert declaring.pairs == []
    assert {name: getattr(cache, name) for name in DECLARED} == DECLARED
    assert declaring.loads == 1
    verifier = Verifier(entailment=cache)
    assert (verifier.lexical_weight, verifier.detection_delta, verifier.scorer) == (0.07, 0.4, "fake")


async def test_load_loads_the_model(store):
    declaring = Declaring()
    cache = SharedCache(declaring, store)
    cache.load()
    assert cache.languages == {"en"}
    await cache.score([A])
    assert declaring.loads == 1
    SharedCache(FakeEntailment(0.5), store).load()


async def test_a_model_that_cannot_be_loaded_is_an_error_and_tried_again(store, tiny, tmp_path):
    directory = copy_of(tiny.onnx_dir, tmp_path / "m")
    good = (directory / "config.json").read_bytes()
    (directory / "config.json").unlink()
    cache = SharedCache(OnnxEntailment(directory), store)
    with pytest.raises(ModelLoadError, match=r"config\.json"):
        await cache.score([A])
    (directory / "config.json").write_bytes(good)
    assert len(await cache.score([A])) == 1
    await cache.aclose()


def test_a_model_without_declarations_has_none(store):
    cache = SharedCache(lambda pairs: [0.5] * len(pairs), store)
    assert [getattr(cache, name) for name in DECLARED] == [None] * 4


async def test_closing_closes_what_it_wraps_and_not_a_store_that_was_given(store):
    declaring = Declaring()
    async with SharedCache(declaring, store):
        pass
    assert (declaring.closed, store.closed) == (1, 0)


def test_it_is_an_entailment_and_users_code_may_be_anything(store):
    for given in (model(), lambda pairs: [0.5] * len(pairs), StubEncoder(lambda p, h: [0.0, 9.0, 0.0])):
        cache = SharedCache(given, store)
        assert isinstance(cache, Entailment)
        assert cache.model_id == as_entailment(given).model_id


def test_the_default_is_the_embedded_model(store):
    cache = SharedCache(None, store)
    assert cache.model_id == Verifier().scorer


def test_word_overlap_needs_no_cache(store):
    with pytest.raises(ConfigurationError, match="word overlap costs less"):
        SharedCache(LexicalEntailment(), store)


async def test_a_remote_model_needs_a_version(store):
    client = remote("tei", lambda request: None)
    with pytest.raises(ConfigurationError, match="version="):
        SharedCache(client, store)
    with pytest.raises(ConfigurationError, match="version="):
        SharedCache("http://models.test", store)
    assert SharedCache(client, store, version="1").model_id == "remote:models.test:8080"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"ttl_s": 0}, "ttl_s"),
        ({"ttl_s": 0.5}, "ttl_s"),
        ({"ttl_s": math.nan}, "ttl_s"),
        ({"ttl_s": math.inf}, "ttl_s"),
        ({"ttl_s": True}, "ttl_s"),
        ({"ttl_s": "60"}, "ttl_s"),
        ({"max_entries": 0}, "max_entries"),
        ({"max_entries": 1.5}, "max_entries"),
        ({"max_entries": True}, "max_entries"),
        ({"name": ""}, "name"),
        ({"name": "a{b"}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"name": "a" * 201}, "name"),
        ({"name": 3}, "name"),
        ({"version": 3}, "version"),
    ],
)
def test_settings_that_cannot_be_used(store, settings, said):
    with pytest.raises(ConfigurationError, match=said):
        SharedCache(model(), store, **settings)


def test_a_wrong_address_is_said_without_its_password():
    with pytest.raises(ConfigurationError) as caught:
        SharedCache(model(), "http://user:secret@localhost")
    assert "secret" not in str(caught.value)
    assert "secret" not in repr(SharedCache(model(), "redis://user:secret@localhost"))
