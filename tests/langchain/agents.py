"""Agents for the tests: a search tool, a scripted model, a guard in one of its two places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from guardrail_langchain import GroundednessMiddleware, GuardedChatModel
from langchain.agents import create_agent
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from guardrail import Guardrail
from tests.langchain.hall import PASSAGE, QUESTION
from tests.langchain.scripted_model import ScriptedChatModel

INPUT = {"messages": [("human", QUESTION)]}


@tool
def search(q: str) -> str:
    """Search the documents."""
    return PASSAGE


def with_middleware(model: ScriptedChatModel, guard: Guardrail, *more: Any, **options: Any) -> Any:
    """The guard as middleware."""
    options.setdefault("checkpointer", InMemorySaver())
    return create_agent(model, tools=[search], middleware=[GroundednessMiddleware(guard), *more], **options)


def with_model(model: ScriptedChatModel, guard: Guardrail, *more: Any, **options: Any) -> Any:
    """The guard as the agent's model."""
    options.setdefault("checkpointer", InMemorySaver())
    return create_agent(GuardedChatModel(model=model, guard=guard), tools=[search], middleware=more, **options)


def thread(name: str = "1", **more: Any) -> dict[str, Any]:
    """The configuration of one conversation."""
    return {"configurable": {"thread_id": name}, **more}


def kinds(messages: Sequence[Any]) -> list[str]:
    """Message types, tool-call turns marked."""
    return [m.type + ("+tool" if getattr(m, "tool_calls", None) else "") for m in messages]
