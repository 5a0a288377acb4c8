"""Work in a background thread that nobody waits for."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
import threading

import pytest

from guardrail.errors import ConfigurationError
from guardrail.evaluation.history.background import Background

WAIT_S = 30.0


class Recording:
    """Work that remembers what it got, and waits where a test says so."""

    def __init__(self):
        self.got = []
        self.threads = set()
        self.begun = threading.Event()
        self.go_on = threading.Event()

    async def __call__(self, what):
        self.threads.add(threading.current_thread().name)
        if what == "wait":
            self.begun.set()
            await asyncio.to_thread(self.go_on.wait, WAIT_S)
        if what == "for ever":
            self.begun.set()
            await asyncio.Event().wait()
        if what == "fail":
            raise KeyError("the text of an answer")
        self.got.append(what)


@pytest.fixture
def work():
    return Recording()


@pytest.fixture
def background(work):
    made = Background(work, name="in-the-back", max_waiting=3)
    yield made
    work.go_on.set()
    made.close(0.1)


def test_one_thread_does_one_after_the_other(work, background):
    assert [background.offer(n) for n in range(3)] == [True] * 3
    assert background.flush(WAIT_S)
    assert background.offer(3)
    assert background.close(WAIT_S)
    assert (work.got, work.threads) == ([0, 1, 2, 3], {"in-the-back"})
    assert not [thread for thread in threading.enumerate() if thread.name == "in-the-back"]


def test_nothing_runs_before_it_is_needed(background):
    assert background.flush(0.0)
    assert "in-the-back" not in {thread.name for thread in threading.enumerate()}


def test_what_is_too_much_is_dropped_and_counted(work, background):
    background.offer("wait")
    assert work.begun.wait(WAIT_S)
    assert not background.flush(0.0)  # nothing waits, but something is being done
    assert [background.offer(n) for n in range(5)] == [True, True, True, False, False]
    assert not background.flush(0.0)
    work.go_on.set()
    assert background.flush(WAIT_S)
    assert work.got == ["wait", 0, 1, 2]
    assert dict(background.counts) == {"offered": 6, "dropped": 2}


def test_a_failure_is_logged_without_its_text_and_ends_nothing(work, background, caplog):
    with caplog.at_level(logging.ERROR, logger="guardrail"):
        background.offer("fail")
        background.offer(1)
        assert background.close(WAIT_S)
    assert work.got == [1]
    assert [record.getMessage() for record in caplog.records] == ["in-the-back: the work failed with KeyError"]


def test_closing_cancels_what_does_not_end_and_drops_what_waits(work, background, caplog):
    background.offer("for ever")
    assert work.begun.wait(WAIT_S)
    background.offer(1)
    assert not background.close(0.0)
    assert background.flush(WAIT_S)
    assert work.got == []
    assert [record.getMessage() for record in caplog.records] == [
        "in-the-back: the work was not finished when it had to end"
    ]
    assert background.close(0.0)


def test_what_is_closed_takes_nothing(work, background):
    assert background.close(WAIT_S)
    assert not background.offer(1)
    assert background.counts["dropped"] == 1


def test_a_thread_that_cannot_be_started_costs_only_the_work(work, background, monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert not background.offer(1)
    monkeypatch.undo()
    assert background.offer(2)
    assert background.flush(WAIT_S)
    assert work.got == [2]


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, None])
def test_the_room_is_a_number(work, wrong):
    with pytest.raises(ConfigurationError, match="max_waiting must be an integer of at least 1"):
        Background(work, name="x", max_waiting=wrong)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_child_has_a_thread_of_its_own_and_none_of_its_parents_work(work, background):
    background.offer("wait")
    assert work.begun.wait(WAIT_S)
    background.offer("of the parent")
    child = os.fork()
    if not child:
        status = 1
        try:
            work.got.clear()
            background.offer("of the child")
            done = background.flush(WAIT_S)
            status = 0 if done and work.got == ["of the child"] and background.counts["offered"] == 1 else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    work.go_on.set()
    assert background.flush(WAIT_S)
    assert work.got == ["wait", "of the parent"]


_EXIT = """
import asyncio, sys
from guardrail.evaluation.history.background import Background

async def work(what):
    if what == "for ever":
        await asyncio.Event().wait()
    await asyncio.sleep(0.05)
    print("done", what, flush=True)

background = Background(work, name="b", max_waiting=9)
for what in sys.argv[1:]:
    background.offer(what)
"""


@pytest.mark.parametrize(("given", "done"), [(["1", "2"], "done 1\ndone 2\n"), (["1", "for ever", "2"], "done 1\n")])
def test_what_waits_at_the_exit_of_the_interpreter_gets_a_moment(given, done):
    ended = subprocess.run([sys.executable, "-c", _EXIT, *given], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (0, done)
    assert "Traceback" not in ended.stderr
