"""Citations over random answers: what is written is right, and nothing else of the text changes."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from guardrail import CitationStatus, Guardrail, OutcomeStatus, Policy
from guardrail.scoring.citations import read_marks
from guardrail.testing import FakeEntailment, ScriptedGenerator
from guardrail.text.marks import find_marks, is_only_marks, without_marks
from guardrail.text.segmenter import segment
from guardrail.types import SegmentKind

SLOW = settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
TRUE = (
    "The vokaa dam is 212 m high",
    "A vokab road leads over the crest",
    "Every vokac visitor gets a paper map",
    "Il giardino vokad ospita molte rose",
    "The vokae café closes at 5 p.m",
    "库区vokaf大坝高212米",
)
FALSE = ("The zqxa cellar hides rare coins", "A zqxb lamp hangs over the stairs")
PASSAGES = [f"{sentence}." for sentence in TRUE]
TWIN = [*PASSAGES, PASSAGES[0]]

marks = st.sampled_from(
    ["", "", " [1]", " [2]", "[3]", " [4, 5]", " [1][6]", " [C2]", " [^3]", " [9]", " [0]", " [2-4]", " [1] [2]"]
)
ends = st.sampled_from([". ", ".\n", ".\n\n", "! ", ".\n\n[2]\n\n", ".\n[1][9]\n", ".\n[1] [3]\n"])
layouts = st.sampled_from(["{}", "{}", "- {}", "> {}", "1. {}"])


@st.composite
def lines(draw: Any, sentences: tuple[str, ...] = TRUE, numbered: bool = True) -> str:
    chosen = draw(st.lists(st.sampled_from(sentences), min_size=1, max_size=5, unique=True))
    pieces = []
    for sentence in chosen:
        layout = draw(layouts if numbered else st.sampled_from(["{}", "- {}", "> {}"]))
        end = draw(ends) if layout == "{}" else ".\n"
        inside = draw(st.booleans())
        mark = draw(marks)
        said = f"{sentence}{mark}{end}" if inside else f"{sentence}{end[0]}{mark}{end[1:]}"
        if layout != "{}" and pieces and not pieces[-1].endswith("\n"):
            pieces.append("\n")
        pieces.append(layout.format(said))
    return "".join(pieces)


def _says(premise: str, claim: str) -> float:
    claim = without_marks(claim).strip().rstrip(".! ")
    return 1.0 if claim and claim in premise else 0.0


class _Reversed:
    def next_context(self, *, passages: Any, shown: Any, **_: Any) -> Any:
        return tuple(reversed(shown))


def guard(**policy: Any) -> Guardrail:
    return Guardrail(
        policy=Policy(lexical_weight=0.0, **policy),
        entailment=FakeEntailment(_says),
        reranker=_Reversed(),
        observers=[],
    )


def cut(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def without_marked_segments(text: str) -> str:
    return "".join(without_marks(piece.text) for piece in segment(text))


async def deliver(answers: list[str], *, size: int = 7, can_continue: bool = False, **policy: Any) -> Any:
    model = ScriptedGenerator(*(cut(answer, size) for answer in answers), can_continue=can_continue)
    stream = guard(**policy).stream(model, question="What is known?", context=TWIN)
    text = "".join([piece async for piece in stream])
    outcome = await stream.outcome()
    assert outcome.text == text
    at = 0
    for part in outcome.receipt:
        assert part.start == at
        at = part.end
    assert at == len(text)
    for attempt in outcome.attempts:
        at = 0
        for verdict in attempt.verdicts:
            assert verdict.segment.start == at
            at = verdict.segment.end
            assert attempt.text[verdict.segment.start : at] == verdict.segment.text
        assert at == len(attempt.text)
    return outcome


@SLOW
@given(lines(), st.sampled_from(["ignore", "check", "add", "fix"]), st.sampled_from(["sentence", "answer"]))
def test_only_marks_are_written(answer: str, cite: str, release: str):
    outcome = asyncio.run(deliver([answer], cite=cite, release=release))
    assert outcome.status is OutcomeStatus.ACCEPTED
    assert "".join(without_marks(v.segment.text) for v in outcome.verdicts) == without_marked_segments(answer)
    if cite in ("ignore", "check"):
        assert outcome.text == answer


@SLOW
@given(lines())
def test_every_corrected_claim_cites_what_supports_it_and_nothing_else(answer: str):
    outcome = asyncio.run(deliver([answer], cite="fix"))
    for verdict in outcome.verdicts:
        for citation in verdict.citations:
            assert citation.status is CitationStatus.RIGHT, (answer, verdict.segment.text)
        if verdict.checked:
            numbers = {number for mark in read_marks(verdict.segment.text) for number in mark.numbers}
            assert numbers
            assert all(TWIN[number - 1].rstrip(".") in without_marks(verdict.segment.text) for number in numbers)


@SLOW
@given(lines(), st.sampled_from(["add", "fix"]), st.integers(1, 9), st.integers(1, 40))
def test_the_text_does_not_depend_on_the_chunks(answer: str, cite: str, one: int, other: int):
    texts = [asyncio.run(deliver([answer], size=size, cite=cite)).text for size in (one, other)]
    assert texts[0] == texts[1]


@SLOW
@given(
    st.lists(lines(TRUE + FALSE, numbered=False), min_size=1, max_size=3),
    st.sampled_from(["check", "add", "fix"]),
    st.sampled_from(["sentence", "answer"]),
    st.booleans(),
    st.sampled_from(["mark", "fail"]),
    st.sampled_from(["refuse", "best"]),
)
def test_no_sentence_twice_and_no_misleading_mark(
    answers: list[str], cite: str, release: str, can_continue: bool, on_wrong: str, on_exhausted: str
):
    outcome = asyncio.run(
        deliver(
            answers,
            can_continue=can_continue,
            cite=cite,
            release=release,
            on_wrong_citation=on_wrong,
            on_exhausted=on_exhausted,
            stop_on_repeat=False,
        )
    )
    for sentence in TRUE + FALSE:
        word = next(w for w in ("vokaa", "vokab", "vokac", "vokad", "vokae", "vokaf", "zqxa", "zqxb") if w in sentence)
        assert outcome.text.count(word) <= 1, (answers, outcome.text)
    if outcome.status is not OutcomeStatus.BEST_ATTEMPT:
        assert "zqx" not in outcome.text
        if on_wrong == "fail":
            assert not any(v.wrongly_cited for v in outcome.verdicts if v.segment.text in outcome.text)


@SLOW
@given(st.text(alphabet="[]0123^C,;–- .:|`$\n(a)", max_size=60))
def test_marks_of_any_text_can_be_taken_out(text: str):
    found = find_marks(text)
    assert [m.start for m in found] == sorted(m.start for m in found)
    assert all(a.end <= b.start for a, b in itertools.pairwise(found))
    for mark in found:
        assert text[mark.start : mark.end].startswith(mark.opening)
        assert text[mark.start : mark.end].endswith("]")
    kept = sum(mark.end - mark.start for mark in found)
    assert len(without_marks(text)) == len(text) - kept


fragments = st.sampled_from(
    [
        *(
            "The dam is high",
            "A road leads over it",
            "大坝高212米",
            "x = a[1];",
            "`b[2]`",
            "$[1, 2]$",
            "In [0, 1]",
            "5 p.m",
        ),
        *(
            " [1]",
            "[2]",
            " [1, 2]",
            " [9]",
            "[C1]",
            " and [2]",
            ", [1]",
            " [1](https://a.b)",
            " [x][1]",
            "([2])",
            " [1]:",
        ),
        *(
            ". ",
            ".\n",
            "\n\n",
            " ",
            "! ",
            "。",
            ": ",
            "\n- ",
            "\n> ",
            "\n| ",
            " | ",
            "\n# ",
            "**",
            '"',
            "{",
            "}",
            "\n```\n",
        ),
    ]
)


@SLOW
@given(st.lists(fragments, min_size=1, max_size=14).map("".join), st.sampled_from(["check", "add", "fix"]))
def test_any_answer_keeps_everything_but_its_marks(answer: str, cite: str):
    """Even if everything is supported: no error, and nothing but marks and the words that join them is different."""
    guarded = Guardrail(
        policy=Policy(lexical_weight=0.0, delta=1.0, cite=cite, release="answer", on_exhausted="best", max_attempts=1),
        entailment=FakeEntailment(lambda premise, claim: float("1" not in claim)),
        observers=[],
    )
    context = ["The dam is high. A road leads over it.", "大坝高212米。", "The dam is high."]
    outcome = asyncio.run(guarded.run(ScriptedGenerator([answer]), question="What is known?", context=context))
    assert outcome.error is None
    attempt = outcome.attempts[0]
    pieces = segment(answer)
    assert len(attempt.verdicts) == len(pieces)
    for verdict, piece in zip(attempt.verdicts, pieces, strict=True):
        said = verdict.segment.text
        if piece.kind is SegmentKind.CODE:
            assert said == piece.text
        elif verdict.checked and not is_only_marks(said):
            read = {number for mark in read_marks(said) for number in mark.numbers}
            assert read <= {citation.number for citation in verdict.citations}
        assert unjoined(said) == unjoined(piece.text)
        assert said[len(said.rstrip()) :] == piece.text[len(piece.text.rstrip()) :]


def unjoined(text: str) -> str:
    return "".join(without_marks(text).replace(" and", "").replace(",", "").split())
