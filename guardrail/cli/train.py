"""``guardrail train``: adapt the entailment model to files of your own, or repeat the embedded one."""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from guardrail.cli import EXIT_OK
from guardrail.cli.console import count, open_console
from guardrail.errors import ConfigurationError
from guardrail.scoring.entailment.onnx import embedded_model_dir
from guardrail.training.extra import require_extra

if TYPE_CHECKING:  # torch costs seconds at import: only for those who train
    from guardrail.training.publish import TrainingReport
    from guardrail.training.validation import Figures

_SETTINGS = ("epochs", "learning_rate", "max_tokens", "seed", "hold_out", "languages")


def train(arguments: argparse.Namespace) -> int:
    """Train a model and report.

    Args:
        arguments: What :func:`guardrail.cli.arguments.build_parser` made of the command line; settings that are
            ``None`` were not given.

    Returns:
        The exit status, 0.

    Raises:
        MissingExtraError: If torch or another library of the extra ``train`` is not installed.
        ConfigurationError: If arguments do not go together.
        InputError: If a file cannot be used.
        ModelLoadError: If the base cannot be opened.

    Example:
        >>> from guardrail.cli import main
        >>> main(["train", "--out", "trained"])  # says on standard error that it needs files
        2
    """
    _check(arguments)
    console = open_console(no_color=arguments.no_color, stderr=True)

    def log(line: str) -> None:
        console.print(Text(line, style="dim"))

    report = _recipe(arguments, log) if arguments.recipe else _adapt(arguments, log)
    if arguments.json:
        print(json.dumps(report.to_json(), ensure_ascii=False, allow_nan=False, indent=2))
    else:
        _print(open_console(no_color=arguments.no_color), report)
    return EXIT_OK


def _check(arguments: argparse.Namespace) -> None:
    given = [f"--{name.replace('_', '-')}" for name in _SETTINGS if getattr(arguments, name) is not None]
    if arguments.recipe and (arguments.pairs or given):
        raise ConfigurationError(f"a recipe has its own data and settings: leave out {(given or ['the PAIRS'])[0]}")
    if arguments.recipe and not (arguments.data and arguments.base):
        raise ConfigurationError("a recipe needs its data and a base: --data DIR --base DIR")
    if not arguments.recipe and arguments.data:
        raise ConfigurationError("--data is for a recipe; name the files to train on themselves")
    if not arguments.recipe and not arguments.pairs:
        raise ConfigurationError("name at least one file of pairs or labelled answers to train on")
    require_extra("guardrail train")


def _adapt(arguments: argparse.Namespace, log: Callable[[str], None]) -> TrainingReport:
    from guardrail.training.adapt import Settings, adapt

    base = embedded_model_dir() if arguments.base is None else Path(arguments.base)
    if base is None:
        raise ConfigurationError("this installation has no embedded model to begin with: name one with --base DIR")
    chosen = {name: getattr(arguments, name) for name in _SETTINGS if getattr(arguments, name) is not None}
    settings = Settings(**chosen, device=arguments.device)
    options = {name: getattr(settings, name) for name in _SETTINGS if name != "languages"}
    if settings.languages:
        options["languages"] = ",".join(settings.languages)
    if arguments.base is not None:
        options["base"] = arguments.base
    command = _command([*arguments.pairs, "--out", arguments.out], options, arguments.device)
    paths = [Path(name) for name in arguments.pairs]
    return adapt(paths, Path(arguments.out), base=base, settings=settings, command=command, log=log)


def _recipe(arguments: argparse.Namespace, log: Callable[[str], None]) -> TrainingReport:
    from guardrail.training.embedded import train_embedded

    words = ["--recipe", arguments.recipe, "--data", arguments.data, "--base", arguments.base, "--out", arguments.out]
    return train_embedded(
        Path(arguments.data),
        Path(arguments.out),
        base=Path(arguments.base),
        device=arguments.device,
        command=_command(words, {}, arguments.device),
        log=log,
    )


def _command(words: Sequence[str], options: Mapping[str, object], device: str) -> str:
    """The command with every setting, also those that were left to their defaults."""
    named = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    return shlex.join(["guardrail", "train", *words, *named, "--device", device])


def _print(console: Console, report: TrainingReport) -> None:
    files = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    files.add_column("file", overflow="fold")
    files.add_column("kind", no_wrap=True)
    for name in ("rows", "pairs", "held out"):
        files.add_column(name, justify="right", no_wrap=True)
    for file in report.files:
        files.add_row(Text(file.name), file.kind, str(file.rows), str(file.pairs), str(file.held_out))
    console.print(files)
    silent = sum(file.silent for file in report.files)
    if silent:
        line = f"{count(silent, 'answer')} gave no pair: without a claim, or not grounded and nobody marked where"
        console.print(Text(line, style="yellow"))
    if report.left_out:
        line = f"{count(report.left_out, 'pair')} left out: the claim leaves no room for evidence"
        console.print(Text(line, style="yellow"))
    console.print()
    if report.before is None or report.after is None:
        console.print(Text("no pair was held out, so nothing was measured", style="yellow"))
    else:
        table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
        table.add_column("validation", no_wrap=True)
        for name in ("AUROC", "accuracy", "n"):
            table.add_column(name, justify="right", no_wrap=True)
        for name, found in (("before", report.before), ("after", report.after)):
            table.add_row(name, *_row(found))
        console.print(table)
    console.print()
    parity = report.parity
    console.print(
        Text(
            f"exported: {parity.size_bytes / 1e6:.1f} MB, entailment differs by {parity.mean_drift:.4f} on average, "
            f"{parity.same_side:.1%} of {count(parity.pairs, 'pair')} on the same side of 0.5",
            style="dim",
        )
    )
    console.print(Text(f"for the guard: {report.directory / 'onnx'}"), soft_wrap=True)
    console.print(Text(f"for torch: {report.directory / 'torch'}"), soft_wrap=True)


def _row(found: Figures) -> tuple[str, str, str]:
    return "–" if found.auroc is None else f"{found.auroc:.3f}", f"{found.accuracy:.3f}", str(found.n)
