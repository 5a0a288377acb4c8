"""The cascade: which pairs a judge is asked about, and what its answers do."""

from __future__ import annotations

import asyncio
import logging
from contextlib import contextmanager

import pytest

from guardrail.errors import ConfigurationError, JudgeError, ScoringError
from guardrail.evaluation.cascade.budget import JudgeBudget
from guardrail.evaluation.cascade.cascading import HIGH, LOW, NOT_SUPPORTED, SUPPORTED, Cascade
from guardrail.evaluation.judging.verdicts import Judgement, JudgeVerdict
from guardrail.policy import POLICIES
from guardrail.protocols import Entailment, Pair, SelectiveEntailment
from guardrail.scope import run_scope
from guardrail.scoring.delta_r import CONTRADICTED_CAP, FIRM_SUPPORT, delta_r
from guardrail.scoring.entailment import as_entailment
from guardrail.scoring.entailment.shared_cache import SharedCache
from guardrail.testing import FakeEntailment
from guardrail.types import EntailmentScore
from tests.stub_judges import NO, NONSENSE, PARTIAL, YES, StubbornJudge, StubJudge
from tests.stub_stores import StubStore


def pairs(*scores):
    """One pair per score; the score is in the claim, where :data:`MODEL` reads it."""
    return [Pair(f"premise {at}", str(score)) for at, score in enumerate(scores)]


MODEL = FakeEntailment(lambda premise, hypothesis: float(hypothesis))


@contextmanager
def guarded_run():
    token = run_scope.set({})
    yield
    run_scope.reset(token)


async def scored(judge, *scores, **options):
    return await Cascade(judge, model=MODEL, **options).score(pairs(*scores))


def values(scores):
    return [score.entailment for score in scores]


# --- the band -----------------------------------------------------------------------------------------------------


async def test_only_what_is_doubtful_is_asked_and_the_ends_of_the_band_are():
    judge = StubJudge(YES)
    found = await scored(judge, 0.0, LOW - 0.01, LOW, 0.5, HIGH, HIGH + 0.01, 1.0)
    assert {float(pair.hypothesis) for pair in judge.asked} == {LOW, 0.5, HIGH}
    assert values(found) == [0.0, LOW - 0.01, SUPPORTED, SUPPORTED, SUPPORTED, HIGH + 0.01, 1.0]
    assert [score.judged for score in found] == ["", "", "yes", "yes", "yes", "", ""]
    assert [score.screened for score in found] == [None, None, LOW, 0.5, HIGH, None, None]


@pytest.mark.parametrize(
    ("judgement", "value", "judged"),
    [(YES, SUPPORTED, "yes"), (NO, NOT_SUPPORTED, "no"), (PARTIAL, NOT_SUPPORTED, "partial")],
)
async def test_a_verdict_moves_n_out_of_the_band_and_both_are_kept(judgement, value, judged):
    assert await scored(StubJudge(judgement), 0.5) == [EntailmentScore(entailment=value, screened=0.5, judged=judged)]


async def test_a_verdict_never_moves_n_the_other_way():
    assert values(await scored(StubJudge(YES), 0.95, low=0, high=1)) == [0.95]
    assert values(await scored(StubJudge(NO), 0.01, low=0, high=1)) == [0.01]


def test_the_values_decide_with_every_shipped_policy():
    for policy in POLICIES.values():
        if policy.formula == "evidence":
            assert delta_r(1.0, NOT_SUPPORTED) > policy.delta
            assert delta_r(1.0, SUPPORTED) <= policy.delta
            assert (policy.strict_threshold or 0.0) <= SUPPORTED
    assert NOT_SUPPORTED <= CONTRADICTED_CAP < LOW
    assert HIGH < SUPPORTED < FIRM_SUPPORT


async def test_a_contradiction_is_the_models():
    def model(premise, hypothesis):
        contradiction, entailment = map(float, hypothesis.split())
        return EntailmentScore(entailment=entailment, contradiction=contradiction)

    judge = StubJudge(YES)
    asked = [Pair("p", text) for text in ("0.6 0.3", "0.5 0.4", "0.1 0.5")]
    found = await Cascade(judge, model=FakeEntailment(model)).score(asked)
    assert {pair.hypothesis for pair in judge.asked} == {"0.5 0.4", "0.1 0.5"}
    assert [(s.entailment, s.contradiction) for s in found] == [(0.3, 0.6), (SUPPORTED, 0.5), (SUPPORTED, 0.1)]


async def test_a_pair_is_asked_about_once_per_call():
    judge = StubJudge(YES)
    found = await Cascade(judge, model=FakeEntailment(0.5)).score([Pair("p", "a"), Pair("p", "b"), Pair("p", "a")])
    assert judge.asked == [Pair("p", "a"), Pair("p", "b")]
    assert values(found) == [SUPPORTED] * 3


async def test_pairs_that_can_change_nothing_are_not_asked():
    judge = StubJudge(NO)
    cascade = Cascade(judge, model=FakeEntailment(0.5))
    found = await cascade.score_selected([Pair("p", "a"), Pair("p", "b")], [False, True])
    assert [pair.hypothesis for pair in judge.asked] == ["b"]
    assert found[0] == EntailmentScore(entailment=0.5)
    with pytest.raises(ValueError, match="zip"):
        await cascade.score_selected([Pair("p", "a"), Pair("p", "b")], [True])


async def test_nothing_is_asked_about_nothing():
    judge = StubJudge(YES)
    assert await scored(judge) == []
    assert judge.asked == []


# --- no verdict ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reply", NONSENSE.values(), ids=NONSENSE)
async def test_what_is_no_verdict_never_lifts_n(reply):
    for on_failure, value in (("doubt", NOT_SUPPORTED), ("model", 0.5)):
        (found,) = await scored(StubJudge(reply), 0.5, on_failure=on_failure)
        assert (found.entailment, found.screened) == (value, 0.5)
        assert found.judged.removeprefix("error:") in {"failed", "unreadable", "misled", "rate_limited", "transport"}
    with pytest.raises(JudgeError, match=r"'stub' gave no verdict about 1 of 1 doubtful pairs: \w+$") as caught:
        await scored(StubJudge(reply), 0.5, on_failure="raise")
    assert caught.value.scorer.endswith("+stub")
    assert caught.value.error == found.judged.removeprefix("error:")


async def test_one_failure_takes_no_other_pair_with_it():
    judge = StubJudge(lambda pair: RuntimeError("no") if pair.hypothesis == "0.4" else YES)
    found = await scored(judge, 0.5, 0.4, 0.6)
    assert [score.judged for score in found] == ["yes", "error:failed", "yes"]


async def test_what_a_judge_raises_is_not_logged_with_its_text(caplog):
    with caplog.at_level(logging.DEBUG):
        await scored(StubJudge(RuntimeError("the secret answer")), 0.5)
    assert "RuntimeError" in caplog.text
    assert "secret" not in caplog.text


async def test_late_verdicts_count_as_none_and_their_calls_are_cancelled():
    judge = StubJudge(YES, reaches=1)
    found = await scored(judge, 0.6, 0.5, 0.55, deadline_s=0.02)
    assert [score.judged for score in found] == ["error:timeout", "yes", "error:timeout"]
    assert values(found) == [NOT_SUPPORTED, SUPPORTED, NOT_SUPPORTED]
    assert judge.cancelled == 2
    assert len(asyncio.all_tasks()) == 1


async def test_a_cancelled_call_leaves_no_call_of_the_judge_behind():
    judge = StubJudge(YES, reaches=0)
    call = asyncio.create_task(scored(judge, 0.5, 0.6, deadline_s=None))
    while len(judge.asked) < 2:
        await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert judge.cancelled == 2
    assert len(asyncio.all_tasks()) == 1


async def test_a_judge_that_cannot_be_cancelled_does_not_hold_the_call_up(caplog):
    judge = StubbornJudge()
    found = await scored(judge, 0.5, deadline_s=0.01)
    assert found[0].judged == "error:timeout"
    assert "did not end within" in caplog.text
    judge.let_go.set()
    await judge.ended.wait()


@pytest.mark.parametrize(
    "returned", [[], [0.5], [float("nan")] * 2, [1.5] * 2, ["0.5"] * 2, None], ids=lambda value: str(value)
)
async def test_a_model_that_returns_nonsense_is_an_error_and_nobody_is_asked(returned):
    judge = StubJudge(YES)
    with pytest.raises(ScoringError):
        await Cascade(judge, model=lambda asked: returned).score(pairs(0.5, 0.5))
    assert judge.asked == []


class Unchecked:
    """A selective model of somebody else, which no adapter checks."""

    model_id = "unchecked"

    def __init__(self, *returned):
        self.returned = list(returned)

    async def score(self, asked):
        return self.returned

    async def score_selected(self, asked, decisive):
        return self.returned


@pytest.mark.parametrize(
    "returned",
    [
        (),
        (EntailmentScore(entailment=float("nan")),),
        (EntailmentScore(entailment=0.5, screened=float("inf")),),
        (EntailmentScore(entailment=True),),
        (0.5,),
    ],
)
async def test_a_model_that_is_taken_as_it_is_is_checked_all_the_same(returned):
    with pytest.raises(ScoringError):
        await Cascade(StubJudge(YES), model=Unchecked(*returned)).score(pairs(0.5))


# --- budgets ------------------------------------------------------------------------------------------------------


async def test_the_most_doubtful_pairs_are_asked_first():
    judge = StubJudge(YES)
    found = await scored(judge, 0.3, 0.7, 0.5, 0.45, 0.52, budget=2)
    assert [pair.hypothesis for pair in judge.asked] == ["0.5", "0.52"]
    assert [score.judged for score in found] == ["error:budget", "error:budget", "yes", "error:budget", "yes"]
    assert values(found)[0] == NOT_SUPPORTED


async def test_a_budget_is_for_all_calls_and_for_all_who_share_it():
    shared = JudgeBudget(3)
    first, second = (Cascade(StubJudge(YES), model=MODEL, budget=shared) for _ in range(2))
    await first.score(pairs(0.5, 0.4))
    found = await second.score(pairs(0.5, 0.4))
    assert [score.judged for score in found] == ["yes", "error:budget"]
    assert first.budget is second.budget
    assert shared.left == 0
    assert Cascade(StubJudge(YES)).budget is None


async def test_the_budget_of_a_run_is_for_that_run_alone():
    cascade = Cascade(StubJudge(YES), model=MODEL, judgements_per_run=2)

    async def run():
        with guarded_run():
            return [score.judged for _ in range(2) for score in await cascade.score(pairs(0.5, 0.4))]

    both = await asyncio.gather(asyncio.create_task(run()), asyncio.create_task(run()))
    assert both == [["yes", "yes", "error:budget", "error:budget"]] * 2
    assert [score.judged for score in await cascade.score(pairs(*[0.5] * 9))] == ["yes"] * 9  # no run


async def test_two_cascades_in_one_run_have_a_budget_each():
    with guarded_run():
        for _ in range(2):
            assert (await scored(StubJudge(YES), 0.5, judgements_per_run=1))[0].judged == "yes"


async def test_what_a_run_may_not_ask_is_not_taken_from_the_budget_for_all():
    budget = JudgeBudget(5)
    with guarded_run():
        await scored(StubJudge(YES), 0.5, 0.4, 0.6, judgements_per_run=1, budget=budget)
    assert budget.left == 4


async def test_what_the_budget_for_all_does_not_allow_is_not_taken_from_the_run():
    budget = JudgeBudget(0)
    cascade = Cascade(StubJudge(YES), model=MODEL, judgements_per_run=1, budget=budget)
    with guarded_run():
        assert (await cascade.score(pairs(0.5)))[0].judged == "error:budget"
        budget.give_back()
        assert (await cascade.score(pairs(0.5)))[0].judged == "yes"


async def test_what_the_judge_knew_costs_nothing():
    budget = JudgeBudget(2)
    judge = StubJudge(lambda pair: Judgement(verdict=JudgeVerdict.YES, cached=pair.hypothesis == "0.4"))
    await scored(judge, 0.5, 0.4, budget=budget)
    assert budget.left == 1


async def test_without_any_budget_every_doubt_is_one():
    found = await scored(StubJudge(YES), 0.5, budget=0)
    assert (found[0].entailment, found[0].judged) == (NOT_SUPPORTED, "error:budget")
    with pytest.raises(JudgeError, match="budget"):
        await scored(StubJudge(YES), 0.5, budget=0, on_failure="raise")


# --- in the place of a model --------------------------------------------------------------------------------------


def test_it_takes_the_place_of_a_model():
    cascade = Cascade(StubJudge(YES), model=MODEL)
    assert isinstance(cascade, Entailment)
    assert isinstance(cascade, SelectiveEntailment)
    assert as_entailment(cascade) is cascade
    assert cascade.model_id == "fake+stub"


def test_it_declares_what_its_model_declares():
    class Declaring(FakeEntailment):
        languages = ("en", "it")
        lexical_weight = 0.1
        detection_delta = 0.4
        missing_log_odds = 4.0

    cascade = Cascade(StubJudge(YES), model=Declaring(0.5))
    found = (cascade.languages, cascade.lexical_weight, cascade.detection_delta, cascade.missing_log_odds)
    assert found == (("en", "it"), 0.1, 0.4, 4.0)
    plain = Cascade(StubJudge(YES), model=MODEL)
    assert plain.languages is plain.lexical_weight is plain.detection_delta is plain.missing_log_odds is None


def test_the_embedded_model_screens_by_default():
    cascade = Cascade(StubJudge(YES))
    assert cascade.model_id == "onnx:embedded+stub"


def test_the_fingerprint_tells_models_judges_and_rules_apart():
    class Hashed(FakeEntailment):
        def __init__(self, value):
            super().__init__(0.5)
            self.value = value

        def fingerprint(self):
            return self.value

    class Other(StubJudge):
        judge_id = "other"

    cascades = [
        Cascade(StubJudge(YES), model=Hashed("a")),
        Cascade(StubJudge(YES), model=Hashed("b")),
        Cascade(StubJudge(YES), model=MODEL),
        Cascade(Other(YES), model=Hashed("a")),
        Cascade(StubJudge(YES), model=Hashed("a"), low=0.3),
        Cascade(StubJudge(YES), model=Hashed("a"), on_failure="model"),
    ]
    assert len({cascade.fingerprint() for cascade in cascades}) == len(cascades)
    assert cascades[0].fingerprint() == Cascade(StubJudge(NO), model=Hashed("a"), budget=3).fingerprint()


async def test_a_wrapper_around_a_cascade_keeps_both_verdicts():
    cascade = Cascade(StubJudge(YES), model=MODEL)
    wrapped = as_entailment(cascade.score)
    assert await wrapped.score(pairs(0.5)) == [EntailmentScore(entailment=SUPPORTED, screened=0.5, judged="yes")]


def test_a_shared_cache_belongs_inside():
    store = StubStore()
    with pytest.raises(ConfigurationError, match=r"Cascade\(judge, model=SharedCache"):
        SharedCache(Cascade(StubJudge(YES), model=MODEL), store)


async def test_a_shared_cache_inside_holds_what_the_model_says():
    store = StubStore()
    async with SharedCache(FakeEntailment(0.5), store) as cache:
        assert values(await Cascade(StubJudge(YES), model=cache).score(pairs(0.5))) == [SUPPORTED]
    assert await SharedCache(FakeEntailment(0.9), store).score(pairs(0.5)) == [EntailmentScore(entailment=0.5)]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"judge": object()}, "needs a judge"),
        ({"judge": StubJudge}, "needs a judge"),
        ({"judge": lambda pairs: pairs}, "LLMJudge"),
        ({"low": 0.6, "high": 0.4}, "low=0.6, high=0.4"),
        ({"low": -0.1}, "band"),
        ({"high": 1.1}, "band"),
        ({"high": float("nan")}, "band"),
        ({"low": True}, "band"),
        ({"deadline_s": 0}, "deadline_s"),
        ({"deadline_s": float("inf")}, "deadline_s"),
        ({"deadline_s": "2"}, "deadline_s"),
        ({"judgements_per_run": -1}, "integer of at least 0"),
        ({"judgements_per_run": 1.5}, "integer of at least 0"),
        ({"budget": True}, "integer of at least 0"),
        ({"budget": "many"}, "integer of at least 0"),
        ({"on_failure": "pass"}, "doubt, model, raise"),
        ({"model": "embedded"}, "http"),
    ],
)
def test_wrong_arguments_are_named(options, said):
    with pytest.raises(ConfigurationError, match=said):
        Cascade(**{"judge": StubJudge(YES), **options})
