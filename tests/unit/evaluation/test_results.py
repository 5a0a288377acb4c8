"""Figures of an evaluation from its results file."""

from __future__ import annotations

import csv
import json
import math
import sys
import tracemalloc

import numpy as np
import pytest

from guardrail.errors import InputError, MissingExtraError
from guardrail.evaluation.datasets import results
from guardrail.evaluation.datasets.evaluating import evaluate
from guardrail.evaluation.datasets.results import mean_interval, read_evaluation
from tests.data_sets import METRICS, ROWS, fake, save

HEADER = {
    "guardrail_evaluation": 1,
    "items": 8,
    "unused_answers": None,
    "metrics": [{"name": "good", "higher_is_better": True}, {"name": "bad", "higher_is_better": False}],
    "policy": {"name": "balanced"},
    "scorer": {"model_id": "fake"},
    "with_text": False,
}
SCORES = [1, 1, 0.75, 1, 0, 0.5, 1, 1]


@pytest.fixture
def write(tmp_path):
    def write(items, **header):
        path = tmp_path / "results.jsonl"
        numbered = ({"n": n, "id": str(n), "scores": {}, **item} for n, item in enumerate(items, start=1))
        path.write_text(
            "".join(json.dumps(line) + "\n" for line in ({**HEADER, **header}, *numbered)), encoding="utf-8"
        )
        return path

    return write


def test_figures_of_a_metric(write):
    found = read_evaluation(write([{"scores": {"good": score, "bad": score}} for score in SCORES])).metrics["good"]
    assert [found.n, found.minimum, found.maximum] == [8, 0.0, 1.0]
    rounded = [round(value, 3) for value in (found.mean, found.sd, found.p10, found.below_half)]
    assert rounded == [0.781, 0.364, 0.35, 0.125]
    low, high = found.ci95
    assert 0.4 < low < found.mean < high <= 1.0
    assert found.auroc is None
    assert found.labelled == 0
    assert found.errors == {}


def test_errors_are_counted_per_metric_and_per_item(write):
    items = [
        {"scores": {"good": 1.0}, "errors": {"bad": "no_claims"}},
        {"errors": {"good": "no_answer", "bad": "no_answer"}},
        {"errors": {"good": "no_answer", "bad": "no_answer"}},
    ]
    found = read_evaluation(write(items))
    assert found.metrics["good"].errors == {"no_answer": 2}
    assert found.metrics["bad"].errors == {"no_answer": 2, "no_claims": 1}
    assert found.errors == {"no_answer": 2, "no_claims": 1}
    nothing = found.metrics["bad"]
    assert (nothing.n, nothing.mean, nothing.sd, nothing.p10, nothing.minimum, nothing.ci95) == (0, *[None] * 5)


def test_ranking_knows_which_direction_is_good(write):
    items = [
        {"label": label, "scores": {"good": good, "bad": 1 - good}}
        for label, good in ((True, 0.9), (True, 0.4), (False, 0.4), (False, 0.1), (None, 0.0))
    ]
    found = read_evaluation(write(items))
    assert {name: (each.auroc, each.labelled) for name, each in found.metrics.items()} == {
        "good": (0.875, 4),
        "bad": (0.875, 4),
    }


def test_one_class_has_no_ranking(write):
    found = read_evaluation(write([{"label": True, "scores": {"good": score}} for score in SCORES]))
    assert found.metrics["good"].auroc is None
    assert found.metrics["good"].labelled == 8


def test_an_incomplete_file_has_figures_of_what_is_there(write):
    path = write([{"scores": {"good": 0.5}}] * 3)
    path.write_bytes(path.read_bytes()[:-2])
    found = read_evaluation(path)
    assert (found.items, found.total, found.metrics["good"].n) == (2, 8, 2)


def test_what_is_no_results_file_is_refused(tmp_path):
    path = tmp_path / "x.jsonl"
    with pytest.raises(InputError, match="cannot be read"):
        read_evaluation(path)
    for content in (b"", b"{}\n", b"thesis", b"[]\n"):
        path.write_bytes(content)
        with pytest.raises(InputError, match="is not the result of an evaluation"):
            read_evaluation(path)


def test_a_damaged_line_is_named(write):
    path = write([{}, {}, {}])
    whole = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*whole[:2], b"{\n", whole[3]]))
    with pytest.raises(InputError, match="line 3: is damaged"):
        read_evaluation(path)


@pytest.mark.parametrize("scores", [[], [0.7]])
def test_too_few_scores_have_no_interval(scores):
    assert mean_interval(scores) is None


def test_the_interval_covers_the_mean_about_as_often_as_it_says():
    random = np.random.default_rng(1)
    inside = 0
    for seed in range(200):
        low, high = mean_interval(random.beta(5, 2, size=60), seed=seed, resamples=300)
        inside += low <= 5 / 7 <= high
    assert 180 <= inside <= 198


def test_the_interval_is_that_of_the_normal_distribution_for_many_scores():
    scores = np.random.default_rng(3).random(10_000)
    low, high = mean_interval(scores)
    half = 1.96 * scores.std(ddof=1) / math.sqrt(len(scores))
    assert (high - low) / 2 == pytest.approx(half, rel=0.1)
    assert (low + high) / 2 == pytest.approx(scores.mean(), abs=half / 10)
    assert mean_interval(scores) == (low, high)
    assert mean_interval(scores, seed=1) != (low, high)


def test_equal_scores_have_an_interval_without_width():
    assert mean_interval([0.1] * 7) == (0.1, 0.1)


def test_resampling_needs_little_memory():
    scores = np.random.default_rng(0).random(10_000)
    tracemalloc.start()
    try:
        mean_interval(scores)
        assert tracemalloc.get_traced_memory()[1] < 8_000_000
    finally:
        tracemalloc.stop()


def test_json_has_plain_values_and_no_times(write):
    found = read_evaluation(write([{"label": n % 2 == 0, "scores": {"good": s}} for n, s in enumerate(SCORES)]))
    shown = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert shown["items"] == shown["total"] == 8
    assert shown["metrics"]["good"].keys() == {
        "n", "mean", "sd", "p10", "below_half", "minimum", "maximum", "higher_is_better", "ci95", "auroc", "labelled",
        "errors",
    }  # fmt: skip
    assert shown["metrics"]["bad"]["mean"] is None
    assert not any("time" in key or key.endswith("_s") for key in shown)


def test_the_items_as_a_data_frame_and_as_a_table(tmp_path):
    data = save(tmp_path / "d.jsonl", ROWS)
    found = evaluate(data, metrics=METRICS[:2], out=tmp_path / "out.jsonl", verifier=fake(), with_text=True)
    frame = found.to_pandas()
    names = [name for each in METRICS[:2] for name in (each, f"{each}_error")]
    assert list(frame.columns) == ["id", "label", *names, "question", "answer"]
    assert list(frame["id"]) == [row["id"] for row in ROWS]
    assert str(frame["faithfulness"].dtype) == "float64"
    assert frame["faithfulness"].mean() == pytest.approx(found.metrics["faithfulness"].mean)
    assert list(frame["faithfulness_error"].dropna()) == ["no_answer", "no_context"]
    found.to_csv(tmp_path / "t.csv")
    with open(tmp_path / "t.csv", encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    assert [row["id"] for row in table] == [row["id"] for row in ROWS]
    assert float(table[0]["faithfulness"]) == frame["faithfulness"][0]
    assert table[2] == {
        "id": "none", "label": "True", "faithfulness": "", "faithfulness_error": "no_answer", "worst_delta_r": "",
        "worst_delta_r_error": "no_answer", "question": "", "answer": "",
    }  # fmt: skip


def test_a_data_frame_of_errors_only_has_the_same_types(write):
    frame = read_evaluation(write([{"errors": {"good": "x", "bad": "x"}}])).to_pandas()
    assert str(frame["good"].dtype) == "float64"
    assert len(read_evaluation(write([])).to_pandas()) == 0


def test_a_data_frame_without_pandas_names_the_extra(write, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"guardrail-stream\[evaluate\]"):
        read_evaluation(write([])).to_pandas()


def test_a_table_that_cannot_be_written(write, tmp_path):
    with pytest.raises(InputError, match="cannot be written"):
        read_evaluation(write([])).to_csv(tmp_path / "no" / "t.csv")


def test_importing_results_loads_no_optional_package():
    assert not {"pandas", "pyarrow"} & vars(results).keys()
