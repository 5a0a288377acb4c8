"""S4: the share of an answer's claims that a judge finds supported by the context."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from guardrail.context import as_passages
from guardrail.errors import ConfigurationError, GuardrailError, JudgeError
from guardrail.evaluation.judging.decomposers import (
    INLINE_CHARS,
    SHORT_CLAIM_WORDS,
    Decomposer,
    SegmentDecomposer,
    in_full,
)
from guardrail.evaluation.judging.verdicts import Judge, Judgement, JudgeVerdict
from guardrail.protocols import Pair
from guardrail.scoring.entailment.lexical import content_words, fold_word, words
from guardrail.scoring.evidence import EvidenceIndex
from guardrail.scoring.statements import analyse
from guardrail.text.tokens import tokens
from guardrail.types import Passage

_COVERED_SHARE = 0.5
_CHARS_PER_WORD = 6


class EvidenceShown(StrEnum):
    """What a judge was shown of the context."""

    ALL = "all"  # every passage, whole
    SELECTED = "selected"  # the sentences that were selected for the claim, as all passages would be too long
    NONE = "none"  # there is no context: the judge was not asked


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedClaim:
    """A claim and what the judge says.

    Attributes:
        text: The claim.
        judgement: The verdict, or why there is none.
        evidence: What the judge was shown.
        added: Whether the claim is a sentence of the answer that the decomposer had left out.
    """

    text: str = field(repr=False)
    judgement: Judgement
    evidence: EvidenceShown = EvidenceShown.ALL
    added: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedAnswer:
    """What a judge says about an answer.

    Attributes:
        score: Supported claims / claims; 0.0 without claims. Partly supported claims and errors are not supported.
        claims: The claims, in order; those that were added stand last.
        supported: Claims with the verdict YES.
        partial: Claims with the verdict PARTIAL.
        unsupported: Claims with the verdict NO.
        errors: Claims without a verdict: as long as there are any, the score is a lower bound.
        invented: Claims of the decomposer that have no word in common with the answer. They are not judged and not in
            ``claims``, as they say nothing about the answer.
    """

    score: float
    claims: tuple[JudgedClaim, ...]
    supported: int
    partial: int
    unsupported: int
    errors: int
    invented: int = 0


async def judge_answer(
    answer: str,
    context: object,
    *,
    judge: Judge,
    decomposer: Decomposer | None = None,
    question: str = "",
    max_context_chars: int = 24_000,
) -> JudgedAnswer:
    """Break an answer up into claims and ask a judge about each of them.

    What a decomposer returns is not believed unseen. A claim without a word of the answer is invented: models repeat
    examples and questions. A sentence of the answer that the claims pass over, or of which they leave out a number or a
    negation, is judged as it is, beside them: an answer seldom becomes better by being broken up badly.

    Args:
        answer: The answer.
        context: Passages; see :func:`guardrail.context.as_passages`. Without any, every claim is unsupported.
        judge: Whom to ask.
        decomposer: Who breaks up the answer; ``None`` takes its sentences, see :class:`SegmentDecomposer`.
        question: What the user asked, if known.
        max_context_chars: Up to this length a judge is shown all passages, numbered. Of a longer context it is shown
            the sentences that speak of the claim, up to the same length but at least one, and ``JudgedClaim.evidence``
            says so. They are whole, but for sentences longer than a segment of the guard, which come in parts.

    Returns:
        The score, and the verdict per claim.

    Raises:
        InputError: If the answer is not text, or the context cannot be used.
        ConfigurationError: If ``max_context_chars`` is less than 1.
        JudgeError: If there are no claims because something went wrong, or judge or decomposer break their protocol.

    Cancellation cancels the calls that are under way; what compares a long answer with its claims in a thread ends
    unobserved.

    Example:
        >>> import asyncio
        >>> from guardrail.testing import ScriptedJudge
        >>> judge = ScriptedJudge({"Entry is free.": "yes", "The desk opens at nine.": "partial"})
        >>> answer = "Entry is free. The desk opens at nine. Dogs are welcome."
        >>> result = asyncio.run(judge_answer(answer, ["Entry is free.", "The desk opens at ten."], judge=judge))
        >>> round(result.score, 3), result.supported, result.partial, result.unsupported, result.errors
        (0.333, 1, 1, 1, 0)
    """
    if isinstance(max_context_chars, bool) or not isinstance(max_context_chars, int) or max_context_chars < 1:
        raise ConfigurationError(f"max_context_chars must be an integer of at least 1, got {max_context_chars!r}")
    passages, _ = as_passages(context)
    said, claims, left_out = await _claims(answer, question, decomposer)
    premises, shown = await _evidence([*claims, *left_out], passages, max_context_chars)
    pairs = [Pair(premise, claim) for premise, claim in zip(premises, [*claims, *left_out], strict=True)]
    judgements = await _judged(judge, pairs)
    judged = tuple(
        JudgedClaim(text=pair.hypothesis, judgement=judgement, evidence=shown, added=at >= len(claims))
        for at, (pair, judgement) in enumerate(zip(pairs, judgements, strict=True))
    )
    return _summary(judged, invented=len(said) - len(claims))


def _summary(claims: tuple[JudgedClaim, ...], *, invented: int) -> JudgedAnswer:
    verdicts = [claim.judgement.verdict for claim in claims]
    supported = verdicts.count(JudgeVerdict.YES)
    return JudgedAnswer(
        score=supported / len(claims) if claims else 0.0,
        claims=claims,
        supported=supported,
        partial=verdicts.count(JudgeVerdict.PARTIAL),
        unsupported=verdicts.count(JudgeVerdict.NO),
        errors=verdicts.count(None),
        invented=invented,
    )


async def _claims(
    answer: str, question: str, decomposer: Decomposer | None
) -> tuple[Sequence[str], Sequence[str], Sequence[str]]:
    """What a decomposer said; of that, what says something about the answer; and what it left out."""
    if decomposer is None:
        claims = await SegmentDecomposer().decompose(answer, question=question)
        return claims, claims, ()
    sentences = await SegmentDecomposer().decompose(answer)
    said = await _decomposed(decomposer, answer, question)
    claims = [claim for claim in said if not _is_invented(claim, answer, question)]
    if said and not claims:
        raise JudgeError("the decomposer returned only claims that have no word in common with the answer")
    if sentences and not claims:
        raise JudgeError("the decomposer returned no claim for an answer that has sentences to check")
    if len(answer) <= INLINE_CHARS:
        return said, claims, _left_out(sentences, claims, question)
    return said, claims, await asyncio.to_thread(_left_out, sentences, claims, question)


def _left_out(sentences: Sequence[str], claims: Sequence[str], question: str) -> list[str]:
    covered = frozenset[str]().union(*map(words, claims))
    missing = [own for own in sentences if not _is_covered(own, covered, question) or _is_turned(own, claims)]
    return [own for own in (in_full(own, question) for own in missing) if own not in claims]


async def _decomposed(decomposer: Decomposer, answer: str, question: str) -> list[str]:
    try:
        claims: Any = await decomposer.decompose(answer, question=question)
    except GuardrailError:
        raise
    except Exception as error:
        raise JudgeError(f"the decomposer raised {type(error).__name__}") from error
    if not isinstance(claims, Sequence) or isinstance(claims, str | bytes):
        raise JudgeError(f"the decomposer returned {type(claims).__name__} instead of a list of texts")
    if not all(isinstance(claim, str) and claim.strip() for claim in claims):
        raise JudgeError("the decomposer returned a claim that is no text, or blank")
    return list(dict.fromkeys(claims))


async def _judged(judge: Judge, pairs: Sequence[Pair]) -> list[Judgement]:
    """What a judge says; without evidence it is not asked, as nothing supports nothing."""
    asked = [pair for pair in pairs if pair.premise.strip()]
    answers = iter(await _answers(judge, asked))
    return [next(answers) if pair.premise.strip() else Judgement(verdict=JudgeVerdict.NO) for pair in pairs]


async def _answers(judge: Judge, pairs: Sequence[Pair]) -> list[Judgement]:
    if not pairs:
        return []
    try:
        judgements: Any = await judge.judge(pairs)
    except GuardrailError:
        raise
    except Exception as error:
        raise JudgeError(f"the judge raised {type(error).__name__}") from error
    if not isinstance(judgements, Sequence) or not all(isinstance(own, Judgement) for own in judgements):
        raise JudgeError("the judge returned something else than a list of Judgement")
    if len(judgements) != len(pairs):
        raise JudgeError(f"the judge returned {len(judgements)} judgements for {len(pairs)} pairs")
    return list(judgements)


def _is_invented(claim: str, answer: str, question: str) -> bool:
    source = words(answer)
    if len(content_words(answer)) < SHORT_CLAIM_WORDS:
        source |= words(question)  # the claim of "Yes." is what was asked
    return not (content_words(claim) or words(claim)) & source


def _is_covered(sentence: str, covered: frozenset[str], question: str) -> bool:
    """Whether claims with these words speak of a sentence: half of its content words, and every number."""
    own = content_words(sentence)
    numbers = {fold_word(token) for token in tokens(sentence) if token[0].isdecimal()}
    if not numbers and len(own) < SHORT_CLAIM_WORDS and question.strip():
        return True  # "Yes." became a claim in the words of the question
    return numbers <= covered and len(own & covered) >= _COVERED_SHARE * len(own)


def _is_turned(sentence: str, claims: Sequence[str]) -> bool:
    """Whether something that a sentence denies is only affirmed in the claims, or the other way round."""
    said = [analyse(claim).signs for claim in claims]
    for stem, own in analyse(sentence).signs.items():
        theirs = frozenset[int]().union(*(signs[stem] for signs in said if stem in signs))
        if theirs and not own & theirs:
            return True
    return False


async def _evidence(
    claims: Sequence[str], passages: Sequence[Passage], max_chars: int
) -> tuple[list[str], EvidenceShown]:
    """Per claim what the judge is shown."""
    if not passages or not claims:
        return ["" for _ in claims], EvidenceShown.NONE
    whole = "\n\n".join(f"[{number}] {passage.text}" for number, passage in enumerate(passages, start=1))
    if len(whole) <= max_chars:
        return [whole for _ in claims], EvidenceShown.ALL
    index = await EvidenceIndex.build(passages)
    numbers = {passage.id: number for number, passage in enumerate(passages, start=1)}
    selected = await index.off_loop(lambda: [_selected(index, claim, numbers, max_chars) for claim in claims])
    return selected, EvidenceShown.SELECTED


def _selected(index: EvidenceIndex, claim: str, numbers: dict[str, int], max_chars: int) -> str:
    """The sentences of all windows of a claim that fit, whole, in the order of the context."""
    chosen: dict[int, str] = {}
    used = 0
    for window in index.select(claim, max_words=max(1, max_chars // _CHARS_PER_WORD)):
        for sentence in window.sentences:
            line = f"[{numbers[sentence.span.passage_id]}] {sentence.said}"
            if sentence.index in chosen or (chosen and used + len(line) + 1 > max_chars):
                continue
            chosen[sentence.index] = line
            used += len(line) + 1
    return "\n".join(chosen[at] for at in sorted(chosen))
