"""The values that :class:`~guardrail.scoring.reference.ReferenceVerifier` returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from guardrail.types import Segment


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceResult:
    """Scores of one answer, rounded to 4 decimals; ``accepted`` and ``band`` were decided before rounding.

    Attributes:
        delta_r: ``1 - rouge_l * entailment``; lower is better.
        rouge_1: ROUGE-1 F1.
        rouge_2: ROUGE-2 F1.
        rouge_l: ROUGE-L F1.
        entailment: P(context entails answer), or ROUGE-L: see ``entailment_source``.
        entailment_source: ``"model"``; ``"rouge_l"`` if the verifier has no model; ``"empty"`` if the answer or the
            context has no words, so that there was nothing to ask a model (ΔR is 1 in any case).
        grounding: ``1 - delta_r``.
        delta: The threshold.
        accepted: Whether ΔR ≤ δ.
        band: ``"excellent"`` (≤ 0.05), ``"accepted"`` (≤ δ), ``"borderline"`` (≤ 0.35) or ``"hallucination"``.
        attempt: Number of the attempt, from 1.
    """

    delta_r: float
    rouge_1: float
    rouge_2: float
    rouge_l: float
    entailment: float
    entailment_source: str
    grounding: float
    delta: float
    accepted: bool
    band: str
    attempt: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryResult:
    """The best of several attempts.

    Attributes:
        answer: Text of the best attempt.
        best: Its scores; ``best.attempt`` is its number.
        attempts: The scores of every attempt that was made, in order.
    """

    answer: str = field(repr=False)
    best: ReferenceResult
    attempts: tuple[ReferenceResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceResult:
    """Scores of one sentence of an answer against the whole context."""

    sentence: Segment
    result: ReferenceResult

    @property
    def hallucinated(self) -> bool:
        """Whether the sentence asserts something and was not accepted."""
        return self.sentence.kind.checked and not self.result.accepted


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceCitation:
    """Where one sentence of an answer may come from.

    Attributes:
        sentence: The sentence.
        scores: ROUGE-L F1 against each passage, by label (``"[C1]"``, ``"[C2]"``, …), rounded to 4 decimals.
        best: Label of the best passage, the earlier on a tie; ``None`` if no passage shares a word.
        flagged: Whether no passage exceeds 0.1.
    """

    sentence: Segment
    scores: Mapping[str, float]
    best: str | None
    flagged: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceReport:
    """Everything about one answer.

    Attributes:
        result: Scores of the answer.
        delta: The threshold δ.
        margin: ``δ − ΔR``, rounded to 4 decimals; negative for a rejected answer.
        answer_tokens: Length of the answer in ROUGE tokens.
        context_tokens: Length of the context in ROUGE tokens.
        sentences: Scores per sentence.
        hallucinated: Those that assert something and were not accepted.
        verdict: The result in words; names the weaker of the two signals.
    """

    result: ReferenceResult
    delta: float
    margin: float
    answer_tokens: int
    context_tokens: int
    sentences: tuple[SentenceResult, ...]
    hallucinated: tuple[SentenceResult, ...]
    verdict: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedAnswer:
    """One answer in a ranking.

    Attributes:
        index: Its position in the input.
        answer: Its text.
        result: Its scores.
    """

    index: int
    answer: str = field(repr=False)
    result: ReferenceResult
