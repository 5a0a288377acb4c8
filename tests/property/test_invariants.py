"""The invariants of a run, over random answers, chunkings, generators and policies."""

from __future__ import annotations

import asyncio
import string
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from guardrail import EntailmentScore, Guardrail, OutcomeStatus, Policy, ScoringError, Verifier
from guardrail.events import Retracted, RodeAlong
from guardrail.testing import FakeEntailment, ScriptedGenerator
from tests.streaming.helpers import (
    QUESTION,
    Counts,
    Recorder,
    assert_balanced,
    assert_receipt,
    generator,
    half_surrogates,
    quiet,
    split_at,
    strings_in,
    told,
)

SLOW = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])

# Every sentence has a word of its own. The true ones stand verbatim in the passages.
TRUE = (
    "The vokaa gallery shows old clocks.",
    "A vokab lamp hangs over the stairs 🕯.",
    "Every vokac visitor gets a paper map.",
    "Il giardino vokad ospita molte rose.",
    "Our vokae café sells warm bread 🥐.",
    "The vokaf archive stores letters from sailors.",
)
FALSE = tuple(f"The zqx{letter} cellar hides rare coins." for letter in string.ascii_lowercase[:18])
NEUTRAL = "Hello!"
PASSAGES = [" ".join(TRUE[:2]), " ".join(TRUE[2:4]), " ".join(TRUE[4:])]
SEPARATORS = (" ", "\n", "  ", "\n\n")


def marker(sentence: str) -> str:
    return next(w for w in sentence.split() if w.startswith(("vok", "zqx")))


@dataclass(frozen=True)
class Script:
    """One attempt: sentences with what follows each, and the chunks they arrive in."""

    parts: tuple[tuple[str, str], ...]
    chunks: tuple[str, ...]

    @property
    def text(self) -> str:
        return "".join(s + after for s, after in self.parts)

    @property
    def sentences(self) -> list[str]:
        return [s for s, _ in self.parts]

    @property
    def first_false(self) -> int | None:
        return next((i for i, s in enumerate(self.sentences) if s in FALSE), None)

    @property
    def passes(self) -> bool:
        return self.first_false is None and bool(self.text.strip())

    @property
    def prefix(self) -> list[str]:
        """The sentences before the first one that fails."""
        return self.sentences[: self.first_false]


@st.composite
def chunkings(draw: Any, text: str) -> tuple[str, ...]:
    way = draw(st.sampled_from(["whole", "characters", "halves", "random", "random halves"]))
    if "halves" in way:
        text = half_surrogates(text)
    if way == "whole":
        return (text,)
    if way in ("characters", "halves"):
        return tuple(text)
    return tuple(split_at(text, draw(st.lists(st.integers(0, len(text)), max_size=8))))


@st.composite
def scripts(draw: Any, number: int, pool: tuple[str, ...] = TRUE, greets: bool = True) -> Script:
    """An attempt; false sentences belong to one attempt only, true ones may return in a later attempt."""
    true = draw(st.lists(st.sampled_from(pool), max_size=3, unique=True))
    false = draw(st.lists(st.sampled_from(FALSE[6 * number : 6 * number + 6]), max_size=2, unique=True))
    sentences = draw(st.permutations(true + false))
    if greets and draw(st.booleans()):
        sentences = [NEUTRAL, *sentences]
    parts = [(s, draw(st.sampled_from(SEPARATORS))) for s in sentences]
    if parts and draw(st.booleans()):
        parts[-1] = (parts[-1][0], "")
    text = "".join(s + after for s, after in parts)
    return Script(tuple(parts), draw(chunkings(text)))


def scorer() -> FakeEntailment:
    known = {s.strip() for s in (*TRUE, NEUTRAL)}
    return FakeEntailment(lambda premise, claim: 1.0 if claim.strip() in known else 0.0)


@dataclass
class Seen:
    events: list[Any]
    outcome: Any
    counts: Counts
    recorder: Recorder


def play(
    attempts: list[Script],
    *,
    policy: Policy,
    kind: str = "async",
    can_continue: bool = False,
    retractable: bool = False,
    entailment: Any = None,
) -> Seen:
    counts, recorder = Counts(), Recorder()
    guard = Guardrail(policy=policy, entailment=entailment or scorer(), observers=[recorder])
    source = generator([a.chunks for a in attempts], counts, can_continue=can_continue, kind=kind)

    async def read() -> tuple[list[Any], Any]:
        stream = guard.stream(source, question=QUESTION, context=PASSAGES)
        events = [e async for e in stream.events(retractable=retractable)]
        outcome = await stream.outcome()
        await stream.aclose()
        return events, outcome

    events, outcome = asyncio.run(read())
    return Seen(events, outcome, counts, recorder)


def assert_no_leak(seen: Seen, allowed: set[str], attempts: list[Script]) -> None:
    """No false sentence anywhere; no true sentence outside ``allowed``, except as evidence."""
    words = {marker(s) for a in attempts for s in a.sentences if s != NEUTRAL}
    permitted = {marker(s) for s in allowed if s != NEUTRAL}
    for event in seen.events:
        assert event.reader_safe
        found = "\x00".join(strings_in(event)) + repr(event)
        assert not any(w in found for w in words if w.startswith("zqx"))
        found = "\x00".join(strings_in(event, passages=False)) + repr(event)
        leaked = {w for w in words if w.startswith("vok") and w in found} - permitted
        assert not leaked


def assert_sound(seen: Seen, policy: Policy) -> None:
    outcome = seen.outcome
    assert seen.counts.calls <= policy.max_attempts
    assert len(outcome.attempts) == seen.counts.calls
    assert seen.counts.all_closed
    assert_balanced(seen.recorder.events)
    assert_receipt(outcome)
    assert told(seen.events) == outcome.text
    for sentence in TRUE:
        assert outcome.text.count(sentence) <= 1
    finished = seen.events[-1].outcome
    assert finished.text == outcome.text
    for attempt in outcome.attempts:
        for value in (attempt.delta_r, attempt.worst_delta_r, *(v.delta_r for v in attempt.verdicts)):
            assert value is None or 0.0 <= value <= 1.0


KINDS = st.sampled_from(["async", "async", "async", "object", "sync"])


@settings(SLOW, max_examples=80)
@given(st.data(), KINDS, st.booleans())
def test_answer_mode_delivers_one_whole_attempt_or_none(data: Any, kind: str, can_continue: bool) -> None:
    attempts = [data.draw(scripts(n)) for n in range(data.draw(st.integers(1, 3)))]
    policy = Policy(lexical_weight=0.0, release="answer", max_attempts=len(attempts))
    seen = play(attempts, policy=policy, kind=kind, can_continue=can_continue)
    winner = next((a for a in attempts if a.passes), None)
    assert_no_leak(seen, set(winner.sentences) if winner else set(), attempts)
    assert_sound(seen, policy)
    if winner is None:
        assert seen.outcome.status is OutcomeStatus.REFUSED
        assert seen.outcome.text == policy.refusal
        assert seen.outcome.delivered_attempt is None
    else:
        assert seen.outcome.accepted
        assert seen.outcome.text == winner.text
        assert seen.outcome.delivered_attempt == attempts.index(winner) + 1 == seen.counts.calls


@settings(SLOW, max_examples=100)
@given(st.data(), KINDS)
def test_sentence_mode_releases_only_what_passed(data: Any, kind: str) -> None:
    """A generator that cannot continue, a reader who cannot retract: later attempts only add."""
    attempts = [data.draw(scripts(n)) for n in range(data.draw(st.integers(1, 3)))]
    policy = Policy(lexical_weight=0.0, release="sentence", max_attempts=len(attempts))
    seen = play(attempts, policy=policy, kind=kind)
    out = attempts[0].prefix
    for later in attempts[1:]:
        if not out:
            out = later.prefix
    first_release = next((i for i, a in enumerate(attempts) if a.prefix), 0)
    winner = next((a for a in attempts if a.passes), None)
    assert_no_leak(seen, {*out, *(winner.sentences if winner else [])}, attempts)
    assert_sound(seen, policy)
    assert not any(isinstance(e, Retracted) for e in seen.events)
    if attempts[0].passes:
        assert seen.outcome.accepted
        assert seen.outcome.text == attempts[0].text
        assert seen.outcome.repair == ""
    elif seen.outcome.accepted:
        delivered = attempts[seen.outcome.delivered_attempt - 1]
        body = [s for s in (NEUTRAL, *TRUE) if s in seen.outcome.text]
        assert set(body) <= {*out, *delivered.sentences}
        added = [s for s in delivered.sentences if s in body and s not in out]
        assert added == sorted(added, key=seen.outcome.text.index)
        assert set(delivered.sentences) <= set(body), "an accepted attempt is delivered in full"
    elif winner is None:
        assert seen.outcome.status is OutcomeStatus.REFUSED
        tail = policy.refusal_tail if out else policy.refusal
        assert seen.outcome.text.rstrip().endswith(tail)
    if out:
        released = "".join(s + after for s, after in attempts[first_release].parts[: len(out)])
        assert seen.outcome.text.startswith(released.rstrip())


@settings(SLOW, max_examples=80)
@given(st.data(), KINDS)
def test_a_continuation_is_the_checked_prefix_and_more(data: Any, kind: str) -> None:
    count = data.draw(st.integers(1, 3))
    attempts = [data.draw(scripts(n, TRUE[2 * n : 2 * n + 2], greets=n == 0)) for n in range(count)]
    policy = Policy(lexical_weight=0.0, release="sentence", max_attempts=count)
    seen = play(attempts, policy=policy, kind=kind, can_continue=True)
    allowed: set[str] = set()
    expected, finished = "", False
    for number, attempt in enumerate(attempts):
        if number < seen.counts.calls:
            assert seen.counts.released_texts[number] == expected
        allowed |= set(attempt.prefix)
        expected += "".join(s + after for s, after in attempt.parts[: attempt.first_false])
        own_text = any(s for s, _ in attempt.parts)
        finished = attempt.first_false is None and (own_text or any(s in expected for s in TRUE))
        if finished:
            break
    assert_no_leak(seen, allowed, attempts)
    assert_sound(seen, policy)
    if finished:
        assert seen.outcome.accepted
        assert seen.outcome.text == expected
    else:
        assert seen.outcome.status is OutcomeStatus.REFUSED
        assert seen.outcome.text.startswith(expected.rstrip())


@settings(SLOW, max_examples=80)
@given(st.data(), KINDS)
def test_a_retracting_reader_ends_with_one_clean_attempt(data: Any, kind: str) -> None:
    attempts = [data.draw(scripts(n)) for n in range(data.draw(st.integers(1, 3)))]
    policy = Policy(lexical_weight=0.0, release="sentence", max_attempts=len(attempts))
    seen = play(attempts, policy=policy, kind=kind, retractable=True)
    allowed: set[str] = set()
    for attempt in attempts:
        allowed |= set(attempt.prefix)
        if attempt.passes:
            break
    assert_no_leak(seen, allowed, attempts)
    assert_sound(seen, policy)
    winner = next((a for a in attempts if a.passes), None)
    if winner is not None:
        assert seen.outcome.accepted
        assert seen.outcome.text == winner.text
    else:
        assert seen.outcome.status is OutcomeStatus.REFUSED


@settings(SLOW, max_examples=60)
@given(st.data(), st.sampled_from(["sentence", "answer", "observe"]), st.sampled_from(["async", "object", "sync"]))
def test_nothing_of_an_accepted_answer_is_lost(data: Any, release: str, kind: str) -> None:
    """Text, whitespace, and every object that carries more than text, in order, exactly once."""
    sentences = data.draw(st.lists(st.sampled_from(TRUE), min_size=1, max_size=5, unique=True))
    text = data.draw(st.sampled_from(["", " ", "\n\n"]))
    text += "".join(s + data.draw(st.sampled_from(SEPARATORS)) for s in sentences)
    chunks: list[Any] = []
    for piece in data.draw(chunkings(text)):
        extra = data.draw(st.integers(0, 3))
        chunks.append({"text": piece, "n": len(chunks)} if extra == 1 else piece)
        if extra == 2:
            chunks.append({"text": "", "usage_metadata": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}})
        if extra == 3:
            chunks.append(None)
    policy = Policy(lexical_weight=0.0, release=release)
    seen = play([Script((), tuple(chunks))], policy=policy, kind=kind)
    assert seen.outcome.accepted
    assert seen.outcome.text == text
    assert told(seen.events) == text
    rode = [e.raw for e in seen.events if isinstance(e, RodeAlong)]
    sent = [c for c in chunks if isinstance(c, dict)]
    assert [id(r) for r in rode] == [id(s) for s in sent]
    assert_receipt(seen.outcome)


@settings(SLOW, max_examples=50)
@given(st.data())
def test_the_best_attempt_has_the_lowest_worst_claim(data: Any) -> None:
    count = data.draw(st.integers(1, 4))
    grades = [data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=3)) for _ in range(count)]
    scores: dict[str, float] = {}
    attempts = []
    for number, row in enumerate(grades):
        parts = []
        for place, grade in enumerate(row):
            letters = string.ascii_lowercase[number] + string.ascii_lowercase[place]
            sentence = f"The zqx{letters} cellar hides rare coins."
            scores[sentence] = grade / 10
            parts.append((sentence, " "))
        text = "".join(s + a for s, a in parts)
        attempts.append(Script(tuple(parts), (text,)))
    policy = Policy(lexical_weight=0.0, release="answer", max_attempts=count, on_exhausted="best", delta=0.5)
    seen = play(attempts, policy=policy, entailment=FakeEntailment(scores))
    worst = [1 - min(row) / 10 for row in grades]
    best = worst.index(min(worst))
    assert seen.outcome.status is OutcomeStatus.BEST_ATTEMPT
    assert not seen.outcome.accepted
    assert seen.counts.calls == count
    tied = [i for i, w in enumerate(worst) if abs(w - worst[best]) < 1e-9]
    assert seen.outcome.delivered_attempt in {i + 1 for i in tied}
    assert seen.outcome.delivered_attempt == best + 1 or len(tied) > 1
    assert seen.outcome.text == attempts[seen.outcome.delivered_attempt - 1].text
    assert seen.outcome.attempts[best].worst_delta_r == pytest.approx(worst[best])
    assert_balanced(seen.recorder.events)
    assert_receipt(seen.outcome)


@settings(SLOW, max_examples=60)
@given(st.data(), st.booleans(), st.booleans())
def test_the_best_attempt_after_a_partial_release_keeps_what_is_out(
    data: Any, can_continue: bool, retractable: bool
) -> None:
    count = data.draw(st.integers(1, 3))
    pools = [TRUE[2 * n : 2 * n + 2] if can_continue else TRUE for n in range(count)]
    attempts = [data.draw(scripts(n, pools[n])) for n in range(count)]
    policy = Policy(lexical_weight=0.0, release="sentence", max_attempts=count, on_exhausted="best")
    seen = play(attempts, policy=policy, can_continue=can_continue, retractable=retractable)
    assert_sound(seen, policy)
    if not retractable:
        assert not any(isinstance(e, Retracted) for e in seen.events)
    if not any(a.passes for a in attempts) and not can_continue:
        assert not seen.outcome.accepted
        if any(a.text.strip() for a in attempts):
            assert seen.outcome.status is OutcomeStatus.BEST_ATTEMPT
    failed = [s for a in attempts for s in a.sentences if s in FALSE]
    if seen.outcome.status is not OutcomeStatus.BEST_ATTEMPT:
        assert not any(marker(s) in seen.outcome.text for s in failed)
    if seen.outcome.accepted:
        assert all(r.status.value == "checked_before_release" for r in seen.outcome.receipt)


def test_on_a_tie_the_earlier_attempt_is_delivered():
    one, two = "The zqxa cellar hides rare coins.", "The zqxb cellar hides rare coins."
    policy = Policy(lexical_weight=0.0, release="answer", max_attempts=2, on_exhausted="best")
    guard = Guardrail(policy=policy, entailment=FakeEntailment(0.25), observers=[])
    outcome = guard.run_sync(ScriptedGenerator(one, two), question=QUESTION, context=PASSAGES)
    assert (outcome.status, outcome.delivered_attempt, outcome.text) == (OutcomeStatus.BEST_ATTEMPT, 1, one)


@settings(SLOW, max_examples=60)
@given(st.data(), st.sampled_from(["sentence", "answer"]), st.integers(0, 30), st.booleans())
def test_an_exception_never_lets_unfinished_text_out(data: Any, release: str, place: int, can_continue: bool) -> None:
    script = data.draw(scripts(0))
    chunks = [*script.chunks]
    place = min(place, len(chunks))
    chunks.insert(place, ConnectionError("provider gone"))
    counts, recorder = Counts(), Recorder()
    policy = Policy(lexical_weight=0.0, release=release, max_attempts=1)
    guard = Guardrail(policy=policy, entailment=scorer(), observers=[recorder])
    arrived = "".join(script.chunks[:place])

    async def read() -> tuple[list[str], BaseException | None]:
        texts: list[str] = []
        stream = guard.stream(
            generator([chunks], counts, can_continue=can_continue), question=QUESTION, context=PASSAGES
        )
        try:
            async for text in stream:
                texts.append(text)
        except Exception as error:
            return texts, error
        return texts, None

    texts, error = asyncio.run(read())
    out = "".join(texts)
    assert counts.all_closed
    assert_balanced(recorder.events)
    assert not any(marker(s) in out for s in script.sentences if s in FALSE)
    if error is None:  # a claim failed before the generator did
        assert script.first_false is not None
        return
    assert isinstance(error.__cause__, ConnectionError)
    assert policy.refusal not in out
    assert policy.refusal_tail not in out
    assert script.text.startswith(out)
    assert len(out.encode("utf-16-le")) <= len(arrived.encode("utf-16-le", "surrogatepass"))
    if release == "answer":
        assert out == ""
    else:
        assert out == "" or any(out == script.text[: len(out)] and out.rstrip().endswith(s) for s in script.sentences)


@pytest.mark.parametrize("profile", ["balanced", "strict"])
@pytest.mark.parametrize("context", [None, [], [""], ["  ", None], ["...", "--"]])
def test_without_context_a_claim_is_never_accepted(profile: str, context: Any):
    model = ScriptedGenerator(TRUE[0])
    outcome = Guardrail(policy=profile, entailment=FakeEntailment(1.0), observers=[]).run_sync(
        model, question=QUESTION, context=context
    )
    assert outcome.status is OutcomeStatus.REFUSED
    assert outcome.reason == "no_context"
    assert marker(TRUE[0]) not in outcome.text
    assert len(model.requests) == (0 if profile == "strict" else 1)


@pytest.mark.parametrize("release", ["sentence", "answer"])
def test_without_context_text_can_pass_only_marked(release: str):
    policy = Policy(no_context="pass_marked", release=release)
    model = ScriptedGenerator(TRUE[0])
    outcome = Guardrail(policy=policy, entailment=FakeEntailment(1.0), observers=[]).run_sync(
        model, question=QUESTION, context=[]
    )
    assert outcome.status is OutcomeStatus.BEST_ATTEMPT
    assert outcome.text == TRUE[0]
    assert {r.status.value for r in outcome.receipt} == {"not_checked"}
    assert not outcome.accepted


@pytest.mark.parametrize("answer", ["Hello!", "", "   ", "\n\n", "...", "# Heading\n"])
def test_an_answer_without_claims_is_refused_in_strict_mode(answer: str):
    outcome = Guardrail(policy="strict", entailment=FakeEntailment(1.0), observers=[]).run_sync(
        ScriptedGenerator([answer]), question=QUESTION, context=PASSAGES
    )
    assert outcome.status is OutcomeStatus.REFUSED
    assert not outcome.accepted


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -0.1, 1.1, None, "high", True])
@pytest.mark.parametrize("profile", ["balanced", "strict"])
def test_a_score_that_is_no_score_is_a_failure(profile: str, value: Any):
    fake = FakeEntailment(lambda premise, claim: EntailmentScore(entailment=value))
    outcome = Guardrail(policy=profile, entailment=fake, observers=[]).run_sync(
        ScriptedGenerator(TRUE[0]), question=QUESTION, context=PASSAGES
    )
    assert outcome.status is OutcomeStatus.REFUSED
    assert outcome.reason == "scoring_error"
    verification = Verifier(policy=profile, entailment=fake).verify_sync(TRUE[0], PASSAGES)
    assert not verification.accepted
    assert verification.reason == "scoring_error"


@pytest.mark.parametrize("profile", ["balanced", "strict", "lenient"])
@pytest.mark.parametrize("release", ["sentence", "answer"])
def test_a_scorer_failure_at_any_pair_is_never_an_acceptance(profile: str, release: str):
    answer = " ".join(TRUE[:4])
    base = Guardrail(policy=profile).policy.override(lexical_weight=0.0, release=release)
    failed_runs = 0
    for place in range(40):
        seen = 0

        def score(premise: str, claim: str, place: int = place) -> float:
            nonlocal seen
            seen += 1
            if seen == place + 1:
                raise ValueError("cannot score")
            return 1.0

        model = ScriptedGenerator(answer)
        outcome = Guardrail(policy=base, entailment=FakeEntailment(score), observers=[]).run_sync(
            model, question=QUESTION, context=PASSAGES
        )
        assert model.opened == model.closed
        if seen <= place:
            assert outcome.accepted
            break
        failed_runs += 1
        assert outcome.status is OutcomeStatus.REFUSED
        assert outcome.reason == "scoring_error"
        assert isinstance(outcome.error, ScoringError)
        assert len(model.requests) == 1
        assert_receipt(outcome)
    assert failed_runs >= 4


def test_the_check_uses_all_passages_and_not_the_selection():
    """A passage that the generator was not shown still vetoes."""
    claim = "The vokaa gallery shows old clocks."
    other = "Nobody ever saw clocks in the vokaa gallery, which shows paintings only."
    shown: list[int] = []

    def generate(question: str, passages: tuple[Any, ...]) -> str:
        shown.append(len(passages))
        return claim

    def score(premise: str, hypothesis: str) -> EntailmentScore:
        if "Nobody" in premise:
            return EntailmentScore(entailment=0.0, contradiction=0.99)
        return EntailmentScore(entailment=0.8, contradiction=0.0)

    policy = Policy(lexical_weight=0.0, context_size=1)
    guard = Guardrail(policy=policy, entailment=FakeEntailment(score), observers=[])
    outcome = guard.run_sync(generate, question=QUESTION, context=[claim, other])
    assert shown[0] == 1
    assert outcome.status is OutcomeStatus.REFUSED
    assert not outcome.accepted


def test_one_guard_serves_a_hundred_streams():
    """T019 in the form of a property: each stream sees its own passages, attempts and verdicts only."""
    recorder = Recorder()
    words = [string.ascii_lowercase[i // 26] + string.ascii_lowercase[i % 26] for i in range(100)]
    guard = Guardrail(
        policy=Policy(lexical_weight=0.0, max_attempts=2),
        entailment=FakeEntailment(lambda premise, claim: 1.0 if claim in premise else 0.0),
        observers=[recorder],
    )

    async def one(index: int) -> tuple[str, Any, list[Any]]:
        own, shift = words[index], words[(index + 1) % 100]
        said = own if index % 2 else shift
        requests: list[Any] = []

        async def generate(question: str, passages: tuple[Any, ...]) -> Any:
            requests.append((question, tuple(p.text for p in passages)))
            for piece in ("Box qx", said, " holds qx", said, " stones. "):
                await asyncio.sleep(0)
                yield piece

        stream = guard.stream(generate, question=f"Box {own}?", context=[f"Box qx{own} holds qx{own} stones."])
        text = "".join([t async for t in stream])
        return text, await stream.outcome(), requests

    async def all_of_them() -> list[Any]:
        return await asyncio.gather(*(one(i) for i in range(100)))

    with quiet():
        results = asyncio.run(all_of_them())
    for index, (text, outcome, requests) in enumerate(results):
        own = words[index]
        assert {question for question, _ in requests} == {f"Box {own}?"}
        allowed = set(f"Box qx{own} holds qx{own} stones.".split())
        assert all(set(t.split()) <= allowed for _, ts in requests for t in ts)
        if index % 2:
            assert outcome.accepted
            assert text == f"Box qx{own} holds qx{own} stones. "
        else:
            assert outcome.status is OutcomeStatus.REFUSED
            assert "qx" not in text
    assert len(recorder.runs) == 100
    for events in recorder.runs.values():
        assert_balanced(events)
