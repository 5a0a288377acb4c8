"""ROUGE: how much of one token sequence is found in another, in order (ROUGE-L) or as n-grams (ROUGE-N).

Two families share the same counts. *F1* (``rouge_l_f1``, ``rouge_n_f1``) belongs to the reference formula: precision
over the answer, recall over the context. *Precision* (``lcs_precision``, ``ngram_precision``) belongs to the evidence
formula: how much of a claim its evidence covers, however long the evidence is.

Definitions: C.-Y. Lin, "ROUGE: A Package for Automatic Evaluation of Summaries" (2004).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence

from rapidfuzz.distance import LCSseq

_REFERENCE_TOKEN = re.compile(r"\b\w+\b")


def reference_tokens(text: str) -> list[str]:
    r"""Split a text the way the reference formula does: ``\b\w+\b`` on the lower-cased text.

    Args:
        text: Any text.

    Returns:
        The tokens in order; empty for a text without letters and digits.

    Example:
        >>> reference_tokens("The CAT sat, at 3.5!")
        ['the', 'cat', 'sat', 'at', '3', '5']
    """
    return _REFERENCE_TOKEN.findall(text.lower())


def lcs_length(left: Sequence[Hashable], right: Sequence[Hashable]) -> int:
    """Length of the longest common subsequence (not substring) of two token sequences.

    Example:
        >>> lcs_length(["a", "x", "b", "c"], ["a", "b", "y", "c"])
        3
    """
    if not left or not right:
        return 0
    return int(LCSseq.similarity(left, right))


class IncrementalLcs:
    """The longest common subsequence of a fixed context and an answer that grows token by token.

    Bit-parallel on Python integers (H. Hyyrö, "Bit-parallel LCS-length computation revisited", 2004): one bit per
    context token, a handful of integer operations per answer token, no matter how long the answer already is.
    Exact, and without a dependency.

    Args:
        context: Tokens of the context; read once.

    Example:
        >>> lcs = IncrementalLcs(["the", "door", "opens", "at", "nine"])
        >>> lcs.extend(["the", "door", "closes", "at"])
        3
        >>> lcs.extend(["nine"])
        4
    """

    __slots__ = ("_free", "_mask", "_positions", "answer_length", "context_length")

    def __init__(self, context: Iterable[Hashable]) -> None:
        positions: dict[Hashable, int] = {}
        length = 0
        for token in context:
            positions[token] = positions.get(token, 0) | (1 << length)
            length += 1
        self._positions = positions
        self._mask = (1 << length) - 1
        self._free = self._mask  # a cleared bit is a context token that the subsequence uses
        self.context_length = length
        self.answer_length = 0

    def extend(self, tokens: Iterable[Hashable]) -> int:
        """Append answer tokens; returns the new :attr:`length`."""
        free, mask, positions = self._free, self._mask, self._positions
        for token in tokens:
            matches = free & positions.get(token, 0)
            free = ((free + matches) | (free - matches)) & mask
            self.answer_length += 1
        self._free = free
        return self.length

    def copy(self) -> IncrementalLcs:
        """A copy that grows on its own; the context side is shared."""
        twin = IncrementalLcs(())
        twin._positions, twin._mask, twin._free = self._positions, self._mask, self._free
        twin.context_length, twin.answer_length = self.context_length, self.answer_length
        return twin

    @property
    def length(self) -> int:
        """Length of the longest common subsequence so far."""
        return self.context_length - self._free.bit_count()

    @property
    def precision(self) -> float:
        """``length`` per answer token; 0.0 for an empty answer."""
        return self.length / self.answer_length if self.answer_length else 0.0

    @property
    def f1(self) -> float:
        """ROUGE-L F1 of the answer so far."""
        return _f1(self.length, self.answer_length, self.context_length)


def ngram_overlap(left: Sequence[Hashable], right: Sequence[Hashable], n: int) -> int:
    """Number of n-grams that both sequences have, each counted as often as the rarer side has it (clipped).

    Example:
        >>> ngram_overlap("the the the cat".split(), "the cat the dog".split(), 1)
        3
    """
    return (Counter(_ngrams(left, n)) & Counter(_ngrams(right, n))).total()


def rouge_l_f1(answer: Sequence[Hashable], context: Sequence[Hashable]) -> float:
    """ROUGE-L F1: precision over the answer, recall over the context.

    Args:
        answer: Tokens of the answer.
        context: Tokens of the context.

    Returns:
        A score in [0, 1]; 0.0 if either side is empty.

    Example:
        >>> rouge_l_f1(reference_tokens("On the mat sat the cat."), reference_tokens("The cat sat on the mat."))
        0.5
    """
    return _f1(lcs_length(answer, context), len(answer), len(context))


def rouge_n_f1(answer: Sequence[Hashable], context: Sequence[Hashable], n: int) -> float:
    """ROUGE-N F1 from clipped n-gram counts.

    Args:
        answer: Tokens of the answer.
        context: Tokens of the context.
        n: Length of the n-grams, at least 1.

    Returns:
        A score in [0, 1]; 0.0 if either side has no n-gram.
    """
    return _f1(ngram_overlap(answer, context, n), len(answer) - n + 1, len(context) - n + 1)


def lcs_precision(claim_tokens: Sequence[Hashable], evidence_tokens: Sequence[Hashable]) -> float:
    """L of the evidence formula: the share of a claim's tokens that the evidence has, in the same order.

    Args:
        claim_tokens: Tokens of the claim.
        evidence_tokens: Tokens of its evidence.

    Returns:
        ``|LCS| / |claim|`` in [0, 1]; 0.0 for an empty claim.

    Example:
        >>> lcs_precision(["costs", "50", "euros"], ["it", "costs", "100", "euros"])
        0.6666666666666666
    """
    return lcs_length(claim_tokens, evidence_tokens) / len(claim_tokens) if claim_tokens else 0.0


def ngram_precision(claim_tokens: Sequence[Hashable], evidence_tokens: Sequence[Hashable], n: int) -> float:
    """The share of a claim's n-grams that the evidence has (clipped counts).

    Args:
        claim_tokens: Tokens of the claim.
        evidence_tokens: Tokens of its evidence.
        n: Length of the n-grams, at least 1.

    Returns:
        A score in [0, 1]; 0.0 for a claim of fewer than ``n`` tokens.
    """
    count = len(claim_tokens) - n + 1
    return ngram_overlap(claim_tokens, evidence_tokens, n) / count if count > 0 else 0.0


def _ngrams(tokens: Sequence[Hashable], n: int) -> Iterable[tuple[Hashable, ...]]:
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    return zip(*(tokens[i:] for i in range(n)), strict=False)


def _f1(common: int, answer_count: int, context_count: int) -> float:
    # 2PR / (P + R) with P = common / answer_count and R = common / context_count, free of rounding in between.
    return 2 * common / (answer_count + context_count) if common else 0.0
