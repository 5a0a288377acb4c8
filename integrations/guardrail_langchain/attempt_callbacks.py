"""What callbacks learn of attempts whose text may never be delivered.

A child run of an attempt is seen by three kinds of handlers. *Streaming* handlers (``astream_events``, LangGraph's
stream modes) show text to readers: they do not see attempts at all. *Tracers* (LangSmith, anything derived from
``BaseTracer``) keep records for the people who run the application: they see attempts whole. Every *other* handler
sees that an attempt began and ended, its metadata and its token counts, but not its text: nobody knows whether it
prints what it gets.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from langchain_core.callbacks import BaseCallbackManager
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, Generation, LLMResult
from langchain_core.tracers._streaming import _StreamingCallbackHandler
from langchain_core.tracers.base import AsyncBaseTracer, BaseTracer
from langchain_core.tracers.context import _configure_hooks

WITHHELD = "[withheld by guardrail]"
FEEDBACK_ID = "guardrail-feedback"

_SAFE_METADATA = ("model_name", "model", "model_provider", "finish_reason", "stop_reason", "system_fingerprint")

ManagerT = TypeVar("ManagerT", bound=BaseCallbackManager)


def attempt_tag(number: int) -> str:
    """The tag of the child run of an attempt."""
    return f"guard:attempt:{number}"


def for_attempt(manager: ManagerT, number: int, *, tracers_only: bool, tool_turns_pass: bool) -> ManagerT:
    """The callbacks of one attempt.

    Args:
        manager: The callbacks the attempt would have without a guard.
        number: The attempt.
        tracers_only: Whether the guard itself is a model run, in which every other handler finds the answer and its
            tokens; they would be counted a second time in the child run.
        tool_turns_pass: Whether a message that calls tools goes to the reader as it is, so that every handler may see
            it whole. Not if its text is checked, or if the call may be a structured answer.

    Returns:
        A copy of the manager: without streaming handlers, with tracers, and with every other handler behind a filter.
    """
    counters = _handlers_of_hooks()
    kept: dict[int, Any] = {}
    for handler in manager.handlers:
        if _shows_text_to_readers(handler):
            continue
        if isinstance(handler, (BaseTracer, AsyncBaseTracer)):
            kept[id(handler)] = handler
        elif not tracers_only:
            kept[id(handler)] = handler if id(handler) in counters else _Filtered(handler, tool_turns_pass)
    quiet = manager.copy()
    quiet.handlers = [kept[id(h)] for h in manager.handlers if id(h) in kept]
    quiet.inheritable_handlers = [kept[id(h)] for h in manager.inheritable_handlers if id(h) in kept]
    quiet.add_tags([attempt_tag(number)], inherit=False)
    return quiet


def leave_counting_to_the_guard() -> None:
    """Keep hooks like ``get_usage_metadata_callback()`` from adding themselves to runs in the current context."""
    for variable, *_ in _configure_hooks:
        if variable.get() is not None:
            variable.set(None)


def is_signal(error: BaseException) -> bool:
    """Whether an exception steers LangGraph; found by name, because LangGraph need not be installed."""
    return any(c.__name__ == "GraphBubbleUp" and c.__module__ == "langgraph.errors" for c in type(error).__mro__)


def _handlers_of_hooks() -> set[int]:
    """Handlers that LangChain adds to every run by itself, behind a filter or not; they count, and show nothing."""
    return {id(variable.get()) for variable, *_ in _configure_hooks if variable.get() is not None}


def _shows_text_to_readers(handler: Any) -> bool:
    return _StreamingCallbackHandler in type(handler).__mro__


class _Filtered:
    """A handler that gets no text of an attempt, and nothing that was said about the text of an earlier one."""

    def __init__(self, handler: Any, tool_turns_pass: bool) -> None:
        self._handler = handler
        self._tool_turns_pass = tool_turns_pass

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """LangChain looks for a handler's type to avoid adding it twice."""
        return type(self._handler)

    def __getattr__(self, name: str) -> Any:
        target = getattr(self._handler, name)
        if name in ("on_llm_new_token", "on_stream_event", "on_agent_action", "on_agent_finish"):
            return _edited(target, lambda args, kwargs: None)
        if name == "on_llm_end":
            return _edited(target, lambda args, kwargs: ((self._result(args[0]), *args[1:]), kwargs))
        if name == "on_llm_error":
            return _edited(target, self._error)
        if name in ("on_chain_error", "on_tool_error"):
            return _edited(target, lambda args, kwargs: ((_without_quotes(args[0]), *args[1:]), kwargs))
        if name == "on_chat_model_start":
            return _edited(target, _without_feedback_in)
        if name == "on_llm_start":  # also what LangChain falls back to for handlers that do not know chat models
            return _edited(target, lambda args, kwargs: ((args[0], [WITHHELD] * len(args[1]), *args[2:]), kwargs))
        if name == "on_custom_event":
            return _edited(target, lambda args, kwargs: ((args[0], WITHHELD, *args[2:]), kwargs))
        if name in ("on_chain_start", "on_tool_start"):
            return _edited(target, lambda args, kwargs: ((args[0], WITHHELD, *args[2:]), _without_inputs(kwargs)))
        if name in ("on_chain_end", "on_tool_end", "on_text"):
            return _edited(target, lambda args, kwargs: ((WITHHELD, *args[1:]), kwargs))
        return target

    def _error(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        response = kwargs.get("response")
        return args, kwargs if response is None else {**kwargs, "response": self._result(response)}

    def _result(self, result: LLMResult) -> LLMResult:
        generations = [[self._generation(g) for g in group] for group in result.generations]
        return LLMResult(generations=generations)

    def _generation(self, generation: Any) -> Generation:
        message = getattr(generation, "message", None)
        if not isinstance(message, AIMessage):
            return Generation(text=WITHHELD)
        if message.tool_calls and self._tool_turns_pass:
            return ChatGeneration(message=message)
        metadata = {k: v for k, v in message.response_metadata.items() if k in _SAFE_METADATA}
        return ChatGeneration(
            message=AIMessage(
                content=WITHHELD,
                id=message.id,
                tool_calls=[{**call, "args": {}} for call in message.tool_calls],
                response_metadata=metadata,
                usage_metadata=message.usage_metadata,
            )
        )


def _without_quotes(error: BaseException) -> BaseException:
    """Parsers quote the answer that they cannot read. Only the kind of error is told, unless it steers LangGraph."""
    return error if is_signal(error) else RuntimeError(f"{type(error).__name__}: {WITHHELD}")


def _without_feedback_in(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return (args[0], [[_without_feedback(m) for m in group] for group in args[1]], *args[2:]), kwargs


def _without_feedback(message: BaseMessage) -> BaseMessage:
    if str(message.id or "").startswith(FEEDBACK_ID):
        return message.model_copy(update={"content": WITHHELD})
    return message


def _without_inputs(kwargs: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in kwargs.items() if name != "inputs"}


_Edit = Callable[[tuple[Any, ...], dict[str, Any]], tuple[Sequence[Any], dict[str, Any]] | None]


def _edited(target: Any, edit: _Edit) -> Any:
    """The same function with other arguments; not called at all if ``edit`` gives none."""
    if inspect.iscoroutinefunction(target):

        async def call_async(*args: Any, **kwargs: Any) -> Any:
            edited = edit(args, kwargs)
            return None if edited is None else await target(*edited[0], **edited[1])

        return call_async

    def call(*args: Any, **kwargs: Any) -> Any:
        edited = edit(args, kwargs)
        return None if edited is None else target(*edited[0], **edited[1])

    return call
