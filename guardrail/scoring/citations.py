"""Citation marks in an answer: which passages they name, and whether those support the claim."""

from __future__ import annotations

import itertools
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from guardrail.scoring.checks import ClaimCheck
from guardrail.scoring.claims import Preceding
from guardrail.scoring.evidence import Window
from guardrail.text.marks import find_marks, is_content, is_only_marks
from guardrail.text.values import parse_values
from guardrail.types import Citation, CitationStatus, ClaimVerdict, Segment, SegmentKind, VerdictLabel

Probe = Callable[[Sequence[ClaimCheck]], Awaitable[list[bool]]]
"""Says of each claim whether its one window of evidence supports it."""

_NUMBER = re.compile(r"(\d{1,3})(?:\s?[–-]\s?[\^C]?(\d{1,3}))?")
# "Smith [3] found that …" cites; "take [5] tablets" may not. It is looked up, but never taken out nor rewritten.
_INSIDE = re.compile(r"(?<=[^\W\d_] )\[[\^C]?(\d{1,3}(?:\s?[,;–-]\s?[\^C]?\d{1,3})*)\](?= ([^\W\d_]{2,}))")
_MOST_IN_RANGE = 20
_MOST_ASKED = 12
_MOST_PAIRED = 4
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
        names_line: Whether it names the line that it begins, as in a list of sources.
    """

    start: int
    end: int
    numbers: tuple[int, ...]
    opening: str
    names_line: bool = False


def read_marks(text: str) -> list[Mark]:
    """Find the citation marks of a text; see :func:`guardrail.text.marks.find_marks`.

    Args:
        text: One segment of an answer.

    Example:
        >>> [mark.numbers for mark in read_marks("The dam is 212 m high [1], and it leaks [C2, 4-6].")]
        [(1,), (2, 4, 5, 6)]
        >>> read_marks("Take [50] mg.")
        []
    """
    return [
        Mark(
            start=span.start,
            end=span.end,
            numbers=_numbers_in(span.numbers),
            opening=span.opening,
            names_line=span.names_line,
        )
        for span in find_marks(text)
    ]


def _numbers_in(written: str) -> tuple[int, ...]:
    numbers: list[int] = []
    for first, last in _NUMBER.findall(written):
        low = int(first)
        high = int(last) if last else low
        numbers += range(low, high + 1) if low <= high < low + _MOST_IN_RANGE else [low, high]
    return tuple(numbers)


def numbers_inside(text: str, *, passages: int) -> list[int]:
    """Numbers in brackets inside a clause that probably cite: there is a passage of that number, and no unit follows.

    Args:
        text: One segment of an answer.
        passages: How many passages there are.

    Example:
        >>> numbers_inside("The dam [2] is high; take [1] mg and read [7] pages.", passages=3)
        [2]
    """
    found: list[int] = []
    for match in _INSIDE.finditer(text) if "[" in text else ():
        numbers = _numbers_in(match[1])
        amount = f"{match[1]} {match[2]}"
        measured = any(value.start == 0 and value.end == len(amount) for value in parse_values(amount))
        if not measured and not is_content(text, match.start()) and all(1 <= n <= passages for n in numbers):
            found += numbers
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Evidence that is looked for.

    Attributes:
        claim: The segment with the claim.
        before: What precedes it.
        passages: Ids of the passages to take it from; ``None`` for all.
    """

    claim: Segment
    before: Preceding
    passages: frozenset[str] | None


Select = Callable[[Sequence[Wanted]], Awaitable[list[ClaimCheck | None]]]
"""Claims with the first window of their evidence; ``None`` for those that have none."""


async def with_citations(
    verdicts: Sequence[ClaimVerdict],
    *,
    before: Preceding,
    numbered: Sequence[str],
    name_missing: bool,
    select: Select,
    probe: Probe,
) -> list[ClaimVerdict]:
    """Look up what the claims of an answer cite.

    Every cited passage is asked alone, up to 12 for a claim. Several that support a claim only together are right
    together. Marks on a line of their own cite for the claim before.

    Args:
        verdicts: Verdicts of segments, in order, over all passages.
        before: What precedes the first of them.
        numbered: Ids of the passages that the numbers of marks count, from 1.
        name_missing: Whether to find out what a claim without a mark should cite.
        select: Evidence from some passages alone.
        probe: Whether it supports the claim.

    Returns:
        The verdicts with :attr:`~guardrail.types.ClaimVerdict.citations`.
    """
    cases: list[_Case] = []
    for verdict in verdicts:
        cases.append(_Case(verdict, before, numbered))
        before = before.after(verdict.segment)
    asked = [case for case in cases if case.supported]
    await _ask(asked, _Case.own_questions, select, probe)
    await _ask([case for case in asked if case.holds_together], _Case.pairs, select, probe)
    open_cases = [case for case in asked if not case.is_right and (case.cited or name_missing)]
    loose = [case for case in open_cases if not case.candidates]
    for case, check in zip(loose, await select([case.wants(None) for case in loose]) if loose else (), strict=True):
        if check is not None:
            case.candidates = list(check.windows[0].passage_ids)
            case.verdict = replace(case.verdict, evidence=tuple(s.span for s in check.windows[0].sentences))
    await _ask(open_cases, lambda case: case.others()[:1], select, probe)  # mostly the best one is enough
    await _ask([case for case in open_cases if not case.right_ones()], _Case.others, select, probe)
    return [case.verdict if case.ignored else replace(case.verdict, citations=case.citations()) for case in cases]


class _Case:
    """One claim with what it cites, and what is known about which passages support it."""

    def __init__(self, verdict: ClaimVerdict, before: Preceding, numbered: Sequence[str]) -> None:
        self.verdict = verdict
        self.claim, self.before = verdict.segment, before
        loose = is_only_marks(verdict.segment.text)
        marks = [] if loose and before.announces_value else read_marks(verdict.segment.text)
        numbers = dict.fromkeys(n for mark in marks for n in mark.numbers)
        numbers |= dict.fromkeys(numbers_inside(verdict.segment.text, passages=len(numbered)))
        self.cited = [(n, numbered[n - 1] if 1 <= n <= len(numbered) else None) for n in numbers]
        self.ignored = (verdict.verdict is None and not loose) or verdict.segment.kind is SegmentKind.CODE
        self.supported = not self.ignored and verdict.verdict in _SUPPORTED
        if loose and self.cited and verdict.verdict is None:
            self.claim, self.before = before.claim or self.claim, Preceding()
            self.supported = before.claim is not None  # what did not pass is not followed by anything
        self.known: dict[frozenset[str], bool] = {}
        sources = dict.fromkeys(span.passage_id for span in verdict.evidence)
        self.candidates = list(dict.fromkeys([*sources, *verdict.supporting]))
        if self.supported and len(sources) == 1:
            self.known[frozenset(sources)] = True  # the verdict rests on this passage alone

    def wants(self, passages: frozenset[str] | None) -> Wanted:
        return Wanted(claim=self.claim, before=self.before, passages=passages)

    @property
    def passages(self) -> list[str]:
        """The cited passages that are asked, those that the verdict rests on first."""
        cited = dict.fromkeys(pid for _, pid in self.cited if pid is not None)
        return sorted(cited, key=lambda pid: pid not in self.candidates)[:_MOST_ASKED]

    @property
    def alone(self) -> set[str]:
        return {pid for pid in self.passages if self.known.get(frozenset([pid]))}

    @property
    def holds_together(self) -> bool:
        return not self.alone and bool(self.known.get(frozenset(self.passages)))

    @property
    def right_cited(self) -> set[str]:
        """The cited passages that support the claim, alone or, if none does, together."""
        if self.alone or not self.holds_together:
            return self.alone
        return set(next((pair for pair in self.pairs() if self.known.get(pair)), self.passages))

    @property
    def is_right(self) -> bool:
        return bool(self.right_cited)

    def own_questions(self) -> list[frozenset[str]]:
        """Each cited passage alone, and all of them."""
        alone = [frozenset([pid]) for pid in self.passages]
        return [*alone, frozenset(self.passages)] if len(alone) > 1 else alone

    def pairs(self) -> list[frozenset[str]]:
        """Of a few passages that support the claim together, perhaps two are enough."""
        few = 2 < len(self.passages) <= _MOST_PAIRED
        return [frozenset(pair) for pair in itertools.combinations(self.passages, 2)] if few else []

    def others(self) -> list[frozenset[str]]:
        """The passages that the verdict rests on, best first: each alone, and the first two."""
        candidates = self.candidates[:_CANDIDATES]
        alone = [frozenset([pid]) for pid in candidates]
        return [*alone, frozenset(candidates[:2])] if len(candidates) > 1 else alone

    def right_ones(self) -> tuple[str, ...]:
        return next((tuple(sorted(ids)) for ids in self.others() if self.known.get(ids)), ())

    def citations(self) -> tuple[Citation, ...]:
        if not self.cited:
            return (Citation(status=CitationStatus.MISSING, right=self.right_ones()),) if self.supported else ()
        right_cited = self.right_cited if self.supported else set()
        instead = () if right_cited or not self.supported else self.right_ones()
        found = []
        for number, pid in self.cited:
            if pid is None:
                status = CitationStatus.DANGLING
            elif not self.supported:
                status = CitationStatus.UNSUPPORTED
            else:
                status = CitationStatus.RIGHT if pid in right_cited else CitationStatus.WRONG
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
    checks = await select([case.wants(ids) for case, ids in open_questions])
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
