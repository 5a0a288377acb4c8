"""A small data set with every kind of item, and metrics that cost nothing."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field

from guardrail import Verifier
from guardrail.errors import ScoringError
from guardrail.evaluation.datasets.evaluating import evaluate
from guardrail.evaluation.datasets.metrics import Measurement
from guardrail.testing import FakeEntailment

SUPPORTED = "The desk opens at ten."
ROWS = [
    {"id": "yes", "context": ["The desk opens at ten."], "answer": SUPPORTED, "label": 1},
    {"id": "no", "context": ["The desk opens at ten."], "answer": "Dogs are welcome on the terrace.", "label": 0},
    {"id": "none", "context": ["The desk opens at ten."], "answer": None, "label": 1},
    {"id": "bare", "context": [], "answer": SUPPORTED},
    {"id": "empty", "context": ["The desk opens at ten."], "answer": ""},
    {"id": "ü“", "question": "When?", "context": ["The desk opens at ten.", "Or not."], "answer": SUPPORTED},
]
METRICS = ["faithfulness", "worst_delta_r", "accepted", "contradicted", "rouge_l"]


def fake(failing=None):
    def score(premise, hypothesis):
        if failing is not None and failing in hypothesis:
            raise ScoringError("it failed")
        return 0.95 if hypothesis.rstrip(".") in premise else 0.05

    return Verifier(entailment=FakeEntailment(score))


def save(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@dataclass
class Counting:
    """Scores the length of the answer; remembers what it was asked and how many at a time."""

    name: str = "length"
    higher_is_better: bool = True
    turns: int = 0
    asked: list[str] = field(default_factory=list)
    now: int = 0
    most: int = 0
    ended: int = 0
    settings: dict = field(default_factory=dict)

    async def measure(self, item):
        self.asked.append(item.item.id)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            for _ in range(self.turns * (1 + len(self.asked) % 3)):
                await asyncio.sleep(0)
            return Measurement(score=len(item.item.answer))
        finally:
            self.now -= 1
            self.ended += 1


def run_all(data, out, **options):
    settings = {"metrics": METRICS, "verifier": fake("Dogs"), **options}
    return evaluate(data, out=out, **settings).to_json()
