"""A graph inside the guard, the guard inside a graph, and the signals that steer graphs."""

from __future__ import annotations

from typing import Any

import pytest
from guardrail_langchain import GuardedRunnable
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

from guardrail import ConfigurationError, GenerationTypeError
from guardrail.policy import DEFAULT_REFUSAL
from tests.langchain.guarded import ANSWER, ASKED, CONTEXT, MARKER, METHODS, ONE, STREAMS, WRONG, call, settings
from tests.langchain.scripted_model import ScriptedChatModel
from tests.streaming.helpers import QUESTION

CONVERSATION = {"messages": [HumanMessage(QUESTION, id="q")]}


def graph_of(model: Any) -> Any:
    async def node(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    builder = StateGraph(MessagesState)
    builder.add_node("model", node)
    builder.add_edge(START, "model")
    builder.add_edge("model", END)
    return builder.compile()


@pytest.mark.parametrize("method", METHODS)
async def test_a_graph_inside_gives_its_state_with_the_checked_answer(method: str) -> None:
    model = ScriptedChatModel(f"{ONE} {WRONG}", ANSWER)
    guarded = GuardedRunnable(bound=graph_of(model), context_key=lambda _: CONTEXT, **settings())
    pieces = await call(method, guarded, CONVERSATION)
    assert len(pieces) == 1
    question, answer = pieces[0]["messages"]
    assert (question.id, question.text) == ("q", QUESTION)
    assert isinstance(answer, AIMessage)
    assert (answer.text, answer.response_metadata["guardrail"]["attempts"]) == (ANSWER, 2)
    assert MARKER not in repr(pieces)
    assert WRONG in model.log.prompts[1][-1].text


@pytest.mark.parametrize("method", METHODS)
async def test_a_chain_with_a_graph_gives_what_it_gives_when_it_is_invoked(method: str) -> None:
    model = ScriptedChatModel(WRONG, ANSWER)
    before = RunnableLambda(lambda asked: {"messages": [HumanMessage(asked["question"])]})
    last = RunnableLambda(lambda state: state["messages"][-1].text)
    state = await call(method, GuardedRunnable(bound=before | graph_of(model), **settings()), ASKED)
    assert [m.text for m in state[-1]["messages"]] == [QUESTION, ANSWER]
    model.log.prompts.clear()
    piped = GuardedRunnable(bound=before | graph_of(model).with_config(tags=["mine"]) | last, **settings())
    assert "".join(await call(method, piped, ASKED)) == ANSWER


async def test_a_state_without_an_answer_is_an_error() -> None:
    guarded = GuardedRunnable(bound=RunnableLambda(lambda _: CONVERSATION), **settings())
    with pytest.raises(GenerationTypeError, match="is a HumanMessage and no answer"):
        await guarded.ainvoke(ASKED)


def test_a_graph_that_would_store_rejected_attempts_is_refused() -> None:
    builder = StateGraph(MessagesState)
    builder.add_node("model", lambda state: {"messages": [ScriptedChatModel(WRONG).invoke(state["messages"])]})
    builder.add_edge(START, "model")
    graph = builder.compile(checkpointer=InMemorySaver())
    for inside in (graph, RunnableLambda(lambda asked: asked) | graph, graph.with_config(tags=["mine"])):
        with pytest.raises(ConfigurationError, match="checkpointer, which would store rejected attempts"):
            GuardedRunnable(bound=inside, **settings())


@pytest.mark.parametrize("method", ["ainvoke", "astream"])
async def test_a_refused_graph(method: str) -> None:
    guarded = GuardedRunnable(bound=graph_of(ScriptedChatModel(WRONG)), context_key=lambda _: CONTEXT, **settings())
    pieces = await call(method, guarded, CONVERSATION)
    assert [m.text for m in pieces[0]["messages"]] == [DEFAULT_REFUSAL]


@pytest.mark.parametrize("method", ["invoke", "ainvoke", *STREAMS[:2]])
async def test_interrupts_pass_and_the_run_resumes(method: str) -> None:
    async def ask(_: Any) -> str:
        return f"{ONE if interrupt('may I?') == 'yes' else WRONG}"

    guarded = GuardedRunnable(bound=RunnableLambda(ask), **settings())

    async def node(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage("".join(await call(method, guarded, ASKED)))]}

    builder = StateGraph(MessagesState)
    builder.add_node("answer", node)
    builder.add_edge(START, "answer")
    graph = builder.compile(checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "1"}}
    asked: Any = CONVERSATION
    stopped = await graph.ainvoke(asked, config)
    assert [i.value for i in stopped["__interrupt__"]] == ["may I?"]
    resumed = await graph.ainvoke(Command(resume="yes"), config)
    assert [m.text for m in resumed["messages"]] == [QUESTION, ONE]


async def test_a_graph_inside_a_guard_inside_a_graph_leaks_nothing() -> None:
    model = ScriptedChatModel(f"{ONE} {WRONG}", ANSWER)
    guarded = GuardedRunnable(bound=graph_of(model), context_key=lambda _: CONTEXT, **settings())

    async def node(state: MessagesState) -> dict[str, Any]:
        return {"messages": (await guarded.ainvoke({"messages": state["messages"]}))["messages"][-1:]}

    builder = StateGraph(MessagesState)
    builder.add_node("answer", node)
    builder.add_edge(START, "answer")
    saver = InMemorySaver()
    graph = builder.compile(checkpointer=saver)
    config: Any = {"configurable": {"thread_id": "1"}}
    asked: Any = CONVERSATION
    modes: Any = ["messages", "updates", "values", "debug", "tasks", "checkpoints"]
    seen = [item async for item in graph.astream(asked, config, stream_mode=modes, subgraphs=True)]
    assert ANSWER in repr(seen)
    assert MARKER not in repr(seen)
    stored = [checkpoint async for checkpoint in saver.alist(None)]
    assert stored
    assert MARKER not in repr((stored, saver.storage, saver.writes, saver.blobs))
