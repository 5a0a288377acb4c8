"""δ and the lexical weight from signals: what is chosen where, and when nothing is promised."""

from __future__ import annotations

import math
import random
import statistics

import pytest

from guardrail.errors import CalibrationError
from guardrail.evaluation.calibration.acceptance import AnswerSignals, ClaimSignals
from guardrail.evaluation.calibration.fitting import LEAST_TO_FIT, Wanted, fit, released, too_few
from guardrail.policy import BALANCED, AnswerDecision
from guardrail.scoring.delta_r import WindowSignals
from guardrail.types import Segment

FIXED = BALANCED.override(lexical_weight=0.0)


def answer(delta_r, *, hallucinated, rouge_l=1.0):
    """An answer of one claim with a ΔR at weight 0, and a ROUGE-L that other weights multiply in."""
    window = WindowSignals(
        passage_ids=("1",), rouge_l=rouge_l, entailment=round(1 - delta_r, 12), contradiction=None, clashes=()
    )
    claim = ClaimSignals(segment=Segment(start=0, end=1, text=""), windows=(window,), languages=(None,))
    return AnswerSignals(hallucinated=hallucinated, claims=(claim,))


def decided(accepted, reason, *, hallucinated=True):
    decision = AnswerDecision(accepted=accepted, reason=reason, delta_r=None, worst_delta_r=None)
    return AnswerSignals(hallucinated=hallucinated, decided=decision)


def bad(*deltas):
    return [answer(d, hallucinated=True) for d in deltas]


def good(*deltas):
    return [answer(d, hallucinated=False) for d in deltas]


def wanted(target=0.1, **others):
    return Wanted(target_miss=target, **others)


def test_delta_lies_below_the_kth_smallest_of_the_hallucinated_answers():
    found = fit(bad(*(i / 20 for i in range(1, 20))) + good(0.05, 0.09, 0.3), wanted(), policy=FIXED, own_weight=0.5)
    assert (found.k, found.delta) == (2, 0.099)
    assert (released(found.hallucinated, found.delta), released(found.grounded, found.delta)) == (1, 2)
    assert (found.lexical_weight, found.weight_source, found.fitting) == (0.0, "policy", 0)


def test_ties_at_the_threshold_are_not_accepted():
    found = fit(bad(*[0.4] * 30), wanted(0.2), policy=FIXED, own_weight=0.0)
    assert found.k == 6
    assert found.delta < 0.4
    assert released(found.hallucinated, found.delta) == 0


@pytest.mark.parametrize(("n", "others"), [(0, {}), (8, {}), (21, {"confidence": 0.9})])
def test_too_few_hallucinated_answers_promise_nothing_and_say_how_many_would(n, others):
    with pytest.raises(CalibrationError, match=f"and there are {n}: label more") as caught:
        fit(bad(*[0.5] * n) + good(0.1), wanted(**others), policy=FIXED, own_weight=0.0)
    assert caught.value.needed == (22 if others else 9)
    assert f"from {caught.value.needed} hallucinated answers on" in str(caught.value)
    assert fit(bad(*[0.5] * caught.value.needed), wanted(**others), policy=FIXED, own_weight=0.0).k == 1


def test_the_message_names_the_confidence():
    message = "at most 0.05 with confidence 0.95 can be promised from 59 "
    assert message in str(too_few(3, wanted(0.05, confidence=0.95)))


@pytest.mark.parametrize(
    ("always", "said"),
    [
        ([decided(True, "no_claims")] * 3, ["3 (no_claims)", 'set no_claims="refuse"']),
        ([decided(True, "abstained")] * 3, ["3 (abstained): choose a larger target_miss"]),
        (bad(0.0, 0.0, 0.0), ["3 (ΔR 0", "use another entailment model"]),
        (
            [decided(True, "abstained"), decided(True, "no_claims"), *bad(0.0)],
            ["1 (abstained) and 1 (no_claims) and 1"],
        ),
    ],
)
def test_answers_that_even_delta_0_accepts_are_named_with_what_to_change(always, said):
    with pytest.raises(CalibrationError, match="at most 1 may be accepted") as caught:
        fit(always + bad(*[0.5] * 17), wanted(), policy=FIXED, own_weight=0.0)
    assert all(words in str(caught.value) for words in said)
    assert caught.value.needed is None
    refusing = FIXED.override(no_claims="refuse")
    with pytest.raises(CalibrationError) as told:
        fit(always + bad(*[0.5] * 17), wanted(), policy=refusing, own_weight=0.0)
    assert "set no_claims" not in str(told.value)


def test_fewer_than_k_of_them_leave_room():
    found = fit([decided(True, "no_claims"), *bad(*[0.5] * 18)], wanted(), policy=FIXED, own_weight=0.0)
    assert (found.k, found.delta) == (2, 0.499)
    assert released(found.hallucinated, found.delta) == 1


def test_answers_that_no_delta_accepts_allow_every_delta():
    found = fit([decided(False, "no_context")] * 9, wanted(), policy=FIXED, own_weight=0.0)
    assert found.delta == 1.0


def test_a_refusal_that_is_allowed_is_no_error_and_a_higher_one_names_the_target_that_keeps_to_it():
    answers = bad(*(i / 100 for i in range(1, 100))) + good(*(i / 50 for i in range(1, 50)))
    found = fit(answers, wanted(0.2, max_refusal=0.8164), policy=FIXED, own_weight=0.0)
    assert 1 - released(found.grounded, found.delta) / 49 == pytest.approx(40 / 49)
    with pytest.raises(
        CalibrationError, match=r"costs the refusal of 81\.6% of the grounded answers \(49 measured\)"
    ) as at:
        fit(answers, wanted(0.2, max_refusal=0.5), policy=FIXED, own_weight=0.0)
    assert "target_miss 0.51 would keep to that" in str(at.value)
    fit(answers, wanted(0.51, max_refusal=0.5), policy=FIXED, own_weight=0.0)
    with pytest.raises(CalibrationError):
        fit(answers, wanted(0.509, max_refusal=0.5), policy=FIXED, own_weight=0.0)


def test_a_refusal_that_no_target_reaches():
    answers = bad(*[0.5] * 20) + [decided(False, "no_context", hallucinated=False)] * 5
    with pytest.raises(CalibrationError, match="no target reaches that"):
        fit(answers, wanted(0.1, max_refusal=0.2), policy=FIXED, own_weight=0.0)


def test_a_refusal_needs_grounded_answers_to_be_measured_on():
    with pytest.raises(CalibrationError, match="max_refusal needs grounded answers"):
        fit(bad(*[0.5] * 20), wanted(max_refusal=0.5), policy=FIXED, own_weight=0.0)


def overlap_tells(count, seed=0):
    """Answers that the model cannot tell apart and word overlap can."""
    random_ = random.Random(seed)
    return [
        answer(random_.uniform(0.2, 0.4), hallucinated=h, rouge_l=random_.uniform(0.1, 0.3) if h else 0.9)
        for h in (True, False)
        for _ in range(count)
    ]


def test_the_weight_is_fitted_where_there_is_enough_and_not_on_what_sets_delta():
    answers = overlap_tells(400)
    found = fit(answers, wanted(), policy=BALANCED, own_weight=0.0)
    assert (found.weight_source, found.fitting) == ("fitted", 240)
    assert found.lexical_weight > 0.1
    assert (len(found.hallucinated), len(found.grounded)) == (280, 280)
    assert released(found.grounded, found.delta) / 280 > 0.95
    kept = fit(answers, wanted(), policy=FIXED, own_weight=0.0)
    assert released(kept.grounded, kept.delta) / 400 < 0.3
    assert fit(answers, wanted(), policy=BALANCED, own_weight=0.0) == found
    assert fit(answers, wanted(), policy=BALANCED, own_weight=0.0, seed=1).hallucinated != found.hallucinated


def test_a_weight_that_is_not_clearly_better_leaves_that_of_the_model():
    random_ = random.Random(3)
    answers = [
        answer(random_.random(), hallucinated=h, rouge_l=random_.random()) for h in (True, False) for _ in range(300)
    ]
    found = fit(answers, wanted(0.2), policy=BALANCED, own_weight=0.05)
    assert (found.lexical_weight, found.weight_source) == (0.05, "confirmed")


@pytest.mark.parametrize("count", [9, math.ceil(LEAST_TO_FIT / 0.3) - 1])
def test_too_few_answers_to_fit_on_leave_the_weight_and_all_of_them_for_delta(count):
    found = fit(overlap_tells(count), wanted(), policy=BALANCED, own_weight=0.0)
    assert (found.lexical_weight, found.weight_source, found.fitting) == (0.0, "model", 0)
    assert len(found.hallucinated) == count


def test_fitting_never_takes_what_the_promise_needs():
    found = fit(overlap_tells(250), wanted(0.01), policy=BALANCED, own_weight=0.0)  # 99 needed, 175 would be left
    assert (found.weight_source, len(found.hallucinated)) == ("model", 250)


def test_the_promise_holds_although_a_weight_was_fitted():
    target, missed = 0.1, []
    for seed in range(20):
        answers = overlap_tells(170, seed)
        found = fit(answers, wanted(target), policy=BALANCED, own_weight=0.0, seed=seed)
        assert found.weight_source == "fitted"
        new = [a.accepted(BALANCED, found.lexical_weight) for a in overlap_tells(200, f"new {seed}") if a.hallucinated]
        missed.append(released(new, found.delta) / len(new))
    error = statistics.stdev(missed) / math.sqrt(len(missed))
    assert statistics.fmean(missed) <= target + 2 * error
    assert statistics.fmean(missed) >= target - 0.03
