"""From a generator's stream to segments with verdicts under way: the concurrent part of an attempt.

One task per attempt opens, iterates and closes the generator's stream, cuts it into segments and starts scoring them
while the next are generated. Its output is bounded: when nobody takes segments, the generator is not read.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from functools import reduce
from typing import Any, TypeVar

from guardrail.attempt import Piece, Work
from guardrail.channel import Channel
from guardrail.errors import (
    GenerationError,
    GenerationTimeoutError,
    GuardrailError,
    ScoringError,
    ScoringTimeoutError,
)
from guardrail.generation import BoundGenerator
from guardrail.pacing import Pace
from guardrail.policy import Policy
from guardrail.protocols import Clock
from guardrail.recorder import Recorder
from guardrail.run_evidence import RunEvidence
from guardrail.scoring.claims import Preceding, needs_check
from guardrail.scoring.evidence import EvidenceIndex
from guardrail.scoring.verifier import START, Verifier
from guardrail.text.segmenter import Segmenter
from guardrail.text.surrogates import SurrogateJoiner
from guardrail.types import (
    Chunk,
    CitationStatus,
    ClaimVerdict,
    ContextState,
    GenerationRequest,
    Segment,
    Verification,
)

T = TypeVar("T")

_log = logging.getLogger("guardrail")

_SEGMENTS_AHEAD = 8
_BATCH = 8
_CLOSE_GRACE_S = 2.0
_CUT_CHARS = 4_000
_CHUNKS_PER_TURN = 64
_UNBOUNDED = 1 << 60
_calls = Pace(4)

PassThrough = Callable[[str, Chunk, int], Awaitable[None]]


class Pipeline:
    """Reads generators and scores segments for one run.

    Args:
        generator: The generator.
        verifier: What scores.
        policy: Limits.
        question: The user's question.
        context_state: Whether there is something to check against.
        evidence: What is checked against.
        recorder: Observers.
        clock: Monotonic seconds.
        pass_through: In mode ``observe``: called with every chunk before it is checked.
    """

    def __init__(
        self,
        *,
        generator: BoundGenerator,
        verifier: Verifier,
        policy: Policy,
        question: str,
        context_state: ContextState,
        evidence: RunEvidence,
        recorder: Recorder,
        clock: Clock,
        pass_through: PassThrough | None = None,
    ) -> None:
        self.scoring_s = 0.0
        self._generator = generator
        self._verifier = verifier
        self._policy = policy
        self._question = question
        self._state = context_state
        self._evidence = evidence
        self._recorder = recorder
        self._clock = clock
        self._pass_through = pass_through

    @asynccontextmanager
    async def open(self, work: Work, request: GenerationRequest) -> AsyncIterator[Channel[Piece]]:
        """Run one generator call; on exit its stream is closed and nothing of it runs any more.

        Args:
            work: Gets what the chunks carry besides text.
            request: What to generate from.

        Yields:
            The segments in order; the channel ends with the generator, or with its error.
        """
        # In mode observe the text is out already: checking must not slow it down.
        ahead = _SEGMENTS_AHEAD if self._pass_through is None else _UNBOUNDED
        pieces: Channel[Piece] = Channel(maxsize=ahead)
        reader = asyncio.create_task(self._read(work, request, pieces), name=f"guardrail-attempt-{work.number}")
        try:
            yield pieces
        finally:
            work.abandoned = True
            await _settle({reader, *work.tasks})

    async def score_whole(self, work: Work) -> Verification:
        """Score a whole answer with the reference formula.

        Raises:
            ScoringError: If the checker fails or takes too long.
        """
        segments = [v.segment for v in work.verdicts]

        async def score() -> Verification:
            return await self._verifier.verify_reference(work.text, segments, await self._evidence.index(), self._state)

        with self._recorder.step("score", work.number, claims=1) as found:
            whole = await self._timed(work, score())
            found["delta_r"] = whole.delta_r
        return whole

    async def _read(self, work: Work, request: GenerationRequest, pieces: Channel[Piece]) -> None:
        failure: BaseException | None = None
        try:
            with self._recorder.step("generate", work.number) as found:
                try:
                    await self._read_chunks(work, request, pieces)
                finally:
                    found |= {"chars": work.read_chars, **work.usage}
        except asyncio.CancelledError:
            failure = GenerationError("the generator was cancelled from inside", attempt=work.number)
            raise
        except (KeyboardInterrupt, SystemExit) as error:
            failure = error
            raise
        except Exception as error:
            failure = error
        except BaseException as error:  # a generator may end with anything; only a normal end is the end of an answer
            failure = GenerationError(f"the generator raised {type(error).__name__}", attempt=work.number)
            failure.__cause__ = error
        finally:
            pieces.close(failure)  # first of all: nothing that follows may keep the gate waiting
            work.generated_at = self._clock()

    async def _read_chunks(self, work: Work, request: GenerationRequest, pieces: Channel[Piece]) -> None:
        policy = self._policy
        segmenter = Segmenter(max_chars=policy.max_segment_chars)
        joiner = SurrogateJoiner()
        await _calls.turn()  # many may come together from a limiter or a store that was slow
        silence = asyncio.timeout(policy.first_token_timeout_s)
        now = asyncio.get_running_loop().time
        before = reduce(Preceding.after, (verdict.segment for verdict in work.verdicts), START)  # what it continues
        limit, received = "first_token_timeout_s", 0
        try:
            async with silence, aclosing(self._generator.chunks(request)) as chunks:
                async for chunk in chunks:
                    received += 1
                    if received % _CHUNKS_PER_TURN == 0:  # a generator that never waits must not starve the loop
                        await asyncio.sleep(0)
                    if work.abandoned:  # the generator swallowed the cancellation and went on
                        return
                    if silence.expired():  # the same, for the cancellation by the limit
                        raise TimeoutError
                    silence.reschedule(None)
                    limit = "token_timeout_s"
                    text = joiner.feed(chunk.text)
                    work.note(chunk, text)
                    if self._pass_through is not None:
                        await self._pass_through(text, chunk, work.number)
                    before = await self._cut(work, segmenter, text, pieces, before)
                    if work.read_chars > policy.max_answer_chars:
                        work.reason = "too_long"
                        return
                    if policy.token_timeout_s is not None:
                        silence.reschedule(now() + policy.token_timeout_s)
        except TimeoutError as timeout:
            if not silence.expired():
                raise
            raise GenerationTimeoutError(limit, getattr(policy, limit), attempt=work.number) from timeout
        rest = joiner.flush()
        if rest and self._pass_through is not None:
            await self._pass_through(rest, Chunk(text=rest), work.number)
        before = await self._cut(work, segmenter, rest, pieces, before)
        await self._submit(work, segmenter.flush(), pieces, before)

    async def _cut(
        self, work: Work, segmenter: Segmenter, text: str, pieces: Channel[Piece], before: Preceding
    ) -> Preceding:
        """Cut text into segments; a very long chunk in steps, so that nobody else waits for it."""
        for first in range(0, len(text), _CUT_CHARS):
            segments = segmenter.feed(text[first : first + _CUT_CHARS])
            if segments:
                before = await self._submit(work, segments, pieces, before)
            if first + _CUT_CHARS < len(text):
                await asyncio.sleep(0)
        return before

    async def _submit(
        self, work: Work, segments: Sequence[Segment], pieces: Channel[Piece], before: Preceding
    ) -> Preceding:
        """Start scoring and hand the segments on; returns what precedes the next segment."""
        scored = self._policy.formula == "evidence"
        for first in range(0, len(segments), _BATCH):
            batch = segments[first : first + _BATCH]
            task = None
            if scored and any(needs_check(s) for s in batch):
                task = asyncio.create_task(self._score(work, batch, before))
                work.tasks.add(task)
            for index, segment in enumerate(batch):
                await pieces.put(Piece(segment, task if needs_check(segment) else None, index))
                before = before.after(segment)
        return before

    async def _score(self, work: Work, batch: Sequence[Segment], before: Preceding) -> list[ClaimVerdict]:
        async def check() -> list[ClaimVerdict]:
            index = await self._evidence.index()
            verdicts = await self._check(batch, index, before=before, numbered=work.passage_ids)
            if self._policy.cite not in ("add", "fix") or self._pass_through is not None or work.as_is:
                return verdicts  # in mode observe the text is out already
            preceding = itertools.accumulate(batch, Preceding.after, initial=before)
            return [await self._cited(own, index, before=at) for own, at in zip(verdicts, preceding, strict=False)]

        with self._recorder.step("score", work.number, claims=sum(needs_check(s) for s in batch)) as found:
            verdicts = await self._timed(work, check())
            found["verdicts"] = verdicts
        return verdicts

    async def _check(
        self, segments: Sequence[Segment], index: EvidenceIndex, *, before: Preceding, numbered: Sequence[str]
    ) -> list[ClaimVerdict]:
        return await self._verifier.check(
            segments, index, state=self._state, question=self._question, before=before, numbered=numbered
        )

    async def _cited(self, verdict: ClaimVerdict, index: EvidenceIndex, *, before: Preceding) -> ClaimVerdict:
        """The verdict with its citations written, if the new text is judged like the old one and is cited rightly.

        What cannot be put right gets other numbers all the same, because those of the whole answer count one order.
        """
        order = [passage.id for passage in index.passages]
        numbers = {pid: number for number, pid in enumerate(order, start=1)}
        from guardrail.scoring.cited_text import cited_text  # most policies write nothing

        for fix in (True, False) if self._policy.cite == "fix" else (False,):
            segment = verdict.segment
            text = cited_text(verdict, numbers=numbers, fix=fix)
            if text == segment.text:
                continue
            written = replace(segment, text=text, end=segment.start + len(text))
            [again] = await self._check([written], index, before=before, numbered=order)
            if again.verdict is verdict.verdict and self._may_replace(verdict, again):
                return again
        return verdict

    def _may_replace(self, old: ClaimVerdict, new: ClaimVerdict) -> bool:
        same = {(c.status, c.passage_id) for c in new.citations} == {(c.status, c.passage_id) for c in old.citations}
        if same and all(c.number is not None for c in new.citations):
            return self._policy.passes(new) or not self._policy.passes(old)  # only the numbers are others
        right = bool(new.citations) and all(c.status is CitationStatus.RIGHT for c in new.citations)
        return right and self._policy.passes(new)

    async def _timed(self, work: Work, scoring: Awaitable[T]) -> T:
        started = self._clock()
        limit = asyncio.timeout(self._policy.scoring_timeout_s)
        try:
            async with limit:
                return await scoring
        except TimeoutError as error:
            if not limit.expired():
                raise ScoringError("checking raised TimeoutError", scorer=self._verifier.scorer) from error
            raise ScoringTimeoutError(
                f"scoring took longer than {self._policy.scoring_timeout_s:g} s (Policy.scoring_timeout_s)",
                scorer=self._verifier.scorer,
            ) from error
        except GuardrailError:
            raise
        except Exception as error:
            raise ScoringError(f"checking raised {type(error).__name__}", scorer=self._verifier.scorer) from error
        finally:
            work.scored_at = self._clock()
            self.scoring_s += work.scored_at - started


async def _settle(tasks: set[asyncio.Task[Any]]) -> None:
    """Cancel tasks and wait for their end, also if the caller is cancelled meanwhile; then the cancellation goes on."""
    for task in tasks:
        task.cancel()
    give_up = asyncio.get_running_loop().time() + _CLOSE_GRACE_S
    interrupted = False
    pending = set(tasks)
    while pending and (left := give_up - asyncio.get_running_loop().time()) > 0:
        try:
            _, pending = await asyncio.wait(pending, timeout=left)
        except asyncio.CancelledError:
            interrupted = True
            pending = {task for task in pending if not task.done()}
    for task in tasks:
        if task.done() and not task.cancelled():
            task.exception()  # seen: it reached the gate, or nobody needs it any more
    if pending:
        _log.warning("%d task(s) did not end within %g s of being cancelled", len(pending), _CLOSE_GRACE_S)
    if interrupted:
        raise asyncio.CancelledError
