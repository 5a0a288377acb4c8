"""``guardrail calibrate``: a threshold with a promise, from answers that people have labelled."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from guardrail.policy import POLICIES

if TYPE_CHECKING:  # rich is for those who calibrate, not for every command
    from rich.console import Console
    from rich.table import Table

    from guardrail.evaluation.calibration import Profile

_DESCRIPTION = """\
Set δ and the lexical weight on answers that people have labelled, with a promise: a hallucinated answer is accepted
with a probability of at most X. The promise holds for any number of answers that is enough for one, and says on what
assumptions.

LABELLED is .jsonl or .jsonl.gz. Each line has context, answer or claim, and label: 1 fully supported, 0 hallucinated.

The profile that --out writes goes into --profile of other commands, or into code:
  Guardrail(policy=Profile.load("profile.json").policy())

Exit status: 0 calibrated, 1 the promise cannot be made (the message says what it would take), 2 wrong usage or
input."""
_WEIGHTS = {
    "fitted": "fitted on {fitting} answers of their own",
    "confirmed": "as without a profile; {fitting} answers of their own had nothing clearly better",
    "model": "as without a profile; too few answers to fit it on some of them",
    "policy": "of the policy",
}
_SHOWN = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3)
_CALIBRATED = frozenset({"balanced", "lenient", "strict"})


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser of the command line.

    Args:
        commands: What ``add_subparsers`` returned.
    """
    parser = commands.add_parser(
        "calibrate",
        help="set the threshold on labelled answers, with a promise",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", metavar="LABELLED", help="the labelled answers")
    parser.add_argument(
        "--target-miss", type=_between(0, 1), required=True, metavar="X", help="such as 0.05: above 0 and below 1"
    )
    parser.add_argument(
        "--confidence",
        type=_between(0.5, 1),
        metavar="X",
        help="such as 0.95: how sure to be of the miss rate of this very calibration; without it the promise is an "
        "average over calibrations",
    )
    parser.add_argument(
        "--max-refusal", type=_between(0, 1, ends=True), metavar="X", help="share of grounded answers to refuse at most"
    )
    parser.add_argument(
        "--policy",
        choices=sorted(_CALIBRATED.intersection(POLICIES)),
        default="balanced",
        help="what everything but the threshold is taken from (default: balanced)",
    )
    parser.add_argument(
        "--no-claims", choices=("refuse", "pass_marked"), help="what happens to answers that assert nothing"
    )
    parser.add_argument(
        "--group", metavar="FIELD", help="field of detail that answers to the same prompt share; one of each is used"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of draw and split (default: 0)")
    parser.add_argument("--name", default="calibrated", metavar="NAME", help="of the policy (default: calibrated)")
    parser.add_argument("--out", metavar="FILE", help="where the profile goes, for example profile.json")
    parser.add_argument("--json", action="store_true", help="print the profile")
    parser.add_argument("--no-color", action="store_true", help="no colours (as with NO_COLOR in the environment)")
    parser.set_defaults(command=calibrate_command)


def _between(low: float, high: float, *, ends: bool = False) -> Callable[[str], float]:
    bounds = f"from {low:g} to {high:g}" if ends else f"above {low:g} and below {high:g}"

    def number(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not (low <= value <= high if ends else low < value < high):
            raise argparse.ArgumentTypeError(f"must be a number {bounds}, not {text!r}")
        return value

    return number


def calibrate_command(arguments: argparse.Namespace) -> int:
    """Calibrate and report.

    Args:
        arguments: What :func:`guardrail.cli.arguments.build_parser` made of the command line.

    Returns:
        The exit status: 0, or 1 if the promise cannot be made.

    Raises:
        GuardrailError: As :func:`guardrail.evaluation.calibration.calibrate`, but for ``CalibrationError``; or if there
            is nowhere to write the profile.
    """
    from guardrail.cli import EXIT_OK, EXIT_REJECTED
    from guardrail.cli.console import open_console
    from guardrail.cli.progress import progress
    from guardrail.errors import CalibrationError
    from guardrail.evaluation.calibration import calibrate

    if arguments.out is not None:
        _check_out(Path(arguments.out))
    changes = {} if arguments.no_claims is None else {"no_claims": arguments.no_claims}
    try:
        with progress(open_console(no_color=arguments.no_color, stderr=True), "scoring") as advance:
            profile = calibrate(
                arguments.file,
                target_miss=arguments.target_miss,
                confidence=arguments.confidence,
                policy=POLICIES[arguments.policy].override(**changes),
                max_refusal=arguments.max_refusal,
                group=arguments.group,
                seed=arguments.seed,
                name=arguments.name,
                progress=advance,
            )
    except CalibrationError as error:
        print(f"guardrail: {error}", file=sys.stderr)
        return EXIT_REJECTED
    if arguments.out is not None:
        profile.save(arguments.out)
    if arguments.json:
        print(json.dumps(profile.to_json(), ensure_ascii=False, allow_nan=False, indent=1))
    else:
        _print(open_console(no_color=arguments.no_color), profile, arguments.out)
    return EXIT_OK


def _check_out(path: Path) -> None:
    """Before minutes of scoring, that the profile can be written afterwards."""
    from guardrail.errors import InputError

    folder = path.resolve().parent
    wrong = (
        (path.is_dir(), "it is a folder"),
        (not folder.is_dir(), f"there is no folder {path.parent}"),
        (not os.access(folder, os.W_OK), f"the folder {path.parent} cannot be written to"),
    )
    if why := next((words for holds, words in wrong if holds), None):
        raise InputError(f"cannot write {path}: {why}")


def _print(console: Console, profile: Profile, out: str | None) -> None:
    from rich.table import Table
    from rich.text import Text

    from guardrail.cli.console import describe_judge

    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for label, text in (
        ("promise", _promise(profile)),
        ("set on", _grounds(profile)),
        ("cost", _cost(profile)),
        ("threshold", f"δ {profile.delta:g} · lexical weight {profile.lexical_weight:g} ({_weight(profile)})"),
        ("judged by", describe_judge(profile.scorer)),
    ):
        table.add_row(label, Text(text))
    console.print(table)
    console.print()
    console.print(Text("Other thresholds, on the same answers; nothing is promised for them", style="dim"))
    console.print(_curve(profile))
    console.print()
    console.print(Text("The promise assumes", style="bold"))
    for assumption in profile.assumptions:
        grid = Table.grid(padding=(0, 1))
        grid.add_column(no_wrap=True)
        grid.add_column(overflow="fold")
        grid.add_row("-", Text(assumption))
        console.print(grid)
    console.print()
    kept = f"Profile {profile.name} is in {out}." if out is not None else "Not kept: --out FILE writes the profile."
    console.print(Text(kept, style="green" if out is not None else "yellow"), soft_wrap=not console.is_terminal)


def _promise(profile: Profile) -> str:
    promise = profile.promise
    most = f"{100 * promise.target_miss:.4g}%"
    if promise.confidence is None:
        return f"a hallucinated answer is accepted with a probability of at most {most}"
    return f"with confidence {100 * promise.confidence:.4g}%, at most {most} of hallucinated answers are accepted"


def _grounds(profile: Profile) -> str:
    promise, data = profile.promise, profile.data
    of = f"of {data.answers} labelled answers"
    if data.groups is not None:
        of += f" in {data.groups} groups by {data.group}"
    return f"{promise.hallucinated} hallucinated answers {of}; {promise.accepted} of them are accepted"


def _cost(profile: Profile) -> str:
    cost = profile.cost
    if cost.share is None or cost.interval is None:
        return "unknown: there are no grounded answers to measure it on"
    low, high = 1 - cost.interval[1], 1 - cost.interval[0]
    return (
        f"{1 - cost.share:.1%} of {cost.grounded} grounded answers are refused (95 % interval of the share: "
        f"{low:.1%} to {high:.1%})"
    )


def _weight(profile: Profile) -> str:
    return _WEIGHTS[profile.weight_source].format(fitting=profile.data.fitting)


def _curve(profile: Profile) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 2, 0, 0), pad_edge=False, show_edge=False)
    for heading in ("δ", "hallucinated accepted", "grounded refused"):
        table.add_column(heading, justify="right")
    shown = {profile.delta}
    for share in _SHOWN:
        shown.add(max((p.delta for p in profile.curve if p.missed <= share), default=profile.delta))
    for point in profile.curve:
        if point.delta in shown:
            refused = "–" if point.released is None else f"{1 - point.released:.1%}"
            style = "bold" if point.delta == profile.delta else None
            table.add_row(f"{point.delta:.4g}", f"{point.missed:.1%}", refused, style=style)
    return table
