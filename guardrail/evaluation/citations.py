"""Citations of whole answers, in figures: how many lead to what they are cited for, how many claims have one that does.

Definitions: T. Gao et al., "Enabling Large Language Models to Generate Text with Citations" (2023), per citation and
without judging several passages together.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from guardrail.context import as_passages
from guardrail.errors import InputError
from guardrail.scoring.claims import Preceding, needs_check
from guardrail.scoring.evidence import EvidenceIndex
from guardrail.scoring.verifier import Verifier
from guardrail.text.marks import find_marks
from guardrail.text.segmenter import segment
from guardrail.text.values import parse_values
from guardrail.types import ContextState, Passage, Segment, SegmentKind

SUPPORTED_ABOVE = 0.5
_BRACKET = re.compile(r"[ \t]?\[([^\[\]\n]{1,100})\](?!\()")
_NUMBER = re.compile(r"\^?(C?)(\d{1,3})(?:\s?[–-]\s?\^?C?(\d{1,3}))?")
_CODE_SPAN = re.compile(r"`[^`\n]*`")
_MOST_IN_RANGE = 20
_UNIT_REACH = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class CitedClaim:
    """A claim and what it cites.

    Attributes:
        claim: The claim, without citation marks.
        cited: Ids of the passages; an id that occurs again counts once.
        before: What precedes the claim in its answer, so that its pronouns find their subject; may be empty.

    Raises:
        InputError: If one of them is of another type.
    """

    claim: str = field(repr=False)
    cited: tuple[str, ...] = ()
    before: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.claim, str) or not isinstance(self.before, str):
            raise InputError("claim and before of a CitedClaim must be str")
        # One text would be taken for as many ids as it has characters, and a number for the id of no passage.
        cited: Any = self.cited
        if isinstance(cited, str) or not all(isinstance(passage_id, str) for passage_id in cited):
            raise InputError("cited of a CitedClaim must be a tuple of passage ids, each a str")


@dataclass(frozen=True, slots=True, kw_only=True)
class CitationCheck:
    """What became of one citation.

    Attributes:
        claim: Position of the claim.
        passage_id: What it cites.
        dangling: Whether there is no such passage.
        supported: Whether the passage entails the claim.
        entailment: P(passage entails claim), after the comparison of values; ``None`` if there is nothing to compare.
    """

    claim: int
    passage_id: str
    dangling: bool
    supported: bool
    entailment: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CitationQuality:
    """Figures over the citations of some claims; shares are in [0, 1], 0.0 where there is nothing to divide by.

    Attributes:
        precision: Supported citations / citations; dangling ones count among the citations.
        recall: Supported claims / claims; a claim is supported if at least one of its citations is.
        f1: Harmonic mean of precision and recall.
        citations: Number of citations.
        supported_citations: How many of them lead to a passage that entails the claim.
        dangling: How many of them lead to no passage.
        claims: Number of claims, with those that cite nothing.
        supported_claims: How many of them are supported.
        details: Every citation, in order.
    """

    precision: float
    recall: float
    f1: float
    citations: int
    supported_citations: int
    dangling: int
    claims: int
    supported_claims: int
    details: tuple[CitationCheck, ...] = field(default=(), repr=False)


async def citation_quality(
    claims: Iterable[CitedClaim], passages: object, *, entailment: Any = None
) -> CitationQuality:
    """Check whether claims are entailed by what they cite.

    Every cited passage is asked alone: the model gets the sentences of that passage which speak of the claim, so a
    long passage is never cut. A citation is supported if P(passage entails claim) > 0.5 after the comparison of
    values, and the passage does not rather contradict the claim.

    Args:
        claims: The claims; see :func:`cited_claims` for those of an answer.
        passages: The passages; see :func:`guardrail.context.as_passages`.
        entailment: What judges, as for :class:`~guardrail.scoring.verifier.Verifier`; by default the embedded model.

    Returns:
        The figures.

    Raises:
        InputError: If a claim is no :class:`CitedClaim`, or the passages cannot be used.
        ScoringError: If the model fails: a citation that could not be checked has no figure.

    Cancellation drops what has not been checked yet.

    Example:
        >>> import asyncio
        >>> claims = [CitedClaim(claim="The desk opens at ten.", cited=("1",)), CitedClaim(claim="Entry is 9 euro.")]
        >>> found = asyncio.run(citation_quality(claims, ["The desk opens at ten."]))
        >>> found.precision, found.recall, round(found.f1, 3)
        (1.0, 0.5, 0.667)
    """
    given = tuple(claims)
    for at, claim in enumerate(given):
        if not isinstance(claim, CitedClaim):
            raise InputError(f"claim {at} must be a CitedClaim, not {type(claim).__name__}")
    known, _ = as_passages(passages)
    by_id = {passage.id: passage for passage in known}
    verifier = Verifier(entailment=entailment)
    indexes: dict[str, EvidenceIndex] = {}
    details: list[CitationCheck] = []
    for at, claim in enumerate(given):
        text = _strip(claim.claim, _marks(claim.claim, known))
        for passage_id in dict.fromkeys(claim.cited):
            if passage_id not in by_id:
                details.append(CitationCheck(claim=at, passage_id=passage_id, dangling=True, supported=False))
                continue
            if passage_id not in indexes:
                indexes[passage_id] = await EvidenceIndex.build([by_id[passage_id]])
            supported, score = await _entails(verifier, indexes[passage_id], text, claim.before)
            details.append(
                CitationCheck(claim=at, passage_id=passage_id, dangling=False, supported=supported, entailment=score)
            )
    return _quality(len(given), details)


def cited_claims(answer: str, passages: object) -> tuple[CitedClaim, ...]:
    """Split an answer into its claims, each with what it cites.

    Marks are ``[1]``, ``[2, 3]``, ``[1-3]``, ``[C1]`` and ``[^1]``, where a number counts the passages from 1, and a
    passage's own id in brackets. At the end of a clause, see :func:`guardrail.text.marks.find_marks`, a number without
    a passage is a mark that leads nowhere. Inside a clause a number is a mark only if there is such a passage, and
    nothing speaks for an amount ("[50] mg"). Code is left alone. A line of marks belongs to the claim before it.

    Args:
        answer: The answer.
        passages: What its marks count, in order; see :func:`guardrail.context.as_passages`.

    Returns:
        The claims without their marks, also those that cite nothing.

    Raises:
        InputError: If the answer is not text, or the passages cannot be used.

    Example:
        >>> found = cited_claims("The desk opens at ten [1]. Entry is free [C2, 7].", ["Desk: 10.", "Entry: free."])
        >>> [(claim.claim, claim.cited) for claim in found]
        [('The desk opens at ten.', ('1',)), ('Entry is free.', ('2', '7'))]
    """
    if not isinstance(answer, str):
        raise InputError(f"the answer must be a str, not {type(answer).__name__}")
    known, _ = as_passages(passages)
    found: list[CitedClaim] = []
    before = ""
    for part in segment(answer):
        if part.kind is SegmentKind.CODE:
            before = ""
            continue
        marks = _marks(part.text, known)
        text = _strip(part.text, marks)
        cited = tuple(dict.fromkeys(passage_id for _, _, ids in marks for passage_id in ids))
        if not any(map(str.isalnum, text)):
            if cited and found:
                found[-1] = replace(found[-1], cited=tuple(dict.fromkeys((*found[-1].cited, *cited))))
            continue
        if needs_check(replace(part, text=text)):
            found.append(CitedClaim(claim=text, cited=cited, before=before))
        before = text
    return tuple(found)


def without_citations(text: str, passages: Sequence[Passage]) -> str:
    """A text without the citation marks in it; the white space at its ends stays.

    Args:
        text: One segment of an answer.
        passages: What the marks count.

    Example:
        >>> without_citations("It leaks [1]. ", [Passage(id="a", text="Leak.")])
        'It leaks. '
    """
    return _cut(text, _marks(text, passages))


async def _entails(verifier: Verifier, index: EvidenceIndex, claim: str, before: str) -> tuple[bool, float | None]:
    """Whether the one passage of an index entails a claim, and N."""
    if not any(map(str.isalnum, claim)):
        return False, None  # nothing is said, and models entail nothing from anything
    whole = Segment(start=0, end=len(claim), text=claim, kind=SegmentKind.CLAIM)
    found = await verifier.signals([whole], index, state=ContextState.GIVEN, before=Preceding(text=before))
    if not found[0]:
        return False, None
    signals = found[0][0][1]
    score = signals.capped_entailment
    against = signals.contradicts or (signals.contradiction is not None and signals.contradiction > score)
    return score > SUPPORTED_ABOVE and not against, score


def _quality(claims: int, details: Sequence[CitationCheck]) -> CitationQuality:
    supported = [check for check in details if check.supported]
    supported_claims = len({check.claim for check in supported})
    precision = len(supported) / len(details) if details else 0.0
    recall = supported_claims / claims if claims else 0.0
    return CitationQuality(
        precision=precision,
        recall=recall,
        f1=2 * precision * recall / (precision + recall) if supported else 0.0,
        citations=len(details),
        supported_citations=len(supported),
        dangling=sum(check.dangling for check in details),
        claims=claims,
        supported_claims=supported_claims,
        details=tuple(details),
    )


def _marks(text: str, passages: Sequence[Passage]) -> list[tuple[int, int, tuple[str, ...]]]:
    """Where marks stand in a text, and the ids in them; those that lead nowhere as they are written."""
    if "[" not in text:
        return []
    ids = {passage.id: passage.id for passage in passages}
    at_ends = [(mark.start, mark.end) for mark in find_marks(text)]
    code = [match.span() for match in _CODE_SPAN.finditer(text)]
    found = []
    for match in _BRACKET.finditer(text):
        if any(start < match.start(1) < end for start, end in code):
            continue
        names = list(_names(match[1], ids, passages))
        if any(start < match.start(1) < end for start, end in at_ends) or (
            all(known is not None for _, known in names) and not _is_amount(text, match)
        ):
            found.append((match.start(), match.end(), tuple(known or written for written, known in names)))
    return found


def _is_amount(text: str, match: re.Match[str]) -> bool:
    """Whether a number in brackets inside a clause has a unit, or is an index, a value or an interval."""
    if not match[1][:1].isdecimal():
        return False
    values = parse_values(match[1] + text[match.end() : match.end() + _UNIT_REACH])
    if any(value.unit and value.start < len(match[1]) for value in values):
        return True
    return not any(mark.end == match.end() for mark in find_marks(text[: match.end()]))


def _names(inner: str, ids: Mapping[str, str], passages: Sequence[Passage]) -> Iterator[tuple[str, str | None]]:
    """What a bracket names, each with the id of its passage; ``None`` for what is not there."""
    if inner in ids and not inner.isdecimal():
        yield inner, inner
        return
    for part in map(str.strip, re.split("[,;]", inner)):
        number = _NUMBER.fullmatch(part)
        if number is None or (part in ids and not part.isdecimal()):
            yield part, ids.get(part)
            continue
        low, high = int(number[2]), int(number[3] or number[2])
        for n in range(low, high + 1) if low <= high < low + _MOST_IN_RANGE else (low, high):
            written = f"{number[1]}{n}"
            yield written, passages[n - 1].id if 1 <= n <= len(passages) else ids.get(written)


def _cut(text: str, marks: Iterable[tuple[int, int, tuple[str, ...]]]) -> str:
    pieces, at = [], 0
    for start, end, _ in marks:
        pieces.append(text[at:start])
        at = end
    return "".join([*pieces, text[at:]])


def _strip(text: str, marks: Iterable[tuple[int, int, tuple[str, ...]]]) -> str:
    return _cut(text, marks).strip()
