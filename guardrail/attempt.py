"""One attempt while it runs: what was read, what was checked, what rides along."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from guardrail.policy import AnswerDecision, why_failed
from guardrail.text.tokens import tokens
from guardrail.types import Attempt, Chunk, ClaimVerdict, FailedClaim, Segment, Verification


class Piece:
    """A segment on its way from the reader to the gate, with the task that scores it.

    Args:
        segment: The segment, with offsets in the generator's output; ``None`` only wakes the gate up.
        task: Scores a batch of segments; ``None`` if the segment needs no scoring.
        index: Position of the segment in the batch.
    """

    __slots__ = ("index", "segment", "task")

    def __init__(
        self, segment: Segment | None, task: asyncio.Task[list[ClaimVerdict]] | None = None, index: int = 0
    ) -> None:
        self.segment = segment
        self.task = task
        self.index = index


class Work:
    """The state of one attempt. Offsets of segments are turned from generator output into answer coordinates.

    Args:
        number: The attempt.
        passage_ids: The selection the generator is shown.
        prefix: Verdicts of checked text that this attempt continues.
        started: Clock reading.
    """

    def __init__(
        self, *, number: int, passage_ids: tuple[str, ...], prefix: Sequence[ClaimVerdict], started: float
    ) -> None:
        self.number = number
        self.passage_ids = passage_ids
        self.started = started
        self.prefix_length = len(prefix)
        self.verdicts: list[ClaimVerdict] = list(prefix)
        self.failed: list[FailedClaim] = []
        self.tasks: set[asyncio.Task[list[ClaimVerdict]]] = set()
        self.rides: deque[tuple[int, Any]] = deque()
        self.usage: dict[str, int] = {}
        self.tool_calls = False
        self.read_chars = 0
        self.passed_chars = 0
        self.generated_at: float | None = None
        self.appends = False  # begun behind text that it does not continue
        self.abandoned = False
        self.complete = False
        self.accepted = False
        self.reason = ""
        self.error: BaseException | None = None
        self.whole: Verification | None = None
        self._length = sum(len(v.segment.text) for v in prefix)
        self._prefix = {_identity(v.segment.text) for v in prefix if v.segment.text.strip()}

    @property
    def text(self) -> str:
        """The answer so far, the continued prefix included."""
        return "".join(v.segment.text for v in self.verdicts)

    def note(self, chunk: Chunk, text: str) -> None:
        """Record what a chunk carries besides its text, which has become ``text``."""
        self.read_chars += len(text)
        if chunk.usage is not None:
            self.usage = dict(chunk.usage)
        if chunk.tool_calls:
            self.tool_calls = True
        if chunk.rides_along:
            self.rides.append((self.read_chars, chunk.raw))

    def take(self, verdict: ClaimVerdict) -> ClaimVerdict | None:
        """Append a verdict in answer coordinates; ``None`` if it repeats a sentence of the continued prefix."""
        segment = verdict.segment
        self.passed_chars = segment.end
        if self._prefix and _identity(segment.text) in self._prefix:
            return None
        moved = replace(segment, start=self._length, end=self._length + len(segment.text))
        placed = replace(verdict, segment=moved)
        self._length = moved.end
        self.verdicts.append(placed)
        return placed

    def fail(self, verdict: ClaimVerdict) -> None:
        """Record a claim that did not pass."""
        self.failed.append(
            FailedClaim(
                text=verdict.segment.body,
                verdict=verdict.verdict,
                why=why_failed(verdict),
                delta_r=verdict.delta_r,
                attempt=self.number,
                evidence=verdict.evidence,
                supporting=verdict.supporting,
                contradicting=verdict.contradicting,
            )
        )

    def failed_identities(self) -> set[str]:
        """The failed claims, comparable between attempts."""
        return {_identity(claim.text) for claim in self.failed}

    def due_rides(self, *, everything: bool) -> list[Any]:
        """What may follow now that all text up to ``passed_chars`` was released."""
        due = []
        while self.rides and (everything or self.rides[0][0] <= self.passed_chars):
            due.append(self.rides.popleft()[1])
        return due

    def freeze(self, decision: AnswerDecision, *, now: float) -> Attempt:
        """The attempt as a value."""
        whole = self.whole
        return Attempt(
            number=self.number,
            text=self.text,
            verdicts=tuple(self.verdicts),
            passage_ids=self.passage_ids,
            accepted=self.accepted,
            complete=self.complete,
            reason=self.reason,
            delta_r=decision.delta_r if whole is None else whole.delta_r,
            worst_delta_r=decision.worst_delta_r if whole is None else whole.worst_delta_r,
            usage=self.usage,
            error=self.error,
            duration_ms=(now - self.started) * 1000,
        )


def _identity(text: str) -> str:
    return " ".join(tokens(text)) or text.strip()


def says_nothing_new(text: str, told: Sequence[str]) -> bool:
    """Whether a sentence repeats one that the reader has: the same words, or a part of them in the same order."""
    words = tokens(text)
    return any(_is_subsequence(words, tokens(sentence)) for sentence in told)


def _is_subsequence(words: Sequence[str], of: Sequence[str]) -> bool:
    remaining = iter(of)
    return all(word in remaining for word in words)
