"""Structured answers of models and agents: every value is checked, keys are not touched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from guardrail_langchain import GroundednessMiddleware
from guardrail_langchain.leaves import leaf_text, structured_value
from langchain.agents import create_agent
from langchain.agents.structured_output import ToolStrategy
from langchain_core.exceptions import ModelRefusalError
from langchain_core.messages import AIMessage
from pydantic import BaseModel

from tests.langchain.agents import INPUT, kinds, search
from tests.langchain.hall import MARKER, ONE, QUESTION, TWO, guard
from tests.langchain.model_ways import guarded
from tests.langchain.scripted_model import ScriptedChatModel, tool_call


class Inventory(BaseModel):
    """What there is."""

    hall: str
    gardenPlants: list[str]


GOOD = Inventory(hall=ONE, gardenPlants=[TWO])
BAD = Inventory(hall=ONE, gardenPlants=[TWO, f"The {MARKER} tree grows there."])


def given(value: Inventory, id: str = "answer-1") -> AIMessage:
    return tool_call("Inventory", id, **value.model_dump())


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a_b": "x", "cD": [1, 2.5], "e": {"f-g": "h"}}, "a b: x\n\nc d: 1\n\nc d: 2.5\n\ne, f g: h"),
        ({"a": None, "b": True, "c": " ", "d": [], "e": {}}, ""),
        (["x", {"a": 0}], "x\n\na: 0"),
        ("x", "x"),
    ],
)
def test_values_become_claims(value: Any, text: str):
    assert leaf_text(value) == text


@pytest.mark.parametrize(
    ("message", "value"),
    [
        (AIMessage('{"a": 1}'), {"a": 1}),
        (AIMessage("[1]"), [1]),
        (AIMessage("1"), None),
        (AIMessage("No."), None),
        (tool_call("Any", a=1), [{"a": 1}]),
    ],
)
def test_where_a_structure_is(message: AIMessage, value: Any):
    assert structured_value(message) == value


async def ainvoke(runnable: Any) -> Any:
    return await runnable.ainvoke(QUESTION)


async def invoke(runnable: Any) -> Any:
    return runnable.invoke(QUESTION)


async def astream(runnable: Any) -> Any:
    return [item async for item in runnable.astream(QUESTION)][-1]


async def stream(runnable: Any) -> Any:
    return list(runnable.stream(QUESTION))[-1]


each_way = pytest.mark.parametrize("way", [ainvoke, invoke, astream, stream])


@each_way
@pytest.mark.parametrize("policy", ["balanced", "strict"])
@pytest.mark.parametrize("before", [[], [given(BAD)], [f"The {MARKER} says no."]])
async def test_structured_output_of_a_model(way: Callable[..., Any], policy: str, before: list[Any]):
    model, chat = guarded(*before, given(GOOD), policy=policy)
    assert await way(chat.with_structured_output(Inventory)) == GOOD
    assert len(model.log.prompts) == 1 + len(before)


@each_way
async def test_a_refused_structure_is_a_refusal_of_the_model(way: Callable[..., Any]):
    _, chat = guarded(given(BAD))
    with pytest.raises(ModelRefusalError) as caught:
        await way(chat.with_structured_output(Inventory))
    assert MARKER not in str(caught.value.raw_message)


async def test_the_raw_message_has_the_metadata_of_the_run():
    _, chat = guarded(given(BAD), given(GOOD))
    out = await chat.with_structured_output(Inventory, include_raw=True).ainvoke(QUESTION)
    assert out["parsed"] == GOOD
    assert out["raw"].response_metadata["guardrail"]["attempts"] == 2
    assert out["raw"].tool_calls[0]["args"] == GOOD.model_dump()


def agent(*answers: Any) -> Any:
    return create_agent(
        ScriptedChatModel(tool_call(q="hall"), *answers),
        tools=[search],
        middleware=[GroundednessMiddleware(guard())],
        response_format=ToolStrategy(Inventory, tool_message_content="Done."),
    )


@pytest.mark.parametrize("sync", [False, True])
@pytest.mark.parametrize("before", [[], [given(BAD)]])
async def test_structured_response_of_an_agent(sync: bool, before: list[Any]):
    built = agent(*before, given(GOOD))
    out = built.invoke(INPUT) if sync else await built.ainvoke(INPUT)
    assert out["structured_response"] == GOOD
    assert kinds(out["messages"]) == ["human", "ai+tool", "tool", "ai+tool", "tool"]
    assert out["messages"][-2].response_metadata["guardrail"]["attempts"] == 1 + len(before)
    assert MARKER not in str(out)


async def test_a_refused_structure_of_an_agent():
    out = await agent(given(BAD)).ainvoke(INPUT)
    assert out.get("structured_response") is None
    assert out["messages"][-1].content_blocks[-1]["type"] == "refusal"
    assert MARKER not in str(out)


async def test_an_agent_may_search_again_instead():
    out = await agent(given(BAD), tool_call(id="call-2", q="cellar"), given(GOOD)).ainvoke(INPUT)
    assert out["structured_response"] == GOOD
    assert [m.tool_calls[0]["name"] for m in out["messages"] if m.type == "ai"] == ["search", "search", "Inventory"]
