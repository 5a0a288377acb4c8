"""The evidence index: where sentences stand, who else says them, which of them a claim is shown."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail import Verifier
from guardrail.scoring.evidence import EvidenceIndex, Window
from guardrail.testing import FakeEntailment
from guardrail.types import Passage, VerdictLabel


def index_of(*texts: str) -> EvidenceIndex:
    return EvidenceIndex([Passage(id=chr(ord("a") + i), text=text) for i, text in enumerate(texts)])


def spans_of(windows: Sequence[Window]) -> list[tuple[str, str]]:
    return [(s.span.passage_id, s.span.text) for w in windows for s in w.sentences]


PIECES = st.sampled_from(
    [
        "Entry is free. ",
        "\n\n",
        "  ",
        "# Prices\n",
        "- Dogs: no\n",
        "| a | 1 |\n",
        "🕯️ Clock. ",
        "“Quoted.” ",
        "5 °C. ",
        "\t",
    ]
)


@given(st.lists(st.lists(PIECES, max_size=6).map("".join), max_size=4))
def test_offsets_give_the_text_of_the_passage(texts: list[str]) -> None:
    index = index_of(*texts)
    by_id = {p.id: p.text for p in index.passages}
    for sentence in index.sentences:
        span = sentence.span
        assert by_id[span.passage_id][span.start : span.end] == span.text
        assert span.text == span.text.strip() != ""
        assert sentence.words


def test_offsets_in_a_verdict_give_the_text_of_the_passage() -> None:
    passages = ["\n  Dogs may come in.  Entry is free.\n\nThe hall is old.\n", "  Entry is free on Sundays.  "]
    result = Verifier(entailment=FakeEntailment(1.0)).verify_sync("Entry is free.", passages)
    (claim,) = result.claims
    assert claim.evidence
    for span in claim.evidence:
        assert passages[int(span.passage_id) - 1][span.start : span.end] == span.text


# --- the same sentence in several passages --------------------------------------------------------------------


@pytest.mark.parametrize("other", ["Entry is free.", "entry is free.", "Entry  is\nfree.", "ENTRY IS FREE."])
def test_every_passage_that_has_the_sentence_supports_it(other: str) -> None:
    context = [{"id": "a", "text": "Entry is free."}, {"id": "b", "text": other}, {"id": "c", "text": "Dogs may come."}]
    (claim,) = Verifier(entailment=FakeEntailment(1.0)).verify_sync("Entry is free.", context).claims
    assert {"a", "b"} <= set(claim.supporting)
    assert claim.verdict is VerdictLabel.SUPPORTED


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The low is 5 °C.", "The low is -5 °C."),
        ("The fee is $5.", "The fee is €5."),
        ("Sales grew by 5.", "Sales grew by 5%."),
        ("Doses > 5 mg are safe.", "Doses < 5 mg are safe."),
        ("Knives: ✅ yes", "Knives: ❌ yes"),
    ],
)
def test_sentences_that_differ_in_a_sign_both_stay(one: str, other: str) -> None:
    assert [s.span.text for s in index_of(one, other).sentences] == [one, other]


def test_a_contrary_sentence_that_differs_in_a_sign_is_seen() -> None:
    context = [{"id": "a", "text": "The low is 5 °C."}, {"id": "b", "text": "The low is -5 °C."}]
    (claim,) = Verifier(entailment=FakeEntailment(1.0)).verify_sync("The low is -5 °C.", context).claims
    assert claim.verdict is VerdictLabel.CONFLICT
    assert (claim.supporting, claim.contradicting) == (("b",), ("a",))


# --- which sentences are shown --------------------------------------------------------------------------------


def test_a_window_keeps_to_its_budget_and_to_the_order_of_the_document() -> None:
    texts = [f"The {word} room has a lamp and a desk." for word in "amber brass cedar delta ember fjord grove".split()]
    index = index_of(" ".join(texts))
    (window, *_) = index.select("The cedar room and the amber room have a lamp.", max_words=20)
    assert sum(s.count for s in window.sentences) <= 20
    assert window.premise == f"{texts[0]} {texts[2]}"
    assert {s.span.text for s in window.sentences} == {texts[0], texts[2]}


def test_a_sentence_longer_than_the_budget_is_shown_whole() -> None:
    long = "The hall has " + " and ".join(f"a lamp number {i}" for i in range(20)) + "."
    (window, *_) = index_of(long, "Dogs may come in.").select("The hall has a lamp.", max_words=20)
    assert [s.span.text for s in window.sentences] == [long]


def test_each_of_the_best_passages_has_a_window_of_its_own() -> None:
    index = index_of("The permit costs 12 euro.", "The permit no longer costs anything.", "Dogs may come in.")
    windows = index.select("The permit costs 12 euro.")
    assert set(windows[0].passage_ids) >= {"a", "b"}
    assert {w.passage_ids for w in windows[1:]} == {("a",), ("b",)}


def test_one_passage_cannot_crowd_out_another() -> None:
    loud = " ".join(f"The permit costs 12 euro in room {i}." for i in range(40))
    windows = index_of(loud, "The permit costs 15 euro.").select("The permit costs 12 euro.")
    assert ("b",) in {w.passage_ids for w in windows}


def test_windows_are_distinct() -> None:
    for texts in (["Entry is free."], ["Entry is free.", "Dogs may come in."], ["Entry is free."] * 3):
        windows = index_of(*texts).select("Entry is free.")
        assert len({frozenset(spans_of([w])) for w in windows}) == len(windows)


def test_a_claim_that_shares_no_word_is_still_shown_something() -> None:
    windows = index_of("Entry is free.", "Dogs may come in.").select("Zqx qqq.")
    assert spans_of(windows)


def test_nothing_to_show_without_a_sentence() -> None:
    assert EvidenceIndex([]).select("Entry is free.") == []
    assert index_of("…", "\n").select("Entry is free.") == []


def test_the_text_before_helps_a_pronoun() -> None:
    filler = [f"The {word} room has a lamp." for word in "amber brass cedar delta".split()]
    index = index_of("The tower has a café.", "The castle has a café.", *filler)
    for subject, expected in (("tower", "a"), ("castle", "b")):
        (window, *_) = index.select("It has a café.", before=f"The {subject} opens at ten.")
        assert window.sentences[0].span.passage_id == expected


# --- questions that a passage plainly answers -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "plain"),
    [
        ("How many stomach chambers does a goat have?", True),
        ("How many horns does a goat have?", False),
        ("Goats?", False),
        ("", False),
        ("Goats have four stomach chambers", False),  # nothing more is said than was asked
    ],
)
def test_a_plain_answer_has_every_word_of_the_question_and_one_more(question: str, plain: bool) -> None:
    assert index_of("Dogs may come in.", "Goats have four stomach chambers.").plainly_answers(question) is plain


def test_a_plain_answer_stands_in_one_sentence() -> None:
    assert not index_of("Goats have hooves. Cows have four stomach chambers.").plainly_answers(
        "How many stomach chambers does a goat have?"
    )


# --- large contexts -------------------------------------------------------------------------------------------


async def test_an_index_is_the_same_in_a_thread() -> None:
    passages = [Passage(id=str(i), text=f"Shelf number {i} holds a row of plain books. " * 3) for i in range(400)]
    built = await EvidenceIndex.build(passages)
    assert [s.span for s in built.sentences] == [s.span for s in EvidenceIndex(passages).sentences]
    assert len(built.sentences) == 400, "a repetition inside a passage counts once"


def test_a_second_sentence_about_the_same_thing_gives_way_to_one_about_the_rest():
    same = [f"The old mill at the river was sold to the town in 19{n}." for n in range(30, 50)]
    index = index_of(" ".join([*same, "Marco ran a bakery."]))
    window = index.select("The old mill at the river was sold in 1932, and Marco ran a bakery.", max_words=40)[0]
    assert "Marco ran a bakery." in window.premise
    assert "in 1932." in window.premise


def test_forms_of_a_word_find_each_other():
    index = index_of("Cooks arrive early. " + "Nothing else happened that day. " * 3 + "They were fermenting cabbage.")
    assert "fermenting" in index.select("Cabbage ferments.", max_words=8)[0].premise
