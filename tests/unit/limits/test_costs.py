import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail.errors import ConfigurationError
from guardrail.limits import costs
from guardrail.limits.limit import Limit


@pytest.mark.parametrize("key", ["", "tenant", "a:b", "{x}", "\ud800", "x" * 1_000_000])
def test_any_text_is_a_key(key):
    assert costs.check_key(key) is key


@pytest.mark.parametrize("key", [None, b"secret-tenant", 1, ["secret-tenant"]])
def test_a_wrong_key_is_not_shown(key):
    with pytest.raises(ConfigurationError, match="must be a str") as caught:
        costs.check_key(key)
    assert "secret-tenant" not in str(caught.value)


@pytest.mark.parametrize(
    ("cost", "milli"),
    [
        (0, 0),
        (0.0, 0),
        (1, 1000),
        (1.1, 1100),
        (2.3, 2300),
        (0.07, 70),
        (0.0011, 2),
        (1e-12, 1),
        (5e-324, 1),
        (1e300, 10**303),
        (10**400, 10**403),
    ],
)
def test_costs_are_thousandths_rounded_up(cost, milli):
    assert costs.check_cost(cost) == milli


@pytest.mark.parametrize("cost", [-1, -1e-9, math.nan, math.inf, -math.inf, True, False, "1", None, 1j])
def test_wrong_costs_are_refused(cost):
    with pytest.raises(ConfigurationError, match="cost of a charge"):
        costs.check_cost(cost)


@pytest.mark.parametrize(
    ("timeout", "seconds"), [(None, None), (0, 0.0), (2, 2.0), (0.5, 0.5), (math.inf, None), (10**400, None)]
)
def test_timeouts(timeout, seconds):
    assert costs.check_timeout(timeout) == seconds


@pytest.mark.parametrize("timeout", [-1, -1e-9, math.nan, -math.inf, True, "1"])
def test_wrong_timeouts_are_refused(timeout):
    with pytest.raises(ConfigurationError, match="timeout_s"):
        costs.check_timeout(timeout)


@pytest.mark.parametrize("tokens", [0, -1, math.nan, math.inf, True, "1", None])
def test_wrong_tokens_per_call_are_refused(tokens):
    with pytest.raises(ConfigurationError, match="tokens_per_call"):
        costs.check_tokens_per_call(tokens)


def test_a_limit_of_tokens_is_charged_the_estimate():
    assert costs.amount(Limit(5), 1500, 800_000) == 1500
    assert costs.amount(Limit(5000, unit="tokens"), 1500, 800_000) == 1_200_000
    assert costs.amount(Limit(5000, unit="tokens"), 1, 1) == 1


@pytest.mark.parametrize(
    ("limit", "rate", "period"),
    [(Limit(60, 60.0), 60_000, 60_000_000), (Limit(1.5, 0.1), 1500, 100_000), (Limit(0.5), 1000, 2_000_000)],
)
def test_windows_in_whole_numbers(limit, rate, period):
    assert (costs.rate_milli(limit), costs.period_us(limit)) == (rate, period)
    assert costs.capacity_milli(limit) == rate


@pytest.mark.parametrize(
    ("limit", "interval", "tolerance"),
    [
        (Limit(2, 10.0, burst=2), 5_000_000, 10_000_000),
        (Limit(1, 3.0, burst=3), 3_000_000, 9_000_000),
        (Limit(0.5, 1.0, burst=1), 2_000_000, 2_000_000),
        (Limit(3, 1.0, burst=1), 333_334, 333_334),
        (Limit(3, 1.0, burst=2.5), 333_334, 666_668 + 166_667),
        (Limit(0.1, 0.1, burst=1), 1_000_000, 1_000_000),
    ],
)
def test_gcra_in_whole_numbers(limit, interval, tolerance):
    terms = costs.GcraTerms.of(limit)
    assert (terms.interval_us(1000), terms.tolerance_us) == (interval, tolerance)


_NUMBERS = st.floats(min_value=1e-3, max_value=1e6) | st.integers(1, 10**6)


@given(rate=_NUMBERS, period=_NUMBERS, burst=st.integers(1, 500))
def test_a_full_bucket_gives_its_burst_in_one_charge_or_in_many(rate, period, burst):
    terms = costs.GcraTerms.of(Limit(rate, period, burst=burst))
    assert terms.interval_us(burst * 1000) <= terms.tolerance_us
    assert terms.interval_us(1000) * burst <= terms.tolerance_us < terms.interval_us(1000) * (burst + 1)
    assert terms.left_milli(terms.tolerance_us) >= burst * 1000


@given(rate=_NUMBERS, period=_NUMBERS, burst=st.floats(min_value=1, max_value=1e7))
def test_a_full_bucket_has_at_most_a_millisecond_too_much(rate, period, burst):
    terms = costs.GcraTerms.of(Limit(rate, period, burst=burst))
    assert terms.left_milli(terms.tolerance_us) <= (burst + rate / period / 1000) * 1000 * (1 + 1e-9) + 2


def test_the_smallest_and_largest_numbers_do_not_break_the_arithmetic():
    terms = costs.GcraTerms.of(Limit(1e-300, 1e300, burst=1))
    assert costs.seconds(terms.interval_us(1000)) == math.inf
    assert costs.GcraTerms.of(Limit(1e300, 1e-300, burst=1)).interval_us(1000) == 1
