"""The façade of scoring: segments in, verdicts out; also usable alone, without a generator."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from guardrail.context import as_passages, origin_of
from guardrail.errors import InputError, ScoringError
from guardrail.policy import Policy, as_policy, decide_answer
from guardrail.protocols import Pair
from guardrail.scoring.asking import ask_model, scored_windows
from guardrail.scoring.checks import ClaimCheck, claim_checks
from guardrail.scoring.citations import Wanted, with_citations
from guardrail.scoring.claims import Preceding
from guardrail.scoring.delta_r import WindowSignals, decisive, judge, same_subject
from guardrail.scoring.entailment import LexicalEntailment, as_entailment, default_entailment
from guardrail.scoring.entailment.identity import fingerprint_of
from guardrail.scoring.evidence import EvidenceIndex, Window
from guardrail.scoring.faithfulness import faithfulness
from guardrail.scoring.languages import untrained_language
from guardrail.scoring.markup import plain
from guardrail.scoring.rouge import ngram_precision
from guardrail.scoring.whole_answer import INLINE_CHARS, score_whole
from guardrail.text.segmenter import segment as cut
from guardrail.text.tokens import tokens
from guardrail.types import (
    ClaimVerdict,
    ContextState,
    Segment,
    SegmentKind,
    VerdictLabel,
    Verification,
)

START = Preceding()
DEFAULT_LEXICAL_WEIGHT = 0.5
_BATCH = 16


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

    def fingerprint(self) -> str | None:
        """What tells the entailment model apart from others; ``None`` if it does not say. It may load the model.

        Raises:
            ScoringError: If what the model says is none, or it cannot be loaded.
        """
        return fingerprint_of(self._declarer, self.entailment)

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
            verdicts = [ClaimVerdict.unscored(s, "scoring_error", self.scorer) for s in segments]
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
        numbered: Sequence[str] | None = None,
    ) -> list[ClaimVerdict]:
        """Score segments in one batch (evidence formula).

        Args:
            segments: Segments of one answer, in order.
            index: The context.
            state: Whether there is something to check against.
            question: What the user asked.
            before: What precedes the first segment in the answer.
            numbered: Ids of the passages that citation marks count, from 1; ``None`` for those of the context.

        Returns:
            One verdict per segment.

        Raises:
            ScoringError: If the entailment model fails, or returns something that is not a score.

        Cancellation drops scoring that has not begun.
        """
        marks = None if numbered is None else len(numbered)
        found = await self.signals(segments, index, state=state, question=question, before=before, numbered=marks)
        verdicts = [
            self._judge(segment, ground, index)
            if ground
            else ClaimVerdict.unscored(segment, "no_context" if segment.kind.checked else "kind", self.scorer)
            for segment, ground in zip(segments, found, strict=True)
        ]
        if self.policy.cite == "ignore" or state is not ContextState.GIVEN:
            return verdicts
        return await self._look_up(verdicts, index, question=question, before=before, numbered=numbered)

    async def _look_up(
        self,
        verdicts: Sequence[ClaimVerdict],
        index: EvidenceIndex,
        *,
        question: str,
        before: Preceding,
        numbered: Sequence[str] | None,
    ) -> list[ClaimVerdict]:
        """The verdicts with what became of the citations."""
        weight, policy = self.lexical_weight, self.policy
        ids = {passage.id: None for passage in index.passages}

        def one(wanted: Wanted) -> ClaimCheck | None:
            [check] = claim_checks(
                [wanted.claim],
                index,
                before=wanted.before,
                evidence_words=policy.evidence_words,
                only=wanted.passages,
                numbered=None if numbered is None else len(numbered),
            )
            return replace(check, windows=check.windows[:1]) if check.windows else None

        async def select(wanted: Sequence[Wanted]) -> list[ClaimCheck | None]:
            return await index.off_loop(lambda: [one(each) for each in wanted])

        async def probe(checks: Sequence[ClaimCheck]) -> list[bool]:
            found = await self._assess(lambda: checks, index, question)
            return [self._supports([own for _, own in windows], weight) for windows in found]

        return await with_citations(
            verdicts,
            before=before,
            numbered=list(ids) if numbered is None else [origin_of(pid, ids) or pid for pid in numbered],
            name_missing=policy.cite in ("add", "fix"),
            select=select,
            probe=probe,
        )

    def _supports(self, signals: Sequence[WindowSignals], weight: float) -> bool:
        label, ground = judge(signals, delta=self.policy.delta, lexical_weight=weight)
        return label is VerdictLabel.SUPPORTED and ground.capped_entailment >= (self.policy.strict_threshold or 0.0)

    async def signals(
        self,
        segments: Sequence[Segment],
        index: EvidenceIndex,
        *,
        state: ContextState,
        question: str = "",
        before: Preceding = START,
        numbered: int | None = None,
    ) -> list[list[tuple[Window, WindowSignals]]]:
        """What :meth:`check` judges from: per segment its windows of evidence, each with its signals.

        Thresholds are fitted on this, as it does not depend on δ or the lexical weight. Arguments, errors and
        cancellation are those of :meth:`check`, but ``numbered`` is how many passages marks count; segments that are
        not scored get an empty list.
        """
        if state is not ContextState.GIVEN:
            return [[] for _ in segments]

        def checks() -> list[ClaimCheck]:
            words = self.policy.evidence_words
            return claim_checks(segments, index, before=before, evidence_words=words, numbered=numbered)

        return await self._assess(checks, index, question)

    async def _assess(
        self, make: Callable[[], Sequence[ClaimCheck]], index: EvidenceIndex, question: str
    ) -> list[list[tuple[Window, WindowSignals]]]:
        """Compare claims with their windows, and ask the model about those that it has to judge."""

        def prepare() -> tuple[Sequence[ClaimCheck], list[list[WindowSignals]], list[range], list[Pair], list[bool]]:
            checks = make()
            compared = [check.compared(question) for check in checks]
            asked = [self._windows_to_score(found) for found in compared]
            pairs = [check.pair(check.windows[at]) for check, own in zip(checks, asked, strict=True) for at in own]
            matters = [decisive(found)[at] for found, own in zip(compared, asked, strict=True) for at in own]
            return checks, compared, asked, pairs, matters

        checks, compared, asked, pairs, matters = await index.off_loop(prepare)
        scores = iter(await ask_model(self.entailment, pairs, matters))
        missing = None if self.policy.strict else getattr(self._declarer, "missing_log_odds", None)  # strict: a cap
        return [
            list(zip(check.windows, scored_windows(found, own, scores, missing), strict=True))
            for check, found, own in zip(checks, compared, asked, strict=True)
        ]

    def _windows_to_score(self, compared: Sequence[WindowSignals]) -> range:
        """Which windows the model judges: the joined evidence; each passage alone only where they may disagree."""
        disagree = self.policy.on_conflict == "fail" or any(own.objected for own in compared)
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
        return await score_whole(
            answer,
            segments,
            "\n".join(p.text for p in index.passages),
            state,
            policy=self.policy,
            ask=None if isinstance(self.entailment, LexicalEntailment) else self._ask_one,
            scorer=self.scorer,
            language=lambda context: untrained_language(self._declarer, answer, context),
        )

    async def _ask_one(self, pair: Pair) -> float:
        return (await ask_model(self.entailment, [pair]))[0].entailment

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
        small = len(answer) < INLINE_CHARS
        return cut(answer, max_chars=limit) if small else await asyncio.to_thread(cut, answer, max_chars=limit)

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
            screened=ground.screened,
            judged=ground.judged,
        )

    def _summary(self, verdicts: Sequence[ClaimVerdict], index: EvidenceIndex, state: ContextState) -> Verification:
        decision = decide_answer(self.policy, verdicts, state)
        scored = [v for v in verdicts if v.checked]
        evidence = {text: tokens(text) for text in {span.text for v in scored for span in v.evidence}}
        overlaps = [_ngram_overlap(v, evidence) for v in scored]
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


def _ngram_overlap(verdict: ClaimVerdict, sentences: Mapping[str, list[str]]) -> tuple[float, float]:
    claim = tokens(plain(verdict.segment.body))
    evidence = [word for span in verdict.evidence for word in sentences[span.text]]
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
