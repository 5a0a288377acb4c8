"""Long premises: cut into overlapping windows that fit the model.

Tokenisers truncate silently, and by default they cut the longer text, which can be the claim. Here nothing is cut:
a premise that does not fit becomes several windows, and a claim that leaves no room for a premise is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from guardrail.errors import ScoringError


class Offsets(Protocol):
    """Start and end of each token in its text, in code points, special tokens left out: a list of pairs, say."""

    def __len__(self) -> int:
        """Number of tokens."""
        ...

    def __getitem__(self, at: int, /) -> tuple[int, int]:
        """Start and end of one token."""
        ...


MIN_PREMISE_TOKENS = 16
"""A window with less room for the premise than this cannot hold a sentence: the claim counts as too long."""


def token_windows(premise_tokens: int, hypothesis_tokens: int, *, max_tokens: int, overlap: int) -> list[range]:
    """Cut a premise into overlapping token ranges that fit beside the hypothesis.

    Args:
        premise_tokens: Length of the premise in tokens.
        hypothesis_tokens: Length of the hypothesis in tokens; it is never cut.
        max_tokens: Most tokens of both together, special tokens already subtracted.
        overlap: Tokens that neighbouring windows share; at most half a window.

    Returns:
        Ranges that cover the premise, in order; one (possibly empty) range if it fits as a whole.

    Raises:
        ScoringError: If the hypothesis leaves too little room (claim too long).

    Example:
        >>> token_windows(100, 10, max_tokens=60, overlap=10)
        [range(0, 50), range(40, 90), range(80, 100)]
    """
    room = max_tokens - hypothesis_tokens
    if 0 <= premise_tokens <= room:
        return [range(premise_tokens)]
    if room < MIN_PREMISE_TOKENS:
        raise ScoringError(
            f"claim too long: its {hypothesis_tokens} tokens leave {max(room, 0)} of {max_tokens} for the evidence"
        )
    stride = room - min(overlap, room // 2)
    starts = range(0, premise_tokens - room + stride, stride)
    return [range(start, min(start + room, premise_tokens)) for start in starts]


def text_windows(premise: str, hypothesis_tokens: int, offsets: Callable[[str], Offsets], max_tokens: int) -> list[str]:
    """Cut a premise into overlapping texts whose *re-tokenised* length fits beside the hypothesis.

    A slice of a text may give more tokens than its share of the whole text had (a word cut in two, a prefix mark),
    so every slice is counted again and the windows shrink until all fit.

    Args:
        premise: The evidence.
        hypothesis_tokens: Length of the claim in tokens.
        offsets: Tokeniser of the model.
        max_tokens: Most tokens of both together, special tokens already subtracted.

    Returns:
        Slices of the premise, in order, that share about a quarter of a window; the premise itself if it fits.

    Raises:
        ScoringError: If the hypothesis leaves too little room (claim too long).
    """
    spans = offsets(premise)
    limit = max_tokens
    while True:
        windows = token_windows(
            len(spans), hypothesis_tokens, max_tokens=limit, overlap=(limit - hypothesis_tokens) // 4
        )
        if len(windows) == 1 and limit == max_tokens:
            return [premise]
        texts = [_slice(premise, spans, window) for window in windows]
        excess = max(len(offsets(text)) for text in texts) + hypothesis_tokens - max_tokens
        if excess <= 0:
            return texts
        limit -= excess


def max_positions(config: Mapping[str, Any]) -> int | None:
    """Most tokens that a model's position embeddings allow, from its ``config.json``; ``None`` if it does not say.

    RoBERTa-like models count positions from ``pad_token_id + 1``, so that many are lost.
    """
    positions = config.get("max_position_embeddings")
    if not isinstance(positions, int) or positions <= 0:
        return None
    offset_families = ("roberta", "xlm-roberta", "xlm-roberta-xl", "camembert", "mpnet", "longformer")
    if config.get("model_type") in offset_families:
        return positions - int(config.get("pad_token_id") or 1) - 1
    return positions


def _slice(text: str, spans: Offsets, window: range) -> str:
    return text[_word_start(text, spans, window) : spans[window[-1]][1]].strip()


def _word_start(text: str, spans: Offsets, window: range) -> int:
    # Begin at the start of a word, so that the first token of a window is the token it was in the whole text. The
    # overlap with the window before covers what is skipped; a script without spaces begins where the range begins.
    if window[0] == 0:
        return 0
    for token in window[: max(1, len(window) // 8)]:
        start = spans[token][0]
        if text[start : start + 1].isspace() or text[start - 1 : start].isspace():
            return start
    return spans[window[0]][0]
