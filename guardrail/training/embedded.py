"""Train the embedded model: the recipe from its data to the files that are shipped."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from torch import Tensor

from guardrail.errors import ConfigurationError
from guardrail.training.adapt import Log, check_device, digest_of, open_base
from guardrail.training.batches import Example, PairEncoder
from guardrail.training.loop import Schedule, train
from guardrail.training.network import GroundingNetwork, average
from guardrail.training.pairs import read_pairs
from guardrail.training.publish import TrainingReport, publish, write_card
from guardrail.training.recipe import (
    FIRST_STAGE,
    FIRST_STAGE_STEPS,
    FOURTH_STAGE,
    MAX_TOKENS,
    SECOND_STAGE,
    SHARES,
    THIRD_STAGE,
    build_stages,
    licences,
)
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
    """Build all stages, train them one after the other, and publish the result.

    Args:
        data_dir: Folder with the files of :mod:`guardrail.training.sources`.
        directory: Where everything goes. An interrupted training goes on from its last checkpoint.
        base: A small BERT in the Hugging Face layout; the shipped model began with all-MiniLM-L6-v2.
        device: ``"cpu"`` or ``"cuda"``.
        command: The command that repeats it, for the card.
        log: Called with lines for people.
        scale: Share of the pairs to take; less than 1 is for trying the recipe out.

    Returns:
        What came out.

    Raises:
        InputError: If a file of data is missing or damaged.
        ConfigurationError: If the device is not there, or the checkpoint of another training is in the way.
        ModelLoadError: If the base cannot be opened.

    Example:
        >>> train_embedded(Path("no-such-folder"), Path("out"), base=Path("base"))
        Traceback (most recent call last):
        ...
        guardrail.errors.ModelLoadError: base is not a directory: likely a wrong path
    """
    check_device(device)
    first = FIRST_STAGE
    network = open_base(base, dropout=first.dropout, seed=first.seed)
    encoder = PairEncoder(base, max_tokens=MAX_TOKENS)
    log("writing the pairs of all stages")
    stages = build_stages(data_dir, directory / "data", scale=scale)
    held = encoder.encode(list(read_pairs(stages.held_out)))
    if not held:
        raise ConfigurationError(f"a scale of {scale} leaves no answer to validate with")
    before = validate(network, held, device=device)

    def run(network: GroundingNetwork, name: str, schedule: Schedule, path: Path, stop_at: int | None) -> int:
        log(f"stage {name}")
        pairs = list(read_pairs(path))
        examples: Sequence[Example] = encoder.encode(pairs)
        train(
            network,
            examples,
            schedule=schedule,
            directory=directory / f"checkpoint-{name}",
            log=log,
            device=device,
            stop_at=stop_at,
            fingerprint=f"{digest_of(base)} {scale}",
        )
        kept[name] = {key: value.detach().cpu().clone() for key, value in network.state_dict().items()}
        return len(pairs) - len(examples)

    kept: dict[str, dict[str, Tensor]] = {}
    left_out = run(network, "first", first, stages.first, FIRST_STAGE_STEPS)
    left_out += run(network, "second", SECOND_STAGE, stages.second, None)
    left_out += run(network, "third", THIRD_STAGE, stages.third, None)
    left_out += run(network, "fourth", FOURTH_STAGE, stages.fourth, None)
    network.load_state_dict(average([(kept[name], share) for name, share in SHARES.items()]))
    report = TrainingReport(
        title="The entailment model that ships with guardrail",
        base=base.name,
        command=command,
        seed=first.seed,
        parameters=sum(p.numel() for p in network.parameters()),
        files=stages.files,
        left_out=left_out,
        languages=_LANGUAGES,
        before=before,
        after=validate(network, held, device=device),
        parity=publish(
            network,
            base / "tokenizer.json",
            directory,
            examples=held,
            languages=_LANGUAGES,
            max_tokens=_POSITIONS,
        ),
        directory=directory,
    )
    write_card(report, licences=licences())
    return report
