"""Alarms about falling values."""

from __future__ import annotations

import math

import pytest

from guardrail.evaluation.alarms import Alarm, AlarmLevel, alarm, alarms

EXAMPLE = [0.88, 0.86, 0.89, 0.87, 0.85, 0.84, 0.82, 0.76]
OK, WARNING, CRITICAL = AlarmLevel


def test_the_history_of_the_specification():
    found = alarms(EXAMPLE)
    assert found[:4] == [None] * 4
    assert [own.level for own in found[4:]] == [OK, OK, OK, CRITICAL]
    assert found[-1].base == pytest.approx(0.845, abs=1e-12)
    assert f"{found[-1].fall:.1%}" == "10.1%"
    assert found[-1] == alarm(EXAMPLE)


@pytest.mark.parametrize("length", range(5))
def test_too_short_a_history_has_no_alarm(length):
    assert alarm([0.9] * 3 + [0.0] * 2, window=5) is None
    assert alarm([0.9] * length) is None


@pytest.mark.parametrize("base", [n / 40 for n in range(1, 41)])
@pytest.mark.parametrize(
    ("fall", "level"),
    [(0.0499, OK), (0.05, WARNING), (0.0999, WARNING), (0.1, CRITICAL), (0.5, CRITICAL), (-0.0, OK)],
)
def test_a_threshold_itself_is_reached_in_spite_of_rounding(base, fall, level):
    assert alarm([base] * 4 + [base * (1 - fall)]).level is level


def test_a_rise_is_no_alarm():
    assert alarm([0.5] * 4 + [0.6]) == Alarm(level=OK, value=0.6, base=0.5, fall=pytest.approx(-0.2))


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_nothing_falls_from_zero(value):
    assert alarm([0.0] * 4 + [value]) == Alarm(level=OK, value=value, base=0.0, fall=0.0)


def test_a_fall_to_zero_is_whole():
    assert alarm([0.0, 0.0, 0.0, 0.4, 0.0]) == Alarm(level=CRITICAL, value=0.0, base=0.1, fall=1.0)


def test_only_the_window_counts():
    assert alarm([1.0, 1.0, 0.5, 0.5, 0.5, 0.5, 0.5]).level is OK
    assert alarm([0.5, 0.9, 0.9, 0.8], window=2).base == pytest.approx(0.9)


def test_thresholds_may_be_others():
    assert alarm([0.8, 0.7], window=1, warning=0.2, critical=0.3).level is OK
    assert alarm([0.8, 0.6], window=1, warning=0.2, critical=0.3).level is WARNING


@pytest.mark.parametrize(
    ("history", "said"),
    [
        ([0.9] * 4 + [math.nan], r"must be finite, got nan"),
        ([0.9] * 4 + [1.2], r"history\[4\] must be in \[0, 1\], got 1.2"),
        ([0.9, 0.9, -0.1, 0.9, 0.9], r"history\[2\] must be in \[0, 1\], got -0.1"),
        ([0.9, 0.9, None, 0.9, 0.9], r"history\[2\] must be a number, got NoneType"),
    ],
)
def test_values_out_of_range_are_refused(history, said):
    with pytest.raises(ValueError, match=said):
        alarm(history)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"window": 0}, "window must be a whole number of at least 1, got 0"),
        ({"window": 2.5}, "window must be a whole number of at least 1, got 2.5"),
        ({"window": True}, "window must be a whole number of at least 1, got True"),
        ({"warning": 0.0}, "0 < warning <= critical <= 1 does not hold"),
        ({"warning": 0.2}, "0 < warning <= critical <= 1 does not hold"),
        ({"critical": math.nan}, "0 < warning <= critical <= 1 does not hold"),
    ],
)
def test_settings_out_of_range_are_refused(settings, said):
    with pytest.raises(ValueError, match=said):
        alarm(EXAMPLE, **settings)
    with pytest.raises(ValueError, match=said):
        alarms([0.5], **settings)


def test_no_history_at_all():
    assert alarm([]) is None
    assert alarms([]) == []
