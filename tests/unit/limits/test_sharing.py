"""Calls that share round trips: order, batches, cancellation, failures."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar

import pytest

from guardrail.limits.sharing import RoundTrips
from guardrail.redis_store import Call, Script, StoreUnavailableError

COUNT = Script("count", "the store below does not run it")
OTHER = Script("other", "")


class HeldStore:
    """Answers when it is told to; an answer is the record's number."""

    def __init__(self):
        self.trips = []
        self.held = []

    async def call(self, calls):
        self.trips.append([(call.script.name, call.keys, call.args) for call in calls])
        answer = asyncio.get_running_loop().create_future()
        self.held.append(answer)
        await answer
        return [b"\n".join(b"1 %d" % number for number in call.args) for call in calls]

    def release(self, error=None):
        held = self.held.pop(0)
        held.set_exception(error) if error else held.set_result(None)


class Asked:
    def __init__(self, most_calls=128, most_trips=1, longest_wait_s=60.0):
        self.store, self.lost, self.undone = HeldStore(), [], []
        self.trips = RoundTrips(
            self.store,
            most_calls=most_calls,
            most_trips=most_trips,
            longest_wait_s=longest_wait_s,
            on_lost=self.lost.append,
        )

    def ask(self, number, key="k", wanted=None, script=COUNT):
        call = Call(script, (key,), (number,))
        return asyncio.create_task(self.trips.ask(call, undo=self.undone.append, wanted=wanted))


async def turns(count=10):
    for _ in range(count):
        await asyncio.sleep(0)


async def test_what_comes_at_the_same_time_shares_a_round_trip_and_a_run():
    asked = Asked()
    tasks = [asked.ask(number, key) for number, key in enumerate("aabab")]
    await turns()
    assert asked.store.trips == [[("count", ("a",), (0, 1, 3)), ("count", ("b",), (2, 4))]]
    asked.store.release()
    assert await asyncio.gather(*tasks) == [[1, number] for number in range(5)]


async def test_what_comes_during_a_round_trip_travels_with_the_next():
    asked = Asked()
    first = asked.ask(0)
    await turns()
    later = [asked.ask(number, script=OTHER if number == 2 else COUNT) for number in (1, 2, 3)]
    await turns()
    assert len(asked.store.trips) == 1
    asked.store.release()
    await turns()
    assert asked.store.trips[1] == [("count", ("k",), (1, 3)), ("other", ("k",), (2,))]
    asked.store.release()
    assert await asyncio.gather(first, *later) == [[1, number] for number in range(4)]
    await asked.trips.drain()


async def test_no_more_calls_and_round_trips_than_allowed():
    asked = Asked(most_calls=2, most_trips=2)
    tasks = [asked.ask(number, str(number)) for number in range(7)]
    await turns()
    assert [len(trip) for trip in asked.store.trips] == [2, 2]
    for _ in range(4):
        await turns()
        if asked.store.held:
            asked.store.release()
    assert await asyncio.gather(*tasks) == [[1, number] for number in range(7)]
    assert [len(trip) for trip in asked.store.trips] == [2, 2, 2, 1]


async def test_a_call_after_the_last_answer_finds_a_round_trip():
    asked = Asked()
    for number in range(20):
        task = asked.ask(number)
        await turns()
        asked.store.release()
        for _ in range(number % 4):
            await asyncio.sleep(0)
        assert await asyncio.wait_for(task, 5) == [1, number]


async def test_cancelled_before_it_is_sent_it_is_not_sent():
    asked = Asked()
    first = asked.ask(0)
    await turns()
    second, third = asked.ask(1), asked.ask(2)
    await turns()
    second.cancel()
    asked.store.release()
    await turns()
    assert asked.store.trips[1] == [("count", ("k",), (2,))]
    asked.store.release()
    assert await asyncio.gather(first, third) == [[1, 0], [1, 2]]
    assert asked.undone == []


async def test_cancelled_after_it_was_sent_it_is_undone_and_the_others_notice_nothing():
    asked = Asked()
    tasks = [asked.ask(number) for number in range(3)]
    await turns()
    tasks[1].cancel()
    await turns()
    assert tasks[1].cancelled()
    asked.store.release()
    assert await tasks[0] == [1, 0]
    assert await tasks[2] == [1, 2]
    assert asked.undone == [[1, 1]]


async def test_cancelled_in_the_moment_of_the_answer_it_is_undone():
    asked = Asked()
    task = asked.ask(5)
    await turns()
    asked.store.release()
    while not asked.undone and not task.done():
        task.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await task
    await asked.trips.drain()
    assert asked.undone == [[1, 5]]


async def test_every_moment_of_cancellation_is_either_unsent_or_undone():
    for moment in range(12):
        asked = Asked()
        task = asked.ask(1)
        for step in range(12):
            if step == 5 and asked.store.held:
                asked.store.release()
            if step == moment:
                task.cancel()
            await asyncio.sleep(0)
        if asked.store.held:
            asked.store.release()
        await asked.trips.drain()
        result = (await asyncio.gather(task, return_exceptions=True))[0]
        sent = len(asked.store.trips)
        assert (sent, asked.undone) in [(0, []), (1, [[1, 1]])] if task.cancelled() else result == [1, 1]


async def test_a_call_that_is_not_wanted_any_more_is_not_sent():
    asked = Asked()
    open_ = True
    first = asked.ask(0, wanted=lambda: open_)
    await turns()
    second = asked.ask(1, wanted=lambda: open_)
    open_ = False
    asked.store.release()
    assert await asyncio.gather(first, second) == [[1, 0], None]
    assert len(asked.store.trips) == 1


async def test_a_failure_reaches_all_callers_of_the_round_trip_and_no_others():
    asked = Asked()
    tasks = [asked.ask(number) for number in range(3)]
    await turns()
    later = asked.ask(3)
    await turns()
    asked.store.release(StoreUnavailableError("refused"))
    failures = await asyncio.gather(*tasks, return_exceptions=True)
    assert [(type(error), error.reason) for error in failures] == [(StoreUnavailableError, "refused")] * 3
    assert len({id(error) for error in failures}) == 3  # each its own: a traceback belongs to one caller
    await turns()
    asked.store.release()
    assert await later == [1, 3]
    assert asked.undone == []


async def test_nobody_waits_for_a_silent_server_twice():
    asked = Asked()
    sent = asked.ask(0)
    await turns()
    unsent = asked.ask(1)
    posted = asked.trips.post(Call(COUNT, ("k",), (2,)))
    await turns()
    asked.store.release(StoreUnavailableError("timeout"))
    failures = await asyncio.gather(sent, unsent, return_exceptions=True)
    assert [error.reason for error in failures] == ["timeout", "timeout"]
    await turns()
    assert asked.store.trips[1:] == [[("count", ("k",), (2,))]]
    asked.store.release()
    await asked.trips.drain()
    assert (posted.result(), asked.undone) == ([1, 2], [])


async def test_nobody_waits_long_for_a_round_trip_to_begin():
    asked = Asked(most_calls=1, longest_wait_s=0.05)
    sent = asked.ask(0)
    await turns()
    waiting = [asked.ask(number) for number in (1, 2)]
    posted = asked.trips.post(Call(COUNT, ("k",), (3,)))
    cancelled = asked.ask(4)
    await turns()
    cancelled.cancel()
    failures = await asyncio.gather(*waiting, cancelled, return_exceptions=True)
    assert [error.reason for error in failures[:2]] == ["pool_exhausted"] * 2
    assert isinstance(failures[2], asyncio.CancelledError)
    late = asked.ask(5)
    with pytest.raises(StoreUnavailableError, match="pool_exhausted"):
        await late  # the timer is set again
    assert not sent.done()
    asked.store.release()
    await turns()
    asked.store.release()
    assert (await sent, await posted) == ([1, 0], [1, 3])
    assert [args for trip in asked.store.trips for _, _, args in trip] == [(0,), (3,)]
    assert asked.undone == []


async def test_errors_of_other_kinds_are_not_hidden():
    asked = Asked()
    task = asked.ask(0)
    await turns()
    asked.store.release(RuntimeError("a bug"))
    with pytest.raises(RuntimeError, match="a bug"):
        await task


async def test_a_posted_call_travels_without_anybody_waiting():
    asked = Asked()
    posted = asked.trips.post(Call(COUNT, ("k",), (9,)))
    await turns()
    asked.store.release()
    await asked.trips.drain()
    assert posted.result() == [1, 9]
    assert asked.lost == []


async def test_a_posted_call_that_fails_is_reported():
    asked = Asked()
    posted = asked.trips.post(Call(COUNT, ("k",), (9,)))
    await turns()
    asked.store.release(StoreUnavailableError("refused"))
    await asked.trips.drain()
    assert [error.reason for error in asked.lost] == ["refused"]
    assert posted.result() is asked.lost[0]


async def test_round_trips_carry_nothing_of_the_caller():
    seen = []
    variable = ContextVar("variable", default="none")

    class Looking(HeldStore):
        async def call(self, calls):
            seen.append(variable.get())
            return [b"1 1" for _ in calls]

    trips = RoundTrips(Looking(), most_calls=8, most_trips=1, longest_wait_s=60.0, on_lost=print)
    variable.set("the caller's")
    assert await trips.ask(Call(COUNT, ("k",), (1,)), undo=print) == [1, 1]
    assert seen == ["none"]


def test_the_end_of_the_loop_leaves_nobody_waiting():
    outcomes = []

    async def main():
        asked = Asked()

        async def caller():
            try:
                outcomes.append(await asked.trips.ask(Call(COUNT, ("k",), (1,)), undo=asked.undone.append))
            except (asyncio.CancelledError, StoreUnavailableError) as error:
                outcomes.append(type(error))

        task = asyncio.create_task(caller())
        await turns()
        return task

    asyncio.run(main())
    assert outcomes in ([asyncio.CancelledError], [StoreUnavailableError])
