"""Proper names in claims: which are found, and what is said against those that no passage has."""

from __future__ import annotations

import math

import pytest

from guardrail import Passage, Verifier
from guardrail.scoring.delta_r import UNKNOWN_NAME_LOG_ODDS, WindowSignals, capped
from guardrail.scoring.evidence import EvidenceIndex
from guardrail.scoring.name_clashes import name_clashes
from guardrail.scoring.names import names_in, strangers
from guardrail.types import Clash, ClashKind, VerdictLabel


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("The firm was founded by Anna Berg.", ["Anna Berg"]),
        ("Anna Berg founded the firm.", ["Anna Berg"]),
        ("Founded by the Orrin Trust of Bergen, it grew.", ["Orrin Trust of Bergen"]),
        ("It belongs to Jean-Luc O'Neill's widow.", ["Jean-Luc O'Neill's"]),
        ("It was sold to J. Holm and St. Gall.", ["J. Holm", "St. Gall"]),
        ("Lena Hofer.", ["Lena Hofer"]),
        ("Dogs are allowed.", []),
        ("On Monday, March 3, it rained.", []),
        ("NATO and the PACs left.", []),
        ("See Passage 3 and Step 2.", []),
        ("The Receiving party signs.", []),
        ("Dear [Recipient Name], welcome.", []),
        ("Run `SELECT Name` first.", []),
        ("The Benefits of Raw Honey", []),
        ("Preheat the oven to 250 degrees Fahrenheit.", []),
        ("她在柏林出生。", []),
        ("", []),
    ],
)
def test_which_names_are_found(text: str, names: list[str]):
    assert [name.text for name in names_in(text)] == names


def test_titles_and_endings_are_no_part_of_what_is_looked_for():
    [name] = names_in("They met President Barack Obama's sister.")
    assert name.words == ("Barack", "Obama")


def index(*texts: str) -> EvidenceIndex:
    return EvidenceIndex([Passage(id=str(at), text=text) for at, text in enumerate(texts)])


@pytest.mark.parametrize(
    ("claim", "unknown"),
    [
        ("It was built in Bergen.", []),
        ("It was built in Oslo.", ["Oslo"]),
        ("It was an American idea.", []),
        ("Carl Holm's idea won.", []),
        ("Anna Holm had the idea.", []),
        ("It has Wi-Fi and a Coca-Cola sign.", ["Coca-Cola"]),
        ("It has WiFi.", []),
        ("It stands in Goleta, California.", ["Goleta"]),
        ("It stands in Texas.", ["Texas"]),
        ("It came from the United States.", []),
        ("Anna Quist had the idea.", ["Anna Quist"]),
    ],
)
def test_a_name_is_known_from_any_passage(claim: str, unknown: list[str]):
    known = index(
        "Carl Holm went from America.",
        "The yard in Bergen built it.",
        "There is free Wi-Fi.",
        "Address: 12 Main St, CA, USA or US",
    )
    assert [name.text for name in strangers(claim, known.knows)] == unknown


@pytest.mark.parametrize(
    ("claim", "evidence", "found"),
    [
        ("Anna Berg founded the firm.", "Carl Holm founded the firm in Oslo.", [("Anna Berg", "Carl Holm", True)]),
        ("The firm was founded by Anna Berg.", "Carl Holm founded the firm.", [("Anna Berg", "Carl Holm", True)]),
        ("Anna Berg sold the firm in Graz.", "Carl Holm founded the firm.", None),
        ("It belongs to Anna Berg.", "Carl Holm founded the firm.", [("Anna Berg", "", False)]),
        ("The firm was founded by Anna Berg.", "The firm was founded in 1990.", [("Anna Berg", "", False)]),
    ],
)
def test_what_is_said_against_an_unknown_name(claim: str, evidence: str, found: list[tuple[str, str, bool]] | None):
    clashes = name_clashes(claim, strangers(claim, index(evidence).knows), [evidence])
    if found is None:
        assert [c.contradicts for c in clashes] == [False, False]
        return
    assert [(c.claim_text, c.evidence_text, c.contradicts) for c in clashes] == found
    assert {c.kind for c in clashes} == {ClashKind.NAME}


def test_a_few_sentences_need_not_name_what_they_speak_of():
    claim = "Anna Berg led the choir in Oslo."
    names = names_in(claim)
    evidence = ["She led the choir for two years."]
    assert name_clashes(claim, names, evidence, all_is_known=False) == []
    assert [c.contradicts for c in name_clashes(claim, names, evidence)] == [False, False]
    assert Verifier().verify_sync("Anna Berg led the choir.", ["She led the choir for two years."]).accepted


@pytest.mark.parametrize(
    "evidence",
    [
        "After a film of Carl Holm, she founded the firm.",
        "The founder of the firm had worked for Carl Holm.",
    ],
)
def test_a_subject_is_contradicted_by_a_subject(evidence: str):
    clashes = name_clashes("Anna Berg founded the firm.", names_in("Anna Berg founded the firm."), [evidence])
    assert [c.contradicts for c in clashes] == [False]


def test_a_name_from_the_question_is_no_stranger():
    names = names_in("It was built by Anna Berg.")
    assert name_clashes("It was built by Anna Berg.", names, ["It is old."], question="Did Anna Berg build it?") == []


def test_german_nouns_are_no_names():
    claim = "Der Turm ist ein Wahrzeichen der Altstadt und wird gern besucht."
    evidence = ["Der Turm wurde im Jahr 1412 gebaut und ist heute noch die höchste Kirche der Gegend."]
    assert name_clashes(claim, names_in(claim), evidence) == []


NAME = Clash(kind=ClashKind.NAME, claim_text="Anna Berg", contradicts=False)
MISSING = Clash(kind=ClashKind.VALUE, claim_text="7", contradicts=False)


@pytest.mark.parametrize("odds", [None, 4.0])
def test_an_unknown_name_lowers_the_odds_of_any_model(odds: float | None):
    lowered = capped(0.9, [NAME], missing_log_odds=odds)
    factor = math.exp(-UNKNOWN_NAME_LOG_ODDS)
    assert lowered == pytest.approx(9 * factor / (1 + 9 * factor))
    assert capped(0.9, [NAME, MISSING], missing_log_odds=odds) < min(
        lowered, capped(0.9, [MISSING], missing_log_odds=odds)
    )
    assert capped(1.0, [NAME], missing_log_odds=odds) == pytest.approx(1.0)
    assert capped(0.0, [NAME], missing_log_odds=odds) == 0.0


def signals(*clashes: Clash, judged: str = "") -> WindowSignals:
    return WindowSignals(
        passage_ids=("1",), rouge_l=1.0, entailment=0.85, contradiction=None, clashes=clashes, judged=judged
    )


def test_a_judge_that_says_yes_has_seen_the_name():
    assert signals(NAME, judged="yes").capped_entailment == 0.85
    assert signals(NAME, judged="no").capped_entailment < 0.5
    assert signals(MISSING, judged="yes").capped_entailment == 0.2
    assert not signals(NAME).objected
    assert signals(MISSING, NAME).objected


def test_another_founder_is_contradicted():
    verdict = Verifier().verify_sync("Anna Berg founded the firm.", ["Carl Holm founded the firm in Oslo."])
    assert not verdict.accepted
    assert verdict.claims[0].verdict is VerdictLabel.CONTRADICTED
    assert Verifier().verify_sync("Carl Holm founded the firm.", ["Carl Holm founded the firm in Oslo."]).accepted
