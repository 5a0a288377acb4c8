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
from guardrail.evaluation.replay import WEAKEST_FIRST

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
    "n", "auroc", "f1", "precision", "recall", "balanced_accuracy", "grounded_released", "hallucinated_stopped",
    "without_claim", "ms_per_claim", "skipped", "ci95",
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
    assert all(row.keys() == {*FIGURES, "by_task"} for row in found["sets"].values())
    assert found["sets"]["tasks"]["by_task"].keys() == {"QA"}
    assert found["sets"]["tasks"]["by_task"]["QA"].keys() == FIGURES
    assert found["sets"]["tasks"]["f1"] == found["sets"]["tasks"]["auroc"] == 1.0
    assert found["sets"]["a_name_of_more_than_24_columns"]["skipped"] == {"no_context": 1}


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
    assert rows["tasks"][:7] == rows["QA"][:7] == ["2", "1.000", "1.000", "1.000", "1.000", "1.000", "100.0%"]
    assert "a_name_of_more_than_24_columns: 1 answer skipped (no_context 1)" in text
    assert "policy strict" in text


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
