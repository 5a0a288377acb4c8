"""Runs with limits, and what was asked of limiter and budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from guardrail import (
    Decision,
    Guardrail,
    Outcome,
    Policy,
)
from guardrail.testing import ScriptedGenerator
from tests.streaming.helpers import (
    HALL,
    LENIENT_WORDS,
    QUESTION,
    guard_for,
)

ONE, TWO = "The old hall keeps a wooden clock near its door.", "The garden grows tall roses by the wall."


WRONG = "The zqx cellar hides rare coins."


CONTEXT = [HALL, "The cellar is empty.", "A river passes the town."]


YES, NO = Decision(allowed=True), Decision(allowed=False, retry_after_s=2.5, source="local", limit="60 calls per 60 s")


def policy(**settings: Any) -> Policy:
    return LENIENT_WORDS.override(**{"release": "answer", "stop_on_repeat": False, **settings})


class Log:
    """A limiter and a budget that say what they are told to, and write down what they are asked."""

    def __init__(self, *, limiter: Sequence[Any] = (YES,), budget: Sequence[Any] = (YES,), first: Any = None) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self._answers = {"acquire": list(limiter), "take": list(budget), "first": [first]}

    def _answer(self, *what: Any) -> Any:
        self.asked.append(what)
        answers = self._answers[what[0]]
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, BaseException):
            raise answer
        return answer

    async def acquire(self, key: str, cost: float = 1.0, timeout_s: float | None = None) -> Any:
        return self._answer("acquire", key)

    async def first(self, key: str) -> Any:
        return self._answer("first", key)

    async def take(self, key: str, attempt: int) -> Any:
        return self._answer("take", key, attempt)

    def guard(self, **more: Any) -> Guardrail:
        more.setdefault("policy", policy())
        return guard_for(ONE, TWO, limiter=self, budget=self, **more)


async def run(guard: Guardrail, *answers: Any, key: str = "tenant") -> Outcome:
    return await guard.run(ScriptedGenerator(*answers), question=QUESTION, context=CONTEXT, key=key)
