"""What a training can begin with besides torch weights: tables of words in 4 bits, and encoders in 8."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

from guardrail.errors import ModelLoadError
from guardrail.training.vocabulary import BLOCK, packed
from tests.unit.training.toy import tiny, toy_pairs

WIDTH = 64


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """A tiny base whose rows can be cut into blocks."""
    torch_dir = tiny(tmp_path_factory).torch_dir
    from transformers import BertConfig, BertForSequenceClassification

    directory = tmp_path_factory.mktemp("wide") / "base"
    config = BertConfig.from_pretrained(torch_dir, hidden_size=WIDTH, initializer_range=0.1)
    BertForSequenceClassification(config).save_pretrained(directory)
    (directory / "tokenizer.json").write_bytes((torch_dir / "tokenizer.json").read_bytes())
    return directory


def _examples(base):
    from guardrail.training.batches import PairEncoder

    return PairEncoder(base).encode(toy_pairs(12))


def _table(network) -> np.ndarray:
    return network.classifier.get_input_embeddings().weight.detach().numpy().copy()


@pytest.mark.parametrize(
    "row",
    [
        [0.0] * BLOCK,
        [1e-12] * BLOCK,
        [3.0, *[0.0] * (BLOCK - 1)],
        [-8.0, 7.0, *[1.0] * (BLOCK - 2)],
        [60_000.0, *[-0.5] * (BLOCK - 1)],
        list(np.linspace(-1, 1, BLOCK)),
    ],
)
def test_rounded_tables_stay_as_they_are(row):
    table = np.array([row, row], dtype=np.float32)
    once = packed(table)
    assert once.integers.min() >= -8
    assert once.integers.max() <= 7
    again = packed(once.restored())
    assert (again.restored() == once.restored()).all()
    assert np.linalg.norm(once.restored() - table) <= 0.1 * np.linalg.norm(table) + 1e-6


def test_integers_and_a_scale_that_fits_are_kept_exactly():
    table = np.tile(np.arange(-8, 8, dtype=np.float32), BLOCK // 16)[None] * 0.25
    assert (packed(table).restored() == table).all()


def test_the_vocabulary_is_trained_as_it_is_exported_and_comes_back(wide, tmp_path):
    import onnx

    from guardrail.training.export import export
    from guardrail.training.network import GroundingNetwork

    network = GroundingNetwork.open(wide, dropout=0.0)
    before = _table(network)
    network.freeze_vocabulary()
    rounded = _table(network)
    assert 0.01 < np.linalg.norm(rounded - before) / np.linalg.norm(before) < 0.12
    network.freeze_vocabulary()
    assert (_table(network) == rounded).all()
    parity = export(network, wide / "tokenizer.json", tmp_path / "model", examples=_examples(wide), max_tokens=64)
    assert parity.mean_drift < 0.03
    graph = onnx.load(str(tmp_path / "model" / "model.onnx")).graph
    (lookup,) = [node for node in graph.node if node.op_type == "GatherBlockQuantized"]
    (data,) = [constant for constant in graph.initializer if constant.name == lookup.input[0]]
    assert (data.data_type, len(data.raw_data)) == (onnx.TensorProto.INT4, rounded.size // 2)
    found = GroundingNetwork.from_onnx(tmp_path / "model")
    assert (_table(found) == rounded).all()


def test_a_layer_near_no_change_is_exported_as_what_it_adds(wide, tmp_path):
    import torch

    from guardrail.training.export import export
    from guardrail.training.network import GroundingNetwork

    network = GroundingNetwork.open(wide, dropout=0.0)
    dense = network.classifier.bert.pooler.dense
    small = torch.randn(WIDTH, WIDTH, generator=torch.Generator().manual_seed(1)) * 0.01
    dense.load_state_dict({"weight": torch.eye(WIDTH) + small, "bias": dense.bias.detach()})
    parity = export(network, wide / "tokenizer.json", tmp_path / "model", examples=_examples(wide), max_tokens=64)
    assert parity.mean_drift < 0.03
    found = GroundingNetwork.from_onnx(tmp_path / "model").classifier.bert.pooler.dense
    step = small.abs().max().item() / 63
    assert (found.weight - torch.eye(WIDTH) - small).abs().max() <= 0.51 * step + 1e-6
    assert torch.equal(found.bias, dense.bias)


def test_a_graph_without_the_table_is_refused():
    import onnx
    from onnx import helper

    from guardrail.training.vocabulary import pack_gather

    model = helper.make_model(helper.make_graph([], "empty", [], []))
    with pytest.raises(ModelLoadError, match="no table of the model is looked up by 'input_ids'"):
        pack_gather(model)
    assert isinstance(model, onnx.ModelProto)


@pytest.fixture(scope="module")
def encoder(wide, tmp_path_factory):
    """The encoder of the base, exported and quantised as others publish theirs: no pooler, no heads."""
    import torch
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from transformers import BertModel

    directory = tmp_path_factory.mktemp("encoder") / "base"
    directory.mkdir()
    body = BertModel.from_pretrained(wide, add_pooling_layer=False, attn_implementation="eager").eval()
    with torch.no_grad():  # parameters with equal values would be put together by the exporter
        for parameter in body.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.02)

    class Hidden(torch.nn.Module):
        def __init__(self, model):
            super().__init__()
            self.embeddings, self.encoder, self._model = model.embeddings, model.encoder, [model]

        def forward(self, input_ids, attention_mask, token_type_ids):
            hidden = self.embeddings(input_ids=input_ids, token_type_ids=token_type_ids)
            return self.encoder(hidden, attention_mask=(1.0 - attention_mask[:, None, None, :].float()) * -1e9)[0]

    ids = torch.ones((2, 8), dtype=torch.long)
    names = ["input_ids", "attention_mask", "token_type_ids"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            Hidden(body).eval(),
            (ids, ids, torch.zeros_like(ids)),
            str(directory / "plain.onnx"),
            input_names=names,
            output_names=["last_hidden_state"],
            dynamic_axes={name: {0: "b", 1: "t"} for name in names},
            opset_version=17,
            dynamo=False,
        )
        quantize_dynamic(
            directory / "plain.onnx",
            directory / "model_quantized.onnx",
            weight_type=QuantType.QInt8,
            op_types_to_quantize=["MatMul", "Gather"],
        )
    (directory / "plain.onnx").unlink()
    for name in ("config.json", "tokenizer.json"):
        (directory / name).write_bytes((wide / name).read_bytes())
    return directory, body


def test_an_encoder_in_eight_bits_is_read_by_the_names_of_its_modules(encoder):
    from guardrail.training.from_encoder import read_encoder

    directory, body = encoder
    found = read_encoder(directory / "model_quantized.onnx")
    state = {name: value.numpy() for name, value in body.state_dict().items()}
    assert found.keys() == state.keys()
    for name, value in state.items():
        assert found[name].shape == value.shape, name
        assert np.abs(found[name] - value).max() <= np.abs(value).max() / 120 + 1e-6, name


def test_a_training_begins_with_the_lower_layers_of_an_encoder(encoder):
    import torch

    from guardrail.training.adapt import digest_of, open_base

    directory, body = encoder
    network = open_base(directory, dropout=0.0, seed=3, layers=1)
    assert network.classifier.config.num_hidden_layers == 1
    assert network.classifier.config._attn_implementation == "eager"
    assert list(network.classifier.config.id2label.values()) == ["contradiction", "entailment", "neutral"]
    pooler = network.classifier.bert.pooler.dense
    assert torch.equal(pooler.weight, torch.eye(WIDTH))
    assert open_base(directory, dropout=0.0, seed=3).classifier.config.num_hidden_layers == 2
    assert len(digest_of(directory)) == 64
    ids = torch.tensor([[2, 9, 12, 3]])
    with torch.inference_mode():
        whole = open_base(directory, dropout=0.0, seed=3).eval().classifier.bert(ids).last_hidden_state
        expected = body(ids).last_hidden_state
    assert (whole - expected).abs().mean() < 0.05


@pytest.mark.parametrize("change", [{"model_type": "roberta"}, {"intermediate_size": 8}, {"num_hidden_layers": 5}])
def test_encoders_that_do_not_fit_are_refused(encoder, tmp_path, change):
    from guardrail.training.adapt import open_base

    for name in ("model_quantized.onnx", "tokenizer.json"):
        (tmp_path / name).write_bytes((encoder[0] / name).read_bytes())
    config = json.loads((encoder[0] / "config.json").read_text()) | change
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelLoadError, match=r"a base has to be a BERT|does not fit its config\.json"):
        open_base(tmp_path, dropout=0.0, seed=3)


def test_other_files_are_no_encoder(encoder, tmp_path):
    from guardrail.training.from_encoder import read_encoder

    (tmp_path / "cut.onnx").write_bytes((encoder[0] / "model_quantized.onnx").read_bytes()[:500])
    with pytest.raises(ModelLoadError, match=r"cannot read .*cut\.onnx"):
        read_encoder(tmp_path / "cut.onnx")


def test_an_export_of_ours_is_no_encoder(wide, tmp_path):
    from guardrail.training.export import export
    from guardrail.training.from_encoder import read_encoder
    from guardrail.training.network import GroundingNetwork

    network = GroundingNetwork.open(wide, dropout=0.0)
    export(network, wide / "tokenizer.json", tmp_path / "model", examples=_examples(wide), max_tokens=64)
    with pytest.raises(ModelLoadError, match="is no BERT encoder that was exported with the names"):
        read_encoder(tmp_path / "model" / "model.onnx")


@pytest.mark.parametrize("processor", ["template", "bert", "sequence"])
def test_trimming_changes_no_score(wide, tmp_path, processor):
    import torch
    from tokenizers import Tokenizer

    from guardrail.training.batches import PairEncoder, collate
    from guardrail.training.network import GroundingNetwork
    from guardrail.training.trim import trim

    described = json.loads((wide / "tokenizer.json").read_text())
    words = sorted(described["model"]["vocab"], key=described["model"]["vocab"].__getitem__)
    # Placeholders before, between and behind the special tokens, so that all of these move; [unused2] is a mark that
    # texts can contain, and stays.
    first = ["[unused0]", *words[:2], "[unused1]", "[unused2]", *words[2:5]]
    ordered = [*first, *(word for word in words[5:] if word not in ("0", "##z", "8"))]
    numbers = {word: at for at, word in enumerate(ordered)}
    assert len(numbers) == len(words)
    described["model"]["vocab"] = numbers
    mark = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    described["added_tokens"] = [
        {"id": numbers[word], "content": word, **mark}
        for word in ("[PAD]", "[UNK]", "[unused2]", "[CLS]", "[SEP]", "[MASK]")
    ]
    described["padding"] = {"strategy": "BatchLongest", "direction": "Right", "pad_to_multiple_of": None,
                            "pad_id": numbers["[PAD]"], "pad_type_id": 0, "pad_token": "[PAD]"}  # fmt: skip
    for name, token in described["post_processor"]["special_tokens"].items():
        token["ids"] = [numbers[name]]
    if processor == "bert":
        special = {name: [f"[{name.upper()}]", numbers[f"[{name.upper()}]"]] for name in ("sep", "cls")}
        described["post_processor"] = {"type": "BertProcessing", **special}
    if processor == "sequence":
        described["post_processor"] = {"type": "Sequence", "processors": [described["post_processor"]]}
    base = tmp_path / "base"
    base.mkdir()
    (base / "tokenizer.json").write_text(json.dumps(described))
    network = GroundingNetwork.open(wide, dropout=0.0).eval()
    network.classifier.config.pad_token_id = numbers["[PAD]"]
    pairs = toy_pairs(8)

    def scores(directory):
        batch = collate(PairEncoder(directory).encode(pairs))
        with torch.inference_mode():
            return network(batch.input_ids, batch.attention_mask, batch.token_type_ids)[0]

    before = scores(base)
    trim(network, base / "tokenizer.json", tmp_path / "new" / "tokenizer.json", positions=40)
    assert torch.equal(scores(tmp_path / "new"), before)
    old, new = (Tokenizer.from_file(str(path / "tokenizer.json")) for path in (base, tmp_path / "new"))
    config = network.classifier.config
    assert (config.vocab_size, config.max_position_embeddings) == (len(numbers) - 2, 40)
    assert config.pad_token_id == new.padding["pad_id"] == new.token_to_id("[PAD]") == 0
    assert [new.token_to_id(word) for word in ("[unused0]", "[unused1]", "[unused2]")] == [None, None, 2]
    for texts in (("a door", "ten"), ("a [unused2] door", "[MASK] ten")):
        ids, moved = old.encode(*texts).ids, new.encode(*texts).ids
        assert ids != moved
        assert [old.id_to_token(number) for number in ids] == [new.id_to_token(number) for number in moved]
    network.save(tmp_path / "saved")
    assert GroundingNetwork.open(tmp_path / "saved").classifier.config.vocab_size == config.vocab_size


def test_a_foreign_tokeniser_is_not_trimmed(wide, tmp_path):
    from guardrail.training.network import GroundingNetwork
    from guardrail.training.trim import trim

    described = json.loads((wide / "tokenizer.json").read_text())
    described["model"]["vocab"].popitem()
    (tmp_path / "tokenizer.json").write_text(json.dumps(described))
    with pytest.raises(ModelLoadError, match=r"has \d+ words, the network \d+"):
        trim(GroundingNetwork.open(wide), tmp_path / "tokenizer.json", tmp_path / "new.json", positions=40)
    assert not (tmp_path / "new.json").exists()
