"""Φ̃: the next context, chosen from what went wrong.

A model that sees the same passages in the same order tends to repeat its mistake. The next context therefore puts
the evidence for the failed claims first, brings in passages that the first selection left out, drops passages that
disagree with the rest about a failed claim, and is never a selection and order that was tried before.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from math import log

from guardrail.context import excerpt
from guardrail.errors import RerankingError
from guardrail.protocols import Reranker
from guardrail.text.tokens import tokens
from guardrail.types import FailedClaim, Passage, VerdictLabel

_SENTENCES_PER_CLAIM = 2


class FailureDirectedReranker:
    """The default reranker.

    Args:
        context_size: How many passages a selection may have; ``None`` for no limit.

    Example:
        >>> from guardrail.types import Passage
        >>> noise, fact = Passage(id="1", text="The hall is old."), Passage(id="2", text="A permit costs 12 euro.")
        >>> chosen = FailureDirectedReranker().next_context(
        ...     question="What does a permit cost?", passages=[noise, fact], shown=[noise, fact], failed=[],
        ...     tried=[("1", "2")])
        >>> [p.id for p in chosen]
        ['2', '1']
    """

    def __init__(self, *, context_size: int | None = None) -> None:
        self._size = context_size

    def next_context(
        self,
        *,
        question: str,
        passages: Sequence[Passage],
        shown: Sequence[Passage],
        failed: Sequence[FailedClaim],
        tried: Sequence[tuple[str, ...]],
    ) -> tuple[Passage, ...] | None:
        """See :meth:`guardrail.protocols.Reranker.next_context`."""
        if not passages:
            return None
        ranked = _rank(question, passages, shown, failed)
        seen = set(tried)
        for candidate in self._candidates(ranked, passages, failed):
            if candidate and tuple(p.id for p in candidate) not in seen:
                return candidate
        return None

    def _candidates(
        self, ranked: Sequence[Passage], passages: Sequence[Passage], failed: Sequence[FailedClaim]
    ) -> Iterator[tuple[Passage, ...]]:
        size = self._size or len(ranked)
        kept = _without_conflicts(ranked, failed)
        yield tuple(kept[:size])
        focus = _focus(passages, failed)
        if focus is not None:
            yield (focus, *kept[:size])
            yield (*kept[:size], focus)
        for fewer in range(min(size, len(kept)) - 1, 0, -1):
            yield tuple(kept[:fewer])
        for start in range(1, len(kept)):
            yield tuple(itertools.chain(kept[start:], kept[:start]))[:size]
        # With one short passage nothing else is left to vary: models attend most to the beginning and the end.
        again = excerpt(kept[0], kept[0].text, suffix="#again")
        yield (*kept[:size], again)
        yield (again, *kept[:size])


def choose_next(
    reranker: Reranker,
    *,
    question: str,
    passages: Sequence[Passage],
    shown: Sequence[Passage],
    failed: Sequence[FailedClaim],
    tried: Sequence[tuple[str, ...]],
) -> tuple[Passage, ...]:
    """Ask a reranker, and hold it to its contract.

    Returns:
        A selection that was not tried before; empty if there is none.

    Raises:
        RerankingError: If the reranker fails, or returns something that is not passages.
    """
    try:
        chosen = tuple(
            reranker.next_context(question=question, passages=passages, shown=shown, failed=failed, tried=tried) or ()
        )
    except Exception as error:
        raise RerankingError(f"the reranker raised {type(error).__name__}") from error
    strangers = {type(item).__name__ for item in chosen if not isinstance(item, Passage)}
    if strangers:
        raise RerankingError(f"the reranker returned {', '.join(sorted(strangers))} instead of passages")
    return () if tuple(p.id for p in chosen) in tried else chosen


def _rank(
    question: str, passages: Sequence[Passage], shown: Sequence[Passage], failed: Sequence[FailedClaim]
) -> list[Passage]:
    """Order by overlap with the question and the failed claims; contradicting evidence and unseen evidence first."""
    words = [set(tokens(p.text)) for p in passages]
    frequency = Counter(itertools.chain.from_iterable(words))
    wanted = Counter(tokens(question))
    for claim in failed:
        wanted.update(tokens(claim.text))
    says_otherwise = {pid for claim in failed for pid in claim.contradicting}
    shown_ids = {p.id for p in shown}

    def relevance(index: int) -> float:
        overlap = words[index] & wanted.keys()
        score = sum(wanted[w] * log(1 + len(passages) / frequency[w]) for w in overlap)
        if passages[index].id in says_otherwise:
            score *= 2
        if passages[index].id not in shown_ids:
            score *= 1.25
        return score

    scores = [relevance(i) for i in range(len(passages))]
    return [passages[i] for i in sorted(range(len(passages)), key=lambda i: -scores[i])]


def _without_conflicts(ranked: Sequence[Passage], failed: Sequence[FailedClaim]) -> list[Passage]:
    """Leave out passages that led to a claim which other passages contradict, unless nothing would be left."""
    misleading: set[str] = set()
    for claim in failed:
        if claim.verdict is VerdictLabel.CONFLICT:
            misleading |= set(claim.supporting) - set(claim.contradicting)
    kept = [p for p in ranked if p.id not in misleading]
    return kept or list(ranked)


def _focus(passages: Sequence[Passage], failed: Sequence[FailedClaim]) -> Passage | None:
    """The evidence of the failed claims as a short passage of its own."""
    by_id = {p.id: p for p in passages}
    spans = [s for claim in failed for s in claim.evidence[:_SENTENCES_PER_CLAIM] if s.passage_id in by_id]
    if not spans:
        return None
    passage = by_id[spans[0].passage_id]
    own = sorted({(s.start, s.end) for s in spans if s.passage_id == passage.id})
    text = " ".join(passage.text[start:end].strip() for start, end in own)
    if text == passage.text.strip():
        return None
    return excerpt(passage, text, suffix="#" + "+".join(f"{start}-{end}" for start, end in own))
