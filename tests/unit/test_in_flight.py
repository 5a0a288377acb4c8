from __future__ import annotations

import asyncio

import pytest

from guardrail.protocols import Pair
from guardrail.scoring.entailment.in_flight import InFlight
from guardrail.types import EntailmentScore

A, B, C = (Pair(f"premise {name}", "claim") for name in "abc")
KEYS = {A: "a", B: "b", C: "c"}


class Model:
    """Answers when it is told to; scores by the last letter of the premise."""

    def __init__(self):
        self.asked = []
        self.go = asyncio.Event()
        self.fail = False

    async def __call__(self, pairs):
        self.asked.append(list(pairs))
        await self.go.wait()
        if self.fail:
            raise ValueError("broken")
        return [EntailmentScore(entailment=ord(pair.premise[-1]) / 200) for pair in pairs]


def keyed(*pairs):
    return {pair: KEYS[pair] for pair in pairs}


async def started(*coroutines):
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    for _ in range(3):
        await asyncio.sleep(0)
    return tasks


async def test_a_pair_that_somebody_asks_for_is_not_asked_for_again():
    flight, model = InFlight(), Model()
    first, second, third = await started(*(flight.through(keyed(*pairs), model) for pairs in ((A, B), (B, C), (A, B))))
    assert model.asked == [[A, B], [C]]
    model.go.set()
    assert set(await first) == {A, B}
    assert (await second)[B] == (await first)[B] == EntailmentScore(entailment=ord("b") / 200)
    assert await third == await first
    assert set(await second) == {B, C}


async def test_what_has_ended_is_asked_for_again():
    flight, model = InFlight(), Model()
    model.go.set()
    for _ in range(2):
        await flight.through(keyed(A), model)
    assert model.asked == [[A], [A]]


async def test_nothing_is_asked_for_nothing():
    model = Model()
    assert await InFlight().through({}, model) == {}
    assert model.asked == []


async def test_who_waited_for_a_caller_that_was_cancelled_asks_itself():
    flight, model = InFlight(), Model()
    first, second = await started(flight.through(keyed(A, B), model), flight.through(keyed(B), model))
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    await started()
    assert model.asked == [[A, B], [B]]
    model.go.set()
    assert set(await second) == {B}


async def test_cancelling_who_waits_disturbs_nobody():
    flight, model = InFlight(), Model()
    first, second, third = await started(*(flight.through(keyed(A), model) for _ in range(3)))
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    model.go.set()
    assert await first == await third
    assert model.asked == [[A]]


async def test_a_failure_is_for_the_one_who_asked():
    flight, model = InFlight(), Model()
    model.fail = True
    first, second = await started(flight.through(keyed(A), model), flight.through(keyed(A), model))
    model.go.set()
    with pytest.raises(ValueError, match="broken"):
        await first
    with pytest.raises(ValueError, match="broken"):
        await second
    assert model.asked == [[A], [A]]


async def test_crossing_callers_do_not_wait_for_each_other():
    flight, model = InFlight(), Model()
    tasks = await started(
        flight.through(keyed(A, B), model), flight.through(keyed(C, B), model), flight.through(keyed(B, C, A), model)
    )
    model.go.set()
    async with asyncio.timeout(5):
        results = await asyncio.gather(*tasks)
    assert [set(found) for found in results] == [{A, B}, {B, C}, {A, B, C}]


async def test_too_few_scores_are_an_error_and_leave_nothing_behind():
    flight = InFlight()

    async def nothing(pairs):
        return []

    with pytest.raises(ValueError, match="zip"):
        await flight.through(keyed(A), nothing)
    model = Model()
    model.go.set()
    assert set(await flight.through(keyed(A), model)) == {A}
