"""What every passage alone says about a claim, with the model that ships and with models that say what a test says."""

from __future__ import annotations

import asyncio

import pytest

from guardrail import Passage, ScoringError, VerdictLabel, Verifier
from guardrail.errors import InputError
from guardrail.evaluation.contradiction import Contradiction, contradiction_level, levels
from guardrail.testing import FakeEntailment
from guardrail.types import EntailmentScore

NONE, SOMETIMES, ALL = Contradiction
S, C, U, X = (
    VerdictLabel.SUPPORTED,
    VerdictLabel.CONTRADICTED,
    VerdictLabel.UNVERIFIABLE,
    VerdictLabel.CONFLICT,
)
PRICES = (
    Passage(id="2025", text="Price list 2025: the plan costs 100 euros per month."),
    Passage(id="2026", text="Price list 2026: the plan costs 120 euros per month."),
    Passage(id="phone", text="Phone support is available on weekdays from 9 to 17."),
)


@pytest.fixture(scope="module")
def verifier():
    return Verifier()


def _levels(answer, context, verifier, **more):
    return asyncio.run(levels(answer, context, verifier=verifier, **more))


def _one(answer, context, verifier, **more):
    (found,) = _levels(answer, context, verifier, **more)
    return found


# --- the examples of the specification ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "level", "attributed", "verdicts"),
    [
        ("The plan costs 120 euros per month.", SOMETIMES, "2026", [C, S, U]),
        ("It costs 120 euros.", SOMETIMES, "2026", [C, S, U]),
        ("The plan costs 100 euros per month.", SOMETIMES, "2025", [S, C, U]),
        ("The plan costs 110 euros per month.", ALL, "2025", [C, C, U]),
        ("Phone support is available on weekdays.", NONE, "phone", [U, U, S]),
    ],
)
def test_price_lists_that_disagree(answer, level, attributed, verdicts, verifier):
    found = _one(answer, PRICES, verifier)
    assert [own.verdict for own in found.passages] == verdicts
    assert found.contradiction is level
    assert found.attributed_to == attributed
    assert [own.passage_id for own in found.passages] == ["2025", "2026", "phone"]


def test_prices_without_a_currency(verifier):
    prices = ["Price list 2025: the plan costs 100.", "Price list 2026: the plan costs 120.", PRICES[2].text]
    found = _one("The plan costs 120.", prices, verifier)
    assert (found.contradiction, found.attributed_to) == (SOMETIMES, "2")


@pytest.mark.parametrize(
    ("answer", "passage"),
    [
        ("The plan costs 50.", "The plan costs 100."),
        ("The plan costs 50 euros.", "The plan costs 100 euros."),
        ("It costs 50.", "It costs 100."),
    ],
)
def test_another_number_for_the_same_thing_contradicts(answer, passage, verifier):
    found = _one(answer, [passage], verifier)
    assert found.claim.verdict is C
    assert [own.verdict for own in found.passages] == [C]
    assert (found.contradiction, found.attributed_to) == (ALL, "1")


@pytest.mark.parametrize("answer", ["The plan has 100 GB of storage.", "It has 100 GB of storage."])
def test_sharing_a_number_is_not_support(answer, verifier):
    found = _one(answer, ["The plan costs 100 euros."], verifier)
    assert found.claim.verdict is U
    assert [own.verdict for own in found.passages] == [U]
    assert found.contradiction is NONE


# --- what speaks of a claim ---------------------------------------------------------------------------------


def test_what_a_model_takes_for_a_contradiction_about_another_side_of_a_subject_is_none(verifier):
    context = ["The basic plan costs 120.", "Phone support is part of the basic plan.", "Dogs are welcome."]
    found = _one("The basic plan costs 120.", context, verifier)
    assert [own.verdict for own in found.passages] == [S, U, U]
    assert found.contradiction is NONE


@pytest.mark.parametrize(
    ("shared", "expected"),
    [("The north tower is blue.", C), ("Towers stand in the north.", U), ("Entry costs money.", U)],
)
def test_a_model_alone_contradicts_only_with_nearly_all_the_words(shared, expected):
    def score(premise, hypothesis):
        against = premise != "The north tower is red."
        return EntailmentScore(entailment=0.1 if against else 0.99, contradiction=0.9 if against else 0.0)

    model = Verifier(entailment=FakeEntailment(score))
    found = _one("The north tower is red.", ["The north tower is red.", shared], model)
    assert [own.verdict for own in found.passages] == [S, expected]


@pytest.mark.parametrize(
    ("answer", "context", "question", "verdicts"),
    [
        # a word that fewer passages have says more about the subject
        ("The north gate opens at 9.", ["The north gate opens at 8.", "A gate opens at 7."], None, [C, U]),
        # amounts are no subject: passages that disagree about them cannot share them
        ("The fee is 120 euros.", ["The fee is 120 euros.", "The fee is 100 euros."], None, [S, C]),
        # what is only a value is about what was asked
        (
            "120 euros.",
            ["The plan costs 100 euros.", "The plan costs 120 euros.", "Phone support costs 5 euros."],
            "What does the plan cost?",
            [C, S, U],
        ),
        # ... and if that is not known, only comparison can contradict it
        ("It is 120.", ["It is 100.", "Phone support."], None, [C, U]),
    ],
)
def test_passages_about_something_else_contradict_nothing(answer, context, question, verdicts, verifier):
    found = _one(answer, context, verifier, question=question)
    assert [own.verdict for own in found.passages] == verdicts


def test_a_model_alone_contradicts_only_with_nearly_all_of_the_subject():
    def score(premise, hypothesis):
        same = premise == hypothesis
        return EntailmentScore(entailment=0.99 if same else 0.1, contradiction=0.0 if same else 0.9)

    context = ["The north tower gate is red.", "A gate stands north of that tower.", "The red tower gate is north."]
    found = _one("The north tower gate is red.", context, Verifier(entailment=FakeEntailment(score)))
    assert [own.verdict for own in found.passages] == [S, U, C]


@pytest.mark.parametrize(("question", "verdict"), [("How high is the north tower?", C), (None, U)])
def test_a_claim_that_is_only_a_value_is_about_what_was_asked(question, verdict):
    model = Verifier(entailment=FakeEntailment(lambda p, h: EntailmentScore(entailment=0.1, contradiction=0.9)))
    found = _one("It is 120.", ["The north tower is not high.", "Dogs bark."], model, question=question)
    assert [own.verdict for own in found.passages] == [verdict, U]


def test_a_claim_without_a_subject_is_not_contradicted_by_a_model_alone():
    model = Verifier(entailment=FakeEntailment(lambda p, h: EntailmentScore(entailment=0.1, contradiction=0.9)))
    assert [own.verdict for own in _one("It is 120.", ["It was low.", "It is 100."], model).passages] == [U, C]


def test_of_several_supporting_passages_the_best_has_the_claim_attributed():
    scores = {"Goats like hay.": 0.8, "Goats do eat hay.": 0.99}
    model = Verifier(entailment=FakeEntailment(lambda premise, hypothesis: scores.get(premise, 0.9)))
    found = asyncio.run(levels("Goats eat hay.", list(scores), verifier=model))
    assert [own.verdict for own in found[0].passages] == [S, S]
    assert found[0].attributed_to == "2"


def test_a_claim_is_attributed_by_what_it_is_about_and_not_by_its_values():
    context = ["The ferry takes 100 cars.", "Storage: the plan includes 50 GB of it."]
    model = Verifier(entailment=FakeEntailment(0.0))
    assert _one("The plan has 100 GB of storage.", context, model).attributed_to == "2"


def test_of_equally_similar_passages_the_first_should_have_supported_the_claim():
    model = Verifier(entailment=FakeEntailment(0.0))
    assert _one("Goats eat hay.", ["Goats eat grass.", "Goats eat leaves."], model).attributed_to == "1"


def test_nothing_is_attributed_without_a_word_in_common():
    model = Verifier(entailment=FakeEntailment(0.0))
    assert _one("Goats eat hay.", ["Entry is free.", "The desk opens at ten."], model).attributed_to is None


def test_a_passage_that_supports_a_claim_in_other_words_has_it_attributed():
    model = Verifier(policy="lenient", entailment=FakeEntailment(lambda p, h: 1.0 if "automobile" in p else 0.0))
    found = _one("Cars are fast.", ["Cars are red.", "An automobile is quick, are you?"], model)
    assert [own.verdict for own in found.passages] == [U, S]
    assert found.attributed_to == "2"


@pytest.mark.parametrize(
    ("verdicts", "level"),
    [
        ([], NONE),
        ([U], NONE),
        ([S], NONE),
        ([C], ALL),
        ([C, C], ALL),
        ([C, U, U], ALL),
        ([C, S], SOMETIMES),
        ([X], SOMETIMES),
        ([X, U], SOMETIMES),
    ],
)
def test_the_level_is_over_the_passages_that_speak_of_the_claim(verdicts, level):
    assert contradiction_level(verdicts) is level


# --- whole answers ------------------------------------------------------------------------------------------


def test_every_claim_has_an_entry_and_nothing_else_has(verifier):
    answer = (
        "Hello! The plan costs 120 euros per month [2]. Phone support is available on weekdays [3].\n\nAnything else?"
    )
    found = _levels(answer, PRICES, verifier)
    assert [own.claim.segment.body for own in found] == [
        "The plan costs 120 euros per month [2].",
        "Phone support is available on weekdays [3].",
    ]
    assert [own.contradiction for own in found] == [SOMETIMES, NONE]


@pytest.mark.parametrize("mark", ["", " [2]", " [C2]", " [1, 2]"])
def test_citation_marks_are_no_part_of_a_claim_for_any_passage(mark):
    model = FakeEntailment(0.9)
    _levels(f"The plan costs 120 euros{mark}.", PRICES, Verifier(entailment=model))
    assert {pair.hypothesis for pair in model.pairs} == {"The plan costs 120 euros."}


def test_long_answers_go_in_parts():
    model = FakeEntailment(0.9)
    answer = " ".join(f"Goat {n} eats hay." for n in range(100, 140))
    assert len(_levels(answer, ["Goats eat hay."], Verifier(entailment=model))) == 40


@pytest.mark.parametrize("context", [None, [], ["  "]])
def test_without_a_context_there_is_no_verdict(context, verifier):
    found = _one("Entry is free.", context, verifier)
    assert (found.claim.verdict, found.claim.reason) == (None, "no_context")
    assert (found.passages, found.contradiction, found.attributed_to) == ((), NONE, None)


@pytest.mark.parametrize("answer", ["", "   ", "Hello!"])
def test_an_answer_without_a_claim_has_no_entry(answer, verifier):
    assert _levels(answer, PRICES, verifier) == ()


def test_the_evidence_formula_is_used_whatever_the_policy_says():
    reference = Verifier(policy="reference")
    assert _one("The plan costs 120 euros per month.", PRICES, reference).passages[1].entailment > 0.5


def test_an_answer_that_is_no_text_is_refused(verifier):
    with pytest.raises(InputError, match="the answer must be a str, not NoneType"):
        _levels(None, PRICES, verifier)


def test_a_checker_that_fails_is_an_error_under_every_policy():
    def fails(premise, hypothesis):
        raise ScoringError("the model is gone", scorer="fake")

    with pytest.raises(ScoringError, match="the model is gone"):
        _levels("Entry is free.", ["Entry is free."], Verifier(policy="lenient", entailment=FakeEntailment(fails)))


async def test_cancellation_is_not_held_up():
    class Stuck:
        model_id = "stuck"

        async def score(self, pairs):
            await asyncio.Event().wait()

    task = asyncio.create_task(levels("Entry is free.", ["Entry is free."], verifier=Verifier(entailment=Stuck())))
    for _ in range(5):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
