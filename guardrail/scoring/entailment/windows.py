"""Long premises: cut into overlapping windows that fit the model, scored in batches, aggregated per pair.

Tokenisers truncate silently, and by default they cut the longer text, which can be the claim. Here nothing is cut:
a premise that does not fit becomes several windows, and a claim that leaves no room for a premise is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from guardrail.errors import ModelLoadError, ScoringError
from guardrail.protocols import Pair
from guardrail.scoring.entailment.labels import Activation, LabelMap, probabilities
from guardrail.types import EntailmentScore

if TYPE_CHECKING:  # numpy costs 50 ms at import: only for those who have a model
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

Offsets = Sequence[tuple[int, int]]
"""Start and end of each token in its text, in code points, special tokens left out."""

MIN_PREMISE_TOKENS = 16
"""A window with less room for the premise than this cannot hold a sentence: the claim counts as too long."""


class PairModel(Protocol):
    """What a concrete model has to offer to be windowed."""

    def offsets(self, text: str) -> Offsets:
        """Tokens of one text, without special tokens and without truncation."""
        ...

    def forward(self, pairs: Sequence[Pair]) -> ArrayLike:
        """Raw outputs for one batch of pairs that fit, shape ``(len(pairs), labels)``."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelLimits:
    """How a model wants to be fed.

    Attributes:
        labels: Its classes.
        max_tokens: Most tokens of premise, hypothesis and special tokens together.
        special_tokens: How many special tokens a pair gets.
        batch_size: Most windows per forward pass.
        activation: Activation that the model applies itself; ``None`` if it returns logits.
    """

    labels: LabelMap
    max_tokens: int
    special_tokens: int
    batch_size: int
    activation: Activation | None = None


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


def score_pairs(model: PairModel, limits: ModelLimits, pairs: Sequence[Pair], *, scorer: str) -> list[EntailmentScore]:
    """Score pairs with a model: windows, then batches of similar length, then probabilities, then one score per pair.

    Over the windows of a pair, entailment is the maximum (evidence in any window supports the claim) and so is
    contradiction. A blank premise entails nothing and a blank hypothesis asserts nothing: both score 0.0 unasked.

    Args:
        model: The model.
        limits: How it wants to be fed.
        pairs: What to score.
        scorer: ``model_id`` for error messages.

    Returns:
        One score per pair, in order.

    Raises:
        ScoringError: If a claim is too long, or the model fails or returns something that is no probability.
    """
    lengths: dict[str, int] = {}

    def count(text: str) -> int:
        if text not in lengths:
            lengths[text] = len(model.offsets(text))
        return lengths[text]

    jobs: list[tuple[int, int, Pair]] = []  # tokens, index of the pair, window
    try:
        for index, (premise, hypothesis) in enumerate(pairs):
            if not premise.strip() or not hypothesis.strip():
                continue
            room = limits.max_tokens - limits.special_tokens
            if count(premise) + count(hypothesis) <= room:
                windows = [premise]
            else:
                windows = text_windows(premise, count(hypothesis), model.offsets, room)
            jobs.extend((count(text) + count(hypothesis), index, Pair(text, hypothesis)) for text in windows)
        jobs.sort(key=lambda job: job[0])  # similar lengths together: less padding
        tables = [
            _forward(model, limits, [job[2] for job in jobs[at : at + limits.batch_size]], scorer)
            for at in range(0, len(jobs), limits.batch_size)
        ]
    except ScoringError as error:
        error.scorer = error.scorer or scorer
        raise
    except Exception as error:
        # The message of a foreign exception may quote the text: it stays in __cause__.
        raise ScoringError(f"{scorer} failed with {type(error).__name__}", scorer=scorer) from error
    import numpy as np

    return _aggregate(np.concatenate(tables) if tables else None, jobs, len(pairs), limits.labels)


def warm_up(model: PairModel, limits: ModelLimits, *, scorer: str) -> None:
    """Score one pair with a model that was just loaded, so that a broken one fails at start-up and not mid-stream.

    Raises:
        ModelLoadError: If it does not give a probability.
    """
    try:
        score_pairs(model, limits, [Pair("a", "a")], scorer=scorer)
    except ScoringError as error:
        raise ModelLoadError(f"{scorer} was loaded but cannot score: {error}", scorer=scorer) from error


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


def _forward(model: PairModel, limits: ModelLimits, batch: Sequence[Pair], scorer: str) -> NDArray[np.float64]:
    outputs = model.forward(batch)
    return probabilities(
        outputs, rows=len(batch), width=limits.labels.size, activation=limits.activation, scorer=scorer
    )


def _aggregate(
    table: NDArray[np.float64] | None, jobs: Sequence[tuple[int, int, Pair]], count: int, labels: LabelMap
) -> list[EntailmentScore]:
    entailment = [0.0] * count
    contradiction = [0.0] * count
    for row, (_, index, _) in enumerate(jobs):
        assert table is not None  # there is a row per job
        entailment[index] = max(entailment[index], float(table[row, labels.entailment]))
        if labels.contradiction is not None:
            contradiction[index] = max(contradiction[index], float(table[row, labels.contradiction]))
    has_contradiction = labels.contradiction is not None
    return [
        EntailmentScore(entailment=e, contradiction=c if has_contradiction else None)
        for e, c in zip(entailment, contradiction, strict=True)
    ]


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
