"""Synchronous methods use the synchronous side of what is inside, as LangChain does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from guardrail_langchain import GuardedRunnable
from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

from tests.langchain.guarded import (
    ANSWER,
    ASKED,
    CONTEXT,
    ONE,
    PROMPT,
    TWO,
    WRONG,
    ListRetriever,
    call,
    settings,
    text_in,
)
from tests.langchain.scripted_model import ScriptedChatModel
from tests.streaming.helpers import QUESTION

SYNC = ["invoke", "stream", "batch", "transform"]
every_sync_method = pytest.mark.parametrize("method", SYNC)


def _same_loop(log: Any) -> None:
    loop = asyncio.get_running_loop()
    log.loop = getattr(log, "loop", loop)
    if log.loop is not loop:
        raise RuntimeError("Event loop is closed")


class PooledModel(ScriptedChatModel):
    """Its asynchronous client belongs to the event loop of the first call, as pooled connections do."""

    async def _astream(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        _same_loop(self.log)
        async for chunk in super()._astream(*args, **kwargs):
            yield chunk


class PooledRetriever(ListRetriever):
    """The same for a retriever."""

    async def _aget_relevant_documents(self, query: str, **_: Any) -> list[Document]:
        raise AssertionError("the synchronous method was asked for")


@every_sync_method
async def test_asynchronous_clients_are_not_used_in_loops_that_end_with_the_call(method: str) -> None:
    chain = PROMPT | PooledModel(ANSWER) | StrOutputParser()
    guarded = GuardedRunnable(bound=chain, **settings())
    assert [text_in(await call(method, guarded, ASKED)) for _ in range(2)] == [ANSWER, ANSWER]


@every_sync_method
async def test_a_retriever_is_asked_synchronously_each_time(method: str) -> None:
    log: list[tuple[str, int]] = []
    retriever = PooledRetriever(*CONTEXT, k=1, log=log)
    chain = PROMPT | PooledModel(WRONG, ANSWER) | StrOutputParser()
    guarded = GuardedRunnable(bound=chain, retriever=retriever, **settings())
    assert text_in(await call(method, guarded, QUESTION)) == ANSWER
    assert log == [(QUESTION, 1), (QUESTION, 2), (WRONG, 2)]


@every_sync_method
async def test_what_is_only_asynchronous_works_too(method: str) -> None:
    async def answer(_: Any) -> str:
        return f"{ONE} {TWO}"

    inside = RunnablePassthrough.assign(answer=RunnableLambda(answer)) | RunnableLambda(lambda found: found["answer"])
    guarded = GuardedRunnable(bound=inside.with_config(tags=["inside"]), **settings())
    assert text_in(await call(method, guarded, ASKED)) == ANSWER
