"""Every way to call a guarded chat model, each giving the whole message."""

from __future__ import annotations

import asyncio
from typing import Any

from guardrail_langchain import GuardedChatModel
from langchain_core.messages import AIMessage, AIMessageChunk

from tests.langchain.hall import PASSAGE, guard
from tests.langchain.scripted_model import ScriptedChatModel


def guarded(*scripts: Any, policy: str = "balanced", **changes: Any) -> tuple[ScriptedChatModel, GuardedChatModel]:
    model = ScriptedChatModel(*scripts)
    return model, GuardedChatModel(model=model, guard=guard(policy, **changes), context=lambda messages: [PASSAGE])


async def ainvoke(model: Any, value: Any, **kwargs: Any) -> AIMessage:
    return await model.ainvoke(value, **kwargs)


async def invoke(model: Any, value: Any, **kwargs: Any) -> AIMessage:
    return model.invoke(value, **kwargs)  # inside a running loop


async def invoke_in_thread(model: Any, value: Any, **kwargs: Any) -> AIMessage:
    return await asyncio.to_thread(model.invoke, value, **kwargs)


async def astream(model: Any, value: Any, **kwargs: Any) -> AIMessage:
    return joined([chunk async for chunk in model.astream(value, **kwargs)])


async def stream(model: Any, value: Any, **kwargs: Any) -> AIMessage:
    return joined(list(model.stream(value, **kwargs)))


async def abatch(model: Any, value: Any, **kwargs: Any) -> AIMessage:
    return (await model.abatch([value], **kwargs))[0]


async def events(model: Any, value: Any, **kwargs: Any) -> AIMessage:
    chunks = [
        e["data"]["chunk"] async for e in model.astream_events(value, version="v2", **kwargs) if "chunk" in e["data"]
    ]
    return joined(chunks)


async def v3(model: Any, value: Any, **kwargs: Any) -> AIMessage:
    run = await model.astream_events(value, version="v3", **kwargs)
    message = await run.output
    await run._producer_task  # callbacks are told after the output is known
    return message


def joined(chunks: list[AIMessageChunk]) -> AIMessage:
    assert chunks[-1].chunk_position == "last"
    assert len({chunk.id for chunk in chunks}) == 1
    whole = chunks[0]
    for chunk in chunks[1:]:
        whole = whole + chunk
    return whole


WAYS = [ainvoke, invoke, invoke_in_thread, astream, stream, abatch, events, v3]
