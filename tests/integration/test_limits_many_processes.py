"""Several processes with wrong clocks on one server: no second of the server admits more than the limit."""

from __future__ import annotations

import pytest

from tests.limit_workers import run_all, skewed, worst_window

SKEW_S = 0.6
SECONDS = 2.5


def found_by(works):
    """Stamps of the server by the name of the limit there; each process has got some, and none went without Redis."""
    found = run_all(works)
    stamps = {}
    for one in found:
        assert one["granted"] > 0
        assert one["sources"] == ["redis"]
        for name, of_name in one["stamps"].items():
            stamps.setdefault(name, []).extend(of_name)
    # Nobody was admitted without a stamp, nor charged for nothing.
    assert sum(map(len, stamps.values())) == sum(one["granted"] for one in found)
    return stamps


@pytest.mark.parametrize(
    ("stamps", "worst"),
    [
        ([], 0),
        ([5], 1),
        ([1_000_000, 0], 1),  # half-open: what is exactly a second apart is in no window together
        ([999_999, 0], 2),
        ([0, 0, 900_000, 1_000_000, 1_800_000, 1_899_999], 4),
        ([*range(50), *range(999_990, 1_000_040)], 60),
    ],
)
def test_the_worst_window_of_stamps(stamps, worst):
    assert worst_window(stamps) == worst


@pytest.mark.parametrize("share", [True, False], ids=["shared", "alone"])
@pytest.mark.parametrize("mode", ["window", "gcra"])
def test_one_key(redis_server, mode, share):
    before_us = server_us(redis_server)
    stamps = found_by(skewed(SKEW_S, url=redis_server.url, mode=mode, share=share, seconds=SECONDS))
    (of_key,) = stamps.values()
    assert worst_window(of_key) <= 50
    assert before_us <= min(of_key) <= max(of_key) <= server_us(redis_server)


@pytest.mark.parametrize("mode", ["window", "gcra"])
def test_several_keys_at_once(redis_server, mode):
    keys = ("tenant a", "tenant b", "tenant c")
    stamps = found_by(skewed(SKEW_S, url=redis_server.url, mode=mode, keys=keys, seconds=SECONDS))
    assert len(stamps) == len(keys)
    assert max(worst_window(of_key) for of_key in stamps.values()) <= 50


def server_us(server):
    seconds, micros = server.do("TIME")
    return seconds * 1_000_000 + micros
