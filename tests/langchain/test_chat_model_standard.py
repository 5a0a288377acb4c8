"""LangChain's own tests for chat models, over a guarded scripted model."""

from __future__ import annotations

from typing import Any

import pytest
from guardrail_langchain import GuardedChatModel
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_tests.integration_tests import ChatModelIntegrationTests
from langchain_tests.unit_tests import ChatModelUnitTests

from tests.langchain.hall import guard
from tests.langchain.scripted_model import CallLog, ScriptedChatModel


class StandardModel(ScriptedChatModel):
    """Takes the parameters that every provider's model takes, and calls a tool if it is offered one."""

    temperature: float = 0.0
    max_tokens: int = 100

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> Any:
        params = super()._get_ls_params(stop=stop, **kwargs)
        params["ls_model_name"] = kwargs.get("model", self.model_name)
        return params

    def _next(self, messages: list[BaseMessage], *, streamed: bool, **options: Any) -> Any:
        object.__setattr__(self, "scripts", [_reply(messages, options)])
        object.__setattr__(self, "model_name", options.get("model") or self.model_name)
        return super()._next(messages, streamed=streamed, **options)


SHOWN = "The weather is fine today in St. John's 你好 こんにちは. There are 3 cats; a cat is an animal."


def _reply(messages: list[BaseMessage], options: dict[str, Any]) -> Any:
    tools = options.get("tools")
    if not tools or (messages[-1].type != "human" and options.get("tool_choice") is None):
        return "Hello there! The weather is fine today."
    return AIMessage(content="", tool_calls=[{"name": _name(tools), "args": _arguments(tools), "id": "call-1"}])


def _name(tools: list[Any]) -> str:
    return str(tools[0]["function"]["name"])


def _arguments(tools: list[Any]) -> dict[str, Any]:
    values = {"string": "St. John's 你好 こんにちは", "integer": 3, "number": 3.0}
    properties = tools[0]["function"]["parameters"].get("properties", {})
    return {name: values.get(schema.get("type"), "a cat") for name, schema in properties.items()}


def guarded(**fields: Any) -> GuardedChatModel:
    """A factory: the parameters belong to the model inside."""
    model = StandardModel(log=CallLog(), **fields)
    return GuardedChatModel(model=model, guard=guard(lexical_weight=0), context=lambda messages: [SHOWN])


class _Guarded(GuardedChatModel):
    def __new__(cls, **fields: Any) -> GuardedChatModel:  # type: ignore[misc]
        return guarded(**fields)


@pytest.mark.benchmark(max_time=0.1, min_rounds=1)
class TestUnit(ChatModelUnitTests):
    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return _Guarded

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {}


class TestIntegration(ChatModelIntegrationTests):
    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return _Guarded

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {}
