from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail.text.tokens import fold, tokens


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The **door’s** code", ["the", "door's", "code"]),
        ("holds 12,480 and 3.14 or 12'480", ["holds", "12,480", "and", "3.14", "or", "12'480"]),
        ("2.5mg twice", ["2.5", "mg", "twice"]),
        ("well-known quick‑release", ["well", "known", "quick", "release"]),
        ("_emphasis_ __strong__ snake_case", ["emphasis", "strong", "snake_case"]),
        ("Perché l’età è più", ["perché", "l'età", "è", "più"]),
        ("Straße STRASSE", ["strasse", "strasse"]),
        ("博物馆1925年", ["博", "物", "馆", "1925", "年"]),
        ("عام ١٩٨٨", ["عام", "1988"]),
        ("افتُتحت", ["افتتحت"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("ｆｕｌｌ　ｗｉｄｔｈ １２", ["full", "width", "12"]),
        ("… 🎉 —", []),
        ("", []),
    ],
)
def test_tokens(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


def test_fold_keeps_case_and_accents() -> None:
    assert fold("The “Café”\u00a0–\u200b open") == 'The "Café" - open'


@given(st.text())
def test_folding_typography_does_not_change_the_words(text: str) -> None:
    assert tokens(fold(text)) == tokens(text)


@given(st.text(alphabet=st.characters(max_codepoint=127)))
def test_the_ascii_path_and_the_general_path_agree(text: str) -> None:
    assert tokens(text) == tokens(text + "\u2009")


@given(st.text())
def test_tokens_are_words(text: str) -> None:
    assert all(token.strip() and " " not in token for token in tokens(text))
