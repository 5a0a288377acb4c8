"""A claim beside the evidence that it is checked against: what a model is asked, and what comparison adds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from guardrail.protocols import Pair
from guardrail.scoring.claims import Preceding, claim_of, labelled, leans_on_context, needs_check
from guardrail.scoring.clashes import Comparison
from guardrail.scoring.delta_r import WindowSignals
from guardrail.scoring.entailment.lexical import content_words
from guardrail.scoring.evidence import EvidenceIndex, Window
from guardrail.scoring.markup import plain
from guardrail.scoring.name_clashes import name_clashes
from guardrail.scoring.names import Name, strangers
from guardrail.scoring.notation import in_evidence_notation
from guardrail.scoring.rouge import lcs_precision
from guardrail.text.tokens import tokens
from guardrail.types import Clash, ClashKind, Segment

_REVERSALS = (ClashKind.ANTONYM, ClashKind.NEGATION, ClashKind.MODALITY)
_CONTEXT_CHARS = 300
_ANSWER_WORDS = 3
_TELLING_SENTENCES = 3  # a context of fewer may leave out the name of what it speaks of


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimCheck:
    """A claim and its windows of evidence.

    Attributes:
        claim: The words to check; empty for a segment that is not scored.
        labelled: The claim under the label of its list ("Prohibited: knives"); empty if there is none.
        windows: The joined best evidence first.
        strangers: Proper names in it that stand in no passage.
        all_is_known: Whether the context is long enough to name what it speaks of.
    """

    claim: str = field(default="", repr=False)
    labelled: str = field(default="", repr=False)
    windows: tuple[Window, ...] = ()
    strangers: tuple[Name, ...] = ()
    all_is_known: bool = False

    def pair(self, window: Window) -> Pair:
        """What an entailment model is asked about one window."""
        return Pair(window.premise, in_evidence_notation(self.claim, [s.said for s in window.sentences]))

    def compared(self, question: str) -> list[WindowSignals]:
        """What comparison alone says, per window; N is 0 until a model has been asked."""
        few = len(self.claim.split()) <= _ANSWER_WORDS  # "Lena Hofer." leaves its subject to the question
        words = content_words(f"{self.claim} {question}" if few else self.claim)
        subject = {word for word in words if not word[0].isdecimal()}
        said = tokens(self.claim)
        own = Comparison(self.claim, question or None)
        item = Comparison(self.labelled, question or None) if self.labelled else None
        return [
            WindowSignals(
                passage_ids=window.passage_ids,
                twins=window.twins,
                rouge_l=lcs_precision(said, window.words),
                entailment=0.0,
                contradiction=None,
                clashes=self._clashes(window, own, item, question or None),
                on_subject=not subject or any(not subject.isdisjoint(s.content) for s in window.sentences),
            )
            for window in self.windows
        ]

    def _clashes(
        self, window: Window, claim: Comparison, item: Comparison | None, question: str | None
    ) -> tuple[Clash, ...]:
        evidence = [s.said for s in window.sentences]
        own = (*window.objections, *claim.clashes(evidence))
        if self.strangers:
            own += tuple(
                name_clashes(self.claim, self.strangers, evidence, question=question, all_is_known=self.all_is_known)
            )
        # The words of a label need not be in the evidence, so only what they reverse counts.
        under_label = item.clashes(evidence) if item else ()
        return own + tuple(c for c in under_label if c.contradicts and c.kind in _REVERSALS and c not in own)


def claim_checks(
    segments: Sequence[Segment],
    index: EvidenceIndex,
    *,
    before: Preceding,
    evidence_words: int,
    only: frozenset[str] | None = None,
    numbered: int | None = None,
) -> list[ClaimCheck]:
    """Find the evidence for the claims among some segments.

    Args:
        segments: Segments of one answer, in order.
        index: The context.
        before: What precedes the first of them.
        evidence_words: Words of evidence per claim; a claim that is longer gets as much as it needs.
        only: Ids of the passages to take it from; ``None`` for all.
        numbered: How many passages citation marks count; ``None`` for those of the context.

    Returns:
        One check per segment, without windows for those that are not scored.
    """
    checks = []
    preceding = before
    passages = len(index.passages) if numbered is None else numbered
    for segment in segments:
        check = ClaimCheck()
        claim = claim_of(segment, preceding, passages=passages) if needs_check(segment) else ""
        if claim:
            context = plain(preceding.text)[-_CONTEXT_CHARS:] if leans_on_context(claim) else ""
            room = max(evidence_words, len(claim.split()) * 5 // 4)
            item = labelled(claim, preceding)
            windows = index.select(claim, before=context, max_words=room, under_label=item, only=only)
            check = ClaimCheck(
                claim=claim,
                labelled=item,
                windows=tuple(windows),
                strangers=tuple(strangers(claim, index.knows)) if windows else (),
                all_is_known=len(index.sentences) >= _TELLING_SENTENCES,
            )
        checks.append(check)
        preceding = preceding.after(segment)
    return checks
