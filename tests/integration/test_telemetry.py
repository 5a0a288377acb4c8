"""The tracing cases O001–O013, and what spans hold: one test per case, named after it."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import json
import logging
import math
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

from guardrail import Decision, EntailmentScore, Guardrail, OutcomeStatus, Policy
from guardrail.telemetry.spans import SpanObserver
from guardrail.testing import FakeEntailment, ScriptedGenerator
from tests.streaming.helpers import (
    HALL,
    LENIENT_WORDS,
    QUESTION,
    Counts,
    SlowFake,
    generator,
    others,
    quiet,
    says,
    turns,
)

ONE, TWO = "The old hall keeps a wooden clock near its door.", "The garden grows tall roses by the wall."
WRONG = "The zqx cellar hides rare coins."
SECRET = "ZX-SECRET-77"


@dataclasses.dataclass
class Traced:
    """A tracer, what it exported, and how often spans began."""

    provider: TracerProvider
    exporter: InMemorySpanExporter
    begun: list[str]

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        return self.exporter.get_finished_spans()

    def named(self, name: str) -> list[ReadableSpan]:
        return [s for s in self.spans if s.name == name]

    def tracer(self) -> trace.Tracer:
        return self.provider.get_tracer("test")

    def guard(self, entailment: Any = None, *, capture: bool | None = None, **more: Any) -> Guardrail:
        more.setdefault("policy", LENIENT_WORDS)
        return Guardrail(
            entailment=entailment or says(ONE, TWO),
            observers=[SpanObserver(tracer_provider=self.provider, capture_content=capture)],
            **more,
        )

    def dump(self) -> str:
        """Everything that an exporter could send."""
        return "\n".join(
            json.dumps(
                [
                    s.name,
                    dict(s.attributes or {}),
                    s.status.description,
                    [[e.name, dict(e.attributes or {})] for e in s.events],
                    [dict(link.attributes or {}) for link in s.links],
                ],
                default=str,
            )
            for s in self.spans
        )


class _Processor(SimpleSpanProcessor):
    def __init__(self, exporter: InMemorySpanExporter, begun: list[str]) -> None:
        super().__init__(exporter)
        self._begun = begun

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        self._begun.append(span.name)


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> Iterator[Traced]:
    monkeypatch.delenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", raising=False)
    provider, exporter, begun = TracerProvider(), InMemorySpanExporter(), []
    provider.add_span_processor(_Processor(exporter, begun))
    yield Traced(provider, exporter, begun)
    provider.shutdown()


def parents(spans: tuple[ReadableSpan, ...]) -> dict[str, set[str]]:
    """Names of spans → names of their parents."""
    names = {s.context.span_id: s.name for s in spans}
    found: dict[str, set[str]] = {}
    for span in spans:
        found.setdefault(span.name, set()).add(names.get(span.parent.span_id, "?") if span.parent else "")
    return found


async def test_the_tree_of_spans(traced: Traced):
    class Limiter:
        async def acquire(self, key: str, cost: float = 1.0, timeout_s: float | None = None) -> Decision:
            return Decision(allowed=True, waited_s=0.0)

    guard = traced.guard(limiter=Limiter(), policy=LENIENT_WORDS.override(release="answer"))
    usage = {"text": "", "usage_metadata": {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}}
    model = ScriptedGenerator(WRONG, [ONE + " ", TWO, usage])
    outcome = await guard.run(model, question=QUESTION, context=[HALL])
    assert outcome.accepted
    found = parents(traced.spans)
    assert found == {
        "guardrail.run": {""},
        "guardrail.limiter_wait": {"guardrail.run"},
        "guardrail.attempt": {"guardrail.run"},
        "guardrail.generate": {"guardrail.attempt"},
        "guardrail.score": {"guardrail.attempt"},
        "guardrail.rerank": {"guardrail.run"},
    }
    (run,) = traced.named("guardrail.run")
    assert run.attributes["guardrail.run.id"] == outcome.run_id
    assert run.attributes["guardrail.outcome"] == "accepted"
    assert run.attributes["guardrail.attempts"] == 2
    first, second = sorted(traced.named("guardrail.attempt"), key=lambda s: s.attributes["guardrail.attempt.number"])
    assert first.attributes["guardrail.delta_r.worst"] == 1.0
    assert second.attributes["guardrail.delta_r.worst"] == 0.0
    assert [link.context.span_id for link in second.links] == [first.context.span_id]
    tokens = [s.attributes.get("gen_ai.usage.output_tokens") for s in traced.named("guardrail.generate")]
    assert 4 in tokens
    assert len({s.context.trace_id for s in traced.spans}) == 1
    assert Counter(traced.begun) == Counter(s.name for s in traced.spans)


async def test_O001_an_early_stop_logs_nothing(traced: Traced):
    with quiet():

        async def read_one() -> None:
            stream = traced.guard(SlowFake(ONE, TWO)).stream(
                generator([[ONE + " ", TWO + " ", "x"]], Counts(), pause=1), question=QUESTION, context=[HALL]
            )
            async for _ in stream:
                break

        await asyncio.create_task(read_one())
        gc.collect()
        await turns(20)
        gc.collect()
    assert Counter(traced.begun) == Counter(s.name for s in traced.spans)
    assert len(traced.named("guardrail.run")) == 1
    assert others() == set()


@pytest.mark.parametrize("events", [False, True])
@pytest.mark.parametrize("kind", ["async", "sync"])
async def test_O003_the_readers_own_spans_do_not_hang_under_the_guard(traced: Traced, events: bool, kind: str):
    tracer = traced.tracer()
    with tracer.start_as_current_span("root") as root:
        stream = traced.guard().stream(
            generator([[ONE + " ", TWO]], Counts(), kind=kind), question=QUESTION, context=[HALL]
        )
        async for _ in stream.events() if events else stream:
            assert trace.get_current_span() is root
            with tracer.start_as_current_span("user"):
                await asyncio.sleep(0)
            assert trace.get_current_span() is root
        assert trace.get_current_span() is root
    assert parents(traced.spans)["user"] == {"root"}
    assert parents(traced.spans)["guardrail.run"] == {"root"}


@pytest.mark.parametrize("where", ["token", "scorer", "yield"])
async def test_O004_a_cancelled_run_ends_each_span_once(traced: Traced, where: str):
    class Waits:
        model_id = "waits"

        async def score(self, pairs: Any) -> list[EntailmentScore]:
            if where == "scorer":
                reached.set()
                await asyncio.Event().wait()
            return [EntailmentScore(entailment=1.0) for _ in pairs]

    reached = asyncio.Event()

    async def generate(question: str) -> Any:
        yield ONE + " "
        yield TWO + " "
        if where == "token":
            reached.set()
        await asyncio.Event().wait()

    async def read() -> None:
        async for _ in traced.guard(Waits()).stream(generate, question=QUESTION, context=[HALL]):
            if where == "yield":
                reached.set()
                await asyncio.Event().wait()

    with quiet():
        task = asyncio.create_task(read())
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        if where == "yield":  # the reader did not close: that is left to the collector
            del task
            gc.collect()
            await turns(20)
    assert Counter(traced.begun) == Counter(s.name for s in traced.spans)
    (run,) = traced.named("guardrail.run")
    assert run.attributes["guardrail.cancelled"] is True
    assert all(s.status.status_code.name != "ERROR" for s in traced.spans)
    assert others() == set()


async def test_O005_a_stream_that_is_never_read_has_no_span(traced: Traced):
    stream = traced.guard().stream(ScriptedGenerator(ONE), question=QUESTION, context=[HALL])
    del stream
    gc.collect()
    await turns(3)
    assert traced.begun == []


@pytest.mark.parametrize("part", ["scorer", "generator", "async scorer", "async generator"])
async def test_O006_spans_of_user_code_hang_under_the_step(traced: Traced, part: str):
    tracer = traced.tracer()

    def score(pairs: Any) -> list[float]:
        with tracer.start_as_current_span("inside scorer"):
            return [1.0 for _ in pairs]

    class Scores:
        model_id = "async"

        async def score(self, pairs: Any) -> list[EntailmentScore]:
            with tracer.start_as_current_span("inside scorer"):
                return [EntailmentScore(entailment=1.0) for _ in pairs]

    def generate(question: str) -> str:
        with tracer.start_as_current_span("inside generator"):
            return ONE

    async def agenerate(question: str) -> Any:
        with tracer.start_as_current_span("inside generator"):
            await asyncio.sleep(0)
        yield ONE
        with tracer.start_as_current_span("inside generator"):
            await asyncio.sleep(0)
        yield " " + TWO

    entailment = Scores() if part == "async scorer" else score
    source = agenerate if part == "async generator" else generate
    with tracer.start_as_current_span("root"):
        assert (await traced.guard(entailment).run(source, question=QUESTION, context=[HALL])).accepted
    found = parents(traced.spans)
    assert found["inside scorer"] == {"guardrail.score"}
    assert found["inside generator"] == {"guardrail.generate"}
    assert found["guardrail.run"] == {"root"}
    assert len({s.context.trace_id for s in traced.spans}) == 1


async def test_O007_the_parent_is_taken_when_the_stream_is_created(traced: Traced):
    tracer = traced.tracer()
    with tracer.start_as_current_span("root") as root:
        stream = traced.guard().stream(ScriptedGenerator(ONE), question=QUESTION, context=[HALL])
        trace_id = root.get_span_context().trace_id

    async def read() -> None:
        async for _ in stream:
            pass

    with tracer.start_as_current_span("other request"):
        await asyncio.create_task(read())
    guards = [s for s in traced.spans if s.name.startswith("guardrail.")]
    assert guards
    assert {s.context.trace_id for s in guards} == {trace_id}


async def test_O008_fifty_runs_in_fifty_traces(traced: Traced):
    guard = traced.guard(SlowFake(ONE), policy=LENIENT_WORDS.override(max_attempts=2))
    tracer = traced.tracer()
    traces: dict[int, bool] = {}

    async def one(index: int) -> None:
        with tracer.start_as_current_span("root") as root:
            traces[root.get_span_context().trace_id] = bool(index % 2)
            source = generator([[ONE] if index % 2 else [WRONG], [ONE]], Counts(), pause=2)
            await guard.run(source, question=QUESTION, context=[HALL])

    await asyncio.gather(*(one(i) for i in range(50)))
    per_trace: dict[int, Counter[str]] = {}
    for span in traced.spans:
        per_trace.setdefault(span.context.trace_id, Counter())[span.name] += 1
    assert set(per_trace) == set(traces)
    for trace_id, right_at_once in traces.items():
        assert per_trace[trace_id]["guardrail.run"] == 1
        assert per_trace[trace_id]["guardrail.attempt"] == (1 if right_at_once else 2)
        assert per_trace[trace_id]["guardrail.generate"] == per_trace[trace_id]["guardrail.attempt"]


class Quotes(Exception):
    """An error whose text quotes content, in its message, its arguments and its notes."""


def _secret_run(traced: Traced, kind: str, capture: bool | None) -> Any:
    policy = LENIENT_WORDS.override(release="sentence" if kind == "partial" else "answer", max_attempts=2)
    if kind == "scorer":

        def broken(premise: str, claim: str) -> float:
            raise ValueError(f"cannot score: {SECRET} {claim}")

        guard = traced.guard(FakeEntailment(broken), capture=capture, policy=policy)
        return guard.run(ScriptedGenerator(ONE), question=QUESTION, context=[HALL])
    if kind == "generator":
        guard = traced.guard(capture=capture, policy=policy)
        model = ScriptedGenerator([ONE + " ", Quotes(f"{SECRET} in {SECRET}")])
        return guard.run(model, question=QUESTION, context=[HALL])
    sentence = f"The {SECRET} hall keeps a wooden clock near its door."
    model = ScriptedGenerator([ONE + " ", f"The {SECRET} cellar hides coins."], sentence)
    scorer = says(ONE, sentence) if kind != "refused" else says(ONE)
    guard = traced.guard(scorer, capture=capture, policy=policy)
    return guard.run(model, question=f"What about {SECRET}?", context=[HALL, f"{SECRET} and {sentence}"])


KINDS = ["accepted", "partial", "refused", "scorer", "generator"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("switch", [None, "", "NO_CONTENT", "false", "EVENT_ONLY", "garbage"])
async def test_O009_no_content_by_default(
    traced: Traced, kind: str, switch: str | None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    """Marker in question, passages, answers, errors: not in spans, events, links, status texts, nor in logs."""
    if switch is not None:
        monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", switch)
    with caplog.at_level(logging.DEBUG, logger="guardrail"):
        try:
            await _secret_run(traced, kind, None)
        except Exception as error:
            assert SECRET not in str(error)
    assert traced.named("guardrail.run")
    assert SECRET not in traced.dump()
    assert "cellar" not in traced.dump()
    assert SECRET not in caplog.text


@pytest.mark.parametrize("switch", ["SPAN_ONLY", "span_and_event", "SPAN_AND_EVENT"])
async def test_O009_content_with_the_standard_switch(traced: Traced, switch: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", switch)
    outcome = await _secret_run(traced, "accepted", None)
    assert outcome.accepted
    (run,) = traced.named("guardrail.run")
    assert SECRET in run.attributes["guardrail.content.question"]
    assert SECRET in run.attributes["guardrail.content.answer"]
    assert any(SECRET in text for text in run.attributes["guardrail.content.passages"])


async def test_O009_the_argument_beats_the_environment(traced: Traced, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "SPAN_ONLY")
    await _secret_run(traced, "accepted", False)
    assert SECRET not in traced.dump()
    monkeypatch.delenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT")
    await _secret_run(traced, "accepted", True)
    assert SECRET in traced.dump()


async def test_O009_ids_of_passages_are_not_text(traced: Traced):
    """Passages without an id of their own are numbered; their text is never used as one."""
    await traced.guard().run(ScriptedGenerator(WRONG, ONE), question=QUESTION, context=[f"{SECRET} is here.", HALL])
    assert SECRET not in traced.dump()


@pytest.mark.parametrize("where", ["scorer", "generator", "late generator", "limiter", "reranker"])
async def test_O010_messages_of_exceptions_are_not_recorded(
    traced: Traced, where: str, caplog: pytest.LogCaptureFixture
):
    def fail(*_: Any, **__: Any) -> Any:
        raise ValueError(f"cannot work: {SECRET}")

    class Bad:
        acquire = next_context = staticmethod(fail)

    guard = traced.guard(
        FakeEntailment(fail) if where == "scorer" else None,
        limiter=Bad() if where == "limiter" else None,
        reranker=Bad() if where == "reranker" else None,
    )
    chunks: list[Any] = [[WRONG], [WRONG]]
    if where.endswith("generator"):
        chunks[1 if where == "late generator" else 0] = [ValueError(SECRET)]
    with caplog.at_level(logging.DEBUG):
        try:
            outcome = await guard.run(ScriptedGenerator(*chunks), question=QUESTION, context=[HALL])
            assert SECRET not in outcome.text
        except Exception as error:
            if type(error).__module__.startswith("guardrail"):
                assert SECRET not in str(error)
    assert SECRET not in traced.dump()
    assert SECRET not in "\n".join(r.getMessage() for r in caplog.records if r.name.startswith("guardrail"))
    assert Counter(traced.begun) == Counter(s.name for s in traced.spans)
    if where == "scorer":
        assert "ScoringError" in traced.dump() or "ValueError" in traced.dump()


@pytest.mark.parametrize("limit", [None, "500"])
async def test_O011_attributes_are_bounded(traced: Traced, limit: str | None, monkeypatch: pytest.MonkeyPatch):
    if limit is not None:
        monkeypatch.setenv("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", limit)
    huge = ("🕯é " + "word " * 200_000)[:1_000_000]
    passages = [{"id": f"passage-{i}", "text": huge if i < 5 else f"Room {i} is empty."} for i in range(400)]
    answer = " ".join(["The old hall keeps a wooden clock near its door."] * 400)
    guard = traced.guard(FakeEntailment(1.0), capture=True)
    outcome = await guard.run(
        ScriptedGenerator([answer]), question="why " * 50_000, context=[*passages, {"id": "x" * 100_000, "text": HALL}]
    )
    assert outcome.accepted
    assert traced.named("guardrail.run")
    bound = int(limit) if limit else 65_536
    for span in traced.spans:
        assert len(span.attributes or {}) <= 128
        assert len(span.events) <= 128
        for value in (span.attributes or {}).values():
            if isinstance(value, str):
                assert len(value) <= bound
            elif isinstance(value, tuple):
                assert len(value) <= 256
                assert all(len(v) <= bound for v in value if isinstance(v, str))
        size = sum(len(str(v).encode()) for v in (span.attributes or {}).values())
        assert size < 4_000_000, "an exporter takes 4 MB"
    assert len(traced.spans) < 3_000


@pytest.mark.parametrize("how", ["none", "off", "no telemetry"])
async def test_O012_a_run_that_is_not_recorded_is_the_same(how: str, monkeypatch: pytest.MonkeyPatch):
    observers: Any = {
        "none": [SpanObserver()],
        "off": [SpanObserver(tracer_provider=TracerProvider(sampler=ALWAYS_OFF), capture_content=True)],
        "no telemetry": [],
    }[how]
    with quiet():
        for answers in ((ONE,), (WRONG, ONE), (WRONG,)):
            results = []
            for used in (observers, []):
                guard = Guardrail(policy=LENIENT_WORDS, entailment=says(ONE), observers=used)
                outcome = await guard.run(ScriptedGenerator(*answers), question=QUESTION, context=[HALL])
                results.append((outcome.text, outcome.status, outcome.reason, len(outcome.attempts)))
            assert results[0] == results[1]


def test_O012_nothing_below_the_engine_imports_opentelemetry():
    code = (
        "import sys, guardrail.stream, guardrail.engine;"
        "heavy = {'torch', 'transformers', 'redis', 'langchain_core', 'opentelemetry.sdk'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


async def test_O013_attributes_have_types_that_exporters_take(traced: Traced):
    """No None, no NaN, no mixed lists; also without passages, without scores, with a model that has no name."""

    class Nameless:
        model_id = ""

        async def score(self, pairs: Any) -> list[EntailmentScore]:
            return [EntailmentScore(entailment=math.nan) for _ in pairs]

    for entailment in (Nameless(), says(ONE), FakeEntailment(math.nan)):
        for context in ([], None, [HALL]):
            await traced.guard(entailment, capture=True).run(ScriptedGenerator(ONE), question=QUESTION, context=context)
    kinds = (str, bool, int, float)
    for span in traced.spans:
        for name, value in (span.attributes or {}).items():
            values = value if isinstance(value, tuple) else (value,)
            assert all(isinstance(v, kinds) for v in values), (name, value)
            assert len({type(v) for v in values}) <= 1, (name, value)
            assert not any(isinstance(v, float) and not math.isfinite(v) for v in values), (name, value)
    assert len(traced.named("guardrail.run")) == 9


async def test_an_observer_that_fails_never_reaches_the_run(caplog: pytest.LogCaptureFixture):
    class Bad:
        def open_run(self, run_id: str) -> Any:
            raise RuntimeError(SECRET)

    class BadEvents:
        def open_run(self, run_id: str) -> Any:
            return self

        def on_event(self, event: Any) -> None:
            raise RuntimeError(SECRET)

        def activate(self, step_id: int) -> Any:
            raise RuntimeError(SECRET)

    for bad in (Bad(), BadEvents()):
        guard = Guardrail(policy=LENIENT_WORDS, entailment=says(ONE), observers=[bad])
        outcome = await guard.run(ScriptedGenerator(ONE), question=QUESTION, context=[HALL])
        assert outcome.accepted
    assert SECRET not in "\n".join(r.getMessage() for r in caplog.records)


async def test_a_refusal_is_not_an_error_of_the_span(traced: Traced):
    outcome = await traced.guard(policy=Policy(lexical_weight=0.0, max_attempts=1)).run(
        ScriptedGenerator(WRONG), question=QUESTION, context=[HALL]
    )
    assert outcome.status is OutcomeStatus.REFUSED
    (run,) = traced.named("guardrail.run")
    assert run.status.status_code.name != "ERROR"
    assert run.attributes["guardrail.outcome"] == "refused"
    assert run.attributes["guardrail.reason"] == "attempts_exhausted"


@pytest.mark.parametrize(("languages", "expected"), [({"it"}, ("en",)), ({"en"}, None), (None, None)])
async def test_languages_that_the_scorer_was_not_trained_for_are_on_the_spans(
    traced: Traced, languages: set[str] | None, expected: tuple[str, ...] | None
):
    model = says(ONE)
    model.languages = languages
    outcome = await traced.guard(model).run(ScriptedGenerator([ONE]), question=QUESTION, context=[HALL])
    assert outcome.accepted
    for name in ("guardrail.run", "guardrail.attempt", "guardrail.score"):
        assert [(s.attributes or {}).get("guardrail.claim.language") for s in traced.named(name)] == [expected]


@pytest.mark.parametrize(
    ("answer", "counted"),
    [(f"{ONE[:-1]} [1]. {TWO[:-1]} [7].", {"right": 1, "dangling": 1}), (f"{ONE} {TWO}", {})],
)
async def test_what_became_of_citations_is_on_the_spans(traced: Traced, answer: str, counted: dict[str, int]):
    guard = traced.guard(FakeEntailment(1.0), policy=LENIENT_WORDS.override(release="answer"))
    await guard.run(ScriptedGenerator(answer), question=QUESTION, context=[HALL])
    (attempt,) = traced.named("guardrail.attempt")
    prefix = "guardrail.citations."
    assert {k.removeprefix(prefix): v for k, v in (attempt.attributes or {}).items() if k.startswith(prefix)} == counted
