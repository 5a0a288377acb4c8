"""Fits the calibration of an entailment model, δ and the lexical weight on labelled answers that are not the test.

Usage::

    python -m tests.benchmarks.fit_calibration [--model DIR] [--class-share A] [--weight W] [--write]

The answers are those that the recipe of the embedded model holds out: every tenth source of the RAGTruth *train* split
and every eighth of the answers that were written for training, which are of the kinds that the former lack. It prints
how well the signals order answers, alone and fused, and what each δ would do. Every kind of answer weighs the same.
With ``--write`` the calibration and the detection threshold go into the model's ``config.json``: the threshold is where
balanced accuracy is best, averaged over its neighbours, as the peak over a few hundred answers is chance.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import math
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from guardrail.context import as_passages
from guardrail.evaluation.benchmarks.quality import answer_score
from guardrail.evaluation.figures import Confusion, auroc
from guardrail.evaluation.labelled import LabelledAnswer, read_answers
from guardrail.protocols import Pair
from guardrail.scoring.delta_r import WindowSignals, judge
from guardrail.scoring.entailment.calibration import CONFIG_KEY, Calibration
from guardrail.scoring.entailment.onnx import OnnxEntailment, embedded_model_dir
from guardrail.scoring.evidence import EvidenceIndex
from guardrail.scoring.verifier import Verifier
from guardrail.text.segmenter import segment
from guardrail.types import EntailmentScore, VerdictLabel

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "data" / "train"
TRAIN = ("ragtruth_qa_train_4models.jsonl.gz", "ragtruth_extra_train_summary_qa.jsonl.gz")
WRITTEN = ("written_records.jsonl.gz", "written_articles.jsonl.gz", "written_documents.jsonl.gz")
DATA = [*(SHARED / name for name in TRAIN), *(ROOT / "training_data" / name for name in WRITTEN)]
WEIGHTS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5)
HELD_OUT_OF, WRITTEN_HELD_OUT_OF = 10, 8
GRID = [i / 200 for i in range(201)]
NEAR = 0.05  # thresholds that a balanced accuracy is averaged over


@dataclass(frozen=True)
class Claim:
    """A claim of an answer: its windows, the raw scores of the model for those it was asked about, and whether people
    marked it.
    """

    windows: list[WindowSignals]
    scores: list[EntailmentScore | None]
    marked: bool


@dataclass(frozen=True)
class Answer:
    """An answer in signals that depend neither on δ nor on the weight nor on the calibration."""

    hallucinated: bool
    task: str
    claims: list[Claim]


class Recorder:
    """Passes pairs to a model and keeps what it said."""

    model_id = "recorder"

    def __init__(self, model: OnnxEntailment) -> None:
        self.model = model
        self.last: list[EntailmentScore] = []

    async def score(self, pairs: Sequence[Pair]) -> list[EntailmentScore]:
        """Score pairs."""
        self.last = await self.model.score(pairs)
        return self.last


def held_out(row: LabelledAnswer) -> bool:
    """Whether the recipe of the embedded model leaves an answer out."""
    source = str(row.detail["source_id"])
    return zlib.crc32(source.encode()) % (HELD_OUT_OF if source.isdecimal() else WRITTEN_HELD_OUT_OF) == 0


async def collect(rows: Sequence[LabelledAnswer], model: OnnxEntailment) -> list[Answer]:
    """The signals of every claim of every answer."""
    recorder = Recorder(model)
    verifier = Verifier(entailment=recorder)
    collected = []
    for row in rows:
        passages, state = as_passages(list(row.context))
        index = await EvidenceIndex.build(passages)
        segments = segment(row.answer)
        found = await verifier.signals(segments, index, state=state, question=row.question)
        scores = iter(recorder.last)
        spans = [(int(s["start"]), int(s["end"])) for s in row.detail.get("spans") or ()]
        claims = [
            Claim(
                windows=[own for _, own in windows],
                scores=[next(scores) if own.contradiction is not None else None for _, own in windows],
                marked=any(start < piece.end and piece.start < end for start, end in spans),
            )
            for piece, windows in zip(segments, found, strict=True)
            if windows
        ]
        collected.append(Answer(not row.grounded, str(row.detail.get("task_type", "")), claims))
    return collected


def fused(claim: Claim, calibration: Calibration) -> list[WindowSignals]:
    """The windows of a claim with the calibrated entailment."""
    applied = [None if s is None else calibration.apply(s.entailment, s.unsupported) for s in claim.scores]
    return [
        replace(
            window,
            entailment=applied[0] if value is None else value,
            missing_log_odds=calibration.missing_value,
        )
        for window, value in zip(claim.windows, applied, strict=True)
    ]


def rank(answer: Answer, calibration: Calibration, weight: float) -> float:
    """Where an answer stands in the order in which answers are stopped."""
    scores = []
    for claim in answer.claims:
        label, ground = judge(fused(claim, calibration), delta=1.0, lexical_weight=weight)
        scores.append((label is VerdictLabel.CONTRADICTED, ground.delta_r(weight)))  # at δ = 1 only what is vetoed
    return answer_score(scores)


def fit_on_claims(answers: Sequence[Answer], *, class_share: float) -> Calibration:
    """Logistic regression of "nobody marked the claim" on the sum of both logits, by Newton's method.

    Args:
        answers: Labelled answers.
        class_share: Weight of the class beside that of the words, which is 1. It is not fitted: on these answers the
            class adds nothing to the words, on claims of other kinds (contracts, single facts) it is the better half.
    """
    claims = [(c.scores[0], c.marked, a.task) for a in answers for c in a.claims]
    x = np.array([[1.0, class_share * _logit(s.entailment) - _logit(s.unsupported or 0.5)] for s, *_ in claims if s])
    y = np.array([not marked for s, marked, _ in claims if s], dtype=float)
    tasks = Counter(task for s, _, task in claims if s)
    w = np.array([1 / tasks[task] for s, _, task in claims if s])
    beta = np.zeros(2)
    for _ in range(50):
        p = 1 / (1 + np.exp(-x @ beta))
        hessian = (x * (w * p * (1 - p))[:, None]).T @ x + 1e-9 * np.eye(2)
        beta += np.linalg.solve(hessian, x.T @ (w * (y - p)))
    return Calibration(bias=float(beta[0]), entailment=class_share * float(beta[1]), unsupported=float(beta[1]))


def _logit(p: float) -> float:
    p = min(1 - 1e-6, max(1e-6, p))
    return math.log(p / (1 - p))


def by_task(answers: Sequence[Answer], scores: Sequence[float], delta: float) -> list[Confusion]:
    """What a threshold does, per kind of answer."""
    return [
        Confusion.of(
            [score > delta for a, score in zip(answers, scores, strict=True) if a.task == task],
            [a.hallucinated for a in answers if a.task == task],
        )
        for task in sorted({a.task for a in answers})
    ]


def balanced(answers: Sequence[Answer], scores: Sequence[float]) -> dict[float, float]:
    """Per threshold the balanced accuracy, as a mean over kinds of answers and over the thresholds near it."""
    exact = {d: _mean([c.balanced_accuracy or 0 for c in by_task(answers, scores, d)]) for d in GRID}
    return {d: _mean([exact[near] for near in GRID if abs(near - d) <= NEAR]) for d in GRID}


def _mean(numbers: Sequence[float]) -> float:
    return sum(numbers) / len(numbers)


def _row(answers: Sequence[Answer], scores: Sequence[float], delta: float) -> str:
    cells = []
    for task in ("", *sorted({a.task for a in answers})):
        own = [i for i, a in enumerate(answers) if not task or a.task == task]
        found = Confusion.of([scores[i] > delta for i in own], [answers[i].hallucinated for i in own])
        f1, released, stopped = found.f1 or 0, found.specificity or 0, found.recall or 0
        cells.append(f"{task or 'all'}: F1 {f1:.3f} released {released:.3f} stopped {stopped:.3f}")
    return " | ".join(cells)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=embedded_model_dir())
    parser.add_argument("--train", nargs="*", type=Path, default=DATA)
    parser.add_argument("--limit", type=int, default=None)
    parser.add_argument("--weight", type=float, default=0.05)
    parser.add_argument("--missing-value", type=float, default=2.0)
    parser.add_argument("--class-share", type=float, default=1.0)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    if arguments.model is None:
        parser.error("there is no embedded model; name one with --model DIR")
    rows = [row for path in arguments.train for row in read_answers(path) if held_out(row)][: arguments.limit]
    answers = asyncio.run(collect(rows, _without_calibration(arguments.model)))
    bad = [a.hallucinated for a in answers]
    print(f"{len(answers)} answers, {sum(bad)} hallucinated, {sum(len(a.claims) for a in answers)} claims")
    calibration = replace(
        fit_on_claims(answers, class_share=arguments.class_share),
        missing_value=arguments.missing_value,
        lexical_weight=arguments.weight,
    )
    print(calibration)
    variants = {
        "class": Calibration(bias=0, entailment=1),
        "words": Calibration(bias=0, entailment=0, unsupported=1),
        "fused": calibration,
    }
    for weight in WEIGHTS:
        orders = {name: auroc([rank(a, v, weight) for a in answers], bad) for name, v in variants.items()}
        print(f"weight {weight:4.2f} AUROC " + " ".join(f"{name} {value:.4f}" for name, value in orders.items()))
    scores = [rank(a, calibration, arguments.weight) for a in answers]
    table = balanced(answers, scores)
    aims = {"detection": max(table, key=table.__getitem__)}
    released = {d: _mean([c.specificity or 0 for c in by_task(answers, scores, d)]) for d in GRID}
    for share in (0.97, 0.95, 0.93, 0.9, 0.85, 0.8, 0.7):
        aims[f"{share:.0%} released"] = next((d for d in GRID if released[d] >= share), 1.0)
    for aim, delta in aims.items():
        print(f"{aim:13s} δ {delta:.3f}  {_row(answers, scores, delta)}")
    if arguments.write:
        _write(arguments.model, calibration, aims["detection"])


def _without_calibration(directory: Path) -> OnnxEntailment:
    import tempfile

    bare = Path(tempfile.mkdtemp()) / directory.name
    bare.mkdir()
    config = json.loads((directory / "config.json").read_text())
    config.pop(CONFIG_KEY, None)
    (bare / "config.json").write_text(json.dumps(config))
    for name in ("model.onnx", "tokenizer.json"):
        (bare / name).symlink_to((directory / name).resolve())
    return OnnxEntailment(bare)


def _write(directory: Path, calibration: Calibration, detection_delta: float) -> None:
    config = json.loads((directory / "config.json").read_text())
    config[CONFIG_KEY] = {name: round(value, 4) for name, value in asdict(calibration).items()}
    config["guardrail_detection_delta"] = detection_delta
    (directory / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    sums = json.loads((directory / "checksums.json").read_text())
    sums["config.json"] = hashlib.sha256((directory / "config.json").read_bytes()).hexdigest()
    (directory / "checksums.json").write_text(json.dumps(sums, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
