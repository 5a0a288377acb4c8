"""How often the drift alarm is false, and how soon it is right.

Usage::

    python -m tests.benchmarks.drift [--data FILE] [--cache FILE] [--draws 500]

Labelled answers are split at random. One half is calibrated, live answers are drawn from the other: with the same share
of hallucinated answers (every alarm is false), or with more of them, as if the generator had become worse. It prints in
how many draws the alarm is at least a warning, and how often critical. ``--cache`` is that of
:mod:`tests.benchmarks.conformal`.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from guardrail.evaluation.alarms import AlarmLevel
from guardrail.evaluation.calibration.acceptance import AnswerSignals
from guardrail.evaluation.calibration.drift import CRITICAL_RATE, WARNING_RATE, compare, distribution
from guardrail.policy import Policy, as_policy
from tests.benchmarks.conformal import SHARED, own_weight
from tests.benchmarks.conformal_cache import load

SIZES = (50, 100, 200, 400)
MORE = (0.0, 0.1, 0.2, 0.3)


@dataclass(frozen=True)
class Scored:
    """One answer."""

    score: float
    hallucinated: bool


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=SHARED / "ragtruth_test.jsonl.gz")
    parser.add_argument("--cache", type=Path, default=None)
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--policy", default="balanced")
    arguments = parser.parse_args()
    policy = as_policy(arguments.policy)
    answers = _scored(load(arguments.data, policy, cache=arguments.cache), policy)
    share = sum(a.hallucinated for a in answers) / len(answers)
    print(f"{arguments.data.name}: {len(answers)} answers, {share:.1%} hallucinated; δ {policy.delta:g}")
    print(f"false alarms per look at most {WARNING_RATE:.1%} (warning) and {CRITICAL_RATE:.1%} (critical)")
    print("live hallucinated  " + "".join(f"{n:>6d} live answers" for n in SIZES))
    for more in MORE:
        cells = []
        for n in SIZES:
            found = Counter(
                _look(answers, policy, n, share + more, random.Random(f"{more} {n} {draw}"))
                for draw in range(arguments.draws)
            )
            warned = 1 - found[AlarmLevel.OK] / arguments.draws
            cells.append(f"{warned:10.1%} {found[AlarmLevel.CRITICAL] / arguments.draws:8.1%}")
        print(f"{share + more:17.1%}  {''.join(cells)}")


def _scored(answers: Sequence[AnswerSignals], policy: Policy) -> list[Scored]:
    weight = own_weight(policy)
    scored = ((answer.score(policy, weight), answer.hallucinated) for answer in answers)
    return [Scored(score, hallucinated) for score, hallucinated in scored if score is not None]


def _look(answers: Sequence[Scored], policy: Policy, n: int, share: float, draw: random.Random) -> AlarmLevel:
    shuffled = draw.sample(list(answers), len(answers))
    half = len(shuffled) // 2
    reference = distribution((a.score for a in shuffled[:half]), clip=policy.delta)
    kinds = {kind: [a.score for a in shuffled[half:] if a.hallucinated is kind] for kind in (True, False)}
    live = [draw.choice(kinds[draw.random() < share]) for _ in range(n)]
    return compare(reference, sorted(live)).level


if __name__ == "__main__":
    main()
