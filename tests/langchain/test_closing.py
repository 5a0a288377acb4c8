"""Whoever stops early closes everything inside, and stopping is not an error."""

from __future__ import annotations

import asyncio
import gc
from contextlib import aclosing, suppress
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableLambda

from guardrail import OutcomeStatus
from tests.langchain.guarded import ANSWER, KINDS, ONE, STREAMS, build, call, cancelled
from tests.langchain.scripted_model import text_chunks

every_kind = pytest.mark.parametrize("kind", ["string", "message", "retriever"])  # a pipe drops its parts: see below


class Ends(BaseCallbackHandler):
    """How runs of the guard ended."""

    def __init__(self) -> None:
        self.ends: list[Any] = []

    def on_chain_end(self, outputs: Any, **_: Any) -> None:
        self.ends.append(outputs)

    def on_chain_error(self, error: BaseException, **_: Any) -> None:
        self.ends.append(error)


@every_kind
@pytest.mark.parametrize("method", STREAMS)
async def test_closing_after_a_piece_closes_the_runnable(kind: str, method: str) -> None:
    guarded = build(kind, [*text_chunks(ANSWER), asyncio.Event()])
    pieces = await call(method, guarded.runnable, guarded.asked, first=lambda: True)
    assert len(pieces) == (0 if method == "astream_events" else 1)  # the first event is no piece
    assert guarded.closed


@every_kind
async def test_everything_is_closed_when_aclose_returns(kind: str) -> None:
    guarded = build(kind, [*text_chunks(ANSWER), asyncio.Event()])
    async with aclosing(guarded.runnable.astream(guarded.asked)) as stream:
        assert ONE in str(await anext(stream))
        assert guarded.model.log.opened == 1
    assert guarded.closed
    assert asyncio.all_tasks() == {asyncio.current_task()}


@every_kind
@pytest.mark.parametrize("method", ["astream", "atransform"])
@pytest.mark.parametrize("twice", [False, True])
async def test_what_is_bound_to_the_guard_is_closed_with_it(kind: str, method: str, twice: bool) -> None:
    guarded = build(kind, [*text_chunks(ANSWER), asyncio.Event()])
    bound = guarded.runnable.with_config(tags=["bound"])
    bound = bound.bind(stop=["none"]).with_config(run_name="twice") if twice else bound

    async def asked():
        yield guarded.asked

    source = asked() if method == "atransform" else guarded.asked
    async with aclosing(getattr(bound, method)(source)) as stream:
        assert ONE in str(await anext(stream))
    assert guarded.closed


@every_kind
@pytest.mark.parametrize("turns", [0, 3, 30, 300])
async def test_everything_is_closed_when_a_cancelled_call_returns(kind: str, turns: int) -> None:
    guarded = build(kind, [*text_chunks(ONE), asyncio.Event()])
    left = iter(range(turns + 1))
    started = lambda: guarded.model.log.opened == 1 and next(left, None) is None  # noqa: E731
    await cancelled(guarded.runnable.ainvoke(guarded.asked), started)
    assert guarded.closed


@pytest.mark.parametrize("kind", KINDS)
async def test_a_pipe_around_the_guard_is_closed_within_some_turns_of_the_loop(kind: str) -> None:
    guarded = build(kind, [*text_chunks(ANSWER), asyncio.Event()])
    pipe = guarded.runnable | RunnableLambda(lambda text: text)
    with suppress(TimeoutError):
        await asyncio.wait_for(pipe.ainvoke(guarded.asked), 0.2)
    gc.collect()
    for _ in range(100):
        await asyncio.sleep(0)
    assert guarded.closed


async def test_stopping_early_is_not_an_error() -> None:
    handler = Ends()
    guarded = build("message", [*text_chunks(ANSWER), asyncio.Event()])
    async with aclosing(guarded.runnable.astream(guarded.asked, {"callbacks": [handler]})) as stream:
        first = await anext(stream)
    assert [end.text for end in handler.ends] == [first.text]
    assert handler.ends[-1].text == f"{ONE} "


def test_stopping_a_synchronous_stream_early_is_not_an_error() -> None:
    handler = Ends()
    guarded = build("message", [*text_chunks(ANSWER), asyncio.Event()])
    stream = guarded.runnable.stream(guarded.asked, {"callbacks": [handler]})
    next(stream)
    stream.close()
    assert [end.text for end in handler.ends] == [f"{ONE} "]
    assert guarded.closed


async def test_errors_are_reported_once_as_they_are() -> None:
    handler = Ends()
    error = KeyError("x")
    guarded = build("message", [error])
    with pytest.raises(KeyError):
        await call("astream", guarded.runnable, guarded.asked, {"callbacks": [handler]})
    assert handler.ends == [error]
    assert [o.status for o in guarded.outcomes] == [OutcomeStatus.ERROR]


async def test_a_source_closes_once_at_a_normal_end() -> None:
    guarded = build("string", ANSWER)
    assert "".join([piece async for piece in guarded.runnable.astream(guarded.asked)]) == ANSWER
    assert (guarded.model.log.opened, guarded.model.log.closed) == (1, 1)
    assert asyncio.all_tasks() == {asyncio.current_task()}
