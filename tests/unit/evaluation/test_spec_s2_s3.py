"""What the specification says about S2 and S3, sentence by sentence: formulas, figures and examples."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from guardrail import Guardrail, Pair, Passage, VerdictLabel, Verifier
from guardrail.evaluation.alarms import AlarmLevel, alarm
from guardrail.evaluation.cascade.cascading import Cascade
from guardrail.evaluation.contradiction import Contradiction, levels
from guardrail.evaluation.history.observer import SamplingObserver
from guardrail.evaluation.history.store import History
from guardrail.evaluation.judging import JudgeVerdict
from guardrail.evaluation.summary import summarise
from guardrail.scoring.faithfulness import faithfulness
from tests.judged_claims import Model, Scripted, measured

# S2: faithfulness with strict mode


@pytest.mark.parametrize("make", [list, tuple, np.array, lambda scores: iter(scores)], ids=str)
@pytest.mark.parametrize(
    ("scores", "threshold", "expected"),
    [
        ([0.9, 0.8, 1.0], None, 0.9),
        ([0.95, 0.6, 1.0], 0.7, 0.0),
        ([0.95, 0.8, 1.0], 0.7, 0.9166666666666666),
        ([0.7, 0.7], 0.7, 0.7),  # equal passes
        ([0.6999999999999999, 1.0], 0.7, 0.0),
        ([0.0], 0.0, 0.0),
        ([0.0, 1.0], 0.0, 0.5),
        ([1.0], 1.0, 1.0),
        ([], None, 0.0),
        ([], 0.7, 0.0),
        ([], 0.0, 0.0),
    ],
)
def test_s2_figures(make: Any, scores: list[float], threshold: float | None, expected: float) -> None:
    found = faithfulness(make(scores), threshold)
    assert found == expected
    assert type(found) is float


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_s2_gives_a_plain_float_for_every_array(dtype: Any) -> None:
    found = faithfulness(np.array([1.0, 0.5], dtype=dtype))
    assert type(found) is float
    assert found == 0.75


@pytest.mark.parametrize("make", [list, np.array], ids=["list", "array"])
@pytest.mark.parametrize("bad", [1.0000001, -0.0000001, 5.0, math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("at", [0, 2])
def test_s2_refuses_scores_that_are_no_probabilities(make: Any, bad: float, at: int) -> None:
    scores = [0.5, 0.5, 0.5]
    scores[at] = bad
    with pytest.raises(ValueError, match=r".{20}"):
        faithfulness(make(scores))
    with pytest.raises(ValueError, match=r".{20}"):
        faithfulness(make(scores), 0.9)


@pytest.mark.parametrize("threshold", [-0.01, 1.01, math.nan, math.inf])
@pytest.mark.parametrize("scores", [[0.5], []])
def test_s2_refuses_a_threshold_that_is_no_probability(threshold: float, scores: list[float]) -> None:
    with pytest.raises(ValueError, match=r".{20}"):
        faithfulness(scores, threshold)


# S3: verdicts, attribution, conflicts

PRICES = (
    Passage(id="2025", text="Price list 2025: the Basic plan costs 100 euros a month."),
    Passage(id="2026", text="Price list 2026: the Basic plan costs 120 euros a month."),
    Passage(id="phone", text="Phone support is there for all customers on working days from nine to five."),
)


@pytest.mark.parametrize("order", list(permutations(PRICES)), ids=lambda order: "-".join(p.id for p in order))
async def test_s3_passages_that_disagree_contradict_sometimes(order: Sequence[Passage]) -> None:
    (found,) = await levels("The Basic plan costs 120 euros a month.", order, verifier=Verifier())
    assert found.contradiction is Contradiction.SOMETIMES
    assert found.attributed_to == "2026"
    assert [verdict.passage_id for verdict in found.passages] == [passage.id for passage in order]
    assert {verdict.passage_id: verdict.verdict for verdict in found.passages} == {
        "2025": VerdictLabel.CONTRADICTED,
        "2026": VerdictLabel.SUPPORTED,
        "phone": VerdictLabel.UNVERIFIABLE,
    }


async def test_s3_the_other_price_is_attributed_to_the_other_list() -> None:
    (found,) = await levels("The Basic plan costs 100 euros a month.", PRICES, verifier=Verifier())
    assert (found.contradiction, found.attributed_to) == (Contradiction.SOMETIMES, "2025")


async def test_s3_another_number_about_the_same_thing_is_a_contradiction() -> None:
    passages = [Passage(id="a", text="The Basic plan costs 100 euros a month.")]
    (found,) = await levels("The Basic plan costs 50 euros a month.", passages, verifier=Verifier())
    assert found.claim.verdict is VerdictLabel.CONTRADICTED
    assert (found.contradiction, found.attributed_to) == (Contradiction.ALL, "a")


async def test_s3_sharing_a_number_is_not_support_and_not_contradiction() -> None:
    passages = [Passage(id="a", text="The Basic plan costs 100 euros a month.")]
    (found,) = await levels("The Basic plan has 100 GB of storage.", passages, verifier=Verifier())
    assert found.claim.verdict is VerdictLabel.UNVERIFIABLE
    assert found.contradiction is Contradiction.NONE


@pytest.mark.parametrize(
    ("evidence", "claim"),
    [("costs 100", "has 100 GB of storage"), ("The plan costs 100.", "The plan has 100 GB of storage.")],
)
async def test_s3_sharing_a_number_without_a_unit_is_not_support(evidence: str, claim: str) -> None:
    (found,) = (await Verifier().verify(claim, [evidence])).claims
    assert found.verdict is VerdictLabel.UNVERIFIABLE


@pytest.mark.parametrize(
    ("passages", "claim", "level", "attributed_to"),
    [
        (
            ["price list 2025: costs 100", "price list 2026: costs 120", "phone support is available"],
            "costs 120", Contradiction.SOMETIMES, "2",
        ),
        (["costs 100"], "costs 50", Contradiction.ALL, "1"),
        (["It costs 100."], "It costs 50.", Contradiction.ALL, "1"),
    ],
)  # fmt: skip
async def test_s3_examples_in_telegram_style(
    passages: list[str], claim: str, level: Contradiction, attributed_to: str
) -> None:
    numbered = [Passage(id=str(at), text=text) for at, text in enumerate(passages, 1)]
    (found,) = await levels(claim, numbered, verifier=Verifier())
    assert (found.contradiction, found.attributed_to) == (level, attributed_to)


async def test_s3_a_price_that_no_list_has_is_contradicted_by_all_that_have_one() -> None:
    (found,) = await levels("The Basic plan costs 75 euros a month.", PRICES[:2], verifier=Verifier())
    assert found.claim.verdict is VerdictLabel.CONTRADICTED
    assert found.contradiction is Contradiction.ALL
    assert found.attributed_to in ("2025", "2026")


async def test_s3_a_claim_that_all_support_is_contradicted_by_none() -> None:
    passages = [PRICES[1], Passage(id="faq", text="The Basic plan costs 120 euros a month. It can be cancelled.")]
    (found,) = await levels("The Basic plan costs 120 euros a month.", passages, verifier=Verifier())
    assert found.claim.verdict is VerdictLabel.SUPPORTED
    assert found.contradiction is Contradiction.NONE


async def test_s3_contradicted_and_unverifiable_claims_are_counted_separately() -> None:
    answer = (
        "The Basic plan costs 50 euros a month. Phone support is there on working days. "
        "The chief executive is Maria Huber. The Basic plan has 100 GB of storage."
    )
    passages = [Passage(id="a", text="The Basic plan costs 100 euros a month."), PRICES[2]]
    contradicted = await measured("contradicted", answer, passages)
    unverifiable = await measured("unverifiable", answer, passages)
    assert (contradicted.score, unverifiable.score) == (0.25, 0.5)


UNRELATED = ("The founders met at a school in Lyon.", "The office has a garden with three old apple trees.")


@pytest.mark.parametrize("claim", UNRELATED)
async def test_s3_a_claim_about_something_else_is_not_contradicted(claim: str) -> None:
    (found,) = (
        await Verifier().verify(claim, [Passage(id="a", text="The Basic plan costs 100 euros a month.")])
    ).claims
    assert found.verdict is VerdictLabel.UNVERIFIABLE


@pytest.mark.parametrize("claim", UNRELATED)
async def test_s3_no_passage_contradicts_a_claim_about_something_else(claim: str) -> None:
    (found,) = await levels(claim, PRICES, verifier=Verifier())
    assert found.contradiction is Contradiction.NONE


# S3: summary and alarm


@pytest.mark.parametrize("make", [list, np.array, lambda scores: sorted(scores), reversed], ids=str)
def test_s3_summary_figures(make: Any) -> None:
    found = summarise(make([1, 1, 0.75, 1, 0, 0.5, 1, 1]))
    assert found.n == 8
    assert [round(v, 3) for v in (found.mean, found.sd, found.p10, found.below_half)] == [0.781, 0.364, 0.350, 0.125]
    assert (found.minimum, found.maximum) == (0.0, 1.0)


def test_s3_summary_of_few_scores_has_no_figure_that_is_not_defined() -> None:
    one, none = summarise([0.25]), summarise([])
    assert (one.n, one.mean, one.sd, one.p10, one.below_half) == (1, 0.25, None, 0.25, 1.0)
    assert (none.n, none.mean, none.sd, none.p10, none.below_half, none.minimum) == (0, None, None, None, None, None)


def test_s3_half_is_not_below_half() -> None:
    assert summarise([0.5, 0.4999999]).below_half == 0.5


HISTORY = [0.88, 0.86, 0.89, 0.87, 0.85, 0.84, 0.82, 0.76]


def test_s3_alarm_figures() -> None:
    found = [alarm(HISTORY[:n]) for n in range(len(HISTORY) + 1)]
    assert found[:5] == [None] * 5
    assert [each.level for each in found[5:]] == [AlarmLevel.OK] * 3 + [AlarmLevel.CRITICAL]
    last = found[8]
    assert last.value == 0.76
    assert last.base == pytest.approx(0.845, abs=1e-12)
    assert round(100 * last.fall, 1) == 10.1


@pytest.mark.parametrize("scale", [0.9, 0.7, 0.3, 1e-3])
@pytest.mark.parametrize(
    ("share", "level"),
    [
        (1.1, AlarmLevel.OK),
        (1.0, AlarmLevel.OK),
        (0.9501, AlarmLevel.OK),
        (0.95, AlarmLevel.WARNING),
        (0.9001, AlarmLevel.WARNING),
        (0.9, AlarmLevel.CRITICAL),
        (0.0, AlarmLevel.CRITICAL),
    ],
)
def test_s3_a_fall_of_exactly_five_or_ten_percent_is_an_alarm(share: float, level: AlarmLevel, scale: float) -> None:
    assert alarm([scale] * 4 + [scale * share]).level is level


def test_s3_only_the_window_before_the_newest_value_counts() -> None:
    assert alarm([0.1, 0.1, 0.8, 0.8, 0.8, 0.8, 0.8]).level is AlarmLevel.OK
    assert alarm([0.8, 0.8, 0.4], window=2).base == 0.8
    assert alarm([0.8, 0.4], window=2) is None


def test_s3_a_history_of_zeros_is_no_alarm() -> None:
    assert alarm([0.0] * 5).level is AlarmLevel.OK


# S3: cascade and sampling


async def test_s3_the_judge_decides_only_what_the_classifier_doubts() -> None:
    scores = {"sure": 0.97, "no": 0.02, "yes?": 0.5, "no?": 0.6, "part?": 0.4}
    judge = Scripted({"yes?": JudgeVerdict.YES, "no?": JudgeVerdict.NO, "part?": JudgeVerdict.PARTIAL})
    cascade = Cascade(judge, model=Model(scores), low=0.2, high=0.8)
    found = dict(zip(scores, await cascade.score([Pair("p", claim) for claim in scores]), strict=True))
    assert sorted(judge.asked) == ["no?", "part?", "yes?"]
    assert (found["sure"].entailment, found["no"].entailment) == (0.97, 0.02)
    assert found["yes?"].entailment >= 0.8
    assert found["no?"].entailment <= 0.2
    assert found["part?"].entailment <= 0.2
    assert {claim: score.judged for claim, score in found.items()} == {
        "sure": "", "no": "", "yes?": "yes", "no?": "no", "part?": "partial",
    }  # fmt: skip
    assert [found[claim].screened for claim in ("yes?", "no?", "part?")] == [0.5, 0.6, 0.4]


async def test_s3_a_judge_that_fails_never_makes_a_claim_supported() -> None:
    judge = Scripted({"doubt": "timeout"})
    (found,) = await Cascade(judge, model=Model({"doubt": 0.7}), low=0.2, high=0.8).score([Pair("p", "doubt")])
    assert found.judged == "error:timeout"
    assert found.entailment <= 0.7


@pytest.mark.parametrize(("share", "expected"), [(1.0, [1.0, 0.0]), (0.0, [])])
async def test_s3_a_share_of_the_traffic_goes_into_a_history(
    share: float, expected: list[float], tmp_path: Path
) -> None:
    passages = ["The desk opens at ten. Entry is free."]
    with (
        History(tmp_path / "history.db") as history,
        SamplingObserver(history, share=share, metrics=["faithfulness"]) as sampling,
    ):
        guard = Guardrail(observers=[sampling])
        for answer in ("Entry is free.", "The desk opens at nine."):
            await guard.run(lambda answer=answer: answer, question="When?", context=passages)
        assert await asyncio.to_thread(sampling.flush, 20.0)
        assert sorted(history.scores("accepted"), reverse=True) == expected
        assert len(history.scores("faithfulness")) == len(expected[:1])  # of what was delivered: one is refused
