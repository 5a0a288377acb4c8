"""What can go wrong where scores are recorded: forks, threads that end, stretches that are not over, other policies."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
import threading
import time

import pytest

from guardrail.cli import main
from guardrail.evaluation.calibration import calibrate
from guardrail.evaluation.history.background import Background
from guardrail.evaluation.history.store import History, Record
from guardrail.evaluation.labelled import LabelledAnswer
from guardrail.testing import FakeEntailment

WAIT_S = 30.0
DAY = 86_400
NEW_YEAR = 20_454 * DAY  # 2026-01-01
OTHER = {"policy": "balanced", "scorer": "onnx"}
OWN = {"policy": "calibrated", "scorer": "/srv/models/fake"}


def record(at=0.0, score=0.5, **more):
    return Record(**{"at": at, "run_id": "r", "metric": "m", "score": score, **more})


@pytest.fixture
def path(tmp_path):
    return tmp_path / "scores.sqlite"


# --- forks --------------------------------------------------------------------------------------------------

_PARENT_CLOSES = """
import os, sys
from guardrail.evaluation.history.store import History, Record

def record(name):
    history.record(Record(at=0.0, run_id=name, metric="m", score=0.5))

history = History(sys.argv[1])
record("parent")
(told, tell), (go_on, goes) = os.pipe(), os.pipe()
child = os.fork()
if not child:
    record("child")
    os.write(tell, b".")
    os.read(go_on, 1)
    record("child, later")
    os._exit(0)
os.read(told, 1)
history.close()
os.write(goes, b".")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
_PARENT_WRITES = """
import os, sys, threading
from guardrail.evaluation.history.store import History, Record

def write():
    while not over.is_set():
        history.record_many([Record(at=0.0, run_id="parent", metric="m", score=0.5)] * 200)
        begun.set()

history, begun, over = History(sys.argv[1], busy_timeout_s=10.0), threading.Event(), threading.Event()
thread = threading.Thread(target=write)
thread.start()
begun.wait()
failed = 0
for _ in range(10):
    child = os.fork()
    if not child:
        try:
            history.record(Record(at=0.0, run_id="child", metric="of children", score=0.5))
        except BaseException:
            os._exit(1)
        os._exit(0)
    failed += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
over.set()
thread.join()
sys.exit(failed)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize(("code", "metric", "number"), [(_PARENT_CLOSES, "m", 3), (_PARENT_WRITES, "of children", 10)])
def test_a_child_loses_nothing_and_is_never_locked_out(path, code, metric, number):
    ended = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, timeout=100)
    assert (ended.returncode, ended.stderr) == (0, "")
    with History(path, read_only=True) as history:
        assert history.metrics()[metric] == number


# --- files that go away -------------------------------------------------------------------------------------


def test_a_history_that_is_removed_is_begun_again(path):
    with History(path) as history:
        history.record(record(at=1.0))
        for file in path.parent.iterdir():
            file.unlink()
        history.record(record(at=2.0))
        with History(path, read_only=True) as other:
            assert [own.at for own in other.records()] == [2.0]


def test_a_history_in_place_of_another_is_read_and_written(path, tmp_path):
    aside = tmp_path / "aside.sqlite"
    with History(aside) as other:
        other.record(record(at=5.0))
    with History(path) as history, History(path, read_only=True) as reader:
        history.record(record(at=1.0))
        aside.replace(path)
        assert [own.at for own in reader.records()] == [5.0]
        history.record(record(at=6.0))
        assert [own.at for own in reader.records()] == [5.0, 6.0]


@pytest.mark.parametrize("at", [1.8e12, -7e10])
def test_a_time_that_is_not_in_seconds_is_refused(path, at):
    with History(path) as history, pytest.raises(ValueError, match="at must be in seconds since the epoch"):
        history.record(record(at=at))


# --- the thread ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()])
def test_work_that_ends_the_program_ends_only_itself(error, caplog):
    got = []

    async def work(what):
        if what is error:
            raise error
        got.append(what)

    background = Background(work, name="b", max_waiting=3)
    with caplog.at_level(logging.ERROR, logger="guardrail"):
        assert background.offer(error)
        assert background.offer(1)
        assert background.close(WAIT_S)
    assert got == [1]
    assert [own.getMessage() for own in caplog.records] == [f"b: the work failed with {type(error).__name__}"]


def test_a_thread_that_cannot_work_drops_what_waits_and_the_next_offer_begins_another(monkeypatch, caplog):
    got = []

    async def work(what):
        got.append(what)

    def refuse():
        raise OSError("too many open files")

    background = Background(work, name="b", max_waiting=3)
    with monkeypatch.context() as broken:
        broken.setattr(asyncio, "Runner", refuse)
        assert background.offer(1)
        assert background.flush(WAIT_S)
    assert background.counts == {"offered": 1, "dropped": 1}
    assert [own.getMessage() for own in caplog.records] == ["b: its thread ended with OSError"]
    assert background.offer(2)
    assert background.close(WAIT_S)
    assert got == [2]


def test_what_is_dropped_at_the_end_is_counted():
    begun = threading.Event()

    async def work(what):
        begun.set()
        await asyncio.Event().wait()

    background = Background(work, name="b", max_waiting=3)
    for n in range(3):
        background.offer(n)
        assert begun.wait(WAIT_S)
    assert not background.close(0.0)
    assert background.counts == {"offered": 3, "dropped": 2}


# --- stretches that are not over ----------------------------------------------------------------------------


def test_a_stretch_is_complete_when_it_is_over_and_nothing_cuts_it(path):
    with History(path) as history:
        history.record_many([record(at=NEW_YEAR + n * DAY / 2) for n in range(8)])
        cut = history.series("m", every_s=DAY, since=NEW_YEAR + DAY / 2, until=NEW_YEAR + 3.5 * DAY)
        assert [(own.summary.n, own.complete) for own in cut] == [(1, False), (2, True), (2, True), (1, False)]
        assert all(own.complete for own in history.series("m", every_s=DAY, since=NEW_YEAR))


def test_a_day_that_is_not_over_has_no_alarm(path, capsys):
    now = time.time()
    with History(path) as history:
        history.record_many([record(at=now - n * DAY, score=0.9) for n in range(1, 6)])
        history.record(record(at=now, score=0.0))
    assert main(["history", str(path), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["metrics"]["m"]
    assert [(own["complete"], own["alarm"] and own["alarm"]["level"]) for own in rows[-2:]] == [
        (True, "ok"),
        (False, None),
    ]
    assert main(["history", str(path)]) == 0
    assert "filling" in capsys.readouterr().out.splitlines()[7]


# --- drift --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def profile(tmp_path_factory):
    scores = {f"The desk opens at ten on day {n}.": n / 200 for n in range(100, 160)}
    answers = [
        LabelledAnswer(id=text, question="", context=(text,), answer=text, grounded=bool(at % 2))
        for at, text in enumerate(scores)
    ]
    path = tmp_path_factory.mktemp("profile") / "profile.json"
    calibrate(answers, target_miss=0.2, entailment=FakeEntailment(scores)).save(path)
    return str(path)


def test_only_answers_of_the_profiles_policy_and_model_drift(path, profile, capsys):
    with History(path) as history:
        history.record_many([record(metric="answer_score", score=0.0, **OWN)] * 60)
        history.record_many([record(metric="answer_score", score=0.9, **{**OWN, "policy": "balanced"})] * 40)
        history.record_many([record(metric="answer_score", score=0.9, **{**OWN, "scorer": "fake-2"})] * 30)
    assert main(["history", str(path), "--profile", profile, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["drift"]["level"], found["drift"]["n"], found["drift_left_out"]) == ("critical", 60, 70)
    assert main(["history", str(path), "--profile", profile]) == 1
    assert "left out: 70 answers of other policies or models" in capsys.readouterr().out


def test_a_profile_of_another_policy_has_nothing_to_compare(path, profile, capsys):
    with History(path) as history:
        history.record_many([record(metric="answer_score", **OTHER)] * 60)
    assert main(["history", str(path), "--profile", profile]) == 2
    said = capsys.readouterr().err
    assert "no answer_score of the profile's policy 'calibrated' with its model 'fake'" in said
    assert "only of policy 'balanced' with 'onnx'" in said
