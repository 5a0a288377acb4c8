"""What happens in a run, as values.

Two audiences read them. *Readers* (``GuardedStream.events()``) get the events marked reader-safe: none of them
holds a character that has not been released. *Observers* (telemetry, run records) get every event.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from guardrail.types import Attempt, ClaimVerdict, Outcome, Passage


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Base of all events; ``reader_safe`` says whether the reader of the answer may see it."""

    reader_safe: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(Event):
    """The run began (first read of the stream)."""

    run_id: str
    policy: str
    release: str
    scorer: str
    passages: int
    max_attempts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptStarted(Event):
    """The generator is about to be called."""

    attempt: int
    passage_ids: tuple[str, ...]
    released_chars: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Released(Event):
    """Checked text that the reader may see.

    Attributes:
        text: The text.
        start: Its offset in the delivered text.
        attempt: Where it comes from; 0 for the guard's own words (a refusal).
        verdict: The verdict of the segment, ``None`` for the guard's own words.
    """

    text: str = field(repr=False)
    start: int
    attempt: int
    verdict: ClaimVerdict | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RodeAlong(Event):
    """A generator chunk that carries more than text, once its attempt is delivered (``observe``: at once).

    Attributes:
        raw: The object that the generator produced, untouched.
        attempt: Where it comes from.
    """

    raw: Any = field(repr=False)
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Held(Event):
    """A claim did not pass; its text is not part of the event.

    Attributes:
        attempt: The attempt.
        start: Offset in the attempt's answer.
        end: Offset after the claim.
        verdict: Its verdict, without text.
    """

    attempt: int
    start: int
    end: int
    verdict: ClaimVerdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Retracted(Event):
    """Released text that the reader should take back (only with ``events(retractable=True)``).

    Attributes:
        start: Offset in the delivered text from which on text is void.
        attempt: The attempt that failed.
    """

    start: int
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Regenerating(Event):
    """Another attempt follows.

    Attributes:
        attempt: The attempt that failed.
        reason: Why.
        failed: How many claims failed.
    """

    attempt: int
    reason: str
    failed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished(Event):
    """The run ended. ``outcome`` holds no character that the reader was not given."""

    outcome: Outcome


# --- for observers only -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class StepStarted(Event):
    """A piece of work began: ``generate``, ``score``, ``rerank``, ``budget`` or ``limit``."""

    reader_safe: ClassVar[bool] = False

    step_id: int
    name: str
    attempt: int
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepEnded(Event):
    """The piece of work ended, for whatever reason; exactly one per :class:`StepStarted`."""

    reader_safe: ClassVar[bool] = False

    step_id: int
    attributes: Mapping[str, Any] = field(default_factory=dict)
    error: BaseException | None = None
    cancelled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked(Event):
    """A segment has a verdict (text included)."""

    reader_safe: ClassVar[bool] = False

    attempt: int
    verdict: ClaimVerdict


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptEnded(Event):
    """An attempt ended; exactly one per :class:`AttemptStarted`."""

    reader_safe: ClassVar[bool] = False

    attempt: Attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnded(Event):
    """The run ended, with everything that is known; exactly one per :class:`RunStarted`."""

    reader_safe: ClassVar[bool] = False

    outcome: Outcome
    question: str = field(default="", repr=False)
    passages: tuple[Passage, ...] = ()


__all__ = [
    "AttemptEnded",
    "AttemptStarted",
    "Checked",
    "Event",
    "Finished",
    "Held",
    "Regenerating",
    "Released",
    "Retracted",
    "RodeAlong",
    "RunEnded",
    "RunStarted",
    "StepEnded",
    "StepStarted",
]
