"""A chat model that plays prepared answers, as a real integration would: ids, usage, tool calls, streaming."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, message_chunk_to_message
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field

INPUT_TOKENS = 10


@dataclass
class CallLog:
    """What happened to the model; shared by its copies and bindings.

    Attributes:
        prompts: The messages of every call.
        options: The keyword arguments of every call (tools, tool_choice, stop, …).
        opened: Streams that were begun.
        closed: Streams that were closed; equal to ``opened`` when nothing leaks.
        streamed: For every call, whether it went through ``_stream`` or ``_astream``.
    """

    prompts: list[list[BaseMessage]] = field(default_factory=list)
    options: list[dict[str, Any]] = field(default_factory=list)
    opened: int = 0
    closed: int = 0
    streamed: list[bool] = field(default_factory=list)


class ScriptedChatModel(BaseChatModel):
    """Plays one script per call, the last one again if there are more calls.

    A script is a text (streamed in words), an ``AIMessage`` (text in words, then tool calls), an exception, or a
    list of ``AIMessageChunk``, exceptions (raised where they stand), ``asyncio.Event`` (waited for) and functions
    (called). Texts get the id ``msg-<call>``, a usage of ``INPUT_TOKENS`` and one output token per word, and response
    metadata; messages and chunks say for themselves.
    """

    scripts: Sequence[Any] = Field(repr=False)
    log: Any = Field(default=None, repr=False)
    model_name: str = "scripted-1"

    def __init__(self, *scripts: Any, **fields: Any) -> None:
        fields.setdefault("log", CallLog())
        super().__init__(scripts=fields.pop("scripts", scripts), **fields)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], *, tool_choice: Any = None, **kwargs: Any) -> Runnable[Any, AIMessage]:
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], tool_choice=tool_choice, **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        whole: AIMessageChunk | None = None
        for item in self._next(messages, streamed=False, stop=stop, **kwargs):
            if isinstance(item, AIMessageChunk):
                whole = item if whole is None else whole + item
        assert whole is not None
        return ChatResult(generations=[ChatGeneration(message=message_chunk_to_message(whole))])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        self.log.opened += 1
        try:
            for item in self._next(messages, streamed=True, stop=stop, **kwargs):
                if isinstance(item, AIMessageChunk):
                    chunk = ChatGenerationChunk(message=item.model_copy())
                    if run_manager:
                        run_manager.on_llm_new_token(chunk.text, chunk=chunk)
                    yield chunk
        finally:
            self.log.closed += 1

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        self.log.opened += 1
        try:
            for item in self._next(messages, streamed=True, stop=stop, **kwargs):
                await asyncio.sleep(0)
                if isinstance(item, asyncio.Event):
                    await item.wait()
                if isinstance(item, AIMessageChunk):
                    chunk = ChatGenerationChunk(message=item.model_copy())
                    if run_manager:
                        await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
                    yield chunk
        finally:
            self.log.closed += 1

    def _next(self, messages: list[BaseMessage], *, streamed: bool, **options: Any) -> Iterator[Any]:
        call = len(self.log.prompts)
        self.log.prompts.append(list(messages))
        self.log.options.append(options)
        self.log.streamed.append(streamed)
        script = self.scripts[min(call, len(self.scripts) - 1)]
        for item in _items(script, call, self.model_name):
            if isinstance(item, BaseException):
                raise item
            if callable(item):
                item()
            yield item


def _items(script: Any, call: int, model_name: str) -> Sequence[Any]:
    if isinstance(script, AIMessage) and not isinstance(script, AIMessageChunk):
        return message_chunks(script)
    if isinstance(script, str):
        return text_chunks(script, id=f"msg-{call + 1}", model_name=model_name)
    return script if isinstance(script, list) else [script]


def text_chunks(text: str, *, id: str = "msg-1", model_name: str = "scripted-1") -> list[AIMessageChunk]:
    """A text in words; the last chunk carries usage and response metadata."""
    words = _words(text)
    chunks = [AIMessageChunk(content=word, id=id) for word in words]
    usage = {"input_tokens": INPUT_TOKENS, "output_tokens": len(words), "total_tokens": INPUT_TOKENS + len(words)}
    ending = {"model_name": model_name, "finish_reason": "stop"}
    return [*chunks, AIMessageChunk(content="", id=id, usage_metadata=usage, response_metadata=ending)]


def message_chunks(message: AIMessage) -> list[AIMessageChunk]:
    """A whole message as a stream: text in words, then each tool call in two deltas, then the rest."""
    if isinstance(message.content, str):
        chunks = [AIMessageChunk(content=word, id=message.id) for word in _words(message.content)]
    else:
        chunks = [AIMessageChunk(content=[block], id=message.id) for block in message.content]
    for index, call in enumerate(message.tool_calls):
        chunks += [AIMessageChunk(content="", id=message.id, tool_call_chunks=d) for d in _tool_deltas(index, call)]
    rest: dict[str, Any] = {"response_metadata": message.response_metadata}
    rest["additional_kwargs"] = message.additional_kwargs
    if message.usage_metadata:
        rest["usage_metadata"] = message.usage_metadata
    return [*chunks, AIMessageChunk(content="", id=message.id, **rest)]


def _tool_deltas(index: int, call: Any) -> Iterator[list[Any]]:

    arguments = json.dumps(call["args"])
    half = len(arguments) // 2
    yield [{"name": call["name"], "args": arguments[:half], "id": call["id"], "index": index}]
    yield [{"name": None, "args": arguments[half:], "id": None, "index": index}]


def _words(text: str) -> list[str]:
    words = text.split(" ")
    return [word + " " for word in words[:-1]] + words[-1:]


def tool_call(name: str = "search", id: str = "call-1", **args: Any) -> AIMessage:
    """A turn that calls a tool and says nothing."""
    return AIMessage(content="", id=f"turn-{id}", tool_calls=[{"name": name, "args": args, "id": id}])
