"""Weights out of an exported model: what :mod:`guardrail.training.export` has fused and packed, unpacked again.

The model that ships with the package has 8 bits per weight (its word embeddings 4) and no copy in full precision. It
can be trained on all the same: each weight is its integer times its scale, and training moves it from there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardrail.errors import ModelLoadError
from guardrail.training.vocabulary import unpacked

Array = NDArray[np.float32]

_OUTPUTS = ("logits", "unsupported")
_FOUR_BITS = 22  # onnx.TensorProto.INT4
_TABLES = {"input_ids": "word_embeddings", "token_type_ids": "token_type_embeddings"}


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxWeights:
    """A BERT encoder with its two heads, as arrays in the layout of Hugging Face and torch.

    Attributes:
        sizes: Keyword arguments of ``transformers.BertConfig``, read from the shapes of the weights.
        classifier: State of a ``BertForSequenceClassification``, by parameter name.
        words: State of the head over words, ``weight`` and ``bias``.
    """

    sizes: Mapping[str, Any]
    classifier: Mapping[str, Array]
    words: Mapping[str, Array]


def read_weights(path: Path) -> OnnxWeights:
    """Read the weights of a model that :func:`~guardrail.training.export.export` wrote.

    Args:
        path: ``model.onnx``.

    Returns:
        Its weights; integers are multiplied by their scales.

    Raises:
        ModelLoadError: If the file cannot be read, or its graph has another form; the message names the node.

    Example:
        >>> read_weights(Path("no-such-model.onnx"))
        Traceback (most recent call last):
        ...
        guardrail.errors.ModelLoadError: cannot read no-such-model.onnx (FileNotFoundError)
    """
    return _Reader(read_graph(path), path).read()


def read_graph(path: Path) -> Any:
    """The graph of an ONNX file.

    Raises:
        ModelLoadError: If the file cannot be read.
    """
    import onnx

    try:
        return onnx.load(str(path)).graph
    except Exception as error:  # the parser raises errors of its own
        raise ModelLoadError(f"cannot read {path} ({type(error).__name__})") from error


class _Reader:
    """Walks from the outputs back to the embeddings: every tensor has one node that makes it."""

    def __init__(self, graph: Any, path: Path) -> None:
        from onnx import numpy_helper

        self._path = path
        self._tensors = {c.name: c for c in graph.initializer}
        self._constants = {c.name: numpy_helper.to_array(c) for c in graph.initializer if c.data_type != _FOUR_BITS}
        self._makers = {name: node for node in graph.node for name in node.output}
        self._outputs = [output.name for output in graph.output]

    def read(self) -> OnnxWeights:
        missing = [name for name in _OUTPUTS if name not in self._outputs]
        if missing:
            raise ModelLoadError(f"{self._path} has no output {missing[0]!r}: it was not exported from this network")
        found: dict[str, Array] = {}
        pooled = self._pooler(self._maker(self._linear("logits", "classifier", found), "Tanh").input[0], found)
        hidden = self._maker(pooled, "Gather").input[0]
        squeezed = self._maker("unsupported", "Squeeze").input[0]
        words: dict[str, Array] = {}
        if self._linear(squeezed, "words", words) != hidden:
            raise ModelLoadError(f"{self._path}: the two heads do not read the same layer")
        layers: list[dict[str, Array]] = []
        heads = set()
        while self._makers[hidden].op_type == "SkipLayerNormalization":
            layer: dict[str, Array] = {}
            hidden, own = self._layer(hidden, layer)
            heads.add(own)
            layers.insert(0, layer)
        if len(heads) != 1:
            raise ModelLoadError(f"{self._path} has no encoder layers, or layers with different numbers of heads")
        for number, layer in enumerate(layers):
            found |= {f"bert.encoder.layer.{number}.{name}": array for name, array in layer.items()}
        epsilon = self._embeddings(hidden, found)
        width = found["bert.embeddings.word_embeddings.weight"].shape
        sizes = {
            "vocab_size": width[0],
            "hidden_size": width[1],
            "num_hidden_layers": len(layers),
            "num_attention_heads": heads.pop(),
            "intermediate_size": len(layers[0]["intermediate.dense.bias"]),
            "hidden_act": "gelu",
            "max_position_embeddings": len(found["bert.embeddings.position_embeddings.weight"]),
            "type_vocab_size": len(found["bert.embeddings.token_type_embeddings.weight"]),
            "layer_norm_eps": epsilon,
        }
        return OnnxWeights(
            sizes=sizes,
            classifier=found,
            words={name.removeprefix("words."): array for name, array in words.items()},
        )

    def _pooler(self, output: str, found: dict[str, Array]) -> str:
        """The layer between the first token and the classes, or what it adds to its input; what it reads."""
        name = "bert.pooler.dense"
        node = self._makers[output]
        read = [i for i in node.input if i in self._makers and self._makers[i].op_type == "Gather"]
        if node.op_type != "Add" or not read:
            return self._linear(output, name, found)
        (added,) = [tensor for tensor in node.input if tensor != read[0]]
        if self._linear(added, name, found) != read[0]:
            raise ModelLoadError(f"{self._path}: {node.name} does not add to what it reads")
        weight = found[f"{name}.weight"]
        found[f"{name}.weight"] = weight + np.eye(len(weight), dtype=np.float32)
        return str(read[0])

    def _layer(self, output: str, found: dict[str, Array]) -> tuple[str, int]:
        """One encoder layer, from its output to its input; also the number of attention heads."""
        grown, middle = self._norm(output, "output", found)
        gelu = self._maker(grown, "BiasGelu")
        found["intermediate.dense.bias"] = self._constant(gelu.input[1])
        if self._weights(gelu.input[0], "intermediate.dense", found) != middle:
            raise ModelLoadError(f"{self._path}: {gelu.name} does not read what it is added to")
        attended, entered = self._norm(middle, "attention.output", found)
        attention = self._makers[attended]
        if attention.op_type == "QAttention":
            scale, zero = self._constant(attention.input[4]), self._constant(attention.input[7])
            packed = _dequantised(self._constant(attention.input[1]), scale, zero)
            source = self._maker(attention.input[0], "DynamicQuantizeLinear").input[0]
        else:
            attention = self._maker(attended, "Attention")
            packed, source = self._constant(attention.input[1]), attention.input[0]
        if source != entered:
            raise ModelLoadError(f"{self._path}: {attention.name} does not read what it is added to")
        for name, weight, bias in zip(
            ("query", "key", "value"),
            np.split(packed, 3, axis=1),
            np.split(self._constant(attention.input[2]), 3),
            strict=True,
        ):
            found[f"attention.self.{name}.weight"] = weight.T
            found[f"attention.self.{name}.bias"] = bias
        return entered, int(_attribute(attention, "num_heads"))

    def _norm(self, output: str, name: str, found: dict[str, Array]) -> tuple[str, str]:
        """A dense layer with bias, a sum and a norm, fused; what the dense layer reads, and what is added to it."""
        node = self._maker(output, "SkipLayerNormalization")
        if len(node.input) != 5:
            raise ModelLoadError(f"{self._path}: {node.name} has no bias, so the graph was not fused by this export")
        dense, skipped, scale, shift, bias = node.input
        found[f"{name}.LayerNorm.weight"] = self._constant(scale)
        found[f"{name}.LayerNorm.bias"] = self._constant(shift)
        found[f"{name}.dense.bias"] = self._constant(bias)
        return self._weights(dense, f"{name}.dense", found), skipped

    def _linear(self, output: str, name: str, found: dict[str, Array]) -> str:
        """A dense layer and its bias; what it reads."""
        node = self._makers[output]
        if node.op_type == "Gemm":
            weight = self._constant(node.input[1])
            found[f"{name}.weight"] = weight if _attribute(node, "transB") else weight.T
            found[f"{name}.bias"] = self._constant(node.input[2])
            return str(node.input[0])
        node = self._maker(output, "Add")
        bias, product = sorted(node.input, key=lambda tensor: tensor not in self._constants)
        found[f"{name}.bias"] = self._constant(bias)
        return self._weights(product, name, found)

    def _weights(self, output: str, name: str, found: dict[str, Array]) -> str:
        """The weights of a matrix product; what it reads."""
        node = self._makers[output]
        if node.op_type == "MatMul":
            found[f"{name}.weight"] = self._constant(node.input[1]).T
            return str(node.input[0])
        # In 8 bits: (integers of the input × integers of the weights) × (scale of the input × scale of the weights)
        node = self._maker(output, "Mul")
        cast, scales = sorted(node.input, key=lambda tensor: self._makers[tensor].op_type != "Cast")
        product = self._maker(self._maker(cast, "Cast").input[0], "MatMulInteger")
        (scale,) = [tensor for tensor in self._maker(scales, "Mul").input if tensor in self._constants]
        zero = self._constant(product.input[3])
        found[f"{name}.weight"] = _dequantised(self._constant(product.input[1]), self._constant(scale), zero).T
        return str(self._maker(product.input[0], "DynamicQuantizeLinear").input[0])

    def _embeddings(self, output: str, found: dict[str, Array]) -> float:
        """The three tables and the norm over their sum; the norm's epsilon."""
        norm = self._maker(output, "LayerNormalization")
        found["bert.embeddings.LayerNorm.weight"] = self._constant(norm.input[1])
        found["bert.embeddings.LayerNorm.bias"] = self._constant(norm.input[2])
        waiting = [norm.input[0]]
        while waiting:
            node = self._makers[waiting.pop()]
            if node.op_type == "Add":
                waiting.extend(node.input)
                continue
            if node.op_type == "Cast":
                node = self._maker(node.input[0], "GatherBlockQuantized")
                table = unpacked(self._tensors[node.input[0]], self._constant(node.input[2]))
                found[f"bert.embeddings.{_TABLES[node.input[1]]}.weight"] = table
                continue
            scale, zero = None, None
            if node.op_type == "DequantizeLinear":
                scale, zero = self._constant(node.input[1]), self._constant(node.input[2])
                node = self._makers[node.input[0]]
            if node.op_type != "Gather":
                raise ModelLoadError(f"{self._path}: the embeddings are made by a node of type {node.op_type}")
            table = self._constant(node.input[0])
            name = _TABLES.get(node.input[1], "position_embeddings")
            found[f"bert.embeddings.{name}.weight"] = (
                table if scale is None or zero is None else _dequantised(table, scale, zero)
            )
        return float(_attribute(norm, "epsilon"))

    def _maker(self, tensor: str, kind: str) -> Any:
        node = self._makers.get(tensor)
        if node is None or node.op_type != kind:
            made_by = "nothing" if node is None else f"a node of type {node.op_type}"
            raise ModelLoadError(f"{self._path}: {tensor!r} is made by {made_by} and not by {kind}; train on its base")
        return node

    def _constant(self, name: str) -> Array:
        if name not in self._constants:
            raise ModelLoadError(f"{self._path}: {name!r} is not a constant, so its weights cannot be read")
        array: Array = self._constants[name]
        return array


def _dequantised(integers: NDArray[Any], scale: Array, zero: NDArray[Any]) -> Array:
    """The numbers that integers stand for; scale and zero are of the whole table or of each column."""
    return ((integers.astype(np.float32) - zero.astype(np.float32)) * scale.astype(np.float32)).astype(np.float32)


def _attribute(node: Any, name: str) -> Any:
    from onnx import helper

    return next((helper.get_attribute_value(own) for own in node.attribute if own.name == name), 0)
