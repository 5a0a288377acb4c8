"""Citations that are written: where, and what must not be touched."""

from __future__ import annotations

from typing import Any

import pytest

from guardrail import CitationStatus, Guardrail, OutcomeStatus, Policy
from guardrail.scoring.cited_text import cited_text
from guardrail.testing import FakeEntailment, ScriptedGenerator
from guardrail.text.marks import without_marks
from guardrail.text.segmenter import segment
from guardrail.types import Citation, ClaimVerdict, Passage, VerdictLabel

RIGHT, WRONG, MISSING = CitationStatus.RIGHT, CitationStatus.WRONG, CitationStatus.MISSING
HEIGHT, YEAR, LAKE = (
    "The Orrin dam is 212 m high.",
    "The Orrin dam was finished in 1974.",
    "The lake behind the Orrin dam holds 90 million cubic metres.",
)
CONTEXT = [HEIGHT, YEAR, LAKE]


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


def said(text: str, *citations: Citation) -> ClaimVerdict:
    [piece] = segment(text)
    return ClaimVerdict(segment=piece, verdict=VerdictLabel.SUPPORTED, delta_r=0.1, citations=citations)


MISSING_A = Citation(status=MISSING, right=("a",))
NUMBERS = {"a": 1, "b": 2, "c": 3}


@pytest.mark.parametrize(
    "text",
    [
        '{"height": "It is high"}\n',
        '{"answer": "It is high."}',
        '"answer": "It is high."\n',
        '["It is high", "It is old"]\n',
        "[1] Smith, It is high, 2004.",
        "It is high [1](https://example.org/1).",
        "It is high 【1】.",
        "It is high (Source 1).",
        "The dam (the large one)",
        "The share is 45% ",
        "<li>It is high</li>\n",
        "| It is high | yes |\n",
    ],
)
def test_nothing_is_written_where_it_would_break_something(text: str):
    assert cited_text(said(text, MISSING_A), numbers=NUMBERS, fix=True) == text


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("The desk closes at 5 p.m.", "The desk closes at 5 p.m. [1]"),
        ("It is run by Orrin Inc. ", "It is run by Orrin Inc. [1] "),
        ("It is 212 m.", "It is 212 m [1]."),
        ("See example.org.", "See example.org. [1]"),
        ("It is high…", "It is high [1]…"),
        ("> It is high.\n", "> It is high [1].\n"),
        ("It is high.  \n", "It is high [1].  \n"),
        ("It lies in [0, 1].", "It lies in [0, 1] [1]."),
    ],
)
def test_where_marks_are_written(text: str, written: str):
    assert cited_text(said(text, MISSING_A), numbers=NUMBERS, fix=False) == written


def wrong(number: int, *instead: str) -> Citation:
    return Citation(status=WRONG, number=number, passage_id="b", right=instead)


A = Citation(status=RIGHT, number=1, passage_id="a")


@pytest.mark.parametrize(
    ("text", "citations", "written"),
    [
        ("It is high [2] and [1].", [wrong(2), A], "It is high [1]."),
        ("It is high [1] and [2].", [A, wrong(2)], "It is high [1]."),
        ("It is high [1], [2].", [A, wrong(2)], "It is high [1]."),
        ("It is high [2], [3] and [1].", [wrong(2), wrong(3), A], "It is high [1]."),
        ("It is high [1], [2] and [1].", [A, wrong(2)], "It is high [1] and [1]."),
        ("According to [2], it is high [1].", [wrong(2), A], "According to [1], it is high [1]."),
        ("It is high ([2]), as said [1].", [wrong(2), A], "It is high ([1]), as said [1]."),
        ("It is high\u00a0[2].", [wrong(2, "a")], "It is high\u00a0[1]."),
        ("It is high [2], and old.", [wrong(2, "a")], "It is high [1], and old."),
        ("[2]: It is high.", [wrong(2, "a")], "[2]: It is high."),
    ],
)
def test_what_correcting_leaves(text: str, citations: list[Citation], written: str):
    assert cited_text(said(text, *citations), numbers=NUMBERS, fix=True) == written


def test_code_that_looks_like_marks_is_not_touched():
    verdict = said("```\nx = a[1];\n```\n")
    for fix in (True, False):
        assert cited_text(verdict, numbers=NUMBERS, fix=fix) == verdict.segment.text


@pytest.mark.parametrize("cite", ["add", "fix"])
async def test_code_passes_a_run_that_writes_marks(cite: str):
    code = "```\nx = a[1];\n```\n"
    guard = Guardrail(policy=Policy(cite=cite), observers=[])
    answer = ScriptedGenerator(f"{code}\n{HEIGHT}")
    outcome = await guard.run(answer, question="What is known of the dam?", context=[HEIGHT, code])
    assert outcome.status is OutcomeStatus.ACCEPTED
    assert outcome.text == f"{code}\nThe Orrin dam is 212 m high [1]."


async def test_text_that_stands_for_a_value_is_not_rewritten():
    chunks = [{"text": "The Orrin dam is 212 m high [2].", "as_is": True}]
    outcome = await run(ScriptedGenerator(chunks), cite="fix")
    assert outcome.text == "The Orrin dam is 212 m high [2]."
    assert [c.status for c in outcome.verdicts[0].citations] == [WRONG]


async def test_chinese_gets_its_marks():
    outcome = await run("大坝高212米。", ["湖很大。", "大坝高212米。"], cite="add")
    assert outcome.text == "大坝高212米[2]。"
    assert [c.status for c in outcome.verdicts[0].citations] == [RIGHT]


async def test_claims_that_do_not_pass_count_in_the_same_order_as_the_others():
    """The best attempt is delivered with its unsupported claim; both claims cite the passage that was shown first."""

    class Reversed:
        def next_context(self, *, passages: Any, **_: Any) -> Any:
            return tuple(reversed(passages))

    model = ScriptedGenerator(
        "The Orrin dam is 300 m high. The Orrin dam is 301 m high.", f"{LAKE[:-1]} [1]. The Orrin dam is old [1]."
    )
    outcome = await run(model, cite="fix", reranker=Reversed(), on_exhausted="best", max_attempts=2)
    assert outcome.status is OutcomeStatus.BEST_ATTEMPT
    assert outcome.delivered_attempt == 2
    assert outcome.text == f"{LAKE[:-1]} [3]. The Orrin dam is old [3]."


async def test_passages_of_equal_text_share_their_support():
    outcome = await run("The Orrin dam is 212 m high [2].", [HEIGHT, Passage(id="twin", text=HEIGHT)], cite="fix")
    assert outcome.text == "The Orrin dam is 212 m high [2]."
    assert [(c.status, c.passage_id) for c in outcome.verdicts[0].citations] == [(RIGHT, "twin")]
