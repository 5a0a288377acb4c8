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
from guardrail.errors import HistoryError, InputError
from guardrail.evaluation.benchmarks.quality import NO_CLAIM
from guardrail.evaluation.calibration import calibrate
from guardrail.evaluation.citations import CitedClaim
from guardrail.evaluation.history.background import Background
from guardrail.evaluation.history.observer import first_attempt_score, is_sampled
from guardrail.evaluation.history.store import History, Record
from guardrail.evaluation.labelled import LabelledAnswer
from guardrail.testing import FakeEntailment
from guardrail.types import Attempt, ClaimVerdict, Segment, SegmentKind, VerdictLabel

WAIT_S = 30.0
DAY = 86_400
NEW_YEAR = 20_454 * DAY  # 2026-01-01
OTHER = {"policy": "balanced", "scorer": "onnx"}
CLAIM = "Entry is free."
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


def test_a_history_that_is_moved_away_is_left_to_those_who_moved_it(path, tmp_path):
    (tmp_path / "old").mkdir()
    with History(path) as history, History(path, read_only=True) as reader:
        history.record(record(at=1.0))
        assert [own.at for own in reader.records()] == [1.0]
        for file in path.parent.glob("scores.sqlite*"):
            file.rename(tmp_path / "old" / file.name)
        with pytest.raises(HistoryError, match="there is no such file"):
            reader.records()
        history.record(record(at=2.0))
        assert [own.at for own in reader.records()] == [2.0]
    with History(tmp_path / "old" / path.name, read_only=True) as old:
        assert [own.at for own in old.records()] == [1.0]


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


# --- citations ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"claim": "Tea.", "cited": "13"}, "must be a tuple of passage ids"),
        ({"claim": "Tea.", "cited": (3,)}, "must be a tuple of passage ids"),
        ({"claim": None}, "claim and before of a CitedClaim must be str"),
        ({"claim": "Tea.", "before": None}, "claim and before of a CitedClaim must be str"),
    ],
)
def test_a_cited_claim_of_other_types_is_refused(fields, said):
    with pytest.raises(InputError, match=said):
        CitedClaim(**fields)


# --- the table ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "shown"),
    [
        (60, ["n", "mean", "p10", "<", "0.5", "alarm"]),
        (120, ["n", "mean", "sd", "p10", "<", "0.5", "min", "max", "alarm"]),
    ],
)
def test_a_narrow_terminal_has_fewer_columns_and_no_figure_is_cut(path, capsys, monkeypatch, columns, shown):
    monkeypatch.setenv("COLUMNS", str(columns))
    with History(path) as history:
        history.record_many([record(at=NEW_YEAR + n, score=0.9 - 0.8 * (n > 7)) for n in range(10)])
    assert main(["history", str(path), "--by", "2"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= columns and "…" not in line for line in lines)
    assert lines[0].split() == ["m", *shown]
    assert lines[6].split()[:4] == ["2026-01-01", "00:00:08", "2", "0.100"]
    assert lines[6].endswith("critical −88.9%")


# --- first attempts -----------------------------------------------------------------------------------------


def _attempt(*verdicts, **more):
    return Attempt(**{"number": 1, "text": "…", "verdicts": verdicts, "complete": True, **more})


def _verdict(kind=SegmentKind.CLAIM, **more):
    return ClaimVerdict(segment=Segment(start=0, end=len(CLAIM), text=CLAIM, kind=kind), **more)


@pytest.mark.parametrize(
    ("attempt", "expected"),
    [
        (_attempt(_verdict(delta_r=0.2), _verdict(delta_r=0.4)), 0.4),
        (_attempt(_verdict(delta_r=0.2), _verdict(SegmentKind.GREETING, reason="kind")), 0.2),
        (_attempt(_verdict(delta_r=0.2), _verdict(SegmentKind.HEADING, reason="scoring_error")), None),
        (_attempt(_verdict(delta_r=0.2), _verdict(reason="kind")), None),
        (_attempt(_verdict(delta_r=0.2), complete=False, reason="timeout"), None),
        (_attempt(_verdict(delta_r=0.9), complete=False, reason="claims_failed"), 0.9),
        (_attempt(_verdict(reason="kind"), worst_delta_r=0.3), 0.3),
        (_attempt(), NO_CLAIM),
    ],
)
def test_what_is_known_of_a_first_attempt(attempt, expected):
    assert first_attempt_score(attempt, 0.5) == expected


@pytest.mark.parametrize(("delta", "expected"), [(0.9, 2.5), (0.4, 0.5)])
def test_the_delta_of_the_policy_decides_what_is_stopped_at_any_delta(delta, expected):
    """A contradiction that a model finds alone, without a calibration, stops what passes."""
    assert first_attempt_score(_attempt(_verdict(verdict=VerdictLabel.CONTRADICTED, delta_r=0.5)), delta) == expected


# --- the choice ---------------------------------------------------------------------------------------------


def test_every_process_chooses_the_same():
    code = (
        "from guardrail.evaluation.history.observer import is_sampled\n"
        "print([n for n in range(99) if is_sampled(str(n), .2)])"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2")
    }
    assert told == {f"{[n for n in range(99) if is_sampled(str(n), 0.2)]}\n"}
