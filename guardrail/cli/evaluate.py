"""``guardrail evaluate``: measure the answers of a data set."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from guardrail.cli.inputs import positive
from guardrail.cli.profiles import add_policy_options, chosen_policy
from guardrail.errors import ConfigurationError, InputError

if TYPE_CHECKING:  # numpy and rich are for those who evaluate, not for every command
    from rich.console import Console
    from rich.table import Table

    from guardrail.evaluation.datasets.results import Evaluation, MetricSummary

_DEFAULT_METRICS = "faithfulness,worst_delta_r,accepted"
_DESCRIPTION = """\
Measure the answers of a data set.

FILE is .jsonl, .jsonl.gz, .csv, .csv.gz or .parquet. Each row has
  context     a text, or a list of texts or of objects with id and text; in CSV a list is written as JSON
  answer      or response, claim, actual_output: what is measured; see --answers
  id, question, label (1 fully supported, 0 not)    if there are any
Other names are given with --field, such as --field context=docs. An empty cell of a CSV file is a missing value.

The results go to OUT, one JSON line per item, as soon as they are there. Run the same command again to go on after an
interrupt, or with a higher --limit: the results are the same as those of one run.

With --retry-errors, items with an error that another try can change (the judge could not be reached, scoring failed, a
metric raised an exception) are measured again, and all others are copied. No answer, no context, nothing to check, or a
judge's reply that is no verdict are no such errors. OUT is replaced when all is done; an interrupted retry goes on from
OUT.retry with the same command.

metrics:
{metrics}

Exit status: 0 measured, 1 measured, but a metric has no score at all, 2 wrong usage or input, 130 interrupted."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser of the command line.

    Args:
        commands: What ``add_subparsers`` returned.
    """
    parser = commands.add_parser(
        "evaluate",
        help="measure the answers of a data set",
        description=_DESCRIPTION.format(metrics=_metric_lines()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", metavar="FILE", help="the data set")
    parser.add_argument(
        "--answers", metavar="NAME", help="the field with the answers, or a second file with id and answer per row"
    )
    parser.add_argument(
        "--metrics", default=_DEFAULT_METRICS, metavar="A,B", help=f"see above (default: {_DEFAULT_METRICS})"
    )
    parser.add_argument("--out", required=True, metavar="OUT", help="where the results go, for example results.jsonl")
    parser.add_argument(
        "--field", action="append", default=[], metavar="PART=NAME", help="the field for id, question, context or label"
    )
    add_policy_options(parser)
    parser.add_argument(
        "--judge", metavar="MODULE:NAME", help="for the metric judge: a judge, a callable or a LangChain chat model"
    )
    parser.add_argument(
        "--limit", type=positive, metavar="N", help="measure only the first N items; a higher limit later goes on"
    )
    parser.add_argument("--concurrency", type=positive, default=4, metavar="N", help="items at a time (default: 4)")
    parser.add_argument("--with-text", action="store_true", help="write questions and answers into OUT too")
    again = parser.add_mutually_exclusive_group()
    again.add_argument("--restart", action="store_true", help="begin again although OUT has results")
    again.add_argument(
        "--retry-errors", action="store_true", help="measure again what has an error that another try can change"
    )
    parser.add_argument("--csv", metavar="FILE", help="also write the items as a table")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--no-color", action="store_true", help="no colours (as with NO_COLOR in the environment)")
    parser.set_defaults(command=evaluate_command)


def _metric_lines() -> str:
    from guardrail.evaluation.datasets.metrics import METRICS

    width = max(map(len, METRICS))
    return "\n".join(f"  {name:<{width}}  {said}" for name, said in METRICS.items())


def evaluate_command(arguments: argparse.Namespace) -> int:
    """Evaluate a data set and report.

    Args:
        arguments: What :func:`guardrail.cli.arguments.build_parser` made of the command line.

    Returns:
        The exit status: 0, 1 if a metric has no score at all, 130 after an interrupt.

    Raises:
        GuardrailError: As :func:`guardrail.evaluation.datasets.evaluating.evaluate`.

    Example:
        >>> from guardrail.cli import main
        >>> main(["evaluate", "no-such-file.jsonl", "--out", "results.jsonl"])  # says on standard error what is missing
        2
    """
    from guardrail.cli import EXIT_INTERRUPTED, EXIT_OK, EXIT_REJECTED
    from guardrail.cli.console import open_console
    from guardrail.cli.progress import progress
    from guardrail.evaluation.datasets.evaluating import evaluate
    from guardrail.scoring.verifier import Verifier

    _check_table(arguments)
    console = open_console(no_color=arguments.no_color, stderr=True)
    counted = _Counted()
    try:
        with progress(console, "evaluating") as advance:
            counted.advance = advance
            found = evaluate(
                arguments.file,
                metrics=[name.strip() for name in arguments.metrics.split(",") if name.strip()],
                out=arguments.out,
                verifier=Verifier(policy=chosen_policy(arguments)),
                judge=None if arguments.judge is None else load_object(arguments.judge),
                answers=arguments.answers,
                fields=_fields(arguments.field),
                limit=arguments.limit,
                concurrency=arguments.concurrency,
                with_text=arguments.with_text,
                restart=arguments.restart,
                retry_errors=arguments.retry_errors,
                progress=counted,
            )
    except KeyboardInterrupt:
        print(counted.words(arguments), file=sys.stderr)
        return EXIT_INTERRUPTED
    if arguments.retry_errors:
        print(_retried(found), file=sys.stderr)
    if arguments.csv is not None:
        found.to_csv(Path(arguments.csv))
    if arguments.json:
        print(json.dumps(found.to_json(), ensure_ascii=False, allow_nan=False, indent=2))
    else:
        _print(open_console(no_color=arguments.no_color), found)
    return EXIT_OK if all(summary.n for summary in found.metrics.values()) else EXIT_REJECTED


class _Counted:
    """Passes progress on and remembers it, for what is said after an interrupt."""

    def __init__(self) -> None:
        self.advance: Callable[[int, int], None] | None = None
        self._last: tuple[int, int] | None = None

    def __call__(self, done: int, total: int) -> None:
        self._last = done, total
        if self.advance is not None:
            self.advance(done, total)

    def words(self, arguments: argparse.Namespace) -> str:
        if self._last is None:
            return "guardrail: interrupted before the first item"
        done, total = self._last
        again = "without --restart" if arguments.restart else "again"
        where = "" if arguments.retry_errors else f", which are in {shlex.quote(arguments.out)}"
        return f"guardrail: interrupted after {done} of {total} items{where}; run the same command {again} to go on"


def _retried(found: Evaluation) -> str:
    from guardrail.cli.console import count

    if not found.retried:
        return "guardrail: no item had an error that another try can change; nothing was measured again"
    return f"guardrail: measured {count(found.retried, 'item')} again"


def _fields(given: list[str]) -> Mapping[str, str]:
    fields = {}
    for each in given:
        part, equals, name = each.partition("=")
        if not equals or not part or not name:
            raise ConfigurationError(f"--field {each}: must be PART=NAME, such as --field context=docs")
        fields[part] = name
    return fields


def _check_table(arguments: argparse.Namespace) -> None:
    if arguments.csv is None:
        return
    from guardrail.evaluation.datasets.results_file import same_file

    table = Path(arguments.csv)
    if table.absolute() == Path(arguments.out).absolute():
        raise InputError(f"--csv {table} is the file of --out; name another one")
    for name in (arguments.file, arguments.out, arguments.answers):
        if name is not None and same_file(table, Path(name)):
            raise InputError(f"--csv {table} is the same file as {name}; name another one")


def load_object(name: str) -> Any:
    """Import an object from the user's code; modules in the current folder are found.

    Args:
        name: ``package.module:attribute``, where the attribute may have dots.

    Raises:
        ConfigurationError: If it is not of this form, the module cannot be imported, or has no such attribute.
    """
    module_name, colon, path = name.partition(":")
    if not colon or not module_name or not path:
        raise ConfigurationError(f"--judge {name}: must be MODULE:NAME, such as --judge my_judges:strict")
    here = os.getcwd()
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module_name)
    except Exception as error:  # it is the user's code: whatever it raises when it is imported
        said = f": {error}" if isinstance(error, ImportError) else ""
        raise ConfigurationError(
            f"--judge {name}: importing {module_name} raised {type(error).__name__}{said}"
        ) from error
    for attribute in path.split("."):
        try:
            found = getattr(found, attribute)
        except AttributeError as error:
            raise ConfigurationError(f"--judge {name}: {module_name} has no {path}") from error
    return found


def _print(console: Console, found: Evaluation) -> None:
    from rich.text import Text

    from guardrail.cli.console import MAX_WIDTH, count, describe_judge
    from guardrail.evaluation.datasets.retrying import FINAL

    table = _table(found, left_out=())
    if console.measure(table, options=console.options.update(width=MAX_WIDTH)).maximum > console.width:
        table = _table(found, left_out=("min", "max"))
    console.print(table)
    console.print()
    for name, summary in found.metrics.items():
        if summary.errors:
            reasons = ", ".join(f"{reason} {number}" for reason, number in summary.errors.items())
            line = f"{name}: {count(sum(summary.errors.values()), 'item')} without a score ({reasons})"
            console.print(Text(line, style="yellow"))
    if not FINAL.issuperset(found.errors):
        console.print(Text("some of these errors may be gone with another try: --retry-errors", style="yellow"))
    ranked = [summary for summary in found.metrics.values() if summary.auroc is not None]
    if any(summary.labelled < summary.n for summary in ranked):
        labelled = max(summary.labelled for summary in ranked)
        console.print(Text(f"AUROC over {count(labelled, 'item')} with a score and a label", style="yellow"))
    if found.unused_answers:
        console.print(Text(f"{count(found.unused_answers, 'answer')} without an item of their id", style="yellow"))
    console.print(Text(f"{count(found.items, 'item')} · policy {found.policy}", style="dim"))
    console.print(Text(f"judged by {describe_judge(found.scorer)}", style="dim"))
    console.print(Text(f"per item: {found.out}", style="dim"), soft_wrap=True)


def _table(found: Evaluation, *, left_out: Sequence[str]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    ranked = any(summary.auroc is not None for summary in found.metrics.values())
    figures = {
        name: figure for name, figure in _FIGURES.items() if name not in left_out and (ranked or name != "AUROC")
    }
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    table.add_column("metric", overflow="fold")
    for heading in figures:
        table.add_column(heading, justify="right", no_wrap=True)
    for name, summary in found.metrics.items():
        table.add_row(Text(name), *(figure(summary) for figure in figures.values()))
    return table


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _interval(ends: tuple[float, float] | None) -> str:
    return "–" if ends is None else f"{ends[0]:.3f}–{ends[1]:.3f}"


_FIGURES: Mapping[str, Callable[[MetricSummary], str]] = {
    "n": lambda summary: str(summary.n),
    "mean": lambda summary: _number(summary.mean),
    "95 % CI": lambda summary: _interval(summary.ci95),
    "min": lambda summary: _number(summary.minimum),
    "p10": lambda summary: _number(summary.p10),
    "max": lambda summary: _number(summary.maximum),
    "AUROC": lambda summary: _number(summary.auroc),
}
