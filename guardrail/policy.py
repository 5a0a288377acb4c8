"""Thresholds and choices of a run, and the pure decisions that follow from them.

Nothing here does I/O or reads a clock: every decision is a function of values, so a table can test it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from string import Formatter
from typing import Any, Literal, get_args

from guardrail.errors import PolicyError
from guardrail.text.kinds import is_assent
from guardrail.types import (
    Attempt,
    ClaimVerdict,
    ContextState,
    ReleaseMode,
    SegmentKind,
    VerdictLabel,
)

Formula = Literal["evidence", "reference"]
OnExhausted = Literal["refuse", "best"]
OnError = Literal["refuse", "raise", "pass_marked"]
NoContext = Literal["refuse", "pass_marked"]
NoClaims = Literal["refuse", "pass_marked"]
OnConflict = Literal["fail", "release"]
OnUnknownLanguage = Literal["mark", "fail"]
OnDegradedLimits = Literal["allow", "refuse"]
Cite = Literal["ignore", "check", "add", "fix"]
OnWrongCitation = Literal["mark", "fail"]

DEFAULT_REFUSAL = "I can't give an answer that the provided documents support."
DEFAULT_REFUSAL_TAIL = "I can't continue this answer: the provided documents do not support what would follow."

_REFUSAL_FIELDS = {"reason", "attempts", "question"}
_STRICT_CHOICES = dict.fromkeys(("on_error", "on_exhausted", "no_context", "no_claims"), "refuse") | dict.fromkeys(
    ("on_conflict", "on_unknown_language", "on_wrong_citation"), "fail"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A frozen set of thresholds and choices for a run.

    Attributes:
        name: Appears in results and traces.
        formula: ``"evidence"`` scores each claim against its evidence and gates on the worst claim;
            ``"reference"`` scores the whole answer against the whole context (audit and comparison only).
        delta: δ, the acceptance threshold in [0, 1]: accepted iff ΔR ≤ δ.
        lexical_weight: Exponent w on ROUGE-L in ``ΔR = 1 − L**w × N``, in [0, 4]; 0 ignores word overlap, and ``None``
            takes what the entailment model was fitted with.
        strict_threshold: S2: with a number, an answer passes only if every claim's entailment is at least this
            (equal passes); ``None`` switches strict mode off. Strict mode also refuses without context, without
            claims and when the checker fails, and never delivers a best attempt.
        max_attempts: Generator calls at most, from 1 to 10, the first included.
        release: When text may leave; see :class:`~guardrail.types.ReleaseMode`. ``auto`` becomes ``answer`` in strict
            mode, ``sentence`` for a reader who streams or a generator that can continue a prefix, else ``answer``.
        on_exhausted: What the reader gets when no attempt passed: a refusal, or the best attempt.
        on_error: What happens when the checker fails: ``refuse``, ``raise`` the ``ScoringError``, or deliver the text
            marked as not checked (``pass_marked``). Strict mode allows only ``refuse``.
        no_context: What happens to claims when there is nothing to check against.
        no_claims: What happens to an answer that asserts nothing (a greeting). Abstentions are always delivered.
        on_conflict: What happens to a claim that one passage supports and another contradicts.
        on_unknown_language: What happens to a claim in a language that the entailment model was not trained for: judged
            like any other and marked in its verdict (``mark``), or failed (``fail``, the only choice in strict mode).
        cite: What the evidence formula does about citation marks such as ``[1]``, ``[2, 3]`` and ``[C1]``, which count
            the passages that the generator was shown: nothing (``ignore``); looked up, with the result in the verdict
            (``check``); written where a supported claim has none (``add``); written, and corrected where they are wrong
            (``fix``). What ``add`` and ``fix`` write counts the passages as you handed them in, and is checked again.
        on_wrong_citation: What happens to a claim whose citations lead nowhere, or only to passages that do not
            support it: marked in its verdict (``mark``), or failed (``fail``, the only choice in strict mode).
        on_degraded_limits: What an allowed charge counts for if the limiter or budget could not decide as configured
            (its store was out of reach): allowed all the same (``allow``), or refused (``refuse``).
        stop_on_repeat: End the loop early when the same claim fails in two attempts.
        refusal: Text of a refusal; a template that may use ``{reason}``, ``{attempts}`` and ``{question}``.
        refusal_tail: The same, for the end of an answer of which a part is already out.
        context_size: How many passages the generator is shown at first; ``None`` shows all. Answers are always
            checked against all.
        evidence_words: How many words of evidence a claim is checked against, from 20 to 400.
        timeout_s: Limit for the whole run in seconds, without the time the reader takes; ``None`` for no limit.
        first_token_timeout_s: Limit for the first chunk of an attempt in seconds; ``None`` for no limit.
        token_timeout_s: Limit between two chunks in seconds; ``None`` for no limit.
        scoring_timeout_s: Limit for one scoring call in seconds; ``None`` for no limit.
        max_segment_chars: Prose without a boundary is cut at this length, from 40 to 10,000.
        max_answer_chars: An attempt that grows longer than this is ended as failed.

    Raises:
        PolicyError: If a value is out of range or contradicts another.

    Example:
        >>> Policy(delta=1.5)
        Traceback (most recent call last):
        ...
        guardrail.errors.PolicyError: Policy.delta: must be a number from 0 to 1, not 1.5
    """

    name: str = "balanced"
    formula: Formula = "evidence"
    delta: float = 0.74
    lexical_weight: float | None = None
    strict_threshold: float | None = None
    max_attempts: int = 3
    release: ReleaseMode | Literal["auto", "sentence", "answer", "observe"] = ReleaseMode.AUTO
    on_exhausted: OnExhausted = "refuse"
    on_error: OnError = "refuse"
    no_context: NoContext = "refuse"
    no_claims: NoClaims = "pass_marked"
    on_conflict: OnConflict = "release"
    on_unknown_language: OnUnknownLanguage = "mark"
    cite: Cite = "check"
    on_wrong_citation: OnWrongCitation = "mark"
    on_degraded_limits: OnDegradedLimits = "allow"
    stop_on_repeat: bool = True
    refusal: str = DEFAULT_REFUSAL
    refusal_tail: str = DEFAULT_REFUSAL_TAIL
    context_size: int | None = None
    evidence_words: int = 110
    timeout_s: float | None = 120.0
    first_token_timeout_s: float | None = 60.0
    token_timeout_s: float | None = 30.0
    scoring_timeout_s: float | None = 30.0
    max_segment_chars: int = 600
    max_answer_chars: int = 1_000_000

    def __post_init__(self) -> None:
        _check_ranges(self)
        _check_choices(self)
        _check_templates(self)
        if self.strict:
            _check_strict(self)

    @property
    def strict(self) -> bool:
        """Whether strict mode is on."""
        return self.strict_threshold is not None

    def override(self, **changes: Any) -> Policy:
        """The same policy with some fields changed, validated.

        Args:
            **changes: Field names and new values.

        Example:
            >>> BALANCED.override(max_attempts=2).max_attempts
            2
        """
        return replace(self, **changes)

    def resolve_release(self, *, streaming: bool, can_continue: bool) -> ReleaseMode:
        """The mode that ``release`` means for one run.

        Args:
            streaming: Whether the caller reads the text while it is generated.
            can_continue: Whether the generator can continue a released prefix.

        Returns:
            ``SENTENCE``, ``ANSWER`` or ``OBSERVE``, never ``AUTO``.
        """
        if self.release is not ReleaseMode.AUTO:
            return ReleaseMode(self.release)
        if self.strict or self.formula == "reference":
            return ReleaseMode.ANSWER
        return ReleaseMode.SENTENCE if streaming or can_continue else ReleaseMode.ANSWER

    def passes(self, verdict: ClaimVerdict) -> bool:
        """Whether the text of one segment may be released (evidence formula).

        Args:
            verdict: A verdict with scores, or one of a segment whose kind is not checked.

        Returns:
            ``True`` only for a segment that is not a claim, or a claim with a finite ΔR ≤ δ that nothing contradicts
            and, in strict mode, with an entailment of at least ``strict_threshold``, in a language that
            ``on_unknown_language`` allows; and only with citations that ``on_wrong_citation`` allows.
        """
        if not verdict.segment.kind.checked and not verdict.checked:
            return not (verdict.wrongly_cited and self.on_wrong_citation == "fail")
        if verdict.delta_r is None or verdict.entailment is None:
            return False
        if verdict.language is not None and self.on_unknown_language == "fail":
            return False
        if verdict.wrongly_cited and self.on_wrong_citation == "fail":
            return False
        if verdict.verdict is VerdictLabel.CONFLICT:
            return self.on_conflict == "release"
        if verdict.verdict is VerdictLabel.CONTRADICTED or not verdict.delta_r <= self.delta:
            return False
        return self.strict_threshold is None or verdict.entailment >= self.strict_threshold


def _check_ranges(policy: Policy) -> None:
    _number(policy, "delta", 0, 1)
    if policy.lexical_weight is not None:
        _number(policy, "lexical_weight", 0, 4)
    if policy.strict_threshold is not None:
        _number(policy, "strict_threshold", 0, 1)
    for name in ("timeout_s", "first_token_timeout_s", "token_timeout_s", "scoring_timeout_s"):
        if getattr(policy, name) is not None:
            _number(policy, name, 0, 86_400, exclusive_low=True)
    _whole(policy, "max_attempts", 1, 10)
    _whole(policy, "evidence_words", 20, 400)
    _whole(policy, "max_segment_chars", 40, 10_000)
    _whole(policy, "max_answer_chars", 1_000, 100_000_000)
    if policy.context_size is not None:
        _whole(policy, "context_size", 1, 10_000)


def _number(policy: Policy, name: str, low: float, high: float, *, exclusive_low: bool = False) -> None:
    value = getattr(policy, name)
    right_type = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not right_type or not math.isfinite(value) or not low <= value <= high or (exclusive_low and value == low):
        bounds = f"above {low} and at most {high}" if exclusive_low else f"from {low} to {high}"
        raise PolicyError(name, f"must be a number {bounds}, not {value!r}")


def _whole(policy: Policy, name: str, low: int, high: int) -> None:
    value = getattr(policy, name)
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise PolicyError(name, f"must be a whole number from {low} to {high}, not {value!r}")


def _check_choices(policy: Policy) -> None:
    choices: dict[str, tuple[str, ...]] = {
        "formula": get_args(Formula),
        "release": tuple(ReleaseMode),
        "on_exhausted": get_args(OnExhausted),
        "on_error": get_args(OnError),
        "no_context": get_args(NoContext),
        "no_claims": get_args(NoClaims),
        "on_conflict": get_args(OnConflict),
        "on_unknown_language": get_args(OnUnknownLanguage),
        "cite": get_args(Cite),
        "on_wrong_citation": get_args(OnWrongCitation),
        "on_degraded_limits": get_args(OnDegradedLimits),
    }
    for name, allowed in choices.items():
        value = getattr(policy, name)
        if value not in allowed:
            raise PolicyError(name, f"must be one of {', '.join(map(str, allowed))}, not {value!r}")
    if not isinstance(policy.name, str) or not policy.name:
        raise PolicyError("name", f"must be a text that is not empty, not {policy.name!r}")
    if not isinstance(policy.stop_on_repeat, bool):
        raise PolicyError("stop_on_repeat", f"must be True or False, not {policy.stop_on_repeat!r}")
    object.__setattr__(policy, "release", ReleaseMode(policy.release))
    if policy.cite == "ignore" and policy.on_wrong_citation == "fail":
        raise PolicyError("cite", "'ignore' leaves nothing for on_wrong_citation='fail': use 'check', 'add' or 'fix'")
    if policy.formula == "reference" and policy.release is ReleaseMode.SENTENCE:
        raise PolicyError("release", "the reference formula scores whole answers: use 'answer' or 'observe'")


def _check_templates(policy: Policy) -> None:
    allowed = ", ".join(f"{{{name}}}" for name in sorted(_REFUSAL_FIELDS))
    for name in ("refusal", "refusal_tail"):
        template = getattr(policy, name)
        if not isinstance(template, str) or not template.strip():
            raise PolicyError(name, "must be a text that is not empty")
        try:
            fields = {field for _, field, _, _ in Formatter().parse(template) if field is not None}
            template.format(**dict.fromkeys(_REFUSAL_FIELDS, ""))
        except (KeyError, IndexError, ValueError, AttributeError) as error:
            raise PolicyError(name, f"is not a valid template; it may use {allowed}") from error
        if not fields <= _REFUSAL_FIELDS:
            raise PolicyError(name, f"is not a valid template; it may use {allowed}")


def _check_strict(policy: Policy) -> None:
    for name, value in _STRICT_CHOICES.items():
        if getattr(policy, name) != value:
            raise PolicyError(name, f"strict mode allows only {value!r}")


# Fitted on RAGTruth *train* answers for the lexical scorer (tests.benchmarks.fit_policy). With the embedded model, δ of
# balanced releases 86 % of the grounded held-out ones (fit_calibration); its detection δ is near strict_threshold.
BALANCED = Policy()
LENIENT = Policy(name="lenient", delta=0.925, on_exhausted="best")
STRICT = BALANCED.override(name="strict", delta=0.605, strict_threshold=0.7, release="answer", **_STRICT_CHOICES)
REFERENCE = Policy(name="reference", formula="reference", delta=0.15, lexical_weight=1.0, release="answer")

POLICIES = {policy.name: policy for policy in (BALANCED, STRICT, LENIENT, REFERENCE)}


def as_policy(policy: Policy | str) -> Policy:
    """Look a policy up by name, or pass one through.

    Args:
        policy: A policy, or one of ``balanced``, ``strict``, ``lenient``, ``reference``.

    Raises:
        PolicyError: If there is no policy of that name.
    """
    if isinstance(policy, Policy):
        return policy
    if isinstance(policy, str) and policy in POLICIES:
        return POLICIES[policy]
    raise PolicyError("name", f"no policy is called {policy!r}; there are {', '.join(sorted(POLICIES))}")


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerDecision:
    """What a policy says about a whole answer.

    Attributes:
        accepted: Whether it passes.
        reason: As in :class:`~guardrail.types.Verification`.
        delta_r: Mean ΔR of the claims.
        worst_delta_r: Largest ΔR.
    """

    accepted: bool
    reason: str
    delta_r: float | None
    worst_delta_r: float | None


def decide_answer(policy: Policy, verdicts: Sequence[ClaimVerdict], context_state: ContextState) -> AnswerDecision:
    """Decide about an answer from the verdicts of all its segments (evidence formula).

    Args:
        policy: The policy.
        verdicts: One per segment, in order, blank segments included or not.
        context_state: Whether there was something to check against.

    Returns:
        The decision. An answer without text, and an answer with a claim that was not scored, are never accepted;
        ``no_context="pass_marked"`` and ``on_error="pass_marked"`` deliver such answers all the same, marked.
    """
    claims = [v for v in verdicts if v.segment.kind.checked or v.checked]
    deltas = [v.delta_r for v in claims if v.delta_r is not None]
    accepted, reason = _accept(policy, verdicts, claims, context_state)
    return AnswerDecision(
        accepted=accepted,
        reason=reason,
        delta_r=sum(deltas) / len(deltas) if deltas else None,
        worst_delta_r=max(deltas) if deltas else None,
    )


def _accept(
    policy: Policy, verdicts: Sequence[ClaimVerdict], claims: Sequence[ClaimVerdict], context_state: ContextState
) -> tuple[bool, str]:
    kinds = {v.segment.kind for v in verdicts} - {SegmentKind.BLANK}
    if not kinds:
        return False, "empty_answer"
    if not claims:
        assents = [v for v in verdicts if is_assent(v.segment.text)]
        if (
            assents
            and kinds <= {SegmentKind.GREETING, SegmentKind.REFUSAL}
            and len(assents) == sum(v.segment.kind is SegmentKind.GREETING for v in verdicts)
        ):
            return False, "no_claims"  # "Of course!" may answer a yes-no question, and nothing can check it
        if SegmentKind.REFUSAL in kinds:
            return True, "abstained"
        if kinds == {SegmentKind.HEADING}:
            return False, "empty_answer"
        return policy.no_claims == "pass_marked", "no_claims"
    if context_state is not ContextState.GIVEN:
        return False, "no_context"
    if any(v.delta_r is None for v in claims):
        return False, "scoring_error"
    failed = [v for v in verdicts if not policy.passes(v)]
    if failed and policy.on_unknown_language == "fail" and all(v.language is not None for v in failed):
        return False, "unsupported_language"
    return (False, "claims_failed") if failed else (True, "passed")


def _rank(attempt: Attempt) -> tuple[bool, bool, float, float, int]:
    worst = math.inf if attempt.worst_delta_r is None else attempt.worst_delta_r
    mean = math.inf if attempt.delta_r is None else attempt.delta_r
    return (not attempt.accepted, not attempt.text.strip(), worst, mean, attempt.number)


def best_attempt(attempts: Sequence[Attempt]) -> Attempt | None:
    """The attempt to deliver: accepted first, then the lowest worst ΔR, then the lowest mean, then the earliest.

    Attempts without text are left out, and without a scored claim come last; ``None`` if there is none.
    """
    candidates = [a for a in attempts if a.text.strip()]
    return min(candidates, key=_rank) if candidates else None


def refusal_text(policy: Policy, *, reason: str, attempts: int, question: str, tail: bool = False) -> str:
    """Fill the refusal template of a policy.

    Args:
        policy: The policy.
        reason: Why the run ended.
        attempts: How many generator calls there were.
        question: The user's question.
        tail: Whether a part of the answer is already out.

    Returns:
        The text for the reader.
    """
    template = policy.refusal_tail if tail else policy.refusal
    return template.format(reason=reason, attempts=attempts, question=question)
