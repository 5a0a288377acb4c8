"""The scripts in Redis against the same limits in the plainest Python, at a time that the test sets."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from guardrail.limits.costs import GcraTerms
from guardrail.limits.limit import Limit
from guardrail.limits.redis_calls import Terms
from guardrail.limits.script import ACQUIRE, SETTLE

# Long enough that nothing expires by the server's own clock while the test runs.
TICK_US = 10 * 10**6
PERIOD_TICKS = 100
START_US = 1_700_000_000 * 10**6
CLOCK = "{t}clock"
WINDOW = Limit(10, PERIOD_TICKS * TICK_US / 1e6)
BUCKET = Limit(10, PERIOD_TICKS * TICK_US / 1e6, burst=5)


def timed(script):
    """The script, with a time that a key holds."""
    told = script.source.replace("redis.call('TIME')", f"redis.call('LRANGE', '{CLOCK}', 0, 1)")
    assert told != script.source
    return told


@dataclass
class PlainWindow:
    """All charges ever, summed up each time."""

    limit: Limit
    charges: dict[str, tuple[int, int]] = field(default_factory=dict)

    def used(self, at):
        return sum(amount for stamp, amount in self.charges.values() if stamp > at - PERIOD_TICKS * TICK_US)

    def wait(self, amount, now):
        ends = sorted(stamp + PERIOD_TICKS * TICK_US for stamp, _ in self.charges.values())
        return next(at for at in [now, *ends] if at >= now and self.used(at) + amount <= self.limit.rate * 1000) - now

    def charge(self, name, amount, now):
        self.charges[name] = (now, amount)
        return self.used(now)

    def settle(self, name, after, now):
        if self.charges[name][0] > now - PERIOD_TICKS * TICK_US:
            self.charges[name] = (self.charges[name][0], after)


@dataclass
class PlainBucket:
    """Level of a bucket that leaks: computed, not kept as a time."""

    limit: Limit
    full_at: int = 0
    marks: dict[str, tuple[int, int]] = field(default_factory=dict)

    def interval(self, amount):
        return GcraTerms.of(self.limit).interval_us(amount)

    def wait(self, amount, now):
        level = max(self.full_at - now, 0) + self.interval(amount)
        return max(level - GcraTerms.of(self.limit).tolerance_us, 0)

    def charge(self, name, amount, now):
        self.full_at = max(self.full_at, now) + self.interval(amount)
        self.marks[name] = (self.full_at, amount)
        return self.full_at


charge = st.tuples(st.just("charge"), st.integers(1, 5000))
# At least half a unit: the key of a bucket lives as long as its charge takes to come in again, by the server's clock.
half = st.tuples(st.just("charge"), st.integers(500, 5000))
step = st.tuples(st.just("step"), st.integers(1, 60))
settle = st.tuples(st.just("settle"), st.tuples(st.integers(0, 30), st.integers(0, 9000)))


def run(client, clock, script, key, *records):
    client.delete(CLOCK)
    client.rpush(CLOCK, clock // 10**6, clock % 10**6)
    reply = client.eval(timed(script), 1, key, *records)
    return [[int(number) for number in line.split()] for line in reply.split(b"\n")]


@pytest.fixture
def client(redis_server):
    with redis_server.client() as client:
        yield client


relaxed = settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@relaxed
@given(actions=st.lists(charge | step | settle, min_size=1, max_size=30))
def test_a_window_is_the_sum_of_what_is_in_it(client, actions):
    client.flushdb()
    plain, terms, now, amounts = PlainWindow(WINDOW), Terms(WINDOW, 1000), START_US, []
    for number, (what, value) in enumerate(actions):
        if what == "step":
            now += value * TICK_US
        elif what == "charge":
            [answer] = run(client, now, ACQUIRE, "{t}w", f"c{number}", terms.demand(value))
            wait = plain.wait(value, now)
            if wait:
                assert answer == [0, 1, wait]
            else:
                assert answer == [1, now, plain.charge(f"c{number}", value, now)]
                amounts.append((f"c{number}", value))
        elif amounts:
            place, after = value[0] % len(amounts), value[1]
            name, before = amounts[place]
            if before:
                run(client, now, SETTLE, "{t}w", name, f"window {before} {after} 0")
                plain.settle(name, after, now)
                amounts[place] = (name, after)
        if client.exists("{t}w"):
            entries = dict(client.zrange("{t}w", 0, -1, withscores=True))
            total = -entries.pop(b"total")
            assert total == sum(int(member.partition(b":")[2]) for member in entries)
            assert client.pttl("{t}w") > 0


@relaxed
@given(actions=st.lists(half | step, min_size=1, max_size=30))
def test_a_bucket_is_what_came_in_less_what_was_taken(client, actions):
    client.flushdb()
    plain, terms, now = PlainBucket(BUCKET), Terms(BUCKET, 1000), START_US
    for number, (what, value) in enumerate(actions):
        if what == "step":
            now += value * TICK_US // 7
            continue
        [answer] = run(client, now, ACQUIRE, "{t}g", f"c{number}", terms.demand(value))
        wait = plain.wait(value, now)
        assert answer == ([0, 1, wait] if wait else [1, now, plain.charge(f"c{number}", value, now)])


@relaxed
@given(
    costs=st.lists(st.integers(500, 4000), min_size=1, max_size=12),
    limits=st.lists(
        st.sampled_from([WINDOW, BUCKET, Limit(7, 1000.0), Limit(3, 2000.0, burst=3)]), min_size=1, unique=True
    ),
)
def test_charges_in_one_run_are_charges_one_after_the_other(client, costs, limits):
    terms = [Terms(limit, 1000) for limit in limits]
    records = [[f"c{n}", *(term.demand(cost) for term in terms)] for n, cost in enumerate(costs)]
    keys = [f"{{t}}{n}" for n in range(len(limits))]

    def ask(*arguments):
        client.delete(CLOCK)
        client.rpush(CLOCK, START_US // 10**6, 0)
        return client.eval(timed(ACQUIRE), len(keys), *keys, *arguments).split(b"\n")

    client.flushdb()
    together = ask(*[part for record in records for part in record])
    left_together = [client.dump(key) for key in keys]
    client.flushdb()
    apart = [line for record in records for line in ask(*record)]
    assert together == apart
    assert left_together == [client.dump(key) for key in keys]


def test_settling_a_bucket_is_as_if_it_had_been_charged_right(client):
    terms = Terms(BUCKET, 1000)
    one_us = terms.argument(1000)
    [[_, _, mark]] = run(client, START_US, ACQUIRE, "{t}g", "a", terms.demand(2000))
    assert mark == START_US + 2 * one_us
    # Up, when the key has expired: it counts from where the charge had left it.
    client.delete("{t}g")
    later = START_US + 3 * one_us
    run(client, later, SETTLE, "{t}g", "a", f"gcra {2 * one_us} {4 * one_us} {mark}")
    assert int(client.get("{t}g")) == mark + 2 * one_us
    # Down, when part of it has come in again: only the rest is given back.
    client.set("{t}g", START_US + 5 * one_us)
    run(client, START_US + one_us, SETTLE, "{t}g", "a", f"gcra {2 * one_us} 0 {mark}")
    assert int(client.get("{t}g")) == START_US + 4 * one_us
    # Down to nothing: as good as new, so there is no key.
    client.set("{t}g", START_US + one_us)
    run(client, START_US, SETTLE, "{t}g", "a", f"gcra {one_us} 0 {START_US + one_us}")
    assert client.exists("{t}g") == 0


def test_a_clock_that_goes_back_stamps_with_the_newest_time(client):
    terms = Terms(WINDOW, 1000)
    run(client, START_US + 50 * TICK_US, ACQUIRE, "{t}w", "a", terms.demand(6000))
    run(client, START_US, ACQUIRE, "{t}w", "b", terms.demand(3000))
    scores = [score for _, score in client.zrange("{t}w", 0, -1, withscores=True)]
    assert scores == [-9000, START_US + 50 * TICK_US, START_US + 50 * TICK_US]
    [answer] = run(client, START_US, ACQUIRE, "{t}w", "c", terms.demand(2000))
    assert answer == [0, 1, PERIOD_TICKS * TICK_US]
