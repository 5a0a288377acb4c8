"""The benchmark of the promise: what it keeps of answers, and that it fails where a calibration is wrong."""

from __future__ import annotations

import dataclasses
import json
import random

import pytest

from guardrail.evaluation.calibration import fitting as fitting_module
from guardrail.evaluation.calibration.acceptance import AnswerSignals, ClaimSignals
from guardrail.policy import BALANCED
from guardrail.scoring.delta_r import WindowSignals
from guardrail.types import Segment
from tests.benchmarks import conformal as benchmark
from tests.benchmarks.conformal_cache import _from_json, _to_json


def claim(delta_r, *, contradiction=None, judged=""):
    window = WindowSignals(
        passage_ids=("1",), rouge_l=1.0, entailment=1 - delta_r, contradiction=contradiction, clashes=(), judged=judged
    )
    return ClaimSignals(segment=Segment(start=0, end=1, text=""), windows=(window,), languages=(None,))


def test_the_cache_of_the_benchmark_forgets_nothing():
    whole = AnswerSignals(
        hallucinated=True, group="g", claims=(claim(0.4, contradiction=0.7, judged="no"),), cited=(1,), avoidable=True
    )
    off = dataclasses.replace(whole.claims[0].windows[0], on_subject=False, screened=0.3, missing_log_odds=1.5)
    whole = dataclasses.replace(whole, claims=(dataclasses.replace(whole.claims[0], windows=(off,)),))
    read = _from_json(json.loads(json.dumps(_to_json(whole))))
    assert dataclasses.replace(read.claims[0].windows[0], passage_ids=("1",)) == off
    assert (read.cited, read.avoidable, read.group) == ((1,), True, "g")


@pytest.mark.parametrize("wrong", ["", "one more", "no confidence", "not below"])
def test_the_benchmark_fails_a_wrong_procedure(wrong, monkeypatch, capsys):
    draw = random.Random(0)
    scores = [round(draw.uniform(0.1, 1.0), 1 if wrong == "not below" else 9) for _ in range(300)]
    answers = [
        benchmark.Remembered(AnswerSignals(hallucinated=at < 200, claims=(claim(score),)))
        for at, score in enumerate(scores)
    ]
    right = fitting_module.rank
    if wrong == "one more":
        monkeypatch.setattr(fitting_module, "rank", lambda n, t, c=None: right(n, t, c) + (right(n, t, c) > 0))
    elif wrong == "no confidence":
        monkeypatch.setattr(fitting_module, "rank", lambda n, t, c=None: right(n, t))
    elif wrong == "not below":
        monkeypatch.setattr(fitting_module, "largest_delta", lambda critical, k, others=(): sorted(critical)[k - 1])
    monkeypatch.setattr(benchmark, "TARGETS", (0.1,))
    assert benchmark._splits(answers, BALANCED, 0.0, 100) == (1 if wrong else 0), capsys.readouterr().out
