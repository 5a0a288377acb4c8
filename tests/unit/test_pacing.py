"""A few begin per turn of the loop: how many, in which order, and what becomes of those who do not want to any more."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import random
import threading
import weakref
from collections import Counter

import pytest

from guardrail.pacing import Pace
from tests.loop_turns import TurnCounter

FEW = 4


async def begin(pace: Pace, number: int, turns: TurnCounter, begun: list[tuple[int, int]]) -> None:
    await pace.turn()
    begun.append((turns.now, number))


async def test_of_a_crowd_a_few_begin_per_turn_first_come_first_served():
    pace, begun = Pace(FEW), []
    async with TurnCounter() as turns:
        await asyncio.gather(*(begin(pace, number, turns, begun) for number in range(300)))
    assert begun[-1][0] - begun[0][0] <= 300 / FEW
    assert [number for _, number in begun] == list(range(300))
    assert max(Counter(turn for turn, _ in begun).values()) == FEW


async def test_who_comes_alone_goes_on_at_once():
    pace = Pace(1)
    with pytest.raises(StopIteration):
        pace.turn().send(None)  # it did not wait


async def test_room_is_for_one_turn():
    pace, begun = Pace(2), []
    async with TurnCounter() as turns:
        for number in range(6):  # nobody waits, however many come, if they do not come together
            await begin(pace, number, turns, begun)
            await asyncio.sleep(0)
    assert [turn for turn, _ in begun] == [begun[0][0] + number for number in range(6)]


@pytest.mark.parametrize("seed", range(20))
async def test_whenever_they_come_order_is_kept_and_no_turn_is_crowded(seed: int):
    draw, pace, begun, tasks = random.Random(seed), Pace(FEW), [], []
    async with TurnCounter() as turns:
        for _ in range(40):
            for _ in range(draw.choice((0, 0, 1, 3, 5, 30))):
                tasks.append(asyncio.create_task(begin(pace, len(tasks), turns, begun)))
            await asyncio.sleep(0)
        await asyncio.gather(*tasks)
    assert [number for _, number in begun] == list(range(len(tasks)))
    assert max(Counter(turn for turn, _ in begun).values()) <= 2 * FEW


async def test_the_cancelled_are_passed_over_and_take_no_room():
    pace, begun = Pace(FEW), []
    async with TurnCounter() as turns:
        tasks = [asyncio.create_task(begin(pace, number, turns, begun)) for number in range(100)]
        await asyncio.sleep(0)
        for task in tasks[FEW:80]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    assert begun[-1][0] - begun[0][0] <= 24 / FEW + 1
    assert [task.cancelled() for task in tasks] == [FEW <= number < 80 for number in range(100)]
    assert [number for _, number in begun] == [*range(FEW), *range(80, 100)]


async def test_who_is_cancelled_while_being_let_through_stops_nobody():
    pace, begun = Pace(1), []
    async with TurnCounter() as turns:
        tasks = [asyncio.create_task(begin(pace, number, turns, begun)) for number in range(4)]
        while not begun:
            await asyncio.sleep(0)
        await asyncio.sleep(0)  # the line has let the second one through, which has not run yet
        assert [number for _, number in begun] == [0]
        tasks[1].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    assert tasks[1].cancelled()
    assert [number for _, number in begun] == [0, 2, 3]


async def test_what_begins_may_fail():
    pace, began = Pace(1), []

    async def fail(number: int) -> None:
        await pace.turn()
        began.append(number)
        raise ValueError(number)

    ends = await asyncio.gather(*map(fail, range(20)), return_exceptions=True)
    assert [str(end) for end in ends] == [str(number) for number in range(20)]
    assert began == list(range(20))


def test_loops_in_several_threads_do_not_see_each_other():
    pace, lines = Pace(FEW), []
    together = threading.Barrier(4)

    async def main() -> None:
        begun: list[tuple[int, int]] = []
        together.wait(timeout=60)
        async with TurnCounter() as turns:
            await asyncio.gather(*(begin(pace, number, turns, begun) for number in range(100)))
        lines.append(begun)

    threads = [threading.Thread(target=asyncio.run, args=(main(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(lines) == 4
    for begun in lines:
        assert [number for _, number in begun] == list(range(100))
        assert max(Counter(turn for turn, _ in begun).values()) == FEW


def test_a_loop_that_was_closed_over_its_line_leaves_nothing_to_the_next():
    pace = Pace(1)
    loop = asyncio.new_event_loop()
    begun: list[int] = []

    async def wait(number: int) -> None:
        await pace.turn()
        begun.append(number)

    left = [loop.create_task(wait(number)) for number in range(3)]
    loop.call_soon(loop.stop)
    loop.run_forever()
    assert begun == [0]
    asyncio.run(wait(10))
    assert begun == [0, 10]
    for task in left:
        task.cancel()
    loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
    loop.close()
    assert begun == [0, 10]


def test_neither_loops_nor_contexts_are_kept():
    pace, variable = Pace(1), contextvars.ContextVar("variable")

    class Request:
        pass

    async def first() -> weakref.ref[Request]:
        variable.set(request := Request())
        await pace.turn()
        return weakref.ref(request)

    async def main() -> bool:
        request = await asyncio.create_task(first())
        for _ in range(5):  # the line goes on
            await asyncio.gather(pace.turn(), pace.turn())
        gc.collect()
        return request() is None

    loop = asyncio.new_event_loop()
    assert loop.run_until_complete(main())
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    ended = weakref.ref(loop)
    del loop
    gc.collect()
    assert ended() is None
