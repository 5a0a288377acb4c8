"""Citations of answers, in figures."""

from __future__ import annotations

import asyncio

import pytest

from guardrail import Passage, ScoringError
from guardrail.errors import InputError
from guardrail.evaluation.citations import CitationCheck, CitedClaim, citation_quality, cited_claims, without_citations
from guardrail.testing import FakeEntailment
from guardrail.types import EntailmentScore

TOWER = "The Eiffel Tower was completed in 1889 and is 330 metres tall."
MUSEUM = "The museum is closed on Mondays; entry is free for children under twelve."
PHONE = "Phone support is available on weekdays from 9 to 17."
CONTEXT = [TOWER, MUSEUM, PHONE]


def _claim(text, *cited, before=""):
    return CitedClaim(claim=text, cited=cited, before=before)


def _quality(claims, passages, entailment=None):
    return asyncio.run(citation_quality(claims, passages, entailment=entailment))


# --- figures ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "claims",
    [
        [
            _claim("Entry is free for children under twelve.", "2"),  # right
            _claim("The Eiffel Tower was completed in 1899.", "1"),  # wrong date
            _claim("The museum is closed on Mondays.", "3"),  # unrelated passage
        ],
        [
            _claim("The museum is closed on Mondays.", "1"),
            _claim("The Eiffel Tower is 330 metres tall.", "1"),
            _claim("The Eiffel Tower was completed on 3 May 1890.", "1"),
        ],
    ],
)
def test_one_of_three_is_right_with_the_model_that_ships(claims):
    found = _quality(claims, CONTEXT)
    assert (found.precision, found.recall, found.f1) == (1 / 3, 1 / 3, pytest.approx(1 / 3))
    assert (found.citations, found.supported_citations, found.dangling) == (3, 1, 0)
    assert (found.claims, found.supported_claims) == (3, 1)
    assert sum(check.supported for check in found.details) == 1


def test_a_citation_is_looked_for_in_all_of_a_long_passage():
    filler = " ".join(f"Room {n} shows paintings of landscapes and of people at work." for n in range(100, 700))
    found = _quality([_claim("Entry is free for children under twelve.", "1")], [f"{filler} {MUSEUM} {filler}"])
    assert found.precision == 1.0


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        ([], (0.0, 0.0, 0.0, 0, 0, 0, 0, 0)),
        ([_claim("Goats eat hay.")], (0.0, 0.0, 0.0, 0, 0, 0, 1, 0)),
        ([_claim("Goats eat hay.", "9")], (0.0, 0.0, 0.0, 1, 0, 1, 1, 0)),
        ([_claim("Goats eat hay.", "1")], (1.0, 1.0, 1.0, 1, 1, 0, 1, 1)),
        ([_claim("Goats eat hay.", "1", "1", "1")], (1.0, 1.0, 1.0, 1, 1, 0, 1, 1)),
        ([_claim("Goats eat hay.", "1", "2")], (0.5, 1.0, 2 / 3, 2, 1, 0, 1, 1)),
        ([_claim("Goats eat hay.", "1", "9", "9")], (0.5, 1.0, 2 / 3, 2, 1, 1, 1, 1)),
        ([_claim("Goats eat hay.", "2"), _claim("Goats eat.", "1")], (0.5, 0.5, 0.5, 2, 1, 0, 2, 1)),
        ([_claim("Goats eat hay.", "1"), _claim("Goats eat.")], (1.0, 0.5, 2 / 3, 1, 1, 0, 2, 1)),
    ],
)
def test_what_counts(claims, expected):
    model = FakeEntailment(lambda premise, hypothesis: 0.9 if premise == "Goats eat hay." else 0.1)
    found = _quality(claims, ["Goats eat hay.", "Entry is free."], model)
    assert (
        found.precision, found.recall, pytest.approx(found.f1), found.citations, found.supported_citations,
        found.dangling, found.claims, found.supported_claims,
    ) == expected  # fmt: skip


@pytest.mark.parametrize(
    ("score", "supported"),
    [
        (EntailmentScore(entailment=0.5), False),  # not above
        (EntailmentScore(entailment=0.5001), True),
        (EntailmentScore(entailment=0.6, contradiction=0.55), True),
        (EntailmentScore(entailment=0.55, contradiction=0.6), False),
    ],
)
def test_more_than_half_entails_unless_the_passage_rather_contradicts(score, supported):
    found = _quality([_claim("Goats eat hay.", "1")], ["Goats eat hay."], FakeEntailment(lambda p, h: score))
    assert found.details == (
        CitationCheck(claim=0, passage_id="1", dangling=False, supported=supported, entailment=score.entailment),
    )


def test_another_value_is_no_support_whatever_a_model_says():
    found = _quality(
        [_claim("The tower is 300 metres tall.", "1")], ["The tower is 330 metres tall."], FakeEntailment(1.0)
    )
    assert (found.supported_citations, found.details[0].entailment) == (0, 0.05)


def test_what_stands_before_a_claim_helps_to_find_its_evidence():
    model = FakeEntailment(0.9)
    passage = " ".join([*(f"It much opened as stop {n} of line {n}." for n in range(20, 60)), "Goats are fond of hay."])
    _quality([_claim("It eats much of it.", "1", before="The goats like hay.")], [passage], model)
    assert "Goats are fond of hay." in model.pairs[0].premise
    _quality([_claim("It eats much of it.", "1")], [passage], model)
    assert "Goats are fond of hay." not in model.pairs[1].premise


def test_passages_have_their_own_ids():
    context = [Passage(id="a", text="Goats eat hay."), Passage(id="b", text="Entry is free.")]
    found = _quality([_claim("Goats eat hay.", "a", "1")], context, FakeEntailment(0.9))
    assert [(check.passage_id, check.dangling) for check in found.details] == [("a", False), ("1", True)]


@pytest.mark.parametrize("text", ["", "  ", "…", "[1]"])
def test_a_claim_without_a_word_is_supported_by_nothing(text):
    found = _quality([_claim(text, "1")], ["Goats eat hay."], FakeEntailment(0.9))
    assert (found.citations, found.supported_citations, found.claims) == (1, 0, 1)


@pytest.mark.parametrize("passages", [None, []])
def test_without_passages_every_citation_dangles(passages):
    found = _quality([_claim("Goats eat hay.", "1")], passages, FakeEntailment(0.9))
    assert (found.precision, found.dangling) == (0.0, 1)


def test_claims_are_cited_claims():
    with pytest.raises(InputError, match="claim 1 must be a CitedClaim, not str"):
        _quality([_claim("Goats eat hay.", "1"), "Goats eat hay."], ["Goats eat hay."])


def test_a_checker_that_fails_gives_no_figure():
    def fails(premise, hypothesis):
        raise ScoringError("the model is gone", scorer="fake")

    with pytest.raises(ScoringError, match="the model is gone"):
        _quality([_claim("Goats eat hay.", "1")], ["Goats eat hay."], FakeEntailment(fails))


def test_texts_stay_out_of_what_is_logged():
    found = _quality([_claim("Goats eat hay.", "1")], ["Goats eat hay."], FakeEntailment(0.9))
    assert "Goats" not in repr((found, found.details, _claim("Goats eat hay.", "1")))


# --- marks --------------------------------------------------------------------------------------------------


def _read(answer, passages=("One.", "Two.", "Three.")):
    return [(found.claim, found.cited) for found in cited_claims(answer, passages)]


@pytest.mark.parametrize(
    ("mark", "cited"),
    [
        ("[1]", ("1",)),
        ("[2, 3]", ("2", "3")),
        ("[2,3]", ("2", "3")),
        ("[2; 3]", ("2", "3")),
        ("[1-3]", ("1", "2", "3")),
        ("[1–3]", ("1", "2", "3")),
        ("[C1]", ("1",)),
        ("[C1, C3]", ("1", "3")),
        ("[^2]", ("2",)),
        ("[1][2]", ("1", "2")),
        ("[1] [1]", ("1",)),
        ("[2, 2]", ("2",)),
        ("[7]", ("7",)),
        ("[C7]", ("C7",)),
        ("[2, 7]", ("2", "7")),
        ("[3-1]", ("3", "1")),
    ],
)
@pytest.mark.parametrize("where", ["Goats eat hay {}.", "Goats eat hay. {}", "Goats eat hay.{}", "Goats eat hay {}\n"])
def test_marks_at_the_end(where, mark, cited):
    ((claim, found),) = _read(where.format(mark))
    assert claim.rstrip(".") == "Goats eat hay"
    assert found == cited


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("The goat [1] eats hay [2].", [("The goat eats hay.", ("1", "2"))]),
        ("Goats eat hay [1], and cows eat grass [2].", [("Goats eat hay, and cows eat grass.", ("1", "2"))]),
        ("Goats eat hay [1]. Cows eat.", [("Goats eat hay.", ("1",)), ("Cows eat.", ())]),
        ("Goats eat hay.\n[2]\nCows eat hay.", [("Goats eat hay.", ("2",)), ("Cows eat hay.", ())]),
        ("- Goats eat hay [1]\n- Cows eat hay [2, 3]", [("- Goats eat hay", ("1",)), ("- Cows eat hay", ("2", "3"))]),
        ("Goats eat hay [0].", [("Goats eat hay.", ("0",))]),
        ("Take [50] mg of it daily.", [("Take [50] mg of it daily.", ())]),
        ("Take [2] mg of it daily.", [("Take [2] mg of it daily.", ())]),
        ("The score is [3] in the end.", [("The score is [3] in the end.", ())]),
        ("It lies between [1, 3] as a rule.", [("It lies between [1, 3] as a rule.", ())]),
        ("Goats [sic] eat hay.", [("Goats [sic] eat hay.", ())]),
        ("Read `a[1]` first.", [("Read `a[1]` first.", ())]),
        ("See [1](https://example.org/a) for goats.", [("See [1](https://example.org/a) for goats.", ())]),
        ("It was so in the year of [2020].", [("It was so in the year of [2020].", ())]),
        ("```\nx = a[1]\n```\n", []),
        ("[1]", []),
        ("", []),
        ("Hello! How are you?", []),
    ],
)
def test_marks_elsewhere(answer, expected):
    assert _read(answer) == expected


@pytest.mark.parametrize(
    ("answer", "cited"),
    [
        ("Goats eat hay [doc-7].", ("doc-7",)),
        ("Goats [doc-7] eat hay.", ("doc-7",)),
        ("Goats eat hay [price list, doc-7].", ("price list", "doc-7")),
        ("Goats eat hay [2].", ("doc-7",)),  # a number counts the passages
        ("Goats eat hay [40].", ("40",)),  # if there are as many; else it is an id
        ("Goats eat hay [C1].", ("C1",)),  # an id that is spelled out comes first
        ("Goats eat hay [2, C1].", ("doc-7", "C1")),
        ("Goats eat hay [3].", ("40",)),
        ("Goats eat hay [1].", ("price list",)),  # though there is a passage with the id 1
        ("Goats eat hay [doc-8].", ()),
    ],
)
def test_passages_may_be_cited_by_their_ids(answer, cited):
    ids = ("price list", "doc-7", "40", "C1", "1")
    ((_, found),) = _read(answer, [Passage(id=own, text="Goats eat hay.") for own in ids])
    assert found == cited


def test_an_id_that_leads_nowhere_dangles():
    claims = cited_claims("Goats eat hay [1]. Entry is free [4, 2].", ["Goats eat hay.", "Entry is free."])
    found = _quality(claims, ["Goats eat hay.", "Entry is free."])
    assert (found.citations, found.supported_citations, found.dangling) == (3, 2, 1)
    assert (found.precision, found.recall) == (2 / 3, 1.0)


def test_the_sentence_before_is_kept_for_pronouns():
    first, second = cited_claims("The goat is old [1]. It eats hay [1].", ["Goat."])
    assert (first.before, second.before) == ("", "The goat is old.")


def test_huge_ranges_are_not_written_out():
    assert _read("Goats eat hay [1-999].") == [("Goats eat hay.", ("1", "999"))]


def test_white_space_around_a_segment_stays():
    assert without_citations(" Goats eat hay [1]. \n", [Passage(id="a", text="Hay.")]) == " Goats eat hay. \n"


def test_an_answer_that_is_no_text_is_refused():
    with pytest.raises(InputError, match="the answer must be a str, not bytes"):
        cited_claims(b"Goats eat hay [1].", [])
