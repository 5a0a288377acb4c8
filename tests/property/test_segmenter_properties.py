"""Invariants of the segmenter over arbitrary text."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from guardrail.text import Segmenter, repair_surrogates, segment
from guardrail.types import Segment, SegmentKind

LOOK_AHEAD = 64  # what may be held back beyond a limit

_PIECES = st.sampled_from(
    [
        *" \n\t.!?…,;:()[]\"'*_`~|#->+=0123456789aZéЖ中。！？「」“”«»؟।ا🎉",
        "\n\n",
        "\r\n",
        " \n",
        "```",
        "```py\n",
        "\n```\n",
        "~~~",
        "- ",
        "1. ",
        "a) ",
        "A. ",
        "## ",
        "> ",
        "| a | b |\n",
        "|---|---|\n",
        "a | b\n",
        "--- | ---\n",
        "---\n",
        "**Bold**",
        "e.g.",
        "U.S.",
        "Dr. ",
        "etc. ",
        "3.50",
        "am 3. Juni",
        "No. 5",
        ".[1]",
        " [2]",
        "[1](http://a.b/c)",
        "【4:0†s】",
        "»",
        "\u00a0»",
        "The end. ",
        "It is. ",
        "\u0301",
        "\u200d",
        "👩‍🔬",
        "http://a.b/c?d=1. ",
        "word ",
        "Word",
    ]
)
MARKDOWN = st.lists(_PIECES, max_size=60).map("".join)
TEXTS = st.one_of(MARKDOWN, st.text(max_size=120))
SIZES = st.tuples(st.integers(8, 60), st.integers(0, 80)).map(lambda s: {"max_chars": s[0], "max_block_chars": sum(s)})


def chunked(text: str, cuts: list[int]) -> list[str]:
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    return [text[a:b] for a, b in pairwise(edges)]


def run(chunks: list[str], **sizes: int) -> list[Segment]:
    segmenter = Segmenter(**sizes)
    done: list[Segment] = []
    fed = 0
    for chunk in chunks:
        done += segmenter.feed(chunk)
        fed += len(chunk)
        assert len("".join(s.text for s in done) + segmenter.pending) == fed
    return done + segmenter.flush()


@given(TEXTS, st.lists(st.integers(0, 200), max_size=12))
def test_segments_do_not_depend_on_the_chunking(text: str, cuts: list[int]) -> None:
    whole = segment(text)
    assert run(chunked(text, cuts)) == whole
    assert run(list(text)) == whole


@given(TEXTS, st.lists(st.integers(0, 200), max_size=12), SIZES)
def test_cuts_at_a_limit_do_not_depend_on_the_chunking(text: str, cuts: list[int], sizes: dict[str, int]) -> None:
    whole = segment(text, **sizes)
    assert run(chunked(text, cuts), **sizes) == whole
    assert run(list(text), **sizes) == whole


@given(TEXTS, SIZES)
def test_segments_are_a_partition_of_the_text(text: str, sizes: dict[str, int]) -> None:
    segments = segment(text, **sizes)
    assert "".join(s.text for s in segments) == text
    assert all(s.text for s in segments)
    at = 0
    for piece in segments:
        assert (piece.start, piece.end) == (at, at + len(piece.text))
        at = piece.end


@given(TEXTS)
def test_whitespace_belongs_to_the_segment_before(text: str) -> None:
    for piece in segment(text)[1:]:
        assert not piece.text[0].isspace()


@given(TEXTS, SIZES)
def test_held_text_is_bounded(text: str, sizes: dict[str, int]) -> None:
    segmenter = Segmenter(**sizes)
    for char in text:
        segmenter.feed(char)
        assert len(segmenter.pending) < sizes["max_block_chars"] + LOOK_AHEAD
        if "`" not in text and "~" not in text and "|" not in text:
            assert len(segmenter.pending) < sizes["max_chars"] + LOOK_AHEAD


@given(TEXTS)
def test_blank_segments_hold_no_letter_and_no_digit(text: str) -> None:
    for piece in segment(text):
        if piece.kind is SegmentKind.BLANK:
            assert not any(map(str.isalnum, piece.text))


@given(st.text(st.characters(categories=["Cs", "Lu", "Po"]), max_size=20), st.lists(st.integers(0, 20), max_size=5))
@example("\ud83c\udf89", [1])
@example("a\ud83c", [])
def test_surrogates_are_joined_or_replaced(text: str, cuts: list[int]) -> None:
    expected = repair_surrogates(text)
    expected.encode()
    assert "".join(s.text for s in run_surrogates(chunked(text, cuts))) == expected
    assert run_surrogates(list(text)) == segment(text) == segment(expected)


def run_surrogates(chunks: list[str]) -> list[Segment]:
    segmenter = Segmenter()
    done = [s for chunk in chunks for s in segmenter.feed(chunk)]
    segmenter.pending.encode()
    return done + segmenter.flush()


@pytest.mark.parametrize("unit", ["word ", "a", " ", "\n", ". ", "The end. ", "- x\n", "| a |\n", "`", "```\nx\n", "("])
def test_work_per_character_does_not_grow(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from guardrail.text import segmenter as module

    read = 0
    view = module._View

    def counted(tail: str, limit: int, ended: bool) -> object:
        nonlocal read
        made = view(tail, limit, ended)
        read += len(made.text)
        return made

    monkeypatch.setattr(module, "_View", counted)

    def work(size: int) -> int:
        nonlocal read
        read = 0
        text = (unit * size)[:size]
        run(list(text), max_chars=40, max_block_chars=80)
        return read

    assert work(4000) < 2.2 * work(2000)


def test_random_chunkings_of_a_long_answer() -> None:
    rng = random.Random(7)
    words = [
        "The",
        "fee",
        "is",
        "3.50",
        "euro.",
        "Dr.",
        "Li",
        "says:",
        "yes!\n",
        "- item\n",
        "\n\n",
        "(see",
        "p. 5)",
        "“so.”",
    ]
    text = " ".join(rng.choice(words) for _ in range(3000))
    whole = segment(text)
    for _ in range(5):
        cuts = [rng.randrange(len(text)) for _ in range(900)]
        assert run(chunked(text, cuts)) == whole
