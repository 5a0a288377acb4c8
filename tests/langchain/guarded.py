"""What the tests of the runnable share: sentences with markers, kinds of runnables, ways to call them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from guardrail_langchain import GuardedRunnable
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever

from guardrail import Outcome
from tests.langchain.scripted_model import ScriptedChatModel
from tests.streaming.helpers import LENIENT_WORDS, QUESTION, says

ONE, TWO = "The old hall keeps a wooden clock near its door.", "The garden grows tall roses by the wall."
ANSWER = f"{ONE} {TWO}"
MARKER = "zqx"
WRONG = f"The {MARKER} cellar hides rare coins."
CONTEXT = [ONE, TWO]
ASKED = {"question": QUESTION, "context": CONTEXT}
PROMPT = ChatPromptTemplate.from_messages([("system", "Use only this: {context}"), ("human", "{question}")])


class ListRetriever(BaseRetriever):
    """The first k of a list; remembers what it was asked."""

    texts: list[str]
    k: int = 2
    log: Any = None  # a list that copies share

    def __init__(self, *texts: str, **fields: Any) -> None:
        super().__init__(texts=fields.pop("texts", list(texts)), **fields)

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        if self.log is not None:
            self.log.append((query, self.k))
        return [Document(page_content=text) for text in self.texts[: self.k]]


@dataclass
class Guarded:
    """A guarded runnable with what is inside it."""

    runnable: Any
    asked: Any
    model: ScriptedChatModel
    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def closed(self) -> bool:
        return self.model.log.opened == self.model.log.closed


def settings(**more: Any) -> dict[str, Any]:
    return {"policy": LENIENT_WORDS, "entailment": says(ONE, TWO), "observers": [], **more}


def build(kind: str, *scripts: Any, **more: Any) -> Guarded:
    """A guard around a runnable of a kind: ``string``, ``message``, ``chain`` or ``retriever``."""
    model = ScriptedChatModel(*scripts)
    found = Guarded(runnable=None, asked=ASKED, model=model)
    fields = settings(on_outcome=found.outcomes.append, **more)
    if kind == "string":
        found.runnable = GuardedRunnable(bound=PROMPT | model | StrOutputParser(), **fields)
    elif kind == "message":
        found.runnable = GuardedRunnable(bound=model, context_key=lambda _: CONTEXT, **fields)
        found.asked = QUESTION
    elif kind == "chain":
        found.runnable = GuardedRunnable(bound=PROMPT | model, **fields) | StrOutputParser()
    else:
        retriever = ListRetriever(*CONTEXT)
        found.runnable = GuardedRunnable(bound=PROMPT | model | StrOutputParser(), retriever=retriever, **fields)
        found.asked = QUESTION
    return found


# --- ways to call a runnable; each gives the pieces it got ----------------------------------------------------


async def _each(items: AsyncIterator[Any], first: Callable[[], Any] | None) -> list[Any]:
    pieces = []
    async with aclosing(items) as stream:  # type: ignore[type-var]
        async for item in stream:
            pieces.append(item)
            if first is not None and first():
                break
    return pieces


def _every(items: Iterator[Any], first: Callable[[], Any] | None) -> list[Any]:
    pieces = []
    for item in items:
        pieces.append(item)
        if first is not None and first():
            items.close()  # type: ignore[attr-defined]
            break
    return pieces


async def _one(value: Any) -> AsyncIterator[Any]:
    yield value


async def _event_pieces(runnable: Any, asked: Any, config: Any, first: Any) -> list[Any]:
    events = await _each(runnable.astream_events(asked, config, version="v2"), first)
    outermost = [e for e in events if not e["parent_ids"]]
    return [e["data"]["chunk"] for e in outermost if e["event"] == "on_chain_stream"]


async def call(method: str, runnable: Any, asked: Any, config: Any = None, first: Any = None) -> list[Any]:
    """Call a method and give the pieces that came; with ``first``, close the stream once it is true."""
    if method == "invoke":
        return [runnable.invoke(asked, config)]
    if method == "ainvoke":
        return [await runnable.ainvoke(asked, config)]
    if method == "batch":
        return runnable.batch([asked], config)
    if method == "abatch":
        return await runnable.abatch([asked], config)
    if method == "stream":
        return _every(runnable.stream(asked, config), first)
    if method == "astream":
        return await _each(runnable.astream(asked, config), first)
    if method == "transform":
        return _every(runnable.transform(iter([asked]), config), first)
    if method == "atransform":
        return await _each(runnable.atransform(_one(asked), config), first)
    return await _event_pieces(runnable, asked, config, first)


METHODS = ["invoke", "ainvoke", "stream", "astream", "batch", "abatch", "transform", "atransform", "astream_events"]
KINDS = ["string", "message", "chain", "retriever"]
STREAMS = ["stream", "astream", "transform", "atransform", "astream_events"]


def text_in(pieces: list[Any]) -> str:
    return "".join(piece.text if isinstance(piece, BaseMessage) else piece for piece in pieces)


async def cancelled(work: Awaitable[Any], started: Callable[[], bool]) -> None:
    """Cancel work once it has started, and wait for its end."""
    task = asyncio.ensure_future(work)
    while not started():
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled()
