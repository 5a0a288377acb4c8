"""What leaves: the one place where text reaches the reader, with the receipt that says what was known about it."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from guardrail.attempt import Work, says_nothing_new, words_of
from guardrail.channel import Channel
from guardrail.deadline import Deadline
from guardrail.events import Event, Held, Released, Retracted, RodeAlong
from guardrail.ledger import Ledger
from guardrail.protocols import Clock
from guardrail.recorder import Recorder
from guardrail.scoring.claims import leans_on_context
from guardrail.text.marks import is_only_marks
from guardrail.types import Attempt, Chunk, ClaimVerdict, ReceiptRange, ReceiptStatus

_EVENTS_AHEAD = 8


class Delivery:
    """Sends events to observers and the reader, and keeps the ledger.

    Args:
        recorder: Observers.
        deadline: Stands still while the reader takes their time.
        clock: Monotonic seconds.
        whole_answers: Whether segments have no verdict of their own (reference formula).
        observing: Whether text leaves before it is checked (mode ``observe``).

    Attributes:
        events: Reader-safe events, in order.
        ledger: What was released, read or not.
        received: What the reader has taken.
        first_release: Clock reading of the first text.
    """

    def __init__(
        self, *, recorder: Recorder, deadline: Deadline, clock: Clock, whole_answers: bool, observing: bool
    ) -> None:
        self.events: Channel[Event] = Channel(maxsize=_EVENTS_AHEAD, on_get=self._received)
        self.ledger = Ledger()
        self.received = Ledger()
        self.first_release: float | None = None
        self._recorder = recorder
        self._deadline = deadline
        self._clock = clock
        self._whole_answers = whole_answers
        self._observing = observing
        self._told: list[tuple[str, ...]] = []
        self._receipts: deque[tuple[ReceiptStatus, str]] = deque()

    async def send(self, event: Event) -> None:
        """Tell observers and the reader; the time the reader takes does not count against the deadline."""
        self._recorder.notify(event)
        if not self.events.full:
            self.events.put_nowait(event)
            return
        with self._deadline.paused():
            await self.events.put(event)

    def _received(self, event: Event) -> None:
        if isinstance(event, Released):
            status, reason = self._receipts.popleft()
            self.received.add(event.text, status=status, reason=reason, attempt=event.attempt)
        elif isinstance(event, Retracted):
            self.received.clear()

    async def release(self, verdict: ClaimVerdict, attempt: int) -> None:
        """Release one segment."""
        status, reason = self._standing(verdict)
        self._told.append(words_of(verdict.segment.text))
        await self._give(verdict.segment.text, status=status, reason=reason, attempt=attempt, verdict=verdict)

    async def ride(self, work: Work) -> None:
        """Release what rode on the chunks of an attempt that is delivered: nobody acts on a rejected tool call."""
        rides, work.rides = work.rides, []
        for raw in rides:
            await self.send(RodeAlong(raw=raw, attempt=work.number))

    async def hold(self, verdict: ClaimVerdict, attempt: int) -> None:
        """Say that a segment is held back, without a character of it."""
        segment = verdict.segment
        await self.send(Held(attempt=attempt, start=segment.start, end=segment.end, verdict=verdict.without_text()))

    async def retract(self, attempt: int) -> None:
        """Tell the reader to take everything back."""
        self.ledger.clear()
        self._told.clear()
        await self.send(Retracted(start=0, attempt=attempt))

    async def pass_through(self, text: str, chunk: Chunk, attempt: int) -> None:
        """Mode ``observe``: everything at once."""
        if text:
            await self._give(text, status=ReceiptStatus.NOT_CHECKED, reason="observe", attempt=attempt)
        if chunk.rides_along:
            await self.send(RodeAlong(raw=chunk.raw, attempt=attempt))

    async def rest_of(self, attempt: Attempt, work: Work) -> None:
        """Release what the reader does not have of an attempt that was held back.

        If the attempt begins with what is out, the rest follows. If not, only sentences follow that say something new.
        """
        told = self.ledger.text
        remaining: Sequence[ClaimVerdict]
        if attempt.text.startswith(told):
            remaining = [v for v in attempt.verdicts if v.segment.start >= len(told)]
        else:
            remaining = self._new_in(attempt.verdicts)
            if remaining and not told[-1:].isspace():
                await self._give(" ", status=ReceiptStatus.CHECKED_BEFORE, reason="blank", attempt=0)
        for verdict in remaining:
            await self.release(verdict, attempt.number)
        await self.ride(work)

    def _new_in(self, verdicts: Sequence[ClaimVerdict]) -> list[ClaimVerdict]:
        """Sentences that say something new, without those that lean on a sentence which is left out."""
        new: list[ClaimVerdict] = []
        left_out = False
        for verdict in verdicts:
            words = words_of(verdict.segment.text)
            if left_out and is_only_marks(verdict.segment.text):
                continue
            if words and (says_nothing_new(words, self._told) or (left_out and leans_on_context(verdict.segment.body))):
                left_out = True
            else:
                left_out = left_out and not words
                new.append(verdict)
        return new

    async def refuse(self, text: str) -> None:
        """The guard's own words, after what is out, if anything is."""
        told = self.ledger.text
        gap = "\n\n" if told and not told.endswith("\n") else ""
        await self._give(gap + text, status=ReceiptStatus.CHECKED_BEFORE, reason="refusal", attempt=0)

    def receipt(self, attempt: Attempt | None) -> tuple[ReceiptRange, ...]:
        """What is known about the delivered text; ``attempt`` is the one that was delivered."""
        if not self._observing or attempt is None:
            return self.received.receipt
        ranges = []
        for verdict in attempt.verdicts:
            status, reason = self._standing(verdict)
            start, end = verdict.segment.start, verdict.segment.end
            end = min(end, self.received.length)
            if start < end:
                ranges.append(ReceiptRange(start=start, end=end, status=status, reason=reason, attempt=attempt.number))
        covered = ranges[-1].end if ranges else 0
        if covered < self.received.length:  # the attempt ended before all of its text was cut and checked
            ranges.append(
                ReceiptRange(
                    start=covered,
                    end=self.received.length,
                    status=ReceiptStatus.NOT_CHECKED,
                    reason=attempt.reason,
                    attempt=attempt.number,
                )
            )
        return tuple(ranges)

    def _standing(self, verdict: ClaimVerdict) -> tuple[ReceiptStatus, str]:
        checked = ReceiptStatus.CHECKED_AFTER if self._observing else ReceiptStatus.CHECKED_BEFORE
        if verdict.verdict is not None:
            return checked, verdict.verdict.value
        if not verdict.segment.kind.checked:
            return checked, verdict.segment.kind.value
        if self._whole_answers:
            return checked, "whole_answer"
        return ReceiptStatus.NOT_CHECKED, verdict.reason

    async def _give(
        self, text: str, *, status: ReceiptStatus, reason: str, attempt: int, verdict: ClaimVerdict | None = None
    ) -> None:
        start = self.ledger.add(text, status=status, reason=reason, attempt=attempt)
        self._receipts.append((status, reason))
        if self.first_release is None:
            self.first_release = self._clock()
        await self.send(Released(text=text, start=start, attempt=attempt, verdict=verdict))
