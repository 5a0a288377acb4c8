"""The calls that a guarded chat model makes of the model inside, as child runs of its own run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, closing
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from langchain_core.callbacks import AsyncCallbackManager, BaseCallbackManager, CallbackManager
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableConfig, ensure_config
from langchain_core.utils.uuid import uuid7

from guardrail_langchain.attempt_callbacks import for_attempt, leave_counting_to_the_guard
from guardrail_langchain.leaves import structured_value
from guardrail_langchain.turns import Turn, closing_layers

RUN = "guardrail_run"
_STRUCTURED = ("ls_structured_output_format", "structured_output_format")  # with_structured_output binds them


@dataclass(slots=True)
class OwnRun:
    """The guard's own run: what LangChain does not tell ``_stream`` and ``_generate``.

    Attributes:
        run_id: Its id.
        callbacks: The callbacks of the caller.
        config: The configuration of the caller.
        structured: Whether the caller wants a structure.
        opened: The streams that were begun for it.
    """

    run_id: UUID
    callbacks: BaseCallbackManager = field(repr=False)
    config: RunnableConfig = field(repr=False)
    structured: bool = False
    opened: list[AsyncGenerator[Any, None]] = field(default_factory=list, repr=False)

    async def close(self) -> None:
        """Close what LangChain has dropped instead of closing it."""
        for opened in self.opened:
            await opened.aclose()

    def child_config(self, attempt: int) -> RunnableConfig:
        """The configuration of an attempt: a child run that only tracers see."""
        manager = self.callbacks.copy()
        manager.parent_run_id = self.run_id
        manager.add_tags(self.config.get("tags") or [])
        manager.add_metadata(self.config.get("metadata") or {})
        callbacks = for_attempt(manager, attempt, tracers_only=True, tool_turns_pass=True)
        return {"callbacks": callbacks, "configurable": self.config.get("configurable") or {}}


class ModelCalls:
    """The calls of the model inside, for one turn."""

    def __init__(
        self,
        model: BaseChatModel,
        messages: list[BaseMessage],
        stop: list[str] | None,
        kwargs: dict[str, Any],
        *,
        streaming: bool,
        blocking: bool,
    ) -> None:
        self.messages = messages
        self.own: OwnRun | None = kwargs.get(RUN)
        # Handlers of the model inside would see attempts as they are; the guard has taken them over.
        self._model = model.model_copy(update={"callbacks": None}) if model.callbacks else model
        self._options = {"stop": stop, **without_run(kwargs)}
        self._streaming = streaming
        self._blocking = blocking

    @property
    def offers_tools(self) -> bool:
        """Whether the model may call a tool instead of answering."""
        return bool(self._options.get("tools") or self._options.get("functions"))

    @property
    def structured(self) -> bool:
        """Whether the caller wants a structure (``with_structured_output``)."""
        return self.own is not None and self.own.structured

    def is_structured(self, message: AIMessage) -> bool:
        """Whether a message is the structure that the caller wants."""
        return self.structured and structured_value(message) is not None

    def generator(self, turn: Turn) -> Any:
        """A turn of these calls as a generator for the guard."""
        return turn.sync_generator(self._call) if self._blocking else turn.generator(self._acall)

    async def read_all(self) -> list[AIMessage]:
        """The first attempt, whole; in a task or thread, because the call changes its context."""
        if self._blocking:
            return await asyncio.to_thread(lambda: list(self._call(1, self.messages)))
        return await asyncio.create_task(self._read_all())

    async def _read_all(self) -> list[AIMessage]:
        async with aclosing(self._acall(1, self.messages)) as chunks:
            return [chunk async for chunk in chunks]

    def _config(self, attempt: int) -> RunnableConfig:
        leave_counting_to_the_guard()
        return {"callbacks": []} if self.own is None else self.own.child_config(attempt)

    async def _acall(self, attempt: int, messages: list[BaseMessage]) -> AsyncGenerator[AIMessage, None]:
        config = self._config(attempt)
        if not self._streaming:
            yield await self._model.ainvoke(messages, config, **self._options)
            return
        async with closing_layers(self._model.astream(messages, config, **self._options)) as chunks:
            async for chunk in chunks:
                yield chunk

    def _call(self, attempt: int, messages: list[BaseMessage]) -> Iterator[AIMessage]:
        config = self._config(attempt)
        if not self._streaming:
            yield self._model.invoke(messages, config, **self._options)
            return
        with closing(self._model.stream(messages, config, **self._options)) as chunks:  # type: ignore[type-var]
            yield from chunks


def own_run(
    kind: type[CallbackManager] | type[AsyncCallbackManager], config: RunnableConfig | None, kwargs: dict[str, Any]
) -> OwnRun:
    """What is known of a run before it begins; its configuration names the run.

    Args:
        kind: Callbacks of synchronous or of asynchronous runs.
        config: The configuration that the caller gave.
        kwargs: The keyword arguments of the call.
    """
    found = ensure_config(config)
    manager = kind.configure(found.get("callbacks"))
    run_id = found.get("run_id") or uuid7()
    structured = any(name in kwargs for name in _STRUCTURED)
    config = {**found, "callbacks": manager, "run_id": run_id}
    return OwnRun(run_id=run_id, callbacks=manager, config=config, structured=structured)


def without_run(kwargs: dict[str, Any]) -> dict[str, Any]:
    """The keyword arguments that the caller gave."""
    return {name: value for name, value in kwargs.items() if name != RUN}
