from __future__ import annotations

import asyncio
import contextvars
import os
import subprocess
import sys
import textwrap
import threading

import pytest

from guardrail.errors import ConfigurationError
from guardrail.scoring.entailment.worker import ScoringWorker, shared_worker
from tests.stub_encoders import Blocker

marker: contextvars.ContextVar[str] = contextvars.ContextVar("marker", default="unset")


async def test_results_and_exceptions_come_back():
    worker = ScoringWorker()
    assert await worker.run(divmod, 7, 3) == (2, 1)
    with pytest.raises(ZeroDivisionError):
        await worker.run(divmod, 7, 0)
    assert await worker.run(divmod, 7, 3) == (2, 1)


@pytest.mark.parametrize("kind", [StopIteration, asyncio.CancelledError])
async def test_exceptions_that_a_future_cannot_carry(kind):
    def fail():
        raise kind

    with pytest.raises(RuntimeError, match=kind.__name__):
        await ScoringWorker().run(fail)


async def test_calls_run_off_the_loop_in_order():
    worker, order = ScoringWorker(), []
    await asyncio.gather(*(worker.run(order.append, i) for i in range(50)))
    assert order == list(range(50))
    assert await worker.run(threading.get_ident) != threading.get_ident()


async def test_the_callers_context_is_visible():
    worker = ScoringWorker()
    marker.set("here")
    assert await worker.run(marker.get) == "here"
    await worker.run(marker.set, "changed in the thread")
    assert marker.get() == "here"


async def test_cancellation_drops_queued_calls_and_ignores_late_results():
    worker, blocker, called = ScoringWorker(), Blocker(), []
    running = asyncio.create_task(worker.run(blocker))
    await blocker.running()
    queued = asyncio.create_task(worker.run(called.append, 1))
    await asyncio.sleep(0)
    assert worker.queued == 1
    for task in (queued, running):
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert worker.queued == 0
    blocker.released.set()
    assert await worker.run(called.append, 2) is None
    assert called == [2]


async def test_the_loop_lives_while_a_call_blocks():
    worker, blocker = ScoringWorker(), Blocker()
    task = asyncio.create_task(worker.run(blocker))
    await blocker.running()
    for _ in range(1000):
        await asyncio.sleep(0)
    assert not task.done()
    blocker.released.set()
    assert await task == "late"


async def test_several_threads_run_at_once():
    worker, blocker = ScoringWorker(threads=2), Blocker()
    task = asyncio.create_task(worker.run(blocker))
    await blocker.running()
    assert await worker.run(max, 1, 2) == 2
    blocker.released.set()
    await task


class Steps:
    """Work that stops in the first part until it is released, and remembers the order of all parts."""

    def __init__(self):
        self.order = []
        self.blocker = Blocker()

    def __call__(self, part):
        self.order.append(part)
        if len(self.order) == 1:
            self.blocker()
        return part.upper()


def test_parts_are_worked_on_in_order_and_come_back_in_order():
    worker = ScoringWorker()
    assert asyncio.run(worker.spread(lambda: "abc", str.upper)) == ["A", "B", "C"]
    assert asyncio.run(worker.spread(lambda: [], str.upper)) == []


async def test_a_small_call_does_not_wait_for_the_end_of_a_big_one():
    worker, steps = ScoringWorker(), Steps()
    big = asyncio.create_task(worker.spread(lambda: [f"big {i}" for i in range(9)], steps))
    await steps.blocker.running()
    small = asyncio.create_task(worker.spread(lambda: ["small 0", "small 1"], steps))
    other = asyncio.create_task(worker.run(steps, "other"))
    await asyncio.sleep(0)
    steps.blocker.released.set()
    assert await small == ["SMALL 0", "SMALL 1"]
    assert await other == "OTHER"
    assert len(await big) == 9
    assert steps.order[:7] == ["big 0", "big 1", "small 0", "other", "big 2", "small 1", "big 3"]


async def test_cancellation_drops_the_parts_that_have_not_begun():
    worker, steps = ScoringWorker(), Steps()
    big = asyncio.create_task(worker.spread(lambda: [f"big {i}" for i in range(9)], steps))
    await steps.blocker.running()
    big.cancel()
    with pytest.raises(asyncio.CancelledError):
        await big
    steps.blocker.released.set()
    assert await worker.run(steps, "next") == "NEXT"
    assert steps.order == ["big 0", "next"]


async def test_cancellation_while_the_work_is_being_cut():
    worker, blocker, parts = ScoringWorker(), Blocker(), []
    task = asyncio.create_task(worker.spread(lambda: [blocker(), blocker()], parts.append))
    await blocker.running()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    blocker.released.set()
    assert await worker.run(max, 1, 2) == 2
    assert parts == []


async def test_the_first_exception_drops_the_parts_that_have_not_begun():
    worker, order = ScoringWorker(), []

    def work(part):
        order.append(part)
        return 1 // part

    with pytest.raises(ZeroDivisionError):
        await worker.spread(lambda: [1, 0, 2, 3], work)
    with pytest.raises(ZeroDivisionError):
        await worker.spread(lambda: [1 // 0], work)
    assert await worker.run(max, 1, 2) == 2
    assert order == [1, 0]


async def test_with_several_threads_parts_of_one_call_run_at_the_same_time():
    meeting = threading.Barrier(3, timeout=60)
    assert sorted(await ScoringWorker(threads=3).spread(lambda: range(3), lambda _: meeting.wait())) == [0, 1, 2]


async def test_parts_see_the_callers_context():
    worker = ScoringWorker(threads=2)
    marker.set("parts")
    assert await worker.spread(lambda: [marker.get()] * 3, lambda part: (part, marker.get())) == [("parts",) * 2] * 3


async def test_calls_beyond_the_limit_wait_in_line_and_are_not_cut():
    worker, blocker, cut = ScoringWorker(max_calls=2), Blocker(), []

    def split(name):
        cut.append(name)
        return [name] * 2

    running = asyncio.create_task(worker.run(blocker))
    await blocker.running()
    tasks = [asyncio.create_task(worker.spread(lambda n=name: split(n), str.upper)) for name in "abc"]
    await asyncio.sleep(0)
    assert worker.queued == 3
    tasks[1].cancel()
    with pytest.raises(asyncio.CancelledError):
        await tasks[1]
    assert worker.queued == 2
    blocker.released.set()
    assert await running == "late"
    assert [await tasks[0], await tasks[2]] == [["A", "A"], ["C", "C"]]
    assert cut == ["a", "c"]
    assert worker.queued == 0


async def test_a_call_in_line_begins_when_one_ends():
    worker, steps = ScoringWorker(max_calls=1), Steps()
    first = asyncio.create_task(worker.spread(lambda: ["a 0", "a 1"], steps))
    await steps.blocker.running()
    second = asyncio.create_task(worker.spread(lambda: ["b 0"], steps))
    await asyncio.sleep(0)
    steps.blocker.released.set()
    await asyncio.gather(first, second)
    assert steps.order == ["a 0", "a 1", "b 0"]


def test_one_worker_serves_several_event_loops():
    worker = ScoringWorker()

    async def calls():
        return await asyncio.gather(*(worker.run(int, str(i)) for i in range(100)))

    results = []
    threads = [threading.Thread(target=lambda: results.append(asyncio.run(calls()))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [list(range(100))] * 3
    assert asyncio.run(calls()) == list(range(100))


def test_a_closed_loop_does_not_hurt_the_worker():
    worker, blocker = ScoringWorker(), Blocker()

    async def give_up():
        task = asyncio.create_task(worker.run(blocker))
        await blocker.running()
        task.cancel()

    asyncio.run(give_up())
    blocker.released.set()
    assert asyncio.run(worker.run(max, 1, 2)) == 2


def run_script(script):
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=60
    )


def test_a_stuck_model_does_not_keep_the_interpreter_alive():
    done = run_script("""
        import asyncio, threading
        from guardrail.scoring.entailment.worker import ScoringWorker
        async def main():
            started = threading.Event()
            def stuck():
                started.set()
                threading.Event().wait()
            task = asyncio.create_task(ScoringWorker().run(stuck))
            while not started.is_set():
                await asyncio.sleep(0)
            task.cancel()
        asyncio.run(main())
        print("left")
    """)
    assert (done.stdout.strip(), done.returncode) == ("left", 0), done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_a_worker_works_in_a_forked_child():
    done = run_script("""
        import asyncio, os
        from guardrail.scoring.entailment.worker import shared_worker
        assert asyncio.run(shared_worker().run(max, 1, 2)) == 2
        child = os.fork()
        if child == 0:
            os._exit(0 if asyncio.run(shared_worker().run(max, 3, 4)) == 4 else 1)
        raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """)
    assert done.returncode == 0, done.stderr


def test_the_shared_worker_is_one_and_has_one_thread():
    assert shared_worker() is shared_worker()
    assert shared_worker().threads == 1


@pytest.mark.parametrize("threads", [0, -1, True, 1.5, None])
def test_threads_must_be_a_positive_integer(threads):
    with pytest.raises(ConfigurationError, match="threads"):
        ScoringWorker(threads)
    with pytest.raises(ConfigurationError, match="max_calls"):
        ScoringWorker(max_calls=threads)
