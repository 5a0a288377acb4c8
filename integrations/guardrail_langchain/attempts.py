"""Attempts as child runs: seen by tracing callbacks, invisible to everything that shows text while it streams."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForChainRun, CallbackManagerForChainRun
from langchain_core.messages import HumanMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import patch_config, var_child_runnable_config

from guardrail import GenerationRequest
from guardrail_langchain.attempt_callbacks import WITHHELD, _Filtered, for_attempt
from guardrail_langchain.closing import close_watched, watch
from guardrail_langchain.context import Asked
from guardrail_langchain.outputs import Output

_GRAPH_CHANNELS = ("__pregel_stream", "__pregel_checkpointer")


def hidden_config(
    config: RunnableConfig, run: CallbackManagerForChainRun | AsyncCallbackManagerForChainRun, attempt: int
) -> RunnableConfig:
    """The configuration of an attempt, whose text nobody may see before it is decided.

    Args:
        config: The configuration of the guard's run.
        run: The guard's run.
        attempt: Number of the attempt.

    Returns:
        Tags and metadata are passed on, and the callbacks that :func:`for_attempt` leaves; not the channels through
        which LangGraph streams and stores what graphs inside graphs do.
    """
    callbacks = for_attempt(run.get_child(), attempt, tracers_only=False)
    callbacks.handlers = [_withheld(h, attempt) for h in callbacks.handlers]
    callbacks.inheritable_handlers = [_withheld(h, attempt) for h in callbacks.inheritable_handlers]
    child = patch_config(config, callbacks=callbacks)
    given = child.get("configurable", {})
    if any(name in given for name in _GRAPH_CHANNELS):
        child["configurable"] = {name: value for name, value in given.items() if name not in _GRAPH_CHANNELS}
    return child


def _withheld(handler: Any, attempt: int) -> Any:
    return _NoInputs(handler, attempt) if type(handler) is _Filtered else handler


class _NoInputs:
    """A filtered handler that learns nothing from inputs either.

    The input of a step inside a chain may be what another step wrote; and of later attempts the input of every step,
    because nobody knows what a prompt template makes of the failed claims that it is told about.
    """

    def __init__(self, handler: Any, attempt: int) -> None:
        self._handler = handler
        self._later = attempt > 1

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """LangChain looks for a handler's type to avoid adding it twice."""
        return self._handler.__class__

    def __getattr__(self, name: str) -> Any:
        target = getattr(self._handler, name)
        if name.endswith(("_end", "_error")):
            return _with_edited(target, lambda second: second, inputs=False)
        if self._later and name == "on_chat_model_start":
            return _with_edited(target, lambda groups: [[HumanMessage(WITHHELD)] for _ in groups])
        if self._later and name == "on_llm_start":
            return _with_edited(target, lambda prompts: [WITHHELD for _ in prompts])
        if self._later and name == "on_retriever_start":
            return _with_edited(target, lambda _: WITHHELD)
        return target


def _with_edited(target: Any, edit: Callable[[Any], Any], *, inputs: bool = True) -> Any:
    """The same function with another second argument, or without ``inputs``."""

    def edited(args: tuple[Any, ...], given: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        changed = [edit(arg) if place == 1 else arg for place, arg in enumerate(args)]
        return changed, {name: value for name, value in given.items() if inputs or name != "inputs"}

    if inspect.iscoroutinefunction(target):

        async def call_async(*args: Any, **given: Any) -> Any:
            changed, rest = edited(args, given)
            return await target(*changed, **rest)

        return call_async

    def call(*args: Any, **given: Any) -> Any:
        changed, rest = edited(args, given)
        return target(*changed, **rest)

    return call


class Attempts:
    """A runnable as the generator of one run.

    Args:
        bound: The runnable.
        asked: The request.
        output: Reads what the runnable gives.
        config_for: The configuration of an attempt.
        options: Keyword arguments of the call.

    Attributes:
        signal: An exception that steers control flow (a LangGraph interrupt) and must reach the caller untouched.
    """

    def __init__(
        self,
        bound: Runnable[Any, Any],
        asked: Asked,
        output: Output,
        config_for: Callable[[int], RunnableConfig],
        options: Mapping[str, Any],
    ) -> None:
        self.signal: BaseException | None = None
        self._bound = bound
        self._asked = asked
        self._output = output
        self._config_for = config_for
        self._options = options

    async def __call__(self, request: GenerationRequest) -> AsyncIterator[Any]:
        """Run one attempt; yields what the engine reads."""
        value = self._asked.for_attempt(request)
        config = self._config_for(request.attempt)
        self._output.begin(request.attempt)
        opened = watch()
        var_child_runnable_config.set(config)  # this task is the attempt's own: what runs in it is a child of it
        ended = False
        try:
            if keeps_state(self._bound):
                for item in self._output.read(await self._bound.ainvoke(value, config, **self._options)):
                    yield item
            else:
                async with aclosing(self._bound.astream(value, config, **self._options)) as stream:  # type: ignore[type-var]
                    async for chunk in stream:
                        for item in self._output.read(chunk):
                            yield item
            for item in self._output.end():
                yield item
            ended = True
        except Exception as error:
            if is_signal(error):
                self.signal = error
            raise
        finally:
            if not ended:
                await close_watched(opened)


def keeps_state(bound: Runnable[Any, Any]) -> bool:
    """Whether a runnable streams what its nodes do instead of its output: a compiled LangGraph graph."""
    return hasattr(bound, "aget_state") and hasattr(bound, "channels")


def is_signal(error: BaseException) -> bool:
    """Whether an exception steers LangGraph; found by name, because LangGraph need not be installed."""
    return any(c.__name__ == "GraphBubbleUp" and c.__module__ == "langgraph.errors" for c in type(error).__mro__)
