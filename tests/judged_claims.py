"""Small doubles for the tests of the specification."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from guardrail import EntailmentScore, Pair, Passage, Verifier
from guardrail.evaluation.datasets.metrics import Item, ItemInProgress, Measurement, metric
from guardrail.evaluation.judging import Judgement, JudgeVerdict


class Model:
    """An entailment model that knows its hypotheses by heart."""

    model_id = "model"

    def __init__(self, scores: dict[str, float]) -> None:
        self.scores = scores

    async def score(self, pairs: Sequence[Pair]) -> list[EntailmentScore]:
        return [EntailmentScore(entailment=self.scores[pair.hypothesis]) for pair in pairs]


class Scripted:
    """A judge with a verdict, or an error, per hypothesis; YES to all others."""

    judge_id = "scripted"

    def __init__(self, verdicts: dict[str, JudgeVerdict | str]) -> None:
        self.verdicts = verdicts
        self.asked: list[str] = []

    async def judge(self, pairs: Sequence[Pair]) -> list[Judgement]:
        self.asked += [pair.hypothesis for pair in pairs]
        found = [self.verdicts.get(pair.hypothesis, JudgeVerdict.YES) for pair in pairs]
        return [Judgement(verdict=v) if isinstance(v, JudgeVerdict) else Judgement(error=v) for v in found]


async def measured(name: str, answer: str, passages: Sequence[Passage], **settings: Any) -> Measurement:
    """What a metric says about an answer."""
    verifier = Verifier()
    item = Item(id="1", context=tuple(passages), answer=answer)
    return await metric(name, verifier=verifier, **settings).measure(ItemInProgress(item, verifier=verifier))
