"""Tokens of a run are settled, however it ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from guardrail import (
    Decision,
    LocalLimiter,
    RateLimitedError,
    RedisLimiter,
    RedisRegenerationBudget,
    RegenerationBudget,
    SettlingLimiter,
)
from guardrail.limits.charging import tokens_of
from guardrail.redis_store import RedisStore
from guardrail.testing import ScriptedGenerator
from tests.integration.limited_runs import CONTEXT, ONE, TWO, WRONG, Log, policy, run
from tests.redis_server import free_port
from tests.streaming.helpers import (
    QUESTION,
    Counts,
    generator,
    guard_for,
    others,
    quiet,
    turns,
)


def usage(given: int | None, answered: int | None) -> dict[str, Any]:
    counts = {"input_tokens": given, "output_tokens": answered}
    return {"text": "", "usage_metadata": {name: count for name, count in counts.items() if count is not None}}


def raises(error: BaseException) -> Callable[..., Any]:
    async def fail(*_: Any) -> Any:
        raise error

    return fail


class Settling:
    """A limiter that reserves tokens, and gets told what was used."""

    def __init__(self, *, then: Callable[[], Any] | None = None) -> None:
        self.reserved = 0
        self.settled: list[tuple[int, float]] = []
        self._then = then

    async def acquire(self, key: str, cost: float = 1.0, timeout_s: float | None = None) -> Decision:
        self.reserved += 1
        return Decision(allowed=True, reservation=self.reserved)

    async def settle(self, decision: Decision, tokens: float) -> None:
        self.settled.append((decision.reservation, tokens))
        if self._then is not None:
            await self._then()


async def test_every_attempt_is_settled_with_what_it_reported():
    limiter = Settling()
    assert isinstance(limiter, SettlingLimiter)
    outcome = await run(
        guard_for(ONE, limiter=limiter, policy=policy()),
        [WRONG, usage(30, 7)],
        [WRONG],
        [ONE, usage(25, 5)],
    )
    assert outcome.accepted
    assert limiter.settled == [(1, 37.0), (3, 30.0)]  # the second reported nothing: its reservation stays


@pytest.mark.parametrize(
    ("reported", "tokens"),
    [
        ({"input_tokens": 3, "output_tokens": 4, "total_tokens": 9}, 7.0),
        ({"output_tokens": 4}, 4.0),
        ({"total_tokens": 9}, 9.0),
        ({"input_tokens": 0}, 0.0),
        ({"input_tokens": -5, "output_tokens": 4}, 4.0),
        ({}, None),
        ({"cached": 3}, None),
    ],
)
def test_the_tokens_of_a_call(reported: dict[str, int], tokens: float | None):
    assert tokens_of(reported) == tokens


@pytest.mark.parametrize("way", ["aclose", "cancel", "break"])
async def test_a_reader_who_leaves_early_still_settles(way: str):
    limiter, counts = Settling(then=lambda: turns(3)), Counts()
    guard = guard_for(ONE, TWO, limiter=limiter, policy=policy(release="sentence"))
    source = generator([[usage(30, 2), ONE + " ", TWO + " ", *["and so on "] * 50]], counts, pause=1)
    with quiet():
        stream = guard.stream(source, question=QUESTION, context=CONTEXT)
        if way == "break":
            async with stream:
                async for _ in stream:
                    break
        else:
            assert await anext(stream)
            task = asyncio.create_task(anext(stream))
            await asyncio.sleep(0)
            if way == "cancel":
                task.cancel()
            else:
                await stream.aclose()
            await asyncio.gather(task, return_exceptions=True)
            await stream.aclose()
    assert limiter.settled == [(1, 32.0)]
    assert counts.all_closed
    assert others() == set()


@pytest.mark.parametrize("bad", [ConnectionError("zqx"), TimeoutError("zqx"), asyncio.CancelledError("zqx")], ids=repr)
async def test_an_attempt_that_fails_still_settles(bad: BaseException):
    limiter = Settling()
    guard = guard_for(ONE, limiter=limiter, policy=policy())
    with pytest.raises(Exception, match="generator") as caught:
        await run(guard, [usage(12, 1), ONE + " ", bad])
    assert caught.value.outcome.reason == "generation_error"
    assert limiter.settled == [(1, 13.0)]


@pytest.mark.parametrize("way", ["cancel", "timeout"])
async def test_a_charge_for_an_attempt_that_never_began_is_given_back(way: str):
    class Waits(Log):
        async def first(self, key: str) -> None:
            await super().first(key)
            await asyncio.Event().wait()

    limiter, budget = Settling(then=lambda: turns(3)), Waits()
    settings = policy(timeout_s=0.05) if way == "timeout" else policy()
    guard = guard_for(ONE, limiter=limiter, budget=budget, policy=settings)
    task = asyncio.create_task(run(guard, ONE))
    while way == "cancel" and not budget.asked:
        await asyncio.sleep(0)
    if way == "cancel":
        task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert limiter.settled == [(1, 0.0)]
    assert others() == set()


async def test_a_degraded_charge_that_the_policy_does_not_accept_is_given_back():
    class Degraded(Settling):
        async def acquire(self, key: str, cost: float = 1.0, timeout_s: float | None = None) -> Decision:
            return replace(await super().acquire(key, cost, timeout_s), degraded="redis_timeout")

    limiter = Degraded()
    with pytest.raises(RateLimitedError):
        await run(guard_for(ONE, limiter=limiter, policy=policy(on_degraded_limits="refuse")), ONE)
    assert limiter.settled == [(1, 0.0)]


@pytest.mark.parametrize("limit", ["timeout_s", "token_timeout_s"])
async def test_an_attempt_that_takes_too_long_still_settles(limit: str):
    async def hangs(question: str) -> Any:
        yield usage(12, 1)
        await asyncio.Event().wait()

    limiter = Settling()
    guard = guard_for(ONE, limiter=limiter, policy=policy(**{limit: 0.05}))
    with pytest.raises(TimeoutError):
        await guard.run(hangs, question=QUESTION, context=CONTEXT)
    assert limiter.settled == [(1, 13.0)]
    assert others() == set()


async def test_settling_does_not_delay_the_text():
    gate = asyncio.Event()
    limiter = Settling(then=gate.wait)
    guard = guard_for(ONE, limiter=limiter, policy=policy())
    stream = guard.stream(ScriptedGenerator([ONE, usage(3, 4)]), question=QUESTION, context=CONTEXT)
    assert "".join([text async for text in stream]) == ONE
    assert limiter.settled == [(1, 7.0)]
    assert others()  # still settling
    gate.set()
    await stream.aclose()
    assert others() == set()


async def test_settling_that_hangs_is_given_up(caplog: pytest.LogCaptureFixture):
    limiter = Settling(then=asyncio.Event().wait)
    guard = guard_for(ONE, limiter=limiter, policy=policy())
    started = asyncio.get_running_loop().time()
    with caplog.at_level(logging.WARNING, logger="guardrail"):
        assert (await run(guard, [ONE, usage(3, 4)])).accepted
    assert asyncio.get_running_loop().time() - started < 2.0
    assert "settling a charge took too long" in caplog.text
    assert others() == set()


@pytest.mark.parametrize("bad", [ConnectionError("zqx"), TimeoutError("zqx"), asyncio.CancelledError("zqx")], ids=repr)
async def test_settling_that_fails_is_logged_by_type(bad: BaseException, caplog: pytest.LogCaptureFixture):
    guard = guard_for(ONE, limiter=Settling(then=raises(bad)), policy=policy())
    with caplog.at_level(logging.WARNING, logger="guardrail"):
        assert (await run(guard, [WRONG, usage(3, 4)], [ONE, usage(3, 4)])).accepted
    assert caplog.text.count(f"settling a charge raised {type(bad).__name__}") == 2
    assert "zqx" not in caplog.text


async def test_the_next_attempt_waits_for_the_settlement_of_the_last():
    log: list[str] = []

    class Ordered(Settling):
        async def acquire(self, key: str, cost: float = 1.0, timeout_s: float | None = None) -> Decision:
            log.append("acquire")
            return await super().acquire(key, cost, timeout_s)

        async def settle(self, decision: Decision, tokens: float) -> None:
            await turns(50)
            log.append("settled")

    guard = guard_for(ONE, limiter=Ordered(), policy=policy())
    assert (await run(guard, [WRONG, usage(3, 4)], [ONE, usage(3, 4)])).accepted
    assert log == ["acquire", "settled", "acquire", "settled"]


@pytest.mark.parametrize("where", ["local", "redis"])
async def test_tokens_that_were_not_used_are_there_for_others(where: str, redis_url: str):
    limits = ["1000 tokens/min", "100/min"]
    limiter = LocalLimiter(limits, tokens_per_call=400) if where == "local" else None
    async with limiter or RedisLimiter(redis_url, limits, tokens_per_call=400) as one:
        guard = guard_for(ONE, limiter=one, policy=policy(timeout_s=5.0))
        for _ in range(7):  # 400 are reserved for each, 100 used
            outcome = await run(guard, [ONE, usage(60, 40)])
            assert outcome.accepted
            assert outcome.degraded == ()
        with pytest.raises(RateLimitedError) as caught:
            await run(guard, [ONE, usage(60, 40)])
        assert 5.0 < caught.value.retry_after_s <= 60.0
        assert "1000 tokens per 60 s" in str(caught.value)
        assert (await run(guard, [ONE, usage(900, 40)], key="other")).accepted


@pytest.mark.parametrize("on_error", ["local", "open", "closed"])
async def test_a_limiter_and_a_budget_whose_redis_is_gone(on_error: Any):
    store = RedisStore(f"redis://127.0.0.1:{free_port()}/0")
    limiter = RedisLimiter(store, "60/min", on_error=on_error)
    budget = RedisRegenerationBudget(store, on_error=on_error)
    guard = guard_for(ONE, limiter=limiter, budget=budget, policy=policy())
    if on_error == "closed":
        with pytest.raises(RateLimitedError) as caught:
            await run(guard, WRONG, [ONE, usage(3, 4)])
        outcome = caught.value.outcome
    else:
        outcome = await run(guard, WRONG, [ONE, usage(3, 4)])
        assert outcome.accepted
    assert set(outcome.degraded) <= {"redis_refused", "redis_breaker_open"}
    assert outcome.degraded
    await limiter.aclose()
    await store.aclose()


async def test_settling_that_cannot_even_be_cancelled_is_left_behind(caplog: pytest.LogCaptureFixture):
    gate = asyncio.Event()

    async def clings() -> None:
        while not gate.is_set():
            try:
                await gate.wait()
            except asyncio.CancelledError:
                continue

    guard = guard_for(ONE, limiter=Settling(then=clings), policy=policy())
    with caplog.at_level(logging.WARNING, logger="guardrail"):
        assert (await run(guard, [ONE, usage(3, 4)])).accepted
    assert "settling a charge did not end" in caplog.text
    (left,) = others()
    gate.set()
    await asyncio.wait({left})


def test_whenever_the_reader_leaves_each_charge_is_settled_once_and_nothing_is_left():
    async def leave_after(step: int) -> bool:
        limiter, counts = Settling(then=lambda: turns(2)), Counts()
        budget = RegenerationBudget(share=0.0, floor_per_min=100)
        guard = guard_for(ONE, TWO, limiter=limiter, budget=budget, policy=policy())
        source = generator([[usage(30, 2), WRONG], [usage(20, 1), ONE]], counts)
        stream = guard.stream(source, question=QUESTION, context=CONTEXT)
        task = asyncio.create_task(stream.outcome())
        await turns(step)
        done = task.done()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await stream.aclose()
        assert counts.all_closed
        assert others() == set()
        expected = {1: 32.0, 2: 21.0}
        assert limiter.settled == [(number, expected[number]) for number, _ in limiter.settled]
        assert len(limiter.settled) == len(set(limiter.settled)) <= limiter.reserved
        if counts.pulled in (2, 4):  # every generator that was called had reported
            assert len(limiter.settled) == counts.calls
        return done

    with quiet():
        for step in range(400):
            if asyncio.run(leave_after(step)):
                return
    raise AssertionError("the run does not end")
