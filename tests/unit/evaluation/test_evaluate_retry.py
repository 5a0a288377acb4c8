"""What failed is measured again, and nothing else: the results become those of a run without errors."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from guardrail.cli import main
from guardrail.errors import ConfigurationError, InputError, ScoringError
from guardrail.evaluation.datasets.evaluating import evaluate
from guardrail.evaluation.datasets.results import read_evaluation
from guardrail.evaluation.datasets.retrying import FINAL
from guardrail.testing import ScriptedJudge
from tests.data_sets import ROWS, SUPPORTED, fake, lines, save
from tests.retries import FOURTH, Flaky, forty, left, retry

DOGS = "Dogs are welcome on the terrace."
ITEMS = [
    *ROWS,
    {"id": "abstained", "context": [SUPPORTED], "answer": "I don't know."},
    {"id": "hello", "context": [SUPPORTED], "answer": "Hello!"},
    {"id": "last", "context": [SUPPORTED], "answer": DOGS, "label": 0},
]
METRICS = ["faithfulness", "judge", "citation_f1", "contradiction", "reference_delta_r", "rouge_l"]


def judge(failing=(), error: object = "timeout"):
    return ScriptedJudge(lambda claim: error if claim in failing else "yes" if claim == SUPPORTED else "no")


def run(data, out, *, asked=None, failing=None, **options):
    settings = {"metrics": METRICS, "judge": judge() if asked is None else asked, "verifier": fake(failing), **options}
    return evaluate(data, out=out, **settings)


@pytest.fixture
def data(tmp_path):
    return save(tmp_path / "data.jsonl", ITEMS)


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out.jsonl"


@pytest.fixture
def whole(data, tmp_path):
    """The results of a run in which nothing failed."""
    run(data, tmp_path / "whole.jsonl")
    return (tmp_path / "whole.jsonl").read_bytes()


@pytest.fixture
def numbers(tmp_path):
    return forty(tmp_path)


# --- which errors ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error", ["timeout", "rate_limited", "transport", "failed", "budget", ScoringError("down"), ValueError("secret")]
)
def test_a_judge_that_could_not_be_asked_is_asked_again(data, out, whole, error):
    found = run(data, out, asked=judge({DOGS}, error))
    assert sum(found.metrics["judge"].errors.values()) == 4
    assert out.read_bytes() != whole
    again = judge()
    found = run(data, out, asked=again, retry_errors=True)
    assert out.read_bytes() == whole
    assert {pair.hypothesis for pair in again.pairs} == {DOGS}
    assert len(again.pairs) == found.retried == 2
    assert not left(out).exists()


def test_the_judge_is_not_asked_again_where_scoring_failed(data, out, whole):
    found = run(data, out, failing="Dogs")
    assert found.errors["scoring_error"] == 2
    again = judge()
    assert run(data, out, asked=again, retry_errors=True).retried == 2
    assert out.read_bytes() == whole
    assert again.pairs == []


@pytest.mark.parametrize(
    "error", [KeyError("secret"), OSError("down"), asyncio.CancelledError(), "rate_limited", "a word of its own"]
)
@pytest.mark.parametrize("concurrency", [1, 4])
def test_what_a_metric_raised_or_said_is_measured_again(numbers, out, error, concurrency):
    evaluate(numbers[0], metrics=[Flaky(failing=FOURTH, error=error)], out=out, verifier=fake())
    metric = Flaky()
    assert retry(numbers, out, metric, concurrency=concurrency).retried == 10
    assert metric.asked == sorted(FOURTH, key=int)
    assert out.read_bytes() == numbers[1]


@pytest.mark.parametrize("error", ["unreadable", "misled"])
def test_what_the_judge_replied_is_final(data, out, error):
    run(data, out, asked=judge({DOGS}, error))
    before, again = out.read_bytes(), judge()
    assert f"judge_{error}" in FINAL
    assert run(data, out, asked=again, retry_errors=True).retried == 0
    assert (out.read_bytes(), again.pairs) == (before, [])


def test_a_claim_that_is_final_does_not_hide_one_that_is_not(tmp_path, out):
    data = save(tmp_path / "d.jsonl", [{"context": [SUPPORTED], "answer": f"{DOGS} {SUPPORTED} Cats are not welcome."}])
    final = {DOGS: "misled", "Cats are not welcome.": "unreadable"}
    options = {"metrics": ["judge"], "verifier": fake(), "out": out}
    found = evaluate(data, judge=ScriptedJudge(final | {SUPPORTED: "timeout"}), **options)
    assert found.errors == {"judge_timeout": 1}
    found = evaluate(data, judge=ScriptedJudge(final | {SUPPORTED: "yes"}), retry_errors=True, **options)
    assert (found.retried, found.errors) == (1, {"judge_misled": 1})
    assert lines(out)[1]["details"]["judge"] == {"errors": {"misled": 1, "unreadable": 1}}
    assert evaluate(data, judge=ScriptedJudge("yes"), retry_errors=True, **options).retried == 0


def test_every_other_error_of_our_metrics_is_final(whole, tmp_path):
    said = {error for line in lines(tmp_path / "whole.jsonl")[1:] for error in line.get("errors", {}).values()}
    assert said | {"judge_unreadable", "judge_misled"} == FINAL


# --- what stays as it is --------------------------------------------------------------------------------------------


def test_nothing_to_retry_changes_nothing(data, out, whole):
    run(data, out)
    asked = judge()
    assert run(data, out, asked=asked, retry_errors=True).retried == 0
    assert (out.read_bytes(), asked.pairs) == (whole, [])
    assert not left(out).exists()


def test_without_results_it_is_a_first_run(data, out, whole):
    assert run(data, out, retry_errors=True).retried == 0
    assert out.read_bytes() == whole


def test_an_error_that_stays_keeps_its_line(numbers, out):
    evaluate(numbers[0], metrics=[Flaky(failing=FOURTH)], out=out, verifier=fake())
    before = out.read_bytes()
    found = retry(numbers, out, Flaky(failing=FOURTH))
    assert (found.retried, found.errors) == (10, {"rate_limited": 10})
    assert out.read_bytes() == before
    retry(numbers, out, Flaky(failing={"4"}))
    assert [line["id"] for line in lines(out)[1:] if "errors" in line] == ["4"]
    metric = Flaky()
    assert retry(numbers, out, metric).retried == 1
    assert metric.asked == ["4"]
    assert out.read_bytes() == numbers[1]


def test_figures_do_not_tell_that_something_was_retried(numbers, out, tmp_path):
    evaluate(numbers[0], metrics=[Flaky(failing=FOURTH)], out=out, verifier=fake())
    found = retry(numbers, out, Flaky())
    assert found.to_json() == read_evaluation(tmp_path / "n.whole").to_json()
    assert found == read_evaluation(out)


def test_text_and_labels_stay(data, out, tmp_path):
    run(data, tmp_path / "whole.jsonl", with_text=True)
    run(data, out, asked=judge({SUPPORTED}), with_text=True)
    run(data, out, retry_errors=True, with_text=True)
    assert out.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_links_and_permissions_stay(numbers, out, tmp_path):
    evaluate(numbers[0], metrics=[Flaky(failing=FOURTH)], out=out, verifier=fake())
    out.chmod(0o640)
    link = tmp_path / "elsewhere"
    link.symlink_to(out)
    retry(numbers, link, Flaky())
    assert link.is_symlink()
    assert out.stat().st_mode & 0o777 == 0o640
    assert out.read_bytes() == numbers[1]


def test_progress_counts_what_is_copied_as_done(numbers, out):
    evaluate(numbers[0], metrics=[Flaky(failing=FOURTH)], out=out, verifier=fake())
    seen = []
    retry(numbers, out, Flaky(), progress=lambda *p: seen.append(p))
    assert seen == [(done, 40) for done in range(30, 41)]


def test_items_far_apart_are_measured_side_by_side(tmp_path, out):
    data = save(tmp_path / "d.jsonl", [{"id": str(n), "context": "C.", "answer": "A."} for n in range(2_000)])
    evaluate(data, metrics=[Flaky(failing={"100", "900", "1700"})], out=out, verifier=fake())
    metric = Flaky(turns=20)
    assert evaluate(data, metrics=[metric], out=out, verifier=fake(), retry_errors=True).retried == 3
    assert metric.most == 3
    assert [line["n"] for line in lines(out)[1:]] == list(range(1, 2_001))


# --- other evaluations ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"metrics": ["judge"]}, "metrics was"),
        ({"asked": ScriptedJudge("yes", judge_id="another")}, "metrics.judge.judge was"),
        ({"with_text": True}, "with_text was false, now true"),
        ({"limit": 3}, "has results of 9 items, and with this limit there are 3"),
    ],
)
def test_results_of_another_evaluation_are_refused(data, out, changed, said):
    run(data, out, asked=judge({DOGS}))
    before = out.read_bytes()
    with pytest.raises(InputError) as caught:
        run(data, out, retry_errors=True, **changed)
    assert said in str(caught.value)
    assert "--restart" in str(caught.value)
    assert out.read_bytes() == before
    assert not left(out).exists()


def test_other_data_are_refused(data, out):
    run(data, out, asked=judge({DOGS}))
    save(data, ITEMS[::-1])
    with pytest.raises(InputError, match=r"file\.sha256 was"):
        run(data, out, retry_errors=True)


def test_to_begin_again_and_to_keep_what_there_is_exclude_each_other(data, out):
    with pytest.raises(ConfigurationError, match="choose one"):
        run(data, out, restart=True, retry_errors=True)
    assert not out.exists()


# --- the command ----------------------------------------------------------------------------------------------------

_JUDGES = """
import asyncio, os
from pathlib import Path
from guardrail.testing import ScriptedJudge

class Judge(ScriptedJudge):
    async def judge(self, pairs):
        with open("asked.txt", "a") as file:
            file.writelines(pair.hypothesis + chr(10) for pair in pairs)
        await asyncio.sleep(float(os.environ.get("PAUSE", 0)))
        return await super().judge(pairs)

judge = Judge(lambda claim: "timeout" if claim.endswith("7 chairs.") and not Path("mended").exists() else "yes")
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "own_judges.py").write_text(_JUDGES, encoding="utf-8")
    save(tmp_path / "d.jsonl", [{"context": "C is one.", "answer": f"The desk has {n} chairs."} for n in range(100)])
    return tmp_path


COMMAND = [sys.executable, "-m", "guardrail", "evaluate", "d.jsonl", "--metrics", "judge"]
COMMAND += ["--judge", "own_judges:judge", "--concurrency", "1", "--out"]


def command(folder, *options, out="out.jsonl"):
    return subprocess.run([*COMMAND, out, *options], capture_output=True, text=True, check=False, cwd=folder)


def test_the_command_retries_and_says_so(folder):
    first = command(folder)
    assert first.returncode == 0
    assert "judge: 10 items without a score (judge_timeout 10)" in first.stdout
    assert "--retry-errors" in first.stdout
    (folder / "mended").touch()
    (folder / "asked.txt").unlink()
    again = command(folder, "--retry-errors", "--json")
    assert (again.returncode, again.stderr) == (0, "guardrail: measured 10 items again\n")
    assert json.loads(again.stdout)["errors"] == {}
    asked = (folder / "asked.txt").read_text(encoding="utf-8").splitlines()
    assert asked == [f"The desk has {n} chairs." for n in range(7, 100, 10)]
    command(folder, out="whole.jsonl")
    results = (folder / "out.jsonl").read_bytes()
    assert results == (folder / "whole.jsonl").read_bytes()
    more = command(folder, "--retry-errors")
    assert more.stderr == "guardrail: no item had an error that another try can change; nothing was measured again\n"
    assert "--retry-errors" not in more.stdout
    assert (folder / "out.jsonl").read_bytes() == results


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGINT for another process")
def test_an_interrupt_of_the_command_loses_nothing(folder):
    command(folder)
    out, asked = folder / "out.jsonl", folder / "asked.txt"
    before = out.read_bytes()
    (folder / "mended").touch()
    asked.unlink()
    process = subprocess.Popen(
        [*COMMAND, "out.jsonl", "--retry-errors"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder, env={**os.environ, "PAUSE": "0.2"},
    )  # fmt: skip
    until = time.monotonic() + 60
    while not (left(out).exists() and left(out).read_bytes().count(b"\n") > 27):
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    done = 90 + sum(line["id"].endswith("8") for line in lines(left(out))[1:])
    assert process.returncode == 130
    assert said == f"guardrail: interrupted after {done} of 100 items; run the same command again to go on\n"
    assert out.read_bytes() == before
    assert command(folder, "--retry-errors").stderr == "guardrail: measured 10 items again\n"
    command(folder, out="whole.jsonl")
    assert out.read_bytes() == (folder / "whole.jsonl").read_bytes()
    again = asked.read_text(encoding="utf-8").splitlines()[:-100]
    assert 10 <= len(again) <= 11  # one was under way
    assert len(set(again)) == 10


def test_restart_and_retry_exclude_each_other_on_the_command_line(folder):
    both = command(folder, "--retry-errors", "--restart")
    assert both.returncode == 2
    assert "not allowed with argument" in both.stderr
    assert not (folder / "out.jsonl").exists()


def test_help_says_what_is_retried(capsys):
    assert main(["evaluate", "--help"]) == 0
    text = capsys.readouterr().out
    assert "With --retry-errors, items with an error that another try can change" in text
    assert "OUT.retry" in text
