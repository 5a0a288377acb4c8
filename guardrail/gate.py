"""Takes the segments of an attempt in order, waits for each verdict, and releases or holds."""

from __future__ import annotations

import asyncio

from guardrail.attempt import Piece, Work
from guardrail.cancellation import cancelled_from_outside
from guardrail.channel import Channel, ChannelEnd
from guardrail.delivery import Delivery
from guardrail.errors import ScoringError
from guardrail.events import Checked
from guardrail.plan import RunPlan
from guardrail.recorder import Recorder
from guardrail.run_evidence import RunEvidence
from guardrail.types import ClaimVerdict, ContextState, ReleaseMode, SegmentKind


class Gate:
    """The gate of one run.

    Args:
        plan: The policy and the question.
        delivery: Where released text goes.
        recorder: Observers.
        evidence: What is checked against.
    """

    def __init__(self, *, plan: RunPlan, delivery: Delivery, recorder: Recorder, evidence: RunEvidence) -> None:
        self._plan = plan
        self._out = delivery
        self._recorder = recorder
        self._evidence = evidence
        self._observing = plan.release is ReleaseMode.OBSERVE
        self._asked_again = False

    async def take(self, work: Work, pieces: Channel[Piece], *, live: bool) -> None:
        """Take the segments of one attempt.

        Args:
            work: Gets verdicts, failures, and the reason if the attempt is given up before its end.
            pieces: The segments, in order.
            live: Whether what passes is released at once; else it is only recorded.

        Raises:
            ScoringError: If the checker failed and the policy does not deliver unchecked text.
            GenerationError: If the generator failed; what came before it has been taken.
        """
        while True:
            try:
                piece = await pieces.get()
            except ChannelEnd:
                work.complete = not work.reason
                return
            verdict = work.take(await self._verdict(work, piece))
            if verdict is None:
                continue
            self._recorder.notify(Checked(attempt=work.number, verdict=verdict))
            if await self._holds(work, verdict):
                await self._out.hold(verdict, work.number)
                if work.reason:
                    return
            elif live and not work.failed:
                await self._out.release(verdict, work.number)

    async def _holds(self, work: Work, verdict: ClaimVerdict) -> bool:
        """Whether a segment must not leave; sets ``work.reason`` if the rest of the attempt is of no use."""
        if await self._asks_again(work, verdict):
            work.reason = "avoidable_abstention"
            return True
        if self._may_pass(verdict):
            return False
        work.fail(verdict)
        if not self._observing and self._plan.policy.on_exhausted != "best":
            work.reason = self._why_held(verdict)
        return True

    def _why_held(self, verdict: ClaimVerdict) -> str:
        if self._plan.context_state is not ContextState.GIVEN:
            return "no_context"
        unknown = verdict.language is not None and self._plan.policy.on_unknown_language == "fail"
        return "unsupported_language" if unknown else "claims_failed"

    async def _verdict(self, work: Work, piece: Piece) -> ClaimVerdict:
        scorer = self._plan.verifier.scorer
        if piece.task is None:
            return ClaimVerdict.unscored(piece.segment, "kind", scorer)
        try:
            return (await piece.task)[piece.index]
        except asyncio.CancelledError as error:
            if cancelled_from_outside():
                raise
            raise ScoringError("scoring was cancelled from inside", scorer=scorer) from error
        except ScoringError as error:
            if self._plan.policy.on_error != "pass_marked" and not self._observing:
                raise
            work.error = error
            return ClaimVerdict.unscored(piece.segment, "scoring_error", scorer)

    async def _asks_again(self, work: Work, verdict: ClaimVerdict) -> bool:
        """Whether an abstention is worth one more attempt, because the passages plainly contain the answer."""
        plan = self._plan
        if (
            verdict.segment.kind is not SegmentKind.REFUSAL
            or self._observing
            or self._asked_again
            or work.number >= plan.policy.max_attempts
            or any(v.checked for v in work.verdicts)
        ):
            return False
        index = await self._evidence.index()
        self._asked_again = await asyncio.to_thread(index.plainly_answers, plan.question)
        return self._asked_again

    def _may_pass(self, verdict: ClaimVerdict) -> bool:
        policy = self._plan.policy
        if policy.formula == "reference" or verdict.reason == "scoring_error":
            return True
        if verdict.reason == "no_context":
            return policy.no_context == "pass_marked"
        return policy.passes(verdict)
