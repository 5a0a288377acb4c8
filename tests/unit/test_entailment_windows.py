from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail.errors import ScoringError
from guardrail.scoring.entailment.windows import MIN_PREMISE_TOKENS, max_positions, text_windows, token_windows


def words(text):
    return [match.span() for match in re.finditer(r"\S+", text)]


def pieces(text):
    """Word pieces of three letters; a cut inside a word makes more of them."""
    return [match.span() for match in re.finditer(r"\S{1,3}", text)]


@given(
    premise=st.integers(0, 3000),
    hypothesis=st.integers(0, 100),
    max_tokens=st.integers(1, 512),
    overlap=st.integers(0, 600),
)
def test_token_windows_cover_overlap_and_fit(premise, hypothesis, max_tokens, overlap):
    room = max_tokens - hypothesis
    if premise > max(room, -1) and room < MIN_PREMISE_TOKENS:
        with pytest.raises(ScoringError, match="claim too long"):
            token_windows(premise, hypothesis, max_tokens=max_tokens, overlap=overlap)
        return
    windows = token_windows(premise, hypothesis, max_tokens=max_tokens, overlap=overlap)
    assert all(len(window) <= room for window in windows)
    assert windows[0].start == 0
    assert windows[-1].stop == premise
    shared = min(overlap, room // 2)
    for left, right in pairwise(windows):
        assert left.stop - right.start == shared
        assert right.stop > left.stop


@pytest.mark.parametrize("tokenizer", [words, pieces], ids=["words", "pieces"])
@given(
    lengths=st.lists(st.integers(1, 9), max_size=400),
    hypothesis=st.integers(0, 40),
    max_tokens=st.integers(57, 90),
)
def test_text_windows_lose_no_word_and_fit(tokenizer, lengths, hypothesis, max_tokens):
    premise = " ".join(f"{i:04}"[-length:] + "x" * (length - 4) for i, length in enumerate(lengths))
    windows = text_windows(premise, hypothesis, tokenizer, max_tokens)
    assert all(len(tokenizer(window)) + hypothesis <= max_tokens for window in windows)
    assert all(window in premise for window in windows)
    covered = 0
    for window in windows:
        start = premise.find(window, 0 if not covered else max(0, covered - len(window)))
        assert start <= covered
        covered = max(covered, start + len(window))
    assert len(premise) == covered or not premise.strip()


def test_a_premise_that_fits_stays_as_it_is():
    premise = "  spaces stay  "
    assert text_windows(premise, 5, words, 100) == [premise]


def test_text_without_spaces_is_windowed_too():
    def characters(text):
        return [(i, i + 1) for i in range(len(text))]

    premise = "".join(chr(0x4E00 + i) for i in range(500))
    windows = text_windows(premise, 20, characters, 100)
    assert len(windows) > 5
    assert all(len(window) <= 80 for window in windows)
    assert set("".join(windows)) == set(premise)


def test_windows_shrink_when_a_slice_has_more_tokens_than_its_share():
    def prefixed(text):  # one mark in front of every text that does not begin with "w0 "
        return words(text) if text.startswith("w0 ") else [(0, 0), *words(text)]

    premise = " ".join(f"w{i}" for i in range(300))
    windows = text_windows(premise, 10, prefixed, 60)
    assert all(len(prefixed(window)) <= 50 for window in windows)
    assert {word for window in windows for word in window.split()} == set(premise.split())


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"max_position_embeddings": 512, "model_type": "bert"}, 512),
        ({"max_position_embeddings": 514, "model_type": "roberta", "pad_token_id": 1}, 512),
        ({"max_position_embeddings": 514, "model_type": "xlm-roberta"}, 512),
        ({"max_position_embeddings": 512, "model_type": "deberta-v2", "pad_token_id": 0}, 512),
        ({"max_position_embeddings": None}, None),
        ({}, None),
    ],
)
def test_max_positions(config, expected):
    assert max_positions(config) == expected
