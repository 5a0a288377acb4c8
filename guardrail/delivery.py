"""What leaves: the one place where text reaches the reader, with the receipt that says what was known about it."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from guardrail.attempt import Work, says_nothing_new
from guardrail.channel import Channel
from guardrail.deadline import Deadline
from guardrail.events import Event, Held, Released, Retracted, RodeAlong
from guardrail.ledger import Ledger
from guardrail.protocols import Clock
from guardrail.recorder import Recorder
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
        self._told: list[str] = []
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
        self._told.append(verdict.segment.body)
        await self._give(verdict.segment.text, status=status, reason=reason, attempt=attempt, verdict=verdict)

    async def ride(self, work: Work, *, everything: bool = False) -> None:
        """Release what rode on chunks whose text has been released."""
        for raw in work.due_rides(everything=everything):
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
            remaining = [v for v in attempt.verdicts if not says_nothing_new(v.segment.body, self._told)]
            if remaining and not told[-1:].isspace():
                await self._give(" ", status=ReceiptStatus.CHECKED_BEFORE, reason="blank", attempt=0)
        for verdict in remaining:
            await self.release(verdict, attempt.number)
            work.passed_chars = verdict.segment.end
            await self.ride(work)
        await self.ride(work, everything=True)

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
            ranges.append(ReceiptRange(start=start, end=end, status=status, reason=reason, attempt=attempt.number))
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
