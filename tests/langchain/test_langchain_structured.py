"""Structured answers of runnables, value by value."""

from __future__ import annotations

from typing import Any

import pytest
from guardrail_langchain import GuardedRunnable
from langchain_core.exceptions import ModelRefusalError
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import JsonOutputParser, StrOutputParser
from langchain_core.runnables import RunnableLambda
from pydantic import BaseModel

from guardrail import GenerationTypeError
from guardrail.policy import DEFAULT_REFUSAL
from tests.langchain.guarded import ASKED, MARKER, METHODS, PROMPT, settings
from tests.langchain.guarded import call as call_method
from tests.langchain.scripted_model import ScriptedChatModel, tool_call
from tests.streaming.helpers import says

RIGHT = '{"hall": {"clock_wood": "oak"}, "roses": 12}'
WRONG = f'{{"hall": {{"clock_wood": "{MARKER}"}}, "roses": 12}}'
VALUE = {"hall": {"clock_wood": "oak"}, "roses": 12}
LEAVES = ("hall, clock wood: oak", "roses: 12")


class Hall(BaseModel):
    clock_wood: str


class Museum(BaseModel):
    hall: Hall
    roses: int


def guarded(bound: Any, **more: Any) -> GuardedRunnable:
    return GuardedRunnable(bound=bound, structured=True, **settings(entailment=says(*LEAVES)), **more)


@pytest.mark.parametrize("method", METHODS)
async def test_values_that_hold_are_given_as_the_runnable_gives_them(method: str) -> None:
    model = ScriptedChatModel(WRONG, RIGHT)
    (value,) = await call_method(method, guarded(PROMPT | model | JsonOutputParser()), ASKED)
    assert value == VALUE
    assert len(model.log.prompts) == 2


@pytest.mark.parametrize("given", [RIGHT, f"```json\n{RIGHT}\n```"])
async def test_a_text_stays_a_text(given: str) -> None:
    assert await guarded(PROMPT | ScriptedChatModel(given) | StrOutputParser()).ainvoke(ASKED) == given


async def test_messages_keep_their_json_and_their_tool_calls() -> None:
    message = await guarded(PROMPT | ScriptedChatModel(WRONG, RIGHT)).ainvoke(ASKED)
    assert isinstance(message, AIMessage)
    assert (message.text, message.response_metadata["guardrail"]["attempts"]) == (RIGHT, 2)
    called = await guarded(PROMPT | ScriptedChatModel(tool_call("Museum", **VALUE))).ainvoke(ASKED)
    assert called.tool_calls[0]["args"] == VALUE


async def test_models_stay_models() -> None:
    museum = Museum(hall=Hall(clock_wood="oak"), roses=12)
    assert await guarded(RunnableLambda(lambda _: museum)).ainvoke(ASKED) is museum


@pytest.mark.parametrize("method", METHODS)
async def test_a_refusal_is_an_error_that_langchain_knows(method: str) -> None:
    chain = guarded(PROMPT | ScriptedChatModel(WRONG) | JsonOutputParser())
    with pytest.raises(ModelRefusalError) as raised:
        await call_method(method, chain, ASKED)
    assert str(raised.value) == DEFAULT_REFUSAL
    assert raised.value.raw_message is not None
    assert MARKER not in repr((raised.value, raised.value.raw_message))


@pytest.mark.parametrize("given", ["The hall is old.", "12"])
async def test_what_is_no_structure(given: str) -> None:
    with pytest.raises(GenerationTypeError, match="structured=True"):
        await guarded(PROMPT | ScriptedChatModel(given) | StrOutputParser()).ainvoke(ASKED)
