"""Models that are damaged, incomplete, or not there."""

import struct

import pytest

from guardrail.errors import ModelLoadError
from guardrail.protocols import Pair
from guardrail.scoring.entailment import (
    CrossEncoderEntailment,
    OnnxEntailment,
)
from guardrail.scoring.entailment.modelfiles import check_file, check_model_directory
from tests.tiny_models import copy_of, edit_config, tiny_models

# torch and transformers warn about themselves

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


@pytest.mark.parametrize("bad", [LFS, b"", None], ids=["lfs", "empty", "missing"])
@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json"])
async def test_damaged_torch_models(tiny, tmp_path, name, bad):
    await damaged(CrossEncoderEntailment, tiny.torch_dir, tmp_path / "m", name, bad)


@pytest.mark.parametrize("bad", [LFS, b"", None, b"garbage"], ids=["lfs", "empty", "missing", "garbage"])
@pytest.mark.parametrize("name", ["model.onnx", "config.json", "tokenizer.json"])
async def test_damaged_onnx_models(tiny, tmp_path, name, bad):
    await damaged(OnnxEntailment, tiny.onnx_dir, tmp_path / "m", name, bad)


async def damaged(kind, source, directory, name, bad):
    """A damaged model names the file, is not cached as loaded, and works once the file is repaired."""
    path = copy_of(source, directory) / name
    good = path.read_bytes()
    path.unlink()
    if bad is not None:
        path.write_bytes(bad)
    model = kind(directory)
    with pytest.raises(ModelLoadError, match=name.replace(".", r"\.")):
        model.load()
    with pytest.raises(ModelLoadError, match=r"likely|not copied|git lfs pull"):
        await model.score([PAIR])
    path.write_bytes(good)
    assert len(await model.score([PAIR])) == 1


@pytest.mark.parametrize("size", [4, 1000, -100])
def test_cut_safetensors(tiny, tmp_path, size):
    path = copy_of(tiny.torch_dir, tmp_path / "m") / "model.safetensors"
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(ModelLoadError, match=r"model\.safetensors is shorter .* cut download"):
        CrossEncoderEntailment(tmp_path / "m").load()


def test_safetensors_with_a_damaged_header(tmp_path):
    path = tmp_path / "model.safetensors"
    for header in (b"not json", b"[]", b'{"a": 3}'):
        path.write_bytes(struct.pack("<Q", len(header)) + header)
        with pytest.raises(ModelLoadError, match="damaged header"):
            check_file(path)


def test_sharded_weights_are_left_to_the_library(tmp_path):
    for name in ("model.safetensors.index.json", "config.json", "tokenizer.json"):
        (tmp_path / name).write_text("{}")
    check_model_directory(tmp_path, weights=("model.safetensors",))
    with pytest.raises(ModelLoadError, match=r"no model\.onnx"):
        check_model_directory(tmp_path, weights=("model.onnx",))


def test_a_graph_with_other_inputs(tiny, tmp_path):
    from onnx import TensorProto, helper, save

    directory = copy_of(tiny.onnx_dir, tmp_path / "m")
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in ("pixels", "logits")]
    graph = helper.make_graph([helper.make_node("Identity", ["pixels"], ["logits"])], "g", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    save(model, str(directory / "model.onnx"))
    with pytest.raises(ModelLoadError, match="pixels"):
        OnnxEntailment(directory).load()


def test_cut_onnx_model(tiny, tmp_path):
    path = copy_of(tiny.onnx_dir, tmp_path / "m") / "model.onnx"
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(ModelLoadError, match=r"model\.onnx"):
        OnnxEntailment(tmp_path / "m").load()


@pytest.mark.parametrize("kind", [CrossEncoderEntailment, OnnxEntailment])
def test_a_wrong_path(kind, tmp_path):
    with pytest.raises(ModelLoadError, match=r"not a directory.*wrong path"):
        kind(tmp_path / "nowhere").load()


def test_a_hub_model_that_is_not_there(tiny):
    with pytest.raises(ModelLoadError, match="no such model, or no network"):
        CrossEncoderEntailment("no-such-owner/no-such-model", local_files_only=True).load()


def test_weights_that_do_not_fit_the_configuration(tiny, tmp_path):
    directory = copy_of(tiny.torch_dir, tmp_path / "m")
    edit_config(directory, hidden_size=48)
    with pytest.raises(ModelLoadError, match="likely a damaged file") as caught:
        CrossEncoderEntailment(directory).load()
    assert caught.value.__cause__ is not None
