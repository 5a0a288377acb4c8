"""Published figures: shares, with sources, for sets that are there."""

from __future__ import annotations

from pathlib import Path

import pytest

from guardrail.evaluation.benchmarks.published import _SETS, published

EVAL = Path(__file__).resolve().parents[4] / "shared" / "data" / "eval"
ALL = [(name, other) for name, others in _SETS.items() for other in others]


@pytest.mark.parametrize(("name", "other"), ALL, ids=lambda value: getattr(value, "system", value))
def test_every_figure_is_a_share_with_a_source(name, other):
    assert other.system
    assert other.source
    assert all(0 < value < 1 for value in (*other.figures.values(), *other.f1_by_task.values()))
    assert other.figures or other.note


@pytest.mark.parametrize(
    ("name", "system", "figure", "value"),
    [
        ("ragtruth_test", "GPT-4-turbo, prompt", "recall", 0.979),
        ("ragtruth_test", "lettucedetect-large", "f1", 0.7922),
        ("summedits_8domains", "GPT-4", "balanced_accuracy", 0.832),
        ("faithbench_noncommercial", "HHEM-2.1-english", "auroc", 0.621),
        ("wice_claim_test", "T5-3B ANLI+WiCE", "auroc", 0.947),
        ("contractnli_test", "LegalBERT", "macro_f1", 0.793),
    ],
)
def test_figures_as_they_were_seen(name, system, figure, value):
    assert next(other for other in published(name) if other.system == system).figures[figure] == value


def test_the_sets_are_those_of_the_evaluation_folder():
    if not EVAL.is_dir():
        pytest.skip("the evaluation data is not beside the repository")
    assert all((EVAL / f"{name}.jsonl.gz").is_file() for name in _SETS)
    assert published("no_such_set") == ()
