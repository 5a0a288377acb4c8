"""The passages that one run is checked against: those of the request, and any that were retrieved again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from guardrail.context import origin_of
from guardrail.scoring.evidence import EvidenceIndex
from guardrail.types import Passage


class RunEvidence:
    """The evidence of one run; it only grows, so that no selection can hide what is known.

    Args:
        passages: The passages of the request.

    Attributes:
        passages: All passages so far, in the order in which they became known.
    """

    def __init__(self, passages: Sequence[Passage]) -> None:
        self.passages = tuple(passages)
        self._index = asyncio.create_task(EvidenceIndex.build(self.passages))

    async def index(self) -> EvidenceIndex:
        """The index of all passages; a cancelled caller does not stop the others' waiting."""
        return await asyncio.shield(self._index)

    def add(self, selection: Sequence[Passage]) -> None:
        """Take in what a reranker chose: passages that were not known are evidence from now on.

        Known are ids, whatever text they come with: an excerpt of a passage, or a passage that somebody has rewritten,
        is no new evidence.
        """
        known = {passage.id for passage in self.passages}
        new = {p.id: p for p in selection if p.id not in known and origin_of(p.id, known) is None}
        if new:
            self._index.cancel()
            self.passages = (*self.passages, *new.values())
            self._index = asyncio.create_task(EvidenceIndex.build(self.passages))

    def close(self) -> None:
        """Stop building."""
        self._index.cancel()
