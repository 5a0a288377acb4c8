"""Metrics with a name: what they measure, and that nothing is guessed."""

from __future__ import annotations

import asyncio
import math

import pytest

from guardrail import Passage, Policy, Verifier
from guardrail.errors import ConfigurationError, JudgeError, ModelLoadError, ScoringError
from guardrail.evaluation.cascade.cascading import Cascade
from guardrail.evaluation.datasets.evaluating import evaluate
from guardrail.evaluation.datasets.measurement import ItemInProgress, Measurement
from guardrail.evaluation.datasets.metrics import METRICS, Item, as_judge, metric
from guardrail.scope import run_scope
from guardrail.scoring.entailment.onnx import OnnxEntailment, embedded_model_dir
from guardrail.testing import FakeEntailment, ScriptedJudge
from tests.data_sets import fake, save

OLD, NEW, PHONE = (
    "The 2025 list: entry costs 100 euro.",
    "The 2026 list: entry costs 120 euro.",
    "Phone support is free.",
)
OFFERED = [name for name in METRICS if name != "judge"]


def item(answer, *context, **rest):
    return Item(id="1", context=context, answer=answer, **rest)


async def measured(name, answer, *context, verifier=None, **options):
    verifier = verifier or fake()
    return await metric(name, verifier=verifier, **options).measure(
        ItemInProgress(item(answer, *context), verifier=verifier)
    )


@pytest.mark.parametrize(
    ("name", "score"),
    [
        ("faithfulness", 0.5),
        ("accepted", 0.0),
        ("contradicted", 0.0),
        ("unverifiable", 0.5),
        ("contradiction", 0.0),
        ("citation_precision", 0.5),
        ("citation_recall", 0.5),
        ("citation_f1", 0.5),
    ],
)
async def test_an_answer_of_which_half_is_supported(name, score):
    answer = "The desk opens at ten [1]. Dogs are welcome on the terrace [2]."
    found = await measured(name, answer, "The desk opens at ten.", "Phone support is free.")
    assert found.score == pytest.approx(score)
    assert found.error == ""
    assert found.detail.get("claims", 2) == 2


async def test_delta_r_is_a_mean_and_a_maximum():
    answer = "The desk opens at ten. Dogs are welcome on the terrace."
    mean, worst = [await measured(name, answer, "The desk opens at ten.") for name in ("delta_r", "worst_delta_r")]
    assert 0 < mean.score < worst.score <= 1
    start, end = worst.detail["worst"]
    assert answer[start:end] == "Dogs are welcome on the terrace."


async def test_contradiction_tells_passages_that_disagree():
    found = await measured("contradiction", "Entry costs 120 euro.", OLD, NEW, PHONE, verifier=Verifier())
    assert found.score == 1.0
    assert found.detail == {"claims": 1, "none": 0, "sometimes": 1, "all": 0}


async def test_contradicted_claims_are_not_unverifiable():
    answer = "Entry costs 50 euro."
    context = "Entry costs 100 euro."
    assert (await measured("contradicted", answer, context, verifier=Verifier())).score == 1.0
    assert (await measured("unverifiable", answer, context, verifier=Verifier())).score == 0.0


async def test_citations_of_passages_that_are_not_there_are_counted():
    found = await measured("citation_precision", "The desk opens at ten [1, 7].", "The desk opens at ten.")
    assert found.score == 0.5
    assert found.detail["dangling"] == 1
    assert found.detail["citations"] == 2


async def test_the_reference_formula_scores_the_whole_answer():
    found = await measured("reference_delta_r", "Entry is free.", "Entry is free.", verifier=fake())
    assert found.score == pytest.approx(1 - 1 * 0.95)
    assert (await measured("rouge_l", "Entry is free.", "Entry is free. It rains.")).score == 0.75


@pytest.mark.parametrize("name", OFFERED)
async def test_without_context_there_is_no_score(name):
    found = await measured(name, "The desk opens at ten.")
    assert (found.score, found.error) == (None, "no_context")
    assert (await measured(name, "The desk opens at ten.", " ")).error == "no_context"


@pytest.mark.parametrize("name", OFFERED)
@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ("", "empty_answer"),
        ("  \n", "empty_answer"),
        ("Hello!", "no_claims"),
        ("The documents do not say.", "abstained"),
    ],
)
async def test_without_claims_there_is_no_score_but_of_faithfulness(name, answer, error):
    found = await measured(name, answer, "The desk opens at ten.")
    if name == "faithfulness":
        assert (found.score, found.detail) == (0.0, {"claims": 0, "reason": error})
    elif name in ("rouge_l", "reference_delta_r") and answer.strip():
        assert found.score is not None  # these look at words, not at claims
    else:
        assert (found.score, found.error) == (None, error)


@pytest.mark.parametrize("name", [name for name in OFFERED if name != "rouge_l"])
@pytest.mark.parametrize("policy", ["balanced", "strict", Policy(on_error="raise"), Policy(on_error="pass_marked")])
async def test_a_checker_that_fails_gives_no_score(name, policy):
    def fail(premise, hypothesis):
        raise ScoringError("it failed")

    verifier = Verifier(policy=policy, entailment=FakeEntailment(fail))
    found = await measured(name, "The desk opens at ten.", "The desk opens at ten.", verifier=verifier)
    assert (found.score, found.error) == (None, "scoring_error")


async def test_a_model_that_cannot_be_loaded_is_not_counted_but_raised():
    def fail(premise, hypothesis):
        raise ModelLoadError("no weights")

    verifier = Verifier(policy=Policy(on_error="raise"), entailment=FakeEntailment(fail))
    with pytest.raises(ModelLoadError):
        await measured("accepted", "The desk opens at ten.", "The desk opens at ten.", verifier=verifier)


TWO = "Entry is free. Dogs are welcome."


@pytest.mark.parametrize(
    ("verdicts", "score", "error"),
    [
        ({"Entry is free.": "yes", "Dogs are welcome.": "no"}, 0.5, ""),
        ({"Entry is free.": "yes", "Dogs are welcome.": "partial"}, 0.5, ""),
        ({"Entry is free.": "yes", "Dogs are welcome.": "unreadable"}, 0.5, ""),
        ({"Entry is free.": "unreadable", "Dogs are welcome.": "unreadable"}, None, "judge_unreadable"),
        ({"Entry is free.": "yes", "Dogs are welcome.": "timeout"}, None, "judge_timeout"),
        ({"Entry is free.": "rate_limited", "Dogs are welcome.": "rate_limited"}, None, "judge_rate_limited"),
    ],
)
async def test_a_judge_that_was_not_heard_gives_no_score(verdicts, score, error):
    found = await measured("judge", TWO, "Entry is free.", judge=ScriptedJudge(verdicts))
    assert (found.score, found.error) == (score, error)


async def test_a_judge_decides_nothing_without_context_or_claims():
    judge = ScriptedJudge("yes")
    assert (await measured("judge", TWO, judge=judge)).error == "no_context"
    assert (await measured("judge", "Hello!", "Entry is free.", judge=judge)).score == 0.0
    assert judge.pairs == []


async def test_claims_that_could_not_be_found_give_no_score():
    class Failing:
        async def decompose(self, answer, *, question=""):
            raise JudgeError("nothing came", error="timeout")

    chosen = metric("judge", verifier=fake(), judge=ScriptedJudge("yes"), decomposer=Failing())
    found = await chosen.measure(ItemInProgress(item(TWO, "Entry is free."), verifier=fake()))
    assert (found.score, found.error) == (None, "judge_timeout")


async def test_a_callable_becomes_a_judge():
    for said, score, error in (("YES", 1.0, ""), ("NO", 0.0, ""), ("yes and no", None, "judge_unreadable")):
        found = await measured("judge", "Entry is free.", "Entry is free.", judge=lambda prompt, said=said: said)
        assert (found.score, found.error) == (score, error)
    judge = ScriptedJudge("yes")
    assert as_judge(judge) is judge


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("fluency", {}, "there is no metric 'fluency'"),
        ("judge", {}, "needs a judge"),
        ("contradicted", {"verifier": Verifier(policy="reference", entailment=FakeEntailment(1.0))}, "formula"),
    ],
)
def test_metrics_that_cannot_be_made(name, options, said):
    with pytest.raises(ConfigurationError, match=said):
        metric(name, **{"verifier": fake(), **options})


@pytest.mark.parametrize("name", ["faithfulness", "delta_r", "worst_delta_r", "accepted", "reference_delta_r"])
async def test_a_policy_with_the_reference_formula(name):
    verifier = Verifier(policy="reference", entailment=FakeEntailment(0.9))
    found = await measured(name, "Entry is free.", "Entry is free.", verifier=verifier)
    expected = {"faithfulness": 0.9, "accepted": 1.0}.get(name, 0.1)
    assert found.score == pytest.approx(expected)
    assert (await measured(name, "Entry is free.", verifier=verifier)).error == "no_context"


def test_every_metric_says_which_direction_is_good():
    made = {name: metric(name, verifier=fake(), judge=ScriptedJudge("yes")) for name in METRICS}
    assert {name for name, each in made.items() if not each.higher_is_better} == {
        "delta_r", "worst_delta_r", "contradicted", "unverifiable", "contradiction", "reference_delta_r",
    }  # fmt: skip
    assert all(each.name == name for name, each in made.items())


@pytest.mark.parametrize("score", [math.nan, math.inf, True, "1", None])
def test_a_score_is_a_finite_number(score):
    with pytest.raises(ValueError, match="score"):
        Measurement(score=score)


def test_a_score_and_an_error_exclude_each_other():
    with pytest.raises(ValueError, match="either"):
        Measurement(score=0.0, error="no_claims")


async def test_what_is_shared_is_computed_once_and_again_after_a_cancellation():
    calls, go = [], asyncio.Event()

    async def compute():
        calls.append(1)
        await go.wait()
        return len(calls)

    own = ItemInProgress(item("A."), verifier=fake())
    first = asyncio.create_task(own.once("x", compute))
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    go.set()
    assert await asyncio.gather(own.once("x", compute), own.once("x", compute)) == [2, 2]
    assert len(calls) == 2


async def test_a_failure_is_shared_too():
    calls = []

    async def compute():
        calls.append(1)
        raise ScoringError("it failed")

    own = ItemInProgress(item("A."), verifier=fake())
    for _ in range(2):
        with pytest.raises(ScoringError):
            await own.once("x", compute)
    assert len(calls) == 1


@pytest.mark.skipif(embedded_model_dir() is None, reason="there is no embedded model")
def test_the_embedded_model_gives_an_item_the_same_scores_whatever_came_before(tmp_path):
    context = ["The museum shows 40 mammals from the coast. It opens at ten and entry is free on Mondays for all."]
    claims = [
        "It opens at ten.",
        "Entry is free on Mondays.",
        "The museum shows 40 mammals.",
        "It was founded in 1893.",
    ]
    rows = [{"context": context, "answer": answer} for answer in (claims[0], " ".join(claims), " ".join(claims[1:]))]
    data, out = save(tmp_path / "d.jsonl", rows), tmp_path / "out.jsonl"

    def run():
        verifier = Verifier(entailment=OnnxEntailment(embedded_model_dir()))
        evaluate(data, metrics=["faithfulness", "contradiction"], out=out, verifier=verifier, concurrency=2)
        return out.read_bytes()

    whole = run()
    for kept in (1, 2, 3):
        out.write_bytes(b"".join(whole.splitlines(keepends=True)[:kept]))
        assert run() == whole


async def test_passages_keep_their_ids():
    context = (Passage(id="a", text="The desk opens at ten."), Passage(id="b", text="Entry is free."))
    found = await measured("citation_recall", "Entry is free [2].", *context)
    assert found.score == 1.0


async def test_every_item_may_use_up_what_a_run_may():
    judge = ScriptedJudge("yes")
    cascade = Cascade(judge, model=FakeEntailment(0.5), low=0.1, high=0.9, judgements_per_run=1)
    verifier = Verifier(entailment=cascade)
    for _ in range(2):
        own = ItemInProgress(item(TWO, "Entry is free. Dogs are welcome on the terrace."), verifier=verifier)
        found = await own.verification()
        assert sorted(claim.judged for claim in found.claims) == ["error:budget", "yes"]
    assert run_scope.get() is None
