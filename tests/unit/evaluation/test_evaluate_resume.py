"""Evaluation goes on where it was interrupted, and only there."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from guardrail import Policy, Verifier
from guardrail.errors import ConfigurationError, InputError
from guardrail.evaluation.datasets.evaluating import aevaluate, evaluate
from guardrail.evaluation.datasets.metrics import Measurement
from guardrail.scoring.entailment import LexicalEntailment
from guardrail.testing import FakeEntailment
from tests.data_sets import METRICS, ROWS, Counting, fake, lines, run_all, save


@pytest.fixture
def data(tmp_path):
    return save(tmp_path / "data.jsonl", ROWS)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The results of one run without an interrupt: bytes, report, and the data."""
    folder = tmp_path_factory.mktemp("whole")
    data = save(folder / "data.jsonl", ROWS)
    report = run_all(data, folder / "out.jsonl")
    return data, (folder / "out.jsonl").read_bytes(), report


@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(share=st.floats(0, 1), concurrency=st.integers(1, 5))
def test_wherever_it_was_cut_off_the_results_become_the_same(whole, tmp_path, share, concurrency):
    data, expected, report = whole
    out = tmp_path / "out.jsonl"
    out.write_bytes(expected[: round(share * len(expected))])
    assert run_all(data, out, concurrency=concurrency) == report
    assert out.read_bytes() == expected


def test_every_line_end_is_a_place_to_be_cut_off(whole, tmp_path):
    data, expected, report = whole
    ends = [at + 1 for at, byte in enumerate(expected) if byte == 10]
    for cut in [0, 1, *(end + by for end in ends for by in (-1, 0, 1))]:
        out = tmp_path / "out.jsonl"
        out.write_bytes(expected[:cut])
        assert run_all(data, out) == report
        assert out.read_bytes() == expected


def test_what_is_done_is_not_done_again(tmp_path):
    data = save(tmp_path / "d.jsonl", [{"id": str(n), "context": "C.", "answer": "A."} for n in range(10)])
    out = tmp_path / "out.jsonl"
    evaluate(data, metrics=[Counting()], out=out, verifier=fake())
    expected = out.read_bytes()
    out.write_bytes(b"".join(expected.splitlines(keepends=True)[:8]))
    metric, seen = Counting(), []
    evaluate(data, metrics=[metric], out=out, verifier=fake(), progress=lambda *p: seen.append(p))
    assert metric.asked == ["7", "8", "9"]
    assert seen == [(7, 10), (8, 10), (9, 10), (10, 10)]
    assert out.read_bytes() == expected
    evaluate(data, metrics=[metric], out=out, verifier=fake())
    assert metric.asked == ["7", "8", "9"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"metrics": METRICS[:1]}, '"rouge_l"], now ["faithfulness"]'),
        ({"metrics": METRICS[::-1]}, 'metrics was ["faithfulness", "worst_delta_r"'),
        (
            {"verifier": Verifier(policy="strict", entailment=FakeEntailment(1.0))},
            'policy.name was "balanced", now "strict"',
        ),
        (
            {"verifier": Verifier(policy=Policy(delta=0.5), entailment=FakeEntailment(1.0))},
            "policy.delta was 0.74, now 0.5",
        ),
        ({"verifier": Verifier(entailment=LexicalEntailment())}, 'scorer.model_id was "fake", now "lexical"'),
        ({"limit": 3}, "has results of 6 items, and with this limit there are 3"),
        ({"with_text": True}, "with_text was false, now true"),
        ({"fields": {"context": "context"}}, 'fields.context was not set, now "context"'),
    ],
)
def test_results_of_another_evaluation_are_not_mixed(whole, tmp_path, changed, said):
    data, expected, _ = whole
    out = tmp_path / "out.jsonl"
    out.write_bytes(expected)
    with pytest.raises(InputError) as caught:
        run_all(data, out, **changed)
    assert said in str(caught.value)
    assert "--restart" in str(caught.value)
    assert out.read_bytes() == expected
    run_all(data, out, restart=True, **changed)
    assert len(lines(out)) == lines(out)[0]["items"] + 1


def test_a_metric_with_other_settings_is_another_metric(data, tmp_path):
    out = tmp_path / "out.jsonl"
    evaluate(data, metrics=[Counting(settings={"words": 3})], out=out, verifier=fake())
    evaluate(data, metrics=[Counting(settings={"words": 3})], out=out, verifier=fake())
    with pytest.raises(InputError, match=r"evaluation: metrics\.length\.words was 3, now 4\. Use"):
        evaluate(data, metrics=[Counting(settings={"words": 4})], out=out, verifier=fake())


@pytest.mark.parametrize("settings", [{"x": object()}, {"x": float("inf")}])
def test_settings_must_be_json(data, tmp_path, settings):
    with pytest.raises(ConfigurationError, match="settings of a metric"):
        evaluate(data, metrics=[Counting(settings=settings)], out=tmp_path / "out.jsonl", verifier=fake())
    assert not (tmp_path / "out.jsonl").exists()


async def test_a_long_way_to_the_first_new_item_leaves_turns_to_others(tmp_path):
    data, out = save(tmp_path / "d.jsonl", [{"context": "C.", "answer": "A."}] * 1_500), tmp_path / "out.jsonl"
    await aevaluate(data, metrics=[Counting()], out=out, verifier=fake())
    out.write_bytes(b"".join(out.read_bytes().splitlines(keepends=True)[:-1]))
    begun, metric, turns = asyncio.Event(), Counting(), 0

    async def others():
        nonlocal turns
        await begun.wait()
        while not metric.asked:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(others())
    await aevaluate(data, metrics=[metric], out=out, verifier=fake(), progress=lambda *_: begun.set())
    await beside
    assert metric.asked == ["1500"]
    assert turns >= 4


def test_changed_data_is_noticed(whole, tmp_path):
    _, expected, _ = whole
    data, out = save(tmp_path / "data.jsonl", ROWS[::-1]), tmp_path / "out.jsonl"
    out.write_bytes(expected)
    with pytest.raises(InputError, match=r"file\.sha256 was"):
        run_all(data, out)


def test_data_that_changes_meanwhile_is_noticed(data, tmp_path):
    @dataclass
    class Meddling(Counting):
        async def measure(self, item):
            os.utime(data, ns=(1, 1))
            return Measurement(score=1.0)

    with pytest.raises(InputError, match="was changed while it was read"):
        evaluate(data, metrics=[Meddling()], out=tmp_path / "out.jsonl", verifier=fake())


@pytest.mark.parametrize("content", [b"my thesis", b"my thesis\n", b'{"a": 1}\n', b'{"guardrail_evaluation": 2}\n'])
@pytest.mark.parametrize("restart", [False, True])
def test_a_file_with_something_else_is_never_overwritten(data, tmp_path, content, restart):
    out = tmp_path / "out.jsonl"
    out.write_bytes(content)
    with pytest.raises(InputError, match="holds something else"):
        run_all(data, out, restart=restart)
    assert out.read_bytes() == content


def test_a_damaged_line_is_named(whole, tmp_path):
    data, expected, _ = whole
    damaged = expected.splitlines(keepends=True)
    damaged[2] = b"\0" * len(damaged[2][:-1]) + b"\n"
    (tmp_path / "out.jsonl").write_bytes(b"".join(damaged))
    with pytest.raises(InputError, match=r"out\.jsonl, line 3: is damaged"):
        run_all(data, tmp_path / "out.jsonl")
    del damaged[2]
    (tmp_path / "out.jsonl").write_bytes(b"".join(damaged))
    with pytest.raises(InputError, match=r"line 3: is damaged"):
        run_all(data, tmp_path / "out.jsonl")


def test_two_evaluations_do_not_write_to_one_file(data, tmp_path):
    @dataclass
    class Nested(Counting):
        async def measure(self, item):
            with pytest.raises(InputError, match="another evaluation is writing"):
                await aevaluate(data, metrics=[Counting()], out=tmp_path / "out.jsonl", verifier=fake())
            return Measurement(score=1.0)

    found = evaluate(data, metrics=[Nested()], out=tmp_path / "out.jsonl", verifier=fake())
    assert found.metrics["length"].n == 5


def test_the_data_is_not_overwritten(data, tmp_path):
    (tmp_path / "link.jsonl").symlink_to(data)
    before = data.read_bytes()
    for out in (data, tmp_path / "link.jsonl"):
        with pytest.raises(InputError, match="is the file that is read"):
            run_all(data, out, restart=True)
    assert data.read_bytes() == before


_SLOW = """
import sys
from tests.data_sets import Counting, evaluate, fake

evaluate(sys.argv[1], metrics=[Counting(turns=50)], out=sys.argv[2], verifier=fake())
"""


def test_a_killed_process_loses_nothing_that_was_written(tmp_path):
    data = save(tmp_path / "d.jsonl", [{"context": "C.", "answer": "x" * (n % 50)} for n in range(2_000)])
    out, expected = tmp_path / "out.jsonl", tmp_path / "whole.jsonl"
    process = subprocess.Popen([sys.executable, "-c", _SLOW, str(data), str(out)])
    until = time.monotonic() + 60
    while not (out.exists() and out.stat().st_size > 20_000):
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.01)
    process.kill()
    process.wait()
    kept = out.read_bytes()
    assert 100 < kept.count(b"\n") < 2_000
    for path in (out, expected):
        evaluate(data, metrics=[Counting()], out=path, verifier=fake())
    assert out.read_bytes() == expected.read_bytes()
    assert out.read_bytes().startswith(kept)
