"""Attempts as child runs: seen by tracing callbacks, invisible to everything that shows text while it streams."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing, closing
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForChainRun, CallbackManagerForChainRun
from langchain_core.messages import HumanMessage
from langchain_core.runnables import Runnable, RunnableAssign, RunnableConfig, RunnableParallel, RunnableSequence
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.config import patch_config, var_child_runnable_config

from guardrail import ConfigurationError, GenerationRequest
from guardrail_langchain.attempt_callbacks import WITHHELD, _Filtered, for_attempt, is_signal
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
    callbacks = for_attempt(run.get_child(), attempt, tracers_only=False, tool_turns_pass=False)
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

    The input of a step inside a chain may be what another step wrote. So nothing is told of inputs once a model of the
    attempt has answered, which another model may be asked to revise; nor of any input of later attempts, because
    nobody knows what a prompt template makes of the failed claims that it is told about.
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
        if name in ("on_llm_end", "on_llm_error"):
            self._later = True
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
        blocking: Whether to call the synchronous methods of the runnable, if it has any: its asynchronous clients
            belong to a loop that outlives the call.

    Attributes:
        signal: An exception that steers control flow (a LangGraph interrupt) and must reach the caller untouched.
        generator: Runs one attempt; yields what the engine reads.
    """

    def __init__(
        self,
        bound: Runnable[Any, Any],
        asked: Asked,
        output: Output,
        config_for: Callable[[int], RunnableConfig],
        options: Mapping[str, Any],
        *,
        blocking: bool,
    ) -> None:
        self.signal: BaseException | None = None
        self.generator: Callable[[GenerationRequest], Any] = self._async
        if blocking and is_synchronous(bound):
            self.generator = self._blocking
        self._bound = bound
        self._asked = asked
        self._output = output
        self._config_for = config_for
        self._options = options

    def _begin(self, request: GenerationRequest) -> tuple[Any, RunnableConfig]:
        value = self._asked.for_attempt(request)
        config = self._config_for(request.attempt)
        self._output.begin(request.attempt)
        var_child_runnable_config.set(config)  # this task is the attempt's own: what runs in it is a child of it
        return value, config

    async def _async(self, request: GenerationRequest) -> AsyncIterator[Any]:
        opened = watch()
        value, config = self._begin(request)
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
            self._failed(error)
            raise
        finally:
            if not ended:
                await close_watched(opened)

    def _blocking(self, request: GenerationRequest) -> Iterator[Any]:
        value, config = self._begin(request)
        try:
            if keeps_state(self._bound):
                yield from self._output.read(self._bound.invoke(value, config, **self._options))
            else:
                with closing(self._bound.stream(value, config, **self._options)) as stream:  # type: ignore[type-var]
                    for chunk in stream:
                        yield from self._output.read(chunk)
            yield from self._output.end()
        except Exception as error:
            self._failed(error)
            raise

    def _failed(self, error: Exception) -> None:
        if is_signal(error):
            self.signal = error


def is_blocking(run: CallbackManagerForChainRun | AsyncCallbackManagerForChainRun) -> bool:
    """Whether a run of the guard is a synchronous one."""
    return isinstance(run, CallbackManagerForChainRun)


def keeps_state(bound: Any) -> bool:
    """Whether a runnable streams what its nodes do instead of its output: a LangGraph graph, or a chain with one."""
    return any(_is_graph(part) for part in _parts(bound))


def is_synchronous(bound: Any) -> bool:
    """Whether a runnable can be called synchronously: not if a part of it is nothing but an asynchronous function."""
    return all(_is_synchronous(part) for part in _parts(bound))


def require_no_checkpoints(bound: Any) -> None:
    """A graph inside a guard cannot have a checkpointer of its own, which would store every attempt.

    Raises:
        ConfigurationError: If a graph in the runnable has one.
    """
    if any(_is_graph(part) and part.checkpointer not in (None, True, False) for part in _parts(bound)):
        raise ConfigurationError(
            "the graph inside the guard has a checkpointer, which would store rejected attempts and show them to later "
            "ones: compile it without, and call the guard in a node of a graph that has the checkpointer"
        )


def _parts(bound: Any) -> Iterator[Any]:
    inner: Iterable[Any]
    if isinstance(bound, RunnableSequence):
        inner = bound.steps
    elif isinstance(bound, RunnableParallel):
        inner = bound.steps__.values()
    elif isinstance(bound, RunnableAssign):
        inner = [bound.mapper]
    elif isinstance(bound, RunnableBindingBase):
        inner = [bound.bound]
    else:
        yield bound
        return
    for part in inner:
        yield from _parts(part)


def _is_graph(part: Any) -> bool:
    return hasattr(part, "aget_state") and hasattr(part, "channels")


def _is_synchronous(part: Any) -> bool:
    if _is_graph(part):
        return all(is_synchronous(node.bound) for node in part.nodes.values())
    return getattr(part, "afunc", None) is None or getattr(part, "func", None) is not None
