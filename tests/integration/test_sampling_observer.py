"""A share of live traffic, scored beside it into a history."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import subprocess
import sys
import threading

import pytest

from guardrail import Guardrail, Policy, ScoringError
from guardrail.errors import ConfigurationError, GenerationError
from guardrail.evaluation.benchmarks.quality import NO_CLAIM
from guardrail.evaluation.datasets.measurement import Measurement
from guardrail.evaluation.history.observer import OWN_METRICS, SamplingObserver, is_sampled
from guardrail.evaluation.history.store import History
from guardrail.scope import run_scope
from guardrail.telemetry import default_observers
from guardrail.testing import FakeEntailment, ManualClock, ScriptedGenerator
from guardrail.types import EntailmentScore

WAIT_S = 30.0
CONTEXT = ["The desk opens at ten. Entry is free."]
RIGHT = "Entry is free."
WRONG = "The desk opens at nine."


class Scored:
    """A metric that gives a score, raises, or never ends."""

    higher_is_better = True

    def __init__(self, result=0.75, name="own"):
        self.name = name
        self.result = result
        self.items = []
        self.begun = threading.Event()
        self.scopes = []

    async def measure(self, item):
        self.items.append(item.item)
        self.scopes.append(run_scope.get())
        self.begun.set()
        if isinstance(self.result, BaseException):
            raise self.result
        if self.result == "for ever":
            await asyncio.Event().wait()
        return self.result if isinstance(self.result, Measurement) else Measurement(score=self.result)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "scores.sqlite"


@pytest.fixture
def history(path):
    with History(path, busy_timeout_s=0.0) as opened:
        yield opened


@pytest.fixture
def sampling(history):
    """Makes observers that take every run."""
    made = []

    def make(**settings):
        made.append(SamplingObserver(history, **{"share": 1.0, **settings}))
        return made[-1]

    yield make
    for observer in made:
        observer.close(0.2)


def _run(observer, *answers, **settings):
    guard = Guardrail(observers=[observer], **settings)
    return guard.run_sync(ScriptedGenerator(*answers), question="When does it open?", context=CONTEXT)


def _scores(history):
    return {name: history.scores(name) for name in history.metrics()}


# --- what is recorded ---------------------------------------------------------------------------------------


def test_an_accepted_answer(history, sampling):
    observer = sampling(clock=ManualClock(1000.0), tags={"release": "7"})
    outcome = _run(observer, RIGHT)
    assert observer.flush(WAIT_S)
    found = {record.metric: record for record in history.records()}
    assert {name: record.score for name, record in found.items() if name != "answer_score"} == {
        "accepted": 1.0, "refused": 0.0, "attempts": 1.0,
    }  # fmt: skip
    assert found["answer_score"].score == outcome.attempts[0].worst_delta_r
    assert {(r.at, r.run_id, r.scorer, r.policy, r.tags["release"]) for r in found.values()} == {
        (1000.0, outcome.run_id, outcome.scorer, "balanced", "7")
    }
    assert (observer.stats.sampled, observer.stats.recorded, observer.stats.dropped) == (1, 1, 0)


def test_the_first_attempt_has_the_score_and_the_outcome_the_rest(history, sampling):
    observer = sampling()
    outcome = _run(observer, WRONG, RIGHT)
    assert observer.flush(WAIT_S)
    assert outcome.accepted
    scores = _scores(history)
    assert (scores["accepted"], scores["refused"], scores["attempts"]) == ([1.0], [0.0], [2.0])
    assert scores["answer_score"][0] == pytest.approx(2.0 + outcome.attempts[0].worst_delta_r)


def test_a_refusal(history, sampling):
    observer = sampling(metrics=[metric := Scored()])
    assert not _run(observer, WRONG).accepted
    assert observer.flush(WAIT_S)
    scores = _scores(history)
    assert (scores["accepted"], scores["refused"]) == ([0.0], [1.0])
    assert metric.items == []  # the text is the guard's own


def test_an_answer_without_a_claim(history, sampling):
    observer = sampling()
    _run(observer, "Hello! How can I help you?")
    assert observer.flush(WAIT_S)
    assert history.scores("answer_score") == [NO_CLAIM]


def test_a_run_without_a_context_has_no_answer_score(history, sampling):
    observer = sampling()
    Guardrail(observers=[observer]).run_sync(ScriptedGenerator(RIGHT), question="Fee?", context=[])
    assert observer.flush(WAIT_S)
    assert "answer_score" not in history.metrics()
    assert history.scores("refused") == [1.0]


@pytest.mark.parametrize("on_error", ["refuse", "pass_marked"])
def test_a_checker_that_fails_has_no_answer_score(history, sampling, on_error):
    def fails(premise, hypothesis):
        raise ScoringError("the model is gone", scorer="fake")

    observer = sampling()
    _run(observer, RIGHT, policy=Policy(on_error=on_error), entailment=FakeEntailment(fails))
    assert observer.flush(WAIT_S)
    assert "answer_score" not in history.metrics()
    assert observer.stats.unscored == 1


def test_the_reference_formula_scores_the_whole_answer(history, sampling):
    observer = sampling()
    outcome = _run(observer, CONTEXT[0], policy="reference")
    assert observer.flush(WAIT_S)
    assert history.scores("answer_score") == [outcome.attempts[0].worst_delta_r]


def test_a_generator_that_breaks_off_says_nothing_about_answers(history, sampling):
    observer = sampling()
    with pytest.raises(GenerationError):
        _run(observer, ["Entry is free. The desk", ConnectionError("gone")])
    assert observer.flush(WAIT_S)
    assert _scores(history) == {"attempts": [1.0]}
    assert observer.stats.unscored == 1


async def test_a_reader_who_leaves_decides_nothing(history, sampling):
    observer = sampling()
    guard = Guardrail(observers=[observer], policy=Policy(release="sentence"))
    model = ScriptedGenerator(f"{RIGHT} The desk opens at ten.")
    async with guard.stream(model, question="Fee?", context=CONTEXT) as stream:
        async for _ in stream:
            break
    assert await asyncio.to_thread(observer.flush, WAIT_S)
    assert "accepted" not in history.metrics()
    assert history.scores("attempts") == [1.0]


def test_no_text_is_in_the_file(path, history, sampling):
    observer = sampling(metrics=["faithfulness"])
    _run(observer, RIGHT)
    assert observer.flush(WAIT_S)
    history.close()
    content = b"".join(file.read_bytes() for file in path.parent.iterdir())
    for text in (b"free", b"desk", b"open?", b"Entry"):
        assert text not in content


# --- metrics ------------------------------------------------------------------------------------------------


def test_metrics_get_the_question_the_passages_and_what_was_delivered(history, sampling):
    observer = sampling(metrics=[own := Scored(0.75), "faithfulness"])
    outcome = _run(observer, WRONG, RIGHT)
    assert observer.flush(WAIT_S)
    (item,) = own.items
    assert (item.id, item.question, item.answer) == (outcome.run_id, "When does it open?", RIGHT)
    assert [passage.text for passage in item.context] == CONTEXT
    scores = _scores(history)
    assert scores["own"] == [0.75]
    assert 0.5 < scores["faithfulness"][0] <= 1.0
    assert own.scopes == [{}]


def test_a_metric_that_fails_is_counted_and_told_once_without_text(history, sampling, caplog):
    broken = Scored(RuntimeError("Entry is free."), name="broken")
    odd = Scored(Measurement(error="the answer was: Entry is free."), name="odd")
    nonsense = Scored(name="nonsense")
    nonsense.measure = lambda item: asyncio.sleep(0, result="Entry is free.")
    observer = sampling(metrics=[broken, odd, nonsense, Scored(1.0, name="well")])
    with caplog.at_level(logging.WARNING, logger="guardrail"):
        for _ in range(3):
            _run(observer, RIGHT)
        assert observer.flush(WAIT_S)
    assert dict(observer.stats.failed) == {"broken": 3, "nonsense": 3, "odd": 3}
    assert sorted(record.getMessage() for record in caplog.records) == [
        "sampling: the metric broken: failed with RuntimeError",
        "sampling: the metric nonsense: failed with AttributeError",
        "sampling: the metric odd: failed with an error",
    ]
    assert history.scores("well") == [1.0] * 3
    assert observer.stats.recorded == 3


def test_a_metric_that_takes_too_long_is_given_up(history, sampling):
    observer = sampling(metrics=[Scored("for ever", name="slow"), Scored(1.0, name="well")], metric_timeout_s=0.01)
    _run(observer, RIGHT)
    assert observer.flush(WAIT_S)
    assert dict(observer.stats.failed) == {"slow": 1}
    assert history.scores("well") == [1.0]


# --- out of the reader's way --------------------------------------------------------------------------------


def test_a_stuck_metric_delays_no_run(history, sampling):
    observer = sampling(metrics=[stuck := Scored("for ever")], max_waiting=2)
    _run(observer, RIGHT)
    assert stuck.begun.wait(WAIT_S)
    assert all(_run(observer, RIGHT).accepted for _ in range(5))  # would hang
    assert (observer.stats.sampled, observer.stats.dropped) == (6, 3)
    assert not observer.flush(0.0)
    assert not observer.close(0.0)


@pytest.fixture
def locked(path, history):
    """Somebody keeps the database locked until this is called."""
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    def unlock():
        if other.in_transaction:
            other.execute("ROLLBACK")

    yield unlock
    unlock()
    other.close()


def test_a_locked_database_delays_no_run(path, locked):
    with History(path, busy_timeout_s=WAIT_S) as patient, SamplingObserver(patient, share=1.0) as observer:
        assert all(_run(observer, RIGHT).accepted for _ in range(3))  # while the thread waits for the lock
        assert not observer.flush(0.0)
        assert (observer.stats.sampled, observer.stats.recorded) == (3, 0)
        locked()
        assert observer.flush(WAIT_S)
        assert observer.stats.recorded == 3


def test_what_cannot_be_written_is_counted_and_told_once(locked, sampling, caplog):
    observer = sampling()
    assert all(_run(observer, RIGHT).accepted for _ in range(3))
    assert observer.flush(WAIT_S)
    assert (observer.stats.unwritten, observer.stats.recorded) == (3, 0)
    locked()
    _run(observer, RIGHT)
    assert observer.close(WAIT_S)
    assert (observer.stats.unwritten, observer.stats.recorded) == (3, 1)
    (told,) = [record.getMessage() for record in caplog.records if "sampling" in record.getMessage()]
    assert "another process keeps it locked" in told


def test_a_history_that_is_closed_harms_nobody(history, sampling):
    observer = sampling()
    history.close()
    assert _run(observer, RIGHT).accepted
    assert observer.flush(WAIT_S)
    assert observer.stats.unwritten == 1


def test_an_observer_that_is_closed_takes_nothing(history, sampling):
    observer = sampling()
    assert observer.close(WAIT_S)
    assert _run(observer, RIGHT).accepted
    assert (observer.stats.sampled, observer.stats.dropped) == (1, 1)
    assert history.records() == []


async def test_it_stands_beside_the_default_observers(history, sampling):
    observer = sampling(metrics=["faithfulness"])
    guard = Guardrail(observers=[*default_observers(), observer])
    outcomes = await asyncio.gather(
        *(guard.run(ScriptedGenerator(RIGHT), question="Fee?", context=CONTEXT) for _ in range(5))
    )
    assert await asyncio.to_thread(observer.flush, WAIT_S)
    assert {record.run_id for record in history.records("attempts")} == {outcome.run_id for outcome in outcomes}


_EXIT = """
import sys
from guardrail import Guardrail
from guardrail.evaluation.history.store import History
from guardrail.evaluation.history.observer import SamplingObserver

sampling = SamplingObserver(History(sys.argv[1]), share=1.0)
guard = Guardrail(observers=[sampling], entailment=lambda pairs: [1.0] * len(pairs))
for _ in range(3):
    print(guard.run_sync(lambda: "Entry is free.", question="Fee?", context=["Entry is free."]).status.value)
"""


def test_what_was_sampled_last_is_written_when_the_interpreter_exits(path):
    ended = subprocess.run([sys.executable, "-c", _EXIT, str(path)], capture_output=True, text=True, timeout=100)
    assert (ended.returncode, ended.stdout) == (0, "accepted\n" * 3), ended.stderr
    assert "Traceback" not in ended.stderr
    with History(path, read_only=True) as history:
        assert history.metrics() == dict.fromkeys(sorted(OWN_METRICS), 3)


# --- which runs ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("share", "recorded"), [(0.0, 0), (1.0, 4)])
def test_none_and_all(history, sampling, share, recorded):
    observer = sampling(share=share)
    for _ in range(4):
        _run(observer, RIGHT)
    assert observer.flush(WAIT_S)
    assert history.metrics().get("attempts", 0) == recorded
    assert observer.stats.sampled == recorded


def test_a_share_is_a_share_and_part_of_every_larger_one():
    ids = [f"{n:032x}" for n in range(20_000)]
    chosen = {share: {own for own in ids if is_sampled(own, share)} for share in (0.0, 0.05, 0.2, 1.0)}
    assert [len(chosen[share]) / len(ids) for share in chosen] == [
        0.0,
        *map(pytest.approx, (0.05, 0.2), (0.1, 0.1)),
        1.0,
    ]
    assert chosen[0.05] < chosen[0.2]


# --- settings -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"share": 1.1}, r"share must be a number in \[0, 1\], got 1.1"),
        ({"share": float("nan")}, r"share must be a number in \[0, 1\], got nan"),
        ({"share": True}, r"share must be a number in \[0, 1\], got True"),
        ({"max_waiting": 0}, "max_waiting must be an integer of at least 1, got 0"),
        ({"metrics": "faithfulness"}, "metrics must be a list of names or metrics, not one text"),
        ({"metrics": ["nothing"]}, "there is no metric 'nothing'"),
        ({"metrics": ["accepted"]}, "'accepted' is there twice: name each once, and none of answer_score, accepted"),
        ({"metrics": ["faithfulness", Scored(name="faithfulness")]}, "'faithfulness' is there twice"),
        ({"metrics": [Scored(name="n" * 201)]}, "no such metrics or tags: metric has 201 characters"),
        ({"tags": {"release": 7}}, "no such metrics or tags: a tag must be a str, got int"),
        ({"metrics": [len]}, "builtin_function_or_method is no metric: it needs a name and measure"),
        ({"metric_timeout_s": 0.0}, "metric_timeout_s must be a number above 0, got 0.0"),
    ],
)
def test_wrong_settings(history, settings, said):
    with pytest.raises(ConfigurationError, match=said):
        SamplingObserver(history, **settings)


class _Contradicting:
    """A model without a calibration that finds a contradiction in what is nearly entailed."""

    model_id = "contradicting"

    async def score(self, pairs):
        return [EntailmentScore(entailment=0.3, contradiction=0.6) for _ in pairs]


@pytest.mark.parametrize(("delta", "expected"), [(0.95, 2.7), (0.6, 0.7)])
def test_the_run_tells_the_delta_of_its_policy(history, sampling, delta, expected):
    observer = sampling()
    policy = Policy(name="mine", delta=delta, lexical_weight=0.0, max_attempts=1)
    outcome = _run(observer, RIGHT, policy=policy, entailment=_Contradicting())
    assert observer.flush(WAIT_S)
    assert (outcome.policy, outcome.delta) == ("mine", delta)
    assert history.scores("answer_score") == [pytest.approx(expected)]
