"""The progress bar that all commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text


@contextmanager
def progress(console: Console, label: str) -> Iterator[Callable[[int, int], None] | None]:
    """A bar with the number of items, their rate and the time that is left.

    What the first call reports as done, such as the items of an earlier run, counts as done but not for the rate.

    Args:
        console: Where the bar goes; standard error, so that it can be told from results.
        label: What is going on.

    Yields:
        A function that takes (items done, items in all); ``None`` if the console is not a terminal.
    """
    if not console.is_terminal:
        yield None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        _RateColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(label, total=None)

        def advance(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield advance


class _RateColumn(ProgressColumn):
    def render(self, task: Task) -> Text:
        """Items per second, once there are two reports to tell it from."""
        return Text("" if task.speed is None else f"{task.speed:.3g}/s", style="dim")
