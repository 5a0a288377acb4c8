"""Asks a judge about many pairs with a deadline, and believes nothing that is not a judgement."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Sequence
from itertools import islice

from guardrail.evaluation.judging.leaving import leave
from guardrail.evaluation.judging.verdicts import Judge, Judgement, JudgeVerdict
from guardrail.protocols import Pair

_log = logging.getLogger("guardrail")

_CLOSE_GRACE_S = 0.2
_LONGEST_REASON = 40
_FAILED = Judgement(error="failed")
_LATE = Judgement(error="timeout")


async def judge_in_time(judge: Judge, pairs: Sequence[Pair], deadline_s: float | None) -> list[Judgement]:
    """Ask about each pair in a call of its own, so that one that is late takes no other with it.

    Args:
        judge: The judge. How many calls run at a time is its own affair.
        pairs: Different pairs.
        deadline_s: Seconds for all of them together; ``None`` for no limit.

    Returns:
        One judgement per pair. What is not there by then is an error ``"timeout"``; a judge that raises, that gives
        anything but one judgement, or whose judgement is none, is an error ``"failed"``.

    Calls that are under way at the deadline, or when the caller is cancelled, are cancelled, and waited for briefly.
    """
    if not pairs:
        return []
    ends = math.inf if deadline_s is None else asyncio.get_running_loop().time() + deadline_s
    tasks = [asyncio.create_task(_ask(judge, pair, ends)) for pair in pairs]
    try:
        done, _ = await asyncio.wait(tasks, timeout=deadline_s)
        return [_result(task) if task in done else _LATE for task in tasks]
    finally:
        stuck = await leave(tasks, _CLOSE_GRACE_S)
        if stuck:
            _log.warning("%d call(s) of a judge did not end within %g s of being cancelled", stuck, _CLOSE_GRACE_S)


async def _ask(judge: Judge, pair: Pair, ends: float) -> Judgement:
    now = asyncio.get_running_loop().time
    if now() >= ends:
        return _LATE  # another judgement kept the event loop from going on
    try:
        found: list[object] = list(islice(await judge.judge([pair]), 2))
    except Exception as error:
        # The message of a foreign exception may quote the text.
        _log.warning("a judge raised %s; that counts as no verdict", type(error).__name__)
        return _FAILED
    if now() >= ends:
        return _LATE
    return _checked(found[0]) if len(found) == 1 else _FAILED


def _checked(found: object) -> Judgement:
    if not isinstance(found, Judgement) or (found.verdict is None) == (not found.error):
        return _FAILED
    if found.verdict is not None:
        return found if isinstance(found.verdict, JudgeVerdict) else _FAILED
    told = isinstance(found.error, str) and found.error.isidentifier() and len(found.error) <= _LONGEST_REASON
    return found if told else _FAILED  # a reason goes into verdicts and traces, where no text may go


def _result(task: asyncio.Task[Judgement]) -> Judgement:
    # A judge may raise CancelledError by itself, or what else is no Exception.
    return _FAILED if task.cancelled() or task.exception() is not None else task.result()
