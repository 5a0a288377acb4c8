"""The circuit breaker, with a clock that the tests move."""

from __future__ import annotations

import logging

import pytest

from guardrail.errors import ConfigurationError
from guardrail.redis_store import Breaker


class Time:
    """A clock that stands still."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time():
    return Time()


@pytest.fixture
def breaker(time):
    return Breaker(clock=time)


def opened(breaker: Breaker) -> Breaker:
    assert breaker.admit().failed("refused", lasting=True)
    return breaker


def test_it_opens_after_so_many_failures_in_a_row(breaker):
    assert [breaker.admit().failed("timeout") for _ in range(3)] == [False, False, True]
    assert breaker.state == "open"
    assert breaker.admit() is None


def test_a_success_starts_the_count_again(breaker):
    for _ in range(2):
        breaker.admit().failed("timeout")
    breaker.admit().succeeded()
    assert [breaker.admit().failed("timeout") for _ in range(3)] == [False, False, True]


def test_one_failure_that_lasts_is_enough(breaker):
    assert breaker.admit().failed("auth", lasting=True)
    assert breaker.state == "open"


def test_after_the_stay_exactly_one_call_tries(breaker, time):
    opened(breaker)
    time.now += 0.999
    assert breaker.admit() is None
    time.now += 0.001
    probe = breaker.admit()
    assert probe is not None
    assert breaker.state == "half_open"
    assert [breaker.admit() for _ in range(5)] == [None] * 5
    probe.succeeded()
    assert breaker.state == "closed"
    assert breaker.admit() is not None


def test_a_cancelled_probe_lets_the_next_call_try(breaker, time):
    opened(breaker)
    time.now += 1
    breaker.admit().give_back()
    assert breaker.state == "open"
    second = breaker.admit()
    assert second is not None
    assert breaker.admit() is None
    second.succeeded()
    assert breaker.state == "closed"


def test_the_stay_doubles_up_to_its_limit_and_starts_again_after_success(breaker, time):
    opened(breaker)
    stays = []
    for _ in range(6):
        start = time.now
        while (probe := breaker.admit()) is None:
            time.now += 0.5
        stays.append(time.now - start)
        probe.failed("timeout")
    assert stays == [1, 2, 4, 8, 15, 15]
    time.now += 15
    breaker.admit().succeeded()
    opened(breaker)
    time.now += 1
    assert breaker.admit() is not None


def test_what_began_before_has_no_say(breaker, time):
    early, late = breaker.admit(), breaker.admit()
    opened(breaker)
    early.succeeded()
    assert breaker.state == "open"
    time.now += 1
    probe = breaker.admit()
    assert late.failed("timeout")
    assert breaker.state == "half_open"
    probe.succeeded()
    assert breaker.state == "closed"


def test_the_first_report_of_a_permit_counts(breaker, time):
    opened(breaker)
    time.now += 1
    probe = breaker.admit()
    probe.failed("timeout")
    probe.give_back()
    probe.succeeded()
    assert breaker.state == "open"
    assert breaker.admit() is None


def test_a_permit_given_back_counts_for_nothing(breaker):
    for _ in range(10):
        breaker.admit().give_back()
    assert [breaker.admit().failed("timeout") for _ in range(3)] == [False, False, True]


def test_it_logs_once_when_it_opens_and_once_when_it_closes(breaker, time, caplog):
    caplog.set_level(logging.INFO, "guardrail.redis_store")
    late = [breaker.admit() for _ in range(5)]
    opened(breaker)
    for permit in late:
        permit.failed("timeout")
    for stay in (1, 2):
        time.now += stay
        breaker.admit().failed("refused")
    time.now += 4
    breaker.admit().succeeded()
    breaker.admit().succeeded()
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", "Redis cannot be used (refused); not tried again for 1 s"),
        ("INFO", "Redis works again"),
    ]


@pytest.mark.parametrize("settings", [{"failures": 0}, {"open_s": 0.0}, {"open_s": 2.0, "max_open_s": 1.0}])
def test_wrong_settings(settings):
    with pytest.raises(ConfigurationError, match=r"Breaker\."):
        Breaker(**settings)
