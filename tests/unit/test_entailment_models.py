from __future__ import annotations

import hashlib
import json
import os
import socket
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from guardrail.errors import ConfigurationError, MissingExtraError, ModelLoadError, ScoringError
from guardrail.protocols import Pair
from guardrail.scoring.entailment import (
    CrossEncoderEntailment,
    LexicalEntailment,
    OnnxEntailment,
    as_entailment,
    default_entailment,
    embedded_model_dir,
    onnx,
)
from tests.stub_encoders import StubEncoder
from tests.tiny_models import MAX_TOKENS, WORDS, copy_of, edit_config, tiny_models

# torch and transformers warn about themselves
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 12345\n"
PAIR = Pair("the door opens at nine", "the door opens")


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    return tiny_models(tmp_path_factory)


def random_pairs(count, seed=5):
    random = np.random.default_rng(seed)

    def text(most):
        return " ".join(random.choice(WORDS, size=random.integers(1, most)))

    return [Pair(text(200), text(25)) for _ in range(count)]


async def test_onnx_and_torch_agree(tiny):
    pairs = random_pairs(40)
    by_torch = await CrossEncoderEntailment(tiny.torch_dir, batch_size=7).score(pairs)
    by_onnx = await OnnxEntailment(tiny.onnx_dir, batch_size=5).score(pairs)
    for left, right in zip(by_torch, by_onnx, strict=True):
        assert left.entailment == pytest.approx(right.entailment, abs=1e-4)
        assert left.contradiction == pytest.approx(right.contradiction, abs=1e-4)
    assert len({round(score.entailment, 3) for score in by_onnx}) > 20  # the model does tell pairs apart


async def test_scores_do_not_depend_on_the_batch(tiny):
    pairs = random_pairs(15)
    model = OnnxEntailment(tiny.onnx_dir, cache_entries=0)
    together = await model.score(pairs)
    for pair, score in zip(pairs, together, strict=True):
        (alone,) = await model.score([pair])
        assert alone.entailment == pytest.approx(score.entailment, abs=1e-4)


async def test_a_local_model_needs_no_network(tiny, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("network")

    for name in ("getaddrinfo", "create_connection"):
        monkeypatch.setattr(socket, name, refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    for model in (
        CrossEncoderEntailment(tiny.torch_dir),
        CrossEncoderEntailment(str(tiny.torch_dir)),
        OnnxEntailment(tiny.onnx_dir),
    ):
        assert len(await model.score([PAIR])) == 1


async def test_anonymous_labels_need_a_map(tiny, tmp_path):
    directory = copy_of(tiny.torch_dir, tmp_path / "m")
    edit_config(directory, id2label={str(i): f"LABEL_{i}" for i in range(3)})
    with pytest.raises(ModelLoadError, match="labels="):
        CrossEncoderEntailment(directory).load()
    explicit = CrossEncoderEntailment(directory, labels={0: "contradiction", 1: "entailment", 2: "neutral"})
    (score,) = await explicit.score([PAIR])
    (expected,) = await CrossEncoderEntailment(tiny.torch_dir).score([PAIR])
    assert score == expected


def test_labels_that_do_not_fit_the_outputs(tiny, tmp_path):
    directory = copy_of(tiny.onnx_dir, tmp_path / "m")
    edit_config(directory, id2label={"0": "entailment", "1": "not_entailment"})
    with pytest.raises(ModelLoadError, match=r"cannot score.*shape"):
        OnnxEntailment(directory).load()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_a_model_that_was_used_works_in_a_forked_child(tiny):
    script = f"""
        import asyncio, os
        from guardrail.protocols import Pair
        from guardrail.scoring.entailment import OnnxEntailment
        model, pairs = OnnxEntailment({str(tiny.onnx_dir)!r}), [Pair("the door", "the door"), Pair("maps", "the plan")]
        expected = asyncio.run(model.score(pairs))
        child = os.fork()
        if child == 0:
            os._exit(0 if asyncio.run(model.score(pairs)) == expected else 1)
        raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")


def with_word_head(directory):
    """Give the graph an output ``unsupported``: a token's logit is a tenth of its number above 50."""
    import onnx
    from onnx import TensorProto, helper

    graph = onnx.load(str(directory / "model.onnx"))
    constants = [("ten", 0.1), ("middle", 50.0)]
    graph.graph.initializer.extend(
        helper.make_tensor(name, TensorProto.FLOAT, [], [value]) for name, value in constants
    )
    graph.graph.node.extend(
        [
            helper.make_node("Cast", ["input_ids"], ["number"], to=TensorProto.FLOAT),
            helper.make_node("Sub", ["number", "middle"], ["distance"]),
            helper.make_node("Mul", ["distance", "ten"], ["unsupported"]),
        ]
    )
    graph.graph.output.append(helper.make_tensor_value_info("unsupported", TensorProto.FLOAT, ["batch", "tokens"]))
    onnx.save(graph, str(directory / "model.onnx"))


async def test_a_graph_that_judges_words(tiny, tmp_path):
    from tokenizers import Tokenizer

    directory = copy_of(tiny.onnx_dir, tmp_path / "m")
    with_word_head(directory)
    tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
    claims = ["maps", "the door opens at nine", "the plan costs ten euros a month", "a b ! q"]
    model = OnnxEntailment(directory)
    scores = await model.score([Pair("the archive holds photographs and maps", claim) for claim in claims])
    for claim, score in zip(claims, scores, strict=True):
        ids = np.array(tokenizer.encode(claim, add_special_tokens=False).ids)
        expected = np.sort(1 / (1 + np.exp(-(ids - 50) / 10)))[-4:].mean()
        assert score.unsupported == pytest.approx(float(expected), abs=1e-5)
    (plain,) = await OnnxEntailment(tiny.onnx_dir).score([Pair("the archive holds photographs and maps", "maps")])
    assert plain.unsupported is None
    assert plain.entailment == pytest.approx(scores[0].entailment, abs=1e-5)


async def test_the_words_of_a_long_pair_are_those_of_its_best_window(tiny, tmp_path):
    directory = copy_of(tiny.onnx_dir, tmp_path / "m")
    with_word_head(directory)
    premise = " ".join(pair.premise for pair in random_pairs(2))
    (score,) = await OnnxEntailment(directory).score([Pair(premise, "the plan costs ten euros")])
    (alone,) = await OnnxEntailment(directory).score([Pair("the door", "the plan costs ten euros")])
    assert score.unsupported == pytest.approx(alone.unsupported)  # the tiny head looks at the claim alone


async def test_checksums(tiny, tmp_path):
    directory = copy_of(tiny.onnx_dir, tmp_path / "m")
    sums = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in directory.iterdir()}
    (directory / "checksums.json").write_text(json.dumps(sums))
    assert len(await OnnxEntailment(directory).score([PAIR])) == 1
    edit_config(directory, note="changed")
    with pytest.raises(ModelLoadError, match=r"config\.json does not match its checksum"):
        OnnxEntailment(directory).load()
    (directory / "checksums.json").write_text(json.dumps({"gone.bin": "0"}))
    with pytest.raises(ModelLoadError, match=r"gone\.bin is missing"):
        OnnxEntailment(directory).load()
    (directory / "checksums.json").write_text("[]")
    with pytest.raises(ModelLoadError, match=r"checksums\.json"):
        OnnxEntailment(directory).load()


async def test_max_tokens_makes_smaller_windows(tiny):
    model = OnnxEntailment(tiny.onnx_dir, max_tokens=40)
    model.load()
    loaded, limits = model._loaded
    assert (limits.max_tokens, limits.special_tokens) == (40, 3)
    shapes = []
    run = loaded._session.run
    loaded._session = type(
        "Spy", (), {"run": lambda self, _, feed: shapes.append(feed["input_ids"].shape) or run(_, feed)}
    )()
    premise = " ".join(pair.premise for pair in random_pairs(3))
    await model.score([Pair(premise, "the archive holds maps")])
    assert sum(rows for rows, _ in shapes) > 4
    assert max(columns for _, columns in shapes) <= 40


def test_the_models_own_limit_holds(tiny):
    for model in (
        OnnxEntailment(tiny.onnx_dir, max_tokens=4000),
        CrossEncoderEntailment(tiny.torch_dir, max_tokens=4000),
    ):
        model.load()
        assert model._loaded[1].max_tokens == MAX_TOKENS


async def test_a_claim_that_does_not_fit_is_an_error(tiny):
    for model in (OnnxEntailment(tiny.onnx_dir), CrossEncoderEntailment(tiny.torch_dir)):
        with pytest.raises(ScoringError, match="claim too long") as caught:
            await model.score([Pair("the door opens", "the archive holds maps " * 30)])
        assert caught.value.scorer == model.model_id


async def test_an_encoder_that_is_already_loaded(tiny):
    from sentence_transformers import CrossEncoder

    encoder = CrossEncoder(str(tiny.torch_dir), device="cpu", local_files_only=True)
    for model in (CrossEncoderEntailment(encoder), as_entailment(encoder)):
        (score,) = await model.score([PAIR])
        (expected,) = await CrossEncoderEntailment(tiny.torch_dir).score([PAIR])
        assert score == expected


async def test_the_configured_activation_of_an_encoder_does_not_matter(tiny):
    import torch
    from sentence_transformers import CrossEncoder

    encoder = CrossEncoder(str(tiny.torch_dir), activation_fn=torch.nn.Sigmoid(), local_files_only=True)
    (score,) = await CrossEncoderEntailment(encoder).score([PAIR])
    (expected,) = await CrossEncoderEntailment(tiny.torch_dir).score([PAIR])
    assert score.entailment == pytest.approx(expected.entailment, abs=1e-6)


async def test_many_threads_load_once(tiny, monkeypatch):
    import asyncio

    from guardrail.scoring.entailment import ScoringWorker

    opened = []
    real = CrossEncoderEntailment._open
    monkeypatch.setattr(CrossEncoderEntailment, "_open", lambda self: opened.append(1) or real(self))
    model = CrossEncoderEntailment(tiny.torch_dir, worker=ScoringWorker(threads=4))
    results = await asyncio.gather(*(model.score([PAIR]) for _ in range(8)))
    assert opened == [1]
    assert len({round(result[0].entailment, 6) for result in results}) == 1


@pytest.mark.parametrize("attribute", ["config", "tokenizer"])
async def test_something_that_is_no_encoder(attribute):
    encoder = StubEncoder(lambda p, h: [0, 0, 0])
    delattr(encoder, attribute)
    with pytest.raises(ModelLoadError, match="is it a CrossEncoder"):
        await CrossEncoderEntailment(encoder).score([PAIR])


async def test_a_slow_tokenizer_is_refused():
    encoder = StubEncoder(lambda p, h: [0, 0, 0])
    encoder.tokenizer.is_fast = False
    with pytest.raises(ModelLoadError, match="offsets"):
        await CrossEncoderEntailment(encoder).score([PAIR])


async def test_exceptions_of_the_model_are_wrapped_without_the_text():
    def fail(premise, hypothesis):
        raise RuntimeError(f"out of memory in {hypothesis}")

    with pytest.raises(ScoringError, match="StubEncoder failed with RuntimeError") as caught:
        await CrossEncoderEntailment(StubEncoder(fail)).score([PAIR])
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert "door" not in str(caught.value)
    assert caught.value.scorer == "StubEncoder"


async def test_blank_texts_score_zero_unasked():
    encoder = StubEncoder(lambda p, h: [-9, 9, -9])
    scores = await CrossEncoderEntailment(encoder).score([Pair("", "claim"), Pair("premise", " \n"), PAIR])
    assert [round(score.entailment) for score in scores] == [0, 0, 1]
    assert encoder.seen == [tuple(PAIR)]


def test_a_missing_extra_is_named(tiny, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtraError, match=r"guardrail-stream\[cross-encoder\]"):
        CrossEncoderEntailment(tiny.torch_dir).load()


@pytest.mark.parametrize(
    "build",
    [
        lambda: CrossEncoderEntailment("m", batch_size=0),
        lambda: CrossEncoderEntailment("m", cache_entries=-1),
        lambda: OnnxEntailment("m", threads=0),
        lambda: OnnxEntailment("m", cache_entries=-1),
    ],
)
def test_sizes_are_checked(build):
    with pytest.raises(ConfigurationError):
        build()


async def test_the_default_is_the_embedded_model_or_a_declared_baseline(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(onnx, "_EMBEDDED", tmp_path / "none")
    assert embedded_model_dir() is None
    assert isinstance(default_entailment(), LexicalEntailment)

    directory = copy_of(tiny.onnx_dir, tmp_path / "embedded")
    monkeypatch.setattr(onnx, "_EMBEDDED", directory)
    assert embedded_model_dir() == directory
    model = default_entailment()
    assert default_entailment() is model
    assert model.model_id == "onnx:embedded"
    (directory / "model.onnx").write_bytes(LFS)
    with pytest.raises(ModelLoadError, match="git lfs pull"):
        await model.score([PAIR])


def test_importing_the_models_imports_no_heavy_library():
    script = (
        "import sys, guardrail.scoring.entailment, guardrail.scoring.reference;"
        "heavy = {'torch', 'transformers', 'sentence_transformers', 'onnxruntime', 'tokenizers', 'httpx'};"
        "heavy &= set(sys.modules);"
        "raise SystemExit(str(sorted(heavy)) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
