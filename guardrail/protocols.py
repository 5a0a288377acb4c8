"""What a user may supply: an entailment model, a reranker, a limiter, an observer, a clock."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from guardrail.events import Event
from guardrail.types import EntailmentScore, FailedClaim, Passage


class Pair(NamedTuple):
    """One question to an entailment model.

    Attributes:
        premise: The evidence.
        hypothesis: The claim; never cut.
    """

    premise: str
    hypothesis: str


@runtime_checkable
class Entailment(Protocol):
    """Judges whether premises entail hypotheses.

    Implementations window long premises by their own tokens and never cut a hypothesis. They raise
    :class:`~guardrail.errors.ScoringError` instead of returning a number that they do not believe.
    """

    @property
    def model_id(self) -> str:
        """Name that appears in verdicts and traces; ``"lexical"`` is reserved for word overlap."""
        ...

    async def score(self, pairs: Sequence[Pair]) -> Sequence[EntailmentScore]:
        """Score pairs, in order.

        Args:
            pairs: Any number of pairs; empty gives an empty result.

        Returns:
            One score per pair, each value finite and in [0, 1].

        Raises:
            ScoringError: If even one pair cannot be scored.

        On cancellation queued work is dropped; work that runs in a thread ends unobserved.
        """
        ...


class Reranker(Protocol):
    """Φ̃: chooses the next selection and order of passages after a failure."""

    def next_context(
        self,
        *,
        question: str,
        passages: Sequence[Passage],
        shown: Sequence[Passage],
        failed: Sequence[FailedClaim],
        tried: Sequence[tuple[str, ...]],
    ) -> tuple[Passage, ...] | None:
        """Choose the context for the next attempt.

        Args:
            question: The user's question.
            passages: All passages of the request.
            shown: The selection of the attempt that failed.
            failed: The claims that failed in it.
            tried: Id sequences of every selection that a generator was shown.

        Returns:
            A selection whose id sequence is not in ``tried``, or ``None`` if there is none left.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A limiter's answer.

    Attributes:
        allowed: Whether the cost was charged.
        waited_s: Seconds spent waiting.
        retry_after_s: If refused: seconds after which it can succeed.
        remaining: What is left in the tightest limit, if known.
        source: Which limiter decided (``"none"``, ``"local"``, ``"redis"``, ``"degraded"``).
    """

    allowed: bool
    waited_s: float = 0.0
    retry_after_s: float | None = None
    remaining: float | None = None
    source: str = "none"


class RateLimiter(Protocol):
    """Charges generator calls against limits."""

    async def acquire(self, key: str, cost: float = 1.0, timeout_s: float | None = None) -> Decision:
        """Charge ``cost`` to ``key``, waiting up to ``timeout_s`` seconds.

        Cancellation while waiting charges nothing.
        """
        ...


class Clock(Protocol):
    """Monotonic time in seconds; injectable so that no test sleeps."""

    def __call__(self) -> float:
        """The current time."""
        ...


class RunObserver(Protocol):
    """Sees one run. Exceptions in it are logged and never reach the run."""

    def on_event(self, event: Event) -> None:
        """Called for every event, in order, also for those that the reader never sees."""
        ...

    def activate(self, step_id: int) -> AbstractContextManager[None]:
        """Make a step current while user code runs inside it, so that spans of that code nest under the step."""
        ...


class Observer(Protocol):
    """Creates a :class:`RunObserver` per run."""

    def open_run(self, run_id: str) -> RunObserver:
        """Called when the stream is created, before anything runs: the place to capture the caller's context."""
        ...
