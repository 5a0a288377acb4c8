"""``guardrail history``: recorded scores over time, and whether they fell."""

from __future__ import annotations

import argparse
import json
import re
import time
from collections import Counter
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from guardrail.cli.inputs import positive
from guardrail.errors import InputError

if TYPE_CHECKING:  # numpy and rich are for those who look at a history, not for every command
    from collections.abc import Callable

    from rich.console import Console
    from rich.table import Table

    from guardrail.evaluation.alarms import Alarm
    from guardrail.evaluation.calibration.drift import DriftAlarm
    from guardrail.evaluation.history.store import Bucket, History

_DESCRIPTION = """\
Show recorded scores over time, and whether they fell.

FILE is a history that a SamplingObserver writes. The scores of every hour, day or N runs make a bucket; the mean of a
bucket is compared with that of the buckets before it: 5 % lower is a warning, 10 % lower is critical. An hour or day
that is not over, or that --since cuts, is shown and not compared. For metrics of
which a low score is good, such as refused, what is left to 1 is compared. Metrics that leave the range from 0 to 1,
such as answer_score, have no such alarm: compare them with a profile.

Exit status: 0 no alarm, 1 the newest bucket of a metric has an alarm or answers have drifted from the profile,
2 wrong usage or input."""
_STRETCHES = {"hour": 3600, "day": 86_400}
_UNITS = {"m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_AGO = re.compile(r"(\d{1,6})([mhdw])")
_FORMATS = {"day": "%Y-%m-%d", "hour": "%Y-%m-%d %H:%M"}
_LEVEL_STYLES = {"ok": "green", "warning": "bold yellow", "critical": "bold red"}
_ANSWER_SCORE = "answer_score"
_DISPENSABLE = ("min", "max", "sd", "< 0.5", "p10")
_WIDEST = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    bucket: Bucket
    alarm: Alarm | None


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser of the command line.

    Args:
        commands: What ``add_subparsers`` returned.
    """
    parser = commands.add_parser(
        "history",
        help="show recorded scores over time, with alarms",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", metavar="FILE", help="the history")
    parser.add_argument("--metric", metavar="NAME", help="only this metric (default: all)")
    parser.add_argument(
        "--by", type=_stretch, default="day", metavar="BY", help="hour, day (both of UTC), or a number of runs"
    )
    parser.add_argument(
        "--window", type=positive, default=4, metavar="N", help="buckets that the newest is compared with (default: 4)"
    )
    parser.add_argument(
        "--since", type=_moment, metavar="WHEN", help="such as 2026-11-30, 2026-11-30T08:00+01:00, or 36h, 14d ago"
    )
    parser.add_argument("--low-is-good", action="store_true", help="a low score of a metric of your own is good")
    parser.add_argument("--profile", metavar="FILE", help="has answer_score drifted from this profile?")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--no-color", action="store_true", help="no colours (as with NO_COLOR in the environment)")
    parser.set_defaults(command=history_command)


def history_command(arguments: argparse.Namespace) -> int:
    """Show a history.

    Args:
        arguments: What :func:`guardrail.cli.arguments.build_parser` made of the command line.

    Returns:
        The exit status: 0, or 1 if there is an alarm.

    Raises:
        GuardrailError: If the history or the profile cannot be used, or there are no such scores.

    Example:
        >>> from guardrail.cli import main
        >>> main(["history", "no-such-file.sqlite"])  # says on standard error what is missing
        2
    """
    from guardrail.cli import EXIT_OK, EXIT_REJECTED
    from guardrail.cli.console import open_console
    from guardrail.evaluation.alarms import AlarmLevel
    from guardrail.evaluation.history.store import History

    with History(arguments.file, read_only=True) as history:
        rows = {name: _rows(history, name, arguments) for name in _metrics(history, arguments)}
        drift, left_out = (None, None) if arguments.profile is None else _drift(history, arguments)
    if arguments.json:
        print(json.dumps(_as_json(rows, drift, left_out), ensure_ascii=False, allow_nan=False, indent=2))
    else:
        console = open_console(no_color=arguments.no_color)
        for name, own in rows.items():
            _print(console, name, own, arguments.by)
        if left_out is not None:
            _print_drift(console, drift, left_out)
    newest = [next((row.alarm for row in reversed(own) if row.bucket.complete), None) for own in rows.values()]
    levels = [found.level for found in (*newest, drift) if found is not None]
    return EXIT_REJECTED if any(level is not AlarmLevel.OK for level in levels) else EXIT_OK


def _metrics(history: History, arguments: argparse.Namespace) -> list[str]:
    there = list(history.metrics())
    if not there:
        raise InputError(f"the history {arguments.file} has no scores yet")
    if arguments.metric is None:
        chosen = there
    elif arguments.metric in there:
        chosen = [arguments.metric]
    else:
        raise InputError(f"the history {arguments.file} has no metric {arguments.metric!r}; it has {', '.join(there)}")
    found = [name for name in chosen if history.scores(name, since=arguments.since)]
    if not found:
        raise InputError(f"the history {arguments.file} has no scores since then: choose an earlier --since")
    return found


def _rows(history: History, name: str, arguments: argparse.Namespace) -> list[_Row]:
    from guardrail.evaluation.alarms import LOW_IS_GOOD, metric_alarms

    by = arguments.by
    buckets = history.series(
        name,
        every_s=_STRETCHES.get(by),
        every_n=None if by in _STRETCHES else by,
        since=arguments.since,
    )
    means = [own.summary.mean for own in buckets if own.complete and own.summary.mean is not None]
    low = name in LOW_IS_GOOD or (arguments.low_is_good and arguments.metric is not None)
    judged = iter(metric_alarms(means, low_is_good=low, window=arguments.window))
    return [_Row(bucket=own, alarm=next(judged) if own.complete else None) for own in buckets]


def _drift(history: History, arguments: argparse.Namespace) -> tuple[DriftAlarm | None, int]:
    """The alarm, and how many scores are of another policy or model than those of the profile."""
    from guardrail.evaluation.calibration.drift import drift_alarm
    from guardrail.evaluation.calibration.profile import Profile, without_folders

    profile = Profile.load(arguments.profile)
    records = history.records(_ANSWER_SCORE, since=arguments.since)
    if not records:
        raise InputError(f"the history {arguments.file} has no {_ANSWER_SCORE} to compare with a profile")
    wanted = (profile.name, profile.scorer)
    found = Counter((own.policy, without_folders(own.scorer)) for own in records)
    if wanted not in found:
        there = ", ".join(f"policy {policy!r} with {scorer!r}" for policy, scorer in sorted(found))
        raise InputError(
            f"the history {arguments.file} has no {_ANSWER_SCORE} of the profile's policy {profile.name!r} with its "
            f"model {profile.scorer!r}, only of {there}: name the profile of one of these"
        )
    scores = [own.score for own in records if (own.policy, without_folders(own.scorer)) == wanted]
    return drift_alarm(profile, scores), len(records) - len(scores)


def _as_json(rows: dict[str, list[_Row]], drift: DriftAlarm | None, left_out: int | None) -> dict[str, Any]:
    metrics = {
        name: [
            {
                "start": row.bucket.start,
                "end": row.bucket.end,
                "complete": row.bucket.complete,
                **asdict(row.bucket.summary),
                "alarm": None if row.alarm is None else asdict(row.alarm),
            }
            for row in own
        ]
        for name, own in rows.items()
    }
    return {"metrics": metrics, "drift": None if drift is None else asdict(drift), "drift_left_out": left_out}


def _print(console: Console, name: str, rows: list[_Row], by: str | int) -> None:
    columns: dict[str, Callable[[Bucket], float | None]] = {
        "mean": lambda bucket: bucket.summary.mean,
        "sd": lambda bucket: bucket.summary.sd,
        "p10": lambda bucket: bucket.summary.p10,
        "< 0.5": lambda bucket: bucket.summary.below_half,
        "min": lambda bucket: bucket.summary.minimum,
        "max": lambda bucket: bucket.summary.maximum,
    }
    wide = console.options.update(width=_WIDEST)
    table = _table(name, rows, by, columns)
    for less in _DISPENSABLE:  # a figure that is cut in the middle is worse than none
        if console.measure(table, options=wide).maximum <= console.width:
            break
        del columns[less]
        table = _table(name, rows, by, columns)
    console.print(table)
    console.print()


def _table(name: str, rows: list[_Row], by: str | int, columns: dict[str, Callable[[Bucket], float | None]]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    table.add_column(Text(name), overflow="fold")
    for heading in ("n", *columns):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("alarm", no_wrap=True)
    for row in rows:
        begin = datetime.fromtimestamp(row.bucket.start, UTC).strftime(_FORMATS.get(str(by), "%Y-%m-%d %H:%M:%S"))
        figures = (_number(figure(row.bucket)) for figure in columns.values())
        table.add_row(begin, str(row.bucket.summary.n), *figures, _alarm_word(row, newest=row is rows[-1]))
    return table


def _alarm_word(row: _Row, *, newest: bool) -> Any:
    from rich.text import Text

    if row.alarm is None:
        return Text("–" if row.bucket.complete else "filling" if newest else "partial", style="dim")
    level = row.alarm.level.value
    return Text(level if level == "ok" else f"{level} −{row.alarm.fall:.1%}", style=_LEVEL_STYLES[level])


def _print_drift(console: Console, drift: DriftAlarm | None, left_out: int) -> None:
    from rich.text import Text

    if drift is None:
        console.print(Text("drift from the profile: too few answers to tell", style="dim"))
    else:
        said = f"drift from the profile: {drift.level.value} (distance {drift.statistic:.3f}, warning from "
        told = Text(f"{said}{drift.threshold:.3f} on, {drift.n} answers)", style=_LEVEL_STYLES[drift.level.value])
        console.print(told)
    if left_out:
        console.print(Text(f"left out: {left_out} answers of other policies or models", style="dim"))


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _stretch(text: str) -> str | int:
    if text in _STRETCHES:
        return text
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be hour, day or a whole number of at least 1, not {text!r}")
    return int(text)


def _moment(text: str) -> float:
    ago = _AGO.fullmatch(text)
    if ago:
        return time.time() - int(ago[1]) * _UNITS[ago[2]]
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"must be a date, a time, or a span such as 36h or 14d, not {text!r}"
        ) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
