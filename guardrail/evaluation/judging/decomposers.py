"""An answer as single claims: by a model, or by the segmenter of the guard."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, runtime_checkable

from guardrail.errors import InputError, JudgeError
from guardrail.evaluation.judging.calls import CallFault, ModelCalls
from guardrail.evaluation.judging.parsing import parse_claims
from guardrail.evaluation.judging.prompts import decompose_prompt
from guardrail.evaluation.judging.usage import Usage
from guardrail.scoring.claims import Preceding, claim_of, labelled, needs_check
from guardrail.scoring.entailment.lexical import content_words
from guardrail.scoring.markup import plain
from guardrail.text.segmenter import segment

SHORT_CLAIM_WORDS = 3
"""A claim with fewer content words is an answer to something, and says little without the question."""

INLINE_CHARS = 8_000
_ANY_MARK = 999  # citation marks have three digits at most: all of them are layout


@runtime_checkable
class Decomposer(Protocol):
    """Breaks answers up into claims."""

    async def decompose(self, answer: str, *, question: str = "") -> Sequence[str]:
        """Break an answer up.

        Args:
            answer: The answer.
            question: What the user asked, if known.

        Returns:
            The claims, each a sentence that can be understood alone; empty if the answer asserts nothing.

        Raises:
            JudgeError: If it cannot be done. No claims are never returned because something went wrong.

        Cancellation cancels calls that are under way.
        """
        ...


class SegmentDecomposer:
    """Takes the sentences and list items that the guard would check as claims; needs no model.

    Markup and citation marks are taken off; a list item gets the label that it stands under; a claim of few words
    ("Paris.") is put behind the question. Pronouns stay as they are, so a model makes better claims of prose.

    Example:
        >>> claims = SegmentDecomposer().decompose("Hello! The **dam** is 212 m high [1]. It was built in 1960.")
        >>> asyncio.run(claims)
        ['The dam is 212 m high.', 'It was built in 1960.']
        >>> asyncio.run(SegmentDecomposer().decompose("Yes.", question="Is entry free?"))
        ['Question: Is entry free? Answer: Yes.']
    """

    async def decompose(self, answer: str, *, question: str = "") -> list[str]:
        """See :class:`Decomposer`.

        Args:
            answer: The answer.
            question: What the user asked, if known.

        Returns:
            One claim per checked segment, each once.

        Raises:
            InputError: If the answer or the question is no text.

        Long answers are read in a thread; on cancellation it ends unobserved.
        """
        _check_texts(answer, question)
        if len(answer) <= INLINE_CHARS:
            return _segments_as_claims(answer, question)
        return await asyncio.to_thread(_segments_as_claims, answer, question)


class LLMDecomposer:
    """Asks a generative model for the claims of an answer.

    Only a JSON array of texts is read. An empty array for an answer in which the guard's own segmenter finds something
    to check is an error, and not an answer without claims.

    Args:
        model: As for :class:`~guardrail.evaluation.judging.judge.LLMJudge`.
        max_concurrency: As there.
        timeout_s: As there, per answer.
        retries: As there.
        price: As there.
        name: Name in errors; ``None`` takes the model's.
        sleep: As there.
        clock: As there.

    Raises:
        ConfigurationError: If the model cannot be called, or an argument is out of range.

    Example:
        >>> model = LLMDecomposer(lambda prompt: '["Entry is free.", "The desk opens at ten."]')
        >>> asyncio.run(model.decompose("Entry is free and the desk opens at ten."))
        ('Entry is free.', 'The desk opens at ten.')
    """

    def __init__(
        self,
        model: Any,
        *,
        max_concurrency: int = 8,
        timeout_s: float = 60.0,
        retries: int = 2,
        price: tuple[float, float] | None = None,
        name: str | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._calls = ModelCalls(
            model,
            max_concurrency=max_concurrency,
            timeout_s=timeout_s,
            retries=retries,
            price=price,
            sleep=sleep,
            clock=clock,
        )
        self._name = name or f"decomposer:{self._calls.name}"
        self._segments = SegmentDecomposer()

    @property
    def usage(self) -> Usage:
        """What was asked so far and what it cost."""
        return self._calls.usage

    async def decompose(self, answer: str, *, question: str = "") -> tuple[str, ...]:
        """Break an answer up; see :class:`Decomposer`.

        Args:
            answer: The answer.
            question: What the user asked, if known.

        Returns:
            The claims, each once; empty only if the segmenter finds nothing to check either.

        Raises:
            InputError: If the answer or the question is no text.
            JudgeError: If the model gives no reply, or one that is no list of claims.

        Cancellation cancels the call that is under way.
        """
        _check_texts(answer, question)
        if not answer.strip():
            return ()
        try:
            reply = await self._calls.ask(decompose_prompt(answer, question))
        except CallFault as fault:
            raise self._error(fault.error, f"gave no reply: {fault}") from fault
        claims = parse_claims(reply.text) if reply.complete else None
        if claims is None:
            why = "no JSON array of texts" if reply.complete else "cut off by the limit of tokens of the model"
            raise self._error("unreadable", f"gave a reply that is {why}")
        if not claims and await self._segments.decompose(answer):
            raise self._error("unreadable", "found no claim in an answer that has sentences to check")
        return claims

    def _error(self, error: str, what: str) -> JudgeError:
        self._calls.meter.failed(error)
        return JudgeError(f"{self._name} {what}", scorer=self._name, error=error)


def _segments_as_claims(answer: str, question: str) -> list[str]:
    claims: list[str] = []
    preceding = Preceding()
    for piece in segment(answer):
        if needs_check(piece):
            claim = claim_of(piece, preceding, passages=_ANY_MARK)
            under_label = labelled(claim, preceding)
            if under_label and claims and claims[-1] == plain(preceding.label):
                claims.pop()  # "Prohibited:" is said with every item below it
            if claim:
                claims.append(under_label or claim)
        preceding = preceding.after(piece)
    return list(dict.fromkeys(in_full(claim, question) for claim in claims))


def in_full(claim: str, question: str) -> str:
    """A claim of few words behind the question that it answers; any other claim as it is."""
    if not question.strip() or len(content_words(claim)) >= SHORT_CLAIM_WORDS:
        return claim
    return f"Question: {question.strip()} Answer: {claim}"


def _check_texts(answer: object, question: object) -> None:
    for name, value in (("answer", answer), ("question", question)):
        if not isinstance(value, str):
            raise InputError(f"the {name} must be a str, not {type(value).__name__}")
