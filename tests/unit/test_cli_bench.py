"""`guardrail bench`: the reports as tables and as JSON."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from guardrail import Verifier
from guardrail.cli import main
from guardrail.evaluation.benchmarks.replay import WEAKEST_FIRST
from guardrail.testing import FakeEntailment

CONTEXT = "The desk opens at ten. Entry is free on Mondays."
ANSWERS = (("The desk opens at nine.", 0), ("The desk opens at ten.", 1))
FIELDS = {
    "prompts", "hallucinated_without", "hallucinated_delivered", "refused", "refused_hallucinated", "refused_grounded",
    "attempts_mean", "ms_per_claim",
}  # fmt: skip


@pytest.fixture
def recorded(tmp_path):
    rows = []
    for source, task in (("1", "QA"), ("2", "Summary")):
        for model, (answer, label) in zip(WEAKEST_FIRST, ANSWERS, strict=False):
            detail = {"source_id": source, "model": model, "task_type": task}
            rows.append({"question": "When?", "context": CONTEXT, "answer": answer, "label": label, "detail": detail})
    path = tmp_path / "recorded.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def test_json_has_the_figures_overall_and_by_task(recorded, capsys):
    assert main(["bench", "replay", str(recorded), "--json"]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    found = json.loads(shown.out)
    assert found["overall"].keys() >= FIELDS
    assert found["by_task"].keys() == {"QA", "Summary"}
    assert all(row.keys() >= FIELDS for row in found["by_task"].values())
    assert found["overall"]["prompts"] == 2
    assert found["overall"]["hallucinated_without"] == 1.0
    assert found["overall"]["hallucinated_delivered"] == 0.0
    assert found["overall"]["attempts_mean"] == 2.0


def test_limit_takes_the_first_prompts(recorded, capsys):
    main(["bench", "replay", str(recorded), "--limit", "1", "--json", "--policy", "strict"])
    found = json.loads(capsys.readouterr().out)
    assert found["overall"]["prompts"] == 1
    assert found["policy"] == "strict"


def test_the_table_names_every_figure(recorded, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["bench", "replay", str(recorded)]) == 0
    text = capsys.readouterr().out
    assert "\x1b" not in text
    assert all(len(line) <= 80 for line in text.splitlines())
    rows = dict(line.rsplit(maxsplit=3)[0::3] for line in text.splitlines()[2:6])
    assert rows["hallucinated without the guard"] == "100.0%"
    assert rows["hallucinated of what is delivered"] == "0.0%"


def test_a_terminal_gets_a_progress_bar_on_standard_error(recorded, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    main(["bench", "replay", str(recorded), "--json"])
    shown = capsys.readouterr()
    assert "replaying" in shown.err
    assert json.loads(shown.out)["overall"]["prompts"] == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nope.jsonl"], "nope.jsonl"),
        (["bad.jsonl"], "bad.jsonl, line 1"),
        (["empty.jsonl"], "empty.jsonl"),
        (["bad.jsonl", "--limit", "0"], "at least 1"),
        (["bad.jsonl", "--policy", "harsh"], "invalid choice"),
    ],
)
def test_wrong_input_ends_with_2(tmp_path, arguments, said):
    (tmp_path / "bad.jsonl").write_text("{}\n", encoding="utf-8")
    (tmp_path / "empty.jsonl").write_text("", encoding="utf-8")
    command = [sys.executable, "-m", "guardrail", "bench", "replay", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


FIGURES = {
    "n", "auroc", "f1", "precision", "recall", "balanced_accuracy", "grounded_released", "false_refusals",
    "hallucinated_stopped", "best", "without_claim", "ms_per_claim", "skipped", "ci95",
}  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    """Two sets: one with tasks, one where a row has no context."""
    rows = [{"context": CONTEXT, "answer": a, "label": n, "detail": {"task_type": "QA"}} for a, n in ANSWERS]
    bare = [{"context": CONTEXT, "claim": a, "label": n} for a, n in ANSWERS] + [
        {"context": [], "claim": "The desk opens at ten.", "label": 1}
    ]
    for name, lines in (("tasks", rows), ("a_name_of_more_than_24_columns", bare)):
        (tmp_path / f"{name}.jsonl.gz").write_bytes(gzip.compress("\n".join(map(json.dumps, lines)).encode()))
    (tmp_path / "README.md").write_text("Not a set.", encoding="utf-8")
    return tmp_path


def test_quality_as_json_has_the_figures_by_set_and_task(folder, capsys):
    assert main(["bench", "quality", "--data", str(folder), "--json"]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    found = json.loads(shown.out)
    assert found.keys() == {"policy", "scorer", "delta", "detection_delta", "sets"}
    assert (found["policy"], found["scorer"]) == ("balanced", Verifier().scorer)
    assert list(found["sets"]) == ["a_name_of_more_than_24_columns", "tasks"]
    assert all(row.keys() == {*FIGURES, "by_task", "cascade", "published"} for row in found["sets"].values())
    assert found["sets"]["tasks"]["by_task"].keys() == {"QA"}
    assert found["sets"]["tasks"]["by_task"]["QA"].keys() == FIGURES
    assert found["sets"]["tasks"]["f1"] == found["sets"]["tasks"]["auroc"] == 1.0
    assert found["sets"]["a_name_of_more_than_24_columns"]["skipped"] == {"no_context": 1}
    best = found["sets"]["tasks"]["best"]
    assert (best["f1"], best["balanced_accuracy"]) == (1.0, 1.0)
    assert found["sets"]["tasks"]["cascade"] is None
    assert found["sets"]["tasks"]["published"] == []


def test_quality_of_one_class_is_null_not_nan(folder, capsys):
    assert main(["bench", "quality", "tasks", "--data", str(folder), "--json", "--limit", "1"]) == 0
    found = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)["sets"]["tasks"]
    assert found["n"] == 1
    assert found["auroc"] is found["grounded_released"] is found["balanced_accuracy"] is None


def test_the_quality_table_fits_80_columns(folder, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["bench", "quality", "--data", str(folder), "--policy", "strict"]) == 0
    text = capsys.readouterr().out
    assert all(len(line) <= 80 for line in text.splitlines())
    rows = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line.strip()}
    assert rows["tasks"][:8] == rows["QA"][:8] == ["2", *["1.000"] * 5, "0.0%", "100.0%"]
    assert ["best:", "vetoes", "only", *["1.000"] * 4] in [line.split() for line in text.splitlines()]
    assert "chosen with its labels" in text
    assert "judge:" not in text
    assert "·:" not in text
    assert "a_name_of_more_than_24_columns: 1 answer skipped (no_context 1)" in text
    assert "policy strict" in text


@pytest.fixture
def doubtful(tmp_path, monkeypatch):
    """A set under a name that figures were published for, and a model that doubts everything."""
    rows = [
        {"context": CONTEXT, "answer": "The desk opens at ten.", "label": 1, "detail": {"task_type": "QA"}},
        {"context": CONTEXT, "answer": "Entry is free on Mondays.", "label": 0},
    ]
    (tmp_path / "ragtruth_test.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    for module in ("guardrail.scoring.verifier", "guardrail.evaluation.cascade.cascading"):
        monkeypatch.setattr(f"{module}.default_entailment", lambda: FakeEntailment(0.4))
    return tmp_path


def test_a_simulated_judge_stands_beside_the_model_alone(doubtful, capsys):
    command = ["bench", "quality", "--data", str(doubtful), "--judge-error", "0", "--json"]
    assert main(command) == 0
    found = json.loads(capsys.readouterr().out)["sets"]["ragtruth_test"]
    assert (found["grounded_released"], found["hallucinated_stopped"], found["auroc"]) == (1.0, 0.0, 0.5)
    cascade = found["cascade"]
    assert cascade.keys() == {*FIGURES, "by_task", "error_rate", "seed", "claims_asked", "answers_asked"}
    assert (cascade["error_rate"], cascade["claims_asked"], cascade["answers_asked"]) == (0.0, 1.0, 1.0)
    assert (cascade["grounded_released"], cascade["hallucinated_stopped"], cascade["auroc"]) == (1.0, 1.0, 1.0)
    assert cascade["by_task"]["QA"]["grounded_released"] == 1.0
    assert cascade["ms_per_claim"] is None
    others = {other["system"]: other for other in found["published"]}
    assert others["RAG-HAT (Llama-3-8B)"]["figures"] == {"precision": 0.873, "recall": 0.808, "f1": 0.839}
    assert others["RAG-HAT (Llama-3-8B)"]["f1_by_task"] == {"QA": 0.748, "Data2txt": 0.916, "Summary": 0.676}
    assert "2502.17125" in others["RAG-HAT (Llama-3-8B)"]["source"]


@pytest.mark.parametrize("columns", [80, 120])
def test_published_figures_and_the_judge_stand_under_their_set(doubtful, capsys, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main(["bench", "quality", "--data", str(doubtful), "--judge-error", "0"]) == 0
    text = capsys.readouterr().out
    lines = text.splitlines()
    assert all(len(line) <= columns for line in lines)
    shown = [line.split() for line in lines]
    assert ["·", "RAG-HAT", "(Llama-3-8B)", "0.839", "0.873", "0.808"] in shown
    assert ["·", "HHEM-2.1-Open,", "QA", "0.743"] in shown
    (judged,) = [words for words in shown if words[:4] == ["+", "judge:", "100.0%", "asked"]]
    assert judged[4:6] == ["2", "1.000"]
    assert judged[-2:] == ["0.0%", "100.0%"]
    said = " ".join(text.split())
    assert "errs with probability 0 (seed 0); no forecast for a real one" in said
    assert "· ragtruth_test: LettuceDetect, arXiv 2502.17125" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--judge-error", "1.5"], "number from 0 to 1"),
        (["--judge-error", "nan"], "number from 0 to 1"),
        (["--judge-error", "some"], "invalid float"),
        (["--judge-error", "0.1", "--policy", "reference"], "reference formula"),
    ],
)
def test_a_judge_that_cannot_be_simulated_ends_with_2(doubtful, capsys, arguments, said):
    try:
        status = main(["bench", "quality", "--data", str(doubtful), *arguments])
    except SystemExit as left:
        status = left.code
    assert status == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("name", ["tasks", "tasks.jsonl.gz", "{folder}/tasks.jsonl.gz"])
def test_a_set_is_found_by_name_and_by_path(folder, capsys, name):
    assert main(["bench", "quality", name.format(folder=folder), "--data", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sets"].keys() == {"tasks"}


def test_the_default_folder_stands_beside_the_repository(folder, capsys, monkeypatch):
    monkeypatch.setattr("guardrail.cli.bench._DATA", folder)
    assert main(["bench", "quality", "tasks", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sets"].keys() == {"tasks"}
    monkeypatch.undo()
    from guardrail.cli.bench import _DATA

    assert Path(__file__).resolve().parents[3] / "shared" / "data" / "eval" == _DATA


def test_a_terminal_gets_a_progress_bar_per_set(folder, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    main(["bench", "quality", "--data", str(folder), "--json"])
    shown = capsys.readouterr()
    assert "tasks" in shown.err
    assert "2/2" in shown.err
    assert json.loads(shown.out)["sets"]["tasks"]["n"] == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nope"], "nope: there is no such file and no such set"),
        (["nope", "--data", "."], "a_name_of_more_than_24_columns, tasks"),
        (["--data", "nowhere"], "--data nowhere"),
        (["--data", "empty"], "--data DIR"),
        (["tasks", "other/tasks.jsonl", "--data", "."], "two sets are called tasks"),
        (["other/tasks.jsonl"], "tasks.jsonl, line 1"),
        (["tasks", "--policy", "harsh"], "invalid choice"),
    ],
)
def test_wrong_sets_end_with_2(folder, capsys, monkeypatch, arguments, said):
    monkeypatch.chdir(folder)
    monkeypatch.setattr("guardrail.cli.bench._DATA", folder / "absent")
    (folder / "empty").mkdir()
    (folder / "other").mkdir()
    (folder / "other" / "tasks.jsonl").write_text("{}\n", encoding="utf-8")
    assert main(["bench", "quality", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_without_any_data_the_command_asks_for_a_folder(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("guardrail.cli.bench._DATA", tmp_path / "absent")
    assert main(["bench", "quality"]) == 2
    assert "--data DIR" in capsys.readouterr().err


def test_an_interrupt_ends_quality_with_130(folder, capsys, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("guardrail.cli.bench.measure", interrupted)
    assert main(["bench", "quality", "tasks", "--data", str(folder)]) == 130
    assert "Traceback" not in capsys.readouterr().err
