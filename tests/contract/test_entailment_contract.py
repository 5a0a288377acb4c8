"""What every entailment model keeps, whatever it is made of."""

from __future__ import annotations

import asyncio
import json
import math

import pytest

from guardrail.errors import ScoringError
from guardrail.evaluation.cascade.cascading import Cascade
from guardrail.protocols import Entailment, Pair
from guardrail.scoring.entailment import (
    CrossEncoderEntailment,
    LexicalEntailment,
    OnnxEntailment,
    ScoringWorker,
    as_entailment,
)
from guardrail.scoring.entailment.shared_cache import SharedCache
from guardrail.testing import ScriptedJudge
from guardrail.types import EntailmentScore
from tests.model_servers import served
from tests.stub_encoders import Blocker, StubEncoder
from tests.stub_stores import StubStore
from tests.tiny_models import tiny_models

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
PAIRS = [
    Pair("the archive holds ten maps and photographs", "the archive holds maps"),
    Pair("the door opens at nine", "the plan costs ten euros"),
    Pair("the plan costs ten euros a month", "the plan costs ten euros a month"),
    Pair("maps", "the door"),
]
LONG = "the archive holds photographs and maps " * 60


def overlap(pairs):
    return [len(set(p.split()) & set(h.split())) / len(set(h.split())) for p, h in pairs]


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    return tiny_models(tmp_path_factory)


@pytest.fixture
def worker():
    return ScoringWorker()


THREADED = ["cross-encoder", "onnx", "callable"]  # word overlap of short texts needs no thread
REMOTE = ["tei", "triton"]
CACHED = ["cross-encoder-cached", "onnx-cached"]
SHARED = ["shared-callable", "shared-tei", "shared-onnx", "shared-onnx-cached"]


CASCADES = ["cascade-lexical", "cascade-callable", "cascade-shared-callable"]


def build(kind, request, worker):
    if kind in CASCADES:
        judge = ScriptedJudge(lambda claim: "yes" if "maps" in claim else "timeout")
        return Cascade(judge, model=build(kind.removeprefix("cascade-"), request, worker))
    if kind in SHARED:
        return SharedCache(build(kind.removeprefix("shared-"), request, worker), StubStore(), version="1")
    if kind == "lexical":
        return LexicalEntailment()
    if kind == "callable":
        return as_entailment(overlap, worker=worker)
    if kind in REMOTE:
        return served(kind, lambda premise, hypothesis: overlap([(premise, hypothesis)])[0], batch_size=3)
    directories = request.getfixturevalue("tiny")
    settings = {"worker": worker, "cache_entries": 100 if kind in CACHED else 0}
    if kind.startswith("onnx"):
        return OnnxEntailment(directories.onnx_dir, **settings)
    return CrossEncoderEntailment(directories.torch_dir, **settings)


@pytest.fixture(params=["lexical", *THREADED, *CACHED, *REMOTE, *SHARED, *CASCADES])
def model(request, worker):
    return build(request.param, request, worker)


@pytest.fixture(params=THREADED)
def threaded(request, worker):
    return build(request.param, request, worker)


async def test_it_is_an_entailment_with_a_name(model):
    assert isinstance(model, Entailment)
    assert isinstance(model.model_id, str)
    assert model.model_id


async def test_nothing_in_nothing_out(model):
    assert list(await model.score([])) == []


async def test_one_score_per_pair_in_order(model):
    together = await model.score(PAIRS)
    assert len(together) == len(PAIRS)
    for pair, score in zip(PAIRS, together, strict=True):
        assert isinstance(score, EntailmentScore)
        (alone,) = await model.score([pair])
        assert alone.entailment == pytest.approx(score.entailment, abs=1e-4)
    backwards = await model.score(PAIRS[::-1])
    assert [s.entailment for s in backwards[::-1]] == pytest.approx([s.entailment for s in together], abs=1e-4)


async def test_values_are_plain_probabilities(model):
    for score in await model.score(PAIRS):
        assert type(score.entailment) is float
        assert 0.0 <= score.entailment <= 1.0
        assert score.contradiction is None or 0.0 <= score.contradiction <= 1.0


async def test_any_sequence_of_pairs_will_do(model):
    as_list = await model.score(PAIRS)
    assert list(await model.score(tuple(PAIRS))) == list(as_list)


async def test_a_long_premise_is_read_to_its_end(model):
    without, with_end = await model.score(
        [Pair(LONG, "the door opens"), Pair(LONG + "the door opens", "the door opens")]
    )
    assert with_end.entailment >= without.entailment
    assert len({without.entailment, with_end.entailment, without.contradiction, with_end.contradiction} - {None}) > 1


async def test_the_last_words_of_a_claim_count(model):
    claim = "the archive holds photographs and maps and of the"
    scores = await model.score([Pair(LONG, f"{claim} maps"), Pair(LONG, f"{claim} door")])
    assert scores[0].entailment != scores[1].entailment


async def test_concurrent_calls_do_not_mix(model):
    expected = [s.entailment for s in await model.score(PAIRS)]
    results = await asyncio.gather(*(model.score([pair]) for pair in PAIRS * 3))
    assert [r[0].entailment for r in results] == pytest.approx(expected * 3, abs=1e-4)


async def test_cancellation_drops_queued_work_and_the_loop_lives(threaded, worker):
    blocker = Blocker()
    busy = asyncio.create_task(worker.run(blocker))
    await blocker.running()
    dropped = asyncio.create_task(threaded.score(PAIRS))
    kept = asyncio.create_task(threaded.score(PAIRS[:1]))
    for _ in range(500):  # the loop turns although the model's thread is stuck
        await asyncio.sleep(0)
    assert not dropped.done()
    assert worker.queued == 2
    dropped.cancel()
    with pytest.raises(asyncio.CancelledError):
        await dropped
    assert worker.queued == 1
    blocker.released.set()
    await busy
    assert len(await kept) == 1
    assert worker.queued == 0


@pytest.mark.parametrize("kind", ["cross-encoder", "callable"])
async def test_the_loop_lives_while_a_model_computes(kind, worker):
    blocker = Blocker()

    def logits(premise, hypothesis):
        blocker()
        return [0.0, 9.0, 0.0]

    def score(pairs):
        blocker()
        return [0.9] * len(pairs)

    if kind == "callable":
        model = as_entailment(score, worker=worker)
    else:
        model = CrossEncoderEntailment(StubEncoder(logits), worker=worker)
    task = asyncio.create_task(model.score(PAIRS[:1]))
    await blocker.running()
    for _ in range(500):
        await asyncio.sleep(0)
    assert not task.done()
    blocker.released.set()
    assert (await task)[0].entailment >= 0.9


class NanSession:
    def run(self, names, feed):
        return [[[math.nan] * 3 for _ in feed["input_ids"]]]


@pytest.mark.parametrize("kind", [*THREADED, *REMOTE])
async def test_nan_is_an_error(kind, request):
    if kind == "callable":
        model = as_entailment(lambda pairs: [math.nan for _ in pairs])
    elif kind in REMOTE:
        model = served(kind, lambda premise, hypothesis: math.nan)
    elif kind == "cross-encoder":
        model = CrossEncoderEntailment(StubEncoder(lambda p, h: [math.nan] * 3))
    else:
        model = OnnxEntailment(request.getfixturevalue("tiny").onnx_dir)
        model.load()
        model._loaded[0]._session = NanSession()
    with pytest.raises(ScoringError) as caught:
        await model.score(PAIRS)
    assert caught.value.scorer == model.model_id


def test_the_tiny_models_are_what_they_claim(tiny):
    config = json.loads((tiny.onnx_dir / "config.json").read_text())
    assert config["id2label"]["1"] == "entailment"
