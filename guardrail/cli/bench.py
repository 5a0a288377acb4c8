"""``guardrail bench``: front ends of the benchmarks in :mod:`guardrail.evaluation`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from guardrail.cli import EXIT_OK
from guardrail.cli.console import describe_judge, open_console
from guardrail.evaluation.replay import ReplayReport, ReplayRow, replay

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
    with _progress(open_console(no_color=arguments.no_color, stderr=True)) as advance:
        report = replay(Path(arguments.file), policy=arguments.policy, limit=arguments.limit, progress=advance)
    if arguments.json:
        print(json.dumps(report.to_json(), ensure_ascii=False, allow_nan=False, indent=2))
    else:
        _print(open_console(no_color=arguments.no_color), report)
    return EXIT_OK


@contextmanager
def _progress(console: Console) -> Iterator[Callable[[int, int], None] | None]:
    """A bar on standard error; nothing when that is not a terminal."""
    if not console.is_terminal:
        yield None
        return
    columns = (TextColumn("replaying"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("replaying", total=None)

        def advance(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield advance


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
