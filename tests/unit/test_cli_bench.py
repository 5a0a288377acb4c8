"""`guardrail bench replay`: the report as a table and as JSON."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

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
            rows.append(
                {"question": "When?", "context": CONTEXT, "answer": answer, "label": label, "detail": detail}
            )
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
