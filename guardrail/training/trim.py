"""What is never read is not shipped: words that no text can contain, and positions beyond the longest pair."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import torch

from guardrail.errors import ModelLoadError
from guardrail.training.network import GroundingNetwork

_PLACEHOLDER = re.compile(r"\[unused\d+\]")


def trim(network: GroundingNetwork, tokenizer: Path, target: Path, *, positions: int) -> None:
    """Drop the placeholders of a BERT's vocabulary (``[unused7]``) and the positions that no pair reaches.

    Args:
        network: Changed in place; its scores stay the same.
        tokenizer: Its ``tokenizer.json``.
        target: Where the ``tokenizer.json`` of the trimmed network goes: the other words move up.
        positions: Longest pair, special tokens included.

    Raises:
        ModelLoadError: If the tokeniser does not belong to the network.
    """
    described = json.loads(tokenizer.read_text(encoding="utf-8"))
    numbers: dict[str, int] = described["model"]["vocab"]
    bert, config = network.classifier.base_model, network.classifier.config
    words = bert.embeddings.word_embeddings
    if sorted(numbers.values()) != list(range(words.num_embeddings)):
        raise ModelLoadError(
            f"{tokenizer} has {len(numbers)} words, the network {words.num_embeddings}: "
            "a base has to come with its own tokeniser, and without words that were added to it"
        )
    used = _special(described) | {config.pad_token_id}
    kept = [
        word
        for word in sorted(numbers, key=numbers.__getitem__)
        if numbers[word] in used or not _PLACEHOLDER.fullmatch(word)
    ]
    rows = torch.tensor([numbers[word] for word in kept])
    moved = {number: at for at, number in enumerate(rows.tolist())}
    bert.embeddings.word_embeddings = _rows(words, rows, padding=moved.get(words.padding_idx))
    places = bert.embeddings.position_embeddings
    count = min(positions, places.num_embeddings)
    bert.embeddings.position_embeddings = _rows(places, torch.arange(count))
    for name in ("position_ids", "token_type_ids"):
        setattr(bert.embeddings, name, getattr(bert.embeddings, name)[:, :count])
    config.update({"vocab_size": len(kept), "max_position_embeddings": count})
    config.pad_token_id = moved.get(config.pad_token_id)
    described["model"]["vocab"] = {word: at for at, word in enumerate(kept)}
    _renumber(described, moved)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(described, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")


def _rows(table: torch.nn.Embedding, rows: torch.Tensor, padding: int | None = None) -> torch.nn.Embedding:
    found = torch.nn.Embedding(len(rows), table.embedding_dim, padding_idx=padding)
    found.weight = torch.nn.Parameter(table.weight.detach()[rows].clone(), requires_grad=table.weight.requires_grad)
    return found


def _special(described: dict[str, Any]) -> set[int]:
    """Numbers of the tokens that a text can get without containing them, or that are found whole in it."""
    found = {token["id"] for token in described.get("added_tokens") or ()}
    for after in _processors(described.get("post_processor")):
        found.update(number for token in (after.get("special_tokens") or {}).values() for number in token["ids"])
        found.update(after[name][1] for name in ("sep", "cls") if name in after)
    return found | ({described["padding"]["pad_id"]} if described.get("padding") else set())


def _renumber(described: dict[str, Any], moved: dict[int, int]) -> None:
    """Special tokens stand with their numbers in several places of a ``tokenizer.json``."""
    for token in described.get("added_tokens") or ():
        token["id"] = moved[token["id"]]
    if described.get("padding"):
        described["padding"]["pad_id"] = moved[described["padding"]["pad_id"]]
    for after in _processors(described.get("post_processor")):
        for token in (after.get("special_tokens") or {}).values():
            token["ids"] = [moved[number] for number in token["ids"]]
        for name in ("sep", "cls"):
            if name in after:
                after[name] = [after[name][0], moved[after[name][1]]]


def _processors(after: dict[str, Any] | None) -> list[dict[str, Any]]:
    """What adds special tokens: one thing, or several in a sequence."""
    if after is None:
        return []
    return [inner for own in after["processors"] for inner in _processors(own)] if "processors" in after else [after]
