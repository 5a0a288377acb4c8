"""What the command line takes."""

from __future__ import annotations

import argparse
from typing import get_args

from guardrail._version import __version__
from guardrail.cli.calibrate import add_parser as add_calibrate
from guardrail.cli.evaluate import add_parser as add_evaluate
from guardrail.cli.history import add_parser as add_history
from guardrail.cli.inputs import positive
from guardrail.cli.profiles import add_policy_options
from guardrail.policy import Formula

_DESCRIPTION = "Check every claim of a language model's answer against the retrieved passages."
_CHECK = """\
Check one answer against passages.

A context FILE is one passage, named like the file. A FILE that ends in .jsonl holds one passage per line:
{"id": "p1", "text": "..."} or a plain JSON string.

Exit status: 0 accepted, 1 rejected, 2 wrong usage or input."""
_REPLAY = """\
Replay recorded answers through the guard.

FILE holds prompts with several answers each, labelled as grounded or hallucinated; each answer takes the place of
one attempt of a model. The report says what readers would have seen without the guard, and what they see with it."""
_QUALITY = """\
Measure the verifier on answers that people have labelled.

SET is the name of a file of DIR without its ending, or a path; without SET, all of DIR are measured. Each line of such
a file (.jsonl.gz or .jsonl) has context, answer or claim, and label: 1 fully supported, 0 hallucinated. Hallucinated
is the positive class; an answer is stopped if the policy does not accept it.

Below each set stand what the best threshold would have given (chosen on the set itself: an upper bound), what a cascade
would do if --judge-error is given, and figures that others have published on it, with their sources."""

_TRAIN = """\
Adapt the entailment model to data of your own.

PAIRS are files of JSON lines (.jsonl or .jsonl.gz). The first row of a file says what it holds:
  premise, hypothesis, label    label: entailment, neutral, contradiction or not_entailment
  context, answer, label        label: 1 fully supported, 0 not; detail.spans marks what is unsupported
Some pairs are held out by premise, and the model is measured on them before and after.

OUT gets onnx/ for the guard, torch/ for torch, and README.md with data, settings and figures. Run the same command
again to go on after an interrupt.

With --recipe embedded the model that ships with the package is trained from the data that --data names."""


def build_parser() -> argparse.ArgumentParser:
    """The parser; ``command`` of what it returns is the function to call."""
    parser = argparse.ArgumentParser(prog="guardrail", description=_DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"guardrail {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_demo(commands)
    _add_check(commands)
    _add_bench(commands)
    add_evaluate(commands)
    add_calibrate(commands)
    add_history(commands)
    _add_train(commands)
    return parser


def _add_demo(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    demo = commands.add_parser(
        "demo",
        help="watch a scripted model be checked, held and regenerated",
        description="Watch a scripted model answer: what passes is released, what fails is held and regenerated.",
    )
    demo.add_argument("--no-color", action="store_true", help="no colours (as with NO_COLOR in the environment)")
    demo.add_argument("--fast", action="store_true", help="do not type at human speed")
    demo.set_defaults(command=_demo)


def _add_check(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    check = commands.add_parser(
        "check",
        help="check one answer against passages",
        description=_CHECK,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    check.add_argument("--answer", required=True, metavar="FILE", help="the answer, UTF-8; - reads standard input")
    check.add_argument(
        "--context", required=True, nargs="+", action="extend", metavar="FILE", help="the passages, best first"
    )
    check.add_argument("--question", metavar="TEXT", help="what the user asked")
    which = check.add_mutually_exclusive_group()
    add_policy_options(which, default=None)
    which.add_argument("--strict", action="store_true", help="the same as --policy strict")
    check.add_argument(
        "--formula",
        choices=get_args(Formula),
        help="evidence scores each claim; reference scores the whole answer, for comparison only",
    )
    check.add_argument("--delta", type=float, metavar="X", help="acceptance threshold for ΔR, from 0 to 1")
    check.add_argument("--json", action="store_true", help="print one JSON object")
    check.add_argument("--no-color", action="store_true", help="no colours (as with NO_COLOR in the environment)")
    check.set_defaults(command=_check)


def _add_bench(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    bench = commands.add_parser("bench", help="measure the guard on recorded answers")
    kinds = bench.add_subparsers(title="benchmarks", metavar="BENCHMARK", required=True)
    replay = kinds.add_parser(
        "replay",
        help="replay recorded answers through the guard",
        description=_REPLAY,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    replay.add_argument("file", metavar="FILE", help="JSON lines, may be gzipped")
    add_policy_options(replay)
    replay.add_argument("--limit", type=positive, metavar="N", help="replay only the first N prompts")
    replay.add_argument("--json", action="store_true", help="print one JSON object")
    replay.add_argument("--no-color", action="store_true", help="no colours (as with NO_COLOR in the environment)")
    replay.set_defaults(command=_replay)
    _add_quality(kinds)


def _add_quality(kinds: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    quality = kinds.add_parser(
        "quality",
        help="measure the verifier on labelled answers",
        description=_QUALITY,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    quality.add_argument("sets", nargs="*", metavar="SET", help="what to measure; default: every file of DIR")
    quality.add_argument(
        "--data", metavar="DIR", help="the labelled files; default: shared/data/eval beside the repository"
    )
    add_policy_options(quality)
    quality.add_argument("--limit", type=positive, metavar="N", help="measure only the first N answers of each set")
    quality.add_argument(
        "--judge-error",
        type=float,
        metavar="E",
        help="also measure a cascade with a judge that knows the labels and errs with probability E, from 0 to 1",
    )
    quality.add_argument("--json", action="store_true", help="print one JSON object, with confidence intervals")
    quality.add_argument("--no-color", action="store_true", help="no colours (as with NO_COLOR in the environment)")
    quality.set_defaults(command=_quality)


def _add_train(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    train = commands.add_parser(
        "train",
        help="adapt the entailment model to data of your own",
        description=_TRAIN,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    train.add_argument("pairs", nargs="*", metavar="PAIRS", help="pairs or labelled answers")
    train.add_argument("--out", required=True, metavar="DIR", help="where the trained model goes")
    train.add_argument("--base", metavar="DIR", help="the model to begin with; default: the embedded model")
    train.add_argument("--epochs", type=positive, metavar="N", help="passes over the pairs (default: 2)")
    train.add_argument("--learning-rate", type=float, metavar="X", help="at its highest (default: 5e-5)")
    train.add_argument("--max-tokens", type=positive, metavar="N", help="longest pair in tokens (default: 256)")
    train.add_argument("--seed", type=int, metavar="N", help="of split, order and dropout (default: 7)")
    train.add_argument("--hold-out", type=float, metavar="SHARE", help="of the pairs, for validation (default: 0.1)")
    train.add_argument(
        "--languages", type=_codes, metavar="CODES", help="such as en,it; default: those of the base, or en"
    )
    train.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="default: cpu")
    train.add_argument("--recipe", choices=("embedded",), help="train the embedded model itself")
    train.add_argument("--data", metavar="DIR", help="the data of the recipe")
    train.add_argument("--json", action="store_true", help="print one JSON object")
    train.add_argument("--no-color", action="store_true", help="no colours (as with NO_COLOR in the environment)")
    train.set_defaults(command=_train)


def _codes(text: str) -> tuple[str, ...]:
    return tuple(code.strip() for code in text.split(","))


def _demo(arguments: argparse.Namespace) -> int:
    from guardrail.cli.demo import demo

    return demo(no_color=arguments.no_color, fast=arguments.fast)


def _check(arguments: argparse.Namespace) -> int:
    from guardrail.cli.check import check

    return check(arguments)


def _replay(arguments: argparse.Namespace) -> int:
    from guardrail.cli.bench import bench_replay

    return bench_replay(arguments)


def _quality(arguments: argparse.Namespace) -> int:
    from guardrail.cli.bench import bench_quality

    return bench_quality(arguments)


def _train(arguments: argparse.Namespace) -> int:
    from guardrail.cli.train import train

    return train(arguments)
