"""Caching, batches and turns of the models that run in this process, on an encoder that is watched."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace

import pytest

from guardrail.errors import ScoringError
from guardrail.protocols import Pair
from guardrail.scoring.entailment import CrossEncoderEntailment, ScoringWorker
from guardrail.scoring.entailment.forward import ModelLimits, PairOutputs, combine, plan, score_batch
from guardrail.scoring.entailment.labels import LabelMap
from guardrail.types import EntailmentScore
from tests.stub_encoders import Blocker, StubEncoder

LABELS = LabelMap(contradiction=0, entailment=1, neutral=2)
A, B, C = (Pair(f"premise {name}", "claim") for name in "abc")


class WatchedEncoder(StubEncoder):
    """Remembers its batches; blocks in the first one if it is given a blocker."""

    def __init__(self, blocker=None, max_tokens=512):
        super().__init__(lambda premise, hypothesis: [0.0, len(premise) / 10, 0.0], max_tokens=max_tokens)
        self.batches = []
        self.blocker = blocker

    def predict(self, pairs, **options):
        self.batches.append([Pair(*pair) for pair in pairs])
        if self.blocker and len(self.batches) == 1:
            self.blocker()
        return super().predict(pairs, **options)


async def test_a_pair_is_scored_once_in_a_call_and_over_calls():
    encoder = WatchedEncoder()
    model = CrossEncoderEntailment(encoder)
    first = await model.score([A, B, A, A])
    assert first[0] == first[2] == first[3]
    assert await model.score([B, A]) == [first[1], first[0]]
    assert sorted(encoder.seen) == [A, B]
    await model.score([A, C])
    assert encoder.batches[-1] == [C]


async def test_known_pairs_do_not_wait_for_the_worker():
    worker, blocker = ScoringWorker(), Blocker()
    model = CrossEncoderEntailment(WatchedEncoder(), worker=worker)
    expected = await model.score([A])
    busy = asyncio.create_task(worker.run(blocker))
    await blocker.running()
    assert await model.score([A]) == expected
    blocker.released.set()
    await busy


async def test_concurrent_identical_pairs_are_scored_once():
    blocker = Blocker()
    encoder = WatchedEncoder(blocker)
    model = CrossEncoderEntailment(encoder, worker=ScoringWorker())
    calls = [asyncio.create_task(model.score([A, B])) for _ in range(5)]
    await blocker.running()
    blocker.released.set()
    results = await asyncio.gather(*calls)
    assert all(result == results[0] for result in results)
    assert sorted(encoder.seen) == [A, B]


async def test_a_caller_that_leaves_does_not_take_the_others_pair_along():
    worker, blocker = ScoringWorker(), Blocker()
    encoder = WatchedEncoder()
    model = CrossEncoderEntailment(encoder, worker=worker)
    busy = asyncio.create_task(worker.run(blocker))
    await blocker.running()
    leaving, staying = (asyncio.create_task(model.score([A])) for _ in range(2))
    await asyncio.sleep(0)
    leaving.cancel()
    blocker.released.set()
    assert len(await staying) == 1
    assert encoder.seen == [A]
    await busy


async def test_without_a_cache_every_call_asks():
    encoder = WatchedEncoder()
    model = CrossEncoderEntailment(encoder, cache_entries=0)
    for _ in range(2):
        await model.score([A, A])
    assert encoder.seen == [A, A]


async def test_a_small_cache_forgets():
    encoder = WatchedEncoder()
    model = CrossEncoderEntailment(encoder, cache_entries=1)
    for pair in (A, B, A):
        await model.score([pair])
    assert encoder.seen == [A, B, A]


async def test_failures_are_not_remembered():
    encoder = WatchedEncoder()
    model = CrossEncoderEntailment(encoder)
    logits, encoder._logits = encoder._logits, lambda premise, hypothesis: [float("nan")] * 3
    with pytest.raises(ScoringError, match="NaN"):
        await model.score([A])
    encoder._logits = logits
    assert (await model.score([A]))[0].entailment > 0.3


async def test_windows_are_remembered_and_a_long_pair_as_a_whole():
    encoder = WatchedEncoder(max_tokens=40)
    model = CrossEncoderEntailment(encoder)
    long = Pair(" ".join(f"w{i}" for i in range(100)), "claim")
    (score,) = await model.score([long])
    windows = list(encoder.seen)
    assert len(windows) > 2
    assert await model.score([long]) == [score]
    assert max([s.entailment for s in await model.score(windows)]) == score.entailment
    assert encoder.seen == windows


async def test_a_small_call_finishes_before_a_big_one_that_came_first():
    blocker = Blocker()
    encoder = WatchedEncoder(blocker)
    model = CrossEncoderEntailment(encoder, batch_size=1, worker=ScoringWorker())
    pairs = [Pair(f"premise {i}", "claim") for i in range(10, 40)]
    ended = []
    big = asyncio.create_task(model.score(pairs))
    await blocker.running()
    small = asyncio.create_task(model.score([A]))
    for task, name in ((big, "big"), (small, "small")):
        task.add_done_callback(lambda _, name=name: ended.append(name))
    await asyncio.sleep(0)
    blocker.released.set()
    await asyncio.gather(big, small)
    assert ended == ["small", "big"]
    assert encoder.seen.index(A) == 2


async def test_cancellation_drops_the_batches_that_have_not_begun():
    blocker, worker = Blocker(), ScoringWorker()
    encoder = WatchedEncoder(blocker)
    model = CrossEncoderEntailment(encoder, batch_size=2, worker=worker)
    task = asyncio.create_task(model.score([Pair(f"premise {i}", "claim") for i in range(10, 40)]))
    await blocker.running()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    blocker.released.set()
    await worker.run(int)
    assert len(encoder.batches) == 1


async def test_threads_share_the_batches_of_a_call():
    meeting = threading.Barrier(2, timeout=60)
    encoder = StubEncoder(lambda premise, hypothesis: [0.0, meeting.wait() * 0.0, 0.0])
    model = CrossEncoderEntailment(encoder, batch_size=1, worker=ScoringWorker(threads=2))
    assert [round(score.entailment, 3) for score in await model.score([A, B])] == [0.333] * 2


@pytest.mark.parametrize(("device", "tokens"), [("cpu", 512), ("cuda", 512 * 32), (None, 512)])
def test_an_accelerator_gets_full_batches(device, tokens):
    encoder = WatchedEncoder()
    if device:
        encoder.device = SimpleNamespace(type=device)
    _, found = CrossEncoderEntailment(encoder).loaded()
    assert (found.batch_size, found.batch_tokens) == (32, tokens)


class Counted:
    """One token per word."""

    def __init__(self, outputs=None):
        self.outputs = outputs

    def offsets(self, text):
        return [(0, 1)] * len(text.split())

    def forward(self, pairs):
        return self.outputs


def limits(**changes):
    return ModelLimits(
        **{"labels": LABELS, "max_tokens": 100, "special_tokens": 3, "batch_size": 4, "batch_tokens": 100} | changes
    )


def of_length(tokens, name):
    return Pair(" ".join([name] * (tokens - 1)), "claim")


@pytest.mark.parametrize(
    ("lengths", "changes", "expected"),
    [
        ([10] * 6, {}, [[10] * 4, [10] * 2]),
        ([90, 10, 90, 10], {}, [[10, 10], [90], [90]]),  # two long ones exceed the tokens of a batch
        ([10, 12, 30, 31], {}, [[10, 12], [30, 31]]),  # a short one is not padded to more than twice its length
        ([45, 46, 47], {}, [[45, 46], [47]]),
        ([90, 95, 96], {"batch_tokens": 400}, [[90, 95, 96]]),
        ([5, 5], {"batch_size": 1}, [[5], [5]]),
        ([], {}, []),
    ],
)
def test_batches_are_small_and_of_similar_length(lengths, changes, expected):
    pairs = [of_length(length, f"w{i}") for i, length in enumerate(lengths)]
    batches = plan(Counted(), limits(**changes), pairs, scorer="m").batches
    assert [[len(pair.premise.split()) + 1 for pair in batch] for batch in batches] == expected


def test_a_window_that_several_pairs_share_is_scored_once():
    repeated = Pair("the same words " * 200, "claim")
    made = plan(Counted(), limits(), [repeated, A], scorer="m")
    windows = made.windows[repeated]
    assert len(windows) > len(set(windows))
    assert sorted(pair for batch in made.batches for pair in batch) == sorted({*windows, A})


def test_classes_and_words_of_a_batch():
    outputs = PairOutputs(classes=[[0.0, 9.0, 0.0], [9.0, 0.0, 0.0]], unsupported=[0.25, None])
    first, second = score_batch(Counted(outputs), limits(), [A, B], scorer="m")
    assert (round(first.entailment, 2), first.unsupported) == (1.0, 0.25)
    assert (round(second.contradiction, 2), second.unsupported) == (1.0, None)


def scores(*rows):
    return [EntailmentScore(entailment=e, contradiction=c, unsupported=u) for e, c, u in rows]


@pytest.mark.parametrize(
    ("windows", "expected"),
    [
        ([(0.2, 0.7, 0.1), (0.9, 0.1, 0.4)], (0.9, 0.7, 0.4)),
        ([(0.9, 0.1, 0.4), (0.9, 0.2, 0.3)], (0.9, 0.2, 0.3)),
        ([(0.5, None, None), (0.6, None, None)], (0.6, None, None)),
        ([(0.5, 0.1, 0.2)], (0.5, 0.1, 0.2)),
        ([], (0.0, 0.0, None)),
    ],
)
def test_the_window_with_the_highest_entailment_speaks_for_the_pair(windows, expected):
    score = combine(scores(*windows), LABELS)
    assert (score.entailment, score.contradiction, score.unsupported) == expected


def test_a_blank_pair_of_a_model_without_contradiction():
    assert combine([], LabelMap(entailment=0)) == EntailmentScore(entailment=0.0)
