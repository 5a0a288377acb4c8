"""Guards in the nodes of a LangGraph graph."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import pytest
from guardrail_langchain import GuardedChatModel, GuardedRunnable
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, interrupt

from tests.langchain.agents import thread
from tests.langchain.hall import ANSWER, MARKER, ONE, PASSAGE, QUESTION, TWO, WRONG, guard
from tests.langchain.scripted_model import ScriptedChatModel, text_chunks

PROMPT = ChatPromptTemplate.from_template("Answer {question} from {context}.")
INPUT = {"question": QUESTION, "context": [PASSAGE]}


class State(TypedDict, total=False):
    question: str
    context: list[str]
    answer: str
    messages: Annotated[list[Any], add_messages]


def as_runnable(model: ScriptedChatModel, *before: Any) -> Any:
    """A guarded chain as the whole node."""
    chain: Any = PROMPT | model | StrOutputParser()
    for step in before:
        chain = RunnableLambda(step) | chain
    return GuardedRunnable(bound=chain, guard=guard()) | (lambda text: {"answer": text, "messages": [("ai", text)]})


def as_model(model: ScriptedChatModel, *before: Any) -> Any:
    """A guarded chat model called by a node that is a function."""
    chat = GuardedChatModel(model=model, guard=guard())

    async def node(state: State, config: RunnableConfig) -> State:
        for step in before:
            step(state)
        message = await chat.ainvoke(state["question"], {**config, "configurable": {"context": state["context"]}})
        return {"answer": message.text, "messages": [message]}

    return node


def as_function(model: ScriptedChatModel, *before: Any) -> Any:
    """A guarded chain called by a node that is a function, without passing the configuration."""
    chain: Any = PROMPT | model
    for step in before:
        chain = RunnableLambda(step) | chain
    guarded = GuardedRunnable(bound=chain, guard=guard())

    async def node(state: State) -> State:
        message = await guarded.ainvoke(state)
        return {"answer": message.text, "messages": [message]}

    return node


def graph(node: Any) -> Any:
    built = StateGraph(State)
    built.add_node("answer", node)
    built.add_edge(START, "answer")
    built.add_edge("answer", END)
    return built.compile(checkpointer=InMemorySaver())


each_form = pytest.mark.parametrize("form", [as_runnable, as_model, as_function])
MODES = ["messages", "updates", "values", "custom", "debug", "checkpoints", "tasks"]


@each_form
async def test_a_node_gives_only_what_passed(form: Callable[..., Any]):
    built = graph(form(ScriptedChatModel(WRONG, ANSWER)))
    found = [item async for item in built.astream(INPUT, thread(), stream_mode=MODES)]
    assert MARKER not in str(found)
    state = await built.aget_state(thread())
    assert state.values["answer"] == ANSWER
    history = [state async for state in built.aget_state_history(thread())]
    assert MARKER not in str(history)
    events = [
        event
        async for event in graph(form(ScriptedChatModel(WRONG, ANSWER))).astream_events(INPUT, thread(), version="v2")
    ]
    assert MARKER not in str(events)
    assert ANSWER in str(events)


@each_form
async def test_an_interrupt_passes_and_resumes(form: Callable[..., Any]):
    def ask(value: Any) -> Any:
        assert interrupt("May I?") == "yes"
        return value

    model = ScriptedChatModel(ANSWER)
    built = graph(form(model, ask))
    out = await built.ainvoke(INPUT, thread())
    assert [i.value for i in out["__interrupt__"]] == ["May I?"]
    assert not model.log.prompts
    out = await built.ainvoke(Command(resume="yes"), thread())
    assert out["answer"] == ANSWER


async def test_a_node_streams_sentences():
    chat = GuardedChatModel(model=ScriptedChatModel(WRONG, ANSWER), guard=guard(), context=lambda messages: [PASSAGE])

    async def node(state: State) -> State:
        return {"messages": [await chat.ainvoke(state["question"])]}

    found = [message.text async for message, _ in graph(node).astream(INPUT, thread(), stream_mode="messages")]
    assert [text for text in found if text] == [ONE + " ", TWO]


async def test_leaving_a_graph_closes_the_model():
    model = ScriptedChatModel([*text_chunks(f"{ONE} {TWO}")[:12], asyncio.Event()])
    chat = GuardedChatModel(model=model, guard=guard(), context=lambda messages: [PASSAGE])

    async def node(state: State) -> State:
        return {"messages": [await chat.ainvoke(state["question"])]}

    stream = graph(node).astream(INPUT, thread(), stream_mode="messages")
    message, _ = await anext(stream)
    assert message.text == ONE + " "
    await stream.aclose()
    assert model.log.opened == model.log.closed == 1
