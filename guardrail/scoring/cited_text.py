"""Writes citation marks into a segment, or corrects those that are there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from guardrail.scoring.citations import Mark, read_marks
from guardrail.text.abbreviations import StopRole, role_of
from guardrail.types import Citation, CitationStatus, ClaimVerdict, SegmentKind

_SENTENCE_END = re.compile(r"[.!?…。！？]+[\"'”’»)*_~]*$")
_OPEN_END = re.compile(r"[,:;：；、–—{}<>|\\-]$")
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uff00-\uffef]$")
# A table row, JSON, an entry of a list of sources; a last line without words (the underline of a heading).
_NOT_PROSE = re.compile(r"\s*(?:\||\{|\[\s*(?:[\"{\[]|[\^C]?\d)|\"[^\"\n]{1,80}\"\s*:)")
_CITES_OTHERWISE = re.compile(r"\[\^?\d{1,3}\]\(|【\d|\((?:source|passage|document)s? \d", re.IGNORECASE)
_LAST_WORD = re.compile(r"(\d\s?)?([^\W\d_][^\s(\[{\"“„«*_]*)$")
_JOINER = re.compile(r"\s{0,3}[,;–—-]?\s{0,3}(?:(?:and|or|e|und|et|y|o|oder|ou|&)\s)?")
# Words that a mark completes ("according to [2]"): without it the sentence would be broken.
_LEADS = re.compile(
    r"(?:(?<![\w)\]\"'”’»*_~.!?。！？%°])|\b(?:to|in|by|from|see|of|per|with|at|on|as|and|or|source|passage|document|"
    r"nach|laut|siehe|von|aus|secondo|vedi|da|di|selon|voir|según|véase))$",
    re.IGNORECASE,
)


def cited_text(verdict: ClaimVerdict, *, numbers: Mapping[str, int], fix: bool) -> str:
    """The text of a claim with the citations that it should have.

    Args:
        verdict: The verdict of a claim, with its citations.
        numbers: The number of every passage in the marks that are written.
        fix: Whether wrong and dangling citations are replaced; else only missing ones are written, and the numbers of
            the others are those of ``numbers``.

    Returns:
        The text; unchanged if nothing is to be done, or if what should be cited is not known. A text without an end
        may be half a sentence, so nothing is written behind it; nor into tables, JSON, code and lists of sources.

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
    by_number = {citation.number: citation for citation in verdict.citations}
    if not marks:
        missing = [citation for citation in verdict.citations if citation.status is CitationStatus.MISSING]
        return _with_mark(verdict, _numbers_of(missing[0].right, numbers)) if missing else text
    if any(mark.names_line or not by_number.keys() >= set(mark.numbers) for mark in marks):
        return text
    corrected = _Corrections(by_number, numbers, fix=fix)
    pieces: list[str] = []
    at = 0
    for run in _runs(marks, text):
        pieces += [text[at : run[0].start], corrected.run(run, text)]
        at = run[-1].end
    return "".join([*pieces, text[at:]])


class _Corrections:
    """What becomes of the marks of one claim, from its first to its last."""

    def __init__(self, by_number: Mapping[int | None, Citation], numbers: Mapping[str, int], *, fix: bool) -> None:
        self._by_number = by_number
        self._numbers = numbers
        self._fix = fix
        self._right = [n for n, c in by_number.items() if n is not None and c.status is CitationStatus.RIGHT]
        self._done = bool(self._right)

    def run(self, run: Sequence[Mark], text: str) -> str:
        """Marks that stand together, with the words between them ("[1], [2] and [3]")."""
        kept = [(at, written) for at, mark in enumerate(run) if (written := self._kept(mark))]
        if not kept and _LEADS.search(text[: run[0].start].rstrip()):
            instead = [self._number(n) for n in self._right] or self._instead(run[0].numbers)
            kept = [(0, instead or list(run[0].numbers))]
        pieces = []
        for position, (at, written) in enumerate(kept):
            mark = run[at]
            if position:
                pieces += [text[run[at - 1].end : mark.start], _written(mark, written, text)]
            else:
                gap = text[run[0].start : run[0].start + run[0].opening.index("[")]
                pieces += [gap, _written(mark, written, text).lstrip()]
        return "".join(pieces)

    def _kept(self, mark: Mark) -> list[int]:
        written: list[int] = []
        for number in mark.numbers:
            status = self._by_number[number].status
            if not self._fix or status in (CitationStatus.RIGHT, CitationStatus.UNSUPPORTED):
                written.append(self._number(number))
            elif not self._done:
                instead = self._instead([number])
                written += instead
                self._done = bool(instead)
        return list(dict.fromkeys(written))

    def _number(self, number: int) -> int:
        return self._numbers.get(self._by_number[number].passage_id or "", number)

    def _instead(self, cited: Iterable[int]) -> list[int]:
        ids = dict.fromkeys(pid for number in cited for pid in self._by_number[number].right)
        return _numbers_of(ids, self._numbers)


def _runs(marks: Sequence[Mark], text: str) -> Iterator[list[Mark]]:
    run: list[Mark] = []
    for mark in marks:
        if run and not _JOINER.fullmatch(text, run[-1].end, mark.start + mark.opening.index("[")):
            yield run
            run = []
        run.append(mark)
    yield run


def _numbers_of(ids: Iterable[str], numbers: Mapping[str, int]) -> list[int]:
    return sorted(numbers[pid] for pid in ids if pid in numbers)


def _written(mark: Mark, written: Sequence[int], text: str) -> str:
    if tuple(written) == mark.numbers:
        return text[mark.start : mark.end]
    return f"{mark.opening}{', '.join(map(str, written))}]"


def _with_mark(verdict: ClaimVerdict, written: Sequence[int]) -> str:
    text = verdict.segment.text
    body = text.rstrip()
    if not written or verdict.segment.kind is not SegmentKind.CLAIM or not _may_carry_mark(body):
        return text
    end = _SENTENCE_END.search(body)
    if not end and (_OPEN_END.search(body) or "\n" not in text[len(body) :]):
        return text
    at = end.start() if end and not _ends_in_abbreviation(body[: end.start()], end[0]) else len(body)
    space = "" if _WIDE.search(body[:at]) else " "
    return f"{body[:at]}{space}[{', '.join(map(str, written))}]{text[at:]}"


def _may_carry_mark(body: str) -> bool:
    last_line = body.rpartition("\n")[2]
    prose = not _NOT_PROSE.match(body) and any(map(str.isalnum, last_line))
    return prose and not _CITES_OTHERWISE.search(body)


def _ends_in_abbreviation(before: str, end: str) -> bool:
    """Whether the stop belongs to the last word ("5 p.m."), so that the mark stands behind it."""
    word = _LAST_WORD.search(before[-40:])
    if word is None or not end.startswith(".") or end.startswith(".."):
        return False
    return role_of(word[2], "", after_number=word[1] is not None) is not StopRole.ORDINARY or "." in word[2]
