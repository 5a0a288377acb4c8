"""`guardrail calibrate`, and `--profile` of the commands that take one."""

from __future__ import annotations

import json

import pytest

from guardrail.cli import main
from guardrail.evaluation.benchmarks.replay import WEAKEST_FIRST
from guardrail.evaluation.calibration import Profile

CONTEXT = "The desk opens at ten. Entry is free on Mondays."
ANSWERS = (("The desk opens at ten.", 1), ("Elephants enjoy warm puddles.", 0), ("Hello!", 0))


@pytest.fixture
def labelled(tmp_path):
    def write(true=25, wrong=25, greetings=0):
        rows = [row for row, n in zip(ANSWERS, (true, wrong, greetings), strict=True) for _ in range(n)]
        path = tmp_path / "ours.jsonl"
        details = ({"prompt": n // 2, "source_id": n, "model": WEAKEST_FIRST[0]} for n in range(len(rows)))
        lines = (
            {"context": CONTEXT, "answer": answer, "label": label, "detail": detail}
            for (answer, label), detail in zip(rows, details, strict=True)
        )
        path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
        return str(path)

    return write


@pytest.fixture
def made(labelled, tmp_path, capsys):
    path = str(tmp_path / "profile.json")
    assert main(["calibrate", labelled(), "--target-miss", "0.1", "--out", path, "--name", "ours"]) == 0
    capsys.readouterr()
    return path


@pytest.mark.parametrize("columns", ["80", "120"])
def test_the_report_says_promise_cost_threshold_and_assumptions(labelled, tmp_path, capsys, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    out = tmp_path / "profile.json"
    assert main(["calibrate", labelled(), "--target-miss", "0.05", "--out", str(out)]) == 0
    shown = capsys.readouterr()
    words = " ".join(shown.out.split())
    for said in (
        "a hallucinated answer is accepted with a probability of at most 5%",
        "25 hallucinated answers of 50 labelled answers; 0 of them are accepted",
        "0.0% of 25 grounded answers are refused (95 % interval of the share: 0.0% to 13.7%)",
        "as without a profile; too few answers to fit it",
        "exchangeable",
        f"Profile calibrated is in {out}.",
    ):
        assert said in words
    assert max(map(len, shown.out.splitlines()[:-1])) <= int(columns)
    assert shown.err == ""
    assert Profile.load(out).promise.target_miss == 0.05


def test_json_is_the_profile(labelled, capsys):
    assert (
        main(["calibrate", labelled(), "--target-miss", "0.1", "--confidence", "0.9", "--group", "prompt", "--json"])
        == 1
    )
    assert "there are 12" in capsys.readouterr().err  # one answer of each pair
    assert main(["calibrate", labelled(), "--target-miss", "0.1", "--confidence", "0.9", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert (values["format"], values["promise"]["confidence"], values["data"]["file"]) == (1, 0.9, "ours.jsonl")


@pytest.mark.parametrize(
    ("counts", "options", "said"),
    [
        ({"wrong": 5}, [], "can be promised from 19 hallucinated answers on, and there are 5"),
        ({"wrong": 17, "greetings": 8}, [], '8 (no_claims): set no_claims="refuse" in the policy'),
        ({"true": 0}, ["--max-refusal", "0.1"], "max_refusal needs grounded answers"),
    ],
)
def test_a_promise_that_cannot_be_made_is_exit_status_1(labelled, tmp_path, capsys, counts, options, said):
    out = tmp_path / "profile.json"
    assert main(["calibrate", labelled(**counts), "--target-miss", "0.05", "--out", str(out), *options]) == 1
    shown = capsys.readouterr()
    assert said in shown.err
    assert (shown.out, out.exists()) == ("", False)


def test_the_advice_about_answers_without_claims_can_be_followed(labelled, capsys):
    answers = labelled(wrong=17, greetings=8)
    assert main(["calibrate", answers, "--target-miss", "0.05", "--no-claims", "refuse", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["fields"] == {"no_claims": "refuse"}


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--target-miss", "0"],
        ["--target-miss", "5%"],
        ["--target-miss", "nan"],
        ["--target-miss", "0.1", "--confidence", "0.5"],
        ["--target-miss", "0.1", "--max-refusal", "2"],
        ["--target-miss", "0.1", "--policy", "reference"],
        ["--target-miss", "0.1", "--group", "none"],
        ["--target-miss", "0.1", "--out", "no/such/folder/profile.json"],
    ],
)
def test_wrong_usage_is_exit_status_2(labelled, capsys, options):
    assert main(["calibrate", labelled(), *options]) == 2
    assert capsys.readouterr().err


def test_check_takes_a_profile(made, tmp_path, capsys):
    answer, context = tmp_path / "answer.txt", tmp_path / "context.txt"
    answer.write_text(ANSWERS[0][0], encoding="utf-8")
    context.write_text(CONTEXT, encoding="utf-8")
    files = ["check", "--answer", str(answer), "--context", str(context), "--profile", made]
    assert main([*files, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["policy"], found["delta"]) == ("ours", Profile.load(made).delta)
    for more in (["--policy", "strict"], ["--strict"], ["--delta", "0.5"], ["--formula", "reference"]):
        assert main([*files, *more]) == 2
    assert "leave out the others" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["quality", "replay"])
def test_benchmarks_take_a_profile(made, labelled, capsys, kind):
    assert main(["bench", kind, labelled(3, 3), "--profile", made, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["policy"] == "ours"
    assert main(["bench", kind, labelled(3, 3), "--profile", made, "--policy", "strict"]) == 2


def test_a_profile_that_was_edited_is_refused(made, labelled, tmp_path, capsys):
    path = tmp_path / "profile.json"
    values = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**values, "delta": 0.99}), encoding="utf-8")
    assert main(["bench", "quality", labelled(3, 3), "--profile", made]) == 2
    assert "was changed after it was made" in capsys.readouterr().err
