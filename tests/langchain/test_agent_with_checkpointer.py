"""An agent that first makes something up: what was rejected reaches nobody, wherever one looks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.tracers.base import BaseTracer
from langchain_core.tracers.schemas import Run
from langgraph.checkpoint.memory import InMemorySaver
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from guardrail.telemetry.spans import SpanObserver
from tests.langchain.agents import INPUT, kinds, thread, with_middleware, with_model
from tests.langchain.hall import ANSWER, MARKER, ONE, TWO, WRONG, guard
from tests.langchain.scripted_model import ScriptedChatModel, tool_call

PLACES = [with_middleware, with_model]
MODES = ["messages", "updates", "values", "custom", "debug", "checkpoints", "tasks"]
pytestmark = [
    pytest.mark.parametrize("place", PLACES),
    pytest.mark.filterwarnings("ignore::langchain_core._api.beta_decorator.LangChainBetaWarning"),
    pytest.mark.filterwarnings("ignore:astream_events version=.v1. is deprecated"),
]


def scripted(*last: str) -> ScriptedChatModel:
    return ScriptedChatModel(tool_call(q="hall"), *(last or (WRONG, ANSWER)))


async def test_the_state_holds_only_the_accepted_answer(place: Callable[..., Any]):
    agent = place(scripted(), guard())
    out = await agent.ainvoke(INPUT, thread())
    assert kinds(out["messages"]) == ["human", "ai+tool", "tool", "ai"]
    answer = out["messages"][-1]
    assert answer.text == ANSWER
    assert answer.usage_metadata["output_tokens"] == 18
    assert answer.response_metadata["guardrail"]["attempts"] == 2
    assert MARKER not in str(out)


async def test_a_synchronous_agent(place: Callable[..., Any]):
    model = scripted()
    agent = place(model, guard())
    assert agent.invoke(INPUT, thread())["messages"][-1].text == ANSWER  # inside a running loop
    found = list(place(scripted(), guard()).stream(INPUT, thread(), stream_mode=MODES))
    assert MARKER not in str(found)
    assert not any(model.log.streamed)


async def test_history_and_checkpoints_have_no_rejected_text(place: Callable[..., Any]):
    saver = InMemorySaver()
    agent = place(scripted(), guard(), checkpointer=saver)
    await agent.ainvoke(INPUT, thread())
    history = [state async for state in agent.aget_state_history(thread())]
    assert len(history) == 5
    assert ANSWER in str(history)
    assert MARKER not in str(history)
    assert MARKER not in str(list(saver.list(None)))
    assert MARKER.encode() not in b"".join(_bytes_in([saver.storage, saver.writes, saver.blobs]))


def _bytes_in(value: Any) -> list[bytes]:
    if isinstance(value, bytes):
        return [value]
    if isinstance(value, dict):
        return [found for item in value.values() for found in _bytes_in(item)]
    if isinstance(value, (list, tuple)):
        return [found for item in value for found in _bytes_in(item)]
    return []


@pytest.mark.parametrize("policy", ["balanced", "strict"])
async def test_no_stream_mode_shows_rejected_text(place: Callable[..., Any], policy: str):
    agent = place(scripted(), guard(policy))
    found = [item async for item in agent.astream(INPUT, thread(), stream_mode=MODES)]
    assert {mode for mode, _ in found} >= {"messages", "updates", "values", "debug", "checkpoints", "tasks"}
    assert MARKER not in str(found)
    answers = [message.text for mode, (message, *_) in _of(found, "messages") if message.type.startswith("AI")]
    said = [text for text in answers if text]
    if place is with_middleware:
        news = [item["guardrail"] for _, item in _of(found, "custom")]
        assert [item["event"] for item in news] == ["regenerating", "finished"]
        assert news[0]["attempt"] == 2
        assert news[1]["reason"] == "passed"
    else:
        assert said == [ONE + " ", TWO]


def _of(found: list[Any], mode: str) -> list[Any]:
    return [(kind, item) for kind, item in found if kind == mode]


async def test_messages_mode_gives_the_decided_answer(place: Callable[..., Any]):
    agent = place(scripted(), guard())
    found = [message async for message, _ in agent.astream(INPUT, thread(), stream_mode="messages")]
    answer = "".join(m.text for m in found if m.type != "tool")
    assert answer == ANSWER
    assert len([m for m in found if m.type != "tool" and m.text]) == (1 if place is with_middleware else 2)


@pytest.mark.parametrize("version", ["v1", "v2"])
async def test_events_have_no_rejected_text_and_the_right_parents(place: Callable[..., Any], version: str):
    agent = place(scripted(), guard())
    found = [event async for event in agent.astream_events(INPUT, thread(), version=version)]
    assert MARKER not in str(found)
    assert ANSWER in str(found)
    root = next(event for event in found if event["name"] == "LangGraph")
    if version == "v2":
        nodes = {event["run_id"] for event in found if event["name"] == "model"}
        models = [event for event in found if event["event"] == "on_chat_model_start"]
        assert [m["parent_ids"][0] for m in models] == [root["run_id"]] * len(models)
        assert all(m["parent_ids"][-1] in nodes for m in models)
        assert len(models) == (0 if place is with_middleware else 2)


async def test_the_third_protocol_has_no_rejected_text(place: Callable[..., Any]):
    agent = place(scripted(), guard())
    run = await agent.astream_events(INPUT, thread(), version="v3")
    texts = [await message.text async for message in run.messages]
    assert ANSWER in texts
    assert MARKER not in str(texts)
    assert MARKER not in str(await run.output())


class Everything(BaseCallbackHandler):
    """Keeps every payload of every hook."""

    run_inline = True

    def __init__(self) -> None:
        self.payloads: list[str] = []

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("on_"):
            return object.__getattribute__(self, name)
        payloads = object.__getattribute__(self, "payloads")
        return lambda *args, **kwargs: payloads.append(name + str((args, kwargs)))


class EverythingAsync(AsyncCallbackHandler):
    def __init__(self) -> None:
        self.payloads: list[str] = []

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("on_"):
            return object.__getattribute__(self, name)
        payloads = object.__getattribute__(self, "payloads")

        async def keep(*args: Any, **kwargs: Any) -> None:
            payloads.append(name + str((args, kwargs)))

        return keep


class Tracer(BaseTracer):
    def __init__(self) -> None:
        super().__init__()
        self.roots: list[Run] = []

    def _persist_run(self, run: Run) -> None:
        self.roots.append(run)


@pytest.mark.parametrize("streaming", [False, True])
async def test_callbacks_have_no_rejected_text(place: Callable[..., Any], streaming: bool):
    agent = place(scripted(WRONG, f"{ONE} {WRONG}", ANSWER), guard(stop_on_repeat=False))
    plain, plain_async = Everything(), EverythingAsync()
    config = thread(callbacks=[plain, plain_async])
    if streaming:
        [item async for item in agent.astream(INPUT, config, stream_mode=MODES)]
    else:
        await agent.ainvoke(INPUT, config)
    for handler in (plain, plain_async):
        assert ANSWER in str(handler.payloads)
        assert MARKER not in str(handler.payloads)
    starts = [p for p in plain.payloads if p.startswith("on_chat_model_start")]
    assert len(starts) == (4 if place is with_middleware else 2)  # of a guarded model only its own runs


async def test_tracers_see_attempts_as_child_runs(place: Callable[..., Any]):
    tracer = Tracer()
    await place(scripted(), guard()).ainvoke(INPUT, thread(callbacks=[tracer]))
    (root,) = tracer.roots
    nodes = [run for run in root.child_runs if run.name == "model"]
    parents = nodes if place is with_middleware else [run.child_runs[0] for run in nodes]
    tags = [[tag for run in parent.child_runs for tag in run.tags if tag.startswith("guard:")] for parent in parents]
    assert tags == [["guard:attempt:1"], ["guard:attempt:1", "guard:attempt:2"]]
    rejected, accepted = parents[1].child_runs
    assert MARKER in str(rejected.outputs)
    assert ANSWER in str(accepted.outputs)
    assert rejected.parent_run_id == accepted.parent_run_id == parents[1].id


async def test_spans_have_no_rejected_text_and_the_right_parents(place: Callable[..., Any]):
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    agent = place(scripted(), guard(observers=[SpanObserver(tracer_provider=provider)]))
    with provider.get_tracer("application").start_as_current_span("request") as request:
        await agent.ainvoke(INPUT, thread())
    spans = exporter.get_finished_spans()
    assert MARKER not in str([span.to_json() for span in spans])
    trace_id, request_id = request.get_span_context().trace_id, request.get_span_context().span_id
    assert {span.context.trace_id for span in spans} == {trace_id}
    ids = {span.context.span_id: span for span in spans}
    inside = [span for span in spans if span.context.span_id != request_id]
    roots = [span for span in inside if _parent(span) == request_id]
    assert len(roots) == 1
    assert all(_parent(span) in ids for span in inside)
    assert {span.name for span in inside if _parent(span) == roots[0].context.span_id} != set()
    assert trace.get_current_span() is trace.INVALID_SPAN


def _parent(span: ReadableSpan) -> int:
    assert span.parent is not None
    return span.parent.span_id


async def test_a_refusal_in_the_state(place: Callable[..., Any]):
    agent = place(scripted(WRONG), guard())
    out = await agent.ainvoke(INPUT, thread())
    assert kinds(out["messages"]) == ["human", "ai+tool", "tool", "ai"]
    assert out["messages"][-1].content_blocks[-1]["type"] == "refusal"
    assert MARKER not in str(out)
    again = await agent.ainvoke({"messages": [("human", "And the garden?")]}, thread())
    assert MARKER not in str(again)
