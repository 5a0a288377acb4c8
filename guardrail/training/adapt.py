"""Adapt a model to your own data: read, split, train, compare, publish."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from guardrail.errors import ConfigurationError, ModelLoadError
from guardrail.scoring.entailment.modelfiles import check_file, read_json
from guardrail.training.batches import LENGTHS, PairEncoder
from guardrail.training.data import read_training_data
from guardrail.training.from_encoder import FILE as ENCODER
from guardrail.training.loop import Schedule, train
from guardrail.training.network import GroundingNetwork
from guardrail.training.publish import TrainingReport, publish, write_card
from guardrail.training.validation import validate

CHECKPOINT = "checkpoint"
_LANGUAGE = re.compile("[a-z]{2,3}")
_WEIGHTS = ("model.safetensors", "pytorch_model.bin")
Log = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a model is adapted.

    Attributes:
        epochs: Passes over the pairs.
        learning_rate: At its highest.
        max_tokens: Longest pair, in tokens; a longer premise is cut in training, and read in windows by the guard.
        seed: Of split, order and dropout.
        hold_out: Share of the pairs for validation.
        languages: ISO codes; empty takes those of the base, or English if it declares none.
        device: ``"cpu"`` or ``"cuda"``.

    Example:
        >>> Settings(device="tpu")
        Traceback (most recent call last):
        ...
        guardrail.errors.ConfigurationError: device must be cpu or cuda, not 'tpu'
    """

    epochs: int = 2
    learning_rate: float = 5e-5
    max_tokens: int = 256
    seed: int = 7
    hold_out: float = 0.1
    languages: tuple[str, ...] = ()
    device: str = "cpu"

    def __post_init__(self) -> None:
        if not LENGTHS[0] <= self.max_tokens <= LENGTHS[-1]:
            raise ConfigurationError(f"max_tokens must be from {LENGTHS[0]} to {LENGTHS[-1]}, not {self.max_tokens}")
        if self.epochs < 1:
            raise ConfigurationError(f"epochs must be at least 1, not {self.epochs}")
        if not 0 < self.learning_rate < 1:
            raise ConfigurationError(f"learning_rate must be between 0 and 1, not {self.learning_rate}")
        wrong = [code for code in self.languages if not _LANGUAGE.fullmatch(code)]
        if wrong:
            raise ConfigurationError(f"languages must be ISO codes such as en or it, not {wrong[0]!r}")
        check_device(self.device)


def adapt(
    paths: Sequence[Path], directory: Path, *, base: Path, settings: Settings, command: str = "", log: Log = print
) -> TrainingReport:
    """Train a model on files of pairs or labelled answers.

    Args:
        paths: The files; see :func:`~guardrail.training.data.read_training_data`.
        directory: Where ``onnx``, ``torch``, ``README.md`` and the checkpoint go; the checkpoint of the same training
            that is there already is resumed.
        base: What to begin with: an exported model (``model.onnx``) or a BERT in the Hugging Face layout.
        settings: How.
        command: The command that repeats it, for the card.
        log: Called with lines for people.

    Returns:
        What came out.

    Raises:
        InputError: If a file cannot be used.
        ConfigurationError: If a setting is wrong, or a checkpoint of another training is in the way.
        ModelLoadError: If the base cannot be opened.
    """
    data = read_training_data(paths, hold_out=settings.hold_out, seed=settings.seed)
    schedule = Schedule(
        epochs=settings.epochs, learning_rate=settings.learning_rate, decay_share=0.9, seed=settings.seed
    )
    network = open_base(base, dropout=schedule.dropout, seed=settings.seed)
    max_tokens = _fitting(network, settings.max_tokens)
    encoder = PairEncoder(base, max_tokens=max_tokens)
    own, held = encoder.encode(data.train), encoder.encode(data.held_out)
    if not own:
        raise ConfigurationError(f"no claim leaves room for evidence in {max_tokens} tokens: raise max_tokens")
    before = validate(network, held, device=settings.device) if held else None
    network = train(
        network,
        own,
        schedule=schedule,
        directory=directory / CHECKPOINT,
        log=log,
        device=settings.device,
        fingerprint=f"{data.digest} {digest_of(base)} {max_tokens}",
    )
    after = validate(network, held, device=settings.device) if held else None
    languages = settings.languages or languages_of(base)
    parity = publish(
        network,
        base / "tokenizer.json",
        directory,
        examples=held or own,
        languages=languages,
        max_tokens=max_tokens,
        settings=settings_of(base),
    )
    report = TrainingReport(
        title="An entailment model for guardrail, adapted",
        base=base.name,
        command=command,
        seed=settings.seed,
        parameters=sum(p.numel() for p in network.parameters()),
        files=data.files,
        left_out=len(data.train) + len(data.held_out) - len(own) - len(held),
        languages=languages,
        before=before,
        after=after,
        parity=parity,
        directory=directory,
    )
    write_card(report)
    return report


def open_base(directory: Path, *, dropout: float, seed: int, layers: int | None = None) -> GroundingNetwork:
    """Open what a training begins with: torch weights if there are any, else an exported model or encoder.

    Args:
        directory: The model.
        dropout: Of the hidden layers, while training.
        seed: Of the heads, where the base has none.
        layers: How many layers of an encoder without heads to keep, from below; ``None`` keeps all.

    Raises:
        ModelLoadError: If it is neither, or damaged.
    """
    torch.manual_seed(seed)
    if not directory.is_dir():
        raise ModelLoadError(f"{directory} is not a directory: likely a wrong path")
    check_file(directory / "tokenizer.json")
    weights = next((directory / name for name in _WEIGHTS if (directory / name).exists()), None)
    if weights is not None:
        check_file(weights)
        return GroundingNetwork.open(directory, dropout=dropout)
    if (directory / "model.onnx").exists():
        return GroundingNetwork.from_onnx(directory, dropout=dropout)
    if (directory / ENCODER).exists():
        return GroundingNetwork.from_encoder(directory, layers=layers, dropout=dropout)
    raise ModelLoadError(
        f"{directory} has neither {_WEIGHTS[0]} nor model.onnx nor {ENCODER}: name a folder with a model in it"
    )


def check_device(device: str) -> None:
    """Check that a device is there.

    Raises:
        ConfigurationError: If it is not.
    """
    if device not in ("cpu", "cuda"):
        raise ConfigurationError(f"device must be cpu or cuda, not {device!r}")
    if device == "cuda" and not torch.cuda.is_available():
        raise ConfigurationError("torch finds no CUDA device here: train with the device cpu")


def languages_of(base: Path) -> tuple[str, ...]:
    """The languages that a base declares, or English: the bases that declare none are English."""
    declared = read_json(base / "config.json").get("guardrail_languages")
    return tuple(str(code) for code in declared) if isinstance(declared, list) and declared else ("en",)


def settings_of(base: Path) -> dict[str, Any]:
    """What else a base tells the guard, such as its calibration: it fits the adapted model better than nothing."""
    found = read_json(base / "config.json")
    return {key: found[key] for key in found if key.startswith("guardrail_") and key != "guardrail_languages"}


def digest_of(base: Path) -> str:
    """A digest of the weights of a base."""
    path = next(base / name for name in (*_WEIGHTS, "model.onnx", ENCODER) if (base / name).exists())
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _fitting(network: GroundingNetwork, max_tokens: int) -> int:
    """The longest pair that the network has positions for, padding included."""
    positions = int(network.classifier.config.max_position_embeddings)
    if positions < LENGTHS[0]:
        raise ModelLoadError(f"the base has {positions} positions; {LENGTHS[0]} is the least that can be trained")
    return min(max_tokens, max(length for length in LENGTHS if length <= positions))
