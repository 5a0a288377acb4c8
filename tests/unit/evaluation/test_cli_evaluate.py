"""`guardrail evaluate`: reports, exit statuses, interrupts, errors that say what to change."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import pytest

from guardrail.cli import main
from guardrail.cli.evaluate import load_object
from guardrail.errors import ConfigurationError
from guardrail.evaluation.datasets.metrics import METRICS
from tests.data_sets import save

CONTEXT = "The desk opens at ten. Entry is free on Mondays."
ROWS = [
    {"id": "a", "context": CONTEXT, "answer": "The desk opens at nine.", "label": 0},
    {"id": "b", "context": CONTEXT, "answer": "The desk opens at ten.", "label": 1},
    {"id": "c", "context": CONTEXT, "answer": None},
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    save(tmp_path / "data.jsonl", ROWS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    return tmp_path


def run(*arguments):
    return main(["evaluate", "data.jsonl", "--out", "out.jsonl", *arguments])


def test_json_has_the_figures_and_the_file_the_items(folder, capsys):
    assert run("--json", "--metrics", "accepted, worst_delta_r") == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    found = json.loads(shown.out)
    assert found["items"] == found["total"] == 3
    assert found["errors"] == {"no_answer": 1}
    assert list(found["metrics"]) == ["accepted", "worst_delta_r"]
    assert found["metrics"]["accepted"]["mean"] == 0.5
    assert found["metrics"]["accepted"]["auroc"] == found["metrics"]["worst_delta_r"]["auroc"] == 1.0
    items = [json.loads(line) for line in (folder / "out.jsonl").read_text(encoding="utf-8").splitlines()[1:]]
    assert [(item["id"], item["scores"].get("accepted")) for item in items] == [("a", 0.0), ("b", 1.0), ("c", None)]


def test_a_second_run_says_the_same_without_working(folder, capsys):
    run("--json")
    first, results = capsys.readouterr().out, (folder / "out.jsonl").read_bytes()
    run("--json")
    assert capsys.readouterr().out == first
    assert (folder / "out.jsonl").read_bytes() == results


def test_the_table_names_figures_and_errors(folder, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert run("--metrics", "accepted,faithfulness") == 0
    text = capsys.readouterr().out
    assert "\x1b" not in text
    assert all(len(line) <= 80 for line in text.splitlines())
    assert text.splitlines()[0].split() == ["metric", "n", "mean", "95", "%", "CI", "min", "p10", "max", "AUROC"]
    assert "accepted      2  0.500  0.000–1.000  0.000  0.100  1.000  1.000" in text
    assert "accepted: 1 item without a score (no_answer 1)" in text
    assert "3 items · policy balanced" in text
    assert "per item: out.jsonl" in text


def test_answers_may_stand_in_a_second_file(folder, capsys):
    save(folder / "model.jsonl", [{"id": "b", "answer": "The desk opens at ten."}, {"id": "x", "answer": "Hello."}])
    assert run("--answers", "model.jsonl", "--metrics", "accepted") == 0
    text = capsys.readouterr().out
    assert "accepted  1  1.000        –  1.000  1.000  1.000" in text
    assert "2 items without a score (no_answer 2)" in text
    assert "1 answer without an item of their id" in text


def test_fields_can_be_named(folder, capsys):
    save(folder / "data.jsonl", [{"docs": CONTEXT, "mine": "The desk opens at ten.", "answer": "expected"}])
    assert run("--answers", "mine", "--field", "context=docs", "--metrics", "accepted", "--json") == 0
    assert json.loads(capsys.readouterr().out)["metrics"]["accepted"]["mean"] == 1.0


def test_the_items_as_a_table(folder):
    assert run("--metrics", "accepted", "--csv", "items.csv") == 0
    assert (folder / "items.csv").read_text(encoding="utf-8").splitlines() == [
        "id,label,accepted,accepted_error", "a,False,0.0,", "b,True,1.0,", "c,,,no_answer",
    ]  # fmt: skip


def test_policy_limit_and_text(folder, capsys):
    assert run("--policy", "strict", "--limit", "1", "--with-text", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["policy"], found["items"]) == ("strict", 1)
    assert "opens at nine" in (folder / "out.jsonl").read_text(encoding="utf-8")


def test_a_metric_without_a_single_score_is_status_1(folder, capsys):
    save(folder / "data.jsonl", [{"context": [], "answer": "A fact is one."}, {"context": "C is one.", "answer": None}])
    assert run("--metrics", "accepted") == 1
    assert "accepted: 2 items without a score (no_answer 1, no_context 1)" in capsys.readouterr().out


def test_a_judge_is_imported_from_the_current_folder(folder, capsys):
    (folder / "my_judges_for_cli.py").write_text(
        "from guardrail.testing import ScriptedJudge\n"
        "class Shelf:\n    one = ScriptedJudge({'The desk opens at ten.': 'yes'})\n",
        encoding="utf-8",
    )
    assert run("--metrics", "judge", "--judge", "my_judges_for_cli:Shelf.one", "--json") == 0
    assert json.loads(capsys.readouterr().out)["metrics"]["judge"]["mean"] == 0.5


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("judges", "must be MODULE:NAME"),
        (":x", "must be MODULE:NAME"),
        ("no_such_module_here:x", "raised ModuleNotFoundError: No module named 'no_such_module_here'"),
        ("json:nothing", "json has no nothing"),
        ("broken_module:x", "importing broken_module raised ValueError"),
    ],
)
def test_a_judge_that_cannot_be_imported(folder, name, said):
    (folder / "broken_module.py").write_text("raise ValueError('a secret')\n", encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        load_object(name)
    assert said in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--metrics", "fluency"], "there is no metric 'fluency'"),
        (["--metrics", ","], "at least one metric"),
        (["--metrics", "judge"], "--judge package.module:attribute"),
        (["--field", "docs"], "must be PART=NAME"),
        (["--field", "title=docs"], "an item has no 'title'"),
        (["--limit", "0"], "at least 1"),
        (["--policy", "harsh"], "invalid choice"),
        (["--csv", "data.jsonl"], "--csv data.jsonl is the same file as data.jsonl"),
        (["--csv", "out.jsonl"], "--csv out.jsonl is the file of --out"),
        (["--answers", "reponse"], "--answers NAME"),
        (["--answers", "no.csv"], "no.csv: there is no such file"),
        (["--out", "data.jsonl"], "is the file that is read"),
    ],
)
def test_wrong_usage_ends_with_2_and_says_what_to_change(folder, capsys, arguments, said):
    before = (folder / "data.jsonl").read_bytes()
    assert run(*arguments) == 2
    assert said in capsys.readouterr().err
    assert (folder / "data.jsonl").read_bytes() == before


def test_other_results_need_restart(folder, capsys):
    run("--metrics", "accepted")
    assert run("--metrics", "rouge_l") == 2
    assert "--restart" in capsys.readouterr().err
    assert run("--metrics", "rouge_l", "--restart") == 0


def test_help_names_every_metric(capsys):
    assert main(["evaluate", "--help"]) == 0
    text = capsys.readouterr().out
    assert all(f"  {name} " in text for name in METRICS)


def test_a_terminal_gets_a_progress_bar_that_counts_what_was_done_before(folder, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    run("--json")
    assert "evaluating" in capsys.readouterr().err
    run("--json")
    shown = capsys.readouterr()
    assert "3/3" in shown.err
    assert json.loads(shown.out)["items"] == 3


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGINT for another process")
def test_an_interrupt_says_how_to_go_on_and_the_same_command_does(folder):
    (folder / "slow_judges.py").write_text(
        "import asyncio\n"
        "from guardrail.testing import ScriptedJudge\n"
        "class Slow(ScriptedJudge):\n"
        "    async def judge(self, pairs):\n"
        "        await asyncio.sleep(0.002)\n"
        "        return await super().judge(pairs)\n"
        "judge = Slow('yes')\n",
        encoding="utf-8",
    )
    save(folder / "data.jsonl", [{"context": CONTEXT, "answer": f"The desk has {n} chairs."} for n in range(600)])
    command = [sys.executable, "-m", "guardrail", "evaluate", "data.jsonl", "--metrics", "judge"]
    command += ["--judge", "slow_judges:judge", "--json", "--out"]
    process = subprocess.Popen([*command, "out.jsonl"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 60
    out = folder / "out.jsonl"
    while not (out.exists() and out.read_bytes().count(b"\n") > 20):
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    done = out.read_bytes().count(b"\n") - 1
    assert said == (
        f"guardrail: interrupted after {done} of 600 items, which are in out.jsonl; "
        "run the same command again to go on\n"
    )
    again = subprocess.run([*command, "out.jsonl"], capture_output=True, text=True, check=True)
    whole = subprocess.run([*command, "whole.jsonl"], capture_output=True, text=True, check=True)
    assert out.read_bytes() == (folder / "whole.jsonl").read_bytes()
    assert again.stdout == whole.stdout
