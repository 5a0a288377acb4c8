"""Citation marks in an answer: which passages they name, and whether those support the claim."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from guardrail.scoring.checks import ClaimCheck
from guardrail.scoring.evidence import Window
from guardrail.scoring.markup import CITATION
from guardrail.types import Citation, CitationStatus, ClaimVerdict, SegmentKind, VerdictLabel

Probe = Callable[[Sequence[ClaimCheck]], Awaitable[list[bool]]]
"""Says of each claim whether its one window of evidence supports it."""
Select = Callable[[Sequence[tuple[int, frozenset[str]]]], Awaitable[list[ClaimCheck | None]]]
"""The claims at some positions, each with the evidence that some passages have for it; ``None`` if they have none."""

_NUMBER = re.compile(r"(\d{1,3})(?:\s?[–-]\s?[\^C]?(\d{1,3}))?")
_MOST_IN_RANGE = 20
_CANDIDATES = 3
_SUPPORTED = (VerdictLabel.SUPPORTED, VerdictLabel.CONFLICT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One citation mark.

    Attributes:
        start: Offset of the mark in the text, with the space before it.
        end: Offset after it.
        numbers: The numbers in it, ranges written out, in order.
        opening: What stands before the first number: ``"["``, ``" [C"``, ``"[^"``.
    """

    start: int
    end: int
    numbers: tuple[int, ...]
    opening: str


def read_marks(text: str) -> list[Mark]:
    """Find the citation marks of a text.

    A number in brackets is a mark only at the end of a clause: "[50] mg" is a dose.

    Args:
        text: One segment of an answer.

    Example:
        >>> [mark.numbers for mark in read_marks("The dam is 212 m high [1], and it leaks [C2, 4-6].")]
        [(1,), (2, 4, 5, 6)]
        >>> read_marks("Take [50] mg.")
        []
    """
    found = []
    for match in CITATION.finditer(text):
        numbers: list[int] = []
        for first, last in _NUMBER.findall(match[0]):
            low = int(first)
            high = int(last) if last else low
            numbers += range(low, high + 1) if low <= high < low + _MOST_IN_RANGE else [low, high]
        opening = match[0][: match[0].index(str(match[1]))]
        found.append(Mark(start=match.start(), end=match.end(), numbers=tuple(numbers), opening=opening))
    return found


async def with_citations(
    verdicts: Sequence[ClaimVerdict], *, numbered: Sequence[str], name_missing: bool, select: Select, probe: Probe
) -> list[ClaimVerdict]:
    """Look up what the claims of an answer cite.

    Every cited passage is asked alone. Several that support a claim only together are right together.

    Args:
        verdicts: Verdicts of segments, in order, over all passages.
        numbered: Ids of the passages that the numbers of marks count, from 1.
        name_missing: Whether to find out what a claim without a mark should cite.
        select: Evidence from some passages alone.
        probe: Whether it supports the claim.

    Returns:
        The verdicts with :attr:`~guardrail.types.ClaimVerdict.citations`.
    """
    cases = [_Case.of(at, verdict, numbered) for at, verdict in enumerate(verdicts)]
    asked = [case for case in cases if case.supported]
    await _ask(asked, _Case.own_questions, select, probe)
    await _ask([c for c in asked if not c.is_right and (c.cited or name_missing)], _Case.others, select, probe)
    return [case.verdict if case.ignored else replace(case.verdict, citations=case.citations()) for case in cases]


class _Case:
    """One claim with what it cites, and what is known about which passages support it."""

    def __init__(self, at: int, verdict: ClaimVerdict, numbers: Sequence[int], numbered: Sequence[str]) -> None:
        self.at = at
        self.verdict = verdict
        self.cited = [(n, numbered[n - 1] if 1 <= n <= len(numbered) else None) for n in numbers]
        self.ignored = verdict.verdict is None or verdict.segment.kind is SegmentKind.CODE
        self.supported = not self.ignored and verdict.verdict in _SUPPORTED
        self.known: dict[frozenset[str], bool] = {}
        sources = {span.passage_id for span in verdict.evidence}
        if self.supported and len(sources) == 1:
            self.known[frozenset(sources)] = True  # the verdict rests on this passage alone

    @classmethod
    def of(cls, at: int, verdict: ClaimVerdict, numbered: Sequence[str]) -> _Case:
        text = verdict.segment.text
        marks = read_marks(text)
        if not any(map(str.isalnum, CITATION.sub("", text))):
            marks = []  # a segment that is nothing but "[5]" is scored as a statement
        return cls(at, verdict, list(dict.fromkeys(n for mark in marks for n in mark.numbers)), numbered)

    @property
    def passages(self) -> list[str]:
        return list(dict.fromkeys(pid for _, pid in self.cited if pid is not None))

    @property
    def is_right(self) -> bool:
        alone = any(self.known.get(frozenset([pid])) for pid in self.passages)
        return alone or bool(self.known.get(frozenset(self.passages)))

    def own_questions(self) -> list[frozenset[str]]:
        """Each cited passage alone, and all of them."""
        alone = [frozenset([pid]) for pid in self.passages]
        return [*alone, frozenset(self.passages)] if len(alone) > 1 else alone

    def others(self) -> list[frozenset[str]]:
        """The passages that the verdict rests on, best first: each alone, and the first two."""
        candidates = list(
            dict.fromkeys([*(span.passage_id for span in self.verdict.evidence), *self.verdict.supporting])
        )[:_CANDIDATES]
        alone = [frozenset([pid]) for pid in candidates]
        return [*alone, frozenset(candidates[:2])] if len(candidates) > 1 else alone

    def right_ones(self) -> tuple[str, ...]:
        return next((tuple(sorted(ids)) for ids in self.others() if self.known.get(ids)), ())

    def citations(self) -> tuple[Citation, ...]:
        if not self.cited:
            return (Citation(status=CitationStatus.MISSING, right=self.right_ones()),) if self.supported else ()
        together = not any(self.known.get(frozenset([pid])) for pid in self.passages) and self.is_right
        instead = () if self.is_right or not self.supported else self.right_ones()
        found = []
        for number, pid in self.cited:
            if pid is None:
                status = CitationStatus.DANGLING
            elif not self.supported:
                status = CitationStatus.UNSUPPORTED
            else:
                right = together or self.known.get(frozenset([pid]))
                status = CitationStatus.RIGHT if right else CitationStatus.WRONG
            right_ids = instead if status in (CitationStatus.WRONG, CitationStatus.DANGLING) else ()
            found.append(Citation(status=status, number=number, passage_id=pid, right=right_ids))
        return tuple(found)


async def _ask(
    cases: Sequence[_Case], questions: Callable[[_Case], list[frozenset[str]]], select: Select, probe: Probe
) -> None:
    """Find out which sets of passages support their claims: one batch, each set once."""
    open_questions = [(case, ids) for case in cases for ids in questions(case) if ids not in case.known]
    if not open_questions:
        return
    checks = await select([(case.at, ids) for case, ids in open_questions])
    asked: list[tuple[_Case, frozenset[str], ClaimCheck]] = []
    for (case, ids), check in zip(open_questions, checks, strict=True):
        if check is None or not _uses_all(check.windows[0], ids):
            case.known[ids] = False
        else:
            asked.append((case, ids, check))
    for (case, ids, _), supports in zip(asked, await probe([check for *_, check in asked]), strict=True):
        case.known[ids] = supports


def _uses_all(window: Window, ids: frozenset[str]) -> bool:
    """Whether every passage has a part in the evidence: one that has none is not cited for anything."""
    return ids <= {*window.passage_ids, *window.twins}
