"""One attempt while it runs: what was read, what was checked, what rides along."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from guardrail.policy import AnswerDecision
from guardrail.reasons import why_failed
from guardrail.scoring.claims import leans_on_context
from guardrail.text.marks import is_only_marks, without_marks
from guardrail.text.tokens import fold, tokens
from guardrail.types import Attempt, Chunk, ClaimVerdict, FailedClaim, Segment, SegmentKind, VerdictLabel, Verification

_OPENING = "\"'([*_"  # not ".": ".5" is not "5"
_PUNCTUATION = ".,;:!?…\"'()[]*_。！？、"
# The same sentence may come as an item of a list; "5. Mai" and "- 5" begin with what they say.
_ITEM = re.compile(r"\A\s*(?:[-+*•>]\s+)+(?=[*_\"'“„«(]*[^\W\d_])")


_SAID_ONCE = (SegmentKind.GREETING, SegmentKind.HEADING, SegmentKind.QUESTION)
_SENTENCE_WORDS = 3  # a claim of fewer words ("Yes.") may stand twice; a greeting or heading may not


class Piece:
    """A segment on its way from the reader to the gate, with the task that scores it.

    Args:
        segment: The segment, with offsets in the generator's output.
        task: Scores a batch of segments; ``None`` if the segment needs no scoring.
        index: Position of the segment in the batch.
    """

    __slots__ = ("index", "segment", "task")

    def __init__(self, segment: Segment, task: asyncio.Task[list[ClaimVerdict]] | None = None, index: int = 0) -> None:
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
        self.rides: list[Any] = []
        self.usage: dict[str, int] = {}
        self.tool_calls = False
        self.as_is = False
        self.read_chars = 0
        self.generated_at: float | None = None
        self.scored_at: float | None = None
        self.appends = False  # begun behind text that it does not continue
        self.abandoned = False
        self.complete = False
        self.accepted = False
        self.reason = ""
        self.error: BaseException | None = None
        self.whole: Verification | None = None
        self._length = sum(len(v.segment.text) for v in prefix)
        wordings = [w for v in prefix if (w := words_of(v.segment.text))]
        exempt = {words_of(v.segment.text) for v in prefix if v.segment.kind in _SAID_ONCE}
        self._prefix = frozenset(w for w in wordings if len(tokens(" ".join(w))) >= _SENTENCE_WORDS or w in exempt)
        self._last = wordings[-1] if wordings else ()
        self._dropped: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The answer so far, the continued prefix included."""
        return "".join(v.segment.text for v in self.verdicts)

    def note(self, chunk: Chunk, text: str) -> None:
        """Record what a chunk carries besides its text, which has become ``text``."""
        self.read_chars += len(text)
        if chunk.usage is not None:
            self.usage = dict(chunk.usage)
        self.tool_calls = self.tool_calls or chunk.tool_calls
        self.as_is = self.as_is or chunk.as_is
        if chunk.rides_along:
            self.rides.append(chunk.raw)

    def take(self, verdict: ClaimVerdict) -> ClaimVerdict | None:
        """Append a verdict in answer coordinates.

        A sentence that stands in the continued prefix is dropped (``None``): nobody reads a sentence twice. A sentence
        that leans on a dropped one ("It …") would lean on another sentence in the reader's text, so it fails.
        """
        segment = verdict.segment
        wording = words_of(segment.text)
        if wording and wording in self._prefix:
            self._dropped = wording
            return None
        if self._dropped and is_only_marks(segment.text):  # they cite for the sentence that was dropped
            return None
        if self._dropped and self._dropped != self._last and leans_on_context(segment.body):
            verdict = replace(verdict, verdict=VerdictLabel.UNVERIFIABLE, entailment=0.0, delta_r=1.0)
        if wording:
            self._last, self._dropped = wording, ()
        moved = replace(segment, start=self._length, end=self._length + len(segment.text))
        placed = replace(verdict, segment=moved)
        self._length = moved.end
        self.verdicts.append(placed)
        return placed

    @property
    def adds_nothing(self) -> bool:
        """Whether the attempt has no visible text of its own, behind no claim that passed."""
        own = self.verdicts[self.prefix_length :]
        prefix = self.verdicts[: self.prefix_length]
        return not any(v.segment.text.strip() for v in own) and not any(v.checked for v in prefix)

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

    def failed_wordings(self) -> set[tuple[str, ...]]:
        """The failed claims, comparable between attempts; of one that failed for its citations these are a part."""
        return {
            (() if claim.verdict is VerdictLabel.SUPPORTED else words_of(claim.text)) or tuple(claim.text.split())
            for claim in self.failed
        }

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


def words_of(text: str) -> tuple[str, ...]:
    """The words of a sentence for telling repetitions; signs and currencies stay, as "-5" is not "5".

    Citation marks do not count: another attempt may cite the same sentence by another number.
    """
    said = _ITEM.sub("", without_marks(text), count=1)
    words = (word.rstrip(_PUNCTUATION).lstrip(_OPENING) for word in fold(said).casefold().split())
    return tuple(word for word in words if word)


def says_nothing_new(words: Sequence[str], told: Sequence[Sequence[str]]) -> bool:
    """Whether a sentence repeats one that the reader has: the same words, or a part of them in the same order."""
    return any(_is_subsequence(words, sentence) for sentence in told)


def _is_subsequence(words: Sequence[str], of: Sequence[str]) -> bool:
    if len(words) > len(of):
        return False
    remaining = iter(of)
    return all(word in remaining for word in words)
