"""Evaluation of data sets under nonsense: odd files, odd metrics, interrupts in the wrong moment, other limits."""

from __future__ import annotations

import asyncio
import json
import os
from types import MappingProxyType

import pytest

from guardrail import Verifier
from guardrail.cli import main
from guardrail.errors import ConfigurationError, InputError
from guardrail.evaluation.cascade.cascading import Cascade
from guardrail.evaluation.datasets.evaluating import aevaluate, evaluate
from guardrail.evaluation.datasets.items import Items
from guardrail.evaluation.datasets.metrics import Measurement
from guardrail.evaluation.datasets.results import read_evaluation
from guardrail.evaluation.datasets.results_file import ResultsFile
from guardrail.testing import FakeEntailment, ScriptedJudge
from tests.data_sets import METRICS, ROWS, SUPPORTED, Counting, fake, lines, run_all, save


@pytest.fixture
def data(tmp_path):
    return save(tmp_path / "data.jsonl", ROWS)


class Saying(Counting):
    """Answers with what a function makes of the item."""

    def __init__(self, say, name="own"):
        super().__init__(name=name)
        self.say = say

    async def measure(self, item):
        return self.say(item)


# --- a higher limit goes on ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("first", "then"), [(1, 3), (3, 6), (2, None), (6, None), (5, 600), (None, 6)])
def test_a_higher_limit_goes_on_and_the_file_is_that_of_one_run(data, tmp_path, first, then):
    out, whole = tmp_path / "out.jsonl", tmp_path / "whole.jsonl"
    run_all(data, out, limit=first)
    assert run_all(data, out, limit=then) == run_all(data, whole, limit=then)
    assert out.read_bytes() == whole.read_bytes()


def test_a_higher_limit_measures_only_what_is_new(data, tmp_path):
    metric, out = Counting(), tmp_path / "out.jsonl"
    evaluate(data, metrics=[metric], out=out, verifier=fake(), limit=2)
    evaluate(data, metrics=[metric], out=out, verifier=fake(), limit=5)
    assert metric.asked == ["yes", "no", "bare", "empty"]
    assert lines(out)[0]["items"] == read_evaluation(out).total == 5


def test_a_limit_below_what_is_done_says_what_to_do(data, tmp_path):
    out = tmp_path / "out.jsonl"
    run_all(data, out, limit=4)
    before = out.read_bytes()
    with pytest.raises(InputError, match=r"has results of 4 items, and with this limit there are 3.*--restart"):
        run_all(data, out, limit=3)
    assert out.read_bytes() == before
    out.write_bytes(b"".join(before.splitlines(keepends=True)[:3]))
    run_all(data, out, limit=3)
    run_all(data, tmp_path / "whole.jsonl", limit=3)
    assert out.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_a_header_that_was_cut_off_is_of_no_evaluation(data, tmp_path):
    out = tmp_path / "out.jsonl"
    run_all(data, out)
    whole = out.read_bytes()
    header = whole[: whole.index(b"\n")]
    for size in (1, 10, 30, len(header) - 60, len(header)):
        out.write_bytes(header[:size])
        run_all(data, out, limit=2)
        assert len(lines(out)) == 3


# --- interrupts -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("written", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("number", [1, 3, 6])
def test_an_interrupt_while_a_line_is_written_leaves_nothing_that_is_damaged(
    data, tmp_path, monkeypatch, written, number
):
    out, write = tmp_path / "out.jsonl", ResultsFile._write
    evaluate(data, metrics=[Counting()], out=tmp_path / "whole.jsonl", verifier=fake())

    def interrupted(self, line):
        if line.startswith(b'{"n": %d,' % number):
            write(self, line[: round(written * len(line))])
            monkeypatch.setattr(ResultsFile, "_write", write)
            raise KeyboardInterrupt
        write(self, line)

    monkeypatch.setattr(ResultsFile, "_write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        evaluate(data, metrics=[Counting()], out=out, verifier=fake())
    evaluate(data, metrics=[Counting()], out=out, verifier=fake())
    assert out.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_an_interrupt_while_progress_is_shown(data, tmp_path):
    out = tmp_path / "out.jsonl"

    def watch(done, total):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_all(data, out, progress=watch)
    run_all(data, tmp_path / "whole.jsonl")
    run_all(data, out)
    assert out.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


async def test_being_cancelled_twice_still_ends_the_thread(tmp_path, monkeypatch):
    data = save(tmp_path / "d.jsonl", [{"context": "C.", "answer": "A."}] * 3_000)
    running, ended, survey = asyncio.Event(), [], Items.survey
    loop = asyncio.get_running_loop()

    def slow(self, check):
        loop.call_soon_threadsafe(running.set)
        try:
            while True:
                survey(self, check)
        finally:
            ended.append(True)

    monkeypatch.setattr(Items, "survey", slow)
    task = asyncio.create_task(aevaluate(data, metrics=[Counting()], out=tmp_path / "out.jsonl", verifier=fake()))
    await running.wait()
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == [True]


# --- metrics that misbehave -----------------------------------------------------------------------------------------


def test_a_metric_that_raises_a_cancellation_is_not_a_cancellation(data, tmp_path):
    def say(item):
        raise asyncio.CancelledError

    found = evaluate(data, metrics=[Saying(say), "rouge_l"], out=tmp_path / "out.jsonl", verifier=fake())
    assert found.metrics["own"].errors == {"CancelledError": 5, "no_answer": 1}
    assert found.metrics["rouge_l"].n == 3


def test_a_metric_that_is_not_asynchronous_ends_the_evaluation(data, tmp_path):
    class Synchronous(Counting):
        def measure(self, item):
            return Measurement(score=1.0)

    with pytest.raises(ConfigurationError, match="'length' must be asynchronous"):
        evaluate(data, metrics=[Synchronous()], out=tmp_path / "out.jsonl", verifier=fake())


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        (Counting, "is a class"),
        (Counting(name=None), "name of a metric must be a text"),
        (Counting(name=5), "name of a metric must be a text"),
        (Counting(name=""), "name of a metric must be a text"),
        (Counting(settings=None), "settings of the metric 'length' must be a mapping"),
        (Counting(settings={"x": "y" * (1 << 20)}), "settings of a metric must be a few values"),
        (Counting(settings=[1]), "settings of the metric 'length' must be a mapping"),
    ],
)
def test_metrics_that_cannot_be_used(data, tmp_path, metric, said):
    with pytest.raises(ConfigurationError, match=said):
        evaluate(data, metrics=[metric], out=tmp_path / "out.jsonl", verifier=fake())
    assert not (tmp_path / "out.jsonl").exists()


@pytest.mark.parametrize("options", [{"error": 5}, {"error": ValueError("x")}, {"score": 1.0, "detail": [1]}])
def test_a_measurement_of_other_types_is_refused(options):
    with pytest.raises(ValueError, match="of a measurement must be a"):
        Measurement(**options)


def test_details_may_be_any_mapping(data, tmp_path):
    detail = MappingProxyType({"a": MappingProxyType({"b": [1]})})
    evaluate(data, metrics=[Saying(lambda _: Measurement(score=1, detail=detail))], out=tmp_path / "o", verifier=fake())
    assert lines(tmp_path / "o")[1]["details"] == {"own": {"a": {"b": [1]}}}


def test_the_metric_whose_detail_cannot_be_written_is_named(data, tmp_path):
    metrics = [Counting(), Saying(lambda _: Measurement(score=1, detail={"x": {1}}))]
    with pytest.raises(ConfigurationError, match="the metric 'own' has a detail"):
        evaluate(data, metrics=metrics, out=tmp_path / "out.jsonl", verifier=fake())


def test_another_metric_of_the_same_name_is_noticed(data, tmp_path):
    out = tmp_path / "out.jsonl"
    evaluate(data, metrics=["rouge_l"], out=out, verifier=fake())
    with pytest.raises(InputError, match=r"metrics\.rouge_l\.type was not set, now \"tests\.data_sets\.Counting\""):
        evaluate(data, metrics=[Counting(name="rouge_l")], out=out, verifier=fake())


def test_a_judge_that_nothing_asks_is_an_error(data, tmp_path):
    with pytest.raises(ConfigurationError, match="a judge is given, but 'judge' is not among the metrics"):
        run_all(data, tmp_path / "out.jsonl", judge=ScriptedJudge("yes"))


def test_a_verifier_is_one(data, tmp_path):
    with pytest.raises(ConfigurationError, match=r"must be a guardrail\.Verifier, not str"):
        run_all(data, tmp_path / "out.jsonl", verifier="strict")


def test_metrics_may_be_any_iterable(data, tmp_path):
    options = {"judge": ScriptedJudge("yes"), "out": tmp_path / "out.jsonl", "verifier": fake()}
    assert list(evaluate(data, metrics=iter(["judge", "rouge_l"]), **options).metrics) == ["judge", "rouge_l"]


@pytest.mark.parametrize("metric", ["faithfulness", "contradiction", "citation_f1", "reference_delta_r"])
def test_every_metric_may_use_up_what_a_run_may_per_item(tmp_path, metric):
    answer = "Entry is free [1]. Dogs are welcome [1]. Cats are not [1]. Bags go in lockers [1]."
    data = save(tmp_path / "d.jsonl", [{"context": ["Entry costs a lot. It rains."], "answer": answer}] * 3)
    judge = ScriptedJudge("no")
    cascade = Cascade(judge, model=FakeEntailment(0.5), low=0.1, high=0.9, judgements_per_run=1)
    evaluate(data, metrics=[metric], out=tmp_path / "out.jsonl", verifier=Verifier(entailment=cascade))
    asked = len(judge.pairs)
    assert 3 <= asked <= 6  # the verification, and what the metric does beside it


# --- the results file ----------------------------------------------------------------------------------------------


def test_results_go_where_a_link_leads(data, tmp_path):
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "out.jsonl")
    run_all(data, tmp_path / "link.jsonl")
    assert len(lines(tmp_path / "out.jsonl")) == 7
    assert os.path.islink(tmp_path / "link.jsonl")


@pytest.mark.parametrize(
    "content",
    [
        b'{"guardrail_evaluation": 1}\n',
        b'{"guardrail_evaluation": 1, "metrics": 5, "items": 1}\n',
    ],
)
def test_a_header_without_figures_is_no_evaluation(tmp_path, content):
    (tmp_path / "out.jsonl").write_bytes(content)
    with pytest.raises(InputError, match="is not the result of an evaluation"):
        read_evaluation(tmp_path / "out.jsonl")


def test_a_line_without_scores_is_damaged(data, tmp_path):
    out = tmp_path / "out.jsonl"
    run_all(data, out)
    damaged = out.read_bytes().splitlines(keepends=True)
    damaged[2] = b'{"n": 2}\n'
    out.write_bytes(b"".join(damaged))
    with pytest.raises(InputError, match="line 3: is damaged"):
        read_evaluation(out)
    with pytest.raises(InputError, match="line 3: is damaged"):
        run_all(data, out)


def test_nothing_of_an_item_is_in_the_results_unless_asked_for(data, tmp_path):
    class Secretive(Counting):
        async def measure(self, item):
            raise RuntimeError(item.item.answer)

    out = tmp_path / "out.jsonl"
    evaluate(data, metrics=[Secretive(), *METRICS], out=out, verifier=fake("Dogs"))
    text = out.read_text(encoding="utf-8")
    assert not any(word in text for word in ("desk", "terrace", "When?"))
    assert json.dumps(SUPPORTED) not in text


# --- the command ----------------------------------------------------------------------------------------------------


@pytest.fixture
def command(data, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        status = main(["evaluate", "data.jsonl", "--out", "out.jsonl", *arguments])
        return status, *capsys.readouterr()

    return run


@pytest.mark.parametrize(
    ("width", "headings"), [(60, "n mean 95 % CI p10 AUROC"), (80, "n mean 95 % CI min p10 max AUROC")]
)
def test_the_table_fits_and_splits_no_name(command, monkeypatch, width, headings):
    monkeypatch.setenv("COLUMNS", str(width))
    status, text, said = command("--metrics", "citation_precision,faithfulness")
    assert (status, said) == (0, "")
    shown = text.splitlines()
    assert all(len(line) <= width for line in shown)
    assert shown[0].split() == ["metric", *headings.split()]
    assert [line.split()[0] for line in shown[2:4]] == ["citation_precision", "faithfulness"]


def test_the_table_says_when_few_items_have_a_label(command, data):
    save(data, [*ROWS[:2], {"context": ["The desk opens at ten."], "answer": SUPPORTED}])
    _, text, _ = command("--metrics", "rouge_l")
    assert "AUROC over 2 items with a score and a label" in text
    save(data, ROWS[:2])
    _, text, _ = command("--metrics", "rouge_l", "--restart")
    assert "AUROC over" not in text


def test_a_higher_limit_on_the_command_line_goes_on(command, tmp_path):
    assert command("--metrics", "rouge_l", "--limit", "2")[0] == 0
    status, text, _ = command("--metrics", "rouge_l", "--limit", "6", "--json")
    assert (status, json.loads(text)["items"]) == (0, 6)
    status, _, said = command("--metrics", "rouge_l", "--limit", "3")
    assert status == 2
    assert said.startswith("guardrail: out.jsonl has results of 6 items, and with this limit there are 3")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--metrics", "rouge_l,rouge_l"), "name each metric once"),
        (("--metrics", "rouge_l", "--judge", "guardrail.testing:ScriptedJudge"), "a judge is given, but"),
        (("--csv", "x" * 300 + ".csv"), "cannot be written"),
        (("--answers", "data.txt"), "no item of data.jsonl has a field 'data.txt'"),
    ],
)
def test_what_is_wrong_on_the_command_line_is_said(command, arguments, said):
    status, _, error = command(*arguments)
    assert status == 2
    assert said in error
    assert "Traceback" not in error
