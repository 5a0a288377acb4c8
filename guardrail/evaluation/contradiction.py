"""What every passage alone says about a claim: do the passages disagree, and which of them should have supported it?"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from guardrail.context import as_passages
from guardrail.errors import InputError
from guardrail.evaluation.citations import without_citations
from guardrail.scoring.claims import Preceding, needs_check
from guardrail.scoring.delta_r import SAME_SUBJECT, WindowSignals, judge
from guardrail.scoring.entailment.lexical import content_words
from guardrail.scoring.evidence import EvidenceIndex, Window
from guardrail.scoring.markup import plain
from guardrail.scoring.verifier import START, Verifier
from guardrail.text.segmenter import segment as cut
from guardrail.text.values import parse_values
from guardrail.types import ClaimVerdict, ContextState, Passage, Segment, VerdictLabel

_BATCH = 16
_INLINE_CHARS = 20_000
_SAME_STATEMENT = 0.8  # models see contradictions in passages that share the subject and speak of another side of it
_AGAINST = (VerdictLabel.CONTRADICTED, VerdictLabel.CONFLICT)
_FOR = (VerdictLabel.SUPPORTED, VerdictLabel.CONFLICT)


class Contradiction(StrEnum):
    """How many of the passages that speak of a claim contradict it."""

    NONE = "none"
    SOMETIMES = "sometimes"  # some do and some do not: the passages disagree among themselves
    ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageVerdict:
    """What one passage alone says about a claim.

    Attributes:
        passage_id: The passage.
        verdict: ``unverifiable`` if the passage does not speak of the claim.
        delta_r: ΔR against this passage.
        rouge_l: LCS precision of the claim against the evidence in this passage.
        entailment: N after the comparison of values.
    """

    passage_id: str
    verdict: VerdictLabel
    delta_r: float
    rouge_l: float
    entailment: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimLevel:
    """A claim, what all passages together say about it, and what each of them says.

    Attributes:
        claim: The verdict over all passages.
        passages: The verdict of every passage alone, in their order; empty without a context.
        contradiction: The level over the passages that speak of the claim.
        attributed_to: Id of the passage that supports the claim best or, if none does, should have: the one that is
            most similar to it; ``None`` if no passage supports it or shares a content word with it.
    """

    claim: ClaimVerdict
    passages: tuple[PassageVerdict, ...]
    contradiction: Contradiction
    attributed_to: str | None


async def levels(
    answer: str, context: object, *, verifier: Verifier, question: str | None = None
) -> tuple[ClaimLevel, ...]:
    """Judge every claim of an answer against every passage alone.

    The model is asked once per claim and passage, with the evidence formula whatever ``Policy.formula`` is.

    Args:
        answer: The answer.
        context: Passages; see :func:`guardrail.context.as_passages`.
        verifier: What judges.
        question: What the user asked, if known.

    Returns:
        One entry per claim, in order. Without a context the claims have no verdict and no passages.

    Raises:
        InputError: If the answer is not text, or the context cannot be used.
        ScoringError: If the entailment model fails.

    Cancellation drops scoring that has not begun.

    Example:
        >>> prices = ["The 2025 list: entry costs 9 euro.", "The 2026 list: entry costs 12 euro."]
        >>> found = asyncio.run(levels("Entry costs 12 euro.", prices, verifier=Verifier()))
        >>> found[0].contradiction.value, found[0].attributed_to
        ('sometimes', '2')
    """
    if not isinstance(answer, str):
        raise InputError(f"the answer must be a str, not {type(answer).__name__}")
    passages, state = as_passages(context)
    limit = verifier.policy.max_segment_chars
    small = len(answer) < _INLINE_CHARS
    segments = cut(answer, max_chars=limit) if small else await asyncio.to_thread(cut, answer, max_chars=limit)
    joined = await EvidenceIndex.build(passages)
    alone = [await EvidenceIndex.build([passage]) for passage in passages]
    found: list[ClaimLevel] = []
    before = START
    for first in range(0, len(segments), _BATCH):
        batch = segments[first : first + _BATCH]
        verdicts = await verifier.check(batch, joined, state=state, question=question or "", before=before)
        judged = await _judge_alone(batch, alone, verifier, passages, question or "", before)
        for at, verdict in enumerate(verdicts):
            if needs_check(verdict.segment):
                found.append(_level(verdict, [own[at] for own in judged], passages, question or "", verifier))
        for part in batch:
            before = before.after(part)
        await asyncio.sleep(0)  # lexical scoring and comparison need not pause by themselves
    return tuple(found)


async def _judge_alone(
    batch: Sequence[Segment],
    alone: Sequence[EvidenceIndex],
    verifier: Verifier,
    passages: Sequence[Passage],
    question: str,
    before: Preceding,
) -> list[list[tuple[Window, WindowSignals] | None]]:
    """Per passage and segment the evidence with its signals."""
    # Marks count all passages, so beside one of them "[3]" would be taken for a part of the claim.
    bare = [replace(part, text=without_citations(part.text, passages)) for part in batch]
    context = replace(before, text=without_citations(before.text, passages))
    judged = []
    for index in alone:
        found = await verifier.signals(bare, index, state=ContextState.GIVEN, question=question, before=context)
        judged.append([own[0] if own else None for own in found])
    return judged


def _level(
    claim: ClaimVerdict,
    judged: Sequence[tuple[Window, WindowSignals] | None],
    passages: Sequence[Passage],
    question: str,
    verifier: Verifier,
) -> ClaimLevel:
    pairs = [(passage, *own) for passage, own in zip(passages, judged, strict=True) if own is not None]
    overlaps = _overlaps(plain(claim.segment.body), question, [window for _, window, _ in pairs])
    subject = max((own.subject for own in overlaps), default=0.0)
    wording = max((signals.rouge_l for _, _, signals in pairs), default=0.0)
    delta, weight = verifier.policy.delta, verifier.lexical_weight
    verdicts = []
    for (passage, _, signals), own in zip(pairs, overlaps, strict=True):
        label, _ = judge([signals], delta=delta, lexical_weight=weight)
        least = SAME_SUBJECT if signals.vetoed else _SAME_STATEMENT
        # The very word that is contradicted, such as "red" by "blue", is one that the passage does not have.
        near = own.subject >= least * subject or signals.rouge_l >= _SAME_STATEMENT * wording
        speaks = near and own.subject > 0.0 if subject else signals.vetoed
        if label in _AGAINST and not speaks:
            label = VerdictLabel.UNVERIFIABLE  # it says something else, of something else
        verdicts.append(
            PassageVerdict(
                passage_id=passage.id,
                verdict=label,
                delta_r=signals.delta_r(weight),
                rouge_l=signals.rouge_l,
                entailment=signals.capped_entailment,
            )
        )
    return ClaimLevel(
        claim=claim,
        passages=tuple(verdicts),
        contradiction=contradiction_level([own.verdict for own in verdicts]),
        attributed_to=_attributed(verdicts, overlaps),
    )


def contradiction_level(verdicts: Sequence[VerdictLabel]) -> Contradiction:
    """The level over what single passages say; those that say nothing do not count.

    Args:
        verdicts: One per passage.

    Example:
        >>> contradiction_level([VerdictLabel.CONTRADICTED, VerdictLabel.UNVERIFIABLE]).value
        'all'
    """
    if not any(label in _AGAINST for label in verdicts):
        return Contradiction.NONE
    return Contradiction.SOMETIMES if any(label in _FOR for label in verdicts) else Contradiction.ALL


@dataclass(frozen=True, slots=True)
class _Overlap:
    """What evidence shares with a claim; words that fewer passages have weigh more.

    ``subject`` is over the words that say what the claim is about, ``all`` over its values, too.
    """

    subject: float
    all: float


def _overlaps(claim: str, question: str, windows: Sequence[Window]) -> list[_Overlap]:
    words = content_words(claim)
    # A claim that is only a value ("12 euro.") is about what was asked, if that is known.
    subject = _about(claim) or content_words(question)
    per_window = [content_words(window.premise) for window in windows]
    weights = {
        word: math.log(1 + len(windows) / own)
        for word in words | subject
        if (own := sum(word in has for has in per_window))
    }
    return [_Overlap(_worth(subject & has, weights), _worth(words & has, weights)) for has in per_window]


def _about(claim: str) -> frozenset[str]:
    """The content words of a claim but for its amounts, which passages that disagree about them cannot share."""
    for value in reversed(parse_values(claim)):
        if value.unit:
            claim = f"{claim[: value.start]} {claim[value.end :]}"
    return frozenset(word for word in content_words(claim) if not word[0].isdecimal())


def _worth(words: frozenset[str], weights: Mapping[str, float]) -> float:
    return math.fsum(weights[word] for word in words)


def _attributed(verdicts: Sequence[PassageVerdict], overlaps: Sequence[_Overlap]) -> str | None:
    """The passage that supports a claim, or should have; of equals the first."""
    supporting = [own for own in verdicts if own.verdict in _FOR]
    if supporting:
        return min(supporting, key=lambda own: own.delta_r).passage_id
    similar = [
        ((its.subject, its.all, own.rouge_l, own.entailment), own.passage_id)
        for own, its in zip(verdicts, overlaps, strict=True)
        if its.subject > 0.0
    ]
    return max(similar, key=lambda pair: pair[0])[1] if similar else None
