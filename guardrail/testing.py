"""Doubles for testing code that uses guardrail: scripted generators and judges, a fake scorer, a still clock."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Any

from guardrail.evaluation.judging.verdicts import Judgement, JudgeVerdict
from guardrail.protocols import Pair
from guardrail.types import EntailmentScore, GenerationRequest


class ScriptedGenerator:
    """A generator that plays prepared answers, one per call, and remembers what it was asked.

    Args:
        *answers: One answer per call: a text (sent in words), an iterable of chunks, or an exception, which is raised
            in the place where it stands. The last answer is repeated if there are more calls.
        can_continue: Whether the generator takes ``released_text``; its later answers are then continuations.

    Attributes:
        requests: The requests so far.
        opened: Streams that were begun.
        closed: Streams that were closed; equal to ``opened`` when nothing leaks.

    Example:
        >>> from guardrail import Guardrail
        >>> model = ScriptedGenerator("Entry is 5 euro.", "Entry is free.")
        >>> outcome = Guardrail().run_sync(model, question="What is the fee?", context=["Entry is free."])
        >>> outcome.text, len(model.requests), model.opened == model.closed
        ('Entry is free.', 2, True)
    """

    def __init__(self, *answers: str | BaseException | Iterable[Any], can_continue: bool = False) -> None:
        if not answers:
            raise ValueError("a scripted generator needs at least one answer")
        self._answers = answers
        self.can_continue = can_continue
        self.requests: list[GenerationRequest] = []
        self.opened = 0
        self.closed = 0

    async def __call__(self, request: GenerationRequest) -> AsyncIterator[Any]:
        """Play the next answer."""
        answer = self._answers[min(len(self.requests), len(self._answers) - 1)]
        self.requests.append(request)
        self.opened += 1
        try:
            for chunk in _chunks(answer):
                if isinstance(chunk, BaseException):
                    raise chunk
                yield chunk
        finally:
            self.closed += 1


def _chunks(answer: str | BaseException | Iterable[Any]) -> Iterable[Any]:
    if isinstance(answer, BaseException):
        return [answer]
    if isinstance(answer, str):
        words = answer.split(" ")
        return [word + " " for word in words[:-1]] + words[-1:]
    return answer


class FakeEntailment:
    """An entailment model that says what the test says.

    Args:
        score: Called with (premise, hypothesis); gives P(entailment), a whole score, or raises.

    Attributes:
        pairs: Every pair that was scored.
    """

    def __init__(self, score: Callable[[str, str], float | EntailmentScore] | Mapping[str, float] | float) -> None:
        self._score = score
        self.pairs: list[Pair] = []

    @property
    def model_id(self) -> str:
        """``"fake"``."""
        return "fake"

    async def score(self, pairs: Sequence[Pair]) -> list[EntailmentScore]:
        """Score pairs as told; hypotheses that a mapping does not have score 0."""
        self.pairs.extend(pairs)
        return [self._one(pair) for pair in pairs]

    def _one(self, pair: Pair) -> EntailmentScore:
        if callable(self._score):
            value = self._score(pair.premise, pair.hypothesis)
        elif isinstance(self._score, Mapping):
            value = self._score.get(pair.hypothesis, 0.0)
        else:
            value = self._score
        return value if isinstance(value, EntailmentScore) else EntailmentScore(entailment=value)


class ScriptedJudge:
    """A judge that says what the test says.

    Args:
        verdict: By hypothesis (a mapping or a callable), or the same for all: a verdict (``"yes"``, ``"no"``,
            ``"partial"``, in any letter case), a whole :class:`~guardrail.evaluation.judging.Judgement`, or any other
            text, which is the error (``"timeout"``). An exception is raised. Hypotheses that a mapping does not have
            are not supported.
        judge_id: Name in results.

    Attributes:
        pairs: Every pair that was asked.
        calls: How often :meth:`judge` was called.

    Example:
        >>> import asyncio
        >>> judge = ScriptedJudge({"Entry is free.": "yes", "Dogs are welcome.": "timeout"})
        >>> asked = [Pair("Entry is free.", claim) for claim in ("Entry is free.", "Dogs are welcome.", "It rains.")]
        >>> [judgement.verdict or judgement.error for judgement in asyncio.run(judge.judge(asked))]
        [<JudgeVerdict.YES: 'yes'>, 'timeout', <JudgeVerdict.NO: 'no'>]
    """

    def __init__(
        self,
        verdict: Callable[[str], str | Judgement | Exception] | Mapping[str, str | Judgement | Exception] | str,
        *,
        judge_id: str = "scripted",
    ) -> None:
        self._verdict = verdict
        self._judge_id = judge_id
        self.pairs: list[Pair] = []
        self.calls = 0

    @property
    def judge_id(self) -> str:
        """The name that was given."""
        return self._judge_id

    async def judge(self, pairs: Sequence[Pair]) -> list[Judgement]:
        """Judge pairs as told, in order."""
        self.calls += 1
        self.pairs.extend(pairs)
        return [self._one(pair.hypothesis) for pair in pairs]

    def _one(self, hypothesis: str) -> Judgement:
        if isinstance(self._verdict, str):
            said: str | Judgement | Exception = self._verdict
        elif isinstance(self._verdict, Mapping):
            said = self._verdict.get(hypothesis, JudgeVerdict.NO)
        else:
            said = self._verdict(hypothesis)
        if isinstance(said, Exception):
            raise said
        if isinstance(said, Judgement):
            return said
        known = {verdict.value for verdict in JudgeVerdict}
        return Judgement(verdict=JudgeVerdict(said.lower())) if said.lower() in known else Judgement(error=said)


class ManualClock:
    """A clock that moves only when told.

    Example:
        >>> clock = ManualClock()
        >>> clock.advance(1.5)
        >>> clock()
        1.5
    """

    def __init__(self, now_s: float = 0.0) -> None:
        self._now_s = now_s

    def __call__(self) -> float:
        """The current time in seconds."""
        return self._now_s

    def advance(self, seconds: float) -> None:
        """Move forward."""
        self._now_s += seconds
