"""Cancelling, closing and breaking at every scheduling step; exceptions at every chunk and every pair.

Everything here is cooperative and deterministic: the sources and scorers give way to the loop a fixed number of times,
and a driver counts turns of the loop. Nothing sleeps.
"""

from __future__ import annotations

import asyncio
import gc
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider

from guardrail import Decision, GenerationError, Guardrail, OutcomeStatus, Policy, StreamStateError
from guardrail.events import RunEnded
from guardrail.telemetry.spans import SpanObserver
from tests.streaming.helpers import (
    HALL,
    QUESTION,
    Counts,
    Recorder,
    SlowFake,
    assert_balanced,
    generator,
    guard_threads,
    others,
    quiet,
    turns,
)

ONE, TWO, WRONG = (
    "The old hall keeps a wooden clock near its door.",
    "The garden grows tall roses by the wall.",
    "The zqx cellar hides rare coins.",
)
FIRST = (ONE[:9], ONE[9:] + " ", "", WRONG)
SECOND = (ONE + " ", TWO[:12], TWO[12:])
LAST_STEP = 400


class Spans(SpanProcessor):
    """Counts begins and ends of spans."""

    def __init__(self) -> None:
        self.started: Counter[int] = Counter()
        self.ended: Counter[int] = Counter()
        self.finished: list[ReadableSpan] = []

    def on_start(self, span: Span, parent_context: Any = None) -> None:
        self.started[span.get_span_context().span_id] += 1

    def on_end(self, span: ReadableSpan) -> None:
        self.ended[span.get_span_context().span_id] += 1
        self.finished.append(span)


class PatientLimiter:
    """Gives way to the loop, then allows."""

    async def acquire(self, key: str, cost: float = 1.0, timeout_s: float | None = None) -> Decision:
        await turns(2)
        return Decision(allowed=True)


class Scene:
    """One guard, one source, everything that is counted."""

    def __init__(self, *, release: str = "sentence", can_continue: bool = False, kind: str = "async", pause: int = 1):
        self.counts, self.recorder, self.spans = Counts(), Recorder(), Spans()
        provider = TracerProvider()
        provider.add_span_processor(self.spans)
        self.guard = Guardrail(
            policy=Policy(lexical_weight=0.0, release=release),
            entailment=SlowFake(ONE, TWO),
            limiter=PatientLimiter(),
            observers=[self.recorder, SpanObserver(tracer_provider=provider)],
        )
        self.source = generator([FIRST, SECOND], self.counts, can_continue=can_continue, kind=kind, pause=pause)

    def stream(self) -> Any:
        return self.guard.stream(self.source, question=QUESTION, context=[HALL])

    def assert_clean(self) -> None:
        """Sources closed, spans and events ended exactly once, no task left."""
        assert self.counts.all_closed
        assert self.spans.started == self.spans.ended
        assert set(self.spans.started.values()) <= {1}
        for events in self.recorder.runs.values():
            if events:
                assert_balanced(events)
        assert others() == set()


def every_step(make: Callable[[int], Any]) -> int:
    """Run ``make(0)``, ``make(1)``, … each on a loop of its own until one says that its work was done before."""
    with quiet():
        for step in range(LAST_STEP):
            if asyncio.run(make(step)):
                return step
    raise AssertionError("the run does not end")


async def text_reader(stream: Any) -> None:
    async for _ in stream:
        pass


async def events_reader(stream: Any) -> None:
    async for _ in stream.events(retractable=True):
        pass


async def outcome_reader(stream: Any) -> None:
    await stream.outcome()


async def managed_reader(stream: Any) -> None:
    async with stream:
        async for _ in stream:
            await asyncio.sleep(0)


READERS = [text_reader, events_reader, outcome_reader, managed_reader]
SHAPES = [
    ("sentence", False, "async"),
    ("sentence", True, "async"),
    ("answer", False, "object"),
    ("observe", False, "async"),
]


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(("release", "can_continue", "kind"), SHAPES)
def test_the_reader_is_cancelled_at_every_step(read: Any, release: str, can_continue: bool, kind: str):
    async def at(step: int) -> bool:
        scene = Scene(release=release, can_continue=can_continue, kind=kind)
        task = asyncio.create_task(read(scene.stream()))
        await turns(step)
        if task.done():
            await task
            scene.assert_clean()
            return True
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert task.cancelled()
        scene.assert_clean()
        return False

    assert every_step(at) > 10


def test_a_cancelled_run_says_so_in_its_spans_and_events():
    async def at(step: int) -> bool:
        scene = Scene()
        task = asyncio.create_task(text_reader(scene.stream()))
        await turns(step)
        if task.done():
            return True
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert all(span.status.status_code.name != "ERROR" for span in scene.spans.finished)
        for span in scene.spans.finished:
            if span.name == "guardrail.run":
                (ended,) = [e for e in scene.recorder.events if isinstance(e, RunEnded)]
                assert span.attributes["guardrail.outcome"] == ended.outcome.status.value
                assert ended.outcome.status is OutcomeStatus.CANCELLED or ended.outcome.accepted
                if ended.outcome.status is OutcomeStatus.CANCELLED:
                    assert span.attributes["guardrail.cancelled"] is True
                statuses.append(ended.outcome.status)
        return False

    statuses: list[OutcomeStatus] = []
    assert every_step(at) > 10
    # Only a reader who goes after the last character has left may find an accepted run.
    assert statuses.count(OutcomeStatus.CANCELLED) > 10
    assert statuses == sorted(statuses, key=lambda s: s is OutcomeStatus.ACCEPTED)
    assert statuses.count(OutcomeStatus.ACCEPTED) <= 3


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(("release", "can_continue", "kind"), SHAPES[:3])
def test_another_task_closes_the_stream_at_every_step(read: Any, release: str, can_continue: bool, kind: str):
    async def at(step: int) -> bool:
        scene = Scene(release=release, can_continue=can_continue, kind=kind)
        stream = scene.stream()
        task = asyncio.create_task(read(stream))
        await turns(step)
        finished = task.done()
        await stream.aclose()
        assert scene.counts.all_closed
        assert scene.spans.started == scene.spans.ended
        await turns(3)
        assert task.done(), "the pending read ends"
        if not task.cancelled() and task.exception() is not None:
            # A reader that had not begun finds a closed stream: the library's own error, never RuntimeError at large.
            assert isinstance(task.exception(), StreamStateError)
        await stream.aclose()
        scene.assert_clean()
        return finished

    assert every_step(at) > 10


@pytest.mark.parametrize("read", [text_reader, managed_reader])
def test_cancelling_while_closing_still_closes(read: Any):
    """The consumer is cancelled twice: the second time while it closes its source."""

    async def at(step: int) -> bool:
        scene = Scene()
        task = asyncio.create_task(read(scene.stream()))
        await turns(step)
        if task.done():
            return True
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await turns(5)
        scene.assert_clean()
        return False

    assert every_step(at) > 10


@pytest.mark.parametrize("slow_close", [1, 3])
def test_cancelled_while_the_source_takes_time_to_close(slow_close: int):
    async def at(step: int) -> bool:
        closed: list[bool] = []

        async def generate(question: str) -> Any:
            try:
                for piece in SECOND:
                    await asyncio.sleep(0)
                    yield piece
            finally:
                await turns(slow_close)
                closed.append(True)

        spans, recorder = Spans(), Recorder()
        provider = TracerProvider()
        provider.add_span_processor(spans)
        guard = Guardrail(
            policy=Policy(lexical_weight=0.0),
            entailment=SlowFake(ONE, TWO),
            observers=[recorder, SpanObserver(tracer_provider=provider)],
        )
        task = asyncio.create_task(text_reader(guard.stream(generate, question=QUESTION, context=[HALL])))
        await turns(step)
        done = task.done()
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            assert task.cancelled()
        assert spans.started == spans.ended
        assert not spans.started or len(closed) <= 1
        assert others() == set()
        return done

    assert every_step(at) > 5


@pytest.mark.parametrize("give_up", ["aclose", "collect", "async with"])
@pytest.mark.parametrize("events", [False, True])
def test_the_reader_breaks_after_every_item(give_up: str, events: bool):
    async def after(count: int) -> bool:
        scene = Scene()
        stream = scene.stream()
        seen = 0
        done = True

        async def read(items: Any) -> None:
            nonlocal seen, done
            async for _ in items:
                seen += 1
                if seen > count:
                    done = False
                    break

        if give_up == "async with":
            async with stream:
                await read(stream.events() if events else stream)
        else:
            await read(stream.events() if events else stream)
        if give_up == "aclose":
            await stream.aclose()
        if give_up == "collect":
            del stream
            gc.collect()
            await turns(20)
            gc.collect()
        scene.assert_clean()
        return done

    assert every_step(after) >= 2


def test_break_in_one_task_and_the_loop_ends_at_once():
    """``asyncio.run`` ends right after the break: nothing may be destroyed pending."""
    scenes: list[Scene] = []

    async def main() -> None:
        scene = Scene()
        scenes.append(scene)
        async for _ in scene.stream():
            break

    with quiet():
        asyncio.run(main())
    assert scenes[0].counts.all_closed
    assert scenes[0].spans.started == scenes[0].spans.ended


@pytest.mark.parametrize("kind", ["async", "object", "sync"])
@pytest.mark.parametrize("release", ["sentence", "answer", "observe"])
@pytest.mark.parametrize("bad_attempt", [0, 1])
def test_the_generator_raises_at_every_chunk(kind: str, release: str, bad_attempt: int):
    chunks = [list(FIRST), list(SECOND)] if bad_attempt else [list(SECOND)]
    with quiet():
        for place in range(len(chunks[-1]) + 1):
            broken = [list(c) for c in chunks]
            broken[-1].insert(place, ConnectionError("provider gone"))
            asyncio.run(_broken_generator(broken, kind, release, bad_attempt))


async def _broken_generator(attempts: list[list[Any]], kind: str, release: str, bad_attempt: int) -> None:
    scene = Scene(release=release)
    scene.source = generator(attempts, scene.counts, kind=kind)
    stream = scene.stream()
    texts: list[str] = []
    error: BaseException | None = None
    try:
        async for text in stream:
            texts.append(text)
    except GenerationError as caught:
        error = caught
    out = "".join(texts)
    assert scene.counts.all_closed
    if release == "observe":
        if error is None:
            assert bad_attempt  # observe never calls the generator twice
    elif bad_attempt == 0:
        assert isinstance(error, GenerationError)
        assert isinstance(error.__cause__, ConnectionError)
        assert error.attempt == 1
        assert error.outcome.status is OutcomeStatus.ERROR
        assert out in ("", ONE + " ", ONE + " " + TWO)
    else:
        assert error is None
        outcome = await stream.outcome()
        assert outcome.status is OutcomeStatus.REFUSED
        assert isinstance(outcome.error, GenerationError)
        assert isinstance(outcome.error.__cause__, ConnectionError)
        assert WRONG not in out
        assert out == outcome.text
        assert "zqx" not in out
    await stream.aclose()
    scene.assert_clean()


class BreaksAt:
    """A scorer whose n-th batch raises, after giving way to the loop."""

    model_id = "breaks"

    def __init__(self, batch: int, error: BaseException) -> None:
        self._left, self._error, self.raised = batch, error, False

    async def score(self, pairs: Any) -> Any:
        await asyncio.sleep(0)
        if self._left == 0:
            self.raised = True
            raise self._error
        self._left -= 1
        return await SlowFake(ONE, TWO).score(pairs)


@pytest.mark.parametrize("release", ["sentence", "answer"])
@pytest.mark.parametrize("on_error", ["refuse", "raise", "pass_marked"])
def test_the_scorer_raises_in_every_batch(release: str, on_error: str):
    async def at(batch: int) -> bool:
        scene = Scene(release=release)
        breaks = BreaksAt(batch, ZeroDivisionError("zqx secret"))
        scene.guard = Guardrail(
            policy=Policy(lexical_weight=0.0, release=release, on_error=on_error),
            entailment=breaks,
            observers=[scene.recorder],
        )
        stream = scene.stream()
        error: BaseException | None = None
        out = ""
        try:
            async for text in stream:
                out += text
        except Exception as caught:
            error = caught
        if not breaks.raised:
            assert error is None
            return True
        if on_error == "raise":
            assert type(error).__name__ == "ScoringError"
            assert isinstance(error.__cause__, ZeroDivisionError)
            assert error.outcome.status is OutcomeStatus.ERROR
        else:
            assert error is None
            outcome = await stream.outcome()
            expected = OutcomeStatus.REFUSED if on_error == "refuse" else OutcomeStatus.ERROR
            assert outcome.status is expected
            assert not outcome.accepted
            assert outcome.reason == "scoring_error"
            if on_error == "pass_marked":
                assert any(r.status.value == "not_checked" for r in outcome.receipt)
        await stream.aclose()
        scene.assert_clean()
        return False

    assert every_step(at) >= 1


@pytest.mark.parametrize("where", ["generator", "scorer", "limiter", "reranker", "observer"])
@pytest.mark.parametrize("error", [RuntimeError, KeyError, StopIteration, StopAsyncIteration, asyncio.TimeoutError])
def test_no_exception_of_any_part_leaks_a_source_or_hangs(where: str, error: type[Exception]):
    def fail(*_: Any, **__: Any) -> Any:
        raise error("zqx")

    class Observer:
        def open_run(self, run_id: str) -> Any:
            return self

        on_event = activate = staticmethod(fail)

    class Bad:
        acquire = next_context = staticmethod(fail)

    async def main() -> None:
        counts = Counts()
        recorder = Recorder()
        guard = Guardrail(
            policy=Policy(lexical_weight=0.0),
            entailment=BreaksAt(0, error("zqx")) if where == "scorer" else SlowFake(ONE, TWO),
            limiter=Bad() if where == "limiter" else None,
            reranker=Bad() if where == "reranker" else None,
            observers=[recorder, Observer()] if where == "observer" else [recorder],
        )
        source = fail if where == "generator" else generator([FIRST, SECOND], counts)
        stream = guard.stream(lambda question: source(question, passages=()), question=QUESTION, context=[HALL])
        outcome = None
        try:
            outcome = await stream.outcome()
        except Exception as caught:
            # A StopIteration cannot leave a coroutine: Python turns it into a RuntimeError.
            assert type(caught).__module__.startswith("guardrail") or error in (type(caught), type(caught.__cause__))
            assert where != "observer"
        if outcome is not None:
            assert outcome.accepted == (where == "observer") or where == "reranker"
        await stream.aclose()
        assert counts.all_closed
        assert_balanced(recorder.events)
        assert others() == set()

    asyncio.run(main())


def test_a_stream_that_is_never_read_starts_nothing():
    async def main() -> None:
        for way in ("aclose", "collect", "async with"):
            scene = Scene()
            stream = scene.stream()
            if way == "aclose":
                await stream.aclose()
                await stream.aclose()
            elif way == "async with":
                async with stream:
                    pass
            del stream
            gc.collect()
            await turns(3)
            assert scene.counts.calls == 0
            assert not scene.spans.started
            scene.assert_clean()

    with quiet():
        asyncio.run(main())


@pytest.mark.parametrize("step", [0, 2, 5, 9, 14, 30])
def test_cancelling_with_a_generator_in_a_thread(step: int):
    """Threads are not deterministic, so only the end is checked: closed, ended, nothing left."""

    async def main() -> None:
        scene = Scene(kind="sync")
        task = asyncio.create_task(text_reader(scene.stream()))
        await turns(step)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            assert task.cancelled()
        assert scene.spans.started == scene.spans.ended
        for _ in range(200):
            if scene.counts.all_closed:
                break
            await asyncio.sleep(0.005)
        scene.assert_clean()

    with quiet():
        asyncio.run(main())


@pytest.mark.parametrize("closes", ["close", "aclose", "sync close"])
def test_a_source_that_a_thread_opens_after_the_cancellation_is_closed(closes: str):
    """A blocking client connects in a thread; the reader goes away meanwhile; the connection must not stay open."""
    entered, go_on = threading.Event(), threading.Event()
    closed: list[str] = []

    class Connection:
        def __aiter__(self) -> Any:
            return self

        async def __anext__(self) -> str:
            raise StopAsyncIteration

    async def close(self: Any) -> None:
        closed.append(closes)

    def close_sync(self: Any) -> None:
        closed.append(closes)

    setattr(Connection, closes.removeprefix("sync "), close_sync if "sync" in closes else close)

    def connect(question: str) -> Any:
        entered.set()
        go_on.wait(5)
        return Connection()

    async def main() -> None:
        guard = Guardrail(entailment=SlowFake(ONE), observers=[])
        task = asyncio.create_task(text_reader(guard.stream(connect, question=QUESTION, context=[HALL])))
        while not entered.is_set():
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        go_on.set()
        for _ in range(100):
            if closed:
                break
            await asyncio.sleep(0.005)

    asyncio.run(main())
    assert closed == [closes]


def test_no_thread_of_the_guard_keeps_the_process_alive():
    assert all("guardrail" not in t.name for t in guard_threads())


@pytest.mark.parametrize("where", ["generator", "late generator", "sync generator", "scorer", "limiter"])
def test_a_part_that_is_cancelled_from_inside_is_a_failure_and_not_a_cancellation(where: str):
    """A provider's own task was cancelled; nobody cancelled the reader."""

    class Limiter:
        async def acquire(self, key: str, cost: float = 1.0, timeout_s: float | None = None) -> Decision:
            if where == "limiter":
                raise asyncio.CancelledError("inside")
            return Decision(allowed=True)

    async def main() -> None:
        counts, recorder, before = Counts(), Recorder(), others()
        cancelled = asyncio.CancelledError("inside")
        attempts: list[list[Any]] = [[ONE + " ", cancelled]] if where.endswith("generator") else [[ONE]]
        if where == "late generator":
            attempts = [[WRONG], [cancelled]]
        guard = Guardrail(
            policy=Policy(lexical_weight=0.0),
            entailment=BreaksAt(0, cancelled) if where == "scorer" else SlowFake(ONE),
            limiter=Limiter(),
            observers=[recorder],
        )
        source = generator(attempts, counts, kind="sync" if where == "sync generator" else "async")
        outcome = None
        try:
            outcome = await guard.run(source, question=QUESTION, context=[HALL])
        except Exception as error:
            assert type(error).__module__.startswith("guardrail")
            outcome = error.outcome
        assert outcome.status in (OutcomeStatus.REFUSED, OutcomeStatus.ERROR)
        assert counts.all_closed
        assert_balanced(recorder.events)
        assert others() == before

    async def observed() -> asyncio.Task[None]:
        task = asyncio.create_task(main())
        await asyncio.wait([task])
        return task

    task = asyncio.run(observed())
    assert not task.cancelled()
    assert task.exception() is None


@pytest.mark.parametrize("way", ["read", "aclose", "cancel"])
def test_a_source_is_run_and_closed_in_one_task(way: str):
    """Cancel scopes and time limits inside a generator are bound to the task that entered them."""

    async def main() -> None:
        tasks: list[Any] = []

        async def generate(question: str) -> Any:
            try:
                async with asyncio.timeout(60), asyncio.TaskGroup():
                    for piece in SECOND:
                        tasks.append(asyncio.current_task())
                        await asyncio.sleep(0)
                        yield piece
                    if way != "read":
                        await asyncio.Event().wait()
            finally:
                tasks.append(asyncio.current_task())

        guard = Guardrail(policy=Policy(lexical_weight=0.0), entailment=SlowFake(ONE, TWO), observers=[])
        stream = guard.stream(generate, question=QUESTION, context=[HALL])
        task = asyncio.create_task(text_reader(stream))
        await turns(40)
        if way == "cancel":
            task.cancel()
        elif way == "aclose":
            await stream.aclose()
        await asyncio.gather(task, return_exceptions=True)
        assert len(tasks) == len(SECOND) + 1
        assert len(set(tasks)) == 1
        assert others() == set()

    with quiet():
        asyncio.run(main())


def test_a_time_limit_around_the_reader_is_the_readers():
    """``asyncio.timeout`` and ``TaskGroup`` see their own cancellation."""

    async def main() -> None:
        scene = Scene()

        async def hangs(question: str) -> Any:
            scene.counts.opened += 1
            try:
                yield ONE[:4]
                await asyncio.Event().wait()
            finally:
                scene.counts.closed += 1

        scene.source = hangs
        with pytest.raises(TimeoutError) as caught:
            async with asyncio.timeout(0.02):
                await text_reader(scene.stream())
        assert type(caught.value) is TimeoutError
        scene.assert_clean()
        with pytest.raises(ExceptionGroup):
            async with asyncio.TaskGroup() as group:
                group.create_task(text_reader(scene.stream()))
                await turns(5)
                raise ValueError("the other branch failed")
        scene.assert_clean()

    with quiet():
        asyncio.run(main())


def _yields_while_closing(pieces: Any) -> Any:
    async def generate(question: str) -> Any:
        try:
            for piece in pieces:
                yield piece
            await asyncio.Event().wait()
        finally:
            yield "a last word"

    return generate


def _raises_while_closing(pieces: Any) -> Any:
    async def generate(question: str) -> Any:
        try:
            for piece in pieces:
                yield piece
            await asyncio.Event().wait()
        finally:
            raise OSError("zqx while closing")

    return generate


def _raises_while_closing_in_a_thread(pieces: Any) -> Any:
    def generate(question: str) -> Any:
        try:
            yield from pieces
            yield from pieces
        finally:
            raise OSError("zqx while closing")

    return generate


@pytest.mark.parametrize("make", [_yields_while_closing, _raises_while_closing, _raises_while_closing_in_a_thread])
@pytest.mark.parametrize("way", ["aclose", "cancel"])
def test_a_source_that_fails_while_closing_does_not_hurt_the_reader(make: Any, way: str):
    async def main() -> None:
        recorder = Recorder()
        guard = Guardrail(policy=Policy(lexical_weight=0.0), entailment=SlowFake(ONE, TWO), observers=[recorder])
        stream = guard.stream(make([ONE + " ", TWO + " "]), question=QUESTION, context=[HALL])
        if way == "aclose":
            assert await anext(aiter(stream)) == ONE + " "
            await stream.aclose()
        else:
            task = asyncio.create_task(text_reader(stream))
            await turns(40)
            task.cancel()
            result = (await asyncio.gather(task, return_exceptions=True))[0]
            assert result is None or isinstance(result, (asyncio.CancelledError, GenerationError))
            await stream.aclose()
        assert_balanced(recorder.events)
        assert others() == set()

    asyncio.run(main())
