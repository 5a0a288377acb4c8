"""What a user may supply: an entailment model, a reranker, a limiter, a budget, an observer, a clock."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

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


@runtime_checkable
class SelectiveEntailment(Protocol):
    """An entailment model for which some scores cost more, and which is told where they matter.

    It is an :class:`Entailment`; whoever knows which pairs can decide something calls :meth:`score_selected` instead.
    """

    @property
    def model_id(self) -> str:
        """As :attr:`Entailment.model_id`."""
        ...

    async def score(self, pairs: Sequence[Pair]) -> Sequence[EntailmentScore]:
        """As :meth:`Entailment.score`; every pair may matter."""
        ...

    async def score_selected(self, pairs: Sequence[Pair], decisive: Sequence[bool]) -> Sequence[EntailmentScore]:
        """As :meth:`Entailment.score`.

        Args:
            pairs: The pairs.
            decisive: Per pair, whether a better score can change what is decided.
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
            passages: All passages of the request, and those that were retrieved again.
            shown: The selection of the attempt that failed.
            failed: The claims that failed in it.
            tried: Id sequences of every selection that a generator was shown.

        Returns:
            A selection whose id sequence is not in ``tried``, or ``None`` if there is none left. Passages with ids that
            are not known were retrieved again: from now on answers are checked against them as well. An excerpt keeps
            the id of its passage, with ``#`` and a suffix, and is no new evidence.
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
        source: Who decided: ``"none"`` (no limit), ``"local"``, ``"redis"``, or ``"open"`` and ``"closed"`` for a rule
            that takes the place of a limiter which cannot be reached.
        degraded: Why the decision is not the one that was configured, for example ``"redis_timeout"``; empty if it is.
        limit: The limit that refused, in words; empty if none did.
        reservation: What :meth:`SettlingLimiter.settle` needs to find the charge again; opaque.
    """

    allowed: bool
    waited_s: float = 0.0
    retry_after_s: float | None = None
    remaining: float | None = None
    source: str = "none"
    degraded: str = ""
    limit: str = ""
    reservation: Any = field(default=None, repr=False, compare=False)


class RateLimiter(Protocol):
    """Charges generator calls against limits."""

    async def acquire(self, key: str, cost: float = 1.0, timeout_s: float | None = None) -> Decision:
        """Charge ``cost`` to ``key``, waiting up to ``timeout_s`` seconds.

        Cancellation while waiting charges nothing.
        """
        ...


@runtime_checkable
class SettlingLimiter(Protocol):
    """A limiter that also counts tokens: it reserves an estimate before a call and learns the number after it."""

    async def acquire(self, key: str, cost: float = 1.0, timeout_s: float | None = None) -> Decision:
        """As :meth:`RateLimiter.acquire`; the decision carries a reservation."""
        ...

    async def settle(self, decision: Decision, tokens: float) -> None:
        """Replace the tokens that a decision reserved by those that were used.

        It never waits for room: a call that used more than was reserved has happened, and what it used delays later
        ones. Raises nothing if the charge cannot be found any more.
        """
        ...


class Budget(Protocol):
    """Bounds how many regenerations there are beside first attempts, so that failures do not multiply the load."""

    async def first(self, key: str) -> None:
        """Count a first attempt of ``key``."""
        ...

    async def take(self, key: str, attempt: int) -> Decision:
        """Ask for attempt number ``attempt``, 2 or later, and count it if it is allowed.

        It never waits for room. When little is left, higher attempts are refused before lower ones.
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
