"""Any generator, one stream of chunks.

A generator is whatever produces an answer: a function or a coroutine function that returns text, a generator
function, an async generator function, a function that returns any of these, a callable object, a partial, a LangChain
runnable. It is decided by what a call *returns*, not by what the function looks like.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from guardrail.chunks import ChunkReader
from guardrail.errors import GenerationError, GenerationTypeError, GeneratorSignatureError, GuardrailError
from guardrail.threads import ThreadCall, close_source, is_sync_stream
from guardrail.types import Chunk, GenerationRequest

_QUESTION_NAMES = ("question", "query", "prompt", "input", "q")
_CONTEXT_NAMES = ("context", "contexts", "documents", "docs")
_EXTRA_NAMES = ("passages", "attempt", "released_text", "failed_claims", "request")
_FIELDS = ("question", "context", *_EXTRA_NAMES)


def bind(generator: Any) -> BoundGenerator:
    """Prepare a generator for being called by a run.

    Parameters are filled by name: ``question`` (or ``query``, ``prompt``, ``input``, ``q``), ``context`` (or
    ``contexts``, ``documents``, ``docs``: the selection in the type the caller handed in), ``passages`` (the same as
    :class:`~guardrail.types.Passage` values), ``attempt``, ``released_text``, ``failed_claims``, ``request`` (all of
    it). Required parameters with other names are filled by position: the first gets the question, the second the
    context. ``**kwargs`` gets everything; ``*args`` gets question and context. A generator that takes
    ``released_text`` promises to continue after it.

    Args:
        generator: The generator.

    Returns:
        Something whose :meth:`BoundGenerator.chunks` calls it.

    Raises:
        GeneratorSignatureError: If it is not callable, or has a required parameter that cannot be filled.

    Example:
        >>> bind(lambda question, context: "text").can_continue
        False
        >>> bind(lambda question, released_text: "text").can_continue
        True
    """
    if isinstance(generator, BoundGenerator):
        return generator
    if callable(getattr(generator, "astream", None)) and callable(getattr(generator, "invoke", None)):
        return BoundGenerator(call=functools.partial(_call_runnable, generator), on_loop=True, can_continue=False)
    if not callable(generator):
        raise GeneratorSignatureError(
            f"the generator must be callable or a runnable, not {type(generator).__name__}; "
            "pass the function, not its result"
        )
    arguments = _plan(generator)
    takes_released = "released_text" in arguments.keywords or bool(getattr(generator, "can_continue", False))
    return BoundGenerator(
        call=lambda request: arguments.call(generator, request),
        on_loop=_runs_on_loop(generator),
        can_continue=takes_released,
    )


@dataclass(frozen=True, slots=True)
class BoundGenerator:
    """A generator with a known way to call it.

    Attributes:
        call: Calls the generator for one request.
        on_loop: Whether the call itself belongs on the event loop; everything else runs in a thread.
        can_continue: Whether it continues a released prefix.
    """

    call: Callable[[GenerationRequest], Any]
    on_loop: bool
    can_continue: bool

    async def chunks(self, request: GenerationRequest) -> AsyncGenerator[Chunk, None]:
        """Call the generator once and stream what it produces.

        Args:
            request: What to generate from.

        Yields:
            One chunk per item, empty ones included, each with the untouched item.

        Raises:
            GenerationTypeError: If something is not text and not a known chunk shape.
            GenerationError: If the generator raises; its exception is the cause.

        Closing this iterator closes the generator's, in the task that opened it; cancellation does the same.
        """
        attempt = request.attempt
        reader = ChunkReader(attempt=attempt)
        try:
            produced = await self._produce(request)
            if produced is None:
                raise GenerationTypeError("the generator returned None instead of text", attempt=attempt)
            if hasattr(produced, "__aiter__"):
                async with _closing(produced):
                    async for item in produced:
                        yield reader.read(item)
            else:
                yield reader.read(produced)
        except (GuardrailError, asyncio.CancelledError, GeneratorExit, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            raise GenerationError(
                f"the generator raised {type(error).__name__} in attempt {attempt}", attempt=attempt
            ) from error

    async def _produce(self, request: GenerationRequest) -> Any:
        if self.on_loop:
            produced = self.call(request)
        else:
            produced = await ThreadCall(functools.partial(self.call, request)).start()
        while inspect.isawaitable(produced):
            produced = await produced
        if hasattr(produced, "__aenter__") and not hasattr(produced, "__aiter__"):
            return _entered(produced)
        if is_sync_stream(produced):
            return await ThreadCall(lambda: produced).start()
        return produced


async def _entered(manager: Any) -> AsyncIterator[Any]:
    """Iterate what an async context manager gives (``client.chat.completions.stream(...)``)."""
    async with manager as stream:
        async for item in stream:
            yield item


class _closing:
    """Closes an async iterator once, by whatever closing method it has."""

    def __init__(self, source: Any) -> None:
        self._source = source

    async def __aenter__(self) -> Any:
        return self._source

    async def __aexit__(self, *exc_info: object) -> None:
        await close_source(self._source)


@dataclass(frozen=True, slots=True)
class _Arguments:
    positional: tuple[str, ...]
    keywords: Mapping[str, str]  # parameter name → request field

    def call(self, generator: Callable[..., Any], request: GenerationRequest) -> Any:
        args = [_field(request, name) for name in self.positional]
        kwargs = {parameter: _field(request, name) for parameter, name in self.keywords.items()}
        return generator(*args, **kwargs)


def _field(request: GenerationRequest, name: str) -> Any:
    if name == "request":
        return request
    if name == "context":
        return list(request.context)
    return getattr(request, name)


def _plan(generator: Callable[..., Any]) -> _Arguments:
    try:
        parameters = inspect.signature(generator).parameters.values()
    except (ValueError, TypeError) as error:
        raise GeneratorSignatureError(
            f"cannot read the signature of {_name(generator)}; wrap it: lambda question, context: ..."
        ) from error
    positional: list[str] = []
    keywords: dict[str, str] = {}
    by_position = ["question", "context"]
    has_args = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    fixed = generator.keywords if isinstance(generator, functools.partial) else {}
    named = {_known_field(p.name) for p in parameters if p.default is p.empty or p.name in _FIELDS}
    for parameter in parameters:
        if parameter.name in fixed or _is_spare_alias(parameter, named):
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            positional.extend(by_position)
        elif parameter.kind is parameter.VAR_KEYWORD:
            if not has_args:
                taken = set(keywords.values()) | set(positional) | set(fixed)
                rest = ("question", "context", "passages", "attempt", "released_text", "failed_claims")
                keywords |= {name: name for name in rest if name not in taken}
        else:
            _place(generator, parameter, positional, keywords, by_position, in_order=has_args)
    return _Arguments(tuple(positional), keywords)


def _place(
    generator: Callable[..., Any],
    parameter: inspect.Parameter,
    positional: list[str],
    keywords: dict[str, str],
    by_position: list[str],
    *,
    in_order: bool,
) -> None:
    field = _known_field(parameter.name)
    required = parameter.default is parameter.empty
    if field is None:
        if not required:
            return
        if parameter.kind is parameter.KEYWORD_ONLY or not by_position:
            raise GeneratorSignatureError(
                f"{_name(generator)} requires the parameter {parameter.name!r}, which a run cannot fill; give it a "
                f"default, or name it one of: question, context, {', '.join(_EXTRA_NAMES)}"
            )
        field = by_position[0]
    if field in by_position:
        by_position.remove(field)
    before_args = in_order and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    if parameter.kind is parameter.POSITIONAL_ONLY or before_args:
        positional.append(field)
    else:
        keywords[parameter.name] = field


def _is_spare_alias(parameter: inspect.Parameter, named: set[str | None]) -> bool:
    """An optional ``prompt="…"`` keeps its default if another parameter takes the question."""
    optional = parameter.default is not parameter.empty
    return optional and parameter.name not in _FIELDS and _known_field(parameter.name) in named


def _known_field(name: str) -> str | None:
    if name in _QUESTION_NAMES:
        return "question"
    if name in _CONTEXT_NAMES:
        return "context"
    return name if name in _EXTRA_NAMES else None


def _name(generator: object) -> str:
    return getattr(generator, "__qualname__", None) or type(generator).__name__


def _runs_on_loop(generator: Any) -> bool:
    while isinstance(generator, functools.partial):
        generator = generator.func
    candidates = [generator]
    if not inspect.isroutine(generator):
        candidates.append(getattr(generator, "__call__", None))  # noqa: B004 - the bound method is wanted
    return any(inspect.iscoroutinefunction(c) or inspect.isasyncgenfunction(c) for c in candidates)


def _call_runnable(runnable: Any, request: GenerationRequest) -> Any:
    if hasattr(runnable, "_llm_type"):
        return runnable.astream(default_prompt(request))
    return runnable.astream(
        {
            "question": request.question,
            "context": "\n\n".join(p.text for p in request.passages),
            "passages": list(request.context),
            "attempt": request.attempt,
            "released_text": request.released_text,
            "failed_claims": [claim.text for claim in request.failed_claims],
        }
    )


def default_prompt(request: GenerationRequest) -> str:
    """The prompt for models that are handed over without a prompt of their own.

    Args:
        request: The request of one attempt.

    Returns:
        Passages, numbered; the question; and what was wrong with earlier attempts.
    """
    parts = ["Answer the question from the passages only. If they do not contain the answer, say so."]
    parts += [f"[{number}] {passage.text}" for number, passage in enumerate(request.passages, start=1)]
    parts.append(f"Question: {request.question}")
    if request.failed_claims:
        parts.append("An earlier answer contained statements that did not hold. Do not repeat them:")
        parts += [f"- {claim.text} ({claim.why})" for claim in request.failed_claims]
    if request.released_text:
        parts.append("The reader already has this beginning; continue after it:\n" + request.released_text)
    return "\n\n".join(parts)
