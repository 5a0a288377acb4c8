"""Which models share their scores."""

import asyncio

import pytest

from guardrail import Verifier
from guardrail.errors import ScoringError
from guardrail.scoring.entailment import (
    CrossEncoderEntailment,
    OnnxEntailment,
    RemoteEntailment,
)
from guardrail.scoring.entailment.shared_cache import SharedCache
from guardrail.testing import FakeEntailment
from tests.stub_encoders import StubEncoder
from tests.stub_stores import StubStore
from tests.tiny_models import copy_of, edit_config, tiny_models
from tests.unit.shared_caches import PAIRS, A


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    return tiny_models(tmp_path_factory)


@pytest.fixture
def store():
    return StubStore()


class Named(FakeEntailment):
    model_id = "named"


class Fingerprint(Named):
    def __init__(self, fingerprint):
        super().__init__(0.5)
        self._fingerprint = fingerprint

    def fingerprint(self):
        return self._fingerprint


def renamed(name):
    fake = Named(0.5)
    fake.model_id = name
    return fake


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        (Named(0.5), Named(0.5), True),
        (Named(0.5), renamed("v2"), False),
        (Fingerprint("a"), Fingerprint("a"), True),
        (Fingerprint("a"), Fingerprint("b"), False),
        (Fingerprint("named"), Named(0.5), False),
    ],
)
async def test_models_share_only_with_themselves(store, one, other, shared):
    async with SharedCache(one, store) as cache:
        await cache.score([A])
    other.pairs.clear()
    async with SharedCache(other, store) as cache:
        await cache.score([A])
    assert (other.pairs == []) is shared
    assert len(store.values) == (1 if shared else 2)


async def test_a_version_is_part_of_the_model(store):
    fake = FakeEntailment(0.5)
    for version in ("1", "2", "1"):
        async with SharedCache(fake, store, version=version) as cache:
            await cache.score([A])
    assert fake.pairs == [A, A]


async def test_a_release_of_the_package_is_part_of_the_model(store, monkeypatch):
    fake = FakeEntailment(0.5)
    for release in ("1.0", "1.1"):
        monkeypatch.setattr("guardrail.scoring.entailment.shared_cache.__version__", release)
        async with SharedCache(fake, store) as cache:
            await cache.score([A])
    assert fake.pairs == [A, A]


async def test_a_model_that_changes_its_name_in_use_is_another_one(store):
    fake = renamed("v1")
    async with SharedCache(fake, store) as cache:
        await cache.score([A])
        assert Verifier(entailment=cache).scorer == "v1"
        fake.model_id = "v2"
        await cache.score([A])
    assert fake.pairs == [A, A]


@pytest.mark.parametrize("wrong", [None, 7, ""])
async def test_a_fingerprint_is_text(store, wrong):
    with pytest.raises(ScoringError, match=r"fingerprint\(\) of named must return a str"):
        await SharedCache(Fingerprint(wrong), store).score([A])


def fingerprints(*models):
    return len({each.fingerprint() for each in models})


def test_an_onnx_model_is_its_files_and_settings(tiny, tmp_path):
    same = OnnxEntailment(copy_of(tiny.onnx_dir, tmp_path / "same"), threads=2, batch_size=3, cache_entries=0)
    assert fingerprints(OnnxEntailment(tiny.onnx_dir), same) == 1
    relabelled = copy_of(tiny.onnx_dir, tmp_path / "labels")
    edit_config(relabelled, id2label={"0": "neutral", "1": "entailment", "2": "contradiction"})
    calibrated = copy_of(tiny.onnx_dir, tmp_path / "calibrated")
    edit_config(calibrated, guardrail_calibration={"bias": 0.1, "entailment": 1.0})
    more = copy_of(tiny.onnx_dir, tmp_path / "more")
    (more / "model.onnx_data").write_bytes(b"more weights")
    tokens = copy_of(tiny.onnx_dir, tmp_path / "tokens")
    (tokens / "tokenizer.json").write_text((tokens / "tokenizer.json").read_text() + "\n")
    models = [OnnxEntailment(each) for each in (tiny.onnx_dir, relabelled, calibrated, more, tokens)]
    assert fingerprints(*models, OnnxEntailment(tiny.onnx_dir, max_tokens=40)) == 6


def test_other_weights_of_an_onnx_model_are_another_model(tiny, tmp_path):
    import onnx
    from onnx import numpy_helper

    changed = copy_of(tiny.onnx_dir, tmp_path / "changed")
    graph = onnx.load(changed / "model.onnx")
    tensor = next(t for t in graph.graph.initializer if len(t.dims) == 2)
    array = numpy_helper.to_array(tensor).copy()
    array.flat[0] += 1e-3
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    onnx.save(graph, changed / "model.onnx")
    assert fingerprints(OnnxEntailment(tiny.onnx_dir), OnnxEntailment(changed)) == 2


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_cross_encoder_is_its_weights_in_memory(tiny, tmp_path):
    import torch
    from sentence_transformers import CrossEncoder

    one = CrossEncoderEntailment(tiny.torch_dir)
    copied = CrossEncoderEntailment(copy_of(tiny.torch_dir, tmp_path / "elsewhere"))
    assert fingerprints(one, copied) == 1
    encoder = CrossEncoder(str(tiny.torch_dir), device="cpu")
    before = CrossEncoderEntailment(encoder).fingerprint()
    assert before == one.fingerprint()
    with torch.no_grad():
        next(iter(encoder.parameters())).view(-1)[0] += 1e-3
    after = CrossEncoderEntailment(encoder).fingerprint()
    lower = CrossEncoderEntailment(encoder.to(torch.bfloat16)).fingerprint()
    assert len({before, after, lower}) == 3


def test_an_encoder_that_does_not_show_its_weights_is_its_name():
    def named(name):
        encoder = StubEncoder(lambda p, h: [0.0, 9.0, 0.0])
        encoder.config._name_or_path = name
        return CrossEncoderEntailment(encoder)

    assert fingerprints(named("a"), named("a")) == 1
    assert fingerprints(named("a"), named("b")) == 2


def test_a_remote_model_is_its_endpoint():
    def at(url, **settings):
        return RemoteEntailment(url, **settings)

    same = [at("http://user:secret@m.test:8080"), at("http://m.test:8080/"), at("http://m.test:8080/predict")]
    assert fingerprints(*same) == 1
    labels = {0: "contradiction", 1: "entailment"}
    others = [at("http://m.test:8081"), at("http://m.test:8080/b"), at("http://m.test:8080", labels=labels)]
    triton = [at(f"http://m.test:8080/v2/models/{name}", api="triton", labels=labels) for name in "ab"]
    assert fingerprints(same[0], *others, *triton) == 6


async def test_a_model_with_a_memory_is_asked_for_before_redis(tiny, store):
    async with SharedCache(OnnxEntailment(tiny.onnx_dir), store) as cache:
        expected = await cache.score(PAIRS)
        assert await cache.score(PAIRS) == expected
    assert len(store.reads) == 1
    model = OnnxEntailment(tiny.onnx_dir)
    async with SharedCache(model, store) as other:
        for _ in range(2):
            assert await other.score(PAIRS) == expected
    assert len(store.reads) == 2
    assert len(model.memory) == 3
    assert len(store.writes) == 1


async def test_without_a_memory_redis_is_asked_every_time(tiny, store):
    async with SharedCache(OnnxEntailment(tiny.onnx_dir, cache_entries=0), store) as cache:
        first, second = await asyncio.gather(cache.score(PAIRS), cache.score(PAIRS))
        assert first == second == await cache.score(PAIRS)
    assert cache.counts.misses == 3
