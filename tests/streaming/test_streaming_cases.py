"""The streaming cases T001–T029: one test per case, named after it."""

from __future__ import annotations

import asyncio
import functools
import gc
import logging
import threading
import time
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.runnables import RunnableGenerator, RunnableLambda
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from guardrail import (
    DeadlineExceededError,
    Decision,
    EntailmentScore,
    GenerationError,
    GenerationTimeoutError,
    GenerationTypeError,
    GeneratorSignatureError,
    Guardrail,
    OutcomeStatus,
    Policy,
    Verifier,
)
from guardrail.events import Held, Regenerating, Released, RodeAlong
from guardrail.telemetry.spans import SpanObserver
from guardrail.testing import FakeEntailment, ScriptedGenerator
from tests.streaming.helpers import (
    HALL,
    LENIENT_WORDS,
    QUESTION,
    Counts,
    assert_receipt,
    generator,
    guard_for,
    others,
    quiet,
    strings_in,
    told,
    turns,
)

OPEN, FREE, PAID = "The desk opens at ten.", "Entry is free.", "Entry costs 90 euro."
DESK = "The desk opens at ten. Entry is free."


async def read_all(stream: Any) -> str:
    return "".join([text async for text in stream])


# --- closing --------------------------------------------------------------------------------------------------


async def test_T001_aclose_closes_the_upstream_before_it_returns():
    closed = False

    async def upstream(question: str) -> Any:
        nonlocal closed
        try:
            for piece in (OPEN + " ", FREE + " ", "More "):
                yield piece
                await asyncio.sleep(0)
            await asyncio.Event().wait()
        finally:
            closed = True

    with quiet():
        out = guard_for(OPEN, FREE).stream(upstream, question=QUESTION, context=[DESK])
        assert await anext(aiter(out)) == OPEN + " "
        await out.aclose()
        assert closed
        assert others() == set()


async def test_T003_an_upstream_that_raises_midway_is_not_a_finished_answer():
    counts = Counts()
    chunks = [OPEN + " ", "Entry is fr", ConnectionError("x")]
    stream = guard_for(OPEN, FREE).stream(generator([chunks], counts), question=QUESTION, context=[DESK])
    out: list[str] = []
    with pytest.raises(GenerationError) as caught:
        async for text in stream:
            out.append(text)
    assert "".join(out) == OPEN + " "
    assert isinstance(caught.value.__cause__, ConnectionError)
    assert caught.value.outcome.text == OPEN + " "
    assert caught.value.outcome.status is OutcomeStatus.ERROR
    assert counts.all_closed


@pytest.mark.parametrize("leave", ["aclose", "collect"])
async def test_T004_nothing_is_yielded_while_closing(leave: str):
    counts = Counts()
    with quiet():
        out = guard_for(OPEN, FREE).stream(
            generator([[OPEN + " ", FREE + " ", "x"]], counts), question=QUESTION, context=[DESK]
        )
        async for _ in out:
            break
        if leave == "aclose":
            await out.aclose()
        del out
        gc.collect()
        await turns(10)
    assert counts.all_closed
    assert others() == set()


@pytest.mark.parametrize("how", ["aclose", "cancel", "both"])
async def test_T005_closing_while_a_read_is_running(how: str):
    counts = Counts()
    waits = asyncio.Event()

    async def upstream(question: str) -> Any:
        counts.opened += 1
        try:
            yield OPEN[:4]
            await waits.wait()
        finally:
            counts.closed += 1

    with quiet():
        out = guard_for(OPEN).stream(upstream, question=QUESTION, context=[DESK])
        pending = asyncio.create_task(aiter(out).__anext__())
        await turns(6)
        if how != "aclose":
            pending.cancel()
        if how != "cancel":
            await asyncio.create_task(out.aclose())
        ended = (await asyncio.gather(pending, return_exceptions=True))[0]
        assert isinstance(ended, (asyncio.CancelledError, StopAsyncIteration))
        await out.aclose()
    assert (counts.opened, counts.closed) == (1, 1)
    assert others() == set()


class Bare:
    """``__aiter__`` and ``__anext__``, nothing else."""

    def __init__(self) -> None:
        self.closed = 0
        self._chunks = iter([OPEN + " ", FREE])

    def __aiter__(self) -> Any:
        return self

    async def __anext__(self) -> str:
        for chunk in self._chunks:
            return chunk
        raise StopAsyncIteration


class AsyncClose(Bare):
    async def close(self) -> None:
        self.closed += 1


class SyncClose(Bare):
    def close(self) -> None:
        self.closed += 1


class BothCloses(Bare):
    async def aclose(self) -> None:
        self.closed += 1

    async def close(self) -> None:
        self.closed += 1


@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize(("shape", "closes"), [(Bare, 0), (AsyncClose, 1), (SyncClose, 1), (BothCloses, 1)])
async def test_T006_sources_with_and_without_a_close_method(shape: type[Bare], closes: int, early: bool):
    source = shape()
    with quiet():
        out = guard_for(OPEN, FREE).stream(lambda question: source, question=QUESTION, context=[DESK])
        if early:
            async for _ in out:
                break
            await out.aclose()
        else:
            assert await read_all(out) == OPEN + " " + FREE
    assert source.closed == closes


async def test_T007_a_stream_that_is_never_read_calls_nothing():
    calls: list[str] = []

    class Limiter:
        async def acquire(self, key: str, cost: float = 1.0, timeout_s: float | None = None) -> Decision:
            calls.append("limiter")
            return Decision(allowed=True)

    guard = guard_for(OPEN, limiter=Limiter())

    def upstream(question: str) -> str:
        calls.append("generator")
        return OPEN

    with quiet():
        stream = guard.stream(upstream, question=QUESTION, context=[DESK])
        await stream.aclose()
        stream = guard.stream(upstream, question=QUESTION, context=[DESK])
        del stream
        gc.collect()
        await turns(3)
    assert calls == []


# --- what passes through --------------------------------------------------------------------------------------


def _tool_chunk(args: str, name: str | None = None) -> AIMessageChunk:
    return AIMessageChunk("", tool_call_chunks=[{"name": name, "args": args, "id": "c1" if name else None, "index": 0}])


CASES_T008 = {
    "text only": [AIMessageChunk(OPEN)],
    "tool calls only": [_tool_chunk('{"id": 7}', "lookup")],
    "text then tool calls": [AIMessageChunk(OPEN + " "), _tool_chunk('{"id": 7}', "lookup")],
    "empty text + finish reason": [AIMessageChunk("", response_metadata={"finish_reason": "stop"})],
}


@pytest.mark.parametrize("release", ["sentence", "answer"])
@pytest.mark.parametrize("case", CASES_T008)
async def test_T008_every_branch_yields(case: str, release: str):
    chunks = CASES_T008[case]
    policy = LENIENT_WORDS.override(release=release, max_attempts=1)
    stream = guard_for(OPEN, policy=policy).stream(ScriptedGenerator(chunks), question=QUESTION, context=[DESK])
    events = [e async for e in stream.events()]
    outcome = events[-1].outcome
    rode = [e.raw for e in events if isinstance(e, RodeAlong)]
    if case == "empty text + finish reason":
        assert outcome.text == policy.refusal
    else:
        assert rode == chunks
        assert outcome.accepted
        assert told(events) == "".join(c.text for c in chunks)
    assert events[:-1], "never an empty stream"


@pytest.mark.parametrize("release", ["sentence", "answer", "observe"])
async def test_T009_usage_on_an_empty_chunk_is_kept(release: str):
    usage = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}
    chunks = [
        AIMessageChunk("Open at ten.", id="m1"),
        AIMessageChunk("", id="m1", usage_metadata=usage, response_metadata={"model_name": "x"}),
    ]
    guard = guard_for("Open at ten.", policy=LENIENT_WORDS.override(release=release))
    stream = guard.stream(ScriptedGenerator(chunks), question=QUESTION, context=["Open at ten."])
    rode = [e.raw async for e in stream.events() if isinstance(e, RodeAlong)]
    whole = rode[0] + rode[1]
    assert len(rode) == 2
    assert (whole.content, whole.usage_metadata["total_tokens"], whole.id) == ("Open at ten.", 7, "m1")
    assert whole.response_metadata == {"model_name": "x"}
    outcome = await stream.outcome()
    assert outcome.attempts[0].usage["input_tokens"] == 3
    assert outcome.attempts[0].usage["output_tokens"] == 4


@pytest.mark.parametrize("profile", ["balanced", "strict"])
@pytest.mark.parametrize("context", [[DESK], [], None])
async def test_T010_a_message_of_tool_calls_passes_untouched(profile: str, context: Any):
    chunks = [_tool_chunk('{"id"', "lookup"), _tool_chunk(": 7}")]
    model = ScriptedGenerator(chunks)
    fake = FakeEntailment(0.0)
    stream = Guardrail(policy=profile, entailment=fake, observers=[]).stream(model, question=QUESTION, context=context)
    events = [e async for e in stream.events()]
    outcome = events[-1].outcome
    if profile == "strict" and not context:
        assert model.requests == []
        return
    assert [e.raw for e in events if isinstance(e, RodeAlong)] == chunks
    assert (outcome.text, outcome.reason) == ("", "tool_calls")
    assert outcome.accepted
    assert fake.pairs == []
    assert len(model.requests) == 1


KNOWN = [None, "", {"text": "Open at ", "meta": 1}, [{"type": "text", "text": "ten."}]]


async def test_T011_known_shapes_are_read():
    stream = guard_for("Open at ten.").stream(ScriptedGenerator(KNOWN), question=QUESTION, context=["Open at ten."])
    events = [e async for e in stream.events()]
    assert told(events) == "Open at ten."
    assert [e.raw for e in events if isinstance(e, RodeAlong)] == KNOWN[2:]


@pytest.mark.parametrize(
    "item", [b"Open at nine.", bytearray(b"x"), 7, 1.5, object(), {"meta": 1}, [7], [{"no": 1}], {"text": 7}, True]
)
@pytest.mark.parametrize("release", ["sentence", "answer", "observe"])
async def test_T011_unknown_shapes_are_an_error_and_never_released(item: Any, release: str):
    counts = Counts()
    guard = guard_for("Open at ten.", policy=LENIENT_WORDS.override(release=release))
    stream = guard.stream(generator([["Open ", item]], counts), question=QUESTION, context=["Open at ten."])
    out: list[str] = []
    with pytest.raises(GenerationTypeError) as caught:
        async for text in stream:
            out.append(text)
    assert isinstance(caught.value, TypeError)
    culprit = item[0] if isinstance(item, list) else item
    assert type(culprit).__name__ in str(caught.value) or "bytes" in str(caught.value)
    assert "nine" not in "".join(out) + str(caught.value)
    if release != "observe":
        assert out == []
    assert counts.all_closed


@pytest.mark.parametrize("profile", ["balanced", "strict", "lenient"])
async def test_T012_a_check_that_did_not_happen_is_never_called_verified(profile: str):
    def broken(premise: str, claim: str) -> float:
        raise RuntimeError("model is gone")

    guard = Guardrail(policy=profile, entailment=FakeEntailment(broken), observers=[])
    outcome = await guard.run(ScriptedGenerator(OPEN), question=QUESTION, context=[DESK])
    assert (outcome.status, outcome.reason) == (OutcomeStatus.REFUSED, "scoring_error")
    assert all(not a.accepted for a in outcome.attempts)
    assert not any(r.status.value.startswith("checked") and r.attempt for r in outcome.receipt)
    stream = guard.stream(ScriptedGenerator([object(), object()]), question=QUESTION, context=[DESK])
    with pytest.raises(GenerationTypeError) as caught:
        await read_all(stream)
    assert caught.value.outcome.status is OutcomeStatus.ERROR


async def test_T013_no_chunk_is_lost():
    names = "oak elm ash fir yew bay box fig nut sun sea sky".split()
    sentences = [f"The {name} room has a tall window over the lake." for name in names]
    text = " ".join(sentences) + "\n"
    chunks: list[str] = []
    place = 0
    while place < len(text):
        size = 1 + (len(chunks) * 7) % 3
        chunks.append(text[place : place + size])
        place += size
    assert len(chunks) > 200
    stream = guard_for(*sentences).stream(ScriptedGenerator(chunks), question=QUESTION, context=[" ".join(sentences)])
    pieces = [t async for t in stream]
    assert "".join(pieces) == text
    assert len(pieces) >= 12


async def test_T014_each_sentence_is_scored_once_per_attempt_in_every_mode():
    answer = "The desk opens at ten. Entry is free. The garden has roses."
    counted: dict[str, int] = {}
    for release in ("sentence", "answer", "observe"):
        fake = FakeEntailment(1.0)
        guard = Guardrail(policy=LENIENT_WORDS.override(release=release), entailment=fake, observers=[])
        outcome = await guard.run(ScriptedGenerator(answer), question=QUESTION, context=[answer, HALL])
        assert outcome.accepted
        assert len(fake.pairs) == len(set(fake.pairs)), "no pair twice"
        counted[release] = len(fake.pairs)
    fake = FakeEntailment(1.0)
    await Verifier(policy=LENIENT_WORDS, entailment=fake).verify(answer, [answer, HALL])
    counted["verifier"] = len(fake.pairs)
    fake = FakeEntailment(1.0)
    guard = Guardrail(policy=LENIENT_WORDS, entailment=fake, observers=[])
    chain = RunnableLambda(lambda given: AIMessage(answer))
    await read_all(guard.stream(chain, question=QUESTION, context=[answer, HALL]))
    counted["runnable"] = len(fake.pairs)
    assert len(set(counted.values())) == 1, counted


# --- regeneration ---------------------------------------------------------------------------------------------

LIFT = "The lift opened in 2001. It holds 12 people. It runs until ten."
LIFT_ATTEMPTS = [
    ["The lift opened in 2001. ", "It holds 12 people. ", "It runs until midnight."],
    ["The lift opened in 2001. ", "It holds 12 people. ", "It runs until ten."],
]


@pytest.mark.parametrize("can_continue", [False, True])
@pytest.mark.parametrize("release", ["sentence", "answer", "auto"])
@pytest.mark.parametrize("retractable", [False, True])
async def test_T015_no_sentence_is_shown_twice(release: str, retractable: bool, can_continue: bool):
    right = ["The lift opened in 2001.", "It holds 12 people.", "It runs until ten."]
    attempts = [LIFT_ATTEMPTS[0], LIFT_ATTEMPTS[1][2:] if can_continue and release != "answer" else LIFT_ATTEMPTS[1]]
    guard = guard_for(*right, policy=LENIENT_WORDS.override(release=release))
    stream = guard.stream(generator(attempts, Counts(), can_continue=can_continue), question=QUESTION, context=[LIFT])
    events = [e async for e in stream.events(retractable=retractable)]
    outcome = events[-1].outcome
    assert outcome.accepted
    assert told(events) == LIFT == outcome.text
    if release == "answer":
        assert outcome.repair == ""
    elif can_continue:
        assert outcome.repair == "continued"
    else:
        assert outcome.repair == ("retracted" if retractable else "appended")


@pytest.mark.parametrize("profile", ["balanced", "strict"])
@pytest.mark.parametrize("release", ["sentence", "answer"])
async def test_T016_no_character_of_a_failing_sentence_leaks(profile: str, release: str):
    """At every event the reader has no character of sentence 2, not even its first letter."""
    base = Guardrail(policy=profile).policy
    policy = base.override(lexical_weight=0.0, release=release, max_attempts=1)
    guard = guard_for(OPEN, policy=policy)
    stream = guard.stream(ScriptedGenerator(list(OPEN + " " + PAID)), question=QUESTION, context=[OPEN])
    text = ""
    async for event in stream.events():
        assert not any("euro" in s or "Entry" in s for s in strings_in(event))
        if isinstance(event, Released) and event.attempt:
            text += event.text
        if isinstance(event, (Held, Regenerating)):
            assert text == ("" if release == "answer" else OPEN + " ")
    outcome = await stream.outcome()
    assert outcome.status is OutcomeStatus.REFUSED
    assert text == ("" if release == "answer" else OPEN + " ")
    assert "Entry" not in outcome.text


@pytest.mark.parametrize("kind", ["before the first", "between", "trickle"])
@pytest.mark.parametrize("shape", ["async", "sync"])
async def test_T017_three_separate_limits(kind: str, shape: str):
    closed: list[bool] = []
    stop = threading.Event()

    async def wait() -> None:
        await asyncio.Event().wait()

    async def upstream(question: str) -> Any:
        try:
            if kind == "before the first":
                await wait()
            yield OPEN[:5]
            if kind == "between":
                await wait()
            while True:
                await asyncio.sleep(0.01)
                yield "x"
        finally:
            closed.append(True)

    def upstream_sync(question: str) -> Any:
        try:
            if kind == "before the first":
                stop.wait(1)
            yield OPEN[:5]
            if kind == "between":
                stop.wait(1)
            while not stop.wait(0.01):
                yield "x"
        finally:
            closed.append(True)

    limits = {
        "before the first": (GenerationTimeoutError, {"first_token_timeout_s": 0.1, "token_timeout_s": 0.05}),
        "between": (GenerationTimeoutError, {"first_token_timeout_s": 5.0, "token_timeout_s": 0.1}),
        "trickle": (DeadlineExceededError, {"timeout_s": 0.15}),
    }
    error, fields = limits[kind]
    guard = guard_for(OPEN, policy=LENIENT_WORDS.override(**fields))
    stream = guard.stream(upstream if shape == "async" else upstream_sync, question=QUESTION, context=[DESK])
    began = time.monotonic()
    with pytest.raises(error) as caught:
        await read_all(stream)
    took = time.monotonic() - began
    stop.set()
    assert isinstance(caught.value, TimeoutError)
    assert took < 0.15 + 0.2 + 0.1
    if isinstance(caught.value, GenerationTimeoutError):
        assert caught.value.limit == ("first_token_timeout_s" if kind == "before the first" else "token_timeout_s")
    assert caught.value.outcome.reason == "timeout"
    for _ in range(100):
        if closed:
            break
        await asyncio.sleep(0.005)
    assert closed == [True]
    await stream.aclose()
    assert others() == set()


@pytest.mark.parametrize("shape", ["async", "sync"])
async def test_T018_a_slow_reader_bounds_what_is_pulled(shape: str):
    pulled = 0

    async def upstream(question: str) -> Any:
        nonlocal pulled
        for _ in range(100_000):
            pulled += 1
            yield OPEN + " "
            await asyncio.sleep(0)

    def upstream_sync(question: str) -> Any:
        nonlocal pulled
        for _ in range(100_000):
            pulled += 1
            yield OPEN + " "

    fake = FakeEntailment(1.0)
    guard = Guardrail(policy=LENIENT_WORDS, entailment=fake, observers=[])
    with quiet():
        stream = guard.stream(upstream if shape == "async" else upstream_sync, question=QUESTION, context=[DESK])
        reader = aiter(stream)
        await anext(reader)
        await turns(2_000)
        if shape == "sync":
            await asyncio.sleep(0.05)
        after_first = pulled
        assert after_first < 2_000, "bounded while the reader does nothing"
        await turns(2_000)
        assert pulled == after_first
        assert len(fake.pairs) < 4_000
        await stream.aclose()
        assert others() == set()


async def test_T019_streams_of_one_guard_do_not_mix():
    guard = Guardrail(
        policy=Policy(lexical_weight=0.0), entailment=FakeEntailment(lambda p, c: 1.0 if c in p else 0.0), observers=[]
    )

    async def one(i: int) -> tuple[str, Any]:
        said = i if i % 2 else i + 1

        async def generate(question: str, context: Any) -> Any:
            assert all(f"Box {i} " in text for text in context)
            for word in f"Box {i} holds {said} stones.".split(" "):
                await asyncio.sleep(0)
                yield word + " "

        stream = guard.stream(generate, question=f"Box {i}?", context=[f"Box {i} holds {i} stones."])
        return await read_all(stream), await stream.outcome()

    results = await asyncio.gather(*(one(i) for i in range(100)))
    for i, (text, outcome) in enumerate(results):
        if i % 2:
            assert text == f"Box {i} holds {i} stones. "
            assert outcome.accepted
        else:
            assert outcome.status is OutcomeStatus.REFUSED
            assert text == outcome.text == guard.policy.refusal


async def _largest_gap(work: Any) -> float:
    gaps: list[float] = []

    async def heartbeat() -> None:
        last = time.monotonic()
        while True:
            await asyncio.sleep(0.02)
            now = time.monotonic()
            gaps.append(now - last)
            last = now

    beat = asyncio.create_task(heartbeat())
    await work
    beat.cancel()
    return max(gaps)


async def test_T020_synchronous_work_does_not_block_the_loop():
    def slow_entailment(pairs: Any) -> list[float]:
        time.sleep(0.2)
        return [1.0 for _ in pairs]

    def slow_generate(question: str) -> str:
        time.sleep(0.2)
        return OPEN

    guard = Guardrail(policy=LENIENT_WORDS, entailment=slow_entailment, observers=[])
    outcomes: list[Any] = []

    async def work() -> None:
        outcomes.append(await guard.run(slow_generate, question=QUESTION, context=[DESK]))

    assert await _largest_gap(work()) < 0.15
    assert outcomes[0].accepted


@pytest.mark.parametrize("profile", ["balanced", "strict"])
async def test_T021_a_scorer_that_is_too_slow_is_left_behind(profile: str):
    release = threading.Event()

    def stuck(pairs: Any) -> list[float]:
        release.wait(1.0)
        return [1.0 for _ in pairs]

    policy = Guardrail(policy=profile).policy.override(lexical_weight=0.0, scoring_timeout_s=0.1)
    guard = Guardrail(policy=policy, entailment=stuck, observers=[])
    began = time.monotonic()
    outcomes = await asyncio.gather(
        *(guard.run(ScriptedGenerator(OPEN), question=QUESTION, context=[DESK]) for _ in range(20))
    )
    took = time.monotonic() - began
    assert took < 0.6
    for outcome in outcomes:
        assert (outcome.status, outcome.reason) == (OutcomeStatus.REFUSED, "scoring_error")
    before = [repr(o) for o in outcomes]
    release.set()
    await asyncio.sleep(0.05)
    assert [repr(o) for o in outcomes] == before
    fresh = await guard.run(ScriptedGenerator(OPEN), question=QUESTION, context=[DESK])
    assert fresh.accepted, "new runs still find a thread"


# --- generators: T022-T024 in full are in test_generators.py ----------------------------------------------------


async def test_T022_shapes_give_equal_results():
    async def agen(question: str) -> Any:
        yield OPEN + " "
        yield FREE

    def gen(question: str) -> Any:
        yield OPEN + " "
        yield FREE

    async def returns_agen(question: str) -> Any:
        return agen(question)

    async def returns_text(question: str) -> str:
        return DESK

    async def returns_message(question: str) -> AIMessage:
        return AIMessage(DESK)

    shapes = [agen, returns_agen, returns_text, lambda question: agen(question), gen, lambda question: DESK]
    with quiet():
        for shape in [*shapes, returns_message]:
            outcome = await guard_for(OPEN, FREE).run(shape, question=QUESTION, context=[DESK])
            assert (outcome.text, outcome.accepted) == (DESK, True)


async def test_T023_partials_and_callable_objects():
    async def tenant_fn(question: str, *, tenant: str) -> str:
        assert tenant == "a"
        return DESK

    class Model:
        async def __call__(self, question: str) -> str:
            return DESK

        async def method(self, question: str) -> str:
            return DESK

    def decorated(fn: Any) -> Any:
        @functools.wraps(fn)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return fn(*args, **kwargs)

        return wrapper

    @decorated
    async def wrapped(question: str) -> str:
        return DESK

    model = Model()
    with quiet():
        for shape in (functools.partial(tenant_fn, tenant="a"), model, functools.partial(model), model.method, wrapped):
            outcome = await guard_for(OPEN, FREE).run(shape, question=QUESTION, context=[DESK])
            assert outcome.text == DESK


async def test_T024_signatures():
    seen: list[Any] = []

    def only_question(question: Any) -> str:
        seen.append((question,))
        return DESK

    def both(question: Any, context: Any) -> str:
        seen.append((question, list(context)))
        return DESK

    def keywords(question: Any, *, context: Any, attempt: int) -> str:
        seen.append((question, list(context), attempt))
        return DESK

    def anything(**kwargs: Any) -> str:
        seen.append((kwargs["question"], list(kwargs["context"])))
        return DESK

    guard = guard_for(OPEN, FREE)
    for shape in (only_question, both, keywords, anything, lambda q, c: both(q, c)):
        assert (await guard.run(shape, question=QUESTION, context=[DESK])).text == DESK
    assert seen == [
        (QUESTION,),
        (QUESTION, [DESK]),
        (QUESTION, [DESK], 1),
        (QUESTION, [DESK]),
        (QUESTION, [DESK]),
    ]

    def needs_more(question: Any, context: Any, database: Any) -> str:
        return DESK

    with pytest.raises(GeneratorSignatureError, match="database"):
        guard.stream(needs_more, question=QUESTION, context=[DESK])

    calls: list[int] = []

    def raises_inside(question: Any, context: Any) -> str:
        calls.append(1)
        raise TypeError("raises_inside() missing 1 required positional argument: 'x'")

    with pytest.raises(GenerationError) as caught:
        await guard.run(raises_inside, question=QUESTION, context=[DESK])
    assert isinstance(caught.value.__cause__, TypeError)
    assert not isinstance(caught.value, GeneratorSignatureError)
    assert calls == [1]


# --- ends -----------------------------------------------------------------------------------------------------


async def test_T025_a_reader_who_stops_early_is_no_error():
    errors: list[BaseException] = []

    class Handler(BaseCallbackHandler):
        def on_chain_error(self, error: BaseException, **kwargs: Any) -> None:
            errors.append(error)

    async def model(inputs: Any) -> Any:
        async for _ in inputs:
            pass
        for piece in (OPEN + " ", FREE + " ", "More "):
            yield piece
            await asyncio.sleep(0)

    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    guard = guard_for(OPEN, FREE, observers=[SpanObserver(tracer_provider=provider)])
    chain = RunnableGenerator(model).with_config(callbacks=[Handler()])
    stream = guard.stream(chain, question=QUESTION, context=[DESK])
    assert await anext(aiter(stream)) == OPEN + " "
    await stream.aclose()
    (run,) = [s for s in exporter.get_finished_spans() if s.name == "guardrail.run"]
    assert run.attributes["guardrail.cancelled"] is True
    assert run.attributes["guardrail.outcome"] == "cancelled"
    assert run.attributes["guardrail.reason"] == "closed_by_reader"
    assert all(s.status.status_code.name != "ERROR" for s in exporter.get_finished_spans())


async def test_T026_cancellation_is_never_swallowed():
    """See test_cancellation.py for every step; here with a limiter and a scorer that wait."""

    class Waits:
        model_id = "waits"

        async def acquire(self, key: str, cost: float = 1.0, timeout_s: float | None = None) -> Decision:
            await turns(5)
            return Decision(allowed=True)

        async def score(self, pairs: Any) -> list[EntailmentScore]:
            await turns(5)
            return [EntailmentScore(entailment=0.0) for _ in pairs]

    guard = Guardrail(policy=LENIENT_WORDS, entailment=Waits(), limiter=Waits(), observers=[])
    for step in range(20):
        counts = Counts()
        source = generator([[OPEN], [FREE], [PAID]], counts, pause=3)
        task = asyncio.create_task(guard.run(source, question=QUESTION, context=[DESK]))
        await turns(1 + 2 * step)
        assert not task.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert task.cancelled()
        assert counts.all_closed
        assert others() == set()


@pytest.mark.parametrize(("stop_on_repeat", "calls"), [(True, 2), (False, 3)])
@pytest.mark.parametrize("release", ["sentence", "answer"])
@pytest.mark.parametrize("can_continue", [False, True])
async def test_T027_the_number_of_calls_is_exact(release: str, stop_on_repeat: bool, calls: int, can_continue: bool):
    counts = Counts()
    guard = guard_for(OPEN, policy=LENIENT_WORDS.override(release=release, stop_on_repeat=stop_on_repeat))
    outcome = await guard.run(
        generator([[PAID]], counts, can_continue=can_continue), question=QUESTION, context=[OPEN, HALL]
    )
    assert counts.calls == calls == len(outcome.attempts)
    assert outcome.status is OutcomeStatus.REFUSED
    assert outcome.reason == ("same_claim_failed_twice" if stop_on_repeat else "attempts_exhausted")
    assert outcome.text == guard.policy.refusal
    assert counts.all_closed


async def test_T028_a_retry_uses_the_reranked_context():
    passages = ["The hall is old.", "The garden has roses.", "The permit costs 12 euro."]
    right = "The permit costs 12 euro."
    seen: list[Any] = []

    def generate(question: str, context: Any, failed_claims: Any) -> str:
        seen.append((tuple(context), tuple(f.text for f in failed_claims)))
        return right if len(seen) > 1 else "The permit costs 15 euro."

    guard = guard_for(right)
    outcome = await guard.run(generate, question="What does a permit cost?", context=passages)
    assert outcome.accepted
    assert outcome.text == right
    first, second = seen
    assert first == (tuple(passages), ())
    assert second[0] != first[0]
    assert "permit" in second[0][0]
    assert second[1] == ("The permit costs 15 euro.",)
    assert outcome.attempts[0].passage_ids != outcome.attempts[1].passage_ids


async def test_T028_a_reranked_selection_cannot_hide_a_contradicting_passage():
    claim = "The permit costs 12 euro."
    against = "The permit no longer costs anything."

    class Hides:
        def next_context(self, *, passages: Any, tried: Any, **_: Any) -> Any:
            chosen = (passages[0],)
            return None if (passages[0].id,) in tried else chosen

    def score(premise: str, hypothesis: str) -> EntailmentScore:
        if "no longer" in premise:
            return EntailmentScore(entailment=0.0, contradiction=0.99)
        return EntailmentScore(entailment=0.85, contradiction=0.0)

    guard = Guardrail(
        policy=LENIENT_WORDS.override(stop_on_repeat=False),
        entailment=FakeEntailment(score),
        reranker=Hides(),
        observers=[],
    )
    model = ScriptedGenerator(claim)
    outcome = await guard.run(model, question="What does a permit cost?", context=[claim, against])
    assert outcome.status is OutcomeStatus.REFUSED
    assert outcome.reason == "context_exhausted"
    assert [len(r.passages) for r in model.requests] == [2, 1]
    assert all("2" in v.contradicting for a in outcome.attempts for v in a.verdicts)


def test_T029_the_synchronous_call_in_threads():
    guard = guard_for(OPEN, FREE)
    verifier = Verifier(policy=LENIENT_WORDS, entailment=FakeEntailment(1.0))
    results: list[Any] = []

    def work() -> None:
        results.append(guard.run_sync(ScriptedGenerator(DESK), question=QUESTION, context=[DESK]).text)
        results.append(verifier.verify_sync(OPEN, [DESK]).accepted)

    work()
    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert results.count(DESK) == 3
    assert results.count(True) == 3


async def test_T029_the_synchronous_call_inside_a_loop_says_what_to_use():
    guard = guard_for(OPEN)
    with pytest.raises(RuntimeError, match=r"await guard\.run"):
        guard.run_sync(ScriptedGenerator(OPEN), question=QUESTION, context=[DESK])
    with pytest.raises(RuntimeError, match=r"await verifier\.verify"):
        Verifier(entailment=FakeEntailment(1.0)).verify_sync(OPEN, [DESK])


async def test_the_receipts_of_the_cases_fit(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING):
        outcome = await guard_for(OPEN).run(ScriptedGenerator(DESK), question=QUESTION, context=[DESK])
    assert_receipt(outcome)
    assert caplog.records == []
