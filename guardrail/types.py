"""The values that travel through a run: passages, segments, evidence, verdicts, attempts, outcomes.

All are frozen. Scores are floats in [0, 1]; offsets are code points, half-open. Fields that hold text of a
question, a passage or an answer stay out of ``repr`` so that a value can be logged without leaking content.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any


class ContextState(StrEnum):
    """Whether a run has something to check against."""

    GIVEN = "given"
    EMPTY = "empty"  # retrieval returned nothing, or nothing with text
    ABSENT = "absent"  # the caller has no retrieval


class SegmentKind(StrEnum):
    """What a segment is. Only ``claim`` and ``code`` are checked; a kind never hides a claim."""

    CLAIM = "claim"
    GREETING = "greeting"  # pleasantries and offers of help
    QUESTION = "question"  # a question that presupposes nothing checkable
    HEADING = "heading"  # a label, a table header, a rule, a bare list marker
    REFUSAL = "refusal"  # an honest "the documents do not say"
    CODE = "code"  # a fenced block
    BLANK = "blank"  # whitespace or punctuation only

    @property
    def checked(self) -> bool:
        """Whether segments of this kind are scored against evidence before release."""
        return self in (SegmentKind.CLAIM, SegmentKind.CODE)


class VerdictLabel(StrEnum):
    """What the evidence says about one claim."""

    SUPPORTED = "supported"
    CONTRADICTED = "contradicted"  # the evidence says otherwise
    UNVERIFIABLE = "unverifiable"  # the evidence is silent
    CONFLICT = "conflict"  # one passage supports it, another contradicts it


class ClashKind(StrEnum):
    """Why a claim cannot be what the evidence says, found by comparison instead of a model."""

    VALUE = "value"
    UNIT = "unit"
    DATE = "date"
    IDENTIFIER = "identifier"  # URL, e-mail address, phone number, code span
    NEGATION = "negation"
    ANTONYM = "antonym"
    ROLE = "role"
    QUANTIFIER = "quantifier"
    MODALITY = "modality"
    NAME = "name"  # a proper name that stands in no passage


class CitationStatus(StrEnum):
    """Whether a citation leads to what it is cited for."""

    RIGHT = "right"
    WRONG = "wrong"  # another passage supports the claim, the cited one does not
    UNSUPPORTED = "unsupported"  # no passage supports the claim
    DANGLING = "dangling"  # there is no passage of that number
    MISSING = "missing"  # the claim cites nothing


class OutcomeStatus(StrEnum):
    """How a run ended."""

    ACCEPTED = "accepted"
    BEST_ATTEMPT = "best_attempt"
    REFUSED = "refused"
    ERROR = "error"
    CANCELLED = "cancelled"


class ReceiptStatus(StrEnum):
    """When a range of the delivered text was checked."""

    CHECKED_BEFORE = "checked_before_release"
    CHECKED_AFTER = "checked_after_release"
    NOT_CHECKED = "not_checked"


class ReleaseMode(StrEnum):
    """When text may leave."""

    AUTO = "auto"
    SENTENCE = "sentence"
    ANSWER = "answer"
    OBSERVE = "observe"


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """One retrieved piece of context.

    Attributes:
        id: Identifier used in verdicts, receipts and traces.
        text: The text; never mutated.
        score: The retriever's score, if it gave one.
        metadata: Whatever the retriever attached.
        source: The object the caller handed in; generators get it back in the type it was given.
    """

    id: str
    text: str = field(repr=False)
    score: float | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False, hash=False)
    source: Any = field(default=None, repr=False, compare=False, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A lossless slice of the answer, trailing whitespace included.

    Attributes:
        start: Offset of the first code point in the answer.
        end: Offset after the last code point.
        text: The slice; ``"".join(s.text for s in segments)`` is the answer.
        kind: What the segment is.
    """

    start: int
    end: int
    text: str = field(repr=False)
    kind: SegmentKind = SegmentKind.CLAIM

    @property
    def body(self) -> str:
        """The text without surrounding whitespace."""
        return self.text.strip()

    @property
    def body_start(self) -> int:
        """Offset of :attr:`body` in the answer."""
        return self.start + len(self.text) - len(self.text.lstrip())

    @property
    def body_end(self) -> int:
        """Offset after :attr:`body` in the answer."""
        return self.body_start + len(self.body)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceSpan:
    """A piece of a passage that was used as evidence for a claim.

    Attributes:
        passage_id: The passage.
        start: Offset in the passage's text.
        end: Offset after the piece.
        text: ``passage.text[start:end]``.
    """

    passage_id: str
    start: int
    end: int
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clash:
    """A disagreement between a claim and its evidence.

    Attributes:
        kind: What disagrees.
        claim_text: The words of the claim that clash.
        evidence_text: The words of the evidence they clash with; empty if the evidence has nothing comparable.
        contradicts: ``True`` if the evidence says otherwise, ``False`` if it merely does not have the value.
    """

    kind: ClashKind
    claim_text: str = field(repr=False)
    evidence_text: str = field(default="", repr=False)
    contradicts: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """What became of one citation of a claim, or that it has none.

    Attributes:
        status: See :class:`CitationStatus`.
        number: The number in the mark, ``2`` of ``[2]``; ``None`` if a citation is missing.
        passage_id: The passage of that number in the selection that the generator was shown; ``None`` if there is none.
        right: For ``wrong``, ``dangling`` and ``missing``: ids of the passages that should be cited, if they are known.
    """

    status: CitationStatus
    number: int | None = None
    passage_id: str | None = None
    right: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EntailmentScore:
    """What an entailment model says about one (premise, hypothesis) pair.

    Attributes:
        entailment: P(premise entails hypothesis), in [0, 1].
        contradiction: P(premise contradicts hypothesis), in [0, 1]; ``None`` if the model has no such class.
        unsupported: P(the least supported words of the hypothesis have no support in the premise), in [0, 1]; ``None``
            if the model does not judge words.
        screened: The screening model's own P(entailment), where a judge was asked as well; else ``None``.
        judged: What the judge said: ``"yes"``, ``"no"``, ``"partial"``, or ``"error:"`` and why it said nothing; empty
            if none was asked.
    """

    entailment: float
    contradiction: float | None = None
    unsupported: float | None = None
    screened: float | None = None
    judged: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimVerdict:
    """The result for one segment.

    Attributes:
        segment: The segment.
        verdict: ``None`` if the segment is of a kind that is not checked, or could not be checked.
        rouge_l: Lexical fidelity L: LCS precision of the claim against its evidence.
        entailment: N after the caps of the clash checks.
        contradiction: P(evidence contradicts claim), if the model gives one.
        delta_r: ``1 - L**lexical_weight * N``.
        evidence: The passage sentences that were used, best first.
        clashes: What the comparison of values, negations and roles found.
        contradicting: Ids of passages that contradict the claim.
        supporting: Ids of passages that support it.
        reason: Why a segment has no scores (``"kind"``, ``"no_context"``, ``"scoring_error"``); else empty.
        scorer: ``model_id`` of the entailment model; ``"lexical"`` means that no model judged.
        language: ISO code of the language of the claim or its evidence, only if the entailment model declares the
            languages that it was trained for and this is none of them: then the scores mean less.
        citations: What became of its citations, in the order of their marks; see ``Policy.cite``.
        screened: The screening model's own N, if a judge was asked about the evidence that the verdict rests on.
        judged: What the judge said about it; see :class:`EntailmentScore`.
    """

    segment: Segment
    verdict: VerdictLabel | None = None
    rouge_l: float | None = None
    entailment: float | None = None
    contradiction: float | None = None
    delta_r: float | None = None
    evidence: tuple[EvidenceSpan, ...] = ()
    clashes: tuple[Clash, ...] = ()
    contradicting: tuple[str, ...] = ()
    supporting: tuple[str, ...] = ()
    reason: str = ""
    scorer: str = ""
    language: str | None = None
    citations: tuple[Citation, ...] = ()
    screened: float | None = None
    judged: str = ""

    @property
    def checked(self) -> bool:
        """Whether the segment was scored."""
        return self.delta_r is not None

    @classmethod
    def unscored(cls, segment: Segment, reason: str, scorer: str) -> ClaimVerdict:
        """The verdict of a segment that is not scored, and why."""
        return cls(segment=segment, reason=reason, scorer=scorer)

    @property
    def wrongly_cited(self) -> bool:
        """Whether its citations mislead: one leads nowhere, or none of them leads to what the claim says."""
        statuses = {citation.status for citation in self.citations}
        if CitationStatus.DANGLING in statuses:
            return True
        return CitationStatus.WRONG in statuses and CitationStatus.RIGHT not in statuses

    def without_text(self) -> ClaimVerdict:
        """The same verdict without a character of the answer."""
        return replace(self, segment=replace(self.segment, text=""), clashes=())


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedClaim:
    """A claim that did not pass, and why: what a generator is told about the attempt before.

    Attributes:
        text: The claim as the generator wrote it.
        verdict: What the evidence says; ``None`` if there was nothing to check against.
        why: One sentence for a prompt, with the clashing words if there are any.
        delta_r: The claim's score.
        attempt: The attempt it comes from.
        evidence: The evidence it was checked against, best first.
        supporting: Ids of passages that support the claim (a conflict).
        contradicting: Ids of passages that contradict it.
    """

    text: str = field(repr=False)
    verdict: VerdictLabel | None
    why: str = field(repr=False)
    delta_r: float | None
    attempt: int
    evidence: tuple[EvidenceSpan, ...] = ()
    supporting: tuple[str, ...] = ()
    contradicting: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationRequest:
    """Everything a generator may ask for, for one attempt.

    Attributes:
        question: The user's question.
        passages: The selection for this attempt, in order.
        context: The same selection in the type the caller handed in.
        attempt: Number of the attempt, from 1.
        released_text: Checked text that the reader already has; a generator that takes it must continue after it.
        failed_claims: The claims of earlier attempts that did not pass, newest last.
    """

    question: str = field(repr=False)
    passages: tuple[Passage, ...] = ()
    context: tuple[Any, ...] = field(default=(), repr=False)
    attempt: int = 1
    released_text: str = field(default="", repr=False)
    failed_claims: tuple[FailedClaim, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """One piece of a generator's output.

    Attributes:
        text: Its text, possibly empty.
        raw: The object that the generator produced.
        rides_along: Whether ``raw`` carries more than text (usage, tool calls, ids, a finish reason).
        tool_calls: Whether ``raw`` carries (a part of) a tool call.
        usage: Token counts of this generator call so far, if ``raw`` reports any.
        as_is: Whether the text stands for something that is delivered in its place (a structured value), so that
            writing citations into it would reach nobody.
    """

    text: str = field(repr=False)
    raw: Any = field(default=None, repr=False)
    rides_along: bool = False
    tool_calls: bool = False
    usage: Mapping[str, int] | None = None
    as_is: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The result for one answer.

    Attributes:
        accepted: Whether the policy lets the answer pass.
        reason: Why not, or what was special: ``"passed"``, ``"claims_failed"``, ``"no_claims"``, ``"abstained"``,
            ``"no_context"``, ``"empty_answer"``, ``"delta_r_above_delta"``, ``"scoring_error"``,
            ``"unsupported_language"`` (the entailment model was not trained for the language of the claims).
        formula: ``"evidence"`` or ``"reference"``.
        policy: Name of the policy.
        delta: The threshold that was applied.
        scorer: ``model_id`` of the entailment model; ``"lexical"`` means that no model judged.
        delta_r: Mean over the claims (evidence) or of the whole answer (reference); ``None`` without claims.
        worst_delta_r: The largest ΔR of a claim; the gate of the evidence formula.
        rouge_l: Mean LCS precision (evidence) or ROUGE-L F1 (reference).
        rouge_1: Unigram overlap, of the same kind as ``rouge_l``.
        rouge_2: Bigram overlap, of the same kind as ``rouge_l``.
        entailment: Mean N (evidence) or of the whole answer (reference).
        faithfulness: S2: mean entailment of the claims; 0.0 without claims, and in strict mode as soon as one is
            below the threshold.
        claims: One entry per segment that is not blank, in order.
        context_state: Whether there was something to check against.
    """

    accepted: bool
    reason: str
    formula: str
    policy: str
    delta: float
    scorer: str
    delta_r: float | None
    worst_delta_r: float | None
    rouge_l: float | None
    rouge_1: float | None
    rouge_2: float | None
    entailment: float | None
    faithfulness: float
    claims: tuple[ClaimVerdict, ...]
    context_state: ContextState = ContextState.GIVEN


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One generator call.

    Attributes:
        number: From 1.
        text: The answer of this attempt; with a released prefix, prefix and continuation.
        verdicts: One entry per checked or released segment, in order.
        passage_ids: The selection and order the generator was shown.
        accepted: Whether every claim passed.
        complete: Whether the generator was read to its end.
        reason: Why the attempt ended: as in :class:`Verification`, or ``"tool_calls"`` (no text to check),
            ``"avoidable_abstention"`` (the passages plainly contain the answer),
            ``"too_long"``, ``"generation_error"``, ``"timeout"``, ``"cancelled"``.
        delta_r: Mean ΔR of its claims.
        worst_delta_r: Largest ΔR of its claims.
        usage: Token counts the generator reported, summed over its chunks.
        error: The exception that ended it.
        duration_ms: Wall time of the attempt.
    """

    number: int
    text: str = field(repr=False)
    verdicts: tuple[ClaimVerdict, ...] = ()
    passage_ids: tuple[str, ...] = ()
    accepted: bool = False
    complete: bool = False
    reason: str = ""
    delta_r: float | None = None
    worst_delta_r: float | None = None
    usage: Mapping[str, int] = field(default_factory=dict)
    error: BaseException | None = field(default=None, repr=False, compare=False)
    duration_ms: float = 0.0

    def without_text(self) -> Attempt:
        """The same attempt without a character of its answer."""
        return replace(self, text="", verdicts=tuple(v.without_text() for v in self.verdicts), error=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptRange:
    """What is known about one range of the delivered text.

    Attributes:
        start: Offset in the delivered text.
        end: Offset after the range.
        status: Whether it was checked, and when.
        reason: The verdict, the segment kind, or why it was not checked.
        attempt: The attempt the text comes from; 0 for the guard's own words, which count as checked.
    """

    start: int
    end: int
    status: ReceiptStatus
    reason: str
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Timings:
    """Where the time went, in milliseconds.

    Attributes:
        total_ms: From the first read to the end.
        first_release_ms: From the first read to the first released text; ``None`` if nothing was released.
        scoring_ms: Sum over the scoring calls; they overlap with generation.
        limiter_ms: Time spent asking and waiting for limits.
        added_ms: Time the reader waited for verdicts after the generator had ended its last attempt.
    """

    total_ms: float = 0.0
    first_release_ms: float | None = None
    scoring_ms: float = 0.0
    limiter_ms: float = 0.0
    added_ms: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a run ended.

    Attributes:
        run_id: Identifier that is also on the trace.
        status: See :class:`OutcomeStatus`.
        reason: Why: ``"passed"``, ``"abstained"``, ``"no_claims"``, ``"no_context"``, ``"attempts_exhausted"``,
            ``"same_claim_failed_twice"``, ``"context_exhausted"``, ``"regeneration_budget"`` (another attempt would
            have been too many beside the first attempts of all requests), ``"reranking_error"``,
            ``"scoring_error"``, ``"generation_error"``, ``"timeout"``, ``"rate_limited"``, ``"closed_by_reader"``.
        text: Exactly what the reader got, in total.
        attempts: Every generator call, in order.
        delivered_attempt: Number of the attempt whose text was delivered; ``None`` for a refusal.
        receipt: What is known per range of :attr:`text`.
        policy: Name of the policy.
        delta: δ of the policy, the threshold that was applied.
        release: The release mode that was used.
        repair: How a failure after a partial release was handled: ``"continued"``, ``"retracted"``, ``"appended"``
            or ``""``.
        scorer: ``model_id`` of the entailment model; ``"lexical"`` means that no model judged.
        context_state: Whether there was something to check against.
        would_have: In mode ``observe``: what a gate would have done (``"accept"``, ``"regenerate"``, ``"refuse"``).
        degraded: Why limits were not applied as configured, for example ``("redis_timeout",)``: every reason once,
            in order; empty if they were.
        error: The exception behind a refusal or an error.
        timings: Where the time went.
    """

    run_id: str
    status: OutcomeStatus
    reason: str
    text: str = field(repr=False)
    attempts: tuple[Attempt, ...]
    delivered_attempt: int | None
    receipt: tuple[ReceiptRange, ...]
    policy: str
    delta: float
    release: ReleaseMode
    repair: str = ""
    scorer: str = ""
    context_state: ContextState = ContextState.GIVEN
    would_have: str = ""
    degraded: tuple[str, ...] = ()
    error: BaseException | None = field(default=None, repr=False, compare=False)
    timings: Timings = field(default_factory=Timings)

    @property
    def accepted(self) -> bool:
        """Whether the delivered text passed."""
        return self.status is OutcomeStatus.ACCEPTED

    @property
    def verdicts(self) -> tuple[ClaimVerdict, ...]:
        """The verdicts of the delivered attempt; empty for a refusal."""
        for attempt in self.attempts:
            if attempt.number == self.delivered_attempt:
                return attempt.verdicts
        return ()

    def for_reader(self) -> Outcome:
        """The same outcome without a character that the reader was not given."""
        given = (a.number == self.delivered_attempt for a in self.attempts)
        kept = (self._given_of(a) if yes else a.without_text() for a, yes in zip(self.attempts, given, strict=True))
        return replace(self, attempts=tuple(kept), error=None)

    def _given_of(self, attempt: Attempt) -> Attempt:
        if attempt.text in self.text:
            return replace(attempt, error=None)
        given = tuple(v if v.segment.text in self.text else v.without_text() for v in attempt.verdicts)
        return replace(attempt, text="", verdicts=given, error=None)
