"""A task that a tiny network learns in seconds: does the claim name the hour of the evidence?"""

from __future__ import annotations

import json
import random
import warnings
from pathlib import Path

import pytest

from guardrail.training.pairs import TrainingPair
from tests.tiny_models import TinyModels, tiny_models

PLACES = ("door", "archive", "plan", "month")


def toy_pairs(count: int = 64, *, seed: int = 1) -> list[TrainingPair]:
    """Pairs, half of them with the wrong hour, which is marked."""
    rng = random.Random(seed)
    pairs = []
    for number in range(count):
        place, right, wrong = rng.choice(PLACES), *rng.sample(("nine", "ten"), 2)
        entailed = number % 2 == 0
        claim = f"the {place} opens at {right if entailed else wrong}"
        spans = () if entailed else ((len(claim) - len(wrong), len(claim)),)
        pairs.append(
            TrainingPair(
                premise=f"the {place} opens at {right} and holds maps of {rng.randrange(1000)}.",
                hypothesis=claim,
                label="entailment" if entailed else "not_entailment",
                source="toy",
                unsupported=spans,
            )
        )
    return pairs


def write_rows(path: Path, rows: list) -> Path:
    """JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def smooth_base(factory: pytest.TempPathFactory) -> Path:
    """A tiny base with 256 positions and small weights, which survive 8 bits better than those of the tiny models."""
    torch_dir = tiny(factory).torch_dir
    from transformers import BertConfig, BertForSequenceClassification

    directory = factory.mktemp("smooth") / "base"
    config = BertConfig.from_pretrained(torch_dir, max_position_embeddings=256, initializer_range=0.1)
    BertForSequenceClassification(config).save_pretrained(directory)
    (directory / "tokenizer.json").write_bytes((torch_dir / "tokenizer.json").read_bytes())
    return directory


def tiny(factory: pytest.TempPathFactory) -> TinyModels:
    """The tiny models, with the libraries imported that warn when they are imported, and torch in one thread.

    The number of threads decides the order of sums, and with it the last digit of weights; and for a network this small
    several threads only wait for each other.
    """
    models = tiny_models(factory)
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import guardrail.training.adapt
        import guardrail.training.embedded  # noqa: F401
    return models
