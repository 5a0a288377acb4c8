"""The critical δ of an answer is where the policy and the verifier themselves change their mind."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guardrail.evaluation.benchmarks.ranking import NO_CLAIM
from guardrail.evaluation.calibration.acceptance import AnswerSignals, ClaimSignals, signals_of
from guardrail.evaluation.labelled import LabelledAnswer
from guardrail.policy import BALANCED, LENIENT, STRICT, decide_answer
from guardrail.scoring.delta_r import ROUNDING, WindowSignals
from guardrail.scoring.verifier import Verifier
from guardrail.testing import FakeEntailment
from guardrail.types import Clash, ClashKind, EntailmentScore, Segment

INF = math.inf
FIRM_ON_CONFLICT = BALANCED.override(name="conflicts fail", on_conflict="fail")
POLICIES = (BALANCED, STRICT, FIRM_ON_CONFLICT, BALANCED.override(on_unknown_language="fail"))
CONTEXT = (
    "The desk opens at ten. Entry is free on Mondays. The museum has three floors and a garden.",
    "The desk opens at nine. The garden closes in winter.",
)
ANSWERS = (
    "The desk opens at ten.",
    "The desk opens at nine.",
    "The desk opens at eight.",
    "Entry is free on Mondays. The museum has three floors.",
    "The museum has four floors. The garden is lovely in spring.",
    "Elephants enjoy warm puddles.",
    "The garden closes in winter. Hello! How are you?",
    "Il museo è aperto anche la domenica mattina per tutti i visitatori.",
    "Hello!",
    "The passages do not say when it closes.",
    "Of course!",
    "   ",
    "# Opening hours\n\n- The desk opens at ten.\n- Entry is free.",
)


def window(rouge_l, entailment, contradiction=None, *, clash=None, missing=None):
    clashes = () if clash is None else (Clash(kind=ClashKind.VALUE, claim_text="", contradicts=clash),)
    return WindowSignals(
        passage_ids=("1",),
        rouge_l=rouge_l,
        entailment=entailment,
        contradiction=contradiction,
        clashes=clashes,
        missing_log_odds=missing,
    )


def claim(*windows, languages=None):
    return ClaimSignals(
        segment=Segment(start=0, end=1, text=""), windows=windows, languages=languages or (None,) * len(windows)
    )


SHARES = st.sampled_from([0.0, 0.05, 0.3, 0.5, 0.6, 0.9, 0.95, 1.0]) | st.floats(0, 1)


@st.composite
def windows(draw):
    missing = draw(st.sampled_from([None, 4.0]))
    return [
        window(
            draw(SHARES),
            draw(SHARES),
            draw(st.none() | SHARES),
            clash=draw(st.sampled_from([None, None, True, False])),
            missing=missing,
        )
        for _ in range(draw(st.integers(1, 4)))
    ]


@st.composite
def claims(draw):
    own = draw(windows())
    return claim(*own, languages=tuple(draw(st.sampled_from([None, None, "it"])) for _ in own))


@settings(max_examples=300)
@given(
    st.lists(claims(), min_size=1, max_size=3),
    st.sampled_from(POLICIES),
    st.sampled_from([0.0, 0.05, 0.5, 1.0]),
    st.lists(st.floats(0, 1), max_size=4),
)
def test_intervals_say_at_every_delta_what_the_policy_says(found, policy, weight, deltas):
    answer = AnswerSignals(hallucinated=True, claims=tuple(found))
    accepted = answer.accepted(policy, weight)
    own = [w.delta_r(weight) for c in found for w in c.windows]
    near = [math.nextafter(d, to) for d in (*own, *(d - ROUNDING for d in own)) for to in (-1.0, 2.0)]
    for delta in (0.0, 1.0, *deltas, *own, *(d for d in near if 0 <= d <= 1)):
        real = decide_answer(policy.override(delta=delta), answer.verdicts(delta, weight), answer.state).accepted
        assert accepted.at(delta) is real
        assert not real or accepted.critical_delta <= delta


@pytest.mark.parametrize("policy", [*POLICIES, LENIENT, BALANCED.override(no_claims="refuse")], ids=lambda p: p.name)
@pytest.mark.parametrize("model", ["lexical", "graded", "calibrated"])
async def test_signals_lead_to_the_decisions_of_the_verifier(policy, model):
    policy = policy.override(lexical_weight=0.5)
    given = None if model == "lexical" else Graded(calibrated=model == "calibrated")
    entailment = FakeEntailment(0.7) if given is None else given
    for context in (CONTEXT, CONTEXT[:1], ()):
        for text in ANSWERS:
            row = LabelledAnswer(id="1", question="When?", context=context, answer=text, grounded=False)
            signals = await signals_of(row, Verifier(policy=policy, entailment=entailment), model=entailment)
            accepted = signals.accepted(policy, 0.5)
            turns = {0.0, 0.2, 0.5, 0.74, 1.0} | {d for i in accepted.intervals for d in i if 0 <= d <= 1}
            for delta in turns:
                verifier = Verifier(policy=policy.override(delta=delta), entailment=entailment)
                real = await verifier.verify(text, list(context), question="When?")
                assert accepted.at(delta) is real.accepted, (text, delta)
                scored = [v.delta_r for v in real.claims if v.delta_r is not None]
                assert [v.delta_r for v in signals.verdicts(delta, 0.5)] == scored


class Graded:
    """Scores by length, contradicts now and then; declares what calibrated English models declare."""

    model_id = "graded"
    languages = ("en",)

    def __init__(self, *, calibrated):
        self.missing_log_odds = 4.0 if calibrated else None

    async def score(self, pairs):
        shares = [len(pair.hypothesis) % 10 / 10 for pair in pairs]
        return [EntailmentScore(entailment=s, contradiction=(1 - s) * 0.9) for s in shares]


def test_a_vetoed_claim_is_never_accepted_and_silence_at_its_delta():
    never = AnswerSignals(hallucinated=True, claims=(claim(window(1.0, 0.99, clash=True)),))
    assert never.accepted(BALANCED, 0.5).critical_delta == INF
    silent = AnswerSignals(hallucinated=True, claims=(claim(window(0.0, 0.2)), claim(window(1.0, 0.9))))
    assert silent.accepted(BALANCED, 1.0).critical_delta == 1.0
    assert silent.accepted(BALANCED, 0.0).critical_delta == 0.8


def test_acceptance_need_not_grow_with_delta():
    # Two passages disagree: a conflict, which is released. Once the objection passes by itself it is none any more, and
    # what the verdict rests on then does not reach δ.
    found = claim(
        window(1.0, 0.02, 0.1, missing=4.0),
        window(1.0, 0.95, 0.0, missing=4.0),
        window(1.0, 0.3, 0.6, missing=4.0),
    )
    accepted = AnswerSignals(hallucinated=True, claims=(found,)).accepted(BALANCED, 0.0)
    assert [(round(a, 3), round(b, 3)) for a, b in accepted.intervals] == [(0.05, 0.7), (0.98, INF)]
    assert accepted.critical_delta == pytest.approx(0.05)
    assert [accepted.at(delta) for delta in (0.04, 0.06, 0.69, 0.8, 0.99)] == [False, True, True, False, True]


@pytest.mark.parametrize(
    ("text", "context", "critical", "reason"),
    [
        ("Hello!", CONTEXT, -INF, "no_claims"),
        ("The passages do not say when it closes.", CONTEXT, -INF, "abstained"),
        ("Of course!", CONTEXT, INF, "no_claims"),
        (" \n", CONTEXT, INF, "empty_answer"),
        ("The desk opens at ten.", (), INF, "no_context"),
        ("Hello!", (), -INF, "no_claims"),
    ],
)
async def test_answers_that_no_delta_decides_about(text, context, critical, reason):
    row = LabelledAnswer(id="1", question="", context=context, answer=text, grounded=False)
    model = FakeEntailment(0.5)
    signals = await signals_of(row, Verifier(entailment=model), model=model)
    accepted = signals.accepted(BALANCED, 0.5)
    assert (accepted.critical_delta, accepted.reason) == (critical, reason)
    assert signals.score(BALANCED, 0.5) == (None if reason == "no_context" else NO_CLAIM)


async def test_no_text_of_answers_and_passages_is_kept():
    row = LabelledAnswer(id="1", question="When?", context=CONTEXT, answer="The desk opens at eight.", grounded=False)
    model = FakeEntailment(0.5)
    signals = await signals_of(row, Verifier(entailment=model), model=model)
    assert signals.claims
    assert any(w.clashes for c in signals.claims for w in c.windows)
    assert [c.segment.text for c in signals.claims] == [""]
    assert all(not (k.claim_text or k.evidence_text) for c in signals.claims for w in c.windows for k in w.clashes)


def test_what_stands_behind_the_claim_that_stops_a_run_does_not_count():
    strict = STRICT.override(delta=0.6)
    passes, fails, worse = claim(window(1.0, 0.8)), claim(window(1.0, 0.65)), claim(window(1.0, 0.5))
    answer = AnswerSignals(hallucinated=False, claims=(passes, fails, worse))
    assert answer.score(strict, 0.0) == 0.35  # within δ, below the strict threshold
    assert answer.score(BALANCED, 0.0) == 0.5
    assert answer.score(STRICT.override(delta=0.6, release="observe"), 0.0) == 0.5
    assert AnswerSignals(hallucinated=False, claims=(passes,)).score(strict, 0.0) == 0.2
