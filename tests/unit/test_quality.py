"""Measuring the verifier on labelled answers."""

from __future__ import annotations

import gzip
import json
import signal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail.errors import InputError
from guardrail.evaluation.benchmarks.quality import NO_CLAIM, QualityReport, answer_score, measure
from guardrail.evaluation.benchmarks.simulated import Simulation
from guardrail.evaluation.figures import auroc
from guardrail.policy import BALANCED
from guardrail.scoring.verifier import Verifier
from guardrail.testing import FakeEntailment

CONTEXT = "The desk opens at ten. Entry is free on Mondays."
TRUE, FALSE, SILENT = "The desk opens at ten.", "The desk opens at nine.", "Elephants enjoy warm puddles."
CLAIMS = st.lists(st.tuples(st.booleans(), st.floats(0, 1)), max_size=5)


@pytest.fixture
def labelled(tmp_path):
    def write(*rows, name="made.jsonl.gz"):
        path = tmp_path / name
        lines = (json.dumps({"context": CONTEXT, **row}) for row in rows)
        path.write_bytes(gzip.compress("\n".join(lines).encode()))
        return path

    return write


def row(answer, label, **others):
    return {"answer": answer, "label": label, **others}


def refuses_to_score(premise, hypothesis):
    if "puddles" in hypothesis:
        raise ConnectionError
    return 1.0


@given(CLAIMS, CLAIMS)
def test_an_answer_ranks_by_its_worst_claim(first, second):
    assert answer_score(first + second) == max(answer_score(first), answer_score(second))


@given(CLAIMS.filter(bool))
def test_what_is_stopped_at_any_delta_ranks_above_everything_and_no_claim_below(claims):
    score = answer_score(claims)
    assert NO_CLAIM == answer_score([]) < score
    if any(vetoed for vetoed, _ in claims):
        assert score > 1
    else:
        assert score == max(delta_r for _, delta_r in claims)


def test_the_figures_follow_the_decisions_of_the_verifier(labelled):
    rows = [row(TRUE, 1), row(FALSE, 0), row(SILENT, 0), row(SILENT, 1), row(TRUE, 0), row("Hello!", 1)]
    verifier = Verifier()
    found = measure(labelled(*rows), verifier=verifier).overall
    checked = [verifier.verify_sync(r["answer"], CONTEXT) for r in rows]
    assert [v.accepted for v in checked] == [True, False, False, False, True, True]
    assert (found.n, found.without_claim, found.skipped) == (6, 1, {})
    assert found.hallucinated_stopped == found.recall == pytest.approx(2 / 3)
    assert found.grounded_released == pytest.approx(2 / 3)
    assert found.false_refusals == pytest.approx(1 / 3)
    assert found.precision == pytest.approx(2 / 3)
    assert found.balanced_accuracy == pytest.approx(2 / 3)
    worst = [-1.0 if v.worst_delta_r is None else v.worst_delta_r for v in checked]
    worst[1] += 2
    assert found.auroc == auroc(worst, [r["label"] == 0 for r in rows])
    assert found.ms_per_claim > 0


def test_the_threshold_is_that_of_the_policy(labelled):
    path = labelled(row(SILENT, 0), row(TRUE, 1))
    shares = [
        measure(path, verifier=Verifier(policy=BALANCED.override(delta=delta))).overall.hallucinated_stopped
        for delta in (0.5, 1.0)
    ]
    assert shares == [1.0, 0.0]


def test_figures_by_task_cover_the_rows_that_have_one(labelled):
    rows = [row(TRUE, 1, detail={"task_type": "QA"}), row(FALSE, 0, detail={"task_type": "QA"}), row(TRUE, 0)]
    rows.append(row(FALSE, 1, detail={"task_type": "Summary"}))
    found = measure(labelled(*rows), verifier=Verifier())
    assert {task: r.n for task, r in found.by_task.items()} == {"QA": 2, "Summary": 1}
    assert found.overall.n == 4
    assert found.by_task["QA"].f1 == found.by_task["QA"].auroc == 1.0
    assert found.by_task["Summary"].grounded_released == 0.0
    assert measure(labelled(row(TRUE, 1)), verifier=Verifier()).by_task == {}


def test_rows_that_cannot_be_scored_are_counted_and_left_out(labelled):
    rows = [row(TRUE, 1), row(SILENT, 0), row(TRUE, 0, context=[]), row(" \n", 1), row("Hello!", 1)]
    found = measure(labelled(*rows), verifier=Verifier(entailment=FakeEntailment(refuses_to_score))).overall
    assert found.n == 2
    assert found.skipped == {"empty_answer": 1, "no_context": 1, "scoring_error": 1}
    assert found.hallucinated_stopped is found.best is None
    assert found.false_refusals == 0.0


@pytest.mark.parametrize("on_error", ["refuse", "raise", "pass_marked"])
def test_a_checker_that_fails_is_never_a_figure(labelled, on_error):
    verifier = Verifier(policy=BALANCED.override(on_error=on_error), entailment=FakeEntailment(refuses_to_score))
    found = measure(labelled(row(SILENT, 0), row(SILENT, 1)), verifier=verifier).overall
    assert (found.n, found.skipped) == (0, {"scoring_error": 2})
    assert found.auroc is found.f1 is found.ms_per_claim is None


def test_the_reference_formula_ranks_whole_answers(labelled):
    verifier = Verifier(policy="reference")
    found = measure(labelled(row(CONTEXT, 1), row(SILENT, 0)), verifier=verifier).overall
    assert (found.n, found.auroc, found.f1, found.without_claim) == (2, 1.0, 1.0, 0)
    assert found.ms_per_claim > 0


def test_one_class_gives_no_figure_and_no_nan(labelled):
    found = measure(labelled(row(TRUE, 1), row(SILENT, 1)), verifier=Verifier())
    report = QualityReport(policy="balanced", scorer="lexical", delta=0.5, sets={"made": found}).to_json()
    read = json.loads(json.dumps(report, allow_nan=False))["sets"]["made"]
    assert [read[name] for name in ("auroc", "f1", "recall", "balanced_accuracy")] == [None] * 4
    assert read["ci95"] == {"auroc": None, "f1": None}
    assert read["best"] is read["cascade"] is None
    assert read["published"] == []
    assert read["grounded_released"] == 0.5
    assert read["by_task"] == {}


def test_the_best_threshold_is_that_of_the_set_itself(labelled):
    """The shipped one flags nothing here, and the best is what separates the two kinds."""
    scores = {"The desk opens at ten.": 0.9, "Entry is free on Mondays.": 0.8}
    verifier = Verifier(policy=BALANCED.override(lexical_weight=0.0), entailment=FakeEntailment(scores))
    rows = [row(TRUE, 1), row("Entry is free on Mondays.", 0), row("Hello!", 1)]
    found = measure(labelled(*rows), verifier=verifier).overall
    assert (found.f1, found.recall) == (0.0, 0.0)
    assert (found.best.threshold, found.best.f1, found.best.balanced_accuracy) == (pytest.approx(0.2), 1.0, 1.0)


def simulated(error_rate, n=0.5, **options):
    return Simulation.of(error_rate, policy="balanced", model=FakeEntailment(n), **options)


def test_a_simulated_judge_decides_what_the_model_doubts(labelled):
    rows = [row(TRUE, 1), row("Entry is free on Mondays.", 0), row("Hello!", 1), row(TRUE, 1, context=[])]
    path = labelled(*rows)
    found = measure(path, verifier=Verifier(entailment=FakeEntailment(0.5)), simulation=simulated(0.0))
    assert (found.overall.auroc, found.overall.hallucinated_stopped) == (0.75, 0.0)
    cascade = found.cascade
    assert (cascade.overall.auroc, cascade.overall.hallucinated_stopped) == (1.0, 1.0)
    assert (cascade.overall.n, cascade.overall.skipped) == (3, {"no_context": 1})
    assert (cascade.claims_asked, cascade.answers_asked) == (1.0, pytest.approx(2 / 3))
    assert cascade.overall.ms_per_claim is None
    wrong = measure(path, verifier=Verifier(entailment=FakeEntailment(0.5)), simulation=simulated(1.0)).cascade
    assert (wrong.overall.grounded_released, wrong.overall.hallucinated_stopped) == (0.5, 0.0)


def test_a_simulated_judge_is_not_asked_where_the_model_is_sure(labelled):
    path = labelled(row(TRUE, 1), row("Entry is free on Mondays.", 0))
    found = measure(path, verifier=Verifier(entailment=FakeEntailment(0.9)), simulation=simulated(0.0, n=0.9))
    assert (found.cascade.claims_asked, found.cascade.answers_asked) == (0.0, 0.0)
    assert found.cascade.overall.hallucinated_stopped == found.overall.hallucinated_stopped == 0.0


def test_without_claims_there_is_no_share_of_them(labelled):
    found = measure(labelled(row("Hello!", 1)), verifier=Verifier(), simulation=simulated(0.0))
    assert found.cascade.claims_asked is None
    assert found.cascade.answers_asked == 0.0


def test_limit_and_progress(labelled):
    seen = []
    path = labelled(*[row(TRUE, 1)] * 3, row(FALSE, 0))
    found = measure(path, verifier=Verifier(), limit=3, progress=lambda done, total: seen.append((done, total)))
    assert found.overall.n == 3
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_a_bad_line_is_found_before_the_work_begins(labelled):
    seen = []
    path = labelled(row(TRUE, 1), {"answer": TRUE, "label": 7})
    with pytest.raises(InputError, match=r"made\.jsonl\.gz, line 2"):
        measure(path, verifier=Verifier(), progress=lambda *done: seen.append(done))
    assert seen == []


def test_an_empty_file_is_an_error(labelled):
    with pytest.raises(InputError, match="no labelled answers"):
        measure(labelled(), verifier=Verifier())


@pytest.fixture
def interruptible():
    """Background jobs are started with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("policy", ["balanced", "reference"])
def test_an_interrupt_ends_the_measurement(labelled, policy):
    seen = []

    def interrupt(done, total):
        seen.append(done)
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        measure(labelled(*[row(TRUE, 1)] * 50), verifier=Verifier(policy=policy), progress=interrupt)
    assert seen == [1]
