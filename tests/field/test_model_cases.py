"""Reported failures of entailment models in the field (N001 to N015), replayed against ours."""

from __future__ import annotations

import ast
import json
import math
import re
import socket
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from guardrail.errors import ModelLoadError, ScoringError
from guardrail.protocols import Pair
from guardrail.scoring.entailment import CrossEncoderEntailment, OnnxEntailment, as_entailment, resolve_labels
from guardrail.scoring.entailment.labels import probabilities
from guardrail.scoring.reference import ReferenceVerifier
from guardrail.types import EntailmentScore
from tests.stub_encoders import NLI, StubEncoder
from tests.tiny_models import copy_of, tiny_models

CASES = Path(__file__).parents[3] / "shared" / "cases" / "cases.dev.jsonl"
pytestmark = [
    pytest.mark.shared_data,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
PAIR = Pair("the door opens at nine", "the door opens")


@cache
def cases():
    if not CASES.exists():
        pytest.skip("the shared field cases are not beside the repository")
    lines = CASES.read_text(encoding="utf-8").splitlines()
    return {case["id"]: case for case in map(json.loads, lines)}


def case(name):
    return cases()[name]["input"]


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    return tiny_models(tmp_path_factory)


def label_map(text):
    """``{0:contradiction, 1:'entailment'}`` as the cases write it."""
    quoted = re.sub(r":\s*([A-Za-z_]\w*)", r":'\1'", text[text.index("{") :])
    return ast.literal_eval(quoted)


async def test_n001_the_entailment_index_is_read_by_name():
    stubs = case("N001")["stubs"]
    assert len(stubs) == 3
    for stub in stubs:
        id2label = label_map(stub)
        logits = [9.0 if name.lower() == "entailment" else 0.0 for name in id2label.values()]
        encoder = StubEncoder(lambda premise, hypothesis, row=logits: row, id2label)
        (score,) = await CrossEncoderEntailment(encoder).score([PAIR])
        assert score.entailment > 0.99
        assert score.contradiction < 0.01


async def test_n002_anonymous_labels_are_an_error():
    encoder = StubEncoder(lambda p, h: [0, 9, 0], label_map(case("N002")["id2label"]))
    model = CrossEncoderEntailment(encoder)
    with pytest.raises(ModelLoadError, match="explicit"):
        model.load()
    with pytest.raises(ModelLoadError):
        await model.score([PAIR])
    (score,) = await CrossEncoderEntailment(encoder, labels=NLI).score([PAIR])
    assert score.entailment > 0.99


def test_n003_synonyms_are_mapped_and_unknown_names_refused():
    roles = {
        "contradictory": "contradiction",
        "not_entailment": "neutral",
        "entailed": "entailment",
        "refuted": "contradiction",
        "SUPPORTS": "entailment",
    }
    for name in case("N003")["labels"]:
        id2label = {0: name} if roles[name] == "entailment" else {0: name, 1: "entailment"}
        assert getattr(resolve_labels(id2label), roles[name]) == 0
    with pytest.raises(ModelLoadError, match="unknown"):
        resolve_labels({0: "entailment", 1: "plausible"})


async def test_n005_one_logit_gets_a_sigmoid_and_no_softmax():
    logits = [float(value) for value in re.findall(r"\[(-?[\d.]+)\]", case("N005")["stub"])]
    assert logits == [-8.3, 0.0, 8.1]
    encoder = StubEncoder(lambda premise, hypothesis: [float(premise)], {0: "LABEL_0"})
    model = CrossEncoderEntailment(encoder, labels={0: "entailment"})
    scores = await model.score([Pair(str(logit), "claim") for logit in logits])
    assert [score.entailment for score in scores] == pytest.approx([0.0002, 0.5, 0.9997], abs=1e-4)
    assert [score.contradiction for score in scores] == [None, None, None]


async def test_n006_logits_and_probabilities_give_the_same_score():
    assert len(case("N006")["stubs"]) == 2
    logits = [-2.0, 3.0, 0.5]
    table = probabilities([logits], rows=1, width=3)[0].tolist()
    (by_logits,) = await CrossEncoderEntailment(StubEncoder(lambda p, h: logits)).score([PAIR])
    declared = CrossEncoderEntailment(StubEncoder(lambda p, h: table), activation="softmax")
    (by_probabilities,) = await declared.score([PAIR])
    assert by_logits.entailment == pytest.approx(by_probabilities.entailment, abs=1e-6)
    for value in logits[:2]:  # a raw logit never passes for a probability
        with pytest.raises(ScoringError):
            await as_entailment(lambda pairs, value=value: [value]).score([PAIR])


async def test_n007_the_claim_is_never_cut():
    assert "3000" in case("N007")["premise"]
    premise = " ".join(f"p{i}" for i in range(3000))
    hypothesis = " ".join(f"h{i}" for i in range(40))
    encoder = StubEncoder(lambda p, h: [0.0, 9.0 if "p2999" in p else -9.0, 0.0])
    (score,) = await CrossEncoderEntailment(encoder).score([Pair(premise, hypothesis)])
    assert score.entailment > 0.99  # the last window counts
    windows = [seen.split() for seen, _ in sorted(encoder.seen, key=lambda pair: int(pair[0].split()[0][1:]))]
    assert all(seen == hypothesis for _, seen in encoder.seen)
    assert all(len(window) + 40 + 3 <= 512 for window in windows)
    assert {word for window in windows for word in window} == set(premise.split())
    assert all(set(left) & set(right) for left, right in pairwise(windows))
    with pytest.raises(ScoringError, match="too long"):
        await CrossEncoderEntailment(encoder).score([Pair(premise, "h " * 510)])


async def test_n007_also_with_real_tokenizers(tiny):
    premise = "the archive holds photographs and maps " * 40
    for model in (CrossEncoderEntailment(tiny.torch_dir), OnnxEntailment(tiny.onnx_dir)):
        one, other = await model.score([Pair(premise, "the plan costs ten"), Pair(premise, "the plan costs nine")])
        assert one.entailment != other.entailment


async def test_n008_the_premise_comes_first():
    assert "premise='P'" in case("N008")["stub"]
    encoder = StubEncoder(lambda premise, hypothesis: [0.0, 9.0 if (premise, hypothesis) == ("P", "H") else -9.0, 0.0])
    right, swapped = await CrossEncoderEntailment(encoder).score([Pair("P", "H"), Pair("H", "P")])
    assert right.entailment > 0.99
    assert swapped.entailment < 0.01
    assert ("P", "H") in encoder.seen


async def test_n009_scores_belong_to_their_pairs():
    count = int(re.match(r"\d+", case("N009")["pairs"]).group())
    random = np.random.default_rng(3)
    pairs = [
        Pair("word " * int(random.integers(1, 900)), f"claim {i} " * int(random.integers(1, 20))) for i in range(count)
    ]

    def logits(premise, hypothesis):
        return [0.0, int(hypothesis.split()[1]) / 20, 0.0]

    encoder = StubEncoder(logits)
    scores = await CrossEncoderEntailment(encoder, batch_size=16).score(pairs)
    expected = probabilities([logits(*pair) for pair in pairs], rows=count, width=3)[:, 1]
    assert [score.entailment for score in scores] == pytest.approx(expected.tolist(), abs=1e-6)

    encoder.predict = lambda batch, **_: np.zeros((1, 3))  # only the first of a batch
    with pytest.raises(ScoringError, match="shape"):
        await CrossEncoderEntailment(encoder).score(pairs)


async def test_n010_nan_is_an_error_and_no_threshold():
    for text in re.findall(r"\[[^\]]+\]", case("N010")["stub"]):
        row = [float(value) for value in text.strip("[]").split(",")]
        with pytest.raises(ScoringError, match="NaN or infinity"):
            await CrossEncoderEntailment(StubEncoder(lambda p, h, row=row: row)).score([PAIR])
    for delta in (math.nan, math.inf, -0.1, 1.1):
        with pytest.raises(ValueError, match="delta"):
            ReferenceVerifier(delta=delta)


async def test_n011_zero_is_a_value():
    assert "0.0" in case("N011")["stub"]
    result = ReferenceVerifier(lambda answer, context: 0.0).verify("Posters are sold.", "The door opens at nine.")
    assert (result.rouge_l, result.entailment, result.entailment_source) == (0.0, 0.0, "model")
    for zero in (0, 0.0, {"entailment": 0.0}, EntailmentScore(entailment=0.0)):
        (score,) = await as_entailment(lambda pairs, zero=zero: [zero]).score([PAIR])
        assert score.entailment == 0.0


async def test_n012_scores_stay_in_range():
    assert case("N012")["steps"]
    random = np.random.default_rng(12)
    for width, id2label in ((3, NLI), (2, {0: "entailment", 1: "not_entailment"}), (1, {0: "entailment"})):
        encoder = StubEncoder(lambda p, h, width=width: random.normal(0, 50, width), id2label)
        scores = await CrossEncoderEntailment(encoder).score([PAIR] * 340)
        assert all(0.0 <= score.entailment <= 1.0 for score in scores)
        assert all(score.contradiction is None or 0.0 <= score.contradiction <= 1.0 for score in scores)


@pytest.mark.parametrize("kind", ["lfs", "cut", "empty", "no tokenizer"])
async def test_n013_a_broken_file_is_named(tiny, tmp_path, kind):
    assert len(case("N013")["files"]) == 4
    for source, build, weights in (
        (tiny.torch_dir, CrossEncoderEntailment, "model.safetensors"),
        (tiny.onnx_dir, OnnxEntailment, "model.onnx"),
    ):
        directory = copy_of(source, tmp_path / weights)
        path = directory / weights
        good = path.read_bytes()
        if kind == "no tokenizer":
            path = directory / "tokenizer.json"
            good = path.read_bytes()
            path.unlink()
        else:
            path.write_bytes(
                {"lfs": b"version https://git-lfs.github.com/spec/v1\n" * 3, "cut": good[:1024], "empty": b""}[kind]
            )
        model = build(directory)
        for _ in range(2):  # the failure is not cached as a loaded model
            with pytest.raises(ModelLoadError, match=re.escape(path.name)):
                await model.score([PAIR])
        path.write_bytes(good)
        assert len(await model.score([PAIR])) == 1


async def test_n014_a_local_model_needs_no_socket(tiny, monkeypatch):
    assert "HF_HUB_OFFLINE" in case("N014")["env"]

    def refuse(*args, **kwargs):
        raise AssertionError("a socket was used")

    for owner, name in ((socket, "getaddrinfo"), (socket, "create_connection"), (socket.socket, "connect")):
        monkeypatch.setattr(owner, name, refuse)
    for model in (CrossEncoderEntailment(tiny.torch_dir), OnnxEntailment(tiny.onnx_dir)):
        assert len(await model.score([PAIR])) == 1
    assert len(ReferenceVerifier().per_sentence("The door opens. It closes.", "The door opens.")) == 2


async def test_n015_an_unknown_answer_is_never_a_pass():
    for text in case("N015")["custom checker returns"]:
        if text == "raises":

            def check(pairs):
                raise RuntimeError("down")
        else:
            value = ast.literal_eval(text)

            def check(pairs, value=value):
                return value

            with pytest.raises(ScoringError):
                await as_entailment(lambda pairs, value=value: [value]).score([PAIR])
        with pytest.raises(ScoringError):
            await as_entailment(check).score([PAIR])
