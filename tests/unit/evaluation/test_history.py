"""Scores in a SQLite file."""

from __future__ import annotations

import math
import multiprocessing
import os
import sqlite3
import threading

import pytest

from guardrail.errors import GuardrailError, HistoryError
from guardrail.evaluation.history import file as history_file
from guardrail.evaluation.history.store import History, Record

SECRET = "the patient takes aspirin"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "scores.sqlite"


@pytest.fixture
def history(path):
    with History(path) as opened:
        yield opened


def _record(at=0.0, score=0.5, metric="faithfulness", **more):
    return Record(at=at, run_id=f"run-{at}", metric=metric, score=score, **more)


# --- writing and reading ------------------------------------------------------------------------------------


def test_what_is_recorded_comes_back(history):
    rows = [
        _record(2.5, 0.75, scorer="onnx:embedded", policy="strict", tags={"release": "7", "ärea": "α"}),
        _record(1.0, -1, metric="answer_score"),
    ]
    history.record_many(rows)
    assert history.records() == [rows[1], rows[0]]
    assert history.records("faithfulness") == rows[:1]
    assert history.metrics() == {"answer_score": 1, "faithfulness": 1}


def test_it_is_there_when_the_file_is_opened_again(path):
    with History(path) as first:
        first.record(_record(1.0, 0.25))
    with History(path) as second, History(path, read_only=True) as third:
        assert second.scores("faithfulness") == third.scores("faithfulness") == [0.25]


def test_scores_are_ordered_by_time_and_then_as_they_came(history):
    history.record_many([_record(2.0, 0.3), _record(1.0, 0.1), _record(2.0, 0.4), _record(1.5, 0.2)])
    assert history.scores("faithfulness") == [0.1, 0.2, 0.3, 0.4]
    assert history.scores("nothing") == []


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ({}, [0.0, 0.1, 0.2, 0.3]),
        ({"since": 1.0}, [0.1, 0.2, 0.3]),
        ({"until": 1.0}, [0.0]),
        ({"since": 1.0, "until": 3.0}, [0.1, 0.2]),
        ({"since": 9.0}, []),
    ],
)
def test_a_stretch_has_its_begin_and_not_its_end(history, bounds, expected):
    history.record_many([_record(float(n), n / 10) for n in range(4)])
    assert history.scores("faithfulness", **bounds) == pytest.approx(expected)
    assert [own.score for own in history.records("faithfulness", **bounds)] == pytest.approx(expected)


def test_no_records_are_no_error(history):
    history.record_many([])
    assert (history.records(), history.metrics(), history.series("faithfulness", every_s=1)) == ([], {}, ())


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"score": math.nan}, "score must be finite, got nan"),
        ({"score": math.inf}, "score must be finite, got inf"),
        ({"score": None}, "score must be a number, got NoneType"),
        ({"at": math.nan}, "at must be finite, got nan"),
        ({"metric": ""}, "metric must not be empty"),
        ({"metric": SECRET * 20}, "metric has 500 characters; at most 200 are allowed"),
        ({"scorer": None}, "scorer must be a str, got NoneType"),
        ({"tags": {"note": SECRET * 20}}, "a tag has 500 characters; at most 200 are allowed"),
        ({"tags": {"n": 1}}, "a tag must be a str, got int"),
        ({"tags": {str(n): "x" for n in range(21)}}, "a record has at most 20 tags, got 21"),
    ],
)
def test_what_does_not_belong_there_is_refused_as_a_whole(history, wrong, said):
    with pytest.raises(ValueError, match=said) as refused:
        history.record_many([_record(1.0), _record(**{"at": 2.0, **wrong})])
    assert SECRET not in str(refused.value)
    assert history.records() == []


def test_old_scores_go(history):
    history.record_many([_record(float(n)) for n in range(5)])
    assert history.prune(2.0) == 2
    assert [own.at for own in history.records()] == [2.0, 3.0, 4.0]
    assert history.prune(0.0) == 0
    with pytest.raises(ValueError, match="before must be finite, got nan"):
        history.prune(math.nan)


# --- series -------------------------------------------------------------------------------------------------


def test_a_series_over_time(history):
    history.record_many([_record(at, score) for at, score in ((5, 0.2), (61, 0.4), (119.9, 0.8), (300, 1.0), (-1, 0))])
    found = history.series("faithfulness", every_s=60)
    assert [(own.start, own.end, own.summary.n) for own in found] == [
        (-60, 0, 1), (0, 60, 1), (60, 120, 2), (300, 360, 1),
    ]  # fmt: skip
    assert [own.summary.mean for own in found] == pytest.approx([0, 0.2, 0.6, 1.0])
    assert all(own.complete for own in found)


def test_a_series_by_number(history):
    history.record_many([_record(float(n), n / 10) for n in range(5)])
    found = history.series("faithfulness", every_n=2, until=5.0)
    assert [(own.start, own.end, own.summary.n, own.complete) for own in found] == [
        (0, 1, 2, True), (2, 3, 2, True), (4, 4, 1, False),
    ]  # fmt: skip
    assert [own.summary.maximum for own in found] == pytest.approx([0.1, 0.3, 0.4])


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "give either every_s or every_n"),
        ({"every_s": 1, "every_n": 1}, "give either every_s or every_n"),
        ({"every_s": 0}, "every_s must be above 0, got 0.0"),
        ({"every_s": math.nan}, "every_s must be finite, got nan"),
        ({"every_n": 0}, "every_n must be a whole number of at least 1, got 0"),
        ({"every_n": 1.5}, "every_n must be a whole number of at least 1, got 1.5"),
    ],
)
def test_settings_of_a_series(history, settings, said):
    with pytest.raises(ValueError, match=said):
        history.series("faithfulness", **settings)


# --- many writers -------------------------------------------------------------------------------------------


def _write(path, name, number):
    with History(path) as history:
        for n in range(number):
            history.record(Record(at=float(n), run_id=f"{name}-{n}", metric="m", score=0.5))


def test_several_processes_begin_and_write_one_file_at_the_same_time(path):
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_write, args=(path, f"process-{n}", 25)) for n in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    with History(path, read_only=True) as history:
        found = history.records()
    assert len(found) == len({own.run_id for own in found}) == 75


def test_several_threads_share_one_history(history):
    def write(name):
        for n in range(50):
            history.record(Record(at=float(n), run_id=f"{name}-{n}", metric="m", score=0.5))

    threads = [threading.Thread(target=write, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len({own.run_id for own in history.records()}) == 200


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_both_sides_of_a_fork_write(history):
    history.record(_record(1.0))
    child = os.fork()
    if not child:
        status = 1
        try:
            history.record(_record(2.0))
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    history.record(_record(3.0))
    assert [own.at for own in history.records()] == [1.0, 2.0, 3.0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize("busy", [False, True])
def test_a_child_inherits_no_connection_unless_one_is_busy_and_then_leaves_it_alone(path, busy):
    with History(path, busy_timeout_s=0.0) as history:
        opened, lock = history._file._connection, history._file._lock
        if busy:
            lock.acquire()
        child = os.fork()
        if not child:
            status = 1
            try:
                history.records()
                kept = any(own is opened for own in history_file._left_behind)
                status = 0 if kept is busy and history._file._connection is not opened else 2
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert (history._file._connection is opened) is busy
        if busy:
            lock.release()
        assert history.records() == []


def test_a_file_that_somebody_else_begins_at_the_same_time(path, monkeypatch):
    """Between the first look and the lock another process makes the file a history."""
    looked = []
    is_history = history_file.HistoryFile._is_history

    def look(file, connection):
        found = is_history(file, connection)
        if not looked:
            looked.append(found)
            with History(path) as other:
                other.record(_record(1.0))
        return found

    monkeypatch.setattr(history_file.HistoryFile, "_is_history", look)
    with History(path) as history:
        assert looked == [False]
        assert [own.at for own in history.records()] == [1.0]


def test_beginning_waits_for_others(path, monkeypatch):
    tries = []
    create = history_file.HistoryFile._create

    def locked_once(file, connection):
        tries.append(1)
        if len(tries) == 1:
            error = sqlite3.OperationalError("database is locked")
            error.sqlite_errorname = "SQLITE_BUSY"
            raise error
        create(file, connection)

    monkeypatch.setattr(history_file.HistoryFile, "_create", locked_once)
    with History(path) as history:
        assert history.records() == []
    assert len(tries) == 2
    path.unlink()
    tries.clear()
    assert "another process keeps it locked" in _error(lambda: History(path, busy_timeout_s=0.0))


def test_it_is_written_ahead(history):
    assert history._file.read(lambda connection: connection.execute("PRAGMA journal_mode").fetchone()) == ("wal",)


def test_what_fails_within_a_transaction_leaves_nothing(history):
    def breaks(connection):
        connection.execute("INSERT INTO scores VALUES (1, 0, 'r', 'm', 0.5, '', '', '{}')")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        history._file.write(breaks)
    history.record(_record(1.0))
    assert [own.at for own in history.records()] == [1.0]


def test_readers_do_not_wait_for_a_writer(path, history):
    history.record(_record(1.0))
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("DELETE FROM scores")
    with History(path, read_only=True, busy_timeout_s=0.0) as reader:
        assert reader.scores("faithfulness") == [0.5]
    writer.execute("ROLLBACK")
    writer.close()


# --- what goes wrong ----------------------------------------------------------------------------------------


def _error(call):
    with pytest.raises(HistoryError) as found:
        call()
    assert isinstance(found.value, GuardrailError)
    return str(found.value)


def test_a_locked_file_says_so(path):
    with History(path, busy_timeout_s=0.0) as history:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        assert "another process keeps it locked" in _error(lambda: history.record(_record()))
        other.execute("ROLLBACK")
        other.close()
        history.record(_record())
        assert len(history.records()) == 1


def test_a_full_disk_says_so_and_loses_nothing_before(path):
    with History(path) as history:
        history.record(_record(1.0))
        history._file.read(lambda connection: connection.execute("PRAGMA max_page_count = 4").fetchall())
        many = [_record(2.0, tags={"t": "x" * 199}) for _ in range(500)]
        assert "the disk is full: free some space" in _error(lambda: history.record_many(many))
        assert [own.at for own in history.records()] == [1.0]


def test_a_read_only_history_cannot_be_written(path):
    with History(path) as history:
        history.record(_record(1.0))
    with History(path, read_only=True) as history:
        assert "it cannot be written" in _error(lambda: history.record(_record(2.0)))


def test_a_file_of_a_newer_version(path):
    History(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {history_file.SCHEMA_VERSION + 1}")
    connection.close()
    assert "has format 2, and this version of guardrail reads format 1: update guardrail" in _error(
        lambda: History(path)
    )


@pytest.mark.parametrize(
    "made_by", ["CREATE TABLE scores (at)", "PRAGMA user_version = 1", "PRAGMA application_id = 7"]
)
def test_a_database_of_something_else_is_left_alone(path, made_by):
    with sqlite3.connect(path) as connection:
        connection.execute(made_by)
    connection.close()
    before = path.read_bytes()
    assert "is a database of something else: name another file" in _error(lambda: History(path))
    assert path.read_bytes() == before


def test_a_file_that_is_no_database(path):
    path.write_text("at,score\n" * 100)
    assert "it is no SQLite file" in _error(lambda: History(path))


def test_a_damaged_file(path):
    with History(path) as history:
        history.record_many([_record(float(n)) for n in range(200)])
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)
    with History(path) as history:
        assert "it is damaged" in _error(history.records)


def test_a_folder_that_is_not_there(tmp_path):
    assert "its folder must exist" in _error(lambda: History(tmp_path / "no" / "scores.sqlite"))


def test_reading_makes_no_file(path):
    assert "there is no such file" in _error(lambda: History(path, read_only=True))
    assert not path.exists()
    path.touch()
    assert "is empty: there is no history in it" in _error(lambda: History(path, read_only=True))


def test_a_closed_history_says_so(path):
    history = History(path)
    history.close()
    history.close()
    assert "is closed" in _error(history.records)
    assert "is closed" in _error(lambda: history.record(_record()))
