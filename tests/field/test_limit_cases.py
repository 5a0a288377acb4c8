"""Cases of rate limits from the field: which test keeps each from happening here, and the tests of those left over."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from guardrail import Limit, RateLimitedError, RedisLimiter
from guardrail.errors import ConfigurationError
from guardrail.testing import ScriptedGenerator
from tests.redis_server import Proxy, free_port, silent_listener
from tests.streaming.helpers import LENIENT_WORDS, QUESTION, guard_for

_FILE = Path(__file__).resolve().parents[3] / "shared" / "cases" / "cases.dev.jsonl"
TESTS = Path(__file__).parents[1]

LIMITER, LOCAL = "integration/test_redis_limiter.py", "unit/limits/test_local_cases.py"
CONTRACT, STORE = "contract/test_limiter_contract.py", "integration/test_redis_store.py"
FAULTS, HERE = "integration/test_limit_faults.py", "field/test_limit_cases.py"
COVERED = {
    "R001": [
        (HERE, "test_r001_redis_is_down_at_the_start"),
        (HERE, "test_r001_redis_does_not_even_connect"),
        (LIMITER, "test_the_constructor_does_nothing"),
    ],
    "R002": [(FAULTS, "test_a_server_that_goes_and_comes_back"), (LIMITER, "test_gone_and_back")],
    "R003": [(HERE, "test_r003_redis_accepts_and_never_answers"), (LIMITER, "test_a_server_that_never_answers")],
    "R004": [
        (HERE, "test_r004_redis_answers_after_three_seconds"),
        (FAULTS, "test_a_server_that_stalls_for_five_seconds"),
    ],
    "R005": [
        (HERE, "test_r005_no_limiter_is_not_a_broken_limiter"),
        (FAULTS, "test_a_server_that_goes_and_comes_back"),
        (FAULTS, "test_guarded_runs_before_meanwhile_and_after"),
    ],
    "R006": [
        (LIMITER, "test_a_flushed_script_is_loaded_again_and_counted_once"),
        (STORE, "test_scripts_that_the_server_forgot_run_once"),
        (FAULTS, "test_what_callers_do_not_notice"),
    ],
    "R008": [(LIMITER, "test_all_keys_of_a_charge_are_declared_and_in_one_slot")],
    "R009": [
        (HERE, "test_r009_clocks_that_disagree"),
        (LIMITER, "test_clocks_of_the_clients_do_not_matter"),
        (LIMITER, "test_a_server_whose_clock_went_back_frees_nothing"),
        ("integration/test_limits_many_processes.py", "test_one_key"),
    ],
    "R010": [(LIMITER, "test_names_are_distinct_short_and_without_control_characters")],
    "R011": [(LOCAL, "test_r011_each_key_has_its_own_limit"), (CONTRACT, "test_keys_do_not_share")],
    "R012": [
        ("unit/limits/test_limit.py", "test_r012_wrong_numbers_are_refused_when_the_limit_is_made"),
        (CONTRACT, "test_wrong_limits"),
    ],
    "R013": [
        (LOCAL, "test_r013_half_a_call_per_second_is_one_in_two_seconds"),
        (LOCAL, "test_r013_when_waiters_get_through"),
        (LOCAL, "test_r013_a_hundred_waiters_never_get_more_than_the_limit"),
        (LOCAL, "test_r013_retry_after_is_right"),
        (CONTRACT, "test_retry_after_is_when_it_fits"),
    ],
    "R014": [
        (LIMITER, "test_after_a_cancelled_call_answers_still_belong_to_their_questions"),
        (STORE, "test_after_a_cancelled_call_all_replies_are_right"),
    ],
    "R015": [
        (LOCAL, "test_r015_waiters_cancelled_at_the_moment_of_their_grant"),
        (CONTRACT, "test_random_cancellations_lose_and_double_nothing"),
    ],
    "R016": [
        (LOCAL, "test_r016_a_waiter_does_not_delay_another_key"),
        (CONTRACT, "test_a_waiter_of_one_key_does_not_delay_another"),
    ],
    "R017": [
        (LOCAL, "test_r017_one_limiter_in_two_hundred_loops"),
        (CONTRACT, "test_one_limiter_in_many_event_loops"),
        (STORE, "test_200_event_loops_one_after_the_other"),
    ],
    "R018": [(LIMITER, "test_every_key_has_a_time_to_live_after_every_call")],
    "R019": [(LOCAL, "test_r019_a_limit_of_one"), (CONTRACT, "test_a_limit_of_one")],
}
RULES = ["local", "open", "closed"]
TIMEOUT_S = 0.2
SLACK_S = 3.0  # for a machine that does something else meanwhile
ANSWER = "The old hall keeps a wooden clock near its door."


@pytest.mark.shared_data
@pytest.mark.skipif(not _FILE.is_file(), reason="the shared field cases are not beside the repository")
def test_every_case_is_covered():
    cases = map(json.loads, _FILE.read_text(encoding="utf-8").splitlines())
    assert {case["id"] for case in cases if case["kind"] == "ratelimit"} == set(COVERED)


@pytest.mark.parametrize("case", COVERED)
def test_the_tests_are_there(case):
    for file, name in COVERED[case]:
        assert re.search(rf"^(async )?def {name}\(", (TESTS / file).read_text(encoding="utf-8"), re.MULTILINE), name


def limiter_at(url, on_error="local", **options):
    return RedisLimiter(url, Limit(5, 600.0), on_error=on_error, **{"timeout_s": TIMEOUT_S, **options})


async def timed(limiter, key="tenant"):
    began = time.monotonic()
    decision = await limiter.acquire(key, timeout_s=0)
    return decision, time.monotonic() - began


@contextmanager
def unreachable():
    """A port to which no connection comes about: its queue is full, so the system drops what comes. Yields its URL."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(8):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        yield f"redis://127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.parametrize("on_error", RULES)
async def test_r001_redis_is_down_at_the_start(on_error):
    began = time.monotonic()
    # A refusal comes at once; the limit is long, so that a busy machine does not make a timeout of it.
    limiter = limiter_at(f"redis://127.0.0.1:{free_port()}", on_error, timeout_s=5.0)
    assert time.monotonic() - began < SLACK_S
    decision, took_s = await timed(limiter)
    assert (decision.allowed, decision.source) == (on_error != "closed", on_error)
    assert decision.degraded == "redis_refused"
    assert took_s < SLACK_S
    await limiter.aclose()


@pytest.mark.parametrize("on_error", RULES)
async def test_r001_redis_does_not_even_connect(on_error):
    with unreachable() as url:
        limiter = limiter_at(url, on_error)
        decision, took_s = await timed(limiter)
        assert (decision.allowed, decision.source) == (on_error != "closed", on_error)
        assert decision.degraded == "redis_timeout"
        assert TIMEOUT_S / 2 < took_s < 2 * TIMEOUT_S + SLACK_S
        await limiter.aclose()


@pytest.mark.parametrize("share", [True, False], ids=["shared", "alone"])
@pytest.mark.parametrize("on_error", RULES)
async def test_r003_redis_accepts_and_never_answers(on_error, share):
    with silent_listener() as url:
        async with limiter_at(url, on_error, share_round_trips=share) as limiter:
            found = await asyncio.gather(*(timed(limiter, f"tenant {number}") for number in range(20)))
    assert max(took_s for _, took_s in found) < 4 * TIMEOUT_S + SLACK_S
    assert {decision.degraded for decision, _ in found} <= {"redis_timeout", "redis_breaker_open"}
    assert {decision.allowed for decision, _ in found} == {on_error != "closed"}


async def test_r004_redis_answers_after_three_seconds(start_redis):
    server = start_redis()
    async with Proxy(server.socket) as proxy, limiter_at(proxy.url, "closed", timeout_s=1.0) as limiter:
        assert (await limiter.acquire("tenant")).remaining == 4
        proxy.delay_s = 3.0
        decision, took_s = await timed(limiter)
        assert (decision.allowed, decision.degraded) == (False, "redis_timeout")
        assert took_s < 2.9
        proxy.delay_s = 0.0
        # Whatever becomes of the late answer, these get their own.
        for number in range(20):
            decision, _ = await timed(limiter, f"tenant {number}")
            assert (decision.remaining, decision.source) == (4, "redis")
        await asyncio.sleep(max(3.2 - took_s, 0))
        assert (await limiter.acquire("tenant")).remaining == 2  # it was charged, once


async def test_r005_no_limiter_is_not_a_broken_limiter():
    async def outcome(limiter):
        guard = guard_for(ANSWER, limiter=limiter, policy=LENIENT_WORDS.override(release="answer"))
        return await guard.run(ScriptedGenerator(ANSWER), question=QUESTION, context=[ANSWER])

    assert (await outcome(None)).degraded == ()
    for rule in ("local", "open"):
        async with limiter_at(f"redis://127.0.0.1:{free_port()}", rule) as limiter:
            found = await outcome(limiter)
            assert (found.accepted, found.degraded) == (True, ("redis_refused",))
            assert limiter.degraded_decisions == 1
    async with limiter_at(f"redis://127.0.0.1:{free_port()}", "closed") as limiter:
        with pytest.raises(RateLimitedError) as refused:
            await outcome(limiter)
        assert refused.value.outcome.degraded == ("redis_refused",)
        assert refused.value.retry_after_s > 0


def test_r005_each_rule_is_documented_and_no_other_accepted():
    for rule in RULES:
        assert f'``"{rule}"``' in RedisLimiter.__doc__
    with pytest.raises(ConfigurationError, match="on_error"):
        limiter_at("redis://localhost", "allow")


async def test_r009_clocks_that_disagree(redis_server):
    def server_s():
        seconds, micros = redis_server.do("TIME")
        return seconds + micros / 1e6

    ahead, behind = (
        RedisLimiter(
            redis_server.url, Limit(5, 1.0, burst=5), timeout_s=10.0, clock=lambda by=by: time.monotonic() + by
        )
        for by in (1.0, -1.0)
    )
    began, allowed = server_s(), 0
    async with ahead, behind:
        while server_s() - began < 1.3:
            for limiter in (ahead, behind):
                allowed += (await limiter.acquire("tenant", timeout_s=0)).allowed
                assert allowed <= 5 + 5 * (server_s() - began)
    assert allowed > 5
