from __future__ import annotations

import asyncio
import functools
import math
import threading

import numpy as np
import pytest

from guardrail.errors import ConfigurationError, ScoringError
from guardrail.protocols import Entailment, Pair
from guardrail.scoring.entailment import (
    CrossEncoderEntailment,
    LexicalEntailment,
    OnnxEntailment,
    RemoteEntailment,
    ScoringWorker,
    as_entailment,
)
from guardrail.types import EntailmentScore

PAIRS = [Pair("premise one", "claim one"), Pair("premise two", "claim two")]


def returns(value):
    return as_entailment(lambda pairs: value)


class WithScore:
    model_id = "mine"

    def score(self, pairs):
        return [0.25 for _ in pairs]


class WithAsyncScore:
    model_id = "mine-async"

    async def score(self, pairs):
        return [EntailmentScore(entailment=0.25) for _ in pairs]


class WithPredict:
    def predict(self, pairs):
        return np.full(len(pairs), 0.25, dtype=np.float32)


class AsyncCallable:
    async def __call__(self, pairs):
        return [0.25 for _ in pairs]


def plain(pairs):
    return [{"entailment": 0.25} for _ in pairs]


async def coroutine(pairs, value=0.25):
    return tuple(value for _ in pairs)


@pytest.mark.parametrize(
    ("obj", "model_id"),
    [
        (WithScore(), "mine"),
        (WithAsyncScore(), "mine-async"),
        (WithPredict(), "WithPredict"),
        (AsyncCallable(), "AsyncCallable"),
        (plain, "plain"),
        (coroutine, "coroutine"),
        (functools.partial(coroutine, value=0.25), "partial"),
        (lambda pairs: coroutine(pairs), "<lambda>"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_everything_that_can_be_called(obj, model_id):
    model = as_entailment(obj)
    assert isinstance(model, Entailment)
    assert model.model_id == model_id
    assert list(await model.score(PAIRS)) == [EntailmentScore(entailment=0.25)] * 2
    assert list(await model.score([])) == []


OWN = [
    *(LexicalEntailment(), OnnxEntailment("nowhere"), CrossEncoderEntailment("nowhere")),
    RemoteEntailment("http://models.test"),
]


@pytest.mark.parametrize("model", OWN)
def test_our_own_models_stay_as_they_are(model):
    assert as_entailment(model) is model


def test_adapting_twice_changes_nothing():
    model = as_entailment(plain)
    assert as_entailment(model) is model


@pytest.mark.parametrize("obj", [None, 3, "cross-encoder/nli", object(), WithScore, {}])
def test_other_objects_are_refused(obj):
    with pytest.raises(ConfigurationError):
        as_entailment(obj)


@pytest.mark.parametrize("url", ["http://models.test:8080", "https://models.test/nli"])
def test_an_address_is_a_remote_model(url):
    model = as_entailment(url)
    assert isinstance(model, RemoteEntailment)
    assert model.model_id == f"remote:{url.split('/')[2]}"


@pytest.mark.parametrize("text", ["cross-encoder/nli", "models.test:8080", "ftp://models.test", "http://", ""])
def test_other_strings_are_refused_with_what_to_do(text):
    with pytest.raises(ConfigurationError, match="http://"):
        as_entailment(text)


async def test_user_code_gets_the_pairs_in_order_as_premise_and_hypothesis():
    seen = []
    await as_entailment(lambda pairs: seen.extend(pairs) or [0.0, 1.0]).score(PAIRS)
    assert seen == [("premise one", "claim one"), ("premise two", "claim two")]


async def test_sync_code_runs_in_the_worker_and_async_code_in_the_loop():
    threads = {}

    def sync(pairs):
        threads["sync"] = threading.get_ident()
        return [0.5]

    async def asynchronous(pairs):
        threads["async"] = threading.get_ident()
        return [0.5]

    worker = ScoringWorker()
    await as_entailment(sync, worker=worker).score(PAIRS[:1])
    await as_entailment(asynchronous).score(PAIRS[:1])
    assert threads["sync"] == await worker.run(threading.get_ident)
    assert threads["async"] == threading.get_ident()


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (0, (0.0, None)),
        (1.0, (1.0, None)),
        (np.float32(0.5), (0.5, None)),
        ({"entailment": 0.0}, (0.0, None)),
        ({"entailment": 0.5, "contradiction": 0.25, "neutral": 0.25}, (0.5, 0.25)),
        ({"entailment": 0.5, "contradiction": None}, (0.5, None)),
        (EntailmentScore(entailment=0.5, contradiction=0.0), (0.5, 0.0)),
    ],
)
async def test_items_that_are_understood(item, expected):
    (score,) = await returns([item]).score(PAIRS[:1])
    assert (score.entailment, score.contradiction) == expected
    assert score.unsupported is None


@pytest.mark.parametrize(
    "item", [{"entailment": 0.5, "unsupported": 0.25}, EntailmentScore(entailment=0.5, unsupported=0.25)], ids=str
)
async def test_a_judgement_of_words_passes(item):
    assert await returns([item]).score(PAIRS[:1]) == [EntailmentScore(entailment=0.5, unsupported=0.25)]


BAD_ITEMS = [
    *({}, None, "no", {"ok": False}, {"ok": True}, {"entailment": None}, {"entailment": "0.9"}, True, False, np.True_),
    *(math.nan, math.inf, -0.01, 1.01, (0.1, 0.8, 0.1), [0.9], 0.9j, {"entailment": 0.9, "verdict": "blocked"}),
    *({"entailment": 0.9, "contradiction": math.nan}, {"entailment": True}, {"contradiction": 0.1}, np.array([0.9])),
    *(EntailmentScore(entailment=math.nan), EntailmentScore(entailment=0.5, contradiction=2.0)),
    *({"entailment": 0.9, "unsupported": math.nan}, EntailmentScore(entailment=0.5, unsupported=-0.1)),
]


@pytest.mark.parametrize("item", BAD_ITEMS, ids=repr)
async def test_any_other_item_is_an_error(item):
    with pytest.raises(ScoringError) as caught:
        await returns([0.9, item]).score(PAIRS)
    assert caught.value.scorer == "<lambda>"


@pytest.mark.parametrize(
    "value",
    [None, {}, {"ok": False}, "no", True, 0.9, [], [0.9], [0.9] * 3, iter([0.9, 0.9]), np.float32(0.9), np.array(0.9)],
    ids=repr,
)
async def test_any_other_container_is_an_error(value):
    with pytest.raises(ScoringError):
        await returns(value).score(PAIRS)


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_exceptions_are_wrapped_without_the_text(kind):
    def fail(pairs):
        raise RuntimeError(f"cannot judge {pairs[0].hypothesis}")

    async def fail_async(pairs):
        fail(pairs)

    with pytest.raises(ScoringError, match="raised RuntimeError") as caught:
        await as_entailment(fail if kind == "sync" else fail_async).score(PAIRS)
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert "claim" not in str(caught.value)


async def test_scoring_errors_pass_and_get_a_scorer():
    original = ScoringError("mine")

    def fail(pairs):
        raise original

    with pytest.raises(ScoringError) as caught:
        await as_entailment(fail).score(PAIRS)
    assert caught.value is original
    assert original.scorer == "fail"


async def test_cancellation_reaches_async_code():
    cancelled = []

    async def wait(pairs):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    task = asyncio.create_task(as_entailment(wait).score(PAIRS))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert cancelled == [True]
