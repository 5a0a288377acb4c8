"""A guarded chat model for everything that wants a chat model."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing, closing
from typing import Any, Self

from langchain_core.callbacks import (
    AsyncCallbackManager,
    AsyncCallbackManagerForLLMRun,
    CallbackManager,
    CallbackManagerForLLMRun,
)
from langchain_core.exceptions import ModelRefusalError
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableBinding, RunnableConfig
from langchain_core.utils.utils import LC_ID_PREFIX
from pydantic import Field, model_validator

from guardrail import ConfigurationError, Guardrail, GuardrailError, Outcome, ReleaseMode
from guardrail.events import Finished, Released
from guardrail_langchain.bindings import ClosingBinding
from guardrail_langchain.messages import closing_chunk
from guardrail_langchain.model_calls import RUN, ModelCalls, own_run, without_run
from guardrail_langchain.sync import LoopThread
from guardrail_langchain.turns import Turn, joined_context, question_in, rest_of_tool_turn, tool_results


class GuardedChatModel(BaseChatModel):
    """A chat model whose answers are checked before anybody reads them.

    It streams checked text, sentence by sentence or as the policy says, and is a ``BaseChatModel``: agents, structured
    stream events, ``bind_tools`` and ``with_fallbacks`` work as with the model inside. A turn that calls a tool is
    passed on as it is; with ``with_structured_output`` it is the answer, and is checked value by value (a refusal is a
    ``ModelRefusalError``). Errors of the model keep their type.

    An answer is checked against ``context`` or ``config["configurable"]["context"]``, and against what tools found in
    the same turn. Limits of the guard charge answers, not turns that call tools. If a model is offered tools, nothing
    of a turn is released before it is known that it calls none. The ``response_format`` of an agent has the form of a
    tool call, too: only :class:`~guardrail_langchain.GroundednessMiddleware` knows it and checks it.

    Readers and handlers see the guard's own run. Attempts are child runs tagged ``guard:attempt:<n>``, which only
    tracers see. Handlers of the model inside become handlers of the guard.

    Args:
        model: The chat model.
        guard: The guard, with its policy.
        context: Called with the messages; gives the passages they were written from, if a prompt and not a tool
            brought them.
        key: Who is charged by the guard's limiter; ``config["configurable"]["guardrail_key"]`` says it per call.

    Raises (when it is called):
        InputError: If there is no human message, or the context cannot be used.
        Exception: What the model raises; see :class:`~guardrail.GuardedStream` for the errors of the guard.

    Cancelling a call, or closing its stream, closes the stream of the model inside before it returns.

    Example:
        >>> from langchain_core.language_models.fake_chat_models import FakeListChatModel
        >>> model = FakeListChatModel(responses=["Entry costs 90 euro.", "Entry is free."])
        >>> guarded = GuardedChatModel(model=model, context=lambda messages: ["Entry is free."])
        >>> guarded.invoke("What is the fee?").text
        'Entry is free.'
    """

    model: BaseChatModel
    guard: Guardrail = Field(default_factory=Guardrail, repr=False, exclude=True)
    context: Callable[[list[BaseMessage]], Any] | None = Field(default=None, repr=False, exclude=True)
    key: str = Field(default="default", repr=False, exclude=True)
    # A cached answer was checked against the passages of another call.
    cache: Any = False

    @model_validator(mode="after")
    def _stand_for_the_model(self) -> Self:
        if self.profile is None:
            self.profile = self.model.profile
        if self.callbacks is None:
            self.callbacks = self.model.callbacks
        return self

    @property
    def _llm_type(self) -> str:
        return f"guarded-{self.model._llm_type}"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model": dict(self.model._identifying_params), "policy": self.guard.policy.name}

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> Any:
        return self.model._get_ls_params(stop=stop, **without_run(kwargs))

    def _get_invocation_params(self, stop: list[str] | None = None, **kwargs: Any) -> dict[str, Any]:
        return super()._get_invocation_params(stop=stop, **without_run(kwargs))

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: str | None = None, **kwargs: Any
    ) -> Runnable[Any, AIMessage]:
        """Offer tools to the model inside, in the form that it wants; see ``BaseChatModel.bind_tools``.

        Raises:
            ConfigurationError: If the model does not give a binding of itself.
        """
        if tool_choice is not None:
            kwargs["tool_choice"] = tool_choice
        bound = self.model.bind_tools(tools, **kwargs)
        if isinstance(bound, BaseChatModel):
            return self.model_copy(update={"model": bound})
        if isinstance(bound, RunnableBinding) and isinstance(bound.bound, BaseChatModel):
            guarded = self if bound.bound is self.model else self.model_copy(update={"model": bound.bound})
            return ClosingBinding(bound=guarded, kwargs=dict(bound.kwargs), config=bound.config)
        raise ConfigurationError(
            f"{type(self.model).__name__}.bind_tools gives a {type(bound).__name__}, which is not a binding of a chat "
            "model: bind the tools first and wrap the result with GuardedRunnable"
        )

    def get_token_ids(self, text: str) -> list[int]:
        """Those of the model inside."""
        return self.model.get_token_ids(text)

    def get_num_tokens(self, text: str) -> int:
        """That of the model inside."""
        return self.model.get_num_tokens(text)

    def get_num_tokens_from_messages(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> int:
        """That of the model inside."""
        return self.model.get_num_tokens_from_messages(messages, *args, **kwargs)

    # --- the guard's own run ------------------------------------------------------------------------------------

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> AIMessage:
        """See ``BaseChatModel.invoke``."""
        own = own_run(CallbackManager, config, kwargs)
        return super().invoke(input, own.config, **{**kwargs, RUN: own})

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> AIMessage:
        """See ``BaseChatModel.ainvoke``."""
        own = own_run(AsyncCallbackManager, config, kwargs)
        try:
            return await super().ainvoke(input, own.config, **{**kwargs, RUN: own})
        finally:
            await own.close()

    def stream(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Iterator[AIMessageChunk]:
        """See ``BaseChatModel.stream``."""
        own = own_run(CallbackManager, config, kwargs)
        yield from super().stream(input, own.config, **{**kwargs, RUN: own})

    async def astream(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[AIMessageChunk]:
        """See ``BaseChatModel.astream``; closing it closes the stream of the model inside."""
        own = own_run(AsyncCallbackManager, config, kwargs)
        try:
            async with aclosing(super().astream(input, own.config, **{**kwargs, RUN: own})) as stream:  # type: ignore[type-var]
                async for chunk in stream:
                    yield chunk
        finally:
            await own.close()

    def stream_events(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """See ``BaseChatModel.stream_events``."""
        if kwargs.get("version") != "v3":
            return super().stream_events(input, config, **kwargs)
        own = own_run(CallbackManager, config, kwargs)
        return super().stream_events(input, own.config, **{**kwargs, RUN: own})

    def astream_events(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """See ``BaseChatModel.astream_events``."""
        if kwargs.get("version") != "v3":
            return super().astream_events(input, config, **kwargs)
        own = own_run(AsyncCallbackManager, config, kwargs)
        return super().astream_events(input, own.config, **{**kwargs, RUN: own})

    # --- the answer ---------------------------------------------------------------------------------------------

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        calls = ModelCalls(self.model, messages, stop, kwargs, streaming=False, blocking=True)
        with LoopThread() as loop:
            return loop.run(self._answer(calls))

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return await self._answer(ModelCalls(self.model, messages, stop, kwargs, streaming=False, blocking=False))

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        calls = ModelCalls(self.model, messages, stop, kwargs, streaming=True, blocking=True)
        with LoopThread() as loop, closing(loop.iterate(self._chunks(calls))) as chunks:
            yield from chunks

    def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        calls = ModelCalls(self.model, messages, stop, kwargs, streaming=True, blocking=False)
        chunks = self._chunks(calls)
        if calls.own is not None:
            calls.own.opened.append(chunks)
        return chunks

    async def _answer(self, calls: ModelCalls) -> ChatResult:
        """One whole message."""
        turn = Turn(calls.messages, whole=True, is_structured=calls.is_structured)
        if calls.offers_tools and turn.read_ahead(await calls.read_all()):
            assert turn.tool_turn is not None
            return _result(turn.tool_turn.message())
        try:
            outcome = await self.guard.run(calls.generator(turn), **self._asked(calls))
        except GuardrailError as error:
            turn.raise_signals()
            turn.reraise(error)
        message = turn.message(outcome)
        if calls.structured:
            _raise_if_refused(message)
        return _result(message)

    async def _chunks(self, calls: ModelCalls) -> AsyncGenerator[ChatGenerationChunk, None]:
        """One message, piece by piece; a structured one has no pieces."""
        if calls.structured:
            (generation,) = (await self._answer(calls)).generations
            assert isinstance(generation.message, AIMessage)
            yield _chunk(rest_of_tool_turn(generation.message, ""), generation.message.id)
            return
        release = self.guard.policy.resolve_release(streaming=True, can_continue=False)
        turn = Turn(calls.messages, whole=release is ReleaseMode.ANSWER or calls.offers_tools)
        if calls.offers_tools and turn.read_ahead(first := await calls.read_all()):
            assert turn.tool_turn is not None
            for chunk in first:
                whole = chunk if isinstance(chunk, AIMessageChunk) else rest_of_tool_turn(chunk, "")
                yield _chunk(whole, _own_words_id(turn.tool_turn.id))
            return
        sent: list[str] = []
        own_words = ""
        outcome: Outcome | None = None
        message_id: str | None = None
        async with self.guard.stream(calls.generator(turn), **self._asked(calls)) as stream:
            try:
                async with aclosing(stream.events()) as events:  # type: ignore[type-var]
                    async for event in events:
                        if isinstance(event, Released) and not event.attempt:
                            own_words += event.text  # a refusal, or the space before what another attempt adds
                        elif isinstance(event, Released):
                            message_id = message_id or _own_words_id(turn.attempts[event.attempt - 1].id)
                            sent.append(own_words + event.text)
                            own_words = ""
                            yield _chunk(AIMessageChunk(content=sent[-1]), message_id)
                        elif isinstance(event, Finished):
                            outcome = event.outcome
                        elif turn.tool_turn is not None and turn.ended:
                            break
            except GuardrailError as error:
                turn.raise_signals()
                turn.reraise(error)
        turn.raise_signals()
        if turn.tool_turn is not None:
            message = turn.tool_turn.message()
            last = rest_of_tool_turn(message, "".join(sent))
        else:
            assert outcome is not None
            last = closing_chunk(outcome, turn.attempts)
            if own_words:
                last = last.model_copy(update={"content": [{"type": "text", "text": own_words}, *last.content]})
        yield _chunk(last, message_id or _own_words_id(last.id))

    def _asked(self, calls: ModelCalls) -> dict[str, Any]:
        configurable = {} if calls.own is None else calls.own.config.get("configurable") or {}
        given = None if self.context is None else self.context(calls.messages)
        return {
            "question": question_in(calls.messages),
            "context": joined_context(given, configurable.get("context"), tool_results(calls.messages)),
            "key": configurable.get("guardrail_key", self.key),
        }


def _own_words_id(message_id: str | None) -> str | None:
    """Ids that LangChain made name the run inside; the message is one of the guard's run, which names it again."""
    return None if message_id is None or message_id.startswith(LC_ID_PREFIX) else message_id


def _raise_if_refused(message: AIMessage) -> None:
    """Whoever wants a structure cannot use a refusal in words."""
    for block in message.content_blocks:
        if block["type"] == "refusal":
            raise ModelRefusalError.from_refusal(block, raw_message=message)


def _result(message: AIMessage) -> ChatResult:
    message = message.model_copy(update={"id": _own_words_id(message.id)})
    return ChatResult(generations=[ChatGeneration(message=message)])


def _chunk(message: AIMessageChunk, message_id: str | None) -> ChatGenerationChunk:
    return ChatGenerationChunk(message=message.model_copy(update={"id": message_id}))
