"""Configuration and wiring: the object that applications hold."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Sequence
from typing import Any

from guardrail.context import as_passages, as_question
from guardrail.engine import Run
from guardrail.generation import BoundGenerator, bind
from guardrail.plan import RunPlan
from guardrail.policy import Policy, as_policy
from guardrail.protocols import Budget, Clock, Observer, RateLimiter, Reranker, RunObserver
from guardrail.recorder import open_observers
from guardrail.rerank import FailureDirectedReranker
from guardrail.scoring.verifier import Verifier
from guardrail.stream import GuardedStream
from guardrail.telemetry import default_observers
from guardrail.types import Outcome


class Guardrail:
    """Guards generators: checks every claim while it streams, regenerates what fails, refuses what cannot be shown.

    Args:
        policy: A :class:`~guardrail.policy.Policy`, or ``"balanced"``, ``"strict"``, ``"lenient"``, ``"reference"``.
        entailment: What judges claims: an :class:`~guardrail.protocols.Entailment`, or a callable over (premise,
            hypothesis) pairs; by default the embedded model, or word overlap if none is shipped (every result names
            its scorer).
        reranker: Chooses the next context after a failure.
        limiter: Charges generator calls; ``None`` for no limits.
        budget: Bounds regenerations over all requests of a key, for example a
            :class:`~guardrail.limits.budget.RegenerationBudget`; ``None`` for no bound but ``Policy.max_attempts``.
        observers: See every event; by default OpenTelemetry spans through the globally configured provider. An empty
            sequence switches telemetry off.
        clock: Monotonic seconds; for tests.

    Raises:
        PolicyError: If a policy value is out of range.

    One object serves any number of concurrent requests; nothing of a request is kept on it.

    Example:
        >>> guard = Guardrail()
        >>> def answer(question, context):
        ...     return "Entry costs 90 euro."
        >>> outcome = guard.run_sync(answer, question="What is the fee?", context=["Entry is free."])
        >>> outcome.status.value, outcome.text
        ('refused', "I can't give an answer that the provided documents support.")
    """

    def __init__(
        self,
        *,
        policy: Policy | str = "balanced",
        entailment: Any = None,
        reranker: Reranker | None = None,
        limiter: RateLimiter | None = None,
        budget: Budget | None = None,
        observers: Sequence[Observer] | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        self.policy = as_policy(policy)
        self.verifier = Verifier(policy=self.policy, entailment=entailment)
        self._reranker = reranker or FailureDirectedReranker(context_size=self.policy.context_size)
        self._limiter = limiter
        self._budget = budget
        self._observers = tuple(default_observers() if observers is None else observers)
        self._clock = clock

    def stream(self, generate: Any, *, question: str, context: object = None, key: str = "default") -> GuardedStream:
        """Guard one answer while it is generated.

        Args:
            generate: The generator; see :func:`guardrail.generation.bind` for what it may be and take.
            question: What the user asked.
            context: The retrieved passages, best first: texts, documents, mappings or passages. ``[]`` says that
                retrieval found nothing, ``None`` that there is no retrieval.
            key: Who is charged by the limiter and the budget, for example a tenant.

        Returns:
            A stream of checked text; nothing runs before its first read.

        Raises:
            InputError: If question or context cannot be used.
            GeneratorSignatureError: If the generator cannot be called.
        """
        return self._open(bind(generate), question=question, context=context, key=key, streaming=True)

    async def run(self, generate: Any, *, question: str, context: object = None, key: str = "default") -> Outcome:
        """Guard one answer and return it whole.

        Args:
            generate: As for :meth:`stream`.
            question: As for :meth:`stream`.
            context: As for :meth:`stream`.
            key: As for :meth:`stream`.

        Returns:
            The outcome; ``outcome.text`` is what to show.

        Raises:
            InputError, GeneratorSignatureError: At once.
            GenerationError, DeadlineExceededError, RateLimitedError, ScoringError: As
                :class:`~guardrail.stream.GuardedStream`.

        Cancellation closes the generator's stream before it goes on.
        """
        stream = self._open(bind(generate), question=question, context=context, key=key, streaming=False)
        async with stream:
            return await stream.outcome()

    def run_sync(self, generate: Any, *, question: str, context: object = None, key: str = "default") -> Outcome:
        """:meth:`run` for synchronous code, in any thread.

        Raises:
            RuntimeError: Inside a running event loop; use ``await guard.run(...)`` there.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self.run(generate, question=question, context=context, key=key))
        raise RuntimeError("run_sync() cannot be called while an event loop is running: use `await guard.run(...)`")

    def wrap(self, generate: Any) -> GuardedGenerator:
        """Bind a generator once, to call it like the original.

        Args:
            generate: As for :meth:`stream`.

        Returns:
            A callable ``(question, context) -> GuardedStream``: iterate it for text, await it for the outcome.

        Raises:
            GeneratorSignatureError: If the generator cannot be called.
        """
        return GuardedGenerator(self, bind(generate))

    def _open(
        self, generator: BoundGenerator, *, question: str, context: object, key: str, streaming: bool
    ) -> GuardedStream:
        asked = as_question(question)
        passages, state = as_passages(context)
        run_id = secrets.token_hex(16)
        observers: tuple[RunObserver, ...] = open_observers(self._observers, run_id)

        def open_run(retractable: bool) -> Run:
            return Run(
                RunPlan(
                    run_id=run_id,
                    question=asked,
                    passages=passages,
                    context_state=state,
                    key=key,
                    policy=self.policy,
                    release=self.policy.resolve_release(streaming=streaming, can_continue=generator.can_continue),
                    retractable=retractable,
                    generator=generator,
                    verifier=self.verifier,
                    reranker=self._reranker,
                    limiter=self._limiter,
                    budget=self._budget,
                    observers=observers,
                    clock=self._clock,
                )
            )

        return GuardedStream(open_run)


class GuardedGenerator:
    """A generator with a guard around it; made by :meth:`Guardrail.wrap`.

    Example:
        >>> ask = Guardrail().wrap(lambda question, context: context[0])
        >>> ask.run_sync("When does the desk open?", ["The desk opens at ten."]).text
        'The desk opens at ten.'
    """

    def __init__(self, guard: Guardrail, generator: BoundGenerator) -> None:
        self._guard = guard
        self._generator = generator

    def __call__(self, question: str, context: object = None, *, key: str = "default") -> GuardedStream:
        """Open a guarded stream; see :meth:`Guardrail.stream`."""
        return self._guard.stream(self._generator, question=question, context=context, key=key)

    async def run(self, question: str, context: object = None, *, key: str = "default") -> Outcome:
        """See :meth:`Guardrail.run`."""
        return await self._guard.run(self._generator, question=question, context=context, key=key)

    def run_sync(self, question: str, context: object = None, *, key: str = "default") -> Outcome:
        """See :meth:`Guardrail.run_sync`."""
        return self._guard.run_sync(self._generator, question=question, context=context, key=key)
