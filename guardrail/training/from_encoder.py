"""Weights out of an encoder that somebody else exported to ONNX and put into 8 bits, as a base for training.

Small encoders are published like that inside packages, with no copy in full precision. The exporter of torch keeps the
names of the modules, so each matrix product says whose weights it multiplies by.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardrail.errors import ModelLoadError
from guardrail.training.from_onnx import read_graph

Array = NDArray[np.float32]

FILE = "model_quantized.onnx"
_QUANTISED = "_quantized"


def read_encoder(path: Path) -> dict[str, Array]:
    """Read the weights of a BERT encoder that was exported with the names of its modules.

    Args:
        path: The ONNX file; its matrices are in 8 bits (``quantize_dynamic`` of ONNX Runtime).

    Returns:
        State of a ``transformers.BertModel``, by parameter name; integers are multiplied by their scales.

    Raises:
        ModelLoadError: If the file cannot be read, or has no such weights.

    Example:
        >>> read_encoder(Path("no-such-model.onnx"))
        Traceback (most recent call last):
        ...
        guardrail.errors.ModelLoadError: cannot read no-such-model.onnx (FileNotFoundError)
    """
    from onnx import numpy_helper

    graph = read_graph(path)
    constants = {constant.name: numpy_helper.to_array(constant) for constant in graph.initializer}
    found: dict[str, Array] = {}
    for node in graph.node:
        if node.op_type == "MatMulInteger":
            names = [name for name in node.input if name.endswith(_QUANTISED) and name in constants]
            if names:
                found[f"{_module(node.name)}.weight"] = _restored(names[0], constants, path).T.copy()
    for name, array in constants.items():
        if name.endswith(_QUANTISED) and name.startswith("embeddings."):
            found[name.removesuffix(_QUANTISED)] = _restored(name, constants, path)
        elif name.endswith((".weight", ".bias")) and array.dtype == np.float32:
            found[name] = array
    if (
        not any(name.startswith("encoder.layer.0.") for name in found)
        or "embeddings.word_embeddings.weight" not in found
    ):
        raise ModelLoadError(f"{path} is no BERT encoder that was exported with the names of its modules")
    return found


def _module(node: str) -> str:
    """``/encoder/layer.0/output/dense/MatMul_quant`` is the product of ``encoder.layer.0.output.dense``."""
    return node.strip("/").rpartition("/")[0].replace("/", ".")


def _restored(name: str, constants: dict[str, Any], path: Path) -> Array:
    stem = name.removesuffix(_QUANTISED)
    try:
        scale, zero = constants[f"{stem}_scale"], constants[f"{stem}_zero_point"]
    except KeyError as error:
        raise ModelLoadError(f"{path}: {name!r} has no scale") from error
    restored: Array = (constants[name].astype(np.float32) - zero.astype(np.float32)) * scale.astype(np.float32)
    return restored
