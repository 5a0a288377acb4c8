"""Evaluation of data sets: results in order, errors counted, cancellation, bounded memory."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tracemalloc
from dataclasses import dataclass
from pathlib import Path

import pytest

from guardrail import Verifier
from guardrail.errors import ConfigurationError, InputError, ModelLoadError
from guardrail.evaluation.datasets.evaluating import aevaluate, evaluate
from guardrail.evaluation.datasets.metrics import Measurement
from guardrail.scoring.entailment import OnnxEntailment
from guardrail.testing import FakeEntailment, ScriptedJudge
from tests.data_sets import METRICS, ROWS, SUPPORTED, Counting, fake, lines, run_all, save


@pytest.fixture
def data(tmp_path):
    return save(tmp_path / "data.jsonl", ROWS)


def test_every_item_has_a_line_in_order(data, tmp_path):
    found = evaluate(data, metrics=METRICS, out=tmp_path / "out.jsonl", verifier=fake())
    header, *items = lines(tmp_path / "out.jsonl")
    assert header["items"] == 6
    assert header["file"]["name"] == "data.jsonl"
    assert [(item["n"], item["id"]) for item in items] == [(n, row["id"]) for n, row in enumerate(ROWS, start=1)]
    yes, no, none, bare, empty, other = items
    assert yes["scores"] == other["scores"] | {"rouge_l": yes["scores"]["rouge_l"]}
    assert yes["scores"]["faithfulness"] == 0.95
    assert yes["scores"]["accepted"] == 1.0
    assert yes["label"] is True
    assert yes["details"]["worst_delta_r"] == {"claims": 1, "worst": [0, 22]}
    assert no["scores"]["accepted"] == 0.0
    assert no["scores"]["worst_delta_r"] > 0.74
    assert none["errors"] == dict.fromkeys(METRICS, "no_answer")
    assert bare["errors"] == dict.fromkeys(METRICS, "no_context")
    assert "label" not in bare
    assert empty["scores"] == {"faithfulness": 0.0}
    assert empty["details"]["faithfulness"] == {"claims": 0, "reason": "empty_answer"}
    assert set(empty["errors"].values()) == {"empty_answer"}
    assert found.items == found.total == 6
    assert found.metrics["faithfulness"].n == 4
    assert found.metrics["accepted"].n == 3
    assert found.metrics["accepted"].mean == 2 / 3
    assert found.errors == {"empty_answer": 1, "no_answer": 1, "no_context": 1}


def test_text_is_kept_only_if_asked_for(data, tmp_path):
    evaluate(data, metrics=METRICS, out=tmp_path / "without.jsonl", verifier=fake())
    assert "terrace" not in (tmp_path / "without.jsonl").read_text(encoding="utf-8")
    evaluate(data, metrics=METRICS, out=tmp_path / "with.jsonl", verifier=fake(), with_text=True)
    kept = lines(tmp_path / "with.jsonl")
    assert [item["answer"] for item in kept[1:]] == [row["answer"] for row in ROWS]
    assert kept[6]["question"] == "When?"


def test_formats_give_the_same_scores(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    rows = [{**row, "context": row["context"] or None} for row in ROWS]
    save(tmp_path / "d.jsonl", rows)
    parquet.write_table(
        pa.Table.from_pylist([{"question": None, "label": None} | row for row in rows]), tmp_path / "d.parquet"
    )
    found = []
    for name in ("d.jsonl", "d.parquet"):
        report = evaluate(tmp_path / name, metrics=METRICS, out=tmp_path / f"{name}.out", verifier=fake())
        found.append((report.to_json(), (tmp_path / f"{name}.out").read_bytes().partition(b"\n")[2]))
    assert found[0] == found[1]


def test_a_failing_checker_is_an_error_and_not_a_score(data, tmp_path):
    found = evaluate(data, metrics=METRICS, out=tmp_path / "out.jsonl", verifier=fake("Dogs"))
    (item,) = [item for item in lines(tmp_path / "out.jsonl")[1:] if item["id"] == "no"]
    assert item["scores"] == {"rouge_l": item["scores"]["rouge_l"]}
    assert item["errors"] == dict.fromkeys(METRICS[:-1], "scoring_error")
    assert found.errors["scoring_error"] == 1


def test_what_a_metric_raises_is_counted(data, tmp_path):
    @dataclass
    class Broken(Counting):
        async def measure(self, item):
            if item.item.id == "no":
                raise KeyError("secret")
            return Measurement(score=0.5)

    found = evaluate(data, metrics=[Broken()], out=tmp_path / "out.jsonl", verifier=fake())
    assert found.metrics["length"].errors == {"KeyError": 1, "no_answer": 1}
    place = lines(tmp_path / "out.jsonl")[2]["details"]["length"]["at"]
    assert place.split(":")[0] == "test_evaluate.py"
    assert 'raise KeyError("secret")' in Path(__file__).read_text(encoding="utf-8").splitlines()[int(place[17:]) - 1]
    assert found.metrics["length"].n == 4
    assert "secret" not in (tmp_path / "out.jsonl").read_text(encoding="utf-8")


@pytest.mark.parametrize("error", [ModelLoadError("no model"), ConfigurationError("wrong")])
def test_what_is_wrong_for_every_item_ends_the_evaluation(data, tmp_path, error):
    @dataclass
    class Broken(Counting):
        async def measure(self, item):
            raise error

    with pytest.raises(type(error)):
        evaluate(data, metrics=[Broken()], out=tmp_path / "out.jsonl", verifier=fake())
    assert len(lines(tmp_path / "out.jsonl")) == 1


def test_a_model_that_cannot_be_loaded_is_found_before_the_first_item(data, tmp_path):
    verifier = Verifier(entailment=OnnxEntailment(tmp_path))
    with pytest.raises(ModelLoadError):
        evaluate(data, metrics=METRICS, out=tmp_path / "out.jsonl", verifier=verifier)
    assert not (tmp_path / "out.jsonl").exists()


@pytest.mark.parametrize("result", [0.5, None, {"score": 1.0}])
def test_a_metric_must_return_a_measurement(data, tmp_path, result):
    @dataclass
    class Broken(Counting):
        async def measure(self, item):
            return result

    with pytest.raises(ConfigurationError, match="must return a Measurement"):
        evaluate(data, metrics=[Broken()], out=tmp_path / "out.jsonl", verifier=fake())


@pytest.mark.parametrize("detail", [{"x": object()}, {"x": float("nan")}])
def test_a_detail_must_be_json(data, tmp_path, detail):
    @dataclass
    class Broken(Counting):
        async def measure(self, item):
            return Measurement(score=1.0, detail=detail)

    with pytest.raises(ConfigurationError, match="JSON cannot hold"):
        evaluate(data, metrics=[Broken()], out=tmp_path / "out.jsonl", verifier=fake())


def test_items_are_measured_side_by_side_and_written_in_order(tmp_path):
    data = save(tmp_path / "d.jsonl", [{"context": "C.", "answer": "x" * n} for n in range(40)])
    metric = Counting(turns=3)
    seen = []
    evaluate(
        data,
        metrics=[metric],
        out=tmp_path / "out.jsonl",
        verifier=fake(),
        concurrency=3,
        progress=lambda *p: seen.append(p),
    )
    assert metric.most == 3
    assert [item["scores"]["length"] for item in lines(tmp_path / "out.jsonl")[1:]] == list(range(40))
    assert seen == [(n, 40) for n in range(41)]


def test_the_verification_is_shared_by_the_metrics(tmp_path):
    data = save(tmp_path / "d.jsonl", ROWS[:2])
    model = FakeEntailment(0.9)
    verifier = Verifier(entailment=model)
    evaluate(data, metrics=["faithfulness"], out=tmp_path / "one.jsonl", verifier=verifier)
    once = len(model.pairs)
    assert once > 0
    evaluate(data, metrics=METRICS, out=tmp_path / "all.jsonl", verifier=verifier)
    assert len(model.pairs) == 2 * once


def test_the_judge_is_asked(data, tmp_path):
    judge = ScriptedJudge({SUPPORTED: "yes"})
    found = evaluate(data, metrics=["judge"], judge=judge, out=tmp_path / "out.jsonl", verifier=fake())
    assert [item["scores"].get("judge") for item in lines(tmp_path / "out.jsonl")[1:]] == [
        1.0,
        0.0,
        None,
        None,
        0.0,
        1.0,
    ]
    assert found.errors == {"no_answer": 1, "no_context": 1}
    assert lines(tmp_path / "out.jsonl")[0]["metrics"] == [
        {"name": "judge", "higher_is_better": True, "judge": "scripted"}
    ]


@pytest.mark.parametrize("out", ["no/such/folder/out.jsonl", "."])
def test_where_nothing_can_be_written(data, tmp_path, out):
    with pytest.raises(InputError, match="cannot be written"):
        run_all(data, tmp_path / out)


_FULL = """
import resource, sys
from guardrail.errors import InputError
from tests.data_sets import Counting, evaluate, fake

resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), -1))
try:
    evaluate(sys.argv[1], metrics=[Counting()], out=sys.argv[2], verifier=fake())
except InputError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no limits of file sizes")
@pytest.mark.parametrize("room", [10, 620, 760])
def test_a_full_disk_is_said_and_leaves_nothing_between(data, tmp_path, room):
    out = tmp_path / "out.jsonl"
    command = [sys.executable, "-c", _FULL, str(data), str(out), str(room)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f"{out}: cannot be written (File too large)" in done.stdout
    kept = out.read_bytes()
    assert len(kept) == room
    evaluate(data, metrics=[Counting()], out=out, verifier=fake())
    assert out.read_bytes().startswith(kept)
    assert len(lines(out)) == 7


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"metrics": []}, "at least one metric"),
        ({"metrics": "faithfulness"}, "in a list"),
        ({"metrics": ["fluency"]}, "there are faithfulness"),
        ({"metrics": ["judge"]}, "needs a judge"),
        ({"metrics": ["accepted", "accepted"]}, "'accepted'"),
        ({"metrics": [Counting(name="label")]}, "'label'"),
        ({"metrics": [Counting(name="a"), Counting(name="a_error")]}, "'a_error'"),
        ({"metrics": [object()]}, "object has no 'name'"),
        ({"concurrency": 0}, "concurrency must be"),
        ({"concurrency": 1.5}, "concurrency must be"),
        ({"limit": 0}, "limit must be"),
        ({"limit": True}, "limit must be"),
        (
            {"metrics": ["contradicted"], "verifier": Verifier(policy="reference", entailment=FakeEntailment(1.0))},
            "formula",
        ),
    ],
)
def test_wrong_arguments(data, tmp_path, options, said):
    with pytest.raises(ConfigurationError, match=said):
        run_all(data, tmp_path / "out.jsonl", **options)
    assert not (tmp_path / "out.jsonl").exists()


async def test_inside_an_event_loop_the_other_call_is_named(data, tmp_path):
    with pytest.raises(RuntimeError, match="await aevaluate"):
        run_all(data, tmp_path / "out.jsonl")


@pytest.mark.parametrize("turns", [0, 1, 2, 3, 5, 8, 20, 60])
async def test_cancellation_ends_everything_and_keeps_what_is_done(tmp_path, turns):
    data = save(tmp_path / "d.jsonl", [{"context": "C.", "answer": "x" * n} for n in range(30)])
    out, metric, halfway = tmp_path / "out.jsonl", Counting(turns=2), asyncio.Event()
    task = asyncio.create_task(
        aevaluate(data, metrics=[metric], out=out, verifier=fake(), concurrency=2, progress=lambda *_: halfway.set())
    )
    await halfway.wait()
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert metric.now == 0
    assert asyncio.all_tasks() == {asyncio.current_task()}
    done = len(lines(out)) - 1
    assert done >= metric.ended - 2 * 4
    await aevaluate(data, metrics=[Counting()], out=out, verifier=fake())
    await aevaluate(data, metrics=[Counting()], out=tmp_path / "whole.jsonl", verifier=fake())
    assert out.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


async def test_cancellation_during_the_survey_ends_its_thread(tmp_path, monkeypatch):
    rows = 5_000
    data = save(tmp_path / "d.jsonl", [{"context": "C.", "answer": "A."}] * rows)
    task = asyncio.create_task(aevaluate(data, metrics=[Counting()], out=tmp_path / "out.jsonl", verifier=fake()))
    while not any(name.name.startswith("asyncio_") for name in __import__("threading").enumerate()):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not (tmp_path / "out.jsonl").exists()


def test_memory_does_not_grow_with_the_number_of_items(tmp_path):
    count = 10_000
    context = "The desk opens at ten. " * 20
    data = tmp_path / "d.jsonl"
    with data.open("w", encoding="utf-8") as file:
        file.writelines(
            json.dumps({"id": str(n), "context": [f"{context} {n}"], "answer": f"It is {n}.", "label": n % 2}) + "\n"
            for n in range(count)
        )
    peaks = []

    def watch(done, total):
        if done in (count // 2, count):
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.reset_peak()

    tracemalloc.start()
    try:
        found = evaluate(data, metrics=["rouge_l"], out=tmp_path / "out.jsonl", verifier=fake(), progress=watch)
        peaks.append(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()
    assert found.items == found.metrics["rouge_l"].n == count
    first, second, summed_up = peaks
    assert second < first + 200_000
    assert summed_up < 12_000_000
