"""The regeneration budget in process: share, floor, window, order of degradation, keys, memory."""

from __future__ import annotations

import random
import threading
from collections import deque
from typing import Any

import pytest

from guardrail.errors import ConfigurationError
from guardrail.limits.budget import BudgetTerms, RegenerationBudget, Tally
from guardrail.limits.costs import digest_of
from guardrail.testing import ManualClock


def budget(clock: ManualClock | None = None, **settings: Any) -> RegenerationBudget:
    return RegenerationBudget(clock=clock or ManualClock(), **settings)


async def firsts(of: RegenerationBudget, count: int, key: str = "tenant") -> None:
    for _ in range(count):
        await of.first(key)


async def taken(of: RegenerationBudget, attempt: int = 2, key: str = "tenant", at_most: int = 1000) -> int:
    """How many regenerations are allowed in a row."""
    for count in range(at_most):
        if not (await of.take(key, attempt)).allowed:
            return count
    return at_most


@pytest.mark.parametrize(
    ("share", "floor", "first_attempts", "allowed"),
    [
        (0.2, 0, 0, 0),
        (0.2, 0, 4, 0),
        (0.2, 0, 5, 1),
        (0.2, 0, 9, 1),
        (0.2, 0, 100, 20),
        (0.2, 10, 0, 10),
        (0.2, 10, 100, 30),
        (0.0, 3, 100, 3),
        (1.0, 0, 7, 7),
        (0.1, 0.5, 5, 1),
        (0.3, 0, 10, 3),
        (1 / 3, 0, 3, 0),
        (1 / 3, 0, 4, 1),
    ],
)
async def test_share_and_floor(share: float, floor: float, first_attempts: int, allowed: int):
    one = budget(share=share, floor_per_min=floor)
    await firsts(one, first_attempts)
    assert await taken(one) == allowed


async def test_the_defaults_are_a_fifth_and_ten_per_minute():
    one = budget()
    await firsts(one, 50)
    assert await taken(one) == 20


@pytest.mark.parametrize(("window_s", "allowed"), [(60, 12), (30, 6), (10, 2), (600, 120)])
async def test_the_floor_is_per_minute_whatever_the_window(window_s: int, allowed: int):
    assert await taken(budget(share=0.0, floor_per_min=12, window_s=window_s)) == allowed


@pytest.mark.parametrize(("attempt", "allowed"), [(2, 12), (3, 6), (4, 4), (5, 3), (7, 2), (10, 2), (100, 1)])
async def test_attempt_n_may_use_one_part_in_n_minus_one(attempt: int, allowed: int):
    assert await taken(budget(share=0.0, floor_per_min=12), attempt) == allowed


async def test_third_attempts_are_given_up_before_second_ones():
    one = budget(share=0.0, floor_per_min=10)
    seen = []
    for _ in range(12):
        second, third = await one.take("tenant", 2), await one.take("tenant", 3)
        seen.append((second.allowed, third.allowed))
    assert seen == [(True, True)] * 2 + [(True, False)] * 6 + [(False, False)] * 4


async def test_a_refused_attempt_is_not_counted():
    one = budget(share=0.0, floor_per_min=4)
    assert await taken(one, attempt=3) == 2
    for _ in range(10):
        assert not (await one.take("tenant", 3)).allowed
    assert await taken(one) == 2


async def test_regenerations_leave_the_window_and_so_do_first_attempts():
    clock = ManualClock()
    one = budget(clock, share=0.5, floor_per_min=0)
    await firsts(one, 8)
    assert await taken(one) == 4
    clock.advance(30)
    await firsts(one, 2)
    assert await taken(one) == 1
    clock.advance(29.9)
    assert await taken(one) == 0
    clock.advance(0.2)  # the first eight, and the four that they paid for, are gone
    assert await taken(one) == 0
    await firsts(one, 2)
    assert await taken(one) == 1
    clock.advance(60)
    assert await taken(one) == 0


async def test_no_stretch_of_time_gets_more_than_its_floor():
    clock, random_ = ManualClock(), random.Random(4)
    one = budget(clock, share=0.0, floor_per_min=10)
    stamps: deque[float] = deque()
    for _ in range(3000):
        clock.advance(random_.choice([0.0, 0.1, 0.9, 3.0]))
        if (await one.take("tenant", random_.choice([2, 2, 3]))).allowed:
            stamps.append(clock())
        while stamps and stamps[0] <= clock() - 59:
            stamps.popleft()
        assert len(stamps) <= 10


async def test_keys_do_not_share():
    one = budget(share=0.5, floor_per_min=0)
    await firsts(one, 10, "a")
    await firsts(one, 2, "b")
    assert [await taken(one, key=key) for key in ("a", "b", "", "a ")] == [5, 1, 0, 0]


async def test_what_the_decision_says():
    one = budget(share=0.0, floor_per_min=3)
    first = await one.take("tenant", 2)
    assert (first.allowed, first.remaining, first.source, first.degraded, first.waited_s) == (True, 2.0, "local", "", 0)
    await taken(one)
    refused = await one.take("tenant", 2)
    assert (refused.allowed, refused.remaining, refused.retry_after_s) == (False, 0.0, None)
    assert refused.limit == "regenerations: 0 % of first attempts and 3 per minute, over 60 s"


def test_memory_is_bounded_by_seconds_and_keys():
    clock = ManualClock()
    tally = Tally(BudgetTerms(window_s=5), max_keys=3, clock=clock)
    for _ in range(1000):
        tally.count("busy", first_attempts=1, regenerations=1)
        clock.advance(0.01)
    (counts,) = tally._keys.values()
    assert len(counts._seconds) <= 5
    assert counts.first_attempts == sum(second[1] for second in counts._seconds) <= 500
    for name in "abcd":
        tally.count(name, first_attempts=1)
    assert list(tally._keys) == [digest_of(name) for name in "bcd"]
    clock.advance(5)
    tally.count("e", first_attempts=1)
    assert list(tally._keys) == [digest_of("e")]


def test_asking_alone_leaves_nothing_behind():
    tally = Tally(BudgetTerms(share=0.2, floor_per_min=0), max_keys=10, clock=ManualClock())
    for number in range(100):
        assert not tally.take(f"key {number}", 2).allowed
    assert not tally._keys


@pytest.mark.parametrize("key", ["", "x" * 1_000_000, "{a}:b\n*", "\ud800", "\u00e9", "e\u0301"])
async def test_any_text_is_a_key(key: str):
    one = budget(share=0.0, floor_per_min=1)
    assert await taken(one, key=key) == 1
    assert await taken(one, key="other") == 1


@pytest.mark.parametrize("key", [None, 7, b"tenant", ["tenant"]])
async def test_other_keys_are_errors(key: Any):
    with pytest.raises(ConfigurationError, match="key"):
        await budget().first(key)
    with pytest.raises(ConfigurationError, match="key"):
        await budget().take(key, 2)


@pytest.mark.parametrize("attempt", [1, 0, -1, 2.0, True, None, "2"])
async def test_only_regenerations_can_be_asked_for(attempt: Any):
    with pytest.raises(ConfigurationError, match="attempt"):
        await budget().take("tenant", attempt)


NOT_NUMBERS = [-0.1, float("nan"), float("inf"), True, None, "0.2", 1j]


@pytest.mark.parametrize(
    "settings",
    [{"share": value} for value in [*NOT_NUMBERS, 1.1]]
    + [{"floor_per_min": value} for value in NOT_NUMBERS]
    + [{"window_s": value} for value in [0, -1, 1.5, 601, True, None, "60"]]
    + [{"max_keys": value} for value in [0, -1, 1.5, True, None]],
    ids=str,
)
def test_values_out_of_range_are_errors(settings: dict[str, Any]):
    with pytest.raises(ConfigurationError, match=next(iter(settings))):
        RegenerationBudget(**settings)


@pytest.mark.parametrize("floor", [0, 0.5, 0.0])
def test_a_budget_of_nothing_is_an_error_that_says_what_to_do(floor: float):
    with pytest.raises(ConfigurationError, match=r"max_attempts=1"):
        RegenerationBudget(share=0, floor_per_min=floor)


def test_threads_do_not_lose_counts():
    tally = Tally(BudgetTerms(share=0.0, floor_per_min=500), max_keys=10)
    allowed: list[int] = []

    def work() -> None:
        allowed.append(sum(tally.take("tenant", 2).allowed for _ in range(200)))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(allowed) == 500
