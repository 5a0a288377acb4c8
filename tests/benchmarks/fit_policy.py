"""Fits δ and the lexical weight on labelled answers that are not the test.

Usage::

    python -m tests.benchmarks.fit_policy [--train FILE ...] [--limit N]

For each weight it prints the AUROC of the worst-claim ΔR, and for several aims the δ that meets them on the training
answers with what that δ does. Nothing is written: a person decides and puts the values into ``guardrail/policy.py``.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
from collections.abc import Sequence
from pathlib import Path

from guardrail.context import as_passages
from guardrail.evaluation.benchmarks.quality import answer_score
from guardrail.evaluation.figures import Confusion, auroc
from guardrail.evaluation.labelled import LabelledAnswer, read_answers
from guardrail.scoring.delta_r import WindowSignals, judge
from guardrail.scoring.evidence import EvidenceIndex
from guardrail.scoring.verifier import Verifier
from guardrail.text.segmenter import segment
from guardrail.types import VerdictLabel

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "train"
TRAIN = ("ragtruth_qa_train_4models.jsonl.gz", "ragtruth_extra_train_summary_qa.jsonl.gz")
WEIGHTS = (0.0, 0.125, 0.25, 0.5, 0.75, 1.0)

Answer = tuple[bool, list[list[WindowSignals]]]


async def collect(rows: Sequence[LabelledAnswer]) -> list[Answer]:
    """The signals of every claim of every answer; independent of δ and the weight."""
    verifier = Verifier()
    collected: list[Answer] = []
    for row in rows:
        passages, state = as_passages(row.context)
        index = await EvidenceIndex.build(passages)
        found = await verifier.signals(segment(row.answer), index, state=state, question=row.question)
        collected.append((row.grounded, [[own for _, own in windows] for windows in found if windows]))
    return collected


def score(claims: list[list[WindowSignals]], weight: float) -> float:
    """Where an answer stands in the order in which answers are stopped; see :func:`answer_score`."""
    judged = (judge(windows, delta=1.0, lexical_weight=weight) for windows in claims)
    return answer_score((label is VerdictLabel.CONTRADICTED, ground.delta_r(weight)) for label, ground in judged)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", nargs="*", type=Path, default=[SHARED / name for name in TRAIN])
    parser.add_argument("--limit", type=int, default=None)
    arguments = parser.parse_args()
    rows = [row for path in arguments.train for row in itertools.islice(read_answers(path), arguments.limit)]
    answers = asyncio.run(collect(rows))
    bad = [not grounded for grounded, _ in answers]
    if len(set(bad)) < 2:
        parser.error("thresholds need answers of both kinds, hallucinated and grounded")
    print(f"{len(answers)} answers, {sum(bad)} hallucinated")
    print("weight auroc  aim                  delta    f1  grounded_released  hallucinated_stopped")
    grid = [i / 200 for i in range(200)]
    for weight in WEIGHTS:
        scores = [score(claims, weight) for _, claims in answers]
        table = {delta: Confusion.of([s > delta for s in scores], bad) for delta in grid}
        aims = {"best f1": max(grid, key=lambda d: table[d].f1)}
        for share in (0.9, 0.8, 0.7):
            aims[f"{share:.0%} released"] = next((d for d in grid if table[d].specificity >= share), grid[-1])
        aims["95% stopped"] = max((d for d in grid if table[d].recall >= 0.95), default=0.0)
        for aim, delta in aims.items():
            found = table[delta]
            row = f"{delta:.3f} {found.f1:.3f} {found.specificity:18.3f} {found.recall:21.3f}"
            print(f"{weight:6.3f} {auroc(scores, bad):.3f}  {aim:20s} {row}")


if __name__ == "__main__":
    main()
