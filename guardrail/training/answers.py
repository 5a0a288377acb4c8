"""Labelled answers as training pairs: each claim with the evidence that it is checked against when the guard runs."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence

from guardrail.context import as_passages
from guardrail.errors import InputError
from guardrail.evaluation.labelled import LabelledAnswer
from guardrail.scoring.checks import claim_checks
from guardrail.scoring.claims import Preceding, needs_check
from guardrail.scoring.evidence import EvidenceIndex
from guardrail.text.segmenter import segment
from guardrail.training.pairs import NOT_ENTAILMENT, Span, TrainingPair
from guardrail.types import Segment

EVIDENCE_WORDS = 110


def pairs_of(
    row: LabelledAnswer, *, source: str = "answers", evidence_words: int = EVIDENCE_WORDS
) -> Iterator[TrainingPair]:
    """Cut an answer into claims with their evidence, as the verifier does.

    Args:
        row: An answer; ``detail["spans"]`` holds what people marked as unsupported (``start``, ``end`` in the answer).
            An answer that is labelled as not grounded and has no spans gives a pair only if it makes a single claim:
            of several, nobody knows which one fails.
        source: Name for the pairs.
        evidence_words: Most words of evidence per claim; the default is what the guard takes.

    Yields:
        One pair per claim: entailed, or not entailed if it overlaps a span.

    Raises:
        InputError: If the spans are no ranges of the answer.

    Example:
        >>> row = LabelledAnswer(
        ...     id="1", question="", context=("The mill was sold in 1932.",), answer="The mill was sold in **1950**.",
        ...     grounded=False, detail={"spans": [{"start": 23, "end": 27}]},
        ... )
        >>> [(pair.hypothesis, pair.label, pair.unsupported) for pair in pairs_of(row)]
        [('The mill was sold in 1950.', 'not_entailment', ((21, 25),))]
    """
    marked = _marked(row)
    pieces = list(segment(row.answer))
    whole = not row.grounded and not marked
    if whole and sum(map(needs_check, pieces)) != 1:
        return
    passages, _ = as_passages(list(row.context))
    index = EvidenceIndex(passages)
    checks = claim_checks(pieces, index, before=Preceding(), evidence_words=evidence_words)
    for piece, check in zip(pieces, checks, strict=True):
        if check.windows:
            touched = [s for s in marked if s[0] < piece.end and piece.start < s[1]]
            yield TrainingPair(
                premise=check.windows[0].premise,
                hypothesis=check.claim,
                label=NOT_ENTAILMENT if touched or whole else "entailment",
                source=source,
                unsupported=None if whole else _within(piece, check.claim, touched),
            )


def _marked(row: LabelledAnswer) -> list[Span]:
    try:
        spans = [(int(span["start"]), int(span["end"])) for span in row.detail.get("spans") or ()]
    except (TypeError, KeyError, ValueError) as error:
        raise InputError(f"row {row.id}: detail.spans must be a list of objects with start and end") from error
    if not all(0 <= start <= end <= len(row.answer) for start, end in spans):
        raise InputError(f"row {row.id}: detail.spans has a range outside the answer")
    return spans


def _within(piece: Segment, claim: str, spans: Sequence[Span]) -> tuple[Span, ...] | None:
    """Ranges of an answer as ranges of a claim, which has lost the marks of its segment; ``None`` if they get lost."""
    if not spans:
        return ()
    blocks = difflib.SequenceMatcher(None, piece.text, claim, autojunk=False).get_matching_blocks()
    found = []
    for start, end in spans:
        inside = [
            (max(b.a, start - piece.start) - b.a + b.b, min(b.a + b.size, end - piece.start) - b.a + b.b)
            for b in blocks
            if b.a < end - piece.start and start - piece.start < b.a + b.size
        ]
        if inside:
            found.append((inside[0][0], inside[-1][1]))
    return tuple(found) or None
