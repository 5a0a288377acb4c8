"""The known blind spots, and what the shipped default makes of them today."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from guardrail import VerdictLabel, Verification, Verifier
from tests.benchmarks.blind_spots import POLICIES, figures, table
from tests.blind_spots import CASES, UNVERIFIABLE, Case, Kind, Result, result, verified

_BOTH, _BALANCED, _STRICT = POLICIES, ("balanced",), ("strict",)

# Decided wrongly today, by which policy, and why. A case that is decided rightly has to be taken out of here.
MISSED = {
    # paraphrases: the true ones are less certain than strict mode asks for, the false ones read like the true ones
    "P01": (_STRICT, "10,000 as 'thousands' is entailed with less than the strict threshold"),
    "P02": (_BALANCED, "10,000 as 'hundreds of thousands' is no clash, as the claim has no number"),
    "P03": (_STRICT, "free as 'you pay nothing' is entailed with less than the strict threshold"),
    "P05": (_STRICT, "retiring as 'stepping down' is entailed with less than the strict threshold"),
    "P06": (_BALANCED, "who took over from whom, with another verb than the passage has"),
    "P07": (_STRICT, "sand as 'grit' is entailed with less than the strict threshold"),
    "P09": (_BOTH, "three quarters as '75 percent' with a merger as 'joining forces'"),
    # implied facts: a time between two others, arithmetic over dates and durations
    "I01": (_BOTH, "noon lies between ten and six; comparison sees another hour"),
    "I05": (_BOTH, "Monday and three days are Thursday; comparison sees another day"),
    "I07": (_BOTH, "five years after 1990 is 1995; comparison sees another year"),
    "I09": (_BOTH, "eleven weeks are more than two months; comparison sees another value"),
    "I10": (_BALANCED, "where a person lives, taken from where they worked"),
    # negation in other words: claim and passage share their words, and no word of them is a plain 'not'
    "N03": (_BOTH, "'no longer' as 'a thing of the past'"),
    "N04": (_BALANCED, "'no longer sells' against 'can still be bought'"),
    "N05": (_STRICT, "a refused change as 'left as it was'"),
    "N07": (_STRICT, "'nobody but' as 'not allowed' for somebody else"),
    "N08": (_BALANCED, "'nobody but' against 'may' for somebody else"),
    "N09": (_BOTH, "'failed to' said as 'did not'; comparison sees a negation on one side only"),
    "N10": (_BALANCED, "'failed to lower' against 'reduced'"),
    # short claims
    "S10": (_BOTH, "a three-word paraphrase of 'children under six'"),
    # numbers that claim and passage share
    "U07": (_BALANCED, "room 12 in the passage, 12 seats in the claim"),
    "U08": (_BALANCED, "the side of another room, in one sentence with the right one"),
    # languages that the model was not trained for; strict mode refuses them
    "T06": (_BALANCED, "Italian: 'non è previsto' against the plain statement"),
    "T07": (_BALANCED, "Italian: two hundred in figures, in another order of words"),
    "T09": (_BALANCED, "Italian: where the office is, of which nothing is said"),
    "T10": (_BALANCED, "Italian: five years are less than six, and free is nothing to pay"),
    "X01": (_BALANCED, "Italian claim, English passage: hardly a word in common"),
    "X03": (_BALANCED, "English claim, Italian passage: hardly a word in common"),
    "O02": (_BALANCED, "German: 'keine ... mehr' against 'wieder'"),
    "O04": (_BALANCED, "French: morning against evening"),
    "O06": (_BALANCED, "Spanish: free against paying"),
}

# Stopped rightly by the balanced policy, under the other name: silence taken for contradiction, or the reverse.
MISNAMED = {
    "P08": UNVERIFIABLE,
    "I04": UNVERIFIABLE,
    "S11": UNVERIFIABLE,
    "T02": UNVERIFIABLE,
    "T08": UNVERIFIABLE,
    "T11": UNVERIFIABLE,
    "X02": UNVERIFIABLE,
    "X04": UNVERIFIABLE,
}

_EDGE = 0.03  # an 8-bit model gives slightly other scores on other processors
_STRANGE = (Kind.ITALIAN, Kind.CROSS, Kind.OTHER)
_CELLS = [(policy, case) for policy in POLICIES for case in CASES]


@cache
def _verifier(policy: str) -> Verifier:
    return Verifier(policy=policy)


@cache
def _found(policy: str, case: Case) -> Verification:
    return verified(case, _verifier(policy))


@pytest.fixture(autouse=True)
def _only_with_the_model() -> None:
    if _verifier("balanced").scorer == "lexical":
        pytest.skip("these are the blind spots of the embedded model, which is not here")


def _on_the_edge(policy: str, found: Verification) -> bool:
    (claim,) = found.claims
    chosen = _verifier(policy).policy
    margins = [claim.delta_r - chosen.delta, (claim.contradiction or 0.0) - 0.5]
    if chosen.strict_threshold is not None:
        margins.append(claim.entailment - chosen.strict_threshold)
    return min(map(abs, margins)) < _EDGE


@pytest.mark.parametrize(("policy", "case"), _CELLS, ids=str)
def test_a_decision_is_right_or_known_to_be_wrong(policy: str, case: Case) -> None:
    policies, why = MISSED.get(case.id, ((), ""))
    found = _found(policy, case)
    known, wrong = policy in policies, result(case, found) in (Result.RELEASED, Result.STOPPED)
    if known is not wrong and _on_the_edge(policy, found):
        pytest.xfail("too near to a threshold to be the same on every processor")
    assert known or not wrong, f"{case.id} is decided wrongly and not in MISSED"
    assert wrong or not known, f"{case.id} is decided rightly: take {policy} out of its row in MISSED"
    if wrong:
        pytest.xfail(why)


@pytest.mark.parametrize("case", [c for c in CASES if not c.grounded], ids=str)
def test_a_stopped_claim_bears_the_right_name_or_is_known_not_to(case: Case) -> None:
    found = _found("balanced", case)
    if found.accepted or _on_the_edge("balanced", found):
        return  # the decision has a test of its own
    (claim,) = found.claims
    assert claim.verdict is MISNAMED.get(case.id, case.right)
    assert MISNAMED.get(case.id) is not case.right


def test_what_is_known_is_about_cases_that_exist() -> None:
    ids = {case.id for case in CASES}
    assert len(ids) == len(CASES)
    assert MISSED.keys() | MISNAMED.keys() <= ids
    assert all(policies and why for policies, why in MISSED.values())


@pytest.mark.parametrize("case", [c for c in CASES if c.kind in _STRANGE], ids=str)
def test_strict_mode_refuses_a_language_that_the_model_does_not_know(case: Case) -> None:
    found = _found("strict", case)
    assert (found.accepted, found.reason) == (False, "unsupported_language")
    expected = {"O01": "de", "O02": "de", "O03": "fr", "O04": "fr", "O05": "es", "O06": "es"}.get(case.id, "it")
    assert [claim.language for claim in found.claims] == [expected]


@pytest.mark.parametrize("case", [c for c in CASES if c.kind in _STRANGE], ids=str)
def test_the_balanced_policy_marks_it_and_decides_all_the_same(case: Case) -> None:
    found = _found("balanced", case)
    assert found.reason in ("passed", "claims_failed")
    assert found.claims[0].language is not None


@pytest.mark.parametrize(
    ("claim", "accepted"), [("Il museo apre alle dieci.", True), ("Il museo apre alle nove.", False)]
)
def test_italian_too_short_to_be_told_is_judged_as_if_it_were_english(claim: str, accepted: bool) -> None:
    found = _verifier("strict").verify_sync(claim, ["Il museo apre alle dieci."])
    assert found.claims[0].language is None
    assert (found.accepted, found.reason) == (accepted, "passed" if accepted else "claims_failed")


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_has_claims_of_both_sorts(kind: Kind) -> None:
    rights = Counter(case.right for case in CASES if case.kind is kind)
    assert rights[VerdictLabel.SUPPORTED] >= 2
    assert rights.total() - rights[VerdictLabel.SUPPORTED] >= 2


def test_the_figures_count_every_case_once() -> None:
    found = figures(_found)
    for policy in POLICIES:
        counts = sum((found[policy, kind] for kind in Kind), Counter())
        assert counts.total() == len(CASES)
        known = sum(policy in policies for policies, _ in MISSED.values())
        edges = sum(_on_the_edge(policy, _found(policy, case)) for case in CASES)
        assert abs(counts[Result.RELEASED] + counts[Result.STOPPED] - known) <= edges
        assert counts[Result.LANGUAGE] == (0 if policy == "balanced" else sum(c.kind in _STRANGE for c in CASES))


def test_the_table_has_a_line_per_policy_and_kind() -> None:
    lines = table({(policy, kind): Counter({Result.RIGHT: 1}) for policy in POLICIES for kind in Kind}).splitlines()
    assert len(lines) == 2 + len(POLICIES) * (len(Kind) + 1)
    assert lines[2].split("|")[1:4] == [" balanced ", " paraphrase ", " 1 "]
