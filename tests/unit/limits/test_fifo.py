import asyncio
import gc
import random
import threading
import weakref

import pytest

from guardrail.limits.fifo import FifoGate
from tests.unit.limits.virtual_time import turns


async def _pass(gate, key, name, order, steps=1):
    async with gate.turn(key):
        order.append(name)
        for _ in range(steps):
            await asyncio.sleep(0)


async def test_first_come_first_served():
    gate, order = FifoGate(), []
    await asyncio.gather(*(_pass(gate, "k", number, order) for number in range(50)))
    assert order == list(range(50))
    assert len(gate) == 0


async def test_one_at_a_time():
    gate, inside, most = FifoGate(), 0, 0

    async def visit():
        nonlocal inside, most
        async with gate.turn("k"):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1

    await asyncio.gather(*(visit() for _ in range(20)))
    assert most == 1


async def test_keys_do_not_see_each_other():
    gate, order = FifoGate(), []
    async with gate.turn("a"):
        await asyncio.wait_for(_pass(gate, "b", "b", order), 1)
        assert gate.busy("a")
        assert not gate.busy("b")
    assert order == ["b"]
    assert not gate.busy("a")


async def test_weights_add_up():
    gate = FifoGate()
    async with gate.turn("k", 5):
        waiting = asyncio.create_task(gate.turn("k", 7).__aenter__())
        await turns()
        assert (gate.ahead("k"), gate.ahead("other")) == (12, 0)
        waiting.cancel()
        await turns()
        assert gate.ahead("k") == 5
    assert gate.ahead("k") == 0


async def test_an_error_inside_passes_the_turn_on():
    gate, order = FifoGate(), []

    async def fail():
        async with gate.turn("k"):
            await asyncio.sleep(0)
            raise ValueError("inside")

    failing = asyncio.create_task(fail())
    await turns()
    next_one = asyncio.create_task(_pass(gate, "k", "next", order))
    with pytest.raises(ValueError, match="inside"):
        await failing
    await next_one
    assert order == ["next"]


async def test_a_waiter_that_is_cancelled_as_its_turn_comes_passes_it_on():
    gate, order = FifoGate(), []
    first = gate.turn("k")
    await first.__aenter__()
    second = asyncio.create_task(_pass(gate, "k", "second", order))
    third = asyncio.create_task(_pass(gate, "k", "third", order))
    await turns()
    await first.__aexit__(None, None, None)  # the turn is the second's now, who has not run yet
    second.cancel()
    await third
    assert order == ["third"]
    assert second.cancelled()
    assert len(gate) == 0


async def test_a_waiter_that_is_cancelled_before_its_turn_comes_passes_it_on():
    gate, order = FifoGate(), []
    first = gate.turn("k")
    await first.__aenter__()
    second = asyncio.create_task(_pass(gate, "k", "second", order))
    third = asyncio.create_task(_pass(gate, "k", "third", order))
    await turns()
    second.cancel()
    await first.__aexit__(None, None, None)
    await third
    assert order == ["third"]
    assert len(gate) == 0


async def test_whoever_waits_too_long_leaves_the_queue():
    gate, order = FifoGate(), []
    async with gate.turn("k", 1):
        third = asyncio.create_task(_pass(gate, "k", "third", order))
        with pytest.raises(TimeoutError):
            async with gate.turn("k", 1, timeout_s=0.001):
                order.append("never")
        assert gate.ahead("k") == 1
    await third
    assert order == ["third"]
    async with gate.turn("k", 1, timeout_s=0):  # nobody to wait for: the timeout says nothing
        order.append("last")
    assert order == ["third", "last"]


@pytest.mark.parametrize("seed", range(200))
async def test_random_cancellations_lose_nobody(seed):
    chance, gate, order = random.Random(seed), FifoGate(), []
    tasks = [asyncio.create_task(_pass(gate, "k", number, order, chance.randint(0, 3))) for number in range(12)]
    for _ in range(chance.randint(1, 20)):
        chance.choice(tasks).cancel()
        for _ in range(chance.randint(0, 3)):
            await asyncio.sleep(0)
    await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 5)
    passed = [number for number, task in enumerate(tasks) if not task.cancelled()]
    assert set(passed) <= set(order)
    assert order == sorted(order)
    assert len(gate) == 0


def test_one_gate_in_many_loops_one_after_another():
    gate, order = FifoGate(), []

    async def main():
        await asyncio.gather(*(_pass(gate, "k", number, order) for number in range(3)))

    for _ in range(50):
        asyncio.run(main())
    assert order == [0, 1, 2] * 50
    assert len(gate) == 0


def test_loops_are_not_kept_alive():
    gate, order = FifoGate(), []
    loop = asyncio.new_event_loop()
    loop.run_until_complete(_pass(gate, "k", 1, order))
    loop.close()
    gone = weakref.ref(loop)
    del loop
    gc.collect()
    assert gone() is None


def test_a_loop_that_was_closed_over_its_waiters_is_forgotten():
    gate, order = FifoGate(), []
    loop = asyncio.new_event_loop()
    turn = gate.turn("k")
    loop.run_until_complete(turn.__aenter__())
    loop.close()
    assert len(gate) == 1
    asyncio.run(_pass(gate, "k", "next", order))
    assert order == ["next"]
    assert len(gate) == 0


def test_loops_in_several_threads():
    gate, orders = FifoGate(), [[] for _ in range(4)]

    async def main(order):
        await asyncio.gather(*(_pass(gate, "k", number, order, 3) for number in range(100)))

    threads = [threading.Thread(target=lambda order=order: asyncio.run(main(order))) for order in orders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert orders == [list(range(100))] * 4
