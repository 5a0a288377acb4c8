"""How well a network tells entailed pairs from others, in two figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch

from guardrail.evaluation.figures import auroc
from guardrail.training.batches import Example, collate
from guardrail.training.network import GroundingNetwork
from guardrail.training.pairs import LABELS

_ENTAILED = LABELS.index("entailment")
_BATCH = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What came out on pairs that were not trained on.

    Attributes:
        n: Number of pairs.
        entailed: How many of them are entailed.
        auroc: P(a pair that is not entailed gets a lower probability of entailment than one that is); ``None`` if
            all are of one kind.
        accuracy: Share of the pairs on the right side of 0.5.
    """

    n: int
    entailed: int
    auroc: float | None
    accuracy: float

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


def figures(probabilities: Sequence[float], entailed: Sequence[bool]) -> Figures:
    """The figures of probabilities.

    Args:
        probabilities: Of entailment, one per pair, at least one.
        entailed: What is true.

    Example:
        >>> figures([0.9, 0.6, 0.4, 0.2], [True, False, True, False])
        Figures(n=4, entailed=2, auroc=0.75, accuracy=0.5)
    """
    right = sum((p > 0.5) == truth for p, truth in zip(probabilities, entailed, strict=True))
    return Figures(
        n=len(probabilities),
        entailed=sum(entailed),
        auroc=auroc([1 - p for p in probabilities], [not truth for truth in entailed]),
        accuracy=right / len(probabilities),
    )


def validate(network: GroundingNetwork, examples: Sequence[Example], *, device: str = "cpu") -> Figures:
    """Judge pairs and compare with what is known about them.

    Args:
        network: The network; it is left in evaluation mode.
        examples: Encoded pairs, at least one.
        device: Where.
    """
    network.to(device).eval()
    order = sorted(range(len(examples)), key=lambda index: len(examples[index].ids))
    found = [0.0] * len(examples)
    with torch.inference_mode():
        for at in range(0, len(order), _BATCH):
            some = order[at : at + _BATCH]
            batch = collate([examples[index] for index in some]).to(device)
            classes, _ = network(batch.input_ids, batch.attention_mask, batch.token_type_ids)
            for index, p in zip(some, torch.softmax(classes.float(), dim=-1)[:, _ENTAILED].tolist(), strict=True):
                found[index] = p
    return figures(found, [not e.entailment_only and e.label == _ENTAILED for e in examples])
