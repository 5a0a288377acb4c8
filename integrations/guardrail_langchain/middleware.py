"""Agent middleware: the answer of an agent is checked against what its tools found."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from dataclasses import replace
from typing import Any

from langchain.agents.middleware.types import (
    AgentMiddleware,
    AgentState,
    ContextT,
    ModelRequest,
    ModelResponse,
    ResponseT,
)
from langchain_core.callbacks import AsyncCallbackManager, BaseCallbackManager, CallbackManager
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableConfig, ensure_config
from langchain_core.runnables.config import set_config_context
from langchain_core.runnables.utils import coro_with_context

from guardrail import Guardrail, GuardrailError, Outcome
from guardrail_langchain.attempt_callbacks import ManagerT, for_attempt
from guardrail_langchain.messages import METADATA_KEY, outcome_metadata
from guardrail_langchain.sync import LoopThread
from guardrail_langchain.turns import Turn, calls_tools, joined_context, question_in, tool_results

_Response = ModelResponse[Any]


class GroundednessMiddleware(AgentMiddleware[AgentState[ResponseT], ContextT, ResponseT]):
    """Guards the final answer of an agent; turns that call tools are never guarded.

    The answer is checked against the results of the tools that were called since the user's last message, the
    documents in the agent's state, and what ``context`` gives. If claims do not hold, the model is asked again and told
    which; it is called at most ``Policy.max_attempts`` times in all (3 by default), then a refusal takes the place of
    the answer. The agent's state, and with it history and checkpoints, gets the answer that passed or the refusal, and
    never anything else.

    A structured response (``response_format``) is checked value by value; if it is refused, there is none.

    Nothing of an attempt is streamed while it is undecided: ``stream_mode="messages"`` gives the decided message whole.
    What happens meanwhile is written to ``stream_mode="custom"`` as ``{"guardrail": {"event": …}}``, without text. For
    answers that stream sentence by sentence give ``create_agent`` a
    :class:`~guardrail_langchain.GuardedChatModel` instead.

    Args:
        guard: The guard, with its policy; its limits charge answers, not turns that call tools.
        state_key: Where the agent's state has retrieved documents, if it has any.
        context: Called with the model request; gives further passages.
        key: Who is charged by the guard's limiter; ``config["configurable"]["guardrail_key"]`` says it per call.

    Raises (from the model node):
        InputError: If there is no human message in the conversation, or the context cannot be used.
        Exception: What the first model call raises, as it is; interrupts and other signals of LangGraph always.

    List it before middleware that retries or replaces model calls, so that those act on every attempt. Cancellation
    ends the model call in progress before it goes on.

    Example:
        >>> from langchain.agents import create_agent
        >>> from langchain_core.language_models.fake_chat_models import FakeListChatModel
        >>> model = FakeListChatModel(responses=["Entry costs 90 euro.", "Entry is free."])
        >>> agent = create_agent(model, middleware=[GroundednessMiddleware(context=lambda request: ["Entry is free."])])
        >>> agent.invoke({"messages": [("human", "What is the fee?")]})["messages"][-1].text
        'Entry is free.'
    """

    def __init__(
        self,
        guard: Guardrail | None = None,
        *,
        state_key: str = "documents",
        context: Callable[[ModelRequest[Any]], Any] | None = None,
        key: str = "default",
    ) -> None:
        super().__init__()
        self.tools = []
        self._guard = Guardrail() if guard is None else guard
        self._state_key = state_key
        self._context = context
        self._key = key

    def wrap_model_call(
        self, request: ModelRequest[ContextT], handler: Callable[[ModelRequest[ContextT]], _Response]
    ) -> _Response:
        """See :class:`langchain.agents.middleware.AgentMiddleware`."""
        calls = _Calls(request, kind=CallbackManager)
        first = calls.run(1, request.messages, handler)
        if not calls.is_answer(first):
            return first

        def call(attempt: int, messages: list[BaseMessage]) -> Iterator[AIMessage]:
            yield calls.answer_of(calls.run(attempt, messages, handler))

        with LoopThread() as loop:
            return loop.run(self._decide(calls, lambda turn: turn.sync_generator(call)))

    async def awrap_model_call(
        self, request: ModelRequest[ContextT], handler: Callable[[ModelRequest[ContextT]], Awaitable[_Response]]
    ) -> _Response:
        """See :class:`langchain.agents.middleware.AgentMiddleware`."""
        calls = _Calls(request, kind=AsyncCallbackManager)
        first = await calls.arun(1, request.messages, handler)
        if not calls.is_answer(first):
            return first

        async def call(attempt: int, messages: list[BaseMessage]) -> AsyncGenerator[AIMessage, None]:
            yield calls.answer_of(await calls.arun(attempt, messages, handler))

        return await self._decide(calls, lambda turn: turn.generator(call))

    async def _decide(self, calls: _Calls, generator: Callable[[Turn], Any]) -> _Response:
        turn = Turn(calls.request.messages, whole=True, is_structured=calls.is_structured)
        turn.read_ahead([calls.answer_of(calls.responses[1])])
        try:
            outcome = await self._guard.run(generator(turn), **self._asked(calls.request))
        except GuardrailError as error:
            turn.raise_signals()
            turn.reraise(error)
        message = turn.message(outcome)
        calls.tell_end(outcome)
        return calls.response_with(message, outcome, calls_tool=turn.tool_turn is not None)

    def _asked(self, request: ModelRequest[Any]) -> dict[str, Any]:
        configurable = ensure_config().get("configurable") or {}
        given = None if self._context is None else self._context(request)
        documents = request.state.get(self._state_key)
        return {
            "question": question_in(request.messages),
            "context": joined_context(documents, given, tool_results(request.messages)),
            "key": configurable.get("guardrail_key", self._key),
        }


class _Calls:
    """The model calls of one turn, hidden from everything that streams to readers."""

    def __init__(self, request: ModelRequest[Any], *, kind: type[CallbackManager] | type[AsyncCallbackManager]) -> None:
        self.request = request
        self.responses: dict[int, _Response] = {}
        self._kind = kind

    def run(self, attempt: int, messages: list[Any], handler: Callable[[ModelRequest[Any]], _Response]) -> _Response:
        self._tell_begin(attempt)
        with set_config_context(self._config(attempt)) as context:
            response = context.run(handler, self._request(attempt, messages))
        self.responses[attempt] = response
        return response

    async def arun(
        self, attempt: int, messages: list[Any], handler: Callable[[ModelRequest[Any]], Awaitable[_Response]]
    ) -> _Response:
        self._tell_begin(attempt)
        with set_config_context(self._config(attempt)) as context:
            request = self._request(attempt, messages)
            response = await coro_with_context(_awaited(handler, request), context, create_task=True)
        self.responses[attempt] = response
        return response

    def is_answer(self, response: _Response) -> bool:
        return response.structured_response is not None or not calls_tools(self.answer_of(response))

    def is_structured(self, message: AIMessage) -> bool:
        """Whether a message is one that the agent has made a structured response of."""
        answers = ((self.answer_of(r), r.structured_response) for r in self.responses.values())
        return any(
            structured is not None and answer.content == message.content and answer.tool_calls == message.tool_calls
            for answer, structured in answers
        )

    def answer_of(self, response: _Response) -> AIMessage:
        return next(m for m in reversed(response.result) if isinstance(m, AIMessage))

    def response_with(self, message: AIMessage, outcome: Outcome, *, calls_tool: bool) -> _Response:
        """The response of the attempt that is delivered, with the decided message in it."""
        number = len(self.responses) if calls_tool else outcome.delivered_attempt
        if number is None:
            name = self.answer_of(self.responses[1]).name
            return ModelResponse(result=[message.model_copy(update={"name": name})])
        response = self.responses[number]
        answer = self.answer_of(response)
        return replace(response, result=[message if m is answer else m for m in response.result])

    def tell_end(self, outcome: Outcome) -> None:
        self._tell({"event": "finished", **outcome_metadata(outcome)})

    def _tell_begin(self, attempt: int) -> None:
        if attempt > 1:
            self._tell({"event": "regenerating", "attempt": attempt})

    def _tell(self, news: dict[str, Any]) -> None:
        write = getattr(self.request.runtime, "stream_writer", None)
        if write is not None:
            write({METADATA_KEY: news})

    def _request(self, attempt: int, messages: list[Any]) -> ModelRequest[Any]:
        """The request of an attempt; handlers that the model itself has see no more than others."""
        model = self.request.model
        own = getattr(model, "callbacks", None)
        if not own:
            return self.request.override(messages=messages)
        quiet = self._quiet(self._kind.configure(None, own), attempt)
        return self.request.override(messages=messages, model=model.model_copy(update={"callbacks": quiet.handlers}))

    def _config(self, attempt: int) -> RunnableConfig:
        config = ensure_config()
        callbacks = config.get("callbacks")
        manager = callbacks if isinstance(callbacks, BaseCallbackManager) else self._kind.configure(callbacks)
        return {**config, "callbacks": self._quiet(manager, attempt)}

    def _quiet(self, manager: ManagerT, attempt: int) -> ManagerT:
        passes = self.request.response_format is None  # else a call may be the answer, which is checked
        return for_attempt(manager, attempt, tracers_only=False, tool_turns_pass=passes)


async def _awaited(handler: Callable[[Any], Awaitable[_Response]], request: ModelRequest[Any]) -> _Response:
    return await handler(request)
