"""Tiny, randomly initialised entailment models, written to disk in the layouts of the real ones."""

from __future__ import annotations

import json
import string
import warnings
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

LABELS = {0: "contradiction", 1: "entailment", 2: "neutral"}
MAX_TOKENS = 64
WORDS = "the a door opens at nine ten plan costs euros month archive holds photographs maps not is and of in".split()


@dataclass(frozen=True)
class TinyModels:
    """Two directories with the same weights."""

    torch_dir: Path
    onnx_dir: Path


def write_tokenizer(directory: Path) -> None:
    """Write a WordPiece ``tokenizer.json`` over a few words, letters and digits."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    characters = string.ascii_lowercase + string.digits
    entries = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *characters, *(f"##{c}" for c in characters), *".,!?"]
    vocabulary = {token: i for i, token in enumerate([*entries, *(w for w in WORDS if w not in entries)])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])],
    )
    tokenizer.save(str(directory / "tokenizer.json"))


@lru_cache(maxsize=1)
def _build(root: Path) -> TinyModels:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch and transformers warn about themselves
        import sentence_transformers  # noqa: F401 - here, so that its import warnings do not fail a later test
        import torch
        from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

        torch.manual_seed(7)
        torch_dir, onnx_dir = root / "torch", root / "onnx"
        torch_dir.mkdir()
        onnx_dir.mkdir()
        write_tokenizer(onnx_dir)
        tokenizer = PreTrainedTokenizerFast(
            tokenizer_file=str(onnx_dir / "tokenizer.json"),
            model_max_length=MAX_TOKENS,
            model_input_names=["input_ids", "token_type_ids", "attention_mask"],
            pad_token="[PAD]",
            unk_token="[UNK]",
            cls_token="[CLS]",
            sep_token="[SEP]",
            mask_token="[MASK]",
        )
        config = BertConfig(
            vocab_size=len(tokenizer),
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=64,
            max_position_embeddings=MAX_TOKENS,
            initializer_range=0.5,  # wide, so that different pairs get different scores
            id2label=LABELS,
            label2id={name: index for index, name in LABELS.items()},
        )
        model = BertForSequenceClassification(config).eval()
        model.save_pretrained(torch_dir)
        tokenizer.save_pretrained(torch_dir)
        (onnx_dir / "config.json").write_bytes((torch_dir / "config.json").read_bytes())
        _export(torch, model, onnx_dir / "model.onnx")
    return TinyModels(torch_dir=torch_dir, onnx_dir=onnx_dir)


def _export(torch: Any, model: Any, path: Path) -> None:
    class Logits(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, input_ids: Any, attention_mask: Any, token_type_ids: Any) -> Any:
            return self.model(input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids).logits

    names = ["input_ids", "attention_mask", "token_type_ids"]
    example = torch.ones((2, 8), dtype=torch.long)
    torch.onnx.export(
        Logits().eval(),
        (example, example, torch.zeros_like(example)),
        str(path),
        input_names=names,
        output_names=["logits"],
        dynamic_axes={**{name: {0: "batch", 1: "tokens"} for name in names}, "logits": {0: "batch"}},
        opset_version=17,
        dynamo=False,
    )


_root: list[Path] = []


def tiny_models(factory: pytest.TempPathFactory) -> TinyModels:
    """The models, built once per test process; skips if torch or sentence-transformers is not installed."""
    pytest.importorskip("torch")
    pytest.importorskip("onnx")
    if not _root:
        _root.append(factory.mktemp("tiny-models"))
    return _build(_root[0])


def copy_of(directory: Path, target: Path) -> Path:
    """A copy of a model directory that a test may damage."""
    target.mkdir()
    for file in directory.iterdir():
        (target / file.name).write_bytes(file.read_bytes())
    return target


def edit_config(directory: Path, **changes: Any) -> None:
    """Change entries of ``config.json``."""
    path = directory / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
