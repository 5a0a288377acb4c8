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
