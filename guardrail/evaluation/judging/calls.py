"""Calls of a model that somebody else wrote: any callable or chat model, with a limit, a deadline and retries."""

from __future__ import annotations

import asyncio
import inspect
import logging
import math
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception

from guardrail.cancellation import cancelled_from_outside
from guardrail.errors import ConfigurationError
from guardrail.evaluation.judging.faults import retry_after_s, transport_fault
from guardrail.evaluation.judging.leaving import leave
from guardrail.evaluation.judging.prompts import Prompt
from guardrail.evaluation.judging.usage import Usage, UsageMeter
from guardrail.threads import ThreadCall

_log = logging.getLogger("guardrail")

T = TypeVar("T")

_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 8.0
_CLOSE_GRACE_S = 0.1
_CUT_OFF = frozenset(
    "length max_tokens max_output_tokens model_length model_context_window_exceeded incomplete failed cancelled error "
    "content_filter content_filtered safety recitation blocklist prohibited_content spii refusal "
    "guardrail_intervened".split()
)


class CallFault(Exception):
    """A call gave no reply.

    Attributes:
        error: ``"timeout"``, ``"rate_limited"``, ``"transport"`` or ``"failed"``.
    """

    def __init__(self, error: str, why: str) -> None:
        super().__init__(why)
        self.error = error


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a model wrote.

    Attributes:
        text: The text.
        complete: ``False`` if the model says that it was stopped, by its limit of tokens or by a filter.
        tokens: Tokens sent and received; ``None`` if the model does not report them.
    """

    text: str = field(repr=False)
    complete: bool = True
    tokens: tuple[int, int] | None = None


class PerLoop(Generic[T]):
    """One value per event loop, as locks and tasks of one loop cannot be used in another.

    Args:
        make: Makes a value, inside the loop that it is for.

    Example:
        >>> places = PerLoop(lambda: asyncio.Semaphore(2))
        >>> async def here():
        ...     return places.here()
        >>> asyncio.run(here()) is asyncio.run(here())
        False
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._values: dict[asyncio.AbstractEventLoop, T] = {}

    def here(self) -> T:
        """The value of the running loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._values:
            for ended in [other for other in tuple(self._values) if other.is_closed()]:
                self._values.pop(ended, None)
            self._values[loop] = self._make()
        return self._values[loop]


class ModelCalls:
    """Calls a model, a limited number of times at once, and again if the connection fails.

    Args:
        model: A callable that takes the prompt as one text and returns a text, sync or async; or an object with
            ``ainvoke``, such as a LangChain chat model, which gets a system and a human message. Synchronous code runs
            in a thread of its own.
        max_concurrency: Most calls at a time, per event loop. A call that was given up counts no more, although it may
            go on: a synchronous one until the callable returns, an asynchronous one if it ignores its cancellation.
        timeout_s: Most seconds for one question, with all its tries and pauses. Waiting for a place does not count.
        retries: Most further tries, after errors of the connection or of a busy server only; see
            :func:`~guardrail.evaluation.judging.faults.transport_fault`. A model that tries again by itself does so
            within each of them.
        price: See :class:`~guardrail.evaluation.judging.usage.UsageMeter`.
        sleep: Waits between tries; for tests.
        clock: Monotonic seconds; for tests.

    Raises:
        ConfigurationError: If the model cannot be called, or a number cannot be used.
    """

    def __init__(
        self,
        model: Any,
        *,
        max_concurrency: int = 8,
        timeout_s: float = 30.0,
        retries: int = 2,
        price: tuple[float, float] | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._whole("max_concurrency", max_concurrency, 1)
        self._whole("retries", retries, 0)
        if isinstance(timeout_s, bool) or not isinstance(timeout_s, int | float) or not 0 < timeout_s < math.inf:
            raise ConfigurationError(f"timeout_s must be a number of seconds above 0, got {timeout_s!r}")
        self._call = _as_call(model)
        self.name = _name(model)
        self.meter = UsageMeter(price)
        self._timeout_s = float(timeout_s)
        self._retries = retries
        self._sleep = sleep
        self._clock = clock
        self._places = PerLoop(lambda: asyncio.Semaphore(max_concurrency))

    @property
    def usage(self) -> Usage:
        """What was asked so far and what it cost."""
        return self.meter.snapshot()

    async def ask(self, prompt: Prompt) -> Reply:
        """Ask one question.

        Args:
            prompt: The question.

        Returns:
            What the model wrote.

        Raises:
            CallFault: If there is no reply, for whatever reason.

        A reply that is late is none. Cancellation cancels the call that is under way, and waits briefly for its end; a
        synchronous call ends unobserved in its thread.
        """
        async with self._places.here():
            ends = self._clock() + self._timeout_s
            # In a task of its own: user code may ignore that it is cancelled, and must not hold up who waits.
            call = asyncio.create_task(self._with_retries(prompt, ends))
            try:
                await asyncio.wait({call}, timeout=self._timeout_s)
                in_time = call.done() and self._clock() < ends
            finally:
                if await leave([call], _CLOSE_GRACE_S):
                    _log.warning("a call of a judge model goes on though it was cancelled")
            if not in_time:
                raise CallFault("timeout", f"{self.name} did not answer within {self._timeout_s:g} s")
            if call.cancelled():
                raise CallFault("failed", f"{self.name} cancelled itself")
            error = call.exception()
            if error is None or isinstance(error, CallFault):
                return call.result()
            # The message of a foreign exception may quote the prompt: it stays in __cause__.
            why = f"{self.name} raised {type(error).__name__}"
            raise CallFault(transport_fault(error) or "failed", why) from error

    async def _with_retries(self, prompt: Prompt, ends: float) -> Reply:
        pauses: dict[int, float] = {}  # of each try: the wait and the decision to stop have to mean the same one

        def pause(state: RetryCallState) -> float:
            if state.attempt_number not in pauses:
                pauses[state.attempt_number] = _pause_s(state)
            return pauses[state.attempt_number]

        def hopeless(state: RetryCallState) -> bool:
            return state.attempt_number > self._retries or self._clock() + pause(state) >= ends

        tries = AsyncRetrying(
            sleep=self._sleep,
            stop=hopeless,
            wait=pause,
            # Some clients turn a cancellation into an error of the connection: it is none that another try can mend.
            retry=retry_if_exception(lambda error: bool(transport_fault(error)) and not cancelled_from_outside()),
            reraise=True,
        )
        return await tries(self._once, prompt)

    async def _once(self, prompt: Prompt) -> Reply:
        self.meter.called()
        returned = await self._call(prompt)
        tokens = _tokens(getattr(returned, "usage_metadata", None))
        if tokens is not None:
            self.meter.metered(*tokens)
        return _as_reply(returned, tokens, self.name)

    @staticmethod
    def _whole(name: str, value: object, least: int) -> None:
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ConfigurationError(f"{name} must be an integer of at least {least}, got {value!r}")


def _pause_s(state: RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome is not None else None
    asked = retry_after_s(error) if error is not None else None
    # Doubled each time, and a random part, so that calls which failed together do not come back together.
    own = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2 ** (state.attempt_number - 1)) * random.uniform(0.5, 1.0)
    return own if asked is None else asked


def _as_call(model: Any) -> Callable[[Prompt], Awaitable[Any]]:
    if inspect.isclass(model):
        raise ConfigurationError(f"a judge model must be an instance or a function, got the class {model.__name__}")
    ainvoke = getattr(model, "ainvoke", None)
    if callable(ainvoke):

        async def chat(prompt: Prompt) -> Any:
            return await ainvoke([("system", prompt.system), ("human", prompt.user)])

        return chat
    if not callable(model):
        raise ConfigurationError(
            f"{type(model).__name__} is no judge model: pass a callable that takes a prompt and returns a text, or a "
            "LangChain chat model"
        )
    if inspect.iscoroutinefunction(model) or inspect.iscoroutinefunction(getattr(model, "__call__", None)):  # noqa: B004

        async def call(prompt: Prompt) -> Any:
            return await model(prompt.text)

        return call

    async def in_thread(prompt: Prompt) -> Any:
        # In a parcel: an iterator would be read to its end in the thread, and a coroutine belongs in this loop.
        parcel = await ThreadCall(lambda: _Parcel(model(prompt.text))).start()
        return await parcel.value if inspect.isawaitable(parcel.value) else parcel.value

    return in_thread


class _Parcel:
    """What a callable returned. It is closed if nobody wants it any more, so that no coroutine is left unawaited."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def close(self) -> None:
        if inspect.iscoroutine(self.value) or inspect.isgenerator(self.value):
            with suppress(Exception):
                self.value.close()


def _as_reply(returned: Any, tokens: tuple[int, int] | None, name: str) -> Reply:
    if isinstance(returned, str):
        return Reply(text=str(returned))
    text = _content(getattr(returned, "content", None))
    if text is None:
        if inspect.iscoroutine(returned):
            returned.close()
        raise CallFault("failed", f"{name} returned {type(returned).__name__} instead of a text")
    return Reply(
        text=text,
        complete=not _cut_off(getattr(returned, "response_metadata", None)),
        tokens=tokens,
    )


def _content(content: Any) -> str | None:
    """The text of a message; of a list of blocks, that of the blocks of text (reasoning is no part of the reply)."""
    if isinstance(content, str):
        return str(content)
    if not isinstance(content, Sequence) or isinstance(content, bytes | bytearray):
        return None
    texts: list[str] = []
    for block in content:
        if isinstance(block, str):
            texts.append(block)
        elif isinstance(block, Mapping) and block.get("type") == "text" and isinstance(block.get("text"), str):
            texts.append(block["text"])
    return "".join(texts)


def _cut_off(metadata: Any) -> bool:
    if not isinstance(metadata, Mapping):
        return False
    reasons = (metadata.get(name) for name in ("finish_reason", "stop_reason", "stopReason", "done_reason", "status"))
    return any(isinstance(reason, str) and reason.lower() in _CUT_OFF for reason in reasons)


def _tokens(usage: Any) -> tuple[int, int] | None:
    if not isinstance(usage, Mapping):
        return None
    sent, received = usage.get("input_tokens"), usage.get("output_tokens")
    for count in (sent, received):
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            return None
    return int(sent), int(received)  # type: ignore[arg-type]


def _name(model: Any) -> str:
    """What to call a model: never its repr, which may hold a key."""
    for attribute in ("model_name", "model_id", "model"):
        value = getattr(model, attribute, None)
        if isinstance(value, str) and value:
            return value
    return str(model.__name__) if inspect.isroutine(model) else type(model).__name__
