"""Networks as they are opened."""

from __future__ import annotations

import pytest

from guardrail.errors import ModelLoadError
from tests.tiny_models import copy_of, edit_config
from tests.unit.training.toy import smooth_base


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return smooth_base(tmp_path_factory)


def test_classes_in_another_order_are_put_into_ours(base, tmp_path):
    import torch

    from guardrail.training.network import GroundingNetwork

    network = GroundingNetwork.open(base)
    head = network.classifier.classifier
    torch.nn.init.normal_(head.bias, generator=torch.Generator().manual_seed(1))
    expected = {name: value.clone() for name, value in head.state_dict().items()}
    order = [1, 2, 0]  # entailment, neutral, contradiction
    head.load_state_dict({name: value[order] for name, value in expected.items()})
    network.classifier.save_pretrained(tmp_path / "other")
    edit_config(tmp_path / "other", id2label={"0": "ENTAILMENT", "1": "Neutral", "2": "contradiction"})
    found = GroundingNetwork.open(tmp_path / "other").classifier
    assert all(torch.equal(value, expected[name]) for name, value in found.classifier.state_dict().items())
    assert found.config.id2label == {0: "contradiction", 1: "entailment", 2: "neutral"}
    GroundingNetwork(found).save(tmp_path / "again")
    again = GroundingNetwork.open(tmp_path / "again").classifier.classifier
    assert torch.equal(again.weight, expected["weight"])


def test_cut_weights_are_named(base, tmp_path):
    from guardrail.training.adapt import open_base

    cut = copy_of(base, tmp_path / "cut")
    whole = (base / "model.safetensors").read_bytes()
    (cut / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ModelLoadError, match=r"model\.safetensors is shorter than its header says"):
        open_base(cut, dropout=0.0, seed=1)


def test_every_network_has_plain_attention(base):
    from guardrail.scoring.entailment.onnx import embedded_model_dir
    from guardrail.training.network import GroundingNetwork

    embedded = embedded_model_dir()
    assert embedded is not None
    for network in (GroundingNetwork.open(base), GroundingNetwork.from_onnx(embedded)):
        assert network.classifier.config._attn_implementation == "eager"
