"""`guardrail history`: tables, alarms and exit status."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime

import pytest

from guardrail import Verifier
from guardrail.cli import main
from guardrail.evaluation.alarms import LOW_IS_GOOD, AlarmLevel, metric_alarms
from guardrail.evaluation.calibration import calibrate
from guardrail.evaluation.datasets.metrics import METRICS, metric
from guardrail.evaluation.history.store import History, Record
from guardrail.evaluation.labelled import LabelledAnswer
from guardrail.testing import FakeEntailment

DAY = 86_400
FIRST = datetime(2026, 3, 1, tzinfo=UTC).timestamp()
OF_PROFILE = {"policy": "calibrated", "scorer": "/srv/models/fake"}
FALLING = [0.88, 0.86, 0.89, 0.87, 0.85, 0.84, 0.82, 0.76]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "scores.sqlite"


@pytest.fixture
def write(path):
    """Writes scores of a metric, one a day unless told otherwise."""

    def write(scores, name="faithfulness", first=FIRST, every_s=DAY, **more):
        with History(path) as history:
            history.record_many(
                [
                    Record(at=first + n * every_s, run_id=str(n), metric=name, score=score, **more)
                    for n, score in enumerate(scores)
                ]
            )

    return write


def _json(path, capsys, *arguments):
    status = main(["history", str(path), "--json", *arguments])
    shown = capsys.readouterr()
    assert shown.err == ""
    return status, json.loads(shown.out)


def _levels(rows):
    return [row["alarm"] and row["alarm"]["level"] for row in rows]


def test_the_history_of_the_specification(path, write, capsys):
    write(FALLING)
    status, found = _json(path, capsys)
    rows = found["metrics"]["faithfulness"]
    assert status == 1
    assert _levels(rows) == [None, None, None, None, "ok", "ok", "ok", "critical"]
    assert rows[-1]["alarm"]["base"] == pytest.approx(0.845)
    assert f"{rows[-1]['alarm']['fall']:.1%}" == "10.1%"
    assert rows[0] == {
        "start": FIRST, "end": FIRST + DAY, "complete": True, "n": 1, "mean": 0.88, "sd": None, "p10": 0.88,
        "below_half": 0.0, "minimum": 0.88, "maximum": 0.88, "alarm": None,
    }  # fmt: skip
    assert found["drift"] is None


def test_the_table(path, write, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    write(FALLING)
    assert main(["history", str(path)]) == 1
    text = capsys.readouterr().out
    assert "\x1b" not in text
    lines = [line.split() for line in text.splitlines() if line.strip()]
    assert lines[0] == ["faithfulness", "n", "mean", "sd", "p10", "<", "0.5", "min", "max", "alarm"]
    assert lines[2] == ["2026-03-01", "1", "0.880", "–", "0.880", "0.000", "0.880", "0.880", "–"]
    assert lines[6][-1] == "ok"
    assert lines[9] == ["2026-03-08", "1", "0.760", "–", "0.760", "0.000", "0.760", "0.760", "critical", "−10.1%"]


@pytest.mark.parametrize(
    ("scores", "status"),
    [
        (FALLING[:-1], 0),
        ([*FALLING, 0.83, 0.83], 0),  # an alarm in the past
        ([0.8] * 4 + [0.76], 1),
        ([0.8] * 4 + [0.77], 0),
        ([0.8, 0.1], 0),  # too short
    ],
)
def test_the_exit_status_is_that_of_the_newest_bucket(path, write, capsys, scores, status):
    write(scores)
    assert _json(path, capsys)[0] == status


def test_window(path, write, capsys):
    write([0.8, 0.1])
    assert _json(path, capsys, "--window", "1")[0] == 1


def test_buckets_of_hours(path, write, capsys):
    write([0.5, 0.7, 0.9], every_s=1800)
    _, found = _json(path, capsys, "--by", "hour")
    assert [(row["start"] - FIRST, row["n"]) for row in found["metrics"]["faithfulness"]] == [(0, 2), (3600, 1)]
    assert main(["history", str(path), "--by", "hour"]) == 0
    assert "2026-03-01 01:00" in capsys.readouterr().out


def test_buckets_of_a_number_are_judged_when_they_are_full(path, write, capsys):
    write([0.8, 0.8, 0.4, 0.4, 0.9], every_s=1)
    status, found = _json(path, capsys, "--by", "2", "--window", "1")
    rows = found["metrics"]["faithfulness"]
    assert [(row["n"], row["complete"]) for row in rows] == [(2, True), (2, True), (1, False)]
    assert _levels(rows) == [None, "critical", None]
    assert status == 1
    main(["history", str(path), "--by", "2", "--window", "1"])
    assert "filling" in capsys.readouterr().out


def test_all_metrics_or_one(path, write, capsys):
    write(FALLING)
    write([0.9] * 8, name="accepted")
    status, found = _json(path, capsys)
    assert (status, list(found["metrics"])) == (1, ["accepted", "faithfulness"])
    status, found = _json(path, capsys, "--metric", "accepted")
    assert (status, list(found["metrics"])) == (0, ["accepted"])


@pytest.mark.parametrize(
    ("name", "scores", "status"),
    [
        ("refused", [0.1] * 4 + [0.2], 1),
        ("refused", [0.2] * 4 + [0.1], 0),
        ("attempts", [1.2] * 4 + [2.4], 0),  # leaves [0, 1]: no alarm of this kind
        ("answer_score", [0.2] * 4 + [-1.0], 0),
        ("mine", [0.1] * 4 + [0.2], 0),
        ("mine", [0.2] * 4 + [0.1], 1),
    ],
)
def test_what_is_good_depends_on_the_metric(path, write, capsys, name, scores, status):
    write(scores, name=name)
    assert _json(path, capsys)[0] == status


def test_a_metric_of_ones_own_may_be_good_when_it_is_low(path, write, capsys):
    write([0.1] * 4 + [0.2], name="mine")
    assert _json(path, capsys, "--metric", "mine", "--low-is-good")[0] == 1


@pytest.mark.parametrize("name", METRICS)
def test_what_is_good_is_known_for_every_metric(name):
    found = metric(name, verifier=Verifier(), judge=lambda prompt: "yes")
    assert found.higher_is_better is (name not in LOW_IS_GOOD)


@pytest.mark.parametrize(
    ("means", "low", "levels"),
    [
        ([], False, []),
        ([0.8, 0.7], False, [None, "critical"]),
        ([0.8, 0.7], True, [None, "ok"]),
        ([0.0, 0.05], True, [None, "warning"]),
        ([0.5, 1.1], False, [None, None]),
        ([-1.0, 0.2], True, [None, None]),
    ],
)
def test_both_ends_of_a_scale(means, low, levels):
    found = metric_alarms(means, low_is_good=low, window=1)
    assert [own and own.level for own in found] == [level and AlarmLevel(level) for level in levels]


def test_numbers_that_are_none_are_refused():
    with pytest.raises(ValueError, match=r"means\[1\] must be finite, got nan"):
        metric_alarms([0.5, float("nan")])


@pytest.mark.parametrize(
    ("since", "days"),
    [
        ("2026-03-06", 3),
        ("2026-03-06T00:00", 3),
        ("2026-03-06T00:00:00+00:00", 3),
        ("2026-03-06T02:00+02:00", 3),
        ("2026-03-06T00:00:01", 2),
    ],
)
def test_since_a_moment(path, write, capsys, since, days):
    write(FALLING)
    assert len(_json(path, capsys, "--since", since)[1]["metrics"]["faithfulness"]) == days


def test_a_moment_without_a_zone_is_one_of_utc(path, write, capsys, monkeypatch):
    write(FALLING)
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("TZ", "America/New_York")
        time.tzset()
        _, found = _json(path, capsys, "--since", "2026-03-06")
    time.tzset()
    assert len(found["metrics"]["faithfulness"]) == 3


@pytest.mark.parametrize(("since", "number"), [("90m", 1), ("3h", 2), ("2d", 3), ("1w", 4)])
def test_since_a_span_ago(path, write, capsys, since, number):
    for hours in (1, 2, 30, 100):
        write([0.5], first=time.time() - hours * 3600)
    _, found = _json(path, capsys, "--since", since, "--by", "1")
    assert len(found["metrics"]["faithfulness"]) == number


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--by", "week"], "must be hour, day or a whole number of at least 1, not 'week'"),
        (["--by", "0"], "must be hour, day or a whole number of at least 1, not '0'"),
        (["--window", "0"], "must be a whole number of at least 1, not '0'"),
        (["--since", "yesterday"], "must be a date, a time, or a span such as 36h or 14d, not 'yesterday'"),
        (["--since", "2030-01-01"], "has no scores since then: choose an earlier --since"),
        (["--metric", "speed"], "has no metric 'speed'; it has faithfulness"),
        (["--profile", "no-such-profile.json"], "cannot read no-such-profile.json"),
    ],
)
def test_wrong_usage(path, write, capsys, arguments, said):
    write(FALLING)
    assert main(["history", str(path), *arguments]) == 2
    shown = capsys.readouterr()
    assert said in shown.err
    assert shown.out == ""


def test_a_history_that_is_not_there_is_not_made(path, capsys):
    assert main(["history", str(path)]) == 2
    assert "there is no such file" in capsys.readouterr().err
    assert not path.exists()


def test_a_history_without_scores_is_no_good_news(path, capsys):
    History(path).close()
    assert main(["history", str(path)]) == 2
    assert "has no scores yet" in capsys.readouterr().err


# --- drift --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def profile(tmp_path_factory):
    """A profile of answers, half of them right, whose scores are spread over [0, 1]."""
    right = {f"The desk opens at ten on day {n}.": 1.0 - n / 300 for n in range(100, 160)}
    wrong = {f"Elephants enjoy warm puddle {n}.": n / 1000 for n in range(100, 160)}
    scores = right | wrong
    answers = [
        LabelledAnswer(id=text, question="", context=(text,), answer=text, grounded=text in right) for text in scores
    ]
    path = tmp_path_factory.mktemp("profile") / "profile.json"
    calibrate(answers, target_miss=0.2, entailment=FakeEntailment(scores)).save(path)
    return path


@pytest.mark.parametrize(
    ("scores", "status", "said"),
    [
        ([n / 100 for n in range(33, 51)] * 2 + [0.9] * 36, 0, "ok"),
        ([0.0] * 60, 1, "critical"),
        ([0.0] * 10, 0, "too few answers to tell"),
    ],
)
def test_drift_from_a_profile(path, write, capsys, profile, scores, status, said):
    write([0.9] * 8)
    write(scores, name="answer_score", every_s=60, **OF_PROFILE)
    assert main(["history", str(path), "--profile", str(profile)]) == status
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("drift from the profile")]
    assert said in line
    found = _json(path, capsys, "--profile", str(profile))[1]["drift"]
    assert (found is None) == (said == "too few answers to tell")
    assert found is None or (found["level"], found["n"]) == (said, len(scores))


def test_drift_is_of_the_scores_that_are_asked_for(path, write, capsys, profile):
    write([0.9] * 60, name="answer_score", first=FIRST - 30 * DAY, every_s=60, **OF_PROFILE)
    write([0.0] * 60, name="answer_score", every_s=60, **OF_PROFILE)
    _, found = _json(path, capsys, "--profile", str(profile), "--since", "2026-03-01")
    assert (found["drift"]["level"], found["drift"]["n"]) == ("critical", 60)


def test_a_profile_needs_answer_scores(path, write, capsys, profile):
    write(FALLING)
    assert main(["history", str(path), "--profile", str(profile)]) == 2
    assert "has no answer_score to compare with a profile" in capsys.readouterr().err
