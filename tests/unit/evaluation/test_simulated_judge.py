"""What the simulated judge takes for true, and how it errs."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from guardrail.errors import ConfigurationError
from guardrail.evaluation.benchmarks.simulated import LabelledJudge, Simulation, unsupported_claims
from guardrail.evaluation.judging.verdicts import Judge, JudgeVerdict
from guardrail.evaluation.labelled import LabelledAnswer
from guardrail.policy import BALANCED
from guardrail.protocols import Pair
from guardrail.scoring.verifier import Verifier
from guardrail.testing import FakeEntailment

FIRST, SECOND, THIRD = "The desk opens at ten.", "Entry is free on Mondays.", "The café closes in winter."
ANSWER = f"{FIRST} {SECOND} {THIRD}"
STARTS = {text: ANSWER.index(text) for text in (FIRST, SECOND, THIRD)}
ALONE = Verifier(entailment=FakeEntailment({FIRST: 0.9, SECOND: 0.6, THIRD: 0.7}))


def labelled(*, grounded=False, answer=ANSWER, **detail):
    return LabelledAnswer(id="1", question="", context=(ANSWER,), answer=answer, grounded=grounded, detail=detail)


def span(text, **others):
    return {"start": STARTS[text], "end": STARTS[text] + len(text), "text": text, **others}


def bad(row, verifier=ALONE):
    found = unsupported_claims(row, verifier.verify_sync(row.answer, row.context))
    return [text for text, start in STARTS.items() if start in found]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (labelled(grounded=True), []),
        (labelled(grounded=True, spans=[span(FIRST)]), []),
        (labelled(spans=[span(FIRST)]), [FIRST]),
        (labelled(spans=[span(FIRST), span(THIRD)]), [FIRST, THIRD]),
        (labelled(spans=[{"start": 10, "end": 30}]), [FIRST, SECOND]),
        (labelled(), [SECOND]),
        (labelled(spans=[]), [SECOND]),
        (labelled(spans=[span(FIRST, label=["Benign"])]), [SECOND]),
        (labelled(spans=[span(FIRST, label=["Benign", "Unwanted"])]), [FIRST]),
        (labelled(spans=[span(FIRST, label=[])]), [FIRST]),
        (labelled(spans=[{**span(FIRST), "text": "something else"}]), [SECOND]),
        (labelled(spans=["a text", {"start": "0", "end": 5}, {}]), [SECOND]),
        (labelled(spans=[{"start": 500, "end": 600}]), [SECOND]),
    ],
)
def test_which_claims_are_taken_as_unsupported(row, expected):
    assert bad(row) == expected


def test_a_contradiction_is_worse_than_any_score():
    row = replace(labelled(), context=("The desk opens at nine.", SECOND, THIRD))
    assert bad(row) == [FIRST]


def test_an_answer_without_claims_has_none_to_blame():
    row = labelled(answer="Hello!")
    assert unsupported_claims(row, ALONE.verify_sync("Hello!", [ANSWER])) == set()


async def says(judge, row, *, policy=BALANCED, alone=ALONE):
    await judge.learn(row, await alone.verify(row.answer, row.context), policy)
    return [one.verdict for one in await judge.judge([Pair(ANSWER, text) for text in STARTS])]


async def test_it_says_what_is_true():
    judge = LabelledJudge(0.0)
    assert isinstance(judge, Judge)
    assert await says(judge, labelled(spans=[span(THIRD)])) == [JudgeVerdict.YES, JudgeVerdict.YES, JudgeVerdict.NO]


async def test_always_wrong_is_the_opposite():
    row = labelled(spans=[span(THIRD)])
    assert await says(LabelledJudge(1.0), row) == [JudgeVerdict.NO, JudgeVerdict.NO, JudgeVerdict.YES]


async def test_errors_are_as_frequent_as_stated_and_the_same_every_time():
    async def errors(seed):
        judge = LabelledJudge(0.2, seed=seed)
        wrong = []
        for number in range(300):
            row = replace(labelled(grounded=True), id=str(number))
            wrong += [verdict is JudgeVerdict.NO for verdict in await says(judge, row)]
        return wrong

    first = await errors(1)
    assert 0.16 < sum(first) / len(first) < 0.24
    assert await errors(1) == first
    assert await errors(2) != first


@pytest.mark.parametrize("find", [str.index, str.rindex])
async def test_a_claim_that_stands_twice_is_unsupported_if_it_is_so_once(find):
    answer = f"{FIRST} {SECOND} {FIRST}"
    start = find(answer, FIRST)
    row = labelled(answer=answer, spans=[{"start": start, "end": start + len(FIRST)}])
    assert (await says(LabelledJudge(0.0), row))[0] is JudgeVerdict.NO


async def test_what_it_was_not_told_about_is_no_verdict():
    judge = LabelledJudge(0.0)
    assert (await judge.judge([Pair("p", "h")]))[0].error == "failed"
    await says(judge, labelled())
    (found,) = await judge.judge([Pair(ANSWER, "Another claim.")])
    assert (found.verdict, found.error) == (None, "failed")


async def test_concurrent_answers_do_not_mix():
    judge = LabelledJudge(0.0)
    rows = [labelled(spans=[span(FIRST)]), labelled(grounded=True)]
    found = await asyncio.gather(*(asyncio.create_task(says(judge, row)) for row in rows))
    assert [verdicts[0] for verdicts in found] == [JudgeVerdict.NO, JudgeVerdict.YES]


@pytest.mark.parametrize("policy", ["balanced", "strict"])
async def test_the_verifier_asks_about_what_the_judge_was_told(policy):
    """With values in other notation, a list with a label, and an answer that has to be cut."""
    answer = (
        "The hall is 1,200 metres long.\n\nProhibited:\n- knives of any kind\n- dogs\n\n"
        + "It was built between 1931 and 1940 and " * 30
    )
    context = ("The hall is 1.2 km long. It was built between 1931 and 1940. Knives and dogs are prohibited.",)
    row = LabelledAnswer(id="1", question="", context=context, answer=answer, grounded=True)
    simulation = Simulation.of(0.0, policy=policy, model=FakeEntailment(0.5))
    alone = await Verifier(policy=policy, entailment=FakeEntailment(0.5)).verify(answer, context)
    await simulation.judge.learn(row, alone, simulation.verifier.policy)
    found = await simulation.verifier.verify(answer, context)
    asked = [claim.judged for claim in found.claims if claim.judged]
    assert set(asked) == {"yes"}
    assert len(asked) >= 3


@pytest.mark.parametrize("rate", [-0.1, 1.1, float("nan"), True, "0.1", None])
def test_a_rate_that_is_none_is_refused(rate):
    with pytest.raises(ConfigurationError, match="from 0 to 1"):
        LabelledJudge(rate)


def test_whole_answers_are_not_simulated():
    with pytest.raises(ConfigurationError, match="reference formula"):
        Simulation.of(0.1, policy="reference")


@pytest.mark.parametrize("cite", ["check", "fix", "add", "ignore"])
@pytest.mark.parametrize("mark", [" [2]", " [1, 2, 3]", ""])
async def test_it_knows_what_is_asked_for_the_sake_of_citations(cite, mark):
    """Every passage has the length in another notation, and the claim is put in that of its evidence."""
    context = ("The hall is 1.2 km long and old.", "The hall, 0.75 miles long, is 1200 m long.",
               "The hall is 1200 metres long.", "The hall is twelve hundred metres long, and 40 wide.")  # fmt: skip
    answer = f"The hall is 1,200 metres long{mark}. It is old{mark}."
    row = LabelledAnswer(id="1", question="", context=context, answer=answer, grounded=True)
    policy = BALANCED.override(name="cited", cite=cite)
    simulation = Simulation.of(0.0, policy=policy, model=FakeEntailment(0.5))
    alone = await Verifier(policy=policy, entailment=FakeEntailment(0.5)).verify(answer, context)
    await simulation.judge.learn(row, alone, policy)
    found = await simulation.verifier.verify(answer, context)
    assert [claim.judged for claim in found.claims] == ["yes", "yes"]
