"""Where the command writes, and the few marks that all its output shares."""

from __future__ import annotations

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from guardrail.types import VerdictLabel

MAX_WIDTH = 120
LEXICAL = "lexical"
_LABEL_COLUMNS = 9

VERDICT_STYLES = {
    VerdictLabel.SUPPORTED: "green",
    VerdictLabel.CONTRADICTED: "bold red",
    VerdictLabel.UNVERIFIABLE: "bold yellow",
    VerdictLabel.CONFLICT: "bold magenta",
}


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # the command decides about the exit status, not the console


def open_console(*, no_color: bool = False, stderr: bool = False) -> Console:
    """A console that is at most :data:`MAX_WIDTH` columns wide.

    Args:
        no_color: Whether to leave out colours; the environment variable ``NO_COLOR`` does the same.
        stderr: Whether to write to standard error.
    """
    console = _Console(no_color=True if no_color else None, stderr=stderr, highlight=False)
    console.width = min(console.width, MAX_WIDTH)
    return console


def describe_judge(scorer: str) -> str:
    """Say what judged the claims.

    Args:
        scorer: ``model_id`` of the entailment model.
    """
    if scorer == LEXICAL:
        return "word overlap and comparison of values (scorer “lexical”); no entailment model judged"
    return f"entailment model {scorer}, and comparison of values"


def score(value: float | None) -> str:
    """A score with two decimals, or a dash."""
    return "–" if value is None else f"{value:.2f}"


def count(number: int, noun: str) -> str:
    """A number with its noun, in the plural where it should be."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def labelled(label: str | Text, body: RenderableType) -> Table:
    """One row of running output: a label at the left, what belongs to it beside it."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(width=_LABEL_COLUMNS, justify="right", no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(label, body)
    return grid


def marked(mark: str | Text, *lines: str | Text) -> Table:
    """Lines that hang from a mark: a tick, a cross, a passage id."""
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for position, line in enumerate(lines):
        grid.add_row("" if position else mark, line)
    return grid
