"""From a trained network to the files that the guard runs: ONNX, fused, 8 bits (words 4), compared with the network."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from guardrail.errors import ModelLoadError
from guardrail.training.batches import Example, collate
from guardrail.training.network import GroundingNetwork
from guardrail.training.pairs import LABELS
from guardrail.training.vocabulary import pack_gather

OUTPUTS = ("logits", "unsupported")
MAX_MEAN_DRIFT = 0.03
"""Largest mean change of the probability of entailment that 8 bits may cause."""
_OPSET = 17
_ENTAILMENT = LABELS.index("entailment")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parity:
    """How far the exported model is from the network, over some pairs.

    Attributes:
        pairs: How many were compared.
        exact_max: Largest difference of a probability of entailment before quantisation.
        mean_drift: Mean difference after it.
        max_drift: Largest difference after it.
        same_side: Share of the pairs on the same side of 0.5.
        size_bytes: Size of the ONNX file.
    """

    pairs: int
    exact_max: float
    mean_drift: float
    max_drift: float
    same_side: float
    size_bytes: int


def export(
    network: GroundingNetwork,
    tokenizer: Path,
    directory: Path,
    *,
    examples: Sequence[Example],
    languages: Sequence[str] = ("en",),
    max_tokens: int = 256,
    settings: Mapping[str, Any] | None = None,
) -> Parity:
    """Write a network as :class:`~guardrail.scoring.entailment.onnx.OnnxEntailment` reads it.

    Args:
        network: The trained network.
        tokenizer: Its ``tokenizer.json``.
        directory: Where ``model.onnx``, ``tokenizer.json``, ``config.json`` and ``checksums.json`` go; replaced only
            when everything has been compared.
        examples: Pairs for the comparison, at least one.
        languages: ISO codes of the languages it was trained for.
        max_tokens: Longest pair it was trained with, at most; the guard cuts longer premises into windows.
        settings: More entries of ``config.json`` for the guard, such as ``guardrail_calibration``.

    Returns:
        The comparison.

    Raises:
        ModelLoadError: If the exported model does not give what the network gives.

    Example:
        >>> from transformers import BertConfig, BertForSequenceClassification
        >>> sizes = {"hidden_size": 8, "intermediate_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1}
        >>> network = GroundingNetwork(BertForSequenceClassification(BertConfig(vocab_size=9, **sizes)))
        >>> export(network, Path("tokenizer.json"), Path("out"), examples=[])
        Traceback (most recent call last):
        ...
        guardrail.errors.ModelLoadError: the comparison of the exported model needs at least one pair
    """
    if not examples:
        raise ModelLoadError("the comparison of the exported model needs at least one pair", scorer=str(directory))
    network = network.cpu().float().eval()
    with tempfile.TemporaryDirectory() as scratch, _quiet():
        plain, fused, small = (Path(scratch) / f"{name}.onnx" for name in ("plain", "fused", "small"))
        _trace(network, plain)
        _fuse(network, plain, fused)
        _quantise(fused, small)
        expected = _torch_probabilities(network, examples)
        exact = np.abs(_onnx_probabilities(fused, examples) - expected)
        found = _onnx_probabilities(small, examples)
        drift = np.abs(found - expected)
        parity = Parity(
            pairs=len(examples),
            exact_max=float(exact.max()),
            mean_drift=float(drift.mean()),
            max_drift=float(drift.max()),
            same_side=float(((found > 0.5) == (expected > 0.5)).mean()),
            size_bytes=small.stat().st_size,
        )
        if not (parity.exact_max <= 1e-3 and parity.mean_drift <= MAX_MEAN_DRIFT):  # NaN is neither more nor less
            raise ModelLoadError(
                f"the exported model differs from the network by more than {MAX_MEAN_DRIFT} on average, and was not "
                f"written: {parity}; fewer epochs or a lower learning rate leave weights that survive 8 bits better",
                scorer=str(directory),
            )
        more = {"guardrail_languages": list(languages), **(settings or {})}
        _publish(network, small, tokenizer, directory, max_tokens=max_tokens, settings=more)
    return parity


class _Traced(torch.nn.Module):
    """The network as it is exported.

    The layer between the first token and the classes may have begun as no change and still be near it. What it adds is
    then exported instead: in 8 bits the ones on its diagonal would leave nothing of the small numbers beside them.
    """

    def __init__(self, network: GroundingNetwork) -> None:
        super().__init__()
        self.network = network
        dense = network.classifier.base_model.pooler.dense
        self.added: torch.nn.Linear | None = None
        if dense.weight.diagonal().mean() > 0.5:
            self.added = torch.nn.Linear(dense.in_features, dense.out_features)
            self.added.load_state_dict(
                {"weight": dense.weight.detach() - torch.eye(dense.in_features), "bias": dense.bias.detach()}
            )

    def forward(self, input_ids: Any, attention_mask: Any, token_type_ids: Any) -> tuple[Any, Any]:
        if self.added is None:
            classes, words = self.network(input_ids, attention_mask, token_type_ids)
            return classes, words
        classifier = self.network.classifier
        hidden = classifier.base_model(
            input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids
        ).last_hidden_state
        first = hidden[:, 0]
        return classifier.classifier(torch.tanh(first + self.added(first))), self.network.words(hidden).squeeze(-1)


def _trace(network: GroundingNetwork, path: Path) -> None:
    ids = torch.ones((2, 24), dtype=torch.int64)
    names = ["input_ids", "attention_mask", "token_type_ids"]
    axes = {name: {0: "pairs", 1: "tokens"} for name in (*names, OUTPUTS[1])}
    torch.onnx.export(
        _Traced(network).eval(),
        (ids, ids.clone(), torch.zeros_like(ids)),
        str(path),
        input_names=names,
        output_names=list(OUTPUTS),
        dynamic_axes={**axes, OUTPUTS[0]: {0: "pairs"}},
        opset_version=_OPSET,
        dynamo=False,
    )


def _fuse(network: GroundingNetwork, source: Path, target: Path) -> None:
    from onnxruntime.transformers import optimizer
    from onnxruntime.transformers.fusion_options import FusionOptions

    config = network.classifier.config
    options = FusionOptions("bert")
    options.enable_embed_layer_norm = False  # its 8-bit form drops the names of the inputs that the guard feeds
    fused = optimizer.optimize_model(
        str(source),
        model_type="bert",
        num_heads=config.num_attention_heads,
        hidden_size=config.hidden_size,
        optimization_options=options,
        opt_level=1,
    )
    fused.save_model_to_file(str(target))


def _quantise(source: Path, target: Path) -> None:
    import onnx
    from onnx import TensorProto
    from onnxruntime.quantization import QuantType, quantize_dynamic

    model = onnx.load(str(source))
    pack_gather(model)
    version = model.ir_version
    quantize_dynamic(
        model,
        target,
        op_types_to_quantize=["MatMul", "Gemm", "Attention", "Gather"],
        per_channel=True,
        # Seven bits: x86 CPUs without VNNI add two products of 8 bits in 16 and cut what does not fit, which makes
        # nonsense of a BERT. With weights in [-64, 64] all fits (2 × 255 × 64 < 2¹⁵), and no CPU needs slower kernels.
        reduce_range=True,
        weight_type=QuantType.QInt8,
        extra_options={"DefaultTensorType": TensorProto.FLOAT},  # shapes cannot be inferred through fused nodes
    )
    small = onnx.load(str(target))
    small.ir_version = version
    onnx.save(small, str(target))


def _torch_probabilities(network: GroundingNetwork, examples: Sequence[Example]) -> NDArray[np.float64]:
    rows = []
    with torch.inference_mode():
        for example in examples:
            batch = collate([example])
            classes, _ = network(batch.input_ids, batch.attention_mask, batch.token_type_ids)
            rows.append(torch.softmax(classes.double(), dim=-1)[0, _ENTAILMENT].item())
    return np.array(rows)


def _onnx_probabilities(path: Path, examples: Sequence[Example]) -> NDArray[np.float64]:
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    rows = []
    for example in examples:
        ids = np.array([example.ids])
        logits = session.run(
            [OUTPUTS[0]],
            {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.array([example.types])},
        )[0]
        shifted = np.exp(logits.astype(np.float64) - logits.max())
        rows.append(float(shifted[0, _ENTAILMENT] / shifted.sum()))
    return np.array(rows)


def _publish(
    network: GroundingNetwork,
    model: Path,
    tokenizer: Path,
    directory: Path,
    *,
    max_tokens: int,
    settings: Mapping[str, Any],
) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    config = network.classifier.config
    described = {
        "architectures": config.architectures,
        "model_type": config.model_type,
        "id2label": {str(index): label for index, label in enumerate(LABELS)},
        "label2id": {label: index for index, label in enumerate(LABELS)},
        "max_position_embeddings": min(max_tokens, config.max_position_embeddings),
        "pad_token_id": config.pad_token_id,
        **settings,
    }
    (directory / "config.json").write_text(json.dumps(described, indent=2) + "\n", encoding="utf-8")
    shutil.copyfile(tokenizer, directory / "tokenizer.json")
    partial = directory / "model.onnx.partial"
    shutil.copyfile(model, partial)
    os.replace(partial, directory / "model.onnx")
    sums = {name: _sha256(directory / name) for name in ("config.json", "model.onnx", "tokenizer.json")}
    (directory / "checksums.json").write_text(json.dumps(sums, indent=2) + "\n", encoding="utf-8")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _quiet() -> Iterator[None]:
    """The exporter and the quantiser warn about themselves; what counts here is the comparison."""
    level = logging.root.level
    logging.root.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.root.setLevel(level)
