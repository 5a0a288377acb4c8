"""Who asks at the same time queues up in order of arrival, however their answers come in."""

from __future__ import annotations

import asyncio
from itertools import permutations

import pytest

from guardrail.limits.waiting import Arrival, Head

LINE = (b"k",)


@pytest.mark.parametrize("answers", list(permutations(range(3))))
@pytest.mark.parametrize("granted", [None, 0, 1, 2])
async def test_order_of_arrival(answers, granted):
    arrivals, queue = {}, []
    replies = [asyncio.get_running_loop().create_future() for _ in range(3)]

    async def ask(number):
        arrival = Arrival(arrivals, LINE)
        try:
            await replies[number]
            if number == granted:
                return
            await arrival.after_you()
        finally:
            arrival.leave()
        queue.append(number)

    tasks = [asyncio.create_task(ask(number)) for number in range(3)]
    await asyncio.sleep(0)
    for number in answers:
        replies[number].set_result(None)
        for _ in range(10):
            await asyncio.sleep(0)
    await asyncio.gather(*tasks)
    assert queue == [number for number in range(3) if number != granted]
    assert arrivals == {}


@pytest.mark.parametrize("cancelled", [0, 1, 2])
async def test_who_is_cancelled_holds_nobody_up(cancelled):
    arrivals, queue = {}, []
    first_reply = asyncio.get_running_loop().create_future()

    async def ask(number):
        arrival = Arrival(arrivals, LINE)
        try:
            if number == 0:
                await first_reply
            await arrival.after_you()
        finally:
            arrival.leave()
        queue.append(number)

    tasks = [asyncio.create_task(ask(number)) for number in range(3)]
    await asyncio.sleep(0)
    tasks[cancelled].cancel()
    await asyncio.sleep(0)
    if not first_reply.done():
        first_reply.set_result(None)
    await asyncio.gather(*tasks, return_exceptions=True)
    assert queue == [number for number in range(3) if number != cancelled]
    assert arrivals == {}


async def test_lines_do_not_wait_for_each_other():
    arrivals = {}
    Arrival(arrivals, LINE)
    other = Arrival(arrivals, (b"other",))
    await asyncio.wait_for(other.after_you(), 5)
    other.leave()
    assert list(arrivals) == [LINE]


async def test_a_sleeping_head_can_be_woken():
    head = Head(0.0, 0, 1000)
    sleeping = asyncio.create_task(head.sleep(3600.0))
    await asyncio.sleep(0)
    head.wake()
    head.wake()
    await asyncio.wait_for(sleeping, 5)
