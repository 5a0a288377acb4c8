"""Many runs that get to the same point together: a few go on per turn of the loop, in order, and nothing is lost."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from guardrail import GuardedStream, Guardrail, OutcomeStatus, StreamStateError
from guardrail.protocols import Decision
from guardrail.scoring.entailment.worker import ScoringWorker
from tests.loop_turns import TurnCounter
from tests.streaming.helpers import HALL, QUESTION, guard_for, others, turns
from tests.stub_encoders import Blocker

RIGHT = "The old hall keeps a wooden clock near its door."
WRONG = "The zqx cellar hides rare coins."
MANY = 100
PER_TURN = 4
RESULTS_PER_TURN = 16


class Calls:
    """Generators that write down in which turn they were called."""

    def __init__(self, counter: TurnCounter) -> None:
        self._turns = counter
        self.calls: list[tuple[int, int, int]] = []  # turn, stream, attempt

    def generator(self, stream: int, *texts: str) -> Callable[..., Any]:
        async def generate(question: str, attempt: int) -> AsyncIterator[str]:
            self.calls.append((self._turns.now, stream, attempt))
            for word in texts[attempt - 1].split(" "):
                await asyncio.sleep(0)
                yield word + " "

        return generate

    def streams(self, attempt: int) -> list[int]:
        return [stream for _, stream, number in self.calls if number == attempt]

    @property
    def most(self) -> int:
        return max(Counter(turn for turn, _, _ in self.calls).values())


def stream(guard: Guardrail, generate: Callable[..., Any]) -> GuardedStream:
    return guard.stream(generate, question=QUESTION, context=[HALL])


async def text_of(guarded: GuardedStream) -> str:
    return "".join([text async for text in guarded])


async def test_generators_of_runs_that_begin_together_are_called_a_few_per_turn():
    guard = guard_for(RIGHT)
    async with TurnCounter() as counter:
        calls = Calls(counter)
        texts = await asyncio.gather(*(text_of(stream(guard, calls.generator(n, RIGHT))) for n in range(MANY)))
    assert texts == [RIGHT + " "] * MANY
    assert calls.streams(1) == list(range(MANY))
    assert calls.most == PER_TURN


async def test_the_next_attempts_of_runs_that_failed_together_too():
    guard = guard_for(RIGHT)
    async with TurnCounter() as counter:
        calls = Calls(counter)
        outcomes = await asyncio.gather(
            *(stream(guard, calls.generator(n, WRONG, RIGHT)).outcome() for n in range(MANY))
        )
    assert {(o.status, o.delivered_attempt) for o in outcomes} == {(OutcomeStatus.ACCEPTED, 2)}
    assert sorted(calls.streams(2)) == list(range(MANY))
    assert calls.most <= 2 * PER_TURN


async def test_a_limiter_that_lets_all_through_at_once_does_not_crowd_a_turn():
    opened = asyncio.Event()

    class Limiter:
        async def acquire(self, key: str, cost: float = 1.0, timeout_s: float | None = None) -> Decision:
            asking.append(key)
            await opened.wait()
            return Decision(allowed=True)

    asking: list[str] = []
    guard = guard_for(RIGHT, limiter=Limiter())
    async with TurnCounter() as counter:
        calls = Calls(counter)
        reading = [asyncio.create_task(text_of(stream(guard, calls.generator(n, RIGHT)))) for n in range(MANY)]
        async with asyncio.timeout(60):
            while len(asking) < MANY:
                await asyncio.sleep(0)
        assert calls.calls == []
        opened.set()
        assert await asyncio.gather(*reading) == [RIGHT + " "] * MANY
    assert calls.streams(1) == list(range(MANY))
    assert calls.most == PER_TURN


async def test_results_that_came_while_the_loop_was_busy_go_on_a_few_per_turn():
    worker, blocker, gone_on = ScoringWorker(max_calls=2 * MANY), Blocker(), []
    done = threading.Event()

    async def call(number: int) -> None:
        if number == MANY - 1:
            await worker.run(done.set)
        else:
            await worker.run(int)
        gone_on.append(counter.now)

    async with TurnCounter() as counter:
        first = asyncio.create_task(worker.run(blocker))
        await blocker.running()
        tasks = [asyncio.create_task(call(number)) for number in range(MANY)]
        await asyncio.sleep(0)
        blocker.released.set()
        assert done.wait(60)  # on the loop: nothing else happens here until all results are there
        await asyncio.gather(first, *tasks)
    assert len(gone_on) == MANY
    assert gone_on == sorted(gone_on)
    assert max(Counter(gone_on).values()) <= RESULTS_PER_TURN


async def test_what_fails_at_its_beginning_fails_alone():
    begun: list[int] = []

    def open_run(retractable: bool) -> Any:
        begun.append(counter.now)
        raise ValueError("broken")

    guard = guard_for(RIGHT)
    broken = [GuardedStream(open_run) for _ in range(20)]
    async with TurnCounter() as counter:
        calls = Calls(counter)
        sound = [stream(guard, calls.generator(n, RIGHT)) for n in range(20)]
        pairs = [one for pair in zip(broken, sound, strict=True) for one in pair]
        ends = await asyncio.gather(*map(text_of, pairs), return_exceptions=True)
    assert ends[1::2] == [RIGHT + " "] * 20
    assert [str(end) for end in ends[::2]] == ["broken"] * 20
    assert set(Counter(begun).values()) == {PER_TURN // 2}  # every other one is broken


async def waiting_streams(guard: Guardrail, calls: Calls) -> tuple[list[GuardedStream], list[asyncio.Task[str]]]:
    """Streams of which only the first few have begun."""
    streams = [stream(guard, calls.generator(n, RIGHT)) for n in range(20)]
    reading = [asyncio.create_task(text_of(one)) for one in streams]
    await asyncio.sleep(0)
    return streams, reading


async def test_closed_before_its_turn_a_stream_never_begins():
    guard = guard_for(RIGHT)
    async with TurnCounter() as counter:
        calls = Calls(counter)
        streams, reading = await waiting_streams(guard, calls)
        await streams[10].aclose()
        texts = await asyncio.gather(*reading)
    assert texts == [RIGHT + " " if n != 10 else "" for n in range(20)]
    assert calls.streams(1) == [n for n in range(20) if n != 10]
    with pytest.raises(StreamStateError, match="closed before its first read"):
        await streams[10].outcome()
    with pytest.raises(StreamStateError, match="closed before its end"):
        await anext(streams[10])


async def test_cancelled_before_its_turn_a_stream_never_begins():
    guard = guard_for(RIGHT)
    async with TurnCounter() as counter:
        calls = Calls(counter)
        streams, reading = await waiting_streams(guard, calls)
        for n in range(PER_TURN, 15):
            reading[n].cancel()
        ends = await asyncio.gather(*reading, return_exceptions=True)
    left = [*range(PER_TURN), *range(15, 20)]
    assert [n for n, end in enumerate(ends) if end == RIGHT + " "] == left
    assert calls.streams(1) == left
    assert all(reading[n].cancelled() for n in range(PER_TURN, 15))
    with pytest.raises(StreamStateError):
        await streams[10].outcome()
    await turns(2)
    assert others() == set()


async def test_while_it_waits_a_stream_has_one_reader_and_one_way_of_reading():
    guard = guard_for(RIGHT)
    async with TurnCounter() as counter:
        calls = Calls(counter)
        streams, reading = await waiting_streams(guard, calls)
        with pytest.raises(StreamStateError, match="two readers"):
            await anext(streams[15])
        with pytest.raises(StreamStateError, match="another value of retractable"):
            streams[15].events(retractable=True)
        assert await asyncio.gather(*reading) == [RIGHT + " "] * 20


def test_synchronous_calls_in_many_threads_do_not_wait_for_each_other():
    guard, texts = guard_for(RIGHT), []

    def ask() -> None:
        texts.append(guard.run_sync(lambda question: RIGHT, question=QUESTION, context=[HALL]).text)

    threads = [threading.Thread(target=ask) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == [RIGHT] * 12
