from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail.scoring.clashes import find_clashes
from guardrail.types import ClashKind


def kinds(claim: str, *evidence: str, question: str | None = None) -> list[tuple[ClashKind, bool]]:
    return [(clash.kind, clash.contradicts) for clash in find_clashes(claim, evidence, question=question)]


VALUE, UNIT, DATE, IDENTIFIER = ClashKind.VALUE, ClashKind.UNIT, ClashKind.DATE, ClashKind.IDENTIFIER
NEGATION, ANTONYM, ROLE = ClashKind.NEGATION, ClashKind.ANTONYM, ClashKind.ROLE
QUANTIFIER, MODALITY = ClashKind.QUANTIFIER, ClashKind.MODALITY


@pytest.mark.parametrize(
    ("claim", "evidence", "kind"),
    [
        ("The permit costs 14 euro a year.", "Permits cost 12 euro a year.", VALUE),
        ("He is 62 years old.", "He is 64 years old.", VALUE),
        ("The error rate is 1.25%.", "The error rate is 12.5%.", VALUE),
        ("Children under 12 enter free.", "Children under 14 enter free.", VALUE),
        ("The report has 12 pages.", "The report has 12 chapters and 300 pages.", VALUE),
        ("The lamp weighs 3 kg.", "The lamp weighs 3 lb.", UNIT),
        ("The bridge cost 5 million dollars.", "The bridge cost 5 million euro.", UNIT),
        ("The hall opened in 1999.", "The hall opened in 2018.", DATE),
        ("The train leaves at 9.30 pm.", "The train leaves at 9:30 a.m.", DATE),
        ("Write to sales@example.org.", "Mail goes to help@example.org.", IDENTIFIER),
        ("Install version 2.4.1.", "The tool needs version 2.4.0.", IDENTIFIER),
        ("The vaccine is safe for children.", "The vaccine is not safe for children.", NEGATION),
        ("The warranty never expires.", "The warranty expires after two years.", NEGATION),
        ("Il museo non apre il lunedì.", "Il museo apre il lunedì.", NEGATION),
        ("Das Museum öffnet am Montag nicht.", "Das Museum öffnet am Montag.", NEGATION),
        ("图书馆周一不开放。", "图书馆周一开放。", NEGATION),
        ("Smoking is allowed in the garden.", "Smoking is prohibited in the garden.", ANTONYM),
        ("The drug is taken before meals.", "The drug is taken after meals.", ANTONYM),
        ("It is open on Mondays.", "The museum is closed on Mondays.", ANTONYM),
        ("It was sold in 1990.", "The mill was bought in 1990.", ANTONYM),
        ("Sales fell in 2020.", "Sales rose in 2020.", ANTONYM),
        ("The alarm is switched off at night.", "The alarm is switched on at night.", ANTONYM),
        ("The seal is broken on delivery.", "The seal is unbroken on delivery.", ANTONYM),
        ("The door was painted blue.", "The door was painted green.", ANTONYM),
        ("Le musée est ouvert le lundi.", "Le musée est fermé le lundi.", ANTONYM),
        ("The dog chased the cat.", "The cat chased the dog.", ROLE),
        ("Anna taught Ben chess.", "Ben taught Anna chess.", ROLE),
        ("Mount Orr is higher than Mount Pell.", "Mount Pell is higher than Mount Orr.", ROLE),
        ("Every student passed the exam.", "Most students passed the exam.", QUANTIFIER),
        ("No student passed the exam.", "Some students passed the exam.", QUANTIFIER),
        ("All students passed the exam.", "Seven of the ten students passed the exam.", QUANTIFIER),
        ("Members must wear a badge.", "Members may wear a badge.", MODALITY),
        ("Members may wear a badge.", "Members are required to wear a badge.", MODALITY),
        ("Some members must wear a badge.", "Some members may wear a badge.", MODALITY),
        ("Of the members, some may wear a badge.", "Members are required to wear a badge.", MODALITY),
    ],
)
def test_contradictions(claim: str, evidence: str, kind: ClashKind) -> None:
    assert (kind, True) in kinds(claim, evidence)


@pytest.mark.parametrize(
    ("claim", "evidence"),
    [
        ("Revenue was $890M.", "Revenue was USD 890,000,000."),
        ("The oven is heated to 392 °F.", "The oven is heated to 200 °C."),
        ("The film lasts two and a half hours.", "The film lasts 150 minutes."),
        ("Payment is due in 2 weeks.", "Payment is due within 14 days."),
        ("About half of the users left.", "50% of the users left."),
        ("Smoking is not allowed in the garden.", "Smoking is prohibited in the garden."),
        ("The plan does not include roaming.", "The plan excludes roaming."),
        ("The scan did not exclude a fracture.", "The scan did not rule out a fracture."),
        ("The cat was chased by the dog.", "The dog chased the cat."),
        ("Some students passed the exam.", "Seven of the ten students passed the exam."),
        ("Members can wear a badge.", "Members may wear a badge."),
        ("The shop is closed on Sunday.", "Opening hours: Mon-Sat 9-17, Sun: closed."),
        ("The pool is open daily.", "The pool is open daily, but the sauna is not."),
        ("The tower has three floors.", "The tower shows mammals, birds and insects."),
        ("The service is run by volunteers.", "The service is run by volunteers and not for profit."),
        ("No more than 5 guests are allowed.", "Up to 5 guests are allowed."),
        ("You cannot cancel the order after shipping.", "Orders can be cancelled before shipping."),
    ],
)
def test_the_same_in_other_words(claim: str, evidence: str) -> None:
    assert True not in [contradicts for _, contradicts in kinds(claim, evidence)]


def test_a_value_belongs_to_its_subject() -> None:
    apart = ("The kettle weighs 1.9 kg.", "The toaster weighs 2.6 kg.")
    together = "The kettle weighs 1.9 kg and the toaster weighs 2.6 kg."
    assert kinds("The toaster weighs 1.9 kg.", *apart) == [(VALUE, True)]
    assert kinds("The toaster weighs 1.9 kg.", together) == [(VALUE, True)]
    assert kinds("The toaster weighs 2.6 kg.", *apart) == kinds("The toaster weighs 2.6 kg.", together) == []


def test_a_pronoun_in_the_evidence_is_no_other_subject() -> None:
    assert kinds("The bridge was painted in 1999.", "The bridge opened in 1967.", "It was painted in 1999.") == []


def test_a_pronoun_with_an_opposite_needs_the_same_occasion() -> None:
    assert kinds("It is open on Mondays.", "The museum is closed on Sundays.") == [(DATE, False)]
    assert kinds("It is open on Mondays.", "The museum is closed on Mondays.", "It is open on Mondays, too.") == []


@pytest.mark.parametrize(
    ("claim", "evidence", "found"),
    [
        ("has 100 GB of storage", "costs 100", [(VALUE, False)]),
        ("The plan has 100 GB of storage.", "The plan costs 100.", [(VALUE, False)]),
        ("The plan has 100 GB of storage.", "Storage of the plan: 100.", []),
        ("costs 120", "The plan costs 120 euros.", []),
        ("costs 120", "The plan costs 100 euros.", [(VALUE, False)]),
    ],
)
def test_sharing_a_number_is_not_support(claim: str, evidence: str, found: list[tuple[ClashKind, bool]]) -> None:
    assert kinds(claim, evidence) == found


def test_two_passages_that_disagree_are_no_clash() -> None:
    evidence = ("Plan Blue costs 19 euro.", "Plan Blue costs 24 euro.")
    assert kinds("Plan Blue costs 19 euro.", *evidence) == []
    assert kinds("Plan Blue costs 29 euro.", *evidence) == [(VALUE, True)]


@pytest.mark.parametrize(
    ("claim", "evidence", "kind"),
    [
        ("It cost two million crowns.", "Marsh Hall opened in 1911.", VALUE),
        ("The tool has 100 GB of storage.", "The tool costs 100 euro.", VALUE),
        ("The museum is free on Sundays.", "The museum is free every Monday.", DATE),
        ("The extract reduces swelling in mice.", "The extract may reduce swelling in mice.", MODALITY),
        ("The guide is at https://example.org/guide.", "There is a printed guide.", IDENTIFIER),
        (
            'The manual says "every unit should be tested two times".',
            'The manual says "test each unit twice".',
            IDENTIFIER,
        ),
    ],
)
def test_what_the_evidence_does_not_say(claim: str, evidence: str, kind: ClashKind) -> None:
    assert kinds(claim, evidence) == [(kind, False)]


def test_small_counts_may_be_counted_by_the_writer() -> None:
    assert kinds("There are three kinds of animals.", "The museum shows mammals, birds and insects.") == []


@pytest.mark.parametrize(("answer", "clashes"), [("Yes.", True), ("No.", False), ("True.", True), ("False.", False)])
def test_a_bare_answer_is_a_claim_about_the_question(answer: str, clashes: bool) -> None:
    found = kinds(answer, "The pool is closed on Mondays.", question="Is the pool open on Mondays?")
    assert ((ANTONYM, True) in found or (NEGATION, True) in found) is clashes


def test_a_short_answer_takes_its_subject_from_the_question() -> None:
    question = "What does a permit cost?"
    evidence = "Permits cost 12 euro a year."
    assert kinds("12 euro.", evidence, question=question) == []
    assert kinds("14 euro.", evidence, question=question) == [(VALUE, True)]


def test_no_evidence_is_no_clash() -> None:
    assert find_clashes("The tower is 50 m high.", []) == find_clashes("The tower is 50 m high.", ["", "  "]) == ()


_SENTENCES = st.lists(
    st.sampled_from(
        "the a not no never all some may must open closed is are was "
        "by of and but 12 2.5 mg km % January 2016 9:30 Monday "
        "Bexley Ferrow acquired dog cat door plan "
        "than before after first last , ; . ( ) “ ” 周一 不 开放 è non apre".split()
    ),
    min_size=1,
    max_size=16,
).map(" ".join)


@given(st.one_of(_SENTENCES, st.text(min_size=1)), st.lists(_SENTENCES, max_size=3))
def test_a_copy_never_clashes(sentence: str, others: list[str]) -> None:
    assert find_clashes(sentence, [*others, sentence]) == ()


@given(_SENTENCES, st.lists(_SENTENCES, max_size=4))
def test_duplicates_change_nothing(claim: str, evidence: list[str]) -> None:
    assert find_clashes(claim, evidence) == find_clashes(claim, [*evidence, *evidence])
