"""What callbacks see of a guarded chat model: its own run, and attempts only if they are tracers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from guardrail_langchain import GuardedChatModel
from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler, get_usage_metadata_callback
from langchain_core.outputs import LLMResult
from langchain_core.tracers.base import BaseTracer
from langchain_core.tracers.schemas import Run

from tests.langchain.hall import ANSWER, MARKER, PASSAGE, QUESTION, WRONG, guard
from tests.langchain.model_ways import WAYS, abatch, ainvoke, astream, events, guarded, invoke, stream, v3
from tests.langchain.scripted_model import ScriptedChatModel

pytestmark = pytest.mark.filterwarnings("ignore::langchain_core._api.beta_decorator.LangChainBetaWarning")


class Everything(BaseCallbackHandler):
    """Keeps every payload."""

    run_inline = True

    def __init__(self) -> None:
        self.payloads: list[str] = []
        self.starts: list[tuple[Any, Any]] = []

    def on_chat_model_start(self, serialized: Any, messages: Any, **kwargs: Any) -> None:
        self.starts.append((kwargs["run_id"], kwargs["parent_run_id"]))
        self.payloads.append(str((messages, kwargs)))

    def on_llm_new_token(self, *args: Any, **kwargs: Any) -> None:
        self.payloads.append(str((args, kwargs)))

    def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:
        self.payloads.append(str((response, kwargs)))

    def on_llm_error(self, *args: Any, **kwargs: Any) -> None:
        self.payloads.append(str((args, kwargs)))


class EverythingAsync(AsyncCallbackHandler):
    def __init__(self) -> None:
        self.payloads: list[str] = []

    async def on_chat_model_start(self, *args: Any, **kwargs: Any) -> None:
        self.payloads.append(str((args, kwargs)))

    async def on_llm_new_token(self, *args: Any, **kwargs: Any) -> None:
        self.payloads.append(str((args, kwargs)))

    async def on_llm_end(self, *args: Any, **kwargs: Any) -> None:
        self.payloads.append(str((args, kwargs)))


class Tracer(BaseTracer):
    def __init__(self) -> None:
        super().__init__()
        self.roots: list[Run] = []

    def _persist_run(self, run: Run) -> None:
        self.roots.append(run)


@pytest.mark.parametrize("way", WAYS)
async def test_only_tracers_see_attempts(way: Callable[..., Any]):
    _, chat = guarded(WRONG, ANSWER)
    plain, plain_async, tracer = Everything(), EverythingAsync(), Tracer()
    handlers: list[BaseCallbackHandler] = [plain, tracer]
    if way in (ainvoke, astream, abatch, events, v3):
        handlers.append(plain_async)
    await way(chat, QUESTION, config={"callbacks": handlers, "tags": ["mine"], "metadata": {"who": "me"}})
    assert len(plain.starts) == 1
    assert MARKER not in str(plain.payloads)
    assert MARKER not in str(plain_async.payloads)
    (root,) = tracer.roots
    assert MARKER not in str((root.inputs, root.outputs, root.events))
    assert [child.tags for child in root.child_runs] == [["mine", "guard:attempt:1"], ["mine", "guard:attempt:2"]]
    assert [child.parent_run_id for child in root.child_runs] == [root.id, root.id]
    assert all(child.extra["metadata"]["who"] == "me" for child in root.child_runs)
    assert MARKER in str(root.child_runs[0].outputs)
    assert all(child.end_time for child in root.child_runs)


@pytest.mark.parametrize("way", [ainvoke, invoke, astream, stream])
async def test_tokens_are_counted_once(way: Callable[..., Any]):
    _, chat = guarded(WRONG, ANSWER)
    with get_usage_metadata_callback() as counted:
        await way(chat, QUESTION)
    assert counted.usage_metadata["scripted-1"]["output_tokens"] == 18


async def test_streamed_events_have_no_rejected_text():
    _, chat = guarded(WRONG, ANSWER)
    found = [event async for event in chat.astream_events(QUESTION, version="v2")]
    assert {event["event"] for event in found} == {"on_chat_model_start", "on_chat_model_stream", "on_chat_model_end"}
    assert MARKER not in str(found)


@pytest.mark.parametrize("way", [ainvoke, invoke, astream, stream])
async def test_handlers_of_the_model_inside_become_handlers_of_the_guard(way: Callable[..., Any]):
    plain = Everything()
    model = ScriptedChatModel(WRONG, ANSWER, callbacks=[plain])
    chat = GuardedChatModel(model=model, guard=guard(), context=lambda messages: [PASSAGE])
    await way(chat, QUESTION)
    assert len(plain.starts) == 1
    assert ANSWER in str(plain.payloads)
    assert MARKER not in str(plain.payloads)
