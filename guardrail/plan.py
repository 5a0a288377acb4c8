"""What a run needs to know before it begins."""

from __future__ import annotations

from dataclasses import dataclass, field

from guardrail.generation import BoundGenerator
from guardrail.policy import Policy
from guardrail.protocols import Budget, Clock, RateLimiter, Reranker, RunObserver
from guardrail.scoring.verifier import Verifier
from guardrail.types import ContextState, Passage, ReleaseMode


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """Everything a run needs; frozen, and nothing of it is state that runs share.

    Attributes:
        run_id: Identifier of the run.
        question: The user's question.
        passages: All passages of the request.
        context_state: Whether there is something to check against.
        key: Who is charged by the limiter.
        policy: Thresholds and choices.
        release: ``SENTENCE``, ``ANSWER`` or ``OBSERVE``.
        retractable: Whether the reader understands ``Retracted`` events.
        generator: What produces answers.
        verifier: What checks them.
        reranker: What chooses the next context.
        limiter: Charges generator calls; ``None`` for no limits.
        budget: Bounds regenerations over all runs of a key; ``None`` for no bound but the policy's.
        observers: See every event.
        clock: Monotonic seconds.
    """

    run_id: str
    question: str = field(repr=False)
    passages: tuple[Passage, ...]
    context_state: ContextState
    key: str
    policy: Policy
    release: ReleaseMode
    retractable: bool
    generator: BoundGenerator
    verifier: Verifier
    reranker: Reranker
    limiter: RateLimiter | None
    budget: Budget | None
    observers: tuple[RunObserver, ...]
    clock: Clock
