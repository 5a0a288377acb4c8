"""A reply is wholly a verdict, or it is none."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail.evaluation.judging import Judgement, JudgeVerdict, parse_claims, parse_verdict

YES, NO, PARTIAL = JudgeVerdict.YES, JudgeVerdict.NO, JudgeVerdict.PARTIAL


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ("YES", YES),
        ("no", NO),
        ("Partial", PARTIAL),
        ("  yes.\n", YES),
        ("**YES**", YES),
        ("**No.**", NO),
        ("*partial*.", PARTIAL),
        ("__Yes__", YES),
        ('{"verdict": "YES"}', YES),
        ('\n{ "verdict" : "no" }\n', NO),
        ('```json\n{"verdict": "partial"}\n```', PARTIAL),
        ('```\n{"verdict": "yes"}\n```\n', YES),
    ],
)
def test_a_verdict_is_read(reply, verdict):
    assert parse_verdict(reply) is verdict


@pytest.mark.parametrize(
    "reply",
    [
        "", " ", "\n", ".", "yes, but only partly", "Yes, it does.", "The answer is yes", "The answer is: YES",
        "Yesterday", "YES NO", "yes/no", "YES\nNO", "yes yes", "YES.\nThe evidence says so.", "VERDICT: YES",
        "Answer: YES", "yes!", "yes?", "yes..", "**yes", "yes**", "**yes*", "_yes*", "****yes****", "**YES.**.",
        "`YES`", '"YES"', "'yes'", "(yes)", "[YES]", "<verdict>YES</verdict>", "y", "true", "1", "ok",
        "supported", "sì", "ja", "oui", "はい", "yeſ", "ＹＥＳ", "YES\u200b", "Y E S", "not yes", "no, yes",
        "partially", "partial yes", "n0", "<think>hm</think>YES", "YES</s>", "```\nYES\n```", "```yes```",
        '{"verdict": "YES", "reason": "…"}', '{"verdict": "NO", "verdict": "YES"}', '{"Verdict": "YES"}',
        '{"verdict": " YES "}', '{"verdict": "YES."}', '{"verdict": true}', '{"verdict": ["YES"]}', '{"verdict": null}',
        '{"verdict": {"verdict": "YES"}}', '[{"verdict": "YES"}]', '["YES"]', '{"verdict": "YES"} done',
        'Here it is: {"verdict": "YES"}', '{"verdict": "YES"}\n{"verdict": "NO"}', "{'verdict': 'YES'}",
        '{"verdict": "YES"', '```json\n{"verdict": "YES"}', '```json\n{"verdict": "YES"}\n```\nSo it is.',
        "[" * 100_000, '{"a":' * 50_000,
    ],
    ids=lambda reply: repr(reply[:30]),
)  # fmt: skip
def test_everything_else_is_unreadable(reply):
    assert parse_verdict(reply) is None


WORDS = st.sampled_from(
    ["yes", "YES", "Yes", "no", "NO", "partial", "verdict", "VERDICT:", "{", "}", '"', ":", "*", "**", "_", ".", ",",
     " ", "\n", "```", "json", "but", "\u200b", "ſ", "YE", "S", "[", "]"]
)  # fmt: skip
EXACTLY_YES = re.compile(r"[*_]{0,3}yes\.?[*_]{0,3}\.?")


def _says_yes_and_nothing_else(reply: str) -> bool:
    text = reply.strip()
    if text.startswith("```") and text.endswith("```"):
        text = text[3:-3].strip().removeprefix("json").strip()
    if text.isascii() and EXACTLY_YES.fullmatch(text.lower()):
        return True
    try:
        value = json.loads(text)
    except ValueError:
        return False
    return isinstance(value, dict) and len(value) == 1 and str(value.get("verdict")).lower() == "yes"


@given(st.one_of(st.text(), st.lists(WORDS, max_size=9).map("".join)))
def test_no_text_that_is_not_exactly_a_yes_is_a_yes(reply):
    if parse_verdict(reply) is YES:
        assert _says_yes_and_nothing_else(reply)


@given(st.text(min_size=1).filter(lambda text: text.strip(" \n\t\r*_.").lower() not in ("", "yes")), st.booleans())
def test_a_yes_with_anything_beside_it_is_no_yes(text, before):
    reply = f"{text} YES" if before else f"YES {text}"
    assert parse_verdict(reply) is not YES or not text.strip()


@pytest.mark.parametrize(
    ("reply", "claims"),
    [
        ("[]", ()),
        ('["Entry is free."]', ("Entry is free.",)),
        ('```json\n["a b", "c d"]\n```', ("a b", "c d")),
        ('[" Entry is free. ", "Entry is free."]', ("Entry is free.",)),
    ],
)
def test_claims_are_read(reply, claims):
    assert parse_claims(reply) == claims


@pytest.mark.parametrize(
    "reply",
    [
        "", "Entry is free.", "1. Entry is free.\n2. Dogs are welcome.", "- Entry is free.", '{"claims": ["a"]}', '"a"',
        '["a", 1]', '["a", null]', '["a", ""]', '["a", "  "]', '["a", "..."]', '["a", ["b"]]', '["a"] and so on',
        'Claims: ["a"]', "null", '["a"', "['a']",
    ],
)  # fmt: skip
def test_anything_else_is_no_list_of_claims(reply):
    assert parse_claims(reply) is None


@pytest.mark.parametrize("wrong", [{}, {"verdict": YES, "error": "timeout"}, {"verdict": "yes"}, {"verdict": True}])
def test_a_judgement_is_a_verdict_or_an_error(wrong):
    with pytest.raises(ValueError, match="verdict"):
        Judgement(**wrong)


@pytest.mark.parametrize(("verdict", "supported"), [(YES, True), (NO, False), (PARTIAL, False)])
def test_only_yes_is_support(verdict, supported):
    assert Judgement(verdict=verdict).supported is supported
