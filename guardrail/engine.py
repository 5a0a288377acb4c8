"""The attempt loop and the release decisions: the only file that knows the order of things."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from guardrail.attempt import Work
from guardrail.cancellation import cancelled_from_outside
from guardrail.channel import Channel
from guardrail.context import handed_back
from guardrail.deadline import Deadline
from guardrail.delivery import Delivery
from guardrail.errors import (
    DeadlineExceededError,
    GenerationError,
    GuardrailError,
    RateLimitedError,
    RerankingError,
    ScoringError,
)
from guardrail.events import (
    AttemptEnded,
    AttemptStarted,
    Event,
    Finished,
    Regenerating,
    RunEnded,
    RunStarted,
)
from guardrail.gate import Gate
from guardrail.limits.charging import Charges
from guardrail.pipeline import Pipeline
from guardrail.plan import RunPlan
from guardrail.policy import best_attempt, decide_answer, refusal_text
from guardrail.recorder import Recorder
from guardrail.rerank import choose_next
from guardrail.run_evidence import RunEvidence
from guardrail.scope import run_scope
from guardrail.types import (
    Attempt,
    ClaimVerdict,
    ContextState,
    FailedClaim,
    GenerationRequest,
    Outcome,
    OutcomeStatus,
    Passage,
    ReleaseMode,
    Timings,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _End:
    """How the run ends; ``raises`` is what the reader's iteration raises."""

    status: OutcomeStatus
    reason: str
    attempt: Attempt | None = None
    error: BaseException | None = None
    raises: bool = False


def _reason(error: GuardrailError) -> str:
    if isinstance(error, ScoringError):
        return "scoring_error"
    if isinstance(error, RateLimitedError):
        return "rate_limited"
    return "timeout" if isinstance(error, TimeoutError) else "generation_error"


_CLOSED = _End(status=OutcomeStatus.CANCELLED, reason="closed_by_reader")


class Run:
    """One guarded request.

    Args:
        plan: What to do.

    Attributes:
        events: Reader-safe events, in order; closed at the end, with the error if the run has one to raise.
        outcome: Set at the end, whatever the end was.
    """

    def __init__(self, plan: RunPlan) -> None:
        self.outcome: Outcome | None = None
        self._plan = plan
        self._recorder = Recorder(plan.observers)
        self._deadline = Deadline(plan.policy.timeout_s)
        self._out = Delivery(
            recorder=self._recorder,
            deadline=self._deadline,
            clock=plan.clock,
            whole_answers=plan.policy.formula == "reference",
            observing=self._observing,
        )
        self.events: Channel[Event] = self._out.events
        self._attempts: list[Attempt] = []
        self._works: dict[int, Work] = {}
        self._tried: list[tuple[str, ...]] = []
        self._failed: list[FailedClaim] = []
        self._repair = ""
        self._would_have = ""
        self._charges = Charges(
            limiter=plan.limiter,
            budget=plan.budget,
            key=plan.key,
            policy=plan.policy,
            clock=plan.clock,
            step=self._recorder.step,
        )
        self._started = 0.0
        self._evidence: RunEvidence | None = None
        self._pipeline: Pipeline | None = None
        self._gate: Gate | None = None

    async def execute(self) -> None:
        """Run to the end. Only cancellation is raised; every other end is in :attr:`outcome` and :attr:`events`."""
        plan = self._plan
        run_scope.set({})  # this is the run's own task, so nobody else's context changes
        self._started = plan.clock()
        self._recorder.notify(
            RunStarted(
                run_id=plan.run_id,
                policy=plan.policy.name,
                release=plan.release.value,
                scorer=plan.verifier.scorer,
                passages=len(plan.passages),
                max_attempts=plan.policy.max_attempts,
            )
        )
        end = _CLOSED
        self._evidence = evidence = RunEvidence(plan.passages)
        try:
            self._pipeline = self._make_pipeline(evidence)
            self._gate = Gate(plan=plan, delivery=self._out, recorder=self._recorder, evidence=evidence)
            end = await self._decide()
            await self._deliver(end)
            await self._out.events.drained()
        except asyncio.CancelledError as error:
            end = _CLOSED
            if not cancelled_from_outside():
                end = _End(status=OutcomeStatus.ERROR, reason="internal_error", error=error, raises=True)
            raise
        except Exception as error:  # a bug here or in something the user supplied: loud, never a silent end
            end = _End(status=OutcomeStatus.ERROR, reason="internal_error", error=error, raises=True)
        finally:
            evidence.close()
            self._finish(end)
            await self._charges.settled()

    def _make_pipeline(self, evidence: RunEvidence) -> Pipeline:
        plan = self._plan
        return Pipeline(
            generator=plan.generator,
            verifier=plan.verifier,
            policy=plan.policy,
            question=plan.question,
            context_state=plan.context_state,
            evidence=evidence,
            recorder=self._recorder,
            clock=plan.clock,
            pass_through=self._out.pass_through if self._observing else None,
        )

    @property
    def _observing(self) -> bool:
        return self._plan.release is ReleaseMode.OBSERVE

    # --- the loop -----------------------------------------------------------------------------------------------

    async def _decide(self) -> _End:
        """Find out how the run ends. Text that may leave before the end has left when this returns."""
        policy = self._plan.policy
        if policy.strict and self._plan.context_state is not ContextState.GIVEN and not self._observing:
            return _End(status=OutcomeStatus.REFUSED, reason="no_context")
        try:
            async with self._deadline:
                return await self._loop()
        except TimeoutError as timeout:
            if not self._deadline.expired:
                raise
            error = DeadlineExceededError(policy.timeout_s or 0.0)
            error.__cause__ = timeout
            return self._after_failure("timeout", error)

    async def _loop(self) -> _End:
        plan = self._plan
        selection = plan.passages[: plan.policy.context_size]
        number = 0
        while True:
            number += 1
            try:
                await self._charges.charge(number, timeout_s=self._deadline.remaining_s())
                attempt = await self._attempt(number, selection)
            except (GenerationError, RateLimitedError) as error:
                return self._after_failure(_reason(error), error)
            except ScoringError as error:
                return self._after_scoring_error(error)
            stop = self._why_stop(attempt)
            if stop is not None:
                return stop
            try:
                following = await self._next_selection(number, selection)
            except RerankingError as error:
                return self._exhausted("reranking_error", error)
            if following is None:
                return self._exhausted("context_exhausted")
            try:
                if not await self._charges.regenerate(number + 1):
                    return self._exhausted("regeneration_budget")
            except RateLimitedError as error:
                return self._exhausted("regeneration_budget", error)
            selection = following
            await self._announce_regeneration(attempt)

    def _why_stop(self, attempt: Attempt) -> _End | None:
        """What ends the loop after an attempt; ``None`` to regenerate."""
        policy = self._plan.policy
        if self._observing:
            return self._observed(attempt)
        if attempt.accepted:
            return _End(status=OutcomeStatus.ACCEPTED, reason=attempt.reason, attempt=attempt)
        if attempt.reason == "no_context":
            if attempt.complete and policy.no_context == "pass_marked":
                return _End(status=OutcomeStatus.BEST_ATTEMPT, reason="no_context", attempt=attempt)
            return _End(status=OutcomeStatus.REFUSED, reason="no_context")
        if attempt.reason == "scoring_error" and not self._works[attempt.number].failed:  # on_error="pass_marked"
            return _End(status=OutcomeStatus.ERROR, reason="scoring_error", attempt=attempt, error=attempt.error)
        if attempt.number >= policy.max_attempts:
            return self._exhausted("attempts_exhausted")
        if policy.stop_on_repeat and self._failed_before(attempt.number):
            return self._exhausted("same_claim_failed_twice")
        return None

    def _failed_before(self, number: int) -> bool:
        current = self._works[number].failed_wordings()
        return any(current & work.failed_wordings() for n, work in self._works.items() if n < number)

    def _observed(self, attempt: Attempt) -> _End:
        """Mode ``observe``: everything is out; record what a gate would have done."""
        if attempt.accepted:
            self._would_have = "accept"
        elif attempt.reason in ("claims_failed", "empty_answer", "delta_r_above_delta", "unsupported_language") and (
            self._plan.policy.max_attempts > 1
        ):
            self._would_have = "regenerate"
        else:
            self._would_have = "refuse"
        if attempt.reason == "scoring_error":
            return _End(status=OutcomeStatus.ERROR, reason=attempt.reason, attempt=attempt, error=attempt.error)
        status = OutcomeStatus.ACCEPTED if attempt.accepted else OutcomeStatus.BEST_ATTEMPT
        return _End(status=status, reason=attempt.reason, attempt=attempt)

    async def _announce_regeneration(self, attempt: Attempt) -> None:
        failed = len(self._works[attempt.number].failed)
        await self._out.send(Regenerating(attempt=attempt.number, reason=attempt.reason, failed=failed))
        if self._plan.retractable and self._out.ledger.length and not self._plan.generator.can_continue:
            self._repair = "retracted"
            await self._out.retract(attempt.number)

    async def _next_selection(self, number: int, shown: Sequence[Passage]) -> tuple[Passage, ...] | None:
        plan, evidence = self._plan, self._evidence
        assert evidence is not None
        with self._recorder.step("rerank", number) as found:
            selection = await asyncio.to_thread(
                choose_next,
                plan.reranker,
                question=plan.question,
                passages=evidence.passages,
                shown=tuple(shown),
                failed=tuple(self._works[number].failed),
                tried=tuple(self._tried),
            )
            found["passages"] = len(selection)
        evidence.add(selection)
        return selection or None

    # --- one attempt --------------------------------------------------------------------------------------------

    async def _attempt(self, number: int, selection: Sequence[Passage]) -> Attempt:
        plan = self._plan
        continues = bool(self._out.ledger.length) and plan.generator.can_continue
        live = plan.release is ReleaseMode.SENTENCE and (continues or not self._out.ledger.length)
        work = self._open_work(number, selection, continues=continues)
        work.appends = bool(self._out.ledger.length) and not live
        request = GenerationRequest(
            question=plan.question,
            passages=tuple(selection),
            context=handed_back(selection),
            attempt=number,
            released_text=self._out.ledger.text if continues else "",
            failed_claims=tuple(self._failed),
        )
        assert self._pipeline is not None
        assert self._gate is not None
        try:
            async with self._pipeline.open(work, request) as pieces:
                await self._gate.take(work, pieces, live=live)
            if work.complete:
                await self._judge(work)
                if work.accepted and live:
                    await self._out.ride(work)
        except GuardrailError as error:
            work.error = error
            work.reason = _reason(error)
            raise
        except asyncio.CancelledError:
            work.reason = "timeout" if self._deadline.expired else "cancelled"
            raise
        finally:
            attempt = self._close_work(work)
        return attempt

    def _open_work(self, number: int, selection: Sequence[Passage], *, continues: bool) -> Work:
        passage_ids = tuple(p.id for p in selection)
        self._tried.append(passage_ids)
        prefix: Sequence[ClaimVerdict] = ()
        if continues:
            self._repair = "continued"
            prefix = [v for v in self._attempts[-1].verdicts if v.segment.end <= self._out.ledger.length]
        work = Work(number=number, passage_ids=passage_ids, prefix=prefix, started=self._plan.clock())
        self._works[number] = work
        self._recorder.notify(
            AttemptStarted(attempt=number, passage_ids=passage_ids, released_chars=self._out.ledger.length)
        )
        return work

    def _close_work(self, work: Work) -> Attempt:
        decision = decide_answer(self._plan.policy, work.verdicts, self._plan.context_state)
        self._failed.extend(work.failed)
        self._charges.settle(work.usage)
        attempt = work.freeze(decision, now=self._plan.clock())
        self._attempts.append(attempt)
        self._recorder.notify(AttemptEnded(attempt=attempt))
        return attempt

    async def _judge(self, work: Work) -> None:
        """Decide about an attempt that was read to its end."""
        if self._plan.policy.formula == "reference":
            assert self._pipeline is not None
            work.whole = await self._pipeline.score_whole(work)
            work.accepted, work.reason = work.whole.accepted, work.whole.reason
        else:
            decision = decide_answer(self._plan.policy, work.verdicts, self._plan.context_state)
            work.accepted, work.reason = decision.accepted, decision.reason
        if work.adds_nothing:
            work.accepted, work.reason = False, "empty_answer"
        if work.reason == "empty_answer" and work.tool_calls and not work.text.strip():
            work.accepted, work.reason = True, "tool_calls"

    # --- endings ------------------------------------------------------------------------------------------------

    def _exhausted(self, reason: str, error: BaseException | None = None) -> _End:
        """No attempt passed: what the policy says."""
        if self._plan.policy.on_exhausted == "best":
            told = self._out.ledger.text
            best = best_attempt([a for a in self._attempts if a.complete and a.text.startswith(told)])
            if best is not None:
                return _End(status=OutcomeStatus.BEST_ATTEMPT, reason=reason, attempt=best, error=error)
        return _End(status=OutcomeStatus.REFUSED, reason=reason, error=error)

    def _after_failure(self, reason: str, error: GuardrailError) -> _End:
        """The generator, a limiter or the clock failed: an error, unless an earlier attempt came to a decision."""
        decided = [a for a in self._attempts if a.error is None and a.reason not in ("", "timeout", "cancelled")]
        if decided and not self._observing:
            return self._exhausted(reason, error)
        return _End(status=OutcomeStatus.ERROR, reason=reason, error=error, raises=True)

    def _after_scoring_error(self, error: ScoringError) -> _End:
        if self._plan.policy.on_error == "refuse" and not self._observing:
            return _End(status=OutcomeStatus.REFUSED, reason="scoring_error", error=error)
        return _End(status=OutcomeStatus.ERROR, reason="scoring_error", error=error, raises=True)

    async def _deliver(self, end: _End) -> None:
        """Give the reader what the end calls for and what has not left yet."""
        if self._observing:
            return
        told = bool(self._out.ledger.length)
        if end.attempt is not None:
            work = self._works[end.attempt.number]
            if work.appends:
                self._repair = "appended"
            await self._out.rest_of(end.attempt, work)
        elif end.status is OutcomeStatus.REFUSED:
            policy, attempts = self._plan.policy, len(self._attempts)
            question = self._plan.question
            await self._out.refuse(
                refusal_text(policy, reason=end.reason, attempts=attempts, question=question, tail=told)
            )

    def _finish(self, end: _End) -> None:
        """Make the outcome and tell everybody; synchronous, so that no cancellation can come between."""
        plan = self._plan
        outcome = Outcome(
            run_id=plan.run_id,
            status=end.status,
            reason=end.reason,
            text=self._out.received.text,
            attempts=tuple(self._attempts),
            delivered_attempt=None if end.attempt is None else end.attempt.number,
            receipt=self._out.receipt(end.attempt),
            policy=plan.policy.name,
            delta=plan.policy.delta,
            release=plan.release,
            repair=self._repair,
            scorer=plan.verifier.scorer,
            context_state=plan.context_state,
            would_have=self._would_have,
            degraded=self._charges.degraded,
            error=end.error,
            timings=self._timings(end),
        )
        self.outcome = outcome
        passages = plan.passages if self._evidence is None else self._evidence.passages
        self._recorder.notify(RunEnded(outcome=outcome, question=plan.question, passages=passages))
        if end.raises:
            if isinstance(end.error, GuardrailError):
                end.error.outcome = outcome
            self.events.close(end.error)
            return
        if end.status is not OutcomeStatus.CANCELLED:
            self.events.put_nowait(Finished(outcome=outcome.for_reader()))
        self.events.close()

    def _timings(self, end: _End) -> Timings:
        now = self._plan.clock()
        work = None if end.attempt is None else self._works[end.attempt.number]
        waited = 0.0
        if work is not None and work.generated_at is not None and work.scored_at is not None:
            waited = max(0.0, work.scored_at - work.generated_at)
        first = self._out.first_release
        return Timings(
            total_ms=(now - self._started) * 1000,
            first_release_ms=None if first is None else (first - self._started) * 1000,
            scoring_ms=0.0 if self._pipeline is None else self._pipeline.scoring_s * 1000,
            limiter_ms=self._charges.waited_s * 1000,
            added_ms=waited * 1000,
        )
