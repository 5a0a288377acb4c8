"""A retry that does not come to its end leaves the results as they are, and the next one goes on."""

from __future__ import annotations

import asyncio
import os
import sys

import pytest

from guardrail.errors import InputError
from guardrail.evaluation.datasets.evaluating import aevaluate, evaluate
from tests.data_sets import fake
from tests.retries import FOURTH, Flaky, forty, left, retry


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out.jsonl"


@pytest.fixture
def numbers(tmp_path):
    return forty(tmp_path)


@pytest.mark.parametrize("kept", [1, 2, 9, 30, 40])
@pytest.mark.parametrize("half", [False, True])
def test_what_is_left_to_do_is_done_on_the_way(numbers, out, kept, half):
    evaluate(numbers[0], metrics=[Flaky(failing=FOURTH)], out=out, verifier=fake())
    before = out.read_bytes().splitlines(keepends=True)
    out.write_bytes(b"".join(before[: kept + 1]) + (before[kept + 1][:9] if half and kept < 40 else b""))
    metric, seen = Flaky(), []
    retry(numbers, out, metric, progress=lambda *p: seen.append(p))
    assert metric.asked == [str(n) for n in range(40) if str(n) in FOURTH or n >= kept]
    assert out.read_bytes() == numbers[1]
    assert seen[0] == (40 - len(metric.asked), 40)
    assert seen[-1] == (40, 40)


def test_a_higher_limit_goes_on_and_a_lower_one_is_refused(numbers, out):
    evaluate(numbers[0], metrics=[Flaky(failing=FOURTH)], out=out, verifier=fake(), limit=10)
    before = out.read_bytes()
    with pytest.raises(InputError, match="has results of 10 items, and with this limit there are 9"):
        retry(numbers, out, Flaky(), limit=9)
    assert out.read_bytes() == before
    retry(numbers, out, Flaky())
    assert out.read_bytes() == numbers[1]


class Stop(Exception):
    """Ends a retry where a test wants it."""


def stop_after(measured):
    def watch(done, total):
        if done - 30 >= measured:
            raise Stop

    return watch


@pytest.mark.parametrize("measured", [0, 1, 5, 9, 10])
def test_an_interrupted_retry_leaves_the_results_and_goes_on(numbers, out, measured):
    evaluate(numbers[0], metrics=[Flaky(failing=FOURTH)], out=out, verifier=fake())
    before, first, second, seen = out.read_bytes(), Flaky(), Flaky(), []
    with pytest.raises(Stop):
        retry(numbers, out, first, concurrency=1, progress=stop_after(measured))
    assert out.read_bytes() == before
    found = retry(numbers, out, second, progress=lambda *p: seen.append(p))
    assert out.read_bytes() == numbers[1]
    assert found.retried == 10
    assert seen[0] == (40 - len(second.asked), 40)
    assert len(second.asked) <= 10 - measured
    assert not left(out).exists()


@pytest.mark.parametrize("turns", [0, 1, 3, 8, 20, 60])
async def test_cancellation_keeps_what_is_done(numbers, out, turns):
    data, whole = numbers
    await aevaluate(data, metrics=[Flaky(failing=FOURTH)], out=out, verifier=fake())
    before, metric, begun = out.read_bytes(), Flaky(turns=2), asyncio.Event()
    task = asyncio.create_task(
        aevaluate(
            data, metrics=[metric], out=out, verifier=fake(), retry_errors=True, progress=lambda *_: begun.set(),
            concurrency=2,
        )
    )  # fmt: skip
    await begun.wait()
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert metric.now == 0
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert out.read_bytes() in (before, whole)
    await aevaluate(data, metrics=[Flaky()], out=out, verifier=fake(), retry_errors=True)
    assert out.read_bytes() == whole


def test_wherever_a_retry_died_the_next_one_goes_on(numbers, out):
    evaluate(numbers[0], metrics=[Flaky(failing=FOURTH)], out=out, verifier=fake())
    before, whole = out.read_bytes(), numbers[1]
    ends = [0, *(at + 1 for at, byte in enumerate(whole) if byte == 10)]
    for cut in [by + end for end in ends for by in (-1, 0, 1) if by + end >= 0]:
        out.write_bytes(before)
        left(out).write_bytes(whole[:cut])
        metric, done = Flaky(), max(0, whole[:cut].count(b"\n") - 1)
        retry(numbers, out, metric)
        assert out.read_bytes() == whole
        assert metric.asked == [n for n in sorted(FOURTH, key=int) if int(n) >= done]
        assert not left(out).exists()


@pytest.mark.parametrize("kind", ["other line", "damaged", "other header"])
def test_what_is_left_of_the_retry_of_other_results_is_not_used(numbers, out, kind):
    evaluate(numbers[0], metrics=[Flaky(failing=FOURTH)], out=out, verifier=fake())
    begun = numbers[1].splitlines(keepends=True)[:20]
    if kind == "other line":
        begun[2] = begun[2].replace(b'"length": 1.0', b'"length": 0.5')
    elif kind == "damaged":
        begun[1] = b"{" + begun[1][1:].replace(b'"n"', b'"m"')
    else:
        begun[0] = begun[0].replace(b'"sha256": "', b'"sha256": "0')
    assert begun != numbers[1].splitlines(keepends=True)[:20]
    left(out).write_bytes(b"".join(begun))
    metric = Flaky()
    retry(numbers, out, metric)
    assert len(metric.asked) == 10
    assert out.read_bytes() == numbers[1]


def test_a_file_of_that_name_with_something_else_is_kept(numbers, out):
    evaluate(numbers[0], metrics=[Flaky(failing=FOURTH)], out=out, verifier=fake())
    before = out.read_bytes()
    left(out).write_bytes(b"my thesis\n")
    with pytest.raises(InputError, match=r"out\.jsonl\.retry holds something else"):
        retry(numbers, out, Flaky())
    assert out.read_bytes() == before
    evaluate(numbers[0], metrics=[Flaky()], out=out, verifier=fake(), restart=True)
    assert left(out).read_bytes() == b"my thesis\n"


def test_beginning_again_forgets_an_interrupted_retry(numbers, out):
    evaluate(numbers[0], metrics=[Flaky(failing=FOURTH)], out=out, verifier=fake())
    with pytest.raises(Stop):
        retry(numbers, out, Flaky(), progress=stop_after(2))
    assert left(out).exists()
    evaluate(numbers[0], metrics=[Flaky()], out=out, verifier=fake(), restart=True)
    assert not left(out).exists()
    assert out.read_bytes() == numbers[1]


def test_data_that_change_meanwhile_leave_the_results(numbers, out):
    evaluate(numbers[0], metrics=[Flaky(failing=FOURTH)], out=out, verifier=fake())
    before = out.read_bytes()
    with pytest.raises(InputError, match="was changed while it was read"):
        retry(numbers, out, Flaky(), progress=lambda *_: os.utime(numbers[0], ns=(1, 1)))
    assert out.read_bytes() == before


def test_a_place_that_cannot_be_taken_leaves_the_results(numbers, out, monkeypatch):
    evaluate(numbers[0], metrics=[Flaky(failing=FOURTH)], out=out, verifier=fake())
    before = out.read_bytes()

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", refuse)
        with pytest.raises(InputError, match=r"out\.jsonl: cannot be written \(Permission denied\)"):
            retry(numbers, out, Flaky())
    assert out.read_bytes() == before
    metric = Flaky()
    retry(numbers, out, metric)
    assert (metric.asked, out.read_bytes()) == ([], numbers[1])


@pytest.mark.skipif(sys.platform == "win32", reason="there are no locks")
def test_nobody_else_writes_meanwhile(numbers, out):
    evaluate(numbers[0], metrics=[Flaky(failing=FOURTH)], out=out, verifier=fake())

    class Nested(Flaky):
        async def measure(self, item):
            for again in (False, True):
                with pytest.raises(InputError, match=r"out\.jsonl: another evaluation is writing"):
                    await aevaluate(numbers[0], metrics=[Flaky()], out=out, verifier=fake(), retry_errors=again)
            return await super().measure(item)

    Nested.__module__, Nested.__qualname__ = Flaky.__module__, Flaky.__qualname__
    assert retry(numbers, out, Nested()).errors == {}
    assert out.read_bytes() == numbers[1]


@pytest.mark.skipif(sys.platform == "win32", reason="no open file is replaced there")
def test_results_that_were_replaced_while_they_were_opened_are_not_written_to(numbers, out, tmp_path, monkeypatch):
    evaluate(numbers[0], metrics=[Flaky()], out=out, verifier=fake())
    opening = os.open

    def late(name, *rest):
        found = opening(name, *rest)
        if str(name) == str(out):
            (tmp_path / "new").write_bytes(numbers[1])
            os.replace(tmp_path / "new", out)
        return found

    monkeypatch.setattr(os, "open", late)
    with pytest.raises(InputError, match="another evaluation is writing"):
        evaluate(numbers[0], metrics=[Flaky()], out=out, verifier=fake())
