"""Pairs as tensors: tokens, labels of words, and batches of similar length."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from guardrail.errors import ModelLoadError
from guardrail.scoring.entailment.modelfiles import check_file
from guardrail.training.network import IGNORED
from guardrail.training.pairs import LABELS, NOT_ENTAILMENT, Span, TrainingPair

LENGTHS = (32, 48, 64, 96, 128, 160, 192, 224, 256)
"""Padded lengths in tokens: few, because every new shape costs the CPU kernels their plans."""


@dataclass(frozen=True, slots=True)
class Example:
    """A pair in numbers."""

    ids: list[int]
    types: list[int]
    label: int
    entailment_only: bool
    words: list[int]


@dataclass(frozen=True, slots=True)
class Batch:
    """Tensors of pairs of similar length; shapes ``(pairs, tokens)`` and ``(pairs,)``."""

    input_ids: Tensor
    attention_mask: Tensor
    token_type_ids: Tensor
    labels: Tensor
    entailment_only: Tensor
    word_labels: Tensor
    claim_mask: Tensor

    def to(self, device: Any) -> Batch:
        """The same on a device."""
        return Batch(*(getattr(self, name).to(device) for name in self.__slots__))


class PairEncoder:
    """Encodes pairs with the tokeniser of a model.

    Args:
        directory: Directory with ``tokenizer.json``.
        max_tokens: Most tokens of a pair; a longer premise is cut at its end, a claim never, and a pair whose claim
            leaves no room is left out.

    Raises:
        ModelLoadError: If there is no tokeniser, or not that of a BERT.
    """

    def __init__(self, directory: Path, *, max_tokens: int = 224) -> None:
        from tokenizers import Tokenizer

        path = directory / "tokenizer.json"
        check_file(path)
        try:
            self._tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises nothing narrower
            raise ModelLoadError(f"cannot read {path}: {error}") from error
        missing = [token for token in ("[CLS]", "[SEP]") if self._tokenizer.token_to_id(token) is None]
        if missing:
            raise ModelLoadError(f"{path} has no token {missing[0]}: a base has to have the tokeniser of a BERT")
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._check_joining(path)
        self._max_tokens = min(max_tokens, LENGTHS[-1])

    def _check_joining(self, path: Path) -> None:
        """The guard lets the tokeniser join premise and claim: it has to do what is trained."""
        pair = TrainingPair(premise="a", hypothesis="a a", label="entailment")
        premise, claim = (
            self._tokenizer.encode(text, add_special_tokens=False) for text in (pair.premise, pair.hypothesis)
        )
        trained = self._example(pair, premise.ids, claim)
        joined = self._tokenizer.encode(pair.premise, pair.hypothesis)
        if (joined.ids, joined.type_ids) != (trained.ids, trained.types):
            raise ModelLoadError(
                f"{path} joins premise and claim as {' '.join(joined.tokens)!r} with types {joined.type_ids}: "
                "its post_processor has to be that of a BERT, [CLS] premise [SEP] claim [SEP] with types 0 and 1"
            )

    def encode(self, pairs: Sequence[TrainingPair]) -> list[Example]:
        """Encode pairs, in order, without those whose claim is too long."""
        examples = []
        for at in range(0, len(pairs), 512):
            some = pairs[at : at + 512]
            premises = self._tokenizer.encode_batch([p.premise for p in some], add_special_tokens=False)
            claims = self._tokenizer.encode_batch([p.hypothesis for p in some], add_special_tokens=False)
            for pair, premise, claim in zip(some, premises, claims, strict=True):
                room = self._max_tokens - 3 - len(claim.ids)
                if room >= 16 or len(premise.ids) <= room:
                    examples.append(self._example(pair, premise.ids[: max(room, 0)], claim))
        return examples

    def _example(self, pair: TrainingPair, premise: list[int], claim: Any) -> Example:
        start, end = self._tokenizer.token_to_id("[CLS]"), self._tokenizer.token_to_id("[SEP]")
        ids = [start, *premise, end, *claim.ids, end]
        types = [0] * (len(premise) + 2) + [1] * (len(claim.ids) + 1)
        words = [IGNORED] * len(ids)
        if pair.unsupported is not None:
            words[len(premise) + 2 : len(ids) - 1] = word_labels(claim.offsets, pair.unsupported)
        only = pair.label == NOT_ENTAILMENT
        return Example(ids, types, 0 if only else LABELS.index(pair.label), only, words)


def word_labels(offsets: Sequence[Span], unsupported: Sequence[Span]) -> list[int]:
    """1 for each token that touches an unsupported range, else 0.

    Example:
        >>> word_labels([(0, 3), (4, 8), (9, 14)], [(5, 10)])
        [0, 1, 1]
    """
    return [int(any(a < end and start < b for start, end in unsupported)) for a, b in offsets]


def batches(examples: Sequence[Example], *, tokens_per_batch: int, rng: random.Random) -> list[list[int]]:
    """Put examples of similar length together, in random order.

    Args:
        examples: All of an epoch.
        tokens_per_batch: About how many tokens one step takes; short pairs come in larger batches.
        rng: Source of the order.

    Returns:
        Indices into ``examples`` per batch; every example occurs once.
    """
    order = list(range(len(examples)))
    rng.shuffle(order)
    by_length: dict[int, list[int]] = defaultdict(list)
    for index in order:
        by_length[_padded(len(examples[index].ids))].append(index)
    found = []
    for length, own in by_length.items():
        size = max(1, min(64, tokens_per_batch // length))
        found += [own[at : at + size] for at in range(0, len(own), size)]
    rng.shuffle(found)
    return found


def collate(examples: Sequence[Example], *, pad_id: int = 0) -> Batch:
    """Pad examples to one of :data:`LENGTHS`."""
    length = _padded(max(len(e.ids) for e in examples))

    def filled(rows: Iterator[list[int]], value: int) -> Tensor:
        return torch.tensor([row + [value] * (length - len(row)) for row in rows])

    return Batch(
        input_ids=filled((e.ids for e in examples), pad_id),
        attention_mask=filled(([1] * len(e.ids) for e in examples), 0),
        token_type_ids=filled((e.types for e in examples), 0),
        labels=torch.tensor([e.label for e in examples]),
        entailment_only=torch.tensor([e.entailment_only for e in examples]),
        word_labels=filled((e.words for e in examples), IGNORED),
        claim_mask=filled(([*e.types[:-1], 0] for e in examples), 0).bool(),  # without the mark at its end
    )


def _padded(length: int) -> int:
    return next((bucket for bucket in LENGTHS if length <= bucket), length)
