"""``guardrail bench``: front ends of the benchmarks in :mod:`guardrail.evaluation`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from guardrail.cli import EXIT_OK
from guardrail.cli.console import describe_judge, open_console
from guardrail.cli.profiles import chosen_policy
from guardrail.cli.progress import progress
from guardrail.cli.quality_table import print_quality
from guardrail.errors import InputError
from guardrail.evaluation.benchmarks.quality import QualityReport, measure
from guardrail.evaluation.benchmarks.replay import ReplayReport, ReplayRow, replay
from guardrail.evaluation.benchmarks.simulated import Simulation
from guardrail.scoring.verifier import Verifier

_ENDINGS = (".jsonl.gz", ".jsonl")
_REPOSITORY = Path(__file__).resolve().parent.parent.parent
_DATA = _REPOSITORY.parent / "shared" / "data" / "eval"
_ROWS: tuple[tuple[str, Callable[[ReplayRow], str]], ...] = (
    ("prompts", lambda row: str(row.prompts)),
    ("hallucinated without the guard", lambda row: _percent(row.hallucinated_without)),
    ("hallucinated of what is delivered", lambda row: _percent(row.hallucinated_delivered)),
    ("refused", lambda row: _percent(row.refused)),
    ("  where the first answer is hallucinated", lambda row: _percent(row.refused_hallucinated)),
    ("  where the first answer is grounded", lambda row: _percent(row.refused_grounded)),
    ("generator calls per prompt", lambda row: _number(row.attempts_mean, 2)),
    ("scoring per claim, ms", lambda row: _number(row.ms_per_claim, 1)),
)


def bench_replay(arguments: argparse.Namespace) -> int:
    """Replay recorded answers and report.

    Args:
        arguments: What :func:`guardrail.cli.arguments.build_parser` made of the command line.

    Returns:
        The exit status, 0.

    Raises:
        InputError: If the file cannot be used.
    """
    with progress(open_console(no_color=arguments.no_color, stderr=True), "replaying") as advance:
        report = replay(Path(arguments.file), policy=chosen_policy(arguments), limit=arguments.limit, progress=advance)
    if arguments.json:
        print(json.dumps(report.to_json(), ensure_ascii=False, allow_nan=False, indent=2))
    else:
        _print(open_console(no_color=arguments.no_color), report)
    return EXIT_OK


def bench_quality(arguments: argparse.Namespace) -> int:
    """Measure the verifier on labelled answers and report.

    Args:
        arguments: What :func:`guardrail.cli.arguments.build_parser` made of the command line.

    Returns:
        The exit status, 0.

    Raises:
        InputError: If there is no such set, or a file cannot be used.
        ConfigurationError: If a judge is to be simulated and cannot be.
    """
    paths = _find_sets(arguments.sets, arguments.data)
    verifier = Verifier(policy=chosen_policy(arguments))
    error_rate = arguments.judge_error
    simulation = None if error_rate is None else Simulation.of(error_rate, policy=verifier.policy)
    console = open_console(no_color=arguments.no_color, stderr=True)
    sets = {}
    for name, path in paths.items():
        with progress(console, name) as advance:
            sets[name] = measure(
                path, verifier=verifier, limit=arguments.limit, progress=advance, simulation=simulation
            )
    policy = verifier.policy
    report = QualityReport(
        policy=policy.name,
        scorer=verifier.scorer,
        delta=policy.delta,
        detection_delta=verifier.detection_delta,
        sets=sets,
    )
    if arguments.json:
        print(json.dumps(report.to_json(), ensure_ascii=False, allow_nan=False, indent=2))
    else:
        print_quality(open_console(no_color=arguments.no_color), report)
    return EXIT_OK


def _find_sets(names: Sequence[str], data: str | None) -> dict[str, Path]:
    """The files to measure, by name, in the order in which they were asked for."""
    folder = _DATA if data is None else Path(data)
    if data is not None and not folder.is_dir():
        raise InputError(f"--data {data}: there is no such folder")
    inside = sorted(p for p in folder.glob("*") if p.name.endswith(_ENDINGS) and p.is_file())
    if not inside and not names:
        missing = "there are no labelled files beside the repository" if data is None else f"{folder} has no *.jsonl.gz"
        raise InputError(f"{missing}; name a folder of them: --data DIR")
    found: dict[str, Path] = {}
    for path in [_find_set(name, folder, inside) for name in names] if names else inside:
        name = _set_name(path)
        if found.setdefault(name, path).resolve() != path.resolve():
            raise InputError(f"two sets are called {name}: {found[name]} and {path}")
    return found


def _find_set(name: str, folder: Path, inside: Sequence[Path]) -> Path:
    for path in (Path(name), *(folder / f"{name}{ending}" for ending in ("", *_ENDINGS))):
        if path.is_file():
            return path
    there = f"{folder} has {', '.join(map(_set_name, inside))}" if inside else "name its folder with --data DIR"
    raise InputError(f"{name}: there is no such file and no such set; {there}")


def _set_name(path: Path) -> str:
    for ending in _ENDINGS:
        if path.name.endswith(ending):
            return path.name.removesuffix(ending)
    return path.name


def _print(console: Console, report: ReplayReport) -> None:
    columns = {**report.by_task, "overall": report.overall}
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    table.add_column("")
    for task in columns:
        table.add_column(task, justify="right", overflow="fold")
    for name, cell in _ROWS:
        table.add_row(name, *(cell(row) for row in columns.values()))
    console.print(table)
    console.print()
    console.print(f"policy {report.policy} · judged by {describe_judge(report.scorer)}", style="dim")


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.1%}"


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"
