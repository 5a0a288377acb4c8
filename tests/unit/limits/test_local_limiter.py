import asyncio
import gc
import math
import random
import threading
import weakref

import pytest

from guardrail.errors import ConfigurationError
from guardrail.limits.limit import Limit
from guardrail.limits.local import LocalLimiter
from guardrail.protocols import Decision, SettlingLimiter
from tests.unit.limits.virtual_time import Crowd, VirtualLimiter, turns


def test_it_settles():
    assert isinstance(LocalLimiter("5/s"), SettlingLimiter)


def test_a_limiter_made_outside_of_a_loop_keeps_no_loop_alive():
    limiter = LocalLimiter("1 per 0.001 s")
    loop = asyncio.new_event_loop()
    loop.run_until_complete(asyncio.wait_for(limiter.acquire("k"), 5))
    loop.run_until_complete(limiter.acquire("k"))
    loop.close()
    gone = weakref.ref(loop)
    del loop
    gc.collect()
    assert gone() is None


def test_threads_share_a_limit():
    limiter = LocalLimiter(Limit(500, 1000.0))
    counts = []

    async def use():
        decisions = [await limiter.acquire("k", timeout_s=0) for _ in range(200)]
        counts.append(sum(decision.allowed for decision in decisions))

    threads = [threading.Thread(target=lambda: asyncio.run(use())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sum(counts) == 500


async def test_fifo_order_of_fifty_waiters_of_all_sizes():
    limiter = VirtualLimiter("10/s")
    crowd = Crowd(limiter)
    chance = random.Random(1)
    for number in range(50):
        crowd.add(number, cost=chance.choice([0.1, 1, 5, 10]))
    await limiter.pass_time(1000.0)
    assert crowd.names == list(range(50))


async def test_a_late_small_one_does_not_pass_an_early_big_one():
    limiter = VirtualLimiter("10/s")
    crowd = Crowd(limiter)
    crowd.add("first", cost=9)
    await turns()
    crowd.add("big", cost=5)
    await turns()
    crowd.add("small", cost=1)
    await limiter.pass_time(0.0)
    assert (await limiter.acquire("k", 1, timeout_s=0)).retry_after_s == 1.0
    await limiter.pass_time(1.0)
    assert crowd.names == ["first", "big", "small"]


async def test_two_thousand_waiters_do_not_poll():
    limiter = VirtualLimiter("100/s")
    crowd = Crowd(limiter)
    for number in range(2000):
        crowd.add(number)
    await turns()
    for _ in range(2000):
        if not limiter.ring_next():
            break
        await turns(500)
    assert crowd.names == list(range(2000))
    assert limiter.elapsed_s == pytest.approx(19.0)
    assert limiter.alarms_set <= 2000
    assert limiter.at_rest()


async def test_a_key_with_many_waiters_does_not_keep_others_from_the_limit_of_all():
    limiter = VirtualLimiter(Limit(1, 1.0, scope="global"))
    crowd = Crowd(limiter)
    for number in range(20):
        crowd.add(f"A{number}", "A")
    for number in range(3):
        crowd.add(f"B{number}", "B")
    await limiter.pass_time(100.0)
    assert crowd.names[:7] == ["A0", "A1", "B0", "A2", "B1", "A3", "B2"]
    assert crowd.names[7:] == [f"A{number}" for number in range(4, 20)]


async def test_keys_that_share_a_limit_go_in_the_order_in_which_they_came():
    limiter = VirtualLimiter(Limit(1, 1.0, scope="global"))
    crowd = Crowd(limiter)
    for number in range(30):
        crowd.add(number, key=f"tenant {number}")
    await limiter.pass_time(100.0)
    assert crowd.names == list(range(30))
    assert crowd.times == [float(number) for number in range(30)]
    assert limiter.alarms_set <= 30


async def test_who_waits_for_a_limit_of_its_own_does_not_stand_in_the_line_of_all():
    limiter = VirtualLimiter([Limit(1, 100.0), Limit(2, 1.0, scope="global")])
    crowd = Crowd(limiter)
    crowd.add("A 1", "A")
    crowd.add("A 2", "A")
    for name in "BCDE":
        crowd.add(name, name)
    await limiter.pass_time(200.0)
    assert crowd.names == ["A 1", "B", "C", "D", "E", "A 2"]
    assert crowd.times == [0.0, 0.0, 1.0, 1.0, 2.0, 100.0]


async def test_who_does_not_fit_into_one_limit_is_charged_on_none():
    limiter = VirtualLimiter([Limit(5, 10.0), Limit(3, 10.0, burst=3, scope="global"), Limit(100, 1.0, burst=1)])
    for _ in range(3):
        assert (await limiter.acquire("A", timeout_s=0)).allowed
        limiter.time.advance(0.01)
    before = await limiter.acquire("A", 0)
    for _ in range(10):
        refused = await limiter.acquire("A", timeout_s=0)
        assert refused.limit == "3 calls per 10 s, burst 3, all keys together"
    assert (await limiter.acquire("A", 0)).remaining == before.remaining
    limiter.time.advance(5.0)
    assert (await limiter.acquire("A", timeout_s=0)).remaining == pytest.approx(0.0, abs=0.51)


async def test_remaining_is_what_is_left_of_the_tightest():
    limiter = VirtualLimiter([Limit(5, 10.0), Limit(9000, 60.0, unit="tokens")], tokens_per_call=3000)
    assert [(await limiter.acquire("k", 0.5)).remaining for _ in range(4)] == [4.5, 4.0, 3.5, 3.0]
    assert (await limiter.acquire("k", 0)).remaining == 3.0


@pytest.mark.parametrize("limit", [Limit(5, 1.0), Limit(5, 1.0, burst=5)])
async def test_a_cost_above_the_capacity_never_passes(limit):
    limiter = VirtualLimiter(limit)
    refused = await limiter.acquire("k", 5.001)
    assert refused == Decision(allowed=False, source="local", limit=str(limit))
    assert (await limiter.acquire("k", 5)).allowed


async def test_a_cost_of_nothing_passes_and_is_not_charged():
    limiter = VirtualLimiter("1/min")
    await limiter.acquire("k")
    assert (await limiter.acquire("k", 0, timeout_s=0)).allowed
    assert len(limiter.taken) == 1


async def test_a_wait_that_is_too_long_is_refused_at_once():
    limiter = VirtualLimiter("1 per 10 s")
    crowd = Crowd(limiter)
    for name in ["now", "at 10", "at 20"]:
        crowd.add(name)
    await turns()
    crowd.add("impatient", timeout_s=29.9)
    crowd.add("patient", timeout_s=30.0)
    await turns()
    assert [(grant.name, grant.at_s, grant.decision.retry_after_s) for grant in crowd.refusals] == [
        ("impatient", 0.0, 30.0)
    ]
    await limiter.pass_time(100.0)
    assert crowd.names == ["now", "at 10", "at 20", "patient"]
    assert crowd.times[-1] == 30.0


async def test_whoever_is_overtaken_by_events_is_refused_when_that_is_known():
    limiter = VirtualLimiter("1 per 10 s")
    crowd = Crowd(limiter)
    crowd.add("first")
    crowd.add("second", timeout_s=15.0)
    await turns()
    limiter.time.advance(5.0)
    limiter.charge("k", 1)  # decided elsewhere: room is at 15 now, and at 10 there is none
    await limiter.pass_time(60.0)
    assert crowd.names == ["first", "second"]
    assert crowd.times == [0.0, 15.0]
    crowd.add("third", timeout_s=12.0)
    await turns()
    limiter.charge("k", 1)
    await limiter.pass_time(200.0)
    assert crowd.names == ["first", "second", "third"]


async def test_the_timeout_ends_the_wait_in_the_line_too():
    limiter = VirtualLimiter(
        Limit(100, 1.0, burst=1)
    )  # the first waiter's alarm rings when we say so; timeouts are real
    crowd = Crowd(limiter)
    crowd.add("now")
    crowd.add("first")
    crowd.add("second", timeout_s=0.02)
    await turns()
    limiter.charge("k", 3)
    await asyncio.wait_for(crowd.tasks[2], 60)
    assert [(grant.name, grant.decision.retry_after_s) for grant in crowd.refusals] == [("second", 0.05)]
    await limiter.pass_time(1.0)
    assert (crowd.names, crowd.times) == (["now", "first"], [0.0, 0.04])
    assert limiter.at_rest()


async def test_a_cancelled_waiter_is_charged_nothing():
    limiter = VirtualLimiter("1/s")
    crowd = Crowd(limiter)
    tasks = [crowd.add(number) for number in range(4)]
    await turns()
    tasks[1].cancel()
    tasks[3].cancel()
    await limiter.pass_time(10.0)
    assert (crowd.names, crowd.times) == ([0, 2], [0.0, 1.0])
    assert limiter.at_rest()


async def test_charges_decided_elsewhere_keep_the_limit_warm():
    limiter = VirtualLimiter(Limit(5, 10.0, burst=5))
    for _ in range(8):
        limiter.charge("k", 1)
    assert (await limiter.acquire("k", timeout_s=0)).retry_after_s == 8.0
    limiter.charge("k", 0)
    assert (await limiter.acquire("k", timeout_s=0)).retry_after_s == 8.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1,), "key of a limit"),
        (("k", -1), "cost"),
        (("k", True), "cost"),
        (("k", 1, -1), "timeout_s"),
        (("k", 1, math.nan), "timeout_s"),
    ],
)
async def test_wrong_arguments(arguments, message):
    limiter = LocalLimiter("5/s")
    with pytest.raises(ConfigurationError, match=message):
        await limiter.acquire(*arguments)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"limits": []}, "at least one limit"),
        ({"max_keys": 0}, "max_keys"),
        ({"max_keys": True}, "max_keys"),
        ({"tokens_per_call": 0}, "tokens_per_call"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(ConfigurationError, match=message):
        LocalLimiter(**({"limits": "5/s"} | options))


async def test_as_a_context_manager():
    async with LocalLimiter(["5/s", Limit(9, scope="global")]) as limiter:
        assert (await limiter.acquire("tenant")).allowed
        assert repr(limiter) == "LocalLimiter(5 calls per 1 s, 9 calls per 1 s, all keys together)"


async def test_a_turn_that_comes_after_the_timeout_is_refused() -> None:
    limiter = VirtualLimiter([Limit(3, 0.5), Limit(19, 60.0, scope="global")])
    crowd = Crowd(limiter)
    costs = [("a", 1.0)] * 8 + [("a", 2.5)] * 3 + [("c", 1.0)] * 4
    for number, (key, cost) in enumerate(costs):
        crowd.add(number, key, cost)
    crowd.add("late", "a", 0.001, timeout_s=30.0)
    await crowd.served()
    assert len(crowd.names) == len(costs)
    assert [refusal.name for refusal in crowd.refusals] == ["late"]
