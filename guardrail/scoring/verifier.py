"""The façade of scoring: segments in, verdicts out; also usable alone, without a generator."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from guardrail.context import as_passages
from guardrail.errors import InputError, ScoringError
from guardrail.policy import Policy, as_policy, decide_answer
from guardrail.protocols import Pair
from guardrail.scoring.checks import ClaimCheck, claim_checks
from guardrail.scoring.claims import Preceding, needs_check
from guardrail.scoring.delta_r import ROUNDING, WindowSignals, delta_r, judge, same_subject
from guardrail.scoring.entailment import LexicalEntailment, as_entailment, default_entailment
from guardrail.scoring.evidence import EvidenceIndex, Window
from guardrail.scoring.faithfulness import faithfulness
from guardrail.scoring.languages import untrained_language
from guardrail.scoring.markup import plain
from guardrail.scoring.rouge import ngram_precision, reference_tokens, rouge_l_f1, rouge_n_f1
from guardrail.text.segmenter import segment as cut
from guardrail.text.tokens import tokens
from guardrail.types import (
    ClaimVerdict,
    ContextState,
    EntailmentScore,
    Segment,
    SegmentKind,
    Verification,
)

START = Preceding()
DEFAULT_LEXICAL_WEIGHT = 0.5
_BATCH = 16
_INLINE_CHARS = 20_000


class Verifier:
    """Checks answers against passages.

    Args:
        policy: A :class:`~guardrail.policy.Policy` or the name of a shipped one.
        entailment: An :class:`~guardrail.protocols.Entailment`, or a callable that scores (premise, hypothesis)
            pairs; by default the embedded model, or word overlap (``"lexical"``) if none is shipped.

    Raises:
        PolicyError: If there is no such policy.
        ConfigurationError: If the entailment object cannot be used.

    One verifier serves any number of concurrent calls; nothing of a call is kept on it.

    Example:
        >>> verifier = Verifier()
        >>> verifier.verify_sync("The desk opens at ten.", ["The desk opens at ten. Entry is free."]).accepted
        True
        >>> verifier.verify_sync("The desk opens at nine.", ["The desk opens at ten. Entry is free."]).accepted
        False
    """

    def __init__(self, *, policy: Policy | str = "balanced", entailment: Any = None) -> None:
        self.policy = as_policy(policy)
        self.entailment = default_entailment() if entailment is None else as_entailment(entailment)
        self._declarer = self.entailment if entailment is None else entailment  # an adapter hides what it declares

    @property
    def scorer(self) -> str:
        """``model_id`` of the entailment model; ``"lexical"`` means that no model judges."""
        return self.entailment.model_id

    @property
    def lexical_weight(self) -> float:
        """The exponent on ROUGE-L: the policy's, or what the model was fitted with, or 0.5."""
        weights = (self.policy.lexical_weight, getattr(self._declarer, "lexical_weight", None), DEFAULT_LEXICAL_WEIGHT)
        return next(weight for weight in weights if weight is not None)

    @property
    def detection_delta(self) -> float | None:
        """ΔR above which an answer is best called hallucinated, if the model declares one; fitted for F1."""
        return getattr(self._declarer, "detection_delta", None)

    async def verify(self, answer: str, context: object, *, question: str | None = None) -> Verification:
        """Check one whole answer.

        Args:
            answer: The answer.
            context: Passages; see :func:`guardrail.context.as_passages`.
            question: What the user asked, if known.

        Returns:
            The scores, the verdict per claim, and whether the policy accepts.

        Raises:
            InputError: If the answer is not text, or the context cannot be used.
            ScoringError: If the checker fails and ``Policy.on_error`` is ``"raise"``; else the result says so.

        Cancellation drops scoring that has not begun.
        """
        if not isinstance(answer, str):
            raise InputError(f"the answer must be a str, not {type(answer).__name__}")
        passages, state = as_passages(context)
        index = await EvidenceIndex.build(passages)
        segments = await self._segments(answer)
        try:
            if self.policy.formula == "reference":
                return await self.verify_reference("".join(s.text for s in segments), segments, index, state)
            verdicts = await self._check_all(segments, index, state, question or "")
        except ScoringError:
            if self.policy.on_error == "raise":
                raise
            verdicts = [unscored(s, "scoring_error", self.scorer) for s in segments]
        return self._summary(verdicts, index, state)

    def verify_sync(self, answer: str, context: object, *, question: str | None = None) -> Verification:
        """:meth:`verify` for synchronous code.

        Raises:
            RuntimeError: Inside a running event loop; use ``await verifier.verify(...)`` there.
        """
        _forbid_running_loop("await verifier.verify(...)")
        return asyncio.run(self.verify(answer, context, question=question))

    async def check(
        self,
        segments: Sequence[Segment],
        index: EvidenceIndex,
        *,
        state: ContextState,
        question: str = "",
        before: Preceding = START,
    ) -> list[ClaimVerdict]:
        """Score segments in one batch (evidence formula).

        Args:
            segments: Segments of one answer, in order.
            index: The context.
            state: Whether there is something to check against.
            question: What the user asked.
            before: What precedes the first segment in the answer.

        Returns:
            One verdict per segment.

        Raises:
            ScoringError: If the entailment model fails, or returns something that is not a score.

        Cancellation drops scoring that has not begun.
        """
        found = await self.signals(segments, index, state=state, question=question, before=before)
        return [
            self._judge(segment, ground, index)
            if ground
            else unscored(segment, "no_context" if segment.kind.checked else "kind", self.scorer)
            for segment, ground in zip(segments, found, strict=True)
        ]

    async def signals(
        self,
        segments: Sequence[Segment],
        index: EvidenceIndex,
        *,
        state: ContextState,
        question: str = "",
        before: Preceding = START,
    ) -> list[list[tuple[Window, WindowSignals]]]:
        """What :meth:`check` judges from: per segment its windows of evidence, each with its signals.

        Thresholds are fitted on this, as it does not depend on δ or the lexical weight. Arguments, errors and
        cancellation are those of :meth:`check`; segments that are not scored get an empty list.
        """
        if state is not ContextState.GIVEN:
            return [[] for _ in segments]

        def prepare() -> tuple[list[ClaimCheck], list[list[WindowSignals]], list[range], list[Pair]]:
            checks = claim_checks(segments, index, before=before, evidence_words=self.policy.evidence_words)
            compared = [check.compared(question) for check in checks]
            asked = [self._windows_to_score(found) for found in compared]
            pairs = [check.pair(check.windows[at]) for check, own in zip(checks, asked, strict=True) for at in own]
            return checks, compared, asked, pairs

        checks, compared, asked, pairs = await index.off_loop(prepare)
        scores = iter(await self._score(pairs))
        missing = None if self.policy.strict else getattr(self._declarer, "missing_log_odds", None)  # strict: a cap
        return [
            list(zip(check.windows, _scored(found, own, scores, missing), strict=True))
            for check, found, own in zip(checks, compared, asked, strict=True)
        ]

    def _windows_to_score(self, compared: Sequence[WindowSignals]) -> range:
        """Which windows the model judges: the joined evidence; each passage alone only where they may disagree."""
        disagree = self.policy.on_conflict == "fail" or any(clash for own in compared for clash in own.clashes)
        return range(len(compared) if disagree else min(1, len(compared)))

    async def verify_reference(
        self, answer: str, segments: Sequence[Segment], index: EvidenceIndex, state: ContextState
    ) -> Verification:
        """Score a whole answer with the reference formula (S1).

        Args:
            answer: The answer.
            segments: Its segments.
            index: The context.
            state: Whether there is something to check against.

        Raises:
            ScoringError: If the entailment model fails.
        """
        context = "\n".join(p.text for p in index.passages)
        small = len(answer) + len(context) <= _INLINE_CHARS
        left, right, (rouge_l, rouge_1, rouge_2) = (
            _reference_rouge(answer, context) if small else await asyncio.to_thread(_reference_rouge, answer, context)
        )
        entailment = rouge_l
        if not isinstance(self.entailment, LexicalEntailment) and left and right:
            entailment = (await self._score([Pair(context, answer)]))[0].entailment
        score = delta_r(rouge_l, entailment)
        language = untrained_language(self._declarer, answer, context)
        visible = [s for s in segments if s.kind is not SegmentKind.BLANK]
        if not visible:
            reason, accepted = "empty_answer", False
        elif state is not ContextState.GIVEN:
            reason, accepted = "no_context", False
        elif language is not None and self.policy.on_unknown_language == "fail":
            reason, accepted = "unsupported_language", False
        else:
            accepted, reason = self._accepts_reference(score, entailment, visible)
        return Verification(
            accepted=accepted,
            reason=reason,
            formula="reference",
            policy=self.policy.name,
            delta=self.policy.delta,
            scorer=self.scorer,
            delta_r=round(score, 4),
            worst_delta_r=round(score, 4),
            rouge_l=round(rouge_l, 4),
            rouge_1=round(rouge_1, 4),
            rouge_2=round(rouge_2, 4),
            entailment=round(entailment, 4),
            faithfulness=faithfulness([entailment], self.policy.strict_threshold) if visible else 0.0,
            claims=tuple(replace(unscored(s, "reference_formula", self.scorer), language=language) for s in visible),
            context_state=state,
        )

    def _accepts_reference(self, score: float, entailment: float, visible: Sequence[Segment]) -> tuple[bool, str]:
        policy = self.policy
        if policy.no_claims == "refuse" and not any(needs_check(segment) for segment in visible):
            return False, "no_claims"
        if policy.strict_threshold is not None and entailment < policy.strict_threshold:
            return False, "claims_failed"
        return (True, "passed") if score <= policy.delta + ROUNDING else (False, "delta_r_above_delta")

    async def _check_all(
        self, segments: Sequence[Segment], index: EvidenceIndex, state: ContextState, question: str
    ) -> list[ClaimVerdict]:
        """Check in batches, so that a long answer neither blocks the event loop nor needs all its pairs at once."""
        verdicts: list[ClaimVerdict] = []
        before = START
        for first in range(0, len(segments), _BATCH):
            batch = segments[first : first + _BATCH]
            verdicts += await self.check(batch, index, state=state, question=question, before=before)
            for segment in batch:
                before = before.after(segment)
            await asyncio.sleep(0)
        return verdicts

    async def _segments(self, answer: str) -> list[Segment]:
        limit = self.policy.max_segment_chars
        small = len(answer) < _INLINE_CHARS
        return cut(answer, max_chars=limit) if small else await asyncio.to_thread(cut, answer, max_chars=limit)

    async def _score(self, pairs: Sequence[Pair]) -> list[EntailmentScore]:
        if not pairs:
            return []
        try:
            scores = list(await self.entailment.score(pairs))
        except ScoringError:
            raise
        except Exception as error:
            raise ScoringError(
                f"the entailment model {self.scorer!r} raised {type(error).__name__}", scorer=self.scorer
            ) from error
        if len(scores) != len(pairs):
            raise ScoringError(
                f"the entailment model {self.scorer!r} returned {len(scores)} scores for {len(pairs)} pairs",
                scorer=self.scorer,
            )
        for score in scores:
            self._validate(score)
        return scores

    def _validate(self, score: object) -> None:
        if not isinstance(score, EntailmentScore):
            raise ScoringError(
                f"the entailment model {self.scorer!r} returned {type(score).__name__} instead of EntailmentScore",
                scorer=self.scorer,
            )
        for value in (v for v in (score.entailment, score.contradiction, score.unsupported) if v is not None):
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
                raise ScoringError(f"the entailment model {self.scorer!r} returned a score that is not a number")
            if not 0.0 <= value <= 1.0:
                raise ScoringError(f"the entailment model {self.scorer!r} returned {value!r}, outside [0, 1]")

    def _judge(self, segment: Segment, found: list[tuple[Window, WindowSignals]], index: EvidenceIndex) -> ClaimVerdict:
        signals = [own for _, own in found]
        weight, delta = self.lexical_weight, self.policy.delta
        label, ground = judge(signals, delta=delta, lexical_weight=weight)
        window = next(w for w, own in found if own is ground)
        source = next(p.text for p in index.passages if p.id in window.passage_ids)
        return ClaimVerdict(
            segment=segment,
            verdict=label,
            rouge_l=ground.rouge_l,
            entailment=ground.capped_entailment,
            contradiction=ground.contradiction,
            delta_r=ground.delta_r(weight),
            evidence=tuple(s.span for s in window.sentences),
            clashes=ground.clashes,
            contradicting=_ids(s for s in signals if s.contradicts),
            supporting=_ids(s for s in same_subject(signals) if not s.contradicts and s.delta_r(weight) <= delta),
            scorer=self.scorer,
            language=untrained_language(self._declarer, plain(segment.body), window.premise, source),
        )

    def _summary(self, verdicts: Sequence[ClaimVerdict], index: EvidenceIndex, state: ContextState) -> Verification:
        decision = decide_answer(self.policy, verdicts, state)
        scored = [v for v in verdicts if v.checked]
        overlaps = [_ngram_overlap(v) for v in scored]
        entailments = [v.entailment for v in scored if v.entailment is not None]
        return Verification(
            accepted=decision.accepted,
            reason=decision.reason,
            formula="evidence",
            policy=self.policy.name,
            delta=self.policy.delta,
            scorer=self.scorer,
            delta_r=decision.delta_r,
            worst_delta_r=decision.worst_delta_r,
            rouge_l=_mean([v.rouge_l for v in scored if v.rouge_l is not None]),
            rouge_1=_mean([o[0] for o in overlaps]),
            rouge_2=_mean([o[1] for o in overlaps]),
            entailment=_mean(entailments),
            faithfulness=faithfulness(entailments, self.policy.strict_threshold),
            claims=tuple(v for v in verdicts if v.segment.kind is not SegmentKind.BLANK),
            context_state=state,
        )


def _reference_rouge(answer: str, context: str) -> tuple[bool, bool, tuple[float, float, float]]:
    """Whether answer and context have tokens at all, and ROUGE-L, -1 and -2 of one against the other."""
    left, right = reference_tokens(answer), reference_tokens(context)
    scores = rouge_l_f1(left, right), rouge_n_f1(left, right, 1), rouge_n_f1(left, right, 2)
    return bool(left), bool(right), scores


def _scored(
    compared: Sequence[WindowSignals], asked: range, scores: Iterator[EntailmentScore], missing: float | None
) -> Iterator[WindowSignals]:
    """The windows with N; those that the model was not asked about take it from the joined evidence."""
    joined = 0.0
    for at, own in enumerate(compared):
        if at not in asked:
            yield replace(own, entailment=joined, missing_log_odds=missing)
            continue
        score = next(scores)
        joined = float(score.entailment) if at == 0 else joined
        contradiction = None if score.contradiction is None else float(score.contradiction)
        yield replace(own, entailment=float(score.entailment), contradiction=contradiction, missing_log_odds=missing)


def unscored(segment: Segment, reason: str, scorer: str) -> ClaimVerdict:
    """The verdict of a segment that is not scored, and why."""
    return ClaimVerdict(segment=segment, reason=reason, scorer=scorer)


def _ngram_overlap(verdict: ClaimVerdict) -> tuple[float, float]:
    claim = tokens(plain(verdict.segment.body))
    evidence = [word for span in verdict.evidence for word in tokens(span.text)]
    return ngram_precision(claim, evidence, 1), ngram_precision(claim, evidence, 2)


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _ids(signals: Iterable[WindowSignals]) -> tuple[str, ...]:
    """The passages behind some windows; a window over several passages counts only if no single passage is named."""
    found = list(signals)
    single = [s for s in found if len(s.passage_ids) == 1]
    return tuple(dict.fromkeys(pid for s in single or found for pid in (*s.passage_ids, *s.twins)))


def _forbid_running_loop(instead: str) -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError(f"this is the synchronous call and an event loop is running: use `{instead}`")
