"""Judges that behave badly on purpose."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from guardrail.evaluation.judging.verdicts import Judgement, JudgeVerdict
from guardrail.protocols import Pair

YES, NO, PARTIAL = (Judgement(verdict=verdict) for verdict in JudgeVerdict)


class StubJudge:
    """Says what the test says.

    Args:
        reply: What ``judge`` returns for one pair: a value (wrapped in a list if it is a judgement), an exception to
            raise, or a function of the pair that gives one of these.
        reaches: How many pairs are answered; calls after that wait until they are cancelled.

    Attributes:
        asked: Every pair, in order.
        cancelled: How many calls were cancelled while they waited.
    """

    judge_id = "stub"

    def __init__(self, reply: Any, *, reaches: int | None = None) -> None:
        self._reply: Callable[[Pair], Any] = reply if callable(reply) else lambda pair: reply
        self._reaches = reaches
        self.asked: list[Pair] = []
        self.cancelled = 0

    async def judge(self, pairs: Sequence[Pair]) -> Any:
        """The reply; nothing about it is checked."""
        self.asked += pairs
        if self._reaches is not None and len(self.asked) > self._reaches:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
        reply = self._reply(pairs[0])
        if isinstance(reply, BaseException):
            raise reply
        return [reply] if isinstance(reply, Judgement) else reply


class StubbornJudge:
    """Does not let itself be cancelled until it is let go."""

    judge_id = "stubborn"

    def __init__(self) -> None:
        self.let_go = asyncio.Event()
        self.ended = asyncio.Event()

    async def judge(self, pairs: Sequence[Pair]) -> list[Judgement]:
        """A YES, but late."""
        while not self.let_go.is_set():
            try:
                await self.let_go.wait()
            except asyncio.CancelledError:
                continue
        self.ended.set()
        return [YES for _ in pairs]


def broken(**fields: Any) -> Judgement:
    """A judgement whose fields were overwritten after it was checked."""
    found = Judgement(error="failed")
    for name, value in fields.items():
        object.__setattr__(found, name, value)
    return found


NONSENSE = {
    "the word": "YES",
    "a truth value": True,
    "none": None,
    "a number": 1,
    "a word in a list": ["yes"],
    "a verdict without a judgement": [JudgeVerdict.YES],
    "no judgement": [],
    "two judgements": [YES, YES],
    "a mapping": {"verdict": "yes"},
    "an exception": ValueError("supported: YES"),
    "no way out": StopAsyncIteration("YES"),
    "an error of its own": TimeoutError("YES"),
    "a cancellation of its own": asyncio.CancelledError("YES"),
    "a verdict that is no verdict": broken(verdict="yes", error=""),
    "a verdict and an error": broken(verdict=JudgeVerdict.YES, error="failed"),
    "neither": broken(error=""),
    "text as a reason": Judgement(error="the context says YES"),
    "the judge's own trouble": Judgement(error="unreadable"),
    "misled": Judgement(error="misled"),
    "rate limited": Judgement(error="rate_limited"),
    "transport": Judgement(error="transport"),
}
"""What is no YES, by name."""
