"""Draws what δ means: the share of grounded answers released and of hallucinated answers stopped, per task.

Usage::

    python -m tests.benchmarks.curves FILE --out docs/delta.svg [--policy balanced]

FILE holds labelled answers with ``detail.task_type``. Every answer is scored once; the curves follow from its worst
claim. Needs matplotlib, which is not installed with the project: ``pip install matplotlib``.
"""

from __future__ import annotations

import argparse
import asyncio
from collections import defaultdict
from pathlib import Path

from guardrail.evaluation.benchmarks.quality import answer_score, vetoed
from guardrail.evaluation.labelled import read_answers
from guardrail.policy import POLICIES
from guardrail.scoring.verifier import Verifier

Scores = dict[str, tuple[list[float], list[float]]]
COLOURS = ("#1f6feb", "#d1242f", "#1a7f37", "#8250df")


async def collect(path: Path, verifier: Verifier) -> Scores:
    """Scores of the grounded and of the hallucinated answers, per task."""
    found: Scores = defaultdict(lambda: ([], []))
    for row in read_answers(path):
        result = await verifier.verify(row.answer, row.context, question=row.question or None)
        claims = [(vetoed(c, result.delta), c.delta_r) for c in result.claims if c.delta_r is not None]
        found[str(row.detail.get("task_type", "all"))][not row.grounded].append(answer_score(claims))
    return dict(sorted(found.items()))


def share_below(scores: list[float], delta: float) -> float:
    """Share of the answers whose worst claim passes at a δ."""
    return sum(score <= delta for score in scores) / len(scores)


def draw(scores: Scores, out: Path) -> None:
    """One panel per kind of answer, one line per task, the shipped policies as marks on the axis."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "delta"  # the same figures give the same file
    import matplotlib.pyplot as plt

    grid = [i / 200 for i in range(201)]
    figure, panels = plt.subplots(1, 2, figsize=(9.5, 3.6), sharey=True, layout="constrained")
    titles = ("grounded answers released", "hallucinated answers stopped")
    for kind, (panel, title) in enumerate(zip(panels, titles, strict=True)):
        for colour, (task, both) in zip(COLOURS, scores.items(), strict=False):
            shares = [share_below(both[kind], delta) for delta in grid]
            values = shares if kind == 0 else [1 - share for share in shares]
            panel.plot(
                grid, [100 * v for v in values], color=colour, label=f"{task} ({len(both[kind])})", linewidth=1.8
            )
        for name in ("strict", "balanced", "lenient"):
            delta = POLICIES[name].delta
            panel.axvline(delta, color="#57606a", linewidth=0.8, linestyle=":")
            panel.annotate(name, (delta, 101), rotation=90, fontsize=7, color="#57606a", ha="right", va="top")
        panel.set(title=title, xlabel="δ", xlim=(0, 1), ylim=(0, 101))
        panel.grid(alpha=0.25)
        panel.legend(fontsize=8, loc="center left")
    panels[0].set_ylabel("%")
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, metadata={"Date": None})


def main() -> None:
    """Score, draw, print the values at the policies."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--policy", default="balanced", choices=sorted(POLICIES))
    arguments = parser.parse_args()
    scores = asyncio.run(collect(arguments.file, Verifier(policy=arguments.policy)))
    draw(scores, arguments.out)
    for name in ("strict", "balanced", "lenient"):
        delta = POLICIES[name].delta
        for task, (grounded, hallucinated) in scores.items():
            released, stopped = share_below(grounded, delta), 1 - share_below(hallucinated, delta)
            print(f"δ {delta:.3f} ({name}) {task}: released {released:.1%}, stopped {stopped:.1%}")


if __name__ == "__main__":
    main()
