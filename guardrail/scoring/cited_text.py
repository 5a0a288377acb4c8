"""Writes citation marks into a segment, or corrects those that are there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from guardrail.scoring.citations import Mark, read_marks
from guardrail.scoring.claims import was_cut
from guardrail.types import CitationStatus, ClaimVerdict, SegmentKind

_TABLE = "|"
_SENTENCE_END = re.compile(r"[.!?…。！？]+[\"'”’»)*_~]*$")
_OPEN_END = re.compile(r"[,:;：；、–—-]$")
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uff00-\uffef]$")


def cited_text(verdict: ClaimVerdict, *, numbers: Mapping[str, int], fix: bool) -> str:
    """The text of a supported claim with the citations that it should have.

    Args:
        verdict: The verdict of a claim that passages support, with its citations.
        numbers: The number of every passage in the marks that are written.
        fix: Whether wrong and dangling citations are replaced; else only missing ones are written, and the numbers of
            the others are those of ``numbers``.

    Returns:
        The text; unchanged if nothing is to be done, or if what should be cited is not known. A text without an end
        may be half a sentence, so nothing is written behind it.

    Example:
        >>> from guardrail.types import Citation, Segment, VerdictLabel
        >>> said = Segment(start=0, end=23, text="The dam is 212 m high. ")
        >>> missing = Citation(status=CitationStatus.MISSING, right=("a",))
        >>> verdict = ClaimVerdict(segment=said, verdict=VerdictLabel.SUPPORTED, citations=(missing,))
        >>> cited_text(verdict, numbers={"a": 1}, fix=False)
        'The dam is 212 m high [1]. '
    """
    text = verdict.segment.text
    marks = read_marks(text)
    if not marks:
        right = verdict.citations[0].right if verdict.citations else ()
        return _with_mark(verdict, _numbers_of(right, numbers)) if right else text
    by_number = {citation.number: citation for citation in verdict.citations}
    right_already = any(c.status is CitationStatus.RIGHT for c in verdict.citations)
    pieces: list[str] = []
    at, gap, replaced = 0, "", False
    for mark in marks:
        gap = gap if mark.start == at else ""  # the space before a mark that is gone belongs to the next one
        pieces.append(text[at : mark.start])
        written: list[int] = []
        for number in mark.numbers:
            citation = by_number[number]
            if citation.status is CitationStatus.RIGHT or not fix:
                written.append(numbers.get(citation.passage_id or "", number))
            elif not replaced and not right_already:
                written += _numbers_of(citation.right, numbers)
                replaced = bool(citation.right)
        if written:
            pieces.append(gap + _written(mark, list(dict.fromkeys(written)), text))
            gap = ""
        else:
            gap = gap or mark.opening[: mark.opening.index("[")]
        at = mark.end
    return "".join([*pieces, text[at:]])


def _numbers_of(ids: Iterable[str], numbers: Mapping[str, int]) -> list[int]:
    return sorted(numbers[pid] for pid in ids if pid in numbers)


def _written(mark: Mark, written: Sequence[int], text: str) -> str:
    if tuple(written) == mark.numbers:
        return text[mark.start : mark.end]
    return f"{mark.opening}{', '.join(map(str, written))}]"


def _with_mark(verdict: ClaimVerdict, written: Sequence[int]) -> str:
    segment = verdict.segment
    body = segment.text.rstrip()
    cannot = segment.kind is not SegmentKind.CLAIM or body.lstrip().startswith(_TABLE) or _OPEN_END.search(body)
    end = _SENTENCE_END.search(body)
    if not written or cannot or (not end and was_cut(segment.text)):
        return segment.text
    at = end.start() if end else len(body)
    space = "" if _WIDE.search(body[:at]) else " "
    return f"{body[:at]}{space}[{', '.join(map(str, written))}]{segment.text[at:]}"
