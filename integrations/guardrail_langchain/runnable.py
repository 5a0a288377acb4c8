"""A runnable with a guard around it: every method of LangChain's runnables, with checked text only."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing, closing, contextmanager
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForChainRun, CallbackManagerForChainRun
from langchain_core.language_models import BaseLanguageModel
from langchain_core.runnables import Runnable, RunnableConfig, ensure_config
from langchain_core.runnables.base import coerce_to_runnable
from langchain_core.runnables.config import (
    get_async_callback_manager_for_config,
    get_callback_manager_for_config,
    patch_config,
)
from langchain_core.runnables.graph import Graph
from langchain_core.runnables.utils import ConfigurableFieldSpec
from langchain_core.tracers._streaming import _StreamingCallbackHandler
from pydantic import BaseModel, ConfigDict, PrivateAttr, field_validator

from guardrail import ConfigurationError, GenerationError, Guardrail, Outcome
from guardrail.events import Released
from guardrail_langchain.attempts import Attempts, hidden_config, is_blocking, require_no_checkpoints
from guardrail_langchain.bindings import BindsClosing
from guardrail_langchain.context import Asked, context_of, question_of
from guardrail_langchain.outputs import AnyOutput, Output
from guardrail_langchain.retrieval import Retrieval, guard_of_run, reranker_of
from guardrail_langchain.structured import StructuredOutput
from guardrail_langchain.sync import LoopThread

_Run = CallbackManagerForChainRun | AsyncCallbackManagerForChainRun
_SETTINGS = ("policy", "entailment", "reranker", "limiter", "budget", "observers")


class GuardedRunnable(BindsClosing):
    """Guards whatever answers: a chat model, a chain, a graph.

    It gives what the runnable inside gives (texts, messages, mappings), but only text that has passed: sentence by
    sentence while streaming, unless the policy holds answers back. A refusal is an answer too: the refusal text, in a
    message with a native refusal block. Attempts are child runs tagged ``guard:attempt:<n>``; tracing callbacks see
    them, handlers that show tokens while they are generated do not.

    Args:
        bound: The runnable that answers.
        guard: A ready :class:`guardrail.Guardrail`; or the settings of one:
        policy: As for :class:`guardrail.Guardrail`.
        entailment: As for :class:`guardrail.Guardrail`.
        reranker: As for :class:`guardrail.Guardrail`.
        limiter: As for :class:`guardrail.Guardrail`.
        budget: As for :class:`guardrail.Guardrail`.
        observers: As for :class:`guardrail.Guardrail`.
        key: Who is charged by limiter and budget, for example a tenant (``configurable_fields(key=...)``).
        question_key: Where a mapping has the question, or a function of the input. The last human message is the
            question of messages and prompts.
        context_key: Where a mapping has the passages (texts, documents, or a list), or a function of the input.
        retriever: Asked for the passages, which then stand under ``context_key`` (as one text) and ``"documents"`` in
            the input of the runnable inside. After a failure it is asked again, with a larger k, for the question and
            the claims that failed; answers are checked against everything it gave. Needs settings instead of a guard.
        answer_key: Where a mapping that the runnable gives has the answer.
        structured: Whether the runnable gives structured values (JSON, mappings, pydantic models). Their strings and
            numbers are checked one by one; a refusal is a ``ModelRefusalError``.
        on_outcome: Called with the :class:`guardrail.Outcome` of every run; messages also carry a summary in
            ``response_metadata["guardrail"]``. The outcome holds rejected text; ``outcome.for_reader()`` does not.

    Raises:
        PolicyError: If a policy value is out of range.
        ConfigurationError: If both a guard and settings of a guard are given, or a graph inside has a checkpointer.

    Exceptions of the runnable inside reach the caller as they are; what the guard itself raises is listed at
    :class:`guardrail.GuardedStream`. Closing or cancelling a stream closes the runnable's stream before it returns. The
    synchronous methods work inside a running event loop too; they call the synchronous methods of the runnable.

    Example:
        >>> from langchain_core.runnables import RunnableLambda
        >>> answers = iter(["Entry costs 5 euro.", "Entry is free."])
        >>> guarded = GuardedRunnable(bound=RunnableLambda(lambda asked: next(answers)))
        >>> guarded.invoke({"question": "What is the fee?", "context": "Entry is free."})
        'Entry is free.'
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    bound: Any
    guard: Any = None
    policy: Any = "balanced"
    entailment: Any = None
    reranker: Any = None
    limiter: Any = None
    budget: Any = None
    observers: Any = None
    key: str = "default"
    question_key: Any = "question"
    context_key: Any = "context"
    retriever: Any = None
    answer_key: str = "answer"
    structured: bool = False
    on_outcome: Callable[[Outcome], object] | None = None

    _guardrail: Guardrail = PrivateAttr()

    @field_validator("bound", mode="before")
    @classmethod
    def _coerce(cls, bound: Any) -> Runnable[Any, Any]:
        runnable: Runnable[Any, Any] = coerce_to_runnable(bound)
        return runnable

    def __init__(self, **fields: Any) -> None:
        super().__init__(**fields)
        require_no_checkpoints(self.bound)
        # Not in a validator: pydantic would wrap what the guard raises about its settings.
        self._guardrail = self._make_guard()

    def _make_guard(self) -> Guardrail:
        if self.guard is None:
            return Guardrail(**self._settings())
        fields = type(self).model_fields
        given = [name for name in _SETTINGS if getattr(self, name) != fields[name].default]
        if given:
            raise ConfigurationError(f"give either guard=... or {', '.join(given)}: a ready guard has its own settings")
        if not isinstance(self.guard, Guardrail):
            raise ConfigurationError(f"guard must be a guardrail.Guardrail, not {type(self.guard).__name__}")
        if self.retriever is not None:
            raise ConfigurationError("with a retriever give the settings of a guard instead of guard=...")
        return self.guard

    def _settings(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _SETTINGS}

    # --- what LangChain asks about a runnable -------------------------------------------------------------------

    @classmethod
    def is_lc_serializable(cls) -> bool:
        """Not: models and callables inside do not survive the way there and back."""
        return False

    @property
    def InputType(self) -> Any:
        """That of the runnable inside."""
        return self.bound.InputType

    @property
    def OutputType(self) -> Any:
        """That of the runnable inside."""
        return self.bound.OutputType

    def get_input_schema(self, config: RunnableConfig | None = None) -> type[BaseModel]:
        """That of the runnable inside."""
        schema: type[BaseModel] = self.bound.get_input_schema(config)
        return schema

    def get_output_schema(self, config: RunnableConfig | None = None) -> type[BaseModel]:
        """That of the runnable inside."""
        schema: type[BaseModel] = self.bound.get_output_schema(config)
        return schema

    @property
    def config_specs(self) -> list[ConfigurableFieldSpec]:
        """Those of the runnable inside."""
        return list(self.bound.config_specs)

    def get_graph(self, config: RunnableConfig | None = None) -> Graph:
        """That of the runnable inside."""
        graph: Graph = self.bound.get_graph(config)
        return graph

    # --- whole answers ------------------------------------------------------------------------------------------

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Guard one answer.

        Args:
            input: What the runnable inside takes, with the passages in it.
            config: Callbacks, tags, metadata and the like.
            **kwargs: Passed on to the runnable inside.

        Returns:
            What the runnable inside gives, with checked text or a refusal.

        Raises:
            InputError: If there is no question or no context in the input.
            Exception: What the runnable inside raises, as it is, or what the guard raises.
        """
        return self._call_with_config(self._invoke, input, config, **kwargs)

    def _invoke(
        self, input: Any, run_manager: CallbackManagerForChainRun, config: RunnableConfig, **kwargs: Any
    ) -> Any:
        with LoopThread() as loop:
            return loop.run(self._answer(input, run_manager, config, kwargs))

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """See :meth:`invoke`; cancelling it closes the runnable's stream first."""
        return await self._acall_with_config(self._ainvoke, input, config, **kwargs)

    async def _ainvoke(
        self, input: Any, run_manager: AsyncCallbackManagerForChainRun, config: RunnableConfig, **kwargs: Any
    ) -> Any:
        return await self._answer(input, run_manager, config, kwargs)

    async def _answer(self, input: Any, run: _Run, config: RunnableConfig, options: dict[str, Any]) -> Any:
        guard, asked = await self._ask(input, run, config)
        attempts, output = self._attempts(asked, run, config, options)
        with self._as_callers_expect(attempts):
            outcome = await guard.run(attempts.generator, question=asked.question, context=asked.context, key=self.key)
        self._tell(outcome)
        return output.whole(outcome)

    # --- streams ------------------------------------------------------------------------------------------------

    def stream(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Iterator[Any]:
        """Guard one answer while it is generated.

        Args:
            input: As for :meth:`invoke`.
            config: As for :meth:`invoke`.
            **kwargs: As for :meth:`invoke`.

        Yields:
            Chunks of what the runnable inside gives, a checked sentence each; the last one of a message has its usage,
            tool calls and metadata.

        Raises:
            Exception: As :meth:`invoke`.
        """
        config = ensure_config(config)
        manager = get_callback_manager_for_config(config)
        name, run_id = config.get("run_name") or self.get_name(), config.pop("run_id", None)
        run = manager.on_chain_start(None, input, name=name, run_id=run_id)
        total = _Total()
        try:
            with LoopThread() as loop, closing(loop.iterate(self._pieces(input, run, config, kwargs))) as source:
                tap = _tap(run)
                for piece in source if tap is None else tap.tap_output_iter(run.run_id, source):
                    total.add(piece)
                    yield piece
        except GeneratorExit:  # the reader has enough: that is no error
            run.on_chain_end(total.value, inputs=input)
            raise
        except BaseException as error:
            run.on_chain_error(error, inputs=input)
            raise
        run.on_chain_end(total.value, inputs=input)

    async def astream(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncGenerator[Any, None]:
        """See :meth:`stream`. Use ``contextlib.aclosing``: ``break`` alone leaves closing to the garbage collector."""
        config = ensure_config(config)
        manager = get_async_callback_manager_for_config(config)
        name, run_id = config.get("run_name") or self.get_name(), config.pop("run_id", None)
        run = await manager.on_chain_start(None, input, name=name, run_id=run_id)
        total = _Total()
        try:
            async with aclosing(self._pieces(input, run, config, kwargs)) as source:
                tap = _tap(run)
                async for piece in source if tap is None else tap.tap_output_aiter(run.run_id, source):
                    total.add(piece)
                    yield piece
        except GeneratorExit:  # the reader has enough: that is no error
            await run.on_chain_end(total.value, inputs=input)
            raise
        except BaseException as error:
            await run.on_chain_error(error, inputs=input)
            raise
        await run.on_chain_end(total.value, inputs=input)

    def transform(self, input: Iterator[Any], config: RunnableConfig | None = None, **kwargs: Any) -> Iterator[Any]:
        """See :meth:`stream`; a question is whole before it is answered."""
        total = _Total()
        for piece in input:
            total.add(piece)
        yield from self.stream(total.value, config, **kwargs)

    async def atransform(
        self, input: AsyncIterator[Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncGenerator[Any, None]:
        """See :meth:`astream`; a question is whole before it is answered."""
        total = _Total()
        async for piece in input:
            total.add(piece)
        async with aclosing(self.astream(total.value, config, **kwargs)) as pieces:
            async for piece in pieces:
                yield piece

    async def _pieces(
        self, input: Any, run: _Run, config: RunnableConfig, options: dict[str, Any]
    ) -> AsyncGenerator[Any, None]:
        if self.structured:  # a value is checked and given as a whole
            yield await self._answer(input, run, config, options)
            return
        guard, asked = await self._ask(input, run, config)
        attempts, output = self._attempts(asked, run, config, options)
        stream = guard.stream(attempts.generator, question=asked.question, context=asked.context, key=self.key)
        with self._as_callers_expect(attempts):
            async with stream:
                async for event in stream.events():
                    if isinstance(event, Released) and event.text and attempts.signal is None:
                        piece = output.released(event.text, event.attempt)
                        if piece is not None:
                            yield piece
                outcome = await stream.outcome()
        self._tell(outcome)
        for piece in output.closing(outcome):
            yield piece

    # --- both ---------------------------------------------------------------------------------------------------

    async def _ask(self, input: Any, run: _Run, config: RunnableConfig) -> tuple[Guardrail, Asked]:
        question = question_of(input, self.question_key)
        guard = self._guardrail
        if self.retriever is None:
            context = context_of(input, self.context_key)
        else:
            retrieval = self._retrieval(run, config)
            context = await retrieval.first(question)
            guard = guard_of_run(guard, self._settings(), retrieval)
        return guard, Asked(
            value=input,
            question=question,
            context=context,
            question_key=self.question_key,
            context_key=self.context_key,
            placed=isinstance(input, dict) and isinstance(self.context_key, str),
            retrieved=self.retriever is not None,
            narrowed=guard.policy.context_size is not None,
            for_model=isinstance(self.bound, BaseLanguageModel),
        )

    def _retrieval(self, run: _Run, config: RunnableConfig) -> Retrieval:
        return Retrieval(
            self.retriever,
            patch_config(config, callbacks=run.get_child("guard:retrieve")),
            lambda attempt: hidden_config(config, run, attempt),
            reranker_of(self._settings(), self._guardrail.policy.context_size),
            blocking=is_blocking(run),
        )

    def _attempts(
        self, asked: Asked, run: _Run, config: RunnableConfig, options: dict[str, Any]
    ) -> tuple[Attempts, Output]:
        output: Output = StructuredOutput()
        if not self.structured:
            output = AnyOutput(self.bound, answer_key=self.answer_key, run_id=str(run.run_id))

        def config_for(attempt: int) -> RunnableConfig:
            return hidden_config(config, run, attempt)

        return Attempts(self.bound, asked, output, config_for, options, blocking=is_blocking(run)), output

    @contextmanager
    def _as_callers_expect(self, attempts: Attempts) -> Iterator[None]:
        """Exceptions of the runnable inside come out as they went in, and so do LangGraph's signals."""
        try:
            yield
        except GenerationError as error:
            if error.outcome is not None:
                self._tell(error.outcome)
            if attempts.signal is not None:
                raise attempts.signal from None
            if error.__cause__ is not None and not isinstance(error, TimeoutError):
                raise error.__cause__ from None
            raise
        if attempts.signal is not None:
            raise attempts.signal

    def _tell(self, outcome: Outcome) -> None:
        if self.on_outcome is not None:
            self.on_outcome(outcome)


class _Total:
    """Pieces added up: what a stream was in all."""

    def __init__(self) -> None:
        self._pieces: list[Any] = []

    def add(self, piece: Any) -> None:
        self._pieces.append(piece)

    @property
    def value(self) -> Any:
        """The sum; the last piece of those that cannot be added; ``None`` if there are none."""
        if not self._pieces:
            return None
        if all(isinstance(piece, str) for piece in self._pieces):
            return "".join(self._pieces)
        total = self._pieces[0]
        for piece in self._pieces[1:]:
            try:
                total = total + piece
            except TypeError:
                total = piece
        return total


def _tap(run: _Run) -> _StreamingCallbackHandler[Any] | None:
    """What ``astream_events`` and ``astream_log`` listen with."""
    return next((handler for handler in run.handlers if isinstance(handler, _StreamingCallbackHandler)), None)
