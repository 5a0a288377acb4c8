"""ΔR, reference formula: ``1 − ROUGE-L × entailment`` of a whole answer against its whole context.

For audit and comparison: it reproduces published numbers to the fourth decimal. It is no gate for real answers, because
F1 against a long context is near zero however faithful a short answer is; the evidence formula is the default.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from guardrail.errors import ConfigurationError, GenerationError, InputError, ScoringError
from guardrail.scoring.entailment.labels import probability
from guardrail.scoring.reference_results import (
    RankedAnswer,
    ReferenceReport,
    ReferenceResult,
    RetryResult,
    SentenceCitation,
    SentenceResult,
)
from guardrail.scoring.rouge import reference_tokens, rouge_l_f1, rouge_n_f1
from guardrail.text.segmenter import segment
from guardrail.types import Passage, Segment, SegmentKind

PRESETS: Mapping[str, float] = MappingProxyType(
    {"very_strict": 0.10, "default": 0.15, "lenient": 0.25, "permissive": 0.40}
)
"""Published acceptance thresholds δ."""

THRESHOLDS: tuple[float, ...] = (0.05, 0.10, 0.15, 0.20, 0.25, 0.30, 0.40, 0.50)
"""The values of δ in a threshold table."""

CITATION_FLOOR = 0.1
"""A sentence is flagged when its ROUGE-L exceeds this against no passage."""

# 1 − L·N in binary can exceed a decimal δ in the 16th digit (1 − 0.85 > 0.15); that is no reason to reject.
_FLOAT_NOISE = 1e-12


@dataclass(frozen=True, slots=True)
class _Scores:
    """Unrounded values: what decisions are made from."""

    rouge_1: float
    rouge_2: float
    rouge_l: float
    entailment: float
    source: str

    @property
    def delta_r(self) -> float:
        return 1.0 - self.rouge_l * self.entailment


class ReferenceVerifier:
    """Scores answers with the published formula.

    Args:
        entailment: ``entailment(answer, context)`` gives P(context entails answer) in [0, 1]. Without it entailment is
            ROUGE-L, so that ΔR is ``1 − ROUGE-L²``, and every result says so in ``entailment_source``.
        delta: Threshold δ in [0, 1].
        max_attempts: Most attempts of :meth:`verify_with_retry`, at least 1.

    Raises:
        ConfigurationError: If ``delta`` or ``max_attempts`` is out of range.

    A context is a string or a sequence of passages (strings or :class:`~guardrail.types.Passage`), which are joined
    by newlines.

    Example:
        >>> verifier = ReferenceVerifier()
        >>> result = verifier.verify("The plan costs 50 euros a month.", "The plan costs 100 euros a month.")
        >>> result.delta_r, result.accepted, result.band, result.entailment_source
        (0.2653, False, 'borderline', 'rouge_l')
    """

    def __init__(
        self,
        entailment: Callable[[str, str], float] | None = None,
        *,
        delta: float = PRESETS["default"],
        max_attempts: int = 3,
    ) -> None:
        self.entailment = entailment
        self.delta = _threshold(delta)
        self.max_attempts = _attempt(max_attempts, "max_attempts", ConfigurationError)

    def verify(self, answer: str, context: str | Sequence[str | Passage], attempt: int = 1) -> ReferenceResult:
        """Score one answer.

        Args:
            answer: The answer.
            context: The context.
            attempt: Number of the attempt, from 1; passed through to the result.

        Returns:
            Its scores.

        Raises:
            ScoringError: If the entailment model fails or returns something that is no probability.
            InputError: If an argument is of the wrong type.
        """
        number = _attempt(attempt, "attempt", InputError)
        return _result(self._scores(answer, _joined(context)), self.delta, number)

    def verify_with_retry(
        self, generate: Callable[[int], str] | Iterable[str], context: str | Sequence[str | Passage]
    ) -> RetryResult:
        """Generate until an answer is accepted, at most ``max_attempts`` times.

        Args:
            generate: Called with the number of the attempt (from 1), returns an answer; it may choose another
                selection and order of passages each time. Or the answers themselves, taken one by one.
            context: What every attempt is verified against.

        Returns:
            The first accepted attempt, else the one with the lowest ΔR, the earlier on a tie.

        Raises:
            GenerationError: If ``generate`` raises or gives something that is not text.
            ScoringError: As in :meth:`verify`.
            InputError: If there is no answer at all.
        """
        joined = _joined(context)
        attempts: list[ReferenceResult] = []
        best: tuple[float, str, ReferenceResult] | None = None
        for number, answer in self._answers(generate):
            scores = self._scores(answer, joined)
            result = _result(scores, self.delta, number)
            attempts.append(result)
            if best is None or result.accepted or scores.delta_r < best[0]:
                best = (scores.delta_r, answer, result)
            if result.accepted:
                break
        if best is None:
            raise InputError("there is no answer to verify")
        return RetryResult(answer=best[1], best=best[2], attempts=tuple(attempts))

    def per_sentence(self, answer: str, context: str | Sequence[str | Passage]) -> tuple[SentenceResult, ...]:
        """Score every sentence of an answer against the whole context; blank segments are left out."""
        joined = _joined(context)
        return tuple(
            SentenceResult(sentence=s, result=_result(self._scores(s.body, joined), self.delta, 1))
            for s in _sentences(answer)
        )

    def citation_trace(self, answer: str, passages: Sequence[str | Passage]) -> tuple[SentenceCitation, ...]:
        """Find for every sentence the passage it resembles most, by ROUGE-L F1.

        Args:
            answer: The answer.
            passages: The passages; the first has the label ``[C1]``.

        Returns:
            One entry per sentence, in order.
        """
        if isinstance(passages, str):
            raise InputError("citation_trace needs the passages one by one, not as one string")
        labelled = {f"[C{i}]": reference_tokens(_text(p)) for i, p in enumerate(passages, start=1)}
        return tuple(_citation(sentence, labelled) for sentence in _sentences(answer))

    def report(self, answer: str, context: str | Sequence[str | Passage], attempt: int = 1) -> ReferenceReport:
        """Everything about one answer: scores, margin, sentences, and a verdict in words."""
        number = _attempt(attempt, "attempt", InputError)
        joined = _joined(context)
        scores = self._scores(answer, joined)
        result = _result(scores, self.delta, number)
        sentences = self.per_sentence(answer, joined)
        return ReferenceReport(
            result=result,
            delta=self.delta,
            margin=_rounded(self.delta - scores.delta_r),
            answer_tokens=len(reference_tokens(answer)),
            context_tokens=len(reference_tokens(joined)),
            sentences=sentences,
            hallucinated=tuple(s for s in sentences if s.hallucinated),
            verdict=_in_words(result, scores),
        )

    def rank(self, answers: Sequence[str], context: str | Sequence[str | Passage]) -> tuple[RankedAnswer, ...]:
        """Order answers by ascending ΔR (before rounding); equal ones keep their order."""
        if isinstance(answers, str):
            raise InputError("answers must be a sequence of texts, not one string")
        joined = _joined(context)
        scored = [(self._scores(answer, joined), i, answer) for i, answer in enumerate(answers)]
        scored.sort(key=lambda entry: entry[0].delta_r)
        return tuple(
            RankedAnswer(index=i, answer=answer, result=_result(scores, self.delta, 1)) for scores, i, answer in scored
        )

    def threshold_table(
        self,
        answer: str,
        context: str | Sequence[str | Passage],
        thresholds: Sequence[float] = THRESHOLDS,
    ) -> dict[float, bool]:
        """Whether an answer would be accepted at each of several values of δ."""
        delta_r = self._scores(answer, _joined(context)).delta_r
        return {delta: _at_most(delta_r, _threshold(delta)) for delta in thresholds}

    def _scores(self, answer: str, context: str) -> _Scores:
        if not isinstance(answer, str):
            raise InputError(f"an answer must be a string, got {type(answer).__name__}")
        left, right = reference_tokens(answer), reference_tokens(context)
        rouge_l = rouge_l_f1(left, right)
        entailment, source = rouge_l, "rouge_l"
        if self.entailment is not None:
            entailment, source = (self._ask(answer, context), "model") if left and right else (0.0, "empty")
        return _Scores(rouge_n_f1(left, right, 1), rouge_n_f1(left, right, 2), rouge_l, entailment, source)

    def _ask(self, answer: str, context: str) -> float:
        assert self.entailment is not None
        try:
            value: Any = self.entailment(answer, context)
        except ScoringError:
            raise
        except Exception as error:
            raise ScoringError(f"the entailment callable raised {type(error).__name__}") from error
        if inspect.iscoroutine(value):
            value.close()  # an async callable was handed in: it is refused below, without a warning on top
        return probability(value, scorer="the entailment callable")

    def _answers(self, generate: Callable[[int], str] | Iterable[str]) -> Iterable[tuple[int, str]]:
        if isinstance(generate, str):
            raise InputError("generate must be a callable or several answers, not one string")
        source = None if callable(generate) else iter(generate)
        for number in range(1, self.max_attempts + 1):
            try:
                answer: Any = next(source) if source is not None else generate(number)  # type: ignore[operator]
            except StopIteration:
                return
            except Exception as error:
                raise GenerationError(f"the generator raised {type(error).__name__}", attempt=number) from error
            if not isinstance(answer, str):
                raise GenerationError(f"the generator returned {type(answer).__name__}, not text", attempt=number)
            yield number, answer


def band(delta_r: float, delta: float = PRESETS["default"]) -> str:
    """The published word for a value of ΔR.

    The bands are tested in this order, so with δ < 0.05 an answer can be ``"excellent"`` and yet not accepted.

    Args:
        delta_r: ΔR in [0, 1], not rounded.
        delta: Threshold δ.

    Returns:
        ``"excellent"`` (≤ 0.05), ``"accepted"`` (≤ δ), ``"borderline"`` (≤ 0.35) or ``"hallucination"``.

    Example:
        >>> [band(x) for x in (0.05, 0.15, 0.35, 0.36)]
        ['excellent', 'accepted', 'borderline', 'hallucination']
    """
    for limit, word in ((0.05, "excellent"), (delta, "accepted"), (0.35, "borderline")):
        if _at_most(delta_r, limit):
            return word
    return "hallucination"


def _at_most(delta_r: float, delta: float) -> bool:
    return delta_r <= delta + _FLOAT_NOISE


def _result(scores: _Scores, delta: float, attempt: int) -> ReferenceResult:
    return ReferenceResult(
        delta_r=_rounded(scores.delta_r),
        rouge_1=_rounded(scores.rouge_1),
        rouge_2=_rounded(scores.rouge_2),
        rouge_l=_rounded(scores.rouge_l),
        entailment=_rounded(scores.entailment),
        entailment_source=scores.source,
        grounding=_rounded(1.0 - scores.delta_r),
        delta=delta,
        accepted=_at_most(scores.delta_r, delta),
        band=band(scores.delta_r, delta),
        attempt=attempt,
    )


def _in_words(result: ReferenceResult, scores: _Scores) -> str:
    comparison = "≤" if result.accepted else ">"
    head = f"{'accepted' if result.accepted else 'rejected'} ({result.band}): ΔR {result.delta_r:.4f} {comparison} δ "
    head += f"{result.delta:g}; "
    if scores.source == "empty":
        return head + "the answer or the context has no words"
    if scores.source == "rouge_l":
        return head + f"ROUGE-L {result.rouge_l:.4f} is the only signal, as there is no entailment model"
    if scores.rouge_l == scores.entailment:
        return head + f"ROUGE-L and entailment are equal ({result.rouge_l:.4f})"
    if scores.rouge_l < scores.entailment:
        return head + f"the weaker signal is ROUGE-L ({result.rouge_l:.4f}, entailment {result.entailment:.4f})"
    return head + f"the weaker signal is entailment ({result.entailment:.4f}, ROUGE-L {result.rouge_l:.4f})"


def _citation(sentence: Segment, labelled: Mapping[str, list[str]]) -> SentenceCitation:
    tokens = reference_tokens(sentence.body)
    scores = {label: rouge_l_f1(tokens, passage) for label, passage in labelled.items()}
    best = max(scores, key=scores.__getitem__, default=None)
    top = scores[best] if best is not None else 0.0
    return SentenceCitation(
        sentence=sentence,
        scores=MappingProxyType({label: _rounded(score) for label, score in scores.items()}),
        best=best if top > 0.0 else None,
        flagged=top <= CITATION_FLOOR,
    )


def _sentences(answer: str) -> list[Segment]:
    if not isinstance(answer, str):
        raise InputError(f"an answer must be a string, got {type(answer).__name__}")
    return [s for s in segment(answer) if s.kind is not SegmentKind.BLANK]


def _joined(context: str | Sequence[str | Passage]) -> str:
    if isinstance(context, str):
        return context
    if not isinstance(context, Iterable):
        raise InputError(f"a context must be a string or a sequence of passages, got {type(context).__name__}")
    return "\n".join(_text(passage) for passage in context)


def _text(passage: str | Passage) -> str:
    text = passage.text if isinstance(passage, Passage) else passage
    if not isinstance(text, str):
        raise InputError(f"a passage must be a string or a Passage, got {type(passage).__name__}")
    return text


def _threshold(delta: float) -> float:
    if isinstance(delta, bool) or not isinstance(delta, int | float) or not 0.0 <= delta <= 1.0:
        raise ConfigurationError(f"delta must be a number in [0, 1], got {delta!r}")
    return float(delta)


def _attempt(number: int, name: str, error: type[ConfigurationError] | type[InputError]) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise error(f"{name} must be an integer of at least 1, got {number!r}")
    return number


def _rounded(value: float) -> float:
    return round(value, 4) + 0.0  # no negative zero
