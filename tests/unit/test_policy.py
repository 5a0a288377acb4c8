"""The pure decisions, as tables."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail import PolicyError
from guardrail.policy import (
    BALANCED,
    LENIENT,
    POLICIES,
    REFERENCE,
    STRICT,
    Policy,
    as_policy,
    best_attempt,
    decide_answer,
    refusal_text,
)
from guardrail.reasons import why_failed
from guardrail.types import (
    Attempt,
    ClaimVerdict,
    Clash,
    ClashKind,
    ContextState,
    ReleaseMode,
    Segment,
    SegmentKind,
    VerdictLabel,
)

S, C, U, X = VerdictLabel.SUPPORTED, VerdictLabel.CONTRADICTED, VerdictLabel.UNVERIFIABLE, VerdictLabel.CONFLICT


def verdict(
    delta_r: float | None = 0.0,
    label: VerdictLabel | None = S,
    *,
    entailment: float | None = None,
    kind: SegmentKind = SegmentKind.CLAIM,
    **more: Any,
) -> ClaimVerdict:
    if entailment is None and delta_r is not None:
        entailment = 1.0 - delta_r
    segment = Segment(start=0, end=4, text="Text", kind=kind)
    return ClaimVerdict(segment=segment, verdict=label, delta_r=delta_r, entailment=entailment, rouge_l=1.0, **more)


def other(kind: SegmentKind) -> ClaimVerdict:
    return verdict(None, None, kind=kind, reason="kind")


# --- passes ---------------------------------------------------------------------------------------------------

STRICT_AT_7 = Policy(
    delta=0.5,
    strict_threshold=0.7,
    no_claims="refuse",
    on_conflict="fail",
    on_unknown_language="fail",
    on_wrong_citation="fail",
)
FAILS_UNKNOWN = Policy(delta=0.5, on_unknown_language="fail")

PASSES = [
    (Policy(delta=0.5), verdict(0.0), True),
    (Policy(delta=0.5), verdict(0.5), True),
    (Policy(delta=0.5), verdict(math.nextafter(0.5, 1)), False),
    (Policy(delta=0.0), verdict(0.0), True),
    (Policy(delta=0.0), verdict(5e-324), False),
    (Policy(delta=1.0), verdict(1.0), True),
    (Policy(delta=1.0), verdict(1.0, C), False),
    (Policy(delta=0.5), verdict(0.1, C), False),
    (Policy(delta=0.5), verdict(0.9, U), False),
    (Policy(delta=0.5), verdict(math.nan), False),
    (Policy(delta=1.0), verdict(math.nan), False),
    (Policy(delta=0.5), verdict(math.inf), False),
    (Policy(delta=0.5), verdict(None, None), False),
    (Policy(delta=1.0), verdict(None, None), False),
    (Policy(delta=0.5), verdict(0.9, X), True),
    (Policy(delta=0.5, on_conflict="fail"), verdict(0.0, X), False),
    (Policy(delta=0.5), verdict(0.1, language="it"), True),
    (Policy(delta=0.5), verdict(0.9, U, language="it"), False),
    (FAILS_UNKNOWN, verdict(0.1), True),
    (FAILS_UNKNOWN, verdict(0.0, language="it"), False),
    (FAILS_UNKNOWN, verdict(0.0, X, language="it"), False),
    (FAILS_UNKNOWN, other(SegmentKind.GREETING), True),
    (STRICT_AT_7, verdict(0.0, language="it"), False),
    (STRICT_AT_7, verdict(0.3, entailment=0.7), True),
    (STRICT_AT_7, verdict(0.3, entailment=math.nextafter(0.7, 0)), False),
    (STRICT_AT_7, verdict(0.0, entailment=math.nan), False),
    (STRICT_AT_7, verdict(0.6, entailment=1.0), False),
    (STRICT_AT_7, verdict(0.0, X, entailment=1.0), False),
    *[(Policy(), other(kind), True) for kind in SegmentKind if not kind.checked],
    *[(STRICT_AT_7, other(kind), True) for kind in SegmentKind if not kind.checked],
    (Policy(), verdict(0.9, U, kind=SegmentKind.CODE), False),
    (Policy(), verdict(0.9, U, kind=SegmentKind.HEADING), False),  # scored all the same: then it counts
    (Policy(), verdict(None, None, kind=SegmentKind.CODE), False),
]


@pytest.mark.parametrize(("policy", "found", "expected"), PASSES)
def test_passes(policy: Policy, found: ClaimVerdict, expected: bool):
    assert policy.passes(found) is expected


# --- whole answers --------------------------------------------------------------------------------------------

GIVEN, EMPTY, ABSENT = ContextState.GIVEN, ContextState.EMPTY, ContextState.ABSENT
GREETING, QUESTION, HEADING, REFUSAL, BLANK = (
    other(SegmentKind.GREETING),
    other(SegmentKind.QUESTION),
    other(SegmentKind.HEADING),
    other(SegmentKind.REFUSAL),
    other(SegmentKind.BLANK),
)
UNSCORED = verdict(None, None, reason="scoring_error")
GOOD, BAD = verdict(0.1), verdict(0.9, U)
MARKS = Policy(no_context="pass_marked")
CLAIMS_NEEDED = Policy(no_claims="refuse")

ANSWERS: list[tuple[Policy, list[ClaimVerdict], ContextState, bool, str]] = [
    (BALANCED, [GOOD], GIVEN, True, "passed"),
    (BALANCED, [GOOD, GREETING, GOOD], GIVEN, True, "passed"),
    (BALANCED, [GOOD, BAD], GIVEN, False, "claims_failed"),
    (BALANCED, [BAD, REFUSAL], GIVEN, False, "claims_failed"),
    (BALANCED, [], GIVEN, False, "empty_answer"),
    (BALANCED, [BLANK], GIVEN, False, "empty_answer"),
    (BALANCED, [HEADING], GIVEN, False, "empty_answer"),
    (BALANCED, [GREETING], GIVEN, True, "no_claims"),
    (BALANCED, [QUESTION], GIVEN, True, "no_claims"),
    (CLAIMS_NEEDED, [GREETING], GIVEN, False, "no_claims"),
    (BALANCED, [REFUSAL], GIVEN, True, "abstained"),
    (CLAIMS_NEEDED, [REFUSAL, GREETING], GIVEN, True, "abstained"),
    (BALANCED, [REFUSAL], EMPTY, True, "abstained"),
    (BALANCED, [GOOD, UNSCORED], GIVEN, False, "scoring_error"),
    (BALANCED, [UNSCORED], GIVEN, False, "scoring_error"),
    (BALANCED, [verdict(math.nan)], GIVEN, False, "claims_failed"),
    (BALANCED, [verdict(None, None, reason="no_context")], EMPTY, False, "no_context"),
    (BALANCED, [verdict(None, None, reason="no_context")], ABSENT, False, "no_context"),
    (BALANCED, [GOOD], ABSENT, False, "no_context"),
    (BALANCED, [], EMPTY, False, "empty_answer"),
    (STRICT, [verdict(0.1, entailment=0.9)], GIVEN, True, "passed"),
    (STRICT, [verdict(0.4, entailment=0.6)], GIVEN, False, "claims_failed"),
    (STRICT, [GREETING], GIVEN, False, "no_claims"),
    (STRICT, [REFUSAL], GIVEN, True, "abstained"),
    (STRICT, [GOOD], EMPTY, False, "no_context"),
    (STRICT, [UNSCORED], GIVEN, False, "scoring_error"),
    (STRICT, [verdict(0.0, language="it")], GIVEN, False, "unsupported_language"),
    (STRICT, [verdict(0.0), verdict(0.0, language="it")], GIVEN, False, "unsupported_language"),
    (STRICT, [verdict(0.0, language="it"), verdict(0.9, U)], GIVEN, False, "claims_failed"),
    (STRICT, [verdict(0.0, language="it"), UNSCORED], GIVEN, False, "scoring_error"),
    (STRICT, [verdict(0.0, language="it")], EMPTY, False, "no_context"),
    (BALANCED, [verdict(0.0, language="it")], GIVEN, True, "passed"),
    (BALANCED, [verdict(0.9, U, language="it")], GIVEN, False, "claims_failed"),
    (STRICT, [], GIVEN, False, "empty_answer"),
]


@pytest.mark.parametrize(("policy", "found", "state", "accepted", "reason"), ANSWERS)
def test_decide_answer(policy: Policy, found: list[ClaimVerdict], state: ContextState, accepted: bool, reason: str):
    decision = decide_answer(policy, found, state)
    assert (decision.accepted, decision.reason) == (accepted, reason)


@given(
    st.lists(
        st.builds(
            verdict,
            st.one_of(st.none(), st.floats(0, 1)),
            st.sampled_from([S, C, U, X, None]),
            kind=st.sampled_from([*SegmentKind]),
        ),
        max_size=6,
    ),
    st.sampled_from([*ContextState]),
    st.sampled_from([BALANCED, STRICT, LENIENT]),
)
def test_never_a_vacuous_acceptance(found: list[ClaimVerdict], state: ContextState, policy: Policy):
    decision = decide_answer(policy, found, state)
    claims = [v for v in found if v.segment.kind.checked or v.checked]
    if decision.accepted:
        assert all(policy.passes(v) for v in claims)
        assert not claims or state is ContextState.GIVEN
        assert any(v.segment.kind is not SegmentKind.BLANK for v in found)
        assert not policy.strict or claims or decision.reason == "abstained"
    deltas = [v.delta_r for v in claims if v.delta_r is not None]
    assert decision.worst_delta_r == (max(deltas) if deltas else None)
    assert decision.delta_r is None or 0.0 <= decision.delta_r <= 1.0


def test_the_gate_is_the_worst_claim_and_not_the_mean():
    decision = decide_answer(Policy(delta=0.5), [verdict(0.0)] * 9 + [verdict(0.6, U)], GIVEN)
    assert not decision.accepted
    assert decision.delta_r == pytest.approx(0.06)
    assert decision.worst_delta_r == 0.6


# --- the best attempt -----------------------------------------------------------------------------------------


def attempt(number: int, worst: float | None, mean: float | None = None, text: str = "Text.", **more: Any) -> Attempt:
    return Attempt(number=number, text=text, worst_delta_r=worst, delta_r=worst if mean is None else mean, **more)


BEST: list[tuple[list[Attempt], int | None]] = [
    ([], None),
    ([attempt(1, None, text="")], None),
    ([attempt(1, None, text="  \n")], None),
    ([attempt(1, 0.9), attempt(2, 0.6)], 2),
    ([attempt(1, 0.6), attempt(2, 0.9)], 1),
    ([attempt(1, 0.6), attempt(2, 0.6)], 1),
    ([attempt(2, 0.6), attempt(1, 0.6)], 1),
    ([attempt(1, 0.6, 0.5), attempt(2, 0.6, 0.3)], 2),
    ([attempt(1, 0.9, 0.1), attempt(2, 0.8, 0.7)], 2),
    ([attempt(1, None), attempt(2, 0.99)], 2),
    ([attempt(1, None), attempt(2, None)], 1),
    ([attempt(1, 0.0), attempt(2, 0.4, accepted=True)], 2),
    ([attempt(1, 0.0, text=""), attempt(2, 1.0)], 2),
    ([attempt(1, 0.7), attempt(2, 0.2), attempt(3, 0.7)], 2),
]


@pytest.mark.parametrize(("attempts", "expected"), BEST)
def test_best_attempt(attempts: list[Attempt], expected: int | None):
    best = best_attempt(attempts)
    assert (best.number if best else None) == expected


# --- profiles, release, texts -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "streaming", "can_continue", "expected"),
    [
        (BALANCED, True, False, ReleaseMode.SENTENCE),
        (BALANCED, True, True, ReleaseMode.SENTENCE),
        (BALANCED, False, True, ReleaseMode.SENTENCE),
        (BALANCED, False, False, ReleaseMode.ANSWER),
        (STRICT, True, True, ReleaseMode.ANSWER),
        (STRICT, False, False, ReleaseMode.ANSWER),
        (STRICT_AT_7, True, True, ReleaseMode.ANSWER),
        (REFERENCE, True, True, ReleaseMode.ANSWER),
        *[
            (Policy(release=mode), streaming, can_continue, ReleaseMode(mode))
            for mode in ("sentence", "answer", "observe")
            for streaming in (False, True)
            for can_continue in (False, True)
        ],
    ],
)
def test_resolve_release(policy: Policy, streaming: bool, can_continue: bool, expected: ReleaseMode):
    assert policy.resolve_release(streaming=streaming, can_continue=can_continue) is expected


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("on_error", "raise"),
        ("on_error", "pass_marked"),
        ("on_exhausted", "best"),
        ("no_context", "pass_marked"),
        ("no_claims", "pass_marked"),
        ("on_conflict", "release"),
        ("on_unknown_language", "mark"),
        ("on_wrong_citation", "mark"),
    ],
)
def test_strict_mode_allows_no_way_out(field: str, value: str):
    with pytest.raises(PolicyError) as caught:
        STRICT.override(**{field: value})
    assert caught.value.field == field


def test_the_reference_formula_cannot_release_sentences():
    with pytest.raises(PolicyError) as caught:
        REFERENCE.override(release="sentence")
    assert caught.value.field == "release"


def test_profiles_are_found_by_name():
    assert set(POLICIES) == {"balanced", "strict", "lenient", "reference"}
    for name, policy in POLICIES.items():
        assert as_policy(name) is policy
        assert policy.name == name
        assert as_policy(policy) is policy
        assert 1 <= policy.max_attempts <= 3
    assert STRICT.strict
    assert not any(p.strict for p in (BALANCED, LENIENT, REFERENCE))


def test_a_policy_is_frozen_and_an_override_is_another_one():
    with pytest.raises(dataclasses.FrozenInstanceError):
        BALANCED.delta = 0.9  # type: ignore[misc]
    changed = BALANCED.override(delta=0.25, release="answer")
    assert (changed.delta, changed.release) == (0.25, ReleaseMode.ANSWER)
    assert BALANCED.release is ReleaseMode.AUTO
    assert changed != BALANCED
    assert BALANCED.override() == BALANCED


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("No.", "No."),
        ("{attempts} tries: {reason}", "3 tries: attempts_exhausted"),
        ("About {question}", "About {reason}?"),
        ("{{reason}} {reason}", "{reason} attempts_exhausted"),
    ],
)
def test_refusal_text(template: str, expected: str):
    for fields in ({"refusal": template}, {"refusal_tail": template}):
        policy = Policy(**fields)  # type: ignore[arg-type]
        text = refusal_text(
            policy, reason="attempts_exhausted", attempts=3, question="{reason}?", tail="refusal_tail" in fields
        )
        assert text == expected


def clash(claim: str, evidence: str) -> Clash:
    return Clash(kind=ClashKind.VALUE, claim_text=claim, evidence_text=evidence, contradicts=bool(evidence))


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (verdict(1.0, C, clashes=(clash("15 euro", "12 euro"),)), ["12 euro", "15 euro"]),
        (verdict(1.0, C), ["otherwise"]),
        (verdict(0.5, X), ["disagree"]),
        (verdict(1.0, U, clashes=(clash("15 euro", ""),)), ["15 euro", "not mention"]),
        (verdict(1.0, U), ["not support"]),
        (verdict(0.0, language="it"), ["cannot be checked", "(it)"]),
        (verdict(1.0, C, language="it"), ["otherwise"]),
        (verdict(None, None), ["not support"]),
    ],
)
def test_why_failed(found: ClaimVerdict, words: list[str]):
    why = why_failed(found)
    assert all(word in why for word in words)
    assert "\n" not in why
