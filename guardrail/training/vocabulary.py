"""The table of word embeddings in 4 bits: half of a small model's numbers, in a quarter of its bytes.

Each row is cut into blocks of :data:`BLOCK` numbers; a block is kept as integers from -8 to 7 and one scale. A network
is trained with the table already rounded (and frozen), so the export keeps it, up to half precision when it runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardrail.errors import ModelLoadError

BLOCK = 64
"""Numbers that share a scale. A table whose rows are no multiple of it keeps its 8 bits."""

_LOWEST, _HIGHEST = -8, 7
_DIVISORS = (7.0, 8.0, 7.5, *np.linspace(7.2, 12.0, 13))
"""Largest number of a block over its scale, as tried; 7 and 8 come first, so that a rounded table stays as it is."""

Array = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class PackedTable:
    """A table in 4 bits.

    Attributes:
        integers: From -8 to 7, shape ``(rows, width)``.
        scales: In half precision, shape ``(rows, width / BLOCK)``.
    """

    integers: NDArray[np.int8]
    scales: NDArray[np.float16]

    def restored(self) -> Array:
        """The numbers that it stands for, shape ``(rows, width)``."""
        blocks = self.integers.reshape(len(self.integers), -1, BLOCK).astype(np.float32)
        table: Array = blocks * self.scales.astype(np.float32)[:, :, None]
        return table.reshape(self.integers.shape)


def can_pack(width: int) -> bool:
    """Whether rows of this width can be cut into blocks.

    Example:
        >>> can_pack(384), can_pack(32)
        (True, False)
    """
    return width % BLOCK == 0


def packed(table: Array) -> PackedTable:
    """Round a table so that the squared error of each block is the least of those tried.

    Args:
        table: Shape ``(rows, width)``; the width is a multiple of :data:`BLOCK`.

    Returns:
        The rounded table. Packing what it stands for gives the same again.

    Example:
        >>> table = np.random.default_rng(1).normal(size=(20, 128)).astype(np.float32)
        >>> once = packed(table).restored()
        >>> float(np.linalg.norm(once - table) / np.linalg.norm(table)) < 0.11
        True
        >>> bool((packed(once).restored() == once).all())
        True
    """
    blocks = table.astype(np.float32).reshape(len(table), -1, BLOCK)
    largest = np.abs(blocks).max(axis=-1, keepdims=True)
    best = np.full(largest.shape, np.inf, dtype=np.float32)
    integers = np.zeros(blocks.shape, dtype=np.int8)
    scales = np.ones(largest.shape, dtype=np.float16)
    for divisor in _DIVISORS:
        scale = (largest / divisor).astype(np.float16)
        used = np.where(scale > 0, scale, np.float16(1)).astype(np.float32)
        rounded = np.clip(np.round(blocks / used), _LOWEST, _HIGHEST)
        error = np.square(rounded * used - blocks).sum(axis=-1, keepdims=True)
        better = error < best
        best = np.where(better, error, best)
        integers = np.where(better, rounded.astype(np.int8), integers)
        scales = np.where(better, used.astype(np.float16), scales)
    return PackedTable(integers.reshape(table.shape), scales[:, :, 0])


def pack_gather(model: Any, ids: str = "input_ids") -> bool:
    """Put the table that an input looks rows up in into 4 bits, inside an ONNX model.

    Args:
        model: An ``onnx.ModelProto``; changed in place.
        ids: Name of the input.

    Returns:
        Whether it was done; not if its rows are no multiple of :data:`BLOCK`.

    Raises:
        ModelLoadError: If no table is looked up by that input.
    """
    from onnx import TensorProto, helper, numpy_helper

    graph = model.graph
    tables = {constant.name: constant for constant in graph.initializer}
    node = next((n for n in graph.node if n.op_type == "Gather" and n.input[0] in tables and n.input[1] == ids), None)
    if node is None:
        raise ModelLoadError(f"no table of the model is looked up by {ids!r}")
    constant = tables[node.input[0]]
    table = numpy_helper.to_array(constant)
    if not can_pack(table.shape[1]):
        return False
    small = packed(table)
    halves = (small.integers.reshape(-1) & 15).astype(np.uint8)
    data = TensorProto(name=f"{constant.name}_int4", data_type=TensorProto.INT4, dims=table.shape)
    data.raw_data = (halves[0::2] | (halves[1::2] << 4)).tobytes()
    scales = numpy_helper.from_array(small.scales, f"{constant.name}_scales")
    found = f"{node.output[0]}_half"
    at = list(graph.node).index(node)
    lookup = helper.make_node(
        "GatherBlockQuantized",
        [data.name, ids, scales.name],
        [found],
        name=f"{node.name}_int4",
        domain="com.microsoft",
        gather_axis=0,
        quantize_axis=1,
        block_size=BLOCK,
    )
    cast = helper.make_node("Cast", [found], list(node.output), name=f"{node.name}_float", to=TensorProto.FLOAT)
    graph.node.remove(node)
    graph.node.insert(at, lookup)
    graph.node.insert(at + 1, cast)
    graph.initializer.remove(constant)
    graph.initializer.extend([data, scales])
    if not any(opset.domain == "com.microsoft" for opset in model.opset_import):
        model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    model.ir_version = max(model.ir_version, 10)  # the first that knows integers of 4 bits
    return True


def unpacked(data: Any, scales: NDArray[Any]) -> Array:
    """The table that :func:`pack_gather` left in a model.

    Args:
        data: The integers, as ``onnx.TensorProto``.
        scales: The scales, as an array.
    """
    halves = np.frombuffer(data.raw_data, dtype=np.uint8)
    integers = np.stack([halves & 15, halves >> 4], axis=1).reshape(tuple(data.dims)).astype(np.int8)
    signed = np.where(integers > _HIGHEST, integers - 16, integers).astype(np.int8)
    return PackedTable(signed, scales.astype(np.float16)).restored()
