"""Generators that end in odd ways, readers that leave in odd ways: no text counts as complete that is not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from guardrail import (
    DeadlineExceededError,
    GenerationError,
    GenerationTimeoutError,
    Guardrail,
    OutcomeStatus,
    StreamStateError,
)
from guardrail.events import RunEnded, StepEnded
from tests.streaming.helpers import (
    HALL,
    LENIENT_WORDS,
    QUESTION,
    Recorder,
    assert_balanced,
    assert_receipt,
    guard_for,
    others,
    quiet,
    turns,
)

ONE, TWO = "The old hall keeps a wooden clock near its door.", "The garden grows tall roses by the wall."
WRONG = "The zqx cellar hides rare coins."


class Stop(BaseException):
    """Something that ``except Exception`` does not see."""


async def ends_with_error(guard: Guardrail, generate: Callable[..., Any]) -> GenerationError:
    """Read a stream that must end with an error; check that nothing claims to be complete."""
    stream = guard.stream(generate, question=QUESTION, context=[HALL])
    seen = ""
    async with asyncio.timeout(10):
        with pytest.raises(GenerationError) as caught:
            async for text in stream:
                seen += text
    outcome = caught.value.outcome
    assert outcome.status is OutcomeStatus.ERROR
    assert not outcome.accepted
    assert outcome.text == seen
    assert not outcome.attempts[0].complete
    assert not outcome.attempts[0].accepted
    assert_receipt(outcome)
    with pytest.raises(GenerationError):
        await stream.outcome()
    assert others() == set()
    return caught.value


# --- ends that are no end -------------------------------------------------------------------------------------

ENDS: dict[str, Callable[[], BaseException]] = {
    "BaseException": lambda: Stop("zqx"),
    "GeneratorExit": lambda: GeneratorExit("zqx"),
    "group": lambda: BaseExceptionGroup("zqx", [Stop("zqx"), ValueError("zqx")]),
    "group with a cancellation": lambda: BaseExceptionGroup("zqx", [asyncio.CancelledError(), ValueError("zqx")]),
    "CancelledError": lambda: asyncio.CancelledError("zqx"),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("release", ["sentence", "answer", "observe"])
async def test_an_answer_that_ends_with_an_exception_of_any_kind_is_not_complete(end: str, release: str):
    async def generate(question: str) -> AsyncIterator[str]:
        yield ONE + " "
        yield "The garden "
        raise ENDS[end]()

    error = await ends_with_error(guard_for(ONE, policy=LENIENT_WORDS.override(release=release)), generate)
    assert "zqx" not in str(error)
    if release == "answer":
        assert error.outcome.text == ""


@pytest.mark.parametrize("end", [*ENDS, "SystemExit", "KeyboardInterrupt", "StopIteration"])
@pytest.mark.parametrize("where", ["function", "generator"])
async def test_the_same_in_a_thread(end: str, where: str):
    """There, exceptions that would stop the interpreter mean nothing: the reader gets an error, never an exit."""
    more = {"SystemExit": SystemExit, "KeyboardInterrupt": KeyboardInterrupt, "StopIteration": StopIteration}

    def error() -> BaseException:
        return ENDS[end]() if end in ENDS else more[end]("zqx")

    def function(question: str) -> str:
        raise error()

    def generator(question: str) -> Iterator[str]:
        yield ONE + " "
        raise error()

    with quiet():
        caught = await ends_with_error(guard_for(ONE), function if where == "function" else generator)
    assert "zqx" not in str(caught)


@pytest.mark.parametrize("chunks", [0, 1, 50])
async def test_a_failing_child_task_of_the_generator_is_a_failure(chunks: int):
    async def child() -> None:
        await turns(5)
        raise ValueError("zqx")

    async def generate(question: str) -> AsyncIterator[str]:
        async with asyncio.TaskGroup() as group:
            group.create_task(child())
            for _ in range(chunks):
                yield ONE + " "
                await asyncio.sleep(0)
            await asyncio.Event().wait()

    error = await ends_with_error(guard_for(ONE), generate)
    assert isinstance(error.__cause__, BaseExceptionGroup)


async def test_a_time_limit_inside_the_generator_is_the_generators():
    async def generate(question: str) -> AsyncIterator[str]:
        async with asyncio.timeout(0.02):
            yield ONE + " "
            await asyncio.Event().wait()

    error = await ends_with_error(guard_for(ONE), generate)
    assert not isinstance(error, GenerationTimeoutError), "no limit of the guard was exceeded"


async def test_a_time_limit_that_the_generator_handles_is_no_failure():
    async def generate(question: str) -> AsyncIterator[str]:
        yield ONE + " "
        try:
            async with asyncio.timeout(0.02):
                await asyncio.Event().wait()
        except TimeoutError:
            yield TWO

    outcome = await guard_for(ONE, TWO).run(generate, question=QUESTION, context=[HALL])
    assert (outcome.accepted, outcome.text) == (True, f"{ONE} {TWO}")


async def test_a_later_attempt_that_ends_so_leaves_the_decision_to_the_policy():
    calls: list[int] = []

    async def generate(question: str) -> AsyncIterator[str]:
        calls.append(1)
        if len(calls) > 1:
            yield TWO + " "
            raise Stop("zqx")
        yield WRONG

    outcome = await guard_for(ONE, TWO).run(generate, question=QUESTION, context=[HALL])
    assert (outcome.status, outcome.reason) == (OutcomeStatus.REFUSED, "generation_error")
    assert TWO not in outcome.text
    assert isinstance(outcome.error, GenerationError)


# --- generators that do not let go ----------------------------------------------------------------------------


class Stubborn:
    """A generator that swallows a cancellation and goes on."""

    def __init__(self, *, first: str = ONE) -> None:
        self.first = first
        self.swallowed = 0
        self.closed = False
        self.calls = 0

    async def __call__(self, question: str) -> AsyncIterator[str]:
        self.calls += 1
        try:
            yield self.first + " The"
            while True:
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    self.swallowed += 1
                yield " hall"
        finally:
            self.closed = True


async def test_a_swallowed_cancellation_does_not_keep_the_generator_open():
    generate = Stubborn()
    stream = guard_for(ONE).stream(generate, question=QUESTION, context=[HALL])
    async for _ in stream:
        break
    async with asyncio.timeout(1):  # less than the time after which a source is given up
        await stream.aclose()
    assert generate.closed
    assert generate.swallowed == 1
    await turns(5)
    assert others() == set()


async def test_a_swallowed_cancellation_does_not_keep_the_next_attempt_waiting():
    generate = Stubborn(first=WRONG)
    recorder = Recorder()
    guard = guard_for(ONE, policy=LENIENT_WORDS.override(release="sentence"), observers=[recorder])
    async with asyncio.timeout(1.5):
        outcome = await guard.run(generate, question=QUESTION, context=[HALL])
    assert outcome.reason == "same_claim_failed_twice"
    assert (generate.calls, generate.swallowed, generate.closed) == (2, 2, True)
    assert_balanced(recorder.events)
    assert others() == set()


@pytest.mark.parametrize("limit", ["first_token_timeout_s", "token_timeout_s", "timeout_s"])
async def test_a_generator_that_outlives_its_limit_ends_with_the_limits_own_error(limit: str):
    closed: list[bool] = []

    async def generate(question: str) -> AsyncIterator[str]:
        try:
            if limit != "first_token_timeout_s":
                yield ONE + " "
            for _ in range(5):
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    pass
                yield ONE + " "
        finally:
            closed.append(True)

    guard = guard_for(ONE, policy=LENIENT_WORDS.override(**{limit: 0.05}))
    expected = DeadlineExceededError if limit == "timeout_s" else GenerationTimeoutError
    with pytest.raises(expected) as caught:
        await guard.run(generate, question=QUESTION, context=[HALL])
    assert isinstance(caught.value, TimeoutError)
    assert caught.value.outcome.reason == "timeout"
    assert closed == [True]
    await turns(5)
    assert others() == set()


# --- endless output -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("item", ["", None, {"usage": {"total_tokens": 1}}, " "], ids=repr)
@pytest.mark.parametrize("release", ["sentence", "observe"])
async def test_endless_empty_chunks_end_at_the_deadline(item: Any, release: str):
    """The generator never waits, so nothing else would run unless the guard gives way."""
    others_ran: list[int] = []

    async def neighbour() -> None:
        while True:
            others_ran.append(1)
            await asyncio.sleep(0)

    async def generate(question: str) -> AsyncIterator[Any]:
        while True:
            yield item

    guard = guard_for(ONE, policy=LENIENT_WORDS.override(timeout_s=0.2, release=release))
    beside = asyncio.create_task(neighbour())
    try:
        with pytest.raises(DeadlineExceededError) as caught:
            await guard.run(generate, question=QUESTION, context=[HALL])
    finally:
        beside.cancel()
        await asyncio.gather(beside, return_exceptions=True)
    assert caught.value.outcome.status is OutcomeStatus.ERROR
    assert len(others_ran) > 20, "other tasks run meanwhile"


async def test_endless_empty_chunks_can_be_cancelled():
    closed: list[bool] = []

    async def generate(question: str) -> AsyncIterator[str]:
        try:
            while True:
                yield ""
        finally:
            closed.append(True)

    stream = guard_for(ONE).stream(generate, question=QUESTION, context=[HALL])
    reader = asyncio.create_task(stream.outcome())
    await turns(10)
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    assert closed == [True]


# --- readers that leave ---------------------------------------------------------------------------------------


def slow_to_close(closing: asyncio.Event, go_on: asyncio.Event, log: list[str], first: str) -> Callable[..., Any]:
    async def generate(question: str) -> AsyncIterator[str]:
        try:
            yield first + " The"
            await asyncio.Event().wait()
        finally:
            closing.set()
            await go_on.wait()
            log.append("closed")

    return generate


@pytest.mark.parametrize("second", ["aclose", "cancel the first", "async with"])
async def test_closing_twice_waits_for_the_generator_both_times(second: str):
    closing, go_on, log, recorder = asyncio.Event(), asyncio.Event(), [], Recorder()
    guard = guard_for(ONE, observers=[recorder])
    stream = guard.stream(slow_to_close(closing, go_on, log, ONE), question=QUESTION, context=[HALL])
    assert await anext(aiter(stream)) == ONE + " "
    first = asyncio.create_task(stream.aclose())
    await closing.wait()

    async def again() -> None:
        if second == "async with":
            async with stream:
                pass
        else:
            await stream.aclose()
        log.append("second")

    if second == "cancel the first":
        first.cancel()
    other = asyncio.create_task(again())
    await turns(10)
    assert log == []
    assert not first.done()
    go_on.set()
    results = await asyncio.gather(first, other, return_exceptions=True)
    assert isinstance(results[0], asyncio.CancelledError) == (second == "cancel the first")
    assert log == ["closed", "second"]
    assert isinstance(recorder.events[-1], RunEnded)
    assert_balanced(recorder.events)
    assert others() == set()


@pytest.mark.parametrize("times", [1, 2, 3])
async def test_cancelled_while_a_rejected_attempt_is_being_closed(times: int):
    """The cancellation goes on only when the source is closed, and no new attempt begins."""
    closing, go_on, log, recorder = asyncio.Event(), asyncio.Event(), [], Recorder()
    guard = guard_for(ONE, policy=LENIENT_WORDS.override(release="sentence"), observers=[recorder])
    run = asyncio.create_task(guard.run(slow_to_close(closing, go_on, log, WRONG), question=QUESTION, context=[HALL]))
    await closing.wait()
    for _ in range(times):
        run.cancel()
        await turns(5)
    assert not run.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert log == ["closed"]
    assert_balanced(recorder.events)
    steps = [i for i, e in enumerate(recorder.events) if isinstance(e, StepEnded)]
    assert max(steps) < len(recorder.events) - 1
    assert others() == set()


@pytest.mark.parametrize("read", ["text", "events"])
async def test_a_stream_that_was_left_before_its_end_does_not_look_finished(read: str):
    async def generate(question: str) -> AsyncIterator[str]:
        yield ONE + " "
        yield "The garden "
        await asyncio.Event().wait()

    stream = guard_for(ONE).stream(generate, question=QUESTION, context=[HALL])
    items = stream if read == "text" else stream.events()
    await anext(aiter(items))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(anext(aiter(items)), 0.02)
    for _ in range(2):
        with pytest.raises(StreamStateError, match="closed"):
            await anext(aiter(items))
    outcome = await stream.outcome()
    assert (outcome.status, outcome.reason) == (OutcomeStatus.CANCELLED, "closed_by_reader")
    assert outcome.text == ONE + " "


async def test_a_stream_that_was_read_to_its_end_ends_again_after_closing():
    async def generate(question: str) -> AsyncIterator[str]:
        yield ONE

    stream = guard_for(ONE).stream(generate, question=QUESTION, context=[HALL])
    assert [text async for text in stream] == [ONE]
    await stream.aclose()
    assert [text async for text in stream] == []
    assert (await stream.outcome()).accepted
