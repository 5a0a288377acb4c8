"""A marker that only rejected attempts contain is searched wherever somebody may look."""

from __future__ import annotations

import operator
import warnings
from typing import Annotated, Any, TypedDict

import pytest
from guardrail_langchain import GuardedRunnable
from langchain_core._api import LangChainDeprecationWarning
from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.messages import AnyMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.tracers.base import BaseTracer
from langchain_core.tracers.schemas import Run
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from guardrail.telemetry.spans import SpanObserver
from tests.langchain.guarded import (
    ANSWER,
    ASKED,
    CONTEXT,
    KINDS,
    MARKER,
    METHODS,
    ONE,
    WRONG,
    build,
    call,
    settings,
    text_in,
)
from tests.langchain.scripted_model import ScriptedChatModel
from tests.streaming.helpers import QUESTION

REJECTED = f"{ONE} {WRONG}"
HOOKS = sorted(name for name in dir(BaseCallbackHandler) if name.startswith("on_"))
every_method = pytest.mark.parametrize("method", METHODS)
every_kind = pytest.mark.parametrize("kind", KINDS)


def recorder(base: type, heard: list[tuple[str, str]]) -> Any:
    """A handler that writes down everything it gets."""

    def hook(name: str) -> Any:
        if base is AsyncCallbackHandler:

            async def heard_async(self: Any, *args: Any, **kwargs: Any) -> None:
                heard.append((name, repr((args, kwargs))))

            return heard_async
        return lambda self, *args, **kwargs: heard.append((name, repr((args, kwargs))))

    return type("Recorder", (base,), {name: hook(name) for name in HOOKS})()


class Tracer(BaseTracer):
    """Keeps every run, as tracing services do."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[Run] = []

    def _persist_run(self, run: Run) -> None:
        self.runs.append(run)

    def named(self, name: str) -> list[Run]:
        found, pending = [], list(self.runs)
        while pending:
            run = pending.pop()
            pending += run.child_runs
            found += [run] if run.name == name else []
        return found


@every_method
@every_kind
@pytest.mark.parametrize("scripts", [(REJECTED, ANSWER), (WRONG, WRONG)], ids=["regenerated", "refused"])
async def test_readers_and_callbacks_get_nothing_that_was_rejected(method: str, kind: str, scripts: Any) -> None:
    heard: list[tuple[str, str]] = []
    handlers = [recorder(BaseCallbackHandler, heard), recorder(AsyncCallbackHandler, heard)]
    guarded = build(kind, *scripts)
    pieces = await call(method, guarded.runnable, guarded.asked, {"callbacks": handlers})
    assert MARKER not in repr(pieces)
    assert {"on_chain_start", "on_chain_end", "on_chat_model_start", "on_llm_end"} <= {name for name, _ in heard}
    assert [name for name, payload in heard if MARKER in payload] == []
    assert any(MARKER in attempt.text for attempt in guarded.outcomes[0].attempts)  # the test is about something


@every_kind
@pytest.mark.parametrize("scripts", [(REJECTED, ANSWER), (WRONG, WRONG)], ids=["regenerated", "refused"])
async def test_events_and_logs_hold_nothing_that_was_rejected(kind: str, scripts: Any) -> None:
    guarded = build(kind, *scripts)
    events = [e async for e in guarded.runnable.astream_events(guarded.asked, version="v2")]
    assert MARKER not in repr(events)
    assert {e["event"] for e in events if e["name"] == "GuardedRunnable"} >= {"on_chain_stream", "on_chain_end"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LangChainDeprecationWarning)
        log = [patch async for patch in build(kind, *scripts).runnable.astream_log(guarded.asked)]
    assert MARKER not in repr(log)


@pytest.mark.parametrize("method", ["invoke", "ainvoke", "stream", "astream"])
async def test_tracers_see_attempts_as_tagged_child_runs(method: str) -> None:
    tracer = Tracer()
    guarded = build("message", REJECTED, ANSWER)
    config = {"callbacks": [tracer], "tags": ["mine"], "metadata": {"tenant": "acme"}}
    await call(method, guarded.runnable, guarded.asked, config)
    (own,) = tracer.named("GuardedRunnable")
    assert MARKER not in repr((own.inputs, own.outputs, own.error, own.events))
    attempts = sorted(own.child_runs, key=lambda run: run.start_time)
    assert [set(run.tags or ()) & {"guard:attempt:1", "guard:attempt:2", "mine"} for run in attempts] == [
        {"guard:attempt:1", "mine"},
        {"guard:attempt:2", "mine"},
    ]
    assert all(run.parent_run_id == own.id for run in attempts)
    assert all(run.extra["metadata"]["tenant"] == "acme" for run in attempts)


async def test_a_prompt_that_repeats_failed_claims_shows_them_to_tracers_only() -> None:
    heard: list[tuple[str, str]] = []
    tracer = Tracer()
    prompt = ChatPromptTemplate.from_template("{context} {question} Not: {failed_claims}")
    model = ScriptedChatModel(WRONG, ANSWER)
    chain = RunnablePassthrough.assign(failed_claims=lambda asked: asked.get("failed_claims", [])) | prompt | model
    guarded = GuardedRunnable(bound=chain, **settings())
    handlers = [recorder(BaseCallbackHandler, heard), tracer]
    assert (await guarded.ainvoke(ASKED, {"callbacks": handlers})).text == ANSWER
    assert MARKER in repr(model.log.prompts[1])
    assert MARKER in repr([run.inputs for run in tracer.named("ScriptedChatModel")])
    assert [name for name, payload in heard if MARKER in payload] == []


async def test_a_chain_that_passes_its_input_on_does_not_pass_failed_claims_on() -> None:
    model = ScriptedChatModel(WRONG, ANSWER)
    chain = RunnablePassthrough.assign(answer=RunnableLambda(lambda _: QUESTION) | model)
    for method in METHODS:
        model.log.prompts.clear()
        pieces = await call(method, GuardedRunnable(bound=chain, **settings()), ASKED)
        assert MARKER not in repr(pieces), method
        assert len(model.log.prompts) == 2


async def test_spans_hold_nothing_that_was_rejected() -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    guarded = build("chain", REJECTED, ANSWER, observers=[SpanObserver(tracer_provider=provider)])
    assert text_in(await call("astream", guarded.runnable, guarded.asked)) == ANSWER
    spans = exporter.get_finished_spans()
    assert MARKER not in "".join(span.to_json() for span in spans)
    ids = {span.context.span_id for span in spans}
    assert len([span for span in spans if span.parent is None]) == 1
    assert all(span.parent.span_id in ids for span in spans if span.parent is not None)


class State(TypedDict):
    messages: Annotated[list[AnyMessage], operator.add]


@pytest.mark.parametrize("scripts", [(REJECTED, ANSWER), (WRONG, WRONG)], ids=["regenerated", "refused"])
@pytest.mark.parametrize("way", ["ainvoke", "astream", "invoke"])
async def test_a_graph_streams_and_stores_nothing_that_was_rejected(way: str, scripts: Any) -> None:
    guarded = GuardedRunnable(bound=ScriptedChatModel(*scripts), context_key=lambda _: CONTEXT, **settings())

    async def node(state: State) -> dict[str, Any]:
        if way == "astream":
            chunks = [chunk async for chunk in guarded.astream(state["messages"])]
            return {"messages": [sum(chunks[1:], chunks[0])]}
        return {"messages": [await guarded.ainvoke(state["messages"])]}

    builder = StateGraph(State)
    builder.add_node(
        "answer", node if way != "invoke" else RunnableLambda(lambda s: {"messages": [guarded.invoke(s["messages"])]})
    )
    builder.add_edge(START, "answer")
    builder.add_edge("answer", END)
    saver = InMemorySaver()
    graph = builder.compile(checkpointer=saver)
    config: Any = {"configurable": {"thread_id": "1"}}
    modes: Any = ["messages", "updates", "values", "custom", "debug", "tasks", "checkpoints"]
    asked: Any = {"messages": [("human", QUESTION)]}
    seen = [item async for item in graph.astream(asked, config, stream_mode=modes, subgraphs=True)]
    assert {mode for _, mode, _ in seen} >= {"messages", "updates", "values"}
    assert MARKER not in repr(seen)
    assert MARKER not in repr([checkpoint async for checkpoint in saver.alist(config)])
    assert MARKER not in repr(await graph.aget_state(config))
