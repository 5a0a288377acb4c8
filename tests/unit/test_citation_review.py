"""Citations where it is easy to be wrong: what is a mark, what is content, and what it says of a claim."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from guardrail import CitationStatus, Guardrail, OutcomeStatus, Policy, PolicyError, Verifier
from guardrail.attempt import words_of
from guardrail.context import excerpt, origin_of
from guardrail.policy import BALANCED, LENIENT, STRICT
from guardrail.reasons import why_failed
from guardrail.scoring.citations import read_marks
from guardrail.scoring.claims import Preceding
from guardrail.scoring.evidence import EvidenceIndex
from guardrail.scoring.markup import plain
from guardrail.testing import FakeEntailment, ScriptedGenerator
from guardrail.text.marks import without_marks
from guardrail.types import Passage, Segment, SegmentKind

RIGHT, WRONG, DANGLING, MISSING, UNSUPPORTED = (
    CitationStatus.RIGHT,
    CitationStatus.WRONG,
    CitationStatus.DANGLING,
    CitationStatus.MISSING,
    CitationStatus.UNSUPPORTED,
)
HEIGHT, YEAR, LAKE = (
    "The Orrin dam is 212 m high.",
    "The Orrin dam was finished in 1974.",
    "The lake behind the Orrin dam holds 90 million cubic metres.",
)
CONTEXT = [HEIGHT, YEAR, LAKE]


def found(answer: str, context: list[Any] = CONTEXT, policy: Policy | str = "balanced") -> list[Any]:
    result = Verifier(policy=policy).verify_sync(answer, context)
    return [[(c.status, c.number, c.right) for c in v.citations] for v in result.claims]


def _says(premise: str, claim: str) -> float:
    return 1.0 if without_marks(claim).strip() in premise else 0.0


async def run(answer: Any, context: list[Any] = CONTEXT, *, reranker: Any = None, **policy: Any) -> Any:
    generator = answer if isinstance(answer, ScriptedGenerator) else ScriptedGenerator(answer)
    guard = Guardrail(
        policy=Policy(lexical_weight=0.0, **{"release": "answer", **policy}),
        entailment=FakeEntailment(_says),
        reranker=reranker,
        observers=[],
    )
    return await guard.run(generator, question="What is known of the dam?", context=context)


# --- what is a mark ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("It is high [1] and was built in 1974 [2].", [(1,), (2,)]),
        ("It is high [1], but it leaks [2] while it rains [3].", [(1,), (2,), (3,)]),
        ("È alta [1] e perde [2].", [(1,), (2,)]),
        ("大坝高212米[1]。", [(1,)]),
        ("大坝[1]，湖[2]。", [(1,), (2,)]),
        ("**It is high [1]** and old [2].", [(1,), (2,)]),
        ("“It is high [1]” he said.", [(1,)]),
        ("| dam | 212 m [2] |", [(2,)]),
        ("It is high<sup>[1]</sup>.", [(1,)]),
        ("It is high [1] – and old [2].", [(1,), (2,)]),
        ("It is high [1]\nThe lake is long [2]\n", [(1,), (2,)]),
        ("It is high [1][2] [3].", [(1,), (2,), (3,)]),
        ("It is 212 m[1] high[2].", [(2,)]),
        ("It costs $5 [1], and $6 [2].", [(1,), (2,)]),
        ("[1]: The dam report.", [(1,)]),
        # Content.
        ("Take between [3] and [5] mg.", []),
        ("Take [3], [5] or [7] mg.", []),
        ("Take [3] and 5 mg.", []),
        ("The probability lies in [0, 1].", []),
        ("A value between [1, 5].", []),
        ("In the range [1-5], it is safe.", []),
        ("x ∈ [1, 2].", []),
        ("The score is [3].", []),
        ("Use `a[1]`, then `b = c[2];`.", []),
        ("For $x \\in [1, 2], y$ it holds.", []),
        ("Read rows[0], x[1] and row_ids[2].", []),
        ("See [the report][1].", []),
        ("See [1](https://example.org).", []),
        ("The number of gates: [5].", []),
        ("Sources: [1], [2].", [(1,), (2,)]),
        ("The values are [3], [5] and [7].", []),
        ("[1] Smith, 2004.", []),
        ("In [2004].", []),
    ],
)
def test_which_numbers_in_brackets_are_marks(text: str, numbers: list[tuple[int, ...]]):
    assert [mark.numbers for mark in read_marks(text)] == numbers


@pytest.mark.parametrize(
    "answer", ["A dose of [3] mg is safe.", "A dose of [3] µg is safe.", "A share of [3] % is safe."]
)
def test_brackets_do_not_part_a_number_from_its_unit(answer: str):
    context = [answer.replace("[3]", "5"), HEIGHT, YEAR, LAKE]
    assert not Verifier().verify_sync(answer, context).accepted
    assert Verifier().verify_sync(answer.replace("3", "5"), context).accepted


def test_only_marks_that_lead_to_passages_are_no_part_of_the_claim():
    assert plain("It leaks [1, 2].", passages=2) == "It leaks."
    assert plain("It leaks [1, 7].", passages=2) == "It leaks [1, 7]."
    assert plain("It leaks [0].", passages=2) == "It leaks [0]."


def test_sentences_with_other_intervals_are_other_sentences():
    assert words_of("It lies in [0, 1].") != words_of("It lies in [0, 2].")
    assert words_of("It leaks [1] and is old [2].") == words_of("It leaks [3] and is old.")
    assert words_of("- It leaks [1].\n") == words_of("> *It leaks*")
    assert words_of("3. Oktober ist frei.") != words_of("4. Oktober ist frei.")
    assert words_of("- 5 °C") != words_of("5 °C")


async def test_a_chinese_sentence_is_not_repeated():
    """Its words are not parted by spaces."""
    said = "大坝高两百一十二米。\n"
    model = ScriptedGenerator(f"{said}大坝很旧。", f"{said}湖很长。", can_continue=True)
    guard = Guardrail(
        policy=Policy(lexical_weight=0.0, release="sentence"), entailment=FakeEntailment(_says), observers=[]
    )
    stream = guard.stream(model, question="大坝多高？", context=["大坝高两百一十二米。湖很长。"])
    assert "".join([piece async for piece in stream]) == f"{said}湖很长。"


def test_an_excerpt_of_an_excerpt_stands_for_its_passage():
    assert origin_of("a#0-12#again", {"a", "b"}) == "a"
    assert origin_of("c#d", {"a", "b"}) is None
    assert origin_of("#", {"a"}) is None


# --- looking up -------------------------------------------------------------------------------------------------


_DOUBTED = pytest.mark.xfail(reason="the model doubts what two short passages say together", strict=True)


@pytest.mark.parametrize("policy", ["balanced", pytest.param("strict", marks=_DOUBTED)])
def test_marks_inside_a_sentence_count(policy: str):
    answer = "The Orrin dam is 212 m high [1] and was finished in 1974 [2]."
    assert found(answer, policy=policy) == [[(RIGHT, 1, ()), (RIGHT, 2, ())]]
    assert Verifier(policy=policy).verify_sync(answer, CONTEXT).accepted


@pytest.mark.parametrize(
    ("answer", "citations"),
    [
        ("The Orrin dam [1] is 212 m high.", [(RIGHT, 1, ())]),
        ("The Orrin dam [2] is 212 m high.", [(WRONG, 2, ("1",))]),
        ("The Orrin dam [2] is 212 m high [1].", [(RIGHT, 1, ()), (WRONG, 2, ())]),
        ("The Orrin dam [9] is 212 m high.", [(MISSING, None, ())]),
        ("The Orrin dam is [2] m high.", []),
    ],
)
def test_numbers_inside_a_clause_are_looked_up(answer: str, citations: list[Any]):
    assert found(answer) == [citations]


def test_strict_mode_fails_a_wrong_mark_inside_a_clause():
    strict = Verifier(policy="strict")
    assert strict.verify_sync("The Orrin dam [1] is 212 m high.", CONTEXT).accepted
    assert not strict.verify_sync("The Orrin dam [2] is 212 m high.", CONTEXT).accepted


@pytest.mark.parametrize("cite", ["add", "fix"])
@pytest.mark.parametrize("number", [1, 2])
async def test_what_stands_inside_a_clause_is_never_rewritten(cite: str, number: int):
    guard = Guardrail(policy=Policy(cite=cite), observers=[])
    said = f"The Orrin dam [{number}] is 212 m high."
    outcome = await guard.run(ScriptedGenerator(said), question="How high is the dam?", context=CONTEXT)
    assert outcome.text == said


def test_of_several_that_support_together_one_too_many_is_wrong():
    answer = "The Orrin dam is 212 m high and was finished in 1974 [1][2][3]."
    assert found(answer) == [[(RIGHT, 1, ()), (RIGHT, 2, ()), (WRONG, 3, ())]]


def test_a_wrong_mark_in_a_table_fails_strict_mode():
    table = "| Fact | Value |\n|---|---|\n| The Orrin dam | 212 m high [{}] |\n"
    assert found(table.format(2))[-1] == [(WRONG, 2, ("1",))]
    assert not Verifier(policy="strict").verify_sync(table.format(2), CONTEXT).accepted
    assert Verifier(policy="strict").verify_sync(table.format(1), CONTEXT).accepted


@pytest.mark.parametrize("form", ["{}\n[{}]\n", "{}\n\n[{}]\n\n", "{}\n\n[C{}]", "{}  [{}]"])
def test_marks_on_a_line_of_their_own_cite_for_the_claim_before(form: str):
    assert found(form.format(HEIGHT, 1))[-1] == [(RIGHT, 1, ())]
    assert found(form.format(HEIGHT, 2))[-1] == [(WRONG, 2, ("1",))]
    strict = Verifier(policy="strict")
    assert strict.verify_sync(form.format(HEIGHT, 1), CONTEXT).accepted
    rejected = strict.verify_sync(form.format(HEIGHT, 2), CONTEXT)
    assert (rejected.accepted, rejected.reason) == (False, "claims_failed")
    assert found(form.format(HEIGHT, 9))[-1] == [(DANGLING, 9, ("1",))]
    assert not strict.verify_sync(form.format(HEIGHT, 9), CONTEXT).accepted
    assert Verifier().verify_sync(form.format(HEIGHT, 9), CONTEXT).accepted  # marked, like any other


def test_marks_behind_what_is_no_claim_are_not_wrong():
    result = Verifier(policy="strict").verify_sync(f"[2]\n\n{HEIGHT}", CONTEXT)
    assert result.accepted
    assert [c.status for c in result.claims[0].citations] == [UNSUPPORTED]


def test_marks_between_two_sentences_part_nothing():
    before = Preceding(text="The dam is high. ", label="Forbidden:")
    assert before.after(Segment(start=0, end=4, text="[1]\n", kind=SegmentKind.HEADING)) == before


def test_a_number_that_a_colon_announces_is_no_mark():
    context = ["The number of seats is 300.", *["The hall is old."] * 8]
    for answer in ("The number of seats is:\n[5]", "How many seats are there?\n[5]"):
        result = Verifier(policy="strict").verify_sync(answer, context)
        assert not result.accepted
        assert result.claims[-1].citations == ()


async def test_a_run_fails_marks_on_a_line_of_their_own():
    model = ScriptedGenerator(f"{HEIGHT}\n\n[2]\n\n", f"{HEIGHT}\n\n[1]\n\n")
    outcome = await run(model, on_wrong_citation="fail")
    assert outcome.status is OutcomeStatus.ACCEPTED
    assert outcome.text in (f"{HEIGHT}\n\n[1]\n\n",)
    [failed] = model.requests[1].failed_claims
    assert failed.why == f"the cited passage [2] does not say so; the one that says {HEIGHT!r} does"


async def test_another_wrong_number_is_another_failure():
    """Each attempt cites differently, so the run goes on to the one that is right."""

    class Same:
        def __init__(self) -> None:
            self.again = 0

        def next_context(self, *, passages: Any, **_: Any) -> Any:
            self.again += 1
            return (*passages, *[excerpt(passages[0], HEIGHT, suffix="#again")] * self.again)

    said = "The Orrin dam is 212 m high [{}]."
    model = ScriptedGenerator(said.format(2), said.format(3), said.format(1))
    outcome = await run(model, on_wrong_citation="fail", reranker=Same())
    assert (outcome.status, len(outcome.attempts)) == (OutcomeStatus.ACCEPTED, 3)
    outcome = await run(said.format(2), on_wrong_citation="fail", reranker=Same())
    assert (outcome.reason, len(outcome.attempts)) == ("same_claim_failed_twice", 2)


async def test_marks_on_their_own_line_go_with_the_sentence_that_is_left_out():
    for can_continue in (True, False):
        model = ScriptedGenerator(
            f"{HEIGHT}\n\n{LAKE}\n\nIt was built by 300 men.",
            f"{LAKE}\n\n[3]\n\n{YEAR}\n\n[2]\n\n",
            can_continue=can_continue,
        )
        guard = Guardrail(
            policy=Policy(lexical_weight=0.0, release="sentence"),
            entailment=FakeEntailment(_says),
            reranker=InOrder(),
            observers=[],
        )
        stream = guard.stream(model, question="What is known of the dam?", context=CONTEXT)
        text = "".join([piece async for piece in stream])
        assert text == f"{HEIGHT}\n\n{LAKE}\n\n{YEAR}\n\n[2]\n\n", can_continue


async def test_a_continuation_is_checked_behind_what_it_continues():
    """A mark that it begins with cites for the last sentence of the prefix, and its "it" is the subject of that."""
    model = ScriptedGenerator(f"{HEIGHT}\n\nIt was built by 300 men.", "[2]\n\n", "[1]\n\n", can_continue=True)
    guard = Guardrail(
        policy=Policy(lexical_weight=0.0, release="sentence", on_wrong_citation="fail"),
        entailment=FakeEntailment(_says),
        reranker=InOrder(),
        observers=[],
    )
    outcome = await guard.run(model, question="What is known of the dam?", context=CONTEXT)
    assert [a.reason for a in outcome.attempts][:2] == ["claims_failed", "claims_failed"]
    assert [c.status for c in outcome.attempts[1].verdicts[-1].citations] == [WRONG]


class InOrder:
    """Shows the same passages and one of them again."""

    def next_context(self, *, passages: Any, **_: Any) -> Any:
        return (*passages, excerpt(passages[0], passages[0].text, suffix="#again"))


async def test_the_passage_behind_the_last_number_may_be_an_excerpt_shown_twice():
    """A selection may be longer than the context, and its last number is no value of the claim."""

    class Twice:
        def next_context(self, *, shown: Any, **_: Any) -> Any:
            return (*shown, excerpt(shown[0], HEIGHT, suffix="#0-28"))

    model = ScriptedGenerator("The Orrin dam is 300 m high.", "The Orrin dam is 212 m high [2].")
    outcome = await run(model, [f"{HEIGHT} It is grey."], reranker=Twice(), max_attempts=2)
    assert outcome.status is OutcomeStatus.ACCEPTED
    assert [(c.status, c.passage_id) for c in outcome.verdicts[0].citations] == [(RIGHT, "1")]
    assert "[2]" not in model.requests[0].question


def test_records_of_other_passages_do_not_object_to_the_cited_one():
    record = Passage(id="record", text='{"name": "Blue Hall", "WiFi": "no"}')
    prose = Passage(id="prose", text="Blue Hall offers free WiFi to its guests.")
    index = EvidenceIndex([prose, record])
    claim = "Blue Hall offers free WiFi to its guests."
    assert index.select(claim)[0].objections
    assert [w.objections for w in index.select(claim, only=frozenset({"prose"}))] == [()]
    assert index.select(claim, only=frozenset({"record"}))[0].objections
    assert index.select(claim, only=frozenset({"prose", "record"}))[0].objections


def test_a_long_list_of_marks_asks_a_bounded_number_of_pairs():
    model = FakeEntailment(_says)
    context = [HEIGHT, *[f"The Orrin dam has {n} gates." for n in range(2, 120)]]
    numbers = ", ".join(str(n) for n in range(2, 100))
    verifier = Verifier(policy=BALANCED.override(lexical_weight=0.0), entailment=model)
    result = verifier.verify_sync(f"The Orrin dam is 212 m high [{numbers}].", context)
    assert len(model.pairs) <= 18
    assert {c.status for c in result.claims[0].citations} == {WRONG}
    assert result.claims[0].citations[0].right == ("1",)


def test_an_answer_without_marks_costs_nothing_more():
    asked = {}
    for cite in ("ignore", "check"):
        model = FakeEntailment(_says)
        verifier = Verifier(policy=BALANCED.override(lexical_weight=0.0, cite=cite), entailment=model)
        verifier.verify_sync(" ".join(CONTEXT), CONTEXT)
        asked[cite] = len(model.pairs)
    assert asked["check"] == asked["ignore"] == 3


async def test_writing_asks_a_few_pairs_per_claim():
    """The best passage alone; then the written claim once more, and the passage that it cites."""
    facts = [f"Fact number {n} says that town{n} has {n + 100} wells." for n in range(30)]
    cited = " ".join(f"{fact[:-1]} [{n}]." for n, fact in enumerate(facts, start=1))
    asked = {}
    for cite, text in (("check", " ".join(facts)), ("add", cited)):
        model = FakeEntailment(_says)
        policy = Policy(lexical_weight=0.0, cite=cite, release="answer")
        guard = Guardrail(policy=policy, entailment=model, observers=[])
        outcome = await guard.run(ScriptedGenerator(" ".join(facts)), question="How many wells?", context=facts)
        assert outcome.text == text
        asked[cite] = len(model.pairs)
    assert asked["add"] <= 2 * (asked["check"] + len(facts))


@pytest.mark.parametrize("marks", ["", " [1]", " [2]", " [9]", " [1, 3]"])
@pytest.mark.parametrize("claim", ["The Orrin dam is 212 m high", "The Orrin dam is 221 m high", "The fee is 3 euro"])
@pytest.mark.parametrize("policy", [BALANCED, LENIENT, BALANCED.override(delta=0.4)])
def test_looking_up_does_not_change_what_all_passages_say(claim: str, marks: str, policy: Policy):
    ignored, looked_up = (
        Verifier(policy=policy.override(cite=cite)).verify_sync(f"{claim}{marks}.", CONTEXT).claims[0]
        for cite in ("ignore", "check")
    )
    assert replace(looked_up, citations=()) == ignored
    assert ignored.citations == ()


def test_what_is_not_looked_up_cannot_fail():
    with pytest.raises(PolicyError, match="leaves nothing"):
        STRICT.override(cite="ignore")
    with pytest.raises(PolicyError, match="leaves nothing"):
        BALANCED.override(cite="ignore", on_wrong_citation="fail")


def test_the_reason_names_the_words_and_not_a_number_that_may_have_changed():
    result = Verifier(policy="strict").verify_sync("The Orrin dam is 212 m high [2].", CONTEXT)
    assert why_failed(result.claims[0]) == (f"the cited passage [2] does not say so; the one that says {HEIGHT!r} does")
