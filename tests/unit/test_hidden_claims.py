"""Statements that hide from the checker: in a sign, a bracket, a marker, a heading, a pleasantry, behind a cut.

The entailment model of these tests says yes to everything: what stops a claim is found without it.
"""

from __future__ import annotations

import time

import pytest

from guardrail import Verifier
from guardrail.policy import Policy
from guardrail.scoring.claims import needs_check
from guardrail.scoring.markup import plain
from guardrail.testing import FakeEntailment
from guardrail.text.segmenter import segment
from guardrail.types import Verification

GULLIBLE = {name: Verifier(policy=name, entailment=FakeEntailment(1.0)) for name in ("strict", "balanced")}
FREE = "Entry is free."


def verified(answer: str, passage: str, *, profile: str = "strict", question: str | None = None) -> Verification:
    return GULLIBLE[profile].verify_sync(answer, [passage], question=question)


def released(answer: str, passage: str, *, profile: str = "strict", question: str | None = None) -> bool:
    return verified(answer, passage, profile=profile, question=question).accepted


# --- values that marks and signs hide -------------------------------------------------------------------------

BRACKETS = [
    ("The daily dose is [50] mg.", "The daily dose is 5 mg."),
    ("Entry costs [90] euro.", "Entry costs 5 euro."),
    ("The number of seats is:\n[50]", "The number of seats is:\n[5]"),
    ("Take vitamin [B12] daily.", "Take vitamin [B6] daily."),
    ("The dose is [B12] daily.", "The dose is [B6] daily."),
    ("```\nset retries[10]\n```", "Use `set retries[3]` to change it."),
]
LIST_MARKERS = [
    ("50) mg daily.", "Take 5 mg daily."),
    ("(50) mg is the daily dose.", "5 mg is the daily dose."),
    ("The daily dose in milligrams:\n\n50. is the daily dose", "The daily dose in milligrams is 5."),
]
SIGNS = [
    ("The temperature is -5 °C.", "The temperature is 5 °C."),
    ("The temperature is 5 °C.", "The temperature is -5 °C."),
    ("The balance is -500.", "The balance is 500."),
    ("The temperature today is -5 °C.", "The temperature is 5 °C today."),
    ("The balance was -500 euro.", "The balance is 500 euro."),
    ("Call +39 555 123.", "Call 39 555 123."),
    ("Tolerance ±5 mm.", "Tolerance 5 mm."),
]
CURRENCIES = [
    ("The fee is $5.", "The fee is €5."),
    ("The fee is £90.", "The fee is 90."),
    ("The fee for entry is $5.", "The entry fee is €5 for all."),
]
UNITS = [
    ("Sales grew by 5%.", "Sales grew by 5."),
    ("Sales grew by 5 percent.", "Sales grew by 5."),
    ("Sales grew by 5%.", "Sales grew by 5 in May."),
    ("The rate is 5 ‰.", "The rate is 5 %."),
    ("The rate is 5‰.", "The rate is 5%."),
]
WRITTEN_FORMS = [
    ("Take .5 mg daily.", "Take 5 mg daily."),
    ("Take 5 mg daily.", "Take .5 mg daily."),
    ("Take .5 mg daily with food.", "Take 5 mg daily with food and water."),
    ("Take 1/2 tablet.", "Take 1, 2 tablet."),
    ("Take 10 × 5 mg.", "Take 10, 5 mg."),
    ("The dose is five hundred mg.", "The dose is five mg."),
    ("The dose is **5**0 mg.", "The dose is 5 mg."),
    ("The dose is 5\u200b0 mg.", "The dose is 5 mg."),
    ("Open 9:30.", "Open 9.30."),
]
SUPERSCRIPTS = [
    ("The area is 102 m.", "The area is 10² m."),
    ("The area is 10² m.", "The area is 102 m."),
    ("The mass is 10³ kg.", "The mass is 103 kg."),
]
COMPARISONS = [
    ("Doses > 5 mg are safe.", "Doses < 5 mg are safe."),
    ("Doses > 5 mg are quite safe.", "Doses < 5 mg are safe."),
    ("pH must be ≥ 7.", "pH must be ≤ 7."),
    ("x != 5 is required.", "x == 5 is required."),
]
NAMES_WITH_SYMBOLS = [
    ("The tool is written in C++.", "The tool is written in C."),
    ("The tool was written in C++.", "The tool is written in C."),
    ("The tool is written in C#.", "The tool is written in C++."),
]
MARKS = [
    ("Knives: ✅", "Knives: ❌"),
    (
        "| Item | Allowed |\n|---|---|\n| Knives | ✅ |\n| Water | ❌ |",
        "| Item | Allowed |\n|---|---|\n| Knives | ❌ |\n| Water | ✅ |",
    ),
    ("Entry is ~~not~~ free.", FREE),
    ("Entry is free. <!-- Entry costs ninety -->", FREE),
]
OTHER_VALUES = {
    "brackets": BRACKETS,
    "list markers": LIST_MARKERS,
    "signs": SIGNS,
    "currencies": CURRENCIES,
    "units": UNITS,
    "written forms": WRITTEN_FORMS,
    "superscripts": SUPERSCRIPTS,
    "comparisons": COMPARISONS,
    "names with symbols": NAMES_WITH_SYMBOLS,
    "marks": MARKS,
}


@pytest.mark.parametrize("profile", ["strict", "balanced"])
@pytest.mark.parametrize(
    ("answer", "passage"),
    [pytest.param(a, p, id=f"{group}: {a[:30]!r}") for group, cases in OTHER_VALUES.items() for a, p in cases],
)
def test_another_value_is_not_released(answer: str, passage: str, profile: str) -> None:
    assert not released(answer, passage, profile=profile)


COPIES = sorted({passage for cases in OTHER_VALUES.values() for _, passage in cases} - {"Take 1, 2 tablet."})


@pytest.mark.parametrize("passage", COPIES)
def test_the_words_of_the_passage_are_released(passage: str) -> None:
    """The other side of the table above: what stops another value does not stop the right one."""
    assert released(passage, passage)


@pytest.mark.parametrize(
    ("answer", "passage"),
    [
        ("The daily dose is 5 mg [1].", "The daily dose is 5 mg."),
        ("The daily dose is 5 mg. [1]", "The daily dose is 5 mg."),
        ("1. The daily dose is 5 mg.\n2. Entry is free.", "The daily dose is 5 mg. Entry is free."),
        ("- The daily dose is **5** mg.", "The daily dose is 5 mg."),
        ("The temperature is −5 °C.", "The temperature is -5 °C."),  # a typographic minus
        ("the fee is $5", "The fee is $5."),
        ("The  fee\nis $5!", "The fee is $5."),
    ],
)
def test_layout_does_not_stop_a_right_answer(answer: str, passage: str) -> None:
    assert released(answer, passage)


def test_a_citation_mark_counts_only_for_a_passage_that_exists() -> None:
    assert plain("The dose is 5 mg [2].", passages=3) == "The dose is 5 mg."
    assert "50" in plain("The dose is [50].", passages=3)
    assert "50" in plain("The dose is [50] mg.")


# --- headings and table headers that state something ----------------------------------------------------------

STATING_LABELS = [
    "**Aspirin cures cancer**",
    "# Aspirin cures cancer",
    "## Town hall burned down",
    "Vaccines cause autism:",
]


@pytest.mark.parametrize("label", STATING_LABELS)
@pytest.mark.parametrize("rest", [FREE, "I don't know the price."])
def test_a_heading_that_states_something_is_checked(label: str, rest: str) -> None:
    result = verified(f"{label}\n\n{rest}", FREE)
    assert (result.accepted, result.reason) == (False, "claims_failed")


def test_a_table_header_that_states_something_is_checked() -> None:
    table = "| Aspirin cures cancer | Fee |\n|---|---|\n| Entry | free |"
    assert not released(table, FREE)


@pytest.mark.parametrize("label", STATING_LABELS)
def test_a_heading_that_the_passages_state_is_released(label: str) -> None:
    words = label.strip("#*: ")
    assert released(f"{label}\n\n{FREE}", f"{words}. {FREE}")


@pytest.mark.parametrize(
    "label", ["# Prices", "Opening hours:", "**Getting to the museum**", "## Summary of the terms"]
)
def test_a_heading_that_only_names_a_topic_is_no_claim(label: str) -> None:
    assert released(f"{label}\n\n{FREE}", FREE)
    assert not any(needs_check(piece) for piece in segment(f"{label}\n\n"))


# --- assent, loaded questions, loaded refusals ----------------------------------------------------------------

ASSENT = ["Of course!", "Certainly!", "Absolutely!", "Sure!"]


@pytest.mark.parametrize("profile", ["strict", "balanced"])
@pytest.mark.parametrize("assent", ASSENT)
def test_a_bare_assent_is_not_an_answer_without_claims(assent: str, profile: str) -> None:
    passage, question = "You must not take it with alcohol.", "Can I take it with alcohol?"
    assert not released(assent, passage, profile=profile, question=question)


@pytest.mark.parametrize("profile", ["strict", "balanced"])
@pytest.mark.parametrize("assent", ASSENT)
def test_an_assent_before_a_refusal_still_assents(assent: str, profile: str) -> None:
    question = "Can I take it with alcohol?"
    assert not released(f"{assent} I don't know the price.", FREE, profile=profile, question=question)


def test_an_assent_to_another_question_is_not_carried_by_a_claim_that_passes() -> None:
    assert not released("Absolutely! Entry is free.", f"{FREE} Dogs are not allowed.", question="Are dogs allowed?")
    assert not released("Is it safe? Yes!", "It is not safe.", question="Is it safe?")


def test_a_greeting_before_an_answer_is_still_a_greeting() -> None:
    assert released(f"Hello! {FREE}", FREE, question="What is the fee?")


# --- sentences that are longer than a segment -----------------------------------------------------------------

HALLS = " and ".join(f"the hall number {i} is open" for i in range(1, 23))


HEADS = ["It is not true that", "It would be wrong to say that"]


@pytest.mark.parametrize("head", HEADS)
def test_the_head_of_a_cut_sentence_still_governs_its_parts(head: str) -> None:
    answer = f"{head} {HALLS} and entry is free."
    assert len(answer) > GULLIBLE["strict"].policy.max_segment_chars
    result = verified(answer, f"{HALLS.capitalize()} and entry is free.")
    assert len(result.claims) > 1, "the sentence was cut"
    assert not result.accepted


@pytest.mark.parametrize("head", [*HEADS, "Nobody believes that", "Only the brochure of 1950 claims that"])
def test_the_model_is_shown_the_head_with_every_part_of_a_cut_sentence(head: str) -> None:
    model = FakeEntailment(1.0)
    Verifier(policy="strict", entailment=model).verify_sync(f"{head} {HALLS} and entry is free.", [f"{HALLS}."])
    assert len(model.pairs) > 1
    assert all(pair.hypothesis.startswith(head) for pair in model.pairs)


def test_a_cut_sentence_that_the_passage_has_is_released() -> None:
    answer = f"{HALLS.capitalize()} and entry is free."
    assert len(answer) > GULLIBLE["strict"].policy.max_segment_chars
    assert released(answer, answer)


# --- the reference formula in strict mode ---------------------------------------------------------------------


def _strict_reference(entailment: float) -> Verifier:
    policy = Policy(
        formula="reference",
        delta=1.0,
        strict_threshold=0.9,
        release="answer",
        no_claims="refuse",
        on_conflict="fail",
        on_unknown_language="fail",
        on_wrong_citation="fail",
    )
    return Verifier(policy=policy, entailment=FakeEntailment(entailment))


@pytest.mark.parametrize(("entailment", "accepted"), [(0.89, False), (0.9, True), (1.0, True)])
def test_the_strict_threshold_holds_for_the_reference_formula(entailment: float, accepted: bool) -> None:
    result = _strict_reference(entailment).verify_sync("Entry is free for cats.", [FREE])
    assert result.accepted is accepted
    assert result.faithfulness == (entailment if accepted else 0.0)


def test_a_strict_reference_answer_needs_a_claim() -> None:
    result = _strict_reference(1.0).verify_sync("Hello!", [FREE])
    assert (result.accepted, result.reason) == (False, "no_claims")


# --- layout is removed in linear time -------------------------------------------------------------------------


@pytest.mark.parametrize("unit", ["[", "*a ", "_a ", "![](", "[1", "~~a", "**", "[a](", "> "])
def test_the_time_to_remove_layout_grows_linearly(unit: str) -> None:
    def seconds(count: int) -> float:
        text = unit * count
        best = float("inf")
        for _ in range(3):
            began = time.thread_time()
            plain(text)
            best = min(best, time.thread_time() - began)
        return best

    seconds(500)
    assert any(seconds(4_000) < 8 * 4 * seconds(500) + 0.02 for _ in range(3)), "8 times the length"
