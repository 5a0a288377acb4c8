"""Train the embedded model: the recipe from its data to the files that are shipped."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from torch import Tensor

from guardrail.errors import ConfigurationError, ModelLoadError
from guardrail.training.adapt import Log, check_device, digest_of, open_base
from guardrail.training.batches import PairEncoder
from guardrail.training.loop import train
from guardrail.training.network import mean_of
from guardrail.training.pairs import TrainingPair, read_pairs
from guardrail.training.publish import TrainingReport, publish, write_card
from guardrail.training.recipe import LAYERS, MAX_TOKENS, ROUNDS, build_parts, check_files, licences
from guardrail.training.trim import trim
from guardrail.training.validation import validate

_LANGUAGES = ("en",)
_POSITIONS = 256


def train_embedded(
    data_dir: Path,
    directory: Path,
    *,
    base: Path,
    device: str = "cpu",
    command: str = "",
    log: Log = print,
    scale: float = 1.0,
) -> TrainingReport:
    """Build the parts of every round, train a base on one after the other, and publish what the last leaves.

    Args:
        data_dir: Folder with the files of :mod:`guardrail.training.sources`.
        directory: Where everything goes. An interrupted training goes on from its last checkpoint.
        base: A small BERT in the Hugging Face layout, or an encoder in 8 bits; the shipped model began with the
            encoder bge-small-en-v1.5, of which the lower ten layers are kept.
        device: ``"cpu"`` or ``"cuda"``.
        command: The command that repeats it, for the card.
        log: Called with lines for people.
        scale: Share of the pairs to take; less than 1 is for trying the recipe out.

    Returns:
        What came out.

    Raises:
        InputError: If a file of data is missing or damaged.
        ConfigurationError: If the device is not there, or the checkpoint of another training is in the way.
        ModelLoadError: If the base cannot be opened, or is too short for the pairs.

    Example:
        >>> train_embedded(Path("no-such-folder"), Path("out"), base=Path("base"))
        Traceback (most recent call last):
        ...
        guardrail.errors.ModelLoadError: base is not a directory: likely a wrong path
    """
    check_device(device)
    seed = ROUNDS[0].schedule.seed
    network = open_base(base, dropout=ROUNDS[0].schedule.dropout, seed=seed, layers=LAYERS)
    positions = network.classifier.config.max_position_embeddings
    if positions < MAX_TOKENS:
        raise ModelLoadError(
            f"{base} has {positions} positions and the pairs up to {MAX_TOKENS} tokens: take another base"
        )
    check_files(data_dir)
    trim(network, base / "tokenizer.json", directory / "base" / "tokenizer.json", positions=_POSITIONS)
    encoder = PairEncoder(directory / "base", max_tokens=MAX_TOKENS)
    log("writing the pairs of all rounds")
    parts = build_parts(data_dir, directory / "data", scale=scale)
    validation = encoder.encode(list(read_pairs(parts.held_out)))
    if not validation:
        raise ConfigurationError(f"a scale of {scale} leaves no answer to validate with")
    before = validate(network, validation, device=device)
    left_out = 0
    fingerprint = f"{digest_of(base)} {scale}"
    after_rounds: list[dict[str, Tensor]] = []
    for number, (each, paths) in enumerate(zip(ROUNDS, parts.rounds, strict=True), 1):
        log(f"round {number} of {len(ROUNDS)}")
        broad, near = (list(read_pairs(path)) for path in paths)
        if each.after:
            network.load_state_dict(mean_of([after_rounds[number - 1] for number in each.after]))
        fingerprint = _digest(fingerprint, (*broad, *near))
        first, later = encoder.encode(broad), encoder.encode(near)
        left_out += len(broad) + len(near) - len(first) - len(later)
        train(
            network,
            first,
            later=later,
            schedule=each.schedule,
            directory=directory / f"checkpoint-{number}",
            log=log,
            device=device,
            fingerprint=fingerprint,
        )
        after_rounds.append({name: value.clone() for name, value in network.state_dict().items()})
    report = TrainingReport(
        title="The entailment model that ships with guardrail",
        base=base.name,
        command=command,
        seed=seed,
        parameters=sum(p.numel() for p in network.parameters()),
        files=parts.files,
        left_out=left_out,
        languages=_LANGUAGES,
        before=before,
        after=validate(network, validation, device=device),
        parity=publish(
            network,
            directory / "base" / "tokenizer.json",
            directory,
            examples=validation,
            languages=_LANGUAGES,
            max_tokens=_POSITIONS,
        ),
        directory=directory,
    )
    write_card(report, licences=licences())
    return report


def _digest(before: str, pairs: Sequence[TrainingPair]) -> str:
    """What a round is trained on, and all rounds before it."""
    digest = hashlib.sha256(before.encode())
    for pair in pairs:
        digest.update(repr(pair).encode())
    return digest.hexdigest()
