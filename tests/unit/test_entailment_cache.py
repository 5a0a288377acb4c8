from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading

import pytest

from guardrail.errors import ConfigurationError
from guardrail.protocols import Pair
from guardrail.scoring.entailment.cache import ScoreCache
from guardrail.types import EntailmentScore

A, B, C = (Pair(f"premise {name}", "claim") for name in "abc")


class Model:
    """Scores pairs by the length of the premise and remembers what it was asked."""

    def __init__(self):
        self.asked = []

    def __call__(self, pairs):
        self.asked.append(list(pairs))
        return [EntailmentScore(entailment=len(pair.premise) / 100) for pair in pairs]


def test_what_is_known_is_not_asked_again():
    cache, model = ScoreCache(), Model()
    first = cache.through([A, B], model)
    assert cache.through([B, C], model)[B] == first[B]
    assert model.asked == [[A, B], [C]]
    assert cache.find([A, B, C, Pair("new", "claim")]) == first | cache.find([C])
    assert len(cache) == 3


def test_the_score_that_was_used_longest_ago_goes_first():
    cache, model = ScoreCache(2), Model()
    cache.through([A], model)
    cache.through([B], model)
    cache.find([A])
    cache.through([C], model)
    assert set(cache.find([A, B, C])) == {A, C}
    assert len(cache) == 2


def test_a_call_may_have_more_pairs_than_the_cache_has_entries():
    cache, model = ScoreCache(1), Model()
    assert set(cache.through([A, B, C], model)) == {A, B, C}
    assert len(cache) == 1


def test_no_entries_remember_nothing():
    cache, model = ScoreCache(0), Model()
    for _ in range(2):
        assert set(cache.through([A], model)) == {A}
    cache.put({A: EntailmentScore(entailment=1.0)})
    assert model.asked == [[A], [A]]
    assert cache.find([A]) == {}
    assert len(cache) == 0


@pytest.mark.parametrize("entries", [-1, True, 1.5, None])
def test_the_size_is_checked(entries):
    with pytest.raises(ConfigurationError, match="cache_entries"):
        ScoreCache(entries)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (Pair("ab", "c"), Pair("a", "bc")),
        (Pair("a", "b"), Pair("b", "a")),
        (Pair("a", ""), Pair("", "a")),
        (Pair("\ud800", "a"), Pair("\ud801", "a")),
    ],
)
def test_different_pairs_are_kept_apart(left, right):
    cache = ScoreCache()
    cache.put({left: EntailmentScore(entailment=0.1)})
    assert cache.find([right]) == {}
    assert cache.find([left])[left].entailment == 0.1


def test_texts_are_not_kept():
    cache = ScoreCache()
    cache.put({Pair("secret " * 1000, "claim"): EntailmentScore(entailment=0.1)})
    assert {len(key) for key in cache._scores} == {16}


def test_failures_are_not_kept():
    cache, model = ScoreCache(), Model()

    def fail(pairs):
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        cache.through([A, B], fail)
    assert len(cache) == 0
    assert set(cache.through([A, B], model)) == {A, B}
    assert model.asked == [[A, B]]


class Gate:
    """A model that stops in the first call until it is opened."""

    def __init__(self, fails=False):
        self.entered, self.opened = threading.Event(), threading.Event()
        self.fails = fails

    def __call__(self, pairs):
        self.entered.set()
        assert self.opened.wait(60)
        if self.fails:
            raise ValueError("broken")
        return [EntailmentScore(entailment=0.5) for _ in pairs]


def in_thread(fn):
    results = []

    def run():
        try:
            results.append(fn())
        except ValueError as error:
            results.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, results


class Condition(threading.Condition):
    """Tells when somebody waits for it."""

    def __init__(self):
        super().__init__()
        self.waited_for = threading.Event()

    def wait_for(self, predicate, timeout=None):
        self.waited_for.set()  # the lock is held until the waiting begins
        return super().wait_for(predicate, timeout)


@pytest.fixture
def cache():
    cache = ScoreCache()
    cache._changed = Condition()
    return cache


def test_a_pair_that_another_thread_is_scoring_is_not_asked(cache):
    gate, model = Gate(), Model()
    first, _ = in_thread(lambda: cache.through([A, B], gate))
    assert gate.entered.wait(60)
    second, results = in_thread(lambda: cache.through([B, C, A], model))
    assert cache._changed.waited_for.wait(60)
    gate.opened.set()
    first.join()
    second.join()
    assert model.asked == [[C]]
    assert {pair: score.entailment for pair, score in results[0].items()} == {A: 0.5, B: 0.5, C: 0.09}


def test_whoever_waited_for_a_failure_asks_itself(cache):
    gate, model = Gate(fails=True), Model()
    first, failed = in_thread(lambda: cache.through([A], gate))
    assert gate.entered.wait(60)
    second, results = in_thread(lambda: cache.through([A], model))
    assert cache._changed.waited_for.wait(60)
    gate.opened.set()
    first.join()
    second.join()
    assert isinstance(failed[0], ValueError)
    assert model.asked == [[A]]
    assert set(results[0]) == {A}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_a_forked_child_waits_for_no_thread_of_its_parent():
    script = """
        import os, threading
        from guardrail.protocols import Pair
        from guardrail.scoring.entailment.cache import ScoreCache
        from guardrail.types import EntailmentScore
        cache, pair = ScoreCache(), Pair("a", "b")
        entered = threading.Event()
        def stuck(pairs):
            entered.set()
            threading.Event().wait()
        threading.Thread(target=cache.through, args=([pair], stuck), daemon=True).start()
        entered.wait()
        child = os.fork()
        if child == 0:
            scores = cache.through([pair], lambda pairs: [EntailmentScore(entailment=0.5)])
            os._exit(0 if scores[pair].entailment == 0.5 else 1)
        raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
