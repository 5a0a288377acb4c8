"""The hand-over between tasks: order, bound, end, error, and many senders of which some are cancelled."""

from __future__ import annotations

import asyncio

import pytest

from guardrail.channel import Channel, ChannelEnd


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def receive_all(channel: Channel[int]) -> list[int]:
    got = []
    while True:
        try:
            got.append(await channel.get())
        except ChannelEnd:
            return got


async def send(channel: Channel[int], items: range) -> None:
    for item in items:
        await channel.put(item)


async def test_items_arrive_in_order_and_the_end_after_the_last():
    channel: Channel[int] = Channel(maxsize=2)
    sender = asyncio.create_task(send(channel, range(20)))
    sender.add_done_callback(lambda _: channel.close())
    assert await receive_all(channel) == list(range(20))


async def test_a_sender_waits_while_the_channel_is_full():
    channel: Channel[int] = Channel(maxsize=2)
    sender = asyncio.create_task(send(channel, range(4)))
    await turns()
    assert channel.full
    assert not sender.done()
    assert [await channel.get() for _ in range(2)] == [0, 1]
    await turns()
    assert sender.done()


@pytest.mark.parametrize("senders", [2, 3, 10])
@pytest.mark.parametrize("maxsize", [1, 3])
async def test_every_one_of_many_senders_is_woken(senders: int, maxsize: int):
    channel: Channel[int] = Channel(maxsize=maxsize)
    tasks = [asyncio.create_task(send(channel, range(100 * n, 100 * n + 20))) for n in range(senders)]
    got = []
    async with asyncio.timeout(2):
        for _ in range(senders * 20):
            got.append(await channel.get())
            await asyncio.sleep(0)
        await asyncio.gather(*tasks)
    assert sorted(got) == sorted(100 * n + i for n in range(senders) for i in range(20))
    for n in range(senders):  # each sender's items stay in order
        own = [item for item in got if item // 100 == n]
        assert own == sorted(own)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("cancelled", [0, 1, 2])
async def test_a_cancelled_sender_passes_its_turn_on(cancelled: int, when: str):
    """``after``: its turn has come, and it is cancelled before it could use it."""
    channel: Channel[int] = Channel(maxsize=1)
    channel.put_nowait(-1)
    tasks = [asyncio.create_task(channel.put(n)) for n in range(3)]
    await turns()
    if when == "before":
        tasks[cancelled].cancel()
        await turns()
    got = [await channel.get()]
    if when == "after":
        tasks[cancelled].cancel()
    async with asyncio.timeout(2):
        got += [await channel.get() for _ in range(2)]
        results = await asyncio.gather(*tasks, return_exceptions=True)
    assert got == [-1] + [n for n in range(3) if n != cancelled]
    assert [isinstance(r, asyncio.CancelledError) for r in results] == [n == cancelled for n in range(3)]


async def test_drained_waits_for_the_receiver():
    channel: Channel[int] = Channel(maxsize=3)
    await channel.drained()
    channel.put_nowait(1)
    channel.put_nowait(2)
    waiting = asyncio.create_task(channel.drained())
    await turns()
    await channel.get()
    await turns()
    assert not waiting.done()
    await channel.get()
    await turns()
    assert waiting.done()


async def test_drained_and_a_full_sender_can_wait_at_once():
    channel: Channel[int] = Channel(maxsize=1)
    channel.put_nowait(0)
    drained = asyncio.create_task(channel.drained())
    await turns()
    sender = asyncio.create_task(channel.put(1))
    await turns()
    async with asyncio.timeout(2):
        assert [await channel.get(), await channel.get()] == [0, 1]
        await asyncio.gather(drained, sender)


async def test_an_error_comes_after_what_was_sent_and_stays():
    channel: Channel[int] = Channel(maxsize=4)
    channel.put_nowait(1)
    channel.close(OSError("gone"))
    channel.close()  # the first close counts
    assert await channel.get() == 1
    for _ in range(2):
        with pytest.raises(OSError, match="gone"):
            await channel.get()


async def test_closing_wakes_a_waiting_receiver():
    channel: Channel[int] = Channel(maxsize=1)
    receiver = asyncio.create_task(channel.get())
    await turns()
    channel.close()
    with pytest.raises(ChannelEnd):
        await receiver


async def test_a_cancelled_receiver_loses_nothing():
    channel: Channel[int] = Channel(maxsize=4)
    receiver = asyncio.create_task(channel.get())
    await turns()
    channel.put_nowait(1)
    receiver.cancel()
    await asyncio.gather(receiver, return_exceptions=True)
    channel.put_nowait(2)
    assert [await channel.get(), await channel.get()] == [1, 2]


async def test_receiving_is_reported_at_the_moment_it_happens():
    seen: list[int] = []
    channel: Channel[int] = Channel(maxsize=4, on_get=seen.append)
    channel.put_nowait(1)
    channel.put_nowait(2)
    assert seen == []
    await channel.get()
    assert seen == [1]
