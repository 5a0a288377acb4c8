"""What a generator may be: shapes, signatures, threads, context variables."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from langchain_core.documents import Document

from guardrail import (
    GenerationError,
    GenerationRequest,
    GenerationTypeError,
    GeneratorSignatureError,
    Guardrail,
    OutcomeStatus,
    Passage,
    Policy,
)
from guardrail.events import RodeAlong
from guardrail.testing import FakeEntailment, ScriptedGenerator
from tests.streaming.helpers import LENIENT_WORDS, QUESTION, guard_for, others, quiet

ONE, TWO = "The desk opens at ten.", "Entry is free."
DESK = ONE + " " + TWO


async def agen(question: str) -> AsyncIterator[str]:
    yield ONE + " "
    yield TWO


def gen(question: str) -> Iterator[str]:
    yield ONE + " "
    yield TWO


async def returns_agen(question: str) -> Any:
    return agen(question)


async def returns_gen(question: str) -> Any:
    return gen(question)


async def returns_text(question: str) -> str:
    return DESK


async def returns_coroutine(question: str) -> Any:
    return returns_text(question)


class Message:
    content = DESK


async def returns_message(question: str) -> Any:
    return Message()


class AsyncIterable:
    def __aiter__(self) -> AsyncIterator[str]:
        return agen("")


SHAPES = {
    "async generator": agen,
    "coroutine of an async generator": returns_agen,
    "coroutine of a generator": returns_gen,
    "coroutine of a text": returns_text,
    "coroutine of a coroutine": returns_coroutine,
    "function of an async generator": lambda question: agen(question),
    "generator": gen,
    "function of a generator": lambda question: gen(question),
    "function of a text": lambda question: DESK,
    "function of a coroutine": lambda question: returns_text(question),
    "coroutine of a message": returns_message,
    "function of a message": lambda question: Message(),
    "function of an async iterable": lambda question: AsyncIterable(),
    "function of a list of chunks": lambda question: iter([ONE + " ", TWO]),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("release", ["sentence", "answer", "observe"])
async def test_every_shape_gives_the_same_answer(shape: str, release: str):
    with quiet():
        guard = guard_for(ONE, TWO, policy=LENIENT_WORDS.override(release=release))
        stream = guard.stream(SHAPES[shape], question=QUESTION, context=[DESK])
        assert "".join([t async for t in stream]) == DESK
        outcome = await stream.outcome()
        assert (outcome.accepted, outcome.text, len(outcome.attempts)) == (True, DESK, 1)
        assert others() == set()


@pytest.mark.parametrize("value", ["text", b"text", None, 7, agen(""), [ONE]])
def test_what_is_not_callable_is_refused_at_once(value: Any):
    with pytest.raises(GeneratorSignatureError) as caught:
        Guardrail(observers=[]).stream(value, question=QUESTION, context=[DESK])
    assert isinstance(caught.value, TypeError)
    assert "callable" in str(caught.value)


class Model:
    """A callable object, with async and sync methods."""

    async def __call__(self, question: str) -> str:
        return DESK

    async def method(self, question: str) -> str:
        return DESK

    def plain(self, question: str) -> str:
        return DESK

    @classmethod
    async def of_class(cls, question: str) -> str:
        return DESK

    @staticmethod
    async def static(question: str) -> str:
        return DESK


def passes_on(fn: Any) -> Any:
    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    return wrapper


async def for_tenant(question: str, *, tenant: str) -> str:
    return DESK if tenant == "a" else ""


CALLABLES = {
    "partial of a coroutine function": functools.partial(for_tenant, tenant="a"),
    "object with async __call__": Model(),
    "partial of an object": functools.partial(Model()),
    "bound async method": Model().method,
    "bound method": Model().plain,
    "class method": Model.of_class,
    "static method": Model.static,
    "decorated coroutine function": passes_on(returns_text),
    "decorated async generator": passes_on(agen),
    "partial of an async generator function": functools.partial(agen),
}


@pytest.mark.parametrize("name", CALLABLES)
async def test_every_kind_of_callable_works(name: str):
    with quiet():
        outcome = await guard_for(ONE, TWO).run(CALLABLES[name], question=QUESTION, context=[DESK])
    assert (outcome.accepted, outcome.text) == (True, DESK)


SEEN: list[Any] = []


def keep(*values: Any) -> str:
    SEEN.append(values)
    return DESK


SIGNATURES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "f(question)": (lambda question: keep(question), (QUESTION,)),
    "f(question, context)": (lambda question, context: keep(question, *context), (QUESTION, DESK)),
    "f(context, question)": (lambda context, question: keep(question, *context), (QUESTION, DESK)),
    "f(query, docs)": (lambda query, docs: keep(query, *docs), (QUESTION, DESK)),
    "f(prompt, documents)": (lambda prompt, documents: keep(prompt, *documents), (QUESTION, DESK)),
    "f(input, contexts)": (lambda input, contexts: keep(input, *contexts), (QUESTION, DESK)),
    "f(a, b)": (lambda a, b: keep(a, *b), (QUESTION, DESK)),
    "f(a)": (lambda a: keep(a), (QUESTION,)),
    "f(question, *, context, attempt)": (
        lambda question, *, context, attempt: keep(question, *context, attempt),
        (QUESTION, DESK, 1),
    ),
    "f(**kw)": (lambda **kw: keep(kw["question"], *kw["context"], kw["attempt"]), (QUESTION, DESK, 1)),
    "f(*args)": (lambda *args: keep(args[0], *args[1]), (QUESTION, DESK)),
    "f(question, temperature=0)": (lambda question, temperature=0: keep(question, temperature), (QUESTION, 0)),
    "f(passages)": (lambda passages: keep(*(p.text for p in passages)), (DESK,)),
    "f(request)": (lambda request: keep(request.question, request.attempt), (QUESTION, 1)),
    "f(question, failed_claims)": (lambda question, failed_claims: keep(question, *failed_claims), (QUESTION,)),
    "f(question, released_text)": (lambda question, released_text: keep(question, released_text), (QUESTION, "")),
    "f(q, /)": (eval("lambda keep: lambda q, /: keep(q)")(keep), (QUESTION,)),
    "f()": (lambda: keep(), ()),
}


@pytest.mark.parametrize("name", SIGNATURES)
async def test_arguments_are_filled_by_the_documented_rule(name: str):
    fn, expected = SIGNATURES[name]
    SEEN.clear()
    outcome = await guard_for(ONE, TWO).run(fn, question=QUESTION, context=[DESK])
    assert outcome.text == DESK
    assert SEEN == [expected]


@pytest.mark.parametrize(
    "fn",
    [
        lambda question, context, database: "",
        lambda question, *, database: "",
        lambda a, b, c: "",
    ],
)
def test_a_parameter_that_cannot_be_filled_is_refused_at_once(fn: Any):
    with pytest.raises(GeneratorSignatureError) as caught:
        guard_for(ONE).stream(fn, question=QUESTION, context=[DESK])
    assert isinstance(caught.value, TypeError)
    with pytest.raises(GeneratorSignatureError):
        guard_for(ONE).wrap(fn)


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_a_type_error_inside_is_the_generators_own(asynchronous: bool):
    calls: list[int] = []

    def boom(question: str) -> str:
        calls.append(1)
        raise TypeError("boom() got an unexpected keyword argument 'question'")

    async def aboom(question: str) -> str:
        return boom(question)

    with pytest.raises(GenerationError) as caught:
        await guard_for(ONE).run(aboom if asynchronous else boom, question=QUESTION, context=[DESK])
    assert isinstance(caught.value.__cause__, TypeError)
    assert not isinstance(caught.value, GeneratorSignatureError)
    assert calls == [1]


@pytest.mark.parametrize(
    "context",
    [
        [DESK],
        (DESK,),
        [Document(page_content=DESK, metadata={"page": 1})],
        [{"text": DESK, "id": "a"}],
        [{"page_content": DESK}],
        [Passage(id="p", text=DESK)],
    ],
)
async def test_the_generator_gets_the_context_in_the_type_the_caller_gave(context: Any):
    seen: list[Any] = []

    def generate(question: str, context: Any, passages: Any, request: Any) -> str:
        seen.append((list(context), passages, request))
        return DESK

    assert (await guard_for(ONE, TWO).run(generate, question=QUESTION, context=context)).accepted
    given, passages, request = seen[0]
    assert [type(g) for g in given] == [type(c) for c in context]
    assert given == list(context)
    assert all(isinstance(p, Passage) and p.text == DESK for p in passages)
    assert isinstance(request, GenerationRequest)


async def test_documents_stay_documents_in_a_regeneration():
    kinds: list[set[type]] = []

    def generate(question: str, context: Any) -> str:
        kinds.append({type(c) for c in context})
        return DESK if len(kinds) > 1 else "Entry costs 90 euro."

    documents = [Document(page_content=ONE, id="a"), Document(page_content=TWO, id="b")]
    outcome = await guard_for(ONE, TWO).run(generate, question=QUESTION, context=documents)
    assert outcome.accepted
    assert kinds == [{Document}, {Document}]
    assert [d.page_content for d in documents] == [ONE, TWO], "the caller's objects are not changed"


# --- threads --------------------------------------------------------------------------------------------------

TENANT: contextvars.ContextVar[str] = contextvars.ContextVar("tenant", default="none")


@pytest.mark.parametrize("shape", ["function", "generator", "async generator", "coroutine"])
async def test_context_variables_are_visible_in_the_generator(shape: str):
    seen: list[str] = []

    def function(question: str) -> str:
        seen.append(TENANT.get())
        return DESK

    def generator(question: str) -> Iterator[str]:
        for piece in (ONE + " ", TWO):
            seen.append(TENANT.get())
            yield piece

    async def agenerator(question: str) -> AsyncIterator[str]:
        for piece in (ONE + " ", TWO):
            seen.append(TENANT.get())
            yield piece

    async def coroutine(question: str) -> str:
        return function(question)

    shapes = {"function": function, "generator": generator, "async generator": agenerator, "coroutine": coroutine}
    token = TENANT.set("acme")
    try:
        assert (await guard_for(ONE, TWO).run(shapes[shape], question=QUESTION, context=[DESK])).accepted
    finally:
        TENANT.reset(token)
    assert set(seen) == {"acme"}
    assert TENANT.get() == "none"


async def test_context_variables_are_visible_in_a_synchronous_scorer():
    seen: list[str] = []

    def score(pairs: Any) -> list[float]:
        seen.append(TENANT.get())
        return [1.0 for _ in pairs]

    token = TENANT.set("acme")
    try:
        guard = Guardrail(policy=LENIENT_WORDS, entailment=score, observers=[])
        assert (await guard.run(ScriptedGenerator(DESK), question=QUESTION, context=[DESK])).accepted
    finally:
        TENANT.reset(token)
    assert seen
    assert set(seen) == {"acme"}


async def test_a_variable_set_in_a_synchronous_generator_lasts_for_its_next_step():
    """A generator is one piece of code: what it sets before a yield it finds after it, whatever thread runs it."""
    seen: list[str] = []

    def generate(question: str) -> Iterator[str]:
        TENANT.set("inner")
        yield ONE + " "
        seen.append(TENANT.get())
        yield TWO

    assert (await guard_for(ONE, TWO).run(generate, question=QUESTION, context=[DESK])).accepted
    assert seen == ["inner"]
    assert TENANT.get() == "none"


@pytest.mark.parametrize("where", ["call", "iteration"])
async def test_a_blocking_generator_does_not_block_the_loop(where: str):
    go_on = threading.Event()

    def generate(question: str) -> Any:
        if where == "call":
            go_on.wait(5)
            return DESK

        def chunks() -> Iterator[str]:
            yield ONE + " "
            go_on.wait(5)
            yield TWO

        return chunks()

    task = asyncio.create_task(guard_for(ONE, TWO).run(generate, question=QUESTION, context=[DESK]))
    for _ in range(20):
        await asyncio.sleep(0.001)
    assert not task.done()
    go_on.set()
    assert (await task).text == DESK


@pytest.mark.parametrize("way", ["aclose", "cancel"])
async def test_a_stuck_synchronous_generator_does_not_hold_the_reader(way: str):
    entered, release = threading.Event(), threading.Event()
    closed: list[bool] = []

    def generate(question: str) -> Iterator[str]:
        try:
            yield ONE + " "
            entered.set()
            release.wait(5)
            yield TWO
        finally:
            closed.append(True)

    stream = guard_for(ONE, TWO).stream(generate, question=QUESTION, context=[DESK])
    task = asyncio.create_task(anext(aiter(stream)))
    while not entered.is_set():
        await asyncio.sleep(0.001)
    began = time.monotonic()
    if way == "cancel":
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    await stream.aclose()
    assert time.monotonic() - began < 0.3
    assert others() <= {task}
    release.set()
    for _ in range(200):
        if closed:
            break
        await asyncio.sleep(0.005)
    assert closed == [True], "closed as soon as the thread lets go"
    await asyncio.gather(task, return_exceptions=True)


SCRIPT = """
import asyncio, threading, time
from guardrail import Guardrail
from guardrail.testing import FakeEntailment

def stuck(question):
    yield "The desk opens at ten. "
    threading.Event().wait(60)

async def main():
    guard = Guardrail(entailment=FakeEntailment(1.0), observers=[])
    stream = guard.stream(stuck, question="When?", context=["The desk opens at ten."])
    task = asyncio.create_task(anext(aiter(stream)))
    await asyncio.sleep(0.1)
    await stream.aclose()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    print("left", flush=True)

asyncio.run(main())
"""


def test_a_stuck_thread_does_not_keep_the_interpreter_alive():
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(SCRIPT)], capture_output=True, text=True, timeout=30
    )
    assert done.stdout == "left\n"
    assert "Traceback" not in done.stderr
    assert "Error" not in done.stderr
    assert done.returncode == 0


async def test_many_synchronous_generators_at_once():
    """More blocking sources than a default thread pool has threads: all of them make progress."""
    count = 40
    barrier = threading.Barrier(count)

    def generate(question: str) -> Iterator[str]:
        barrier.wait(10)
        yield ONE

    guard = guard_for(ONE)
    outcomes = await asyncio.gather(*(guard.run(generate, question=QUESTION, context=[DESK]) for _ in range(count)))
    assert all(o.accepted for o in outcomes)


async def test_a_synchronous_generator_runs_one_step_at_a_time():
    running = 0
    overlaps = 0

    def generate(question: str) -> Iterator[str]:
        nonlocal running, overlaps
        for piece in DESK:
            running += 1
            overlaps += running > 1
            running -= 1
            yield piece

    assert (await guard_for(ONE, TWO).run(generate, question=QUESTION, context=[DESK])).accepted
    assert overlaps == 0


# --- odd generators -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [None, b"x", 7, object(), {"meta": 1}, True])
@pytest.mark.parametrize("asynchronous", [False, True])
async def test_a_return_value_without_text_is_an_error(value: Any, asynchronous: bool):
    async def agenerate(question: str) -> Any:
        return value

    fn = agenerate if asynchronous else (lambda question: value)
    with pytest.raises(GenerationTypeError) as caught:
        await guard_for(ONE).run(fn, question=QUESTION, context=[DESK])
    assert caught.value.outcome.status is OutcomeStatus.ERROR


@pytest.mark.parametrize("value", ["", [], iter(())])
async def test_a_return_value_that_is_empty_is_a_failed_attempt(value: Any):
    calls: list[int] = []

    def generate(question: str) -> Any:
        calls.append(1)
        return value

    outcome = await guard_for(ONE).run(generate, question=QUESTION, context=[DESK])
    assert outcome.status is OutcomeStatus.REFUSED
    assert {a.reason for a in outcome.attempts} == {"empty_answer"}
    assert 1 < len(calls) <= 3


async def test_an_endless_generator_ends_at_the_length_limit():
    closed: list[bool] = []

    async def generate(question: str) -> AsyncIterator[str]:
        try:
            while True:
                yield "word "
        finally:
            closed.append(True)

    policy = Policy(lexical_weight=0.0, max_answer_chars=2_000, max_attempts=2, stop_on_repeat=False, release="answer")
    guard = Guardrail(policy=policy, entailment=FakeEntailment(1.0), observers=[])
    outcome = await guard.run(generate, question=QUESTION, context=[DESK])
    assert outcome.status is OutcomeStatus.REFUSED
    assert [a.reason for a in outcome.attempts] == ["too_long", "too_long"]
    assert closed == [True, True]
    assert all(len(a.text) <= 2_000 + len("word ") for a in outcome.attempts)


async def test_wrap_calls_like_the_original():
    ask = guard_for(ONE, TWO).wrap(lambda question, context: " ".join(context))
    assert (await ask(QUESTION, [ONE, TWO])).text == DESK
    assert "".join([t async for t in ask(QUESTION, [ONE, TWO])]) == DESK
    assert (await ask.run(QUESTION, [ONE, TWO])).text == DESK
    assert (await asyncio.to_thread(ask.run_sync, QUESTION, [ONE, TWO])).text == DESK


async def test_raw_objects_of_a_synchronous_generator_ride_along():
    chunks = [{"text": ONE + " ", "n": 1}, {"text": "", "usage": {"prompt_tokens": 3}}, {"text": TWO, "n": 2}]
    stream = guard_for(ONE, TWO).stream(lambda question: iter(chunks), question=QUESTION, context=[DESK])
    rode = [e.raw async for e in stream.events() if isinstance(e, RodeAlong)]
    assert [id(r) for r in rode] == [id(c) for c in chunks]


async def test_one_bound_generator_serves_many_guards():
    model = ScriptedGenerator(DESK)
    for _ in range(3):
        guard = Guardrail(policy=LENIENT_WORDS, entailment=FakeEntailment(1.0), observers=[])
        assert (await guard.run(model, question=QUESTION, context=[DESK])).text == DESK
    assert model.opened == model.closed == 3


async def test_a_guard_can_guard_a_guard():
    inner = guard_for(ONE, TWO).wrap(ScriptedGenerator([ONE + " ", TWO]))
    for source in (inner, lambda question, context: inner(question, context)):
        outcome = await guard_for(ONE, TWO).run(source, question=QUESTION, context=[DESK])
        assert (outcome.accepted, outcome.text, len(outcome.attempts)) == (True, DESK, 1)


async def test_the_stream_fits_aclosing():
    model = ScriptedGenerator([ONE + " ", TWO])
    for take in (lambda stream: stream, lambda stream: stream.events()):
        stream = guard_for(ONE, TWO).stream(model, question=QUESTION, context=[DESK])
        async with contextlib.aclosing(take(stream)) as items:
            async for _ in items:
                break
        assert model.opened == model.closed
        assert others() == set()
        await stream.aclose()
