"""From a network to files that the guard runs, and back."""

from __future__ import annotations

import asyncio
import hashlib
import json
import warnings

import pytest

from guardrail.errors import ModelLoadError
from guardrail.protocols import Pair
from guardrail.scoring.entailment.onnx import OnnxEntailment
from tests.tiny_models import copy_of, edit_config
from tests.unit.training.toy import tiny, toy_pairs

PAIRS = toy_pairs(24)


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return tiny(tmp_path_factory).torch_dir


@pytest.fixture(scope="module")
def network(base, tmp_path_factory):
    """Trained a little, so that its probabilities differ from pair to pair."""
    import torch

    from guardrail.training.batches import PairEncoder
    from guardrail.training.loop import Schedule, train
    from guardrail.training.network import GroundingNetwork

    torch.manual_seed(1)
    examples = PairEncoder(base).encode(toy_pairs())
    return train(
        GroundingNetwork.open(base, dropout=0.0),
        examples,
        schedule=Schedule(epochs=8, learning_rate=3e-3, tokens_per_batch=256, dropout=0.0),
        directory=tmp_path_factory.mktemp("trained"),
        log=lambda _: None,
    )


@pytest.fixture(scope="module")
def examples(base):
    from guardrail.training.batches import PairEncoder

    return PairEncoder(base).encode(PAIRS)


@pytest.fixture(scope="module")
def exported(network, base, examples, tmp_path_factory):
    from guardrail.training.export import export

    directory = tmp_path_factory.mktemp("exported") / "model"
    parity = export(
        network, base / "tokenizer.json", directory, examples=examples, languages=("en", "it"), max_tokens=64
    )
    return directory, parity


def _torch(network, examples) -> tuple[list[float], list[float]]:
    """Probability of entailment, and of the most unsupported token of the claim."""
    import torch

    from guardrail.training.batches import collate

    entailed, words = [], []
    with torch.inference_mode():
        for example in examples:
            batch = collate([example])
            classes, tokens = network.eval()(batch.input_ids, batch.attention_mask, batch.token_type_ids)
            entailed.append(torch.softmax(classes, -1)[0, 1].item())
            claim = [at for at, kind in enumerate(example.types) if kind == 1][:-1]
            words.append(torch.sigmoid(tokens[0, claim]).max().item())
    return entailed, words


def test_the_exported_model_gives_what_the_network_gives(exported):
    _, parity = exported
    assert parity.pairs == 24
    assert parity.exact_max < 1e-4
    assert parity.mean_drift < 0.03
    assert parity.same_side >= 0.9


def test_the_guard_reads_the_export_and_scores_agree(exported, network, examples):
    directory, _ = exported
    scores = asyncio.run(OnnxEntailment(directory).score([Pair(p.premise, p.hypothesis) for p in PAIRS]))
    entailed, words = _torch(network, examples)
    apart = [abs(s.entailment - p) for s, p in zip(scores, entailed, strict=True)]
    assert sum(apart) / len(apart) < 0.03
    assert max(s.entailment for s in scores) - min(s.entailment for s in scores) > 0.3
    assert all(s.unsupported is not None and 0 <= s.unsupported <= max(words) + 0.1 for s in scores)


def test_the_outputs_have_names_and_shapes(exported):
    import onnxruntime

    session = onnxruntime.InferenceSession(str(exported[0] / "model.onnx"), providers=["CPUExecutionProvider"])
    shapes = {output.name: list(output.shape) for output in session.get_outputs()}
    assert shapes == {"logits": ["pairs", 3], "unsupported": ["pairs", "tokens"]}
    assert {i.name for i in session.get_inputs()} == {"input_ids", "attention_mask", "token_type_ids"}
    feed = {name: [[2, 5, 3], [2, 6, 3]] if name == "input_ids" else [[1] * 3] * 2 for name in
            ("input_ids", "attention_mask", "token_type_ids")}  # fmt: skip
    assert [output.shape for output in session.run(None, feed)] == [(2, 3), (2, 3)]


def test_weights_of_products_have_seven_bits(exported):
    """So that x86 CPUs without VNNI do not saturate."""
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(str(exported[0] / "model.onnx")).graph
    weights = {node.input[1] for node in graph.node if node.op_type in ("QAttention", "MatMulInteger")}
    arrays = [numpy_helper.to_array(c) for c in graph.initializer if c.name in weights]
    assert len(arrays) == len(weights) >= 10
    assert all(-64 <= array.min() and array.max() <= 64 for array in arrays)


def test_the_files_say_what_they_are(exported):
    directory, _ = exported
    config = json.loads((directory / "config.json").read_text())
    assert config["id2label"] == {"0": "contradiction", "1": "entailment", "2": "neutral"}
    assert (config["max_position_embeddings"], config["guardrail_languages"]) == (64, ["en", "it"])
    sums = json.loads((directory / "checksums.json").read_text())
    assert sums == {
        name: hashlib.sha256((directory / name).read_bytes()).hexdigest()
        for name in ("config.json", "model.onnx", "tokenizer.json")
    }
    assert {p.name for p in directory.iterdir()} == {*sums, "checksums.json"}


def test_an_export_that_differs_is_not_published(network, base, examples, tmp_path, monkeypatch):
    from guardrail.training import export

    monkeypatch.setattr(export, "MAX_MEAN_DRIFT", -1.0)
    with pytest.raises(ModelLoadError, match="the exported model differs from the network"):
        export.export(network, base / "tokenizer.json", tmp_path / "model", examples=examples)
    assert not (tmp_path / "model").exists()
    with pytest.raises(ModelLoadError, match="at least one pair"):
        export.export(network, base / "tokenizer.json", tmp_path / "model", examples=[])


def test_a_network_that_gives_no_numbers_is_not_published(base, examples, tmp_path, monkeypatch):
    import numpy as np

    from guardrail.training import export
    from guardrail.training.network import GroundingNetwork

    monkeypatch.setattr(export, "_torch_probabilities", lambda _, some: np.full(len(some), np.nan))
    with pytest.raises(ModelLoadError, match="the exported model differs from the network"):
        export.export(GroundingNetwork.open(base), base / "tokenizer.json", tmp_path / "model", examples=examples)
    assert not (tmp_path / "model").exists()


def test_weights_come_back_out_of_the_export(exported, network, examples):
    from guardrail.training.network import GroundingNetwork

    directory, _ = exported
    found = GroundingNetwork.from_onnx(directory)
    scores = asyncio.run(OnnxEntailment(directory).score([Pair(p.premise, p.hypothesis) for p in PAIRS]))
    entailed, _ = _torch(found, examples)
    apart = [abs(s.entailment - p) for s, p in zip(scores, entailed, strict=True)]
    assert sum(apart) / len(apart) < 0.03
    original = network.state_dict()
    assert found.state_dict().keys() == original.keys()
    for name, value in found.state_dict().items():
        step = original[name].abs().max().item() / 63  # of a whole table or column
        assert (value - original[name]).abs().max().item() <= 0.51 * step + 1e-6, name
    sizes = network.classifier.config
    assert all(
        getattr(found.classifier.config, key) == getattr(sizes, key)
        for key in ("vocab_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "type_vocab_size",
                    "max_position_embeddings")
    )  # fmt: skip


def test_what_came_back_can_be_exported_again(exported, base, examples, tmp_path):
    from guardrail.training.export import export
    from guardrail.training.network import GroundingNetwork

    again = GroundingNetwork.from_onnx(exported[0])
    parity = export(again, base / "tokenizer.json", tmp_path / "again", examples=examples, max_tokens=64)
    assert parity.mean_drift < 0.03


def test_a_model_in_full_precision_gives_its_weights_exactly(network, tmp_path):
    from guardrail.training import export
    from guardrail.training.from_onnx import read_weights

    with export._quiet():
        export._trace(network, tmp_path / "plain.onnx")
        export._fuse(network, tmp_path / "plain.onnx", tmp_path / "fused.onnx")
    found = read_weights(tmp_path / "fused.onnx")
    state = network.classifier.state_dict()
    assert found.classifier.keys() == state.keys()
    assert max(abs(found.classifier[n] - state[n].numpy()).max() for n in state) == 0.0


def test_models_that_were_exported_otherwise_are_refused(exported, tmp_path_factory, tmp_path):
    from guardrail.training.from_onnx import read_weights
    from guardrail.training.network import GroundingNetwork

    plain = tiny(tmp_path_factory).onnx_dir
    with pytest.raises(ModelLoadError, match="has no output 'unsupported'"):
        read_weights(plain / "model.onnx")
    (tmp_path / "cut.onnx").write_bytes((exported[0] / "model.onnx").read_bytes()[:1000])
    with pytest.raises(ModelLoadError, match=r"cannot read .*cut\.onnx"):
        read_weights(tmp_path / "cut.onnx")
    damaged = copy_of(exported[0], tmp_path / "damaged")
    edit_config(damaged, pad_token_id=3)
    with pytest.raises(ModelLoadError, match="does not match its checksum"):
        GroundingNetwork.from_onnx(damaged)
    (damaged / "checksums.json").unlink()
    edit_config(damaged, id2label={"0": "entailment", "1": "neutral", "2": "contradiction"})
    with pytest.raises(ModelLoadError, match="a network to train has"):
        GroundingNetwork.from_onnx(damaged)


def test_the_torch_folder_opens_as_a_cross_encoder(network, base, examples, tmp_path):
    from guardrail.training.publish import publish

    publish(network, base / "tokenizer.json", tmp_path, examples=examples, languages=("en",), max_tokens=64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from sentence_transformers import CrossEncoder

        encoder = CrossEncoder(str(tmp_path / "torch"), local_files_only=True, device="cpu")
        found = encoder.predict([(p.premise, p.hypothesis) for p in PAIRS], apply_softmax=True)
    entailed, _ = _torch(network, examples)
    assert found[:, 1].tolist() == pytest.approx(entailed, abs=1e-4)
    from guardrail.training.network import GroundingNetwork

    assert _torch(GroundingNetwork.open(tmp_path / "torch"), examples)[1] == pytest.approx(_torch(network, examples)[1])
