import dataclasses
import math

import pytest

from guardrail.errors import ConfigurationError
from guardrail.limits.limit import Limit, as_limits

R012_VALUES = [0, -1, math.nan, math.inf, None, True, "5"]


@pytest.mark.parametrize("value", R012_VALUES)
@pytest.mark.parametrize("field", ["rate", "period_s"])
def test_r012_wrong_numbers_are_refused_when_the_limit_is_made(field, value):
    arguments = {"rate": 5, "period_s": 1.0} | {field: value}
    with pytest.raises(ConfigurationError, match=rf"Limit\.{field}: must be a finite number above 0"):
        Limit(**arguments)


@pytest.mark.parametrize("value", [value for value in R012_VALUES if value is not None])
def test_r012_wrong_bursts(value):
    with pytest.raises(ConfigurationError, match=r"Limit\.burst"):
        Limit(5, burst=value)


@pytest.mark.parametrize(
    ("text", "rate", "period_s", "unit"),
    [
        ("60/min", 60, 60.0, "calls"),
        ("60 / minute", 60, 60.0, "calls"),
        ("10 per 2 s", 10, 2.0, "calls"),
        ("10 requests per second", 10, 1.0, "calls"),
        ("5 calls/h", 5, 3600.0, "calls"),
        ("1000 per 2 days", 1000, 172800.0, "calls"),
        ("100000 tokens/min", 100000, 60.0, "tokens"),
        ("1 token/sec", 1, 1.0, "tokens"),
        ("2.5/s", 2.5, 1.0, "calls"),
        (" 3 PER 1.5 Hours ", 3, 5400.0, "calls"),
        ("0.5/s", 1, 2.0, "calls"),
    ],
)
def test_texts(text, rate, period_s, unit):
    limit = Limit.parse(text)
    assert (limit.rate, limit.period_s, limit.unit) == (rate, period_s, unit)
    assert (limit.mode, limit.burst, limit.scope) == ("window", None, "key")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "60",
        "sixty/min",
        "60/",
        "/min",
        "-1/s",
        "60/fortnight",
        "60/min/s",
        "60 bananas/min",
        "1e3/s",
        None,
        60,
        b"1/s",
    ],
)
def test_texts_that_are_not_limits(text):
    with pytest.raises(ConfigurationError, match="not a limit"):
        Limit.parse(text)


@pytest.mark.parametrize("text", ["0/s", "0.0/min", "10 per 0 s"])
def test_r012_zero_in_a_text(text):
    with pytest.raises(ConfigurationError, match="above 0"):
        Limit.parse(text)


def test_below_one_in_a_window_means_one_in_a_longer_one():
    assert dataclasses.astuple(Limit(0.5)) == (1, 2.0, None, "window", "calls", "key")
    assert Limit(0.25, 2.0).period_s == 8.0
    assert Limit(0.5, burst=1).period_s == 1.0  # gcra counts in fractions as it is


@pytest.mark.parametrize(
    ("arguments", "mode", "burst", "capacity", "most"),
    [
        ({"rate": 5}, "window", None, 5, 5),
        ({"rate": 5, "burst": 2}, "gcra", 2, 2, 7),
        ({"rate": 5, "mode": "gcra"}, "gcra", 1, 1, 6),
        ({"rate": 5, "mode": "window"}, "window", None, 5, 5),
    ],
)
def test_modes(arguments, mode, burst, capacity, most):
    limit = Limit(**arguments)
    assert (limit.mode, limit.burst, limit.capacity, limit.most_per_period) == (mode, burst, capacity, most)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mode": "bucket"}, r"Limit\.mode"),
        ({"unit": "words"}, r"Limit\.unit"),
        ({"scope": "tenant"}, r"Limit\.scope"),
        ({"mode": "window", "burst": 2}, "a window has no burst"),
        ({"burst": 0.5}, "below 1 nothing would ever pass"),
    ],
)
def test_contradictions(arguments, message):
    with pytest.raises(ConfigurationError, match=message):
        Limit(5, **arguments)


def test_at_most():
    limit = Limit.at_most(50, period_s=1.0, burst=10, unit="tokens", scope="global")
    assert dataclasses.astuple(limit) == (40, 1.0, 10, "gcra", "tokens", "global")
    assert limit.most_per_period == 50


@pytest.mark.parametrize(("count", "burst"), [(5, 5), (5, 6), (1, 1)])
def test_at_most_with_too_much_burst(count, burst):
    with pytest.raises(ConfigurationError, match="burst must be below count"):
        Limit.at_most(count, burst=burst)


@pytest.mark.parametrize("count", R012_VALUES)
def test_r012_at_most(count):
    with pytest.raises(ConfigurationError, match=r"Limit\.count"):
        Limit.at_most(count, burst=1)


def test_several_limits():
    five = Limit(5)
    assert as_limits(five) == (five,)
    assert as_limits("5/s") == (five,)
    assert as_limits((five, "60/min")) == (five, Limit(60, 60.0))


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ([], "at least one limit"),
        (None, "must be a Limit or a text"),
        (5, "must be a Limit or a text"),
        (["5/s", 5], "must be a Limit or a text"),
        (["5/s", Limit(5)], "is there twice"),
        (["60/min", "nonsense"], "not a limit"),
    ],
)
def test_wrong_lists_of_limits(limits, message):
    with pytest.raises(ConfigurationError, match=message):
        as_limits(limits)


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        (Limit(60, 60.0), "60 calls per 60 s"),
        (Limit(0.5, burst=2, unit="tokens"), "0.5 tokens per 1 s, burst 2"),
        (Limit(5, scope="global"), "5 calls per 1 s, all keys together"),
    ],
)
def test_words(limit, words):
    assert str(limit) == words
