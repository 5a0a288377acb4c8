"""A calibration beside what it speaks about: the verifier, live runs, exact sums, and files that were changed."""

from __future__ import annotations

import dataclasses
import datetime
import json
import math
import os
import stat
from fractions import Fraction

import pytest

from guardrail import CalibrationError, ConfigurationError, Guardrail, InputError, JudgeError, Verifier
from guardrail.cli import main
from guardrail.evaluation.calibration import Profile, calibrate
from guardrail.evaluation.calibration import fitting as fitting_module
from guardrail.evaluation.calibration.acceptance import (
    AnswerSignals,
    ClaimSignals,
    score_with_citations,
    signals_of,
)
from guardrail.evaluation.calibration.assumptions import assumptions
from guardrail.evaluation.calibration.conformal import needed, rank
from guardrail.evaluation.calibration.fitting import Wanted
from guardrail.evaluation.calibration.profile import model_identity
from guardrail.evaluation.cascade.cascading import Cascade
from guardrail.evaluation.history.observer import first_attempt_score
from guardrail.evaluation.labelled import LabelledAnswer
from guardrail.policy import BALANCED, LENIENT, STRICT, Policy
from guardrail.scoring.delta_r import WindowSignals
from guardrail.testing import FakeEntailment, ScriptedJudge
from guardrail.types import EntailmentScore, Segment

INF = math.inf
PASSAGES = ("The desk opens at ten. Entry is free on Mondays. There are three floors.", "The garden closes in winter.")
RECORD = (json.dumps({"desk": "opens at ten", "items": [{"floor": 3, "open": True}]}),)
CONTEXTS = (PASSAGES, RECORD, ("...",), ())
ANSWERS = (
    "The desk opens at ten [1]. The garden closes in winter [1].",
    "The desk opens at ten [7].",
    "[1]\n\nThe desk opens at ten.",
    "1 [1]. The desk opens at ten.\n2 [1]. Elephants enjoy warm puddles.",
    "Hello! ***\n\nThe desk opens at nine. It has three floors.\n\n| a | b |\n|---|---|\n| **1** | [2] |\n",
    "The passages do not say anything about that.",
    "The passages do not say when the desk opens. There are three floors.",
    "Il museo è aperto anche la domenica mattina per tutti i visitatori. The desk opens at ten.",
    "Hello!",
    "  ",
    "# Hours\n\n- The desk opens at ten.\n- Entry is free.",
)
POLICIES = {
    "balanced": BALANCED,
    "lenient": LENIENT,
    "strict": STRICT,
    "languages": BALANCED.override(on_unknown_language="fail", no_claims="refuse", no_context="pass_marked"),
    "conflicts": BALANCED.override(on_conflict="fail", lexical_weight=0),
    "citations": BALANCED.override(on_wrong_citation="fail", lexical_weight=1.0),
    "observe": BALANCED.override(release="observe"),
}


class Graded:
    """Scores by length and contradicts now and then; English only."""

    model_id = "graded"
    languages = ("en",)
    missing_log_odds = None

    async def score(self, pairs):
        shares = [len(pair.hypothesis) % 10 / 10 for pair in pairs]
        return [EntailmentScore(entailment=s, contradiction=(1 - s) * 0.9) for s in shares]


def labelled(answer, context=PASSAGES, *, grounded=False, question="When does the desk open?"):
    return LabelledAnswer(id="1", question=question, context=context, answer=answer, grounded=grounded)


def window(delta_r, *, contradiction=None, judged=""):
    return WindowSignals(
        passage_ids=("1",), rouge_l=1.0, entailment=1 - delta_r, contradiction=contradiction, clashes=(), judged=judged
    )


def claim(delta_r, **more):
    return ClaimSignals(segment=Segment(start=0, end=1, text=""), windows=(window(delta_r, **more),), languages=(None,))


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
async def test_what_the_verifier_accepts_lies_within_the_critical_delta(policy):
    model = Graded()
    for context in CONTEXTS:
        for text in ANSWERS:
            verifier = Verifier(policy=policy, entailment=model)
            signals = await signals_of(labelled(text, context), verifier, model=model)
            accepted = signals.accepted(policy, verifier.lexical_weight)
            ends = {end for interval in accepted.intervals for end in interval if 0 <= end <= 1}
            for delta in {0.0, policy.delta, 1.0} | ends | {max(0.0, math.nextafter(end, -1)) for end in ends}:
                at = Verifier(policy=policy.override(delta=delta), entailment=model)
                real = await at.verify(text, list(context), question="When does the desk open?")
                assert not real.accepted or accepted.critical_delta <= delta
                if policy.on_wrong_citation != "fail" or not signals.cited:
                    assert accepted.at(delta) is real.accepted, (text, context, delta, real.reason)


async def test_an_answer_with_a_claim_that_cannot_be_scored_is_never_accepted():
    model = FakeEntailment(0.9)
    signals = await signals_of(labelled(ANSWERS[3]), Verifier(entailment=model), model=model)
    accepted = signals.accepted(BALANCED, 0.0)
    assert (accepted.critical_delta, accepted.reason) == (INF, "scoring_error")
    assert (await Verifier(entailment=model).verify(ANSWERS[3], list(PASSAGES))).reason == "scoring_error"


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
async def test_a_live_run_has_the_score_that_the_profile_counts(policy):
    model = Graded()
    verifier = Verifier(policy=policy, entailment=model)
    live = policy.override(lexical_weight=verifier.lexical_weight, max_attempts=2)
    rows = [labelled(text, context) for context in CONTEXTS for text in ANSWERS]
    found = [await signals_of(row, verifier, model=model) for row in rows]
    stops = min(own.uncertain_score(live, live.lexical_weight) for own in found)
    clip = live.delta if stops > live.delta else math.nextafter(stops, -INF)
    for row, own in zip(rows, found, strict=True):
        guard = Guardrail(policy=live, entailment=model, observers=[])
        outcome = await guard.run(lambda text=row.answer: text, question=row.question, context=list(row.context))
        expected = await score_with_citations(row, own, Verifier(policy=live, entailment=model))
        score = first_attempt_score(outcome.attempts[0], outcome.delta) if outcome.attempts else None
        if score is None or expected is None:
            assert score is expected, (row.answer, row.context, score, expected)
        else:
            assert min(score, clip + 1) == min(expected, clip + 1) or min(score, expected) > clip


def test_a_contradiction_within_delta_is_a_veto_as_in_a_run():
    contradicted = AnswerSignals(hallucinated=True, claims=(claim(0.6, contradiction=0.9),))
    assert contradicted.score(BALANCED, 0.0) == 2.6
    assert contradicted.uncertain_score(BALANCED, 0.0) == INF


def test_marks_are_where_a_policy_may_stop_that_fails_what_it_cannot_correct():
    cited = AnswerSignals(hallucinated=False, claims=(claim(0.1), claim(0.3), claim(0.2)), cited=(2,))
    assert cited.uncertain_score(BALANCED, 0.0) == INF
    assert cited.uncertain_score(BALANCED.override(on_wrong_citation="fail"), 0.0) == INF
    fixing = BALANCED.override(on_wrong_citation="fail", cite="fix")
    assert cited.uncertain_score(fixing, 0.0) == pytest.approx(0.3)


async def test_what_stands_behind_a_wrong_citation_does_not_count_for_a_live_score():
    model = FakeEntailment(lambda premise, hypothesis: 0.9 if "ten" in hypothesis else 0.5)
    row = labelled("The desk opens at ten [9]. Elephants enjoy warm puddles.")
    policy = BALANCED.override(on_wrong_citation="fail", lexical_weight=0.0)
    signals = await signals_of(row, Verifier(policy=policy, entailment=model), model=model)
    assert signals.score(policy, 0.0) == 0.5
    assert await score_with_citations(row, signals, Verifier(policy=policy, entailment=model)) == 0.1
    marking = policy.override(on_wrong_citation="mark")
    assert await score_with_citations(row, signals, Verifier(policy=marking, entailment=model)) == 0.5


async def test_a_judge_without_a_verdict_ends_the_calibration():
    def screened(pairs):
        return [0.5] * len(pairs)

    silent = Cascade(ScriptedJudge("timeout"), model=screened, deadline_s=None)
    spent = Cascade(ScriptedJudge("yes"), model=screened, deadline_s=None, budget=0)
    for model in (silent, spent):
        with pytest.raises(JudgeError, match=r"no verdict about a claim of answer 1 \("):
            await signals_of(labelled("Elephants enjoy warm puddles."), Verifier(entailment=model), model=model)
    judging = Cascade(ScriptedJudge("no"), model=screened, deadline_s=None)
    rows = [labelled("Elephants enjoy warm puddles.")] * 9
    made = await _calibrated(rows, entailment=judging)
    assert any("A judge decided about doubtful claims" in text for text in made.assumptions)


async def _calibrated(rows, **more):
    from guardrail.evaluation.calibration import acalibrate

    return await acalibrate(rows, target_miss=0.1, **more)


def exact(k, n, p):
    return sum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k + 1))


@pytest.mark.parametrize("target", ["0.01", "0.05", "0.1", "0.29", "0.3", "0.5", "0.75", "0.9", "0.99"])
@pytest.mark.parametrize("confidence", ["0.6", "0.75", "0.9", "0.9375", "0.95", "0.99", "0.999999"])
def test_with_confidence_numbers_are_the_exact_ones_also_where_both_sides_are_equal(target, confidence):
    share, sure = Fraction(target), Fraction(confidence)
    least = next(n for n in range(2000) if (1 - share) ** n <= 1 - sure and share * (n + 1) >= 1)
    assert needed(float(target), float(confidence)) == least
    for n in (least - 1, least, least + 7):
        ranks = [k for k in range(1, math.floor(share * (n + 1)) + 1) if exact(k - 1, n, share) <= 1 - sure]
        assert rank(n, float(target), float(confidence)) == max(ranks, default=0)


@pytest.mark.parametrize("target", [step / 200 for step in range(1, 200)])
def test_the_marginal_rank_is_exact_for_every_number_of_answers(target):
    share = Fraction(repr(target))
    assert needed(target) == next(n for n in range(200) if share * (n + 1) >= 1)
    assert [rank(n, target) for n in range(100)] == [math.floor(share * (n + 1)) for n in range(100)]


def test_a_tiny_target_is_answered_at_once():
    assert needed(1e-20) == 10**20 - 1
    assert needed(1e-20, confidence=0.95) == pytest.approx(-math.log(0.05) * 1e20)


@pytest.fixture
def profile():
    return calibrate(rows(), target_miss=0.1, entailment=FakeEntailment(0.5))


def rows(bad=19, good=21):
    made = [(f"Elephants enjoy puddle {n}.", False) for n in range(bad)]
    made += [(f"The desk opens at ten, said {n}.", True) for n in range(good)]
    return [labelled(text, grounded=grounded) for text, grounded in made]


def test_answers_that_stand_there_twice_are_told(profile):
    assert profile.data.repeated == 0
    twice = calibrate(rows() + rows(5, 0), target_miss=0.1, entailment=FakeEntailment(0.5))
    assert (twice.data.repeated, twice.data.answers) == (5, 45)
    assert any(
        text.startswith("5 of the labelled answers are word for word like one before") for text in twice.assumptions
    )


def test_a_time_is_a_date_too_and_the_profile_can_be_read(tmp_path):
    at = datetime.datetime(2026, 11, 30, 10, 0, tzinfo=datetime.UTC)
    made = calibrate(rows(), target_miss=0.1, entailment=FakeEntailment(0.5), created=at)
    made.save(tmp_path / "profile.json")
    assert Profile.load(tmp_path / "profile.json").created == "2026-11-30"


@pytest.mark.parametrize(
    ("change", "said"),
    [({"grounded": None}, "grounded must be True or False"), ({"context": "one text"}, "context must be a tuple")],
)
def test_an_answer_that_is_none_is_not_guessed_about(change, said):
    with pytest.raises(InputError, match=said):
        calibrate([*rows(), dataclasses.replace(rows()[0], **change)], target_miss=0.1)


def test_answers_that_cannot_be_checked_are_no_grounds():
    unchecked = [dataclasses.replace(row, context=()) for row in rows()]
    with pytest.raises(CalibrationError, match="none of the labelled answers can be checked"):
        calibrate(unchecked, target_miss=0.1, entailment=FakeEntailment(0.5))


@pytest.mark.parametrize(
    ("given", "kept"),
    [("/home/us/models/nli", "nli"), ("C:\\models\\nli", "nli"), ("team/nli", "team/nli"), ("nli", "nli")],
)
def test_the_folder_of_a_model_is_nobodys_business(given, kept):
    model = FakeEntailment(0.5)
    named = type("Named", (), {"model_id": given, "score": model.score})()
    assert model_identity(named)[0] == kept


def test_how_often_a_calibration_misses_more_is_said_as_it_is():
    few, many = (
        next(
            t
            for t in assumptions(Policy(), Wanted(target_miss=0.05), n=n, group=None, fingerprint="a")
            if "draw of the" in t
        )
        for n in (25, 9999)
    )
    assert "varies around 3.8 %, and with a probability of up to 28 % it is above 5 %" in few
    assert "varies around 5 %, and with a probability of up to 49 % it is above 5 %" in many


def test_a_file_is_replaced_at_once_or_not_at_all(profile, tmp_path, monkeypatch):
    path = tmp_path / "profile.json"
    path.write_text("old", encoding="utf-8")
    path.chmod(0o640)
    link = tmp_path / "link.json"
    link.symlink_to(path)

    def full(descriptor):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(InputError, match="No space left"):
            profile.save(path)
    assert path.read_text(encoding="utf-8") == "old"
    profile.save(link)
    assert link.is_symlink()
    assert Profile.load(path) == profile
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert sorted(os.listdir(tmp_path)) == ["link.json", "profile.json"]


def test_what_is_no_file_stays_what_it_is(profile):
    profile.save(os.devnull)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_a_name_of_half_a_character_survives(tmp_path):
    made = calibrate(rows(), target_miss=0.1, entailment=FakeEntailment(0.5), name="a\udcff")
    made.save(tmp_path / "profile.json")
    assert Profile.load(tmp_path / "profile.json") == made


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace('"fields": {', '"fields": {"timeout_s": 1e999', 1),
        lambda text: text.replace('"fields": {', '"fields": {"name": "other"', 1),
        lambda text: 100_000 * "[",
        lambda text: text[: len(text) // 2],
        lambda text: text + "x",
        lambda text: text + 10_000_001 * " ",
    ],
    ids=["infinite", "own", "deep", "truncated", "more", "long"],
)
def test_a_broken_file_is_a_wrong_setting_and_nothing_worse(profile, tmp_path, change):
    path = tmp_path / "profile.json"
    profile.save(path)
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"profile\.json: "):
        Profile.load(path)


def test_a_number_too_large_for_a_float_is_refused(profile, tmp_path):
    path = tmp_path / "profile.json"
    path.write_text(json.dumps({**profile.to_json(), "delta": 10**400}), encoding="utf-8")
    with pytest.raises(ConfigurationError, match="delta is too large"):
        Profile.load(path)


def test_the_guard_takes_the_policy_as_it_was_calibrated():
    strict = STRICT.override(refusal="No {reason}.", max_attempts=1, context_size=3, lexical_weight=0.3)
    model = FakeEntailment(0.5)
    made = calibrate(rows(), target_miss=0.1, policy=strict, entailment=model, name="ours")
    policy = made.policy(model)
    assert policy == strict.override(name="ours", delta=made.delta)
    assert Guardrail(policy=policy, entailment=model).policy == policy


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "ours.jsonl"
    lines = ({"context": list(r.context), "answer": r.answer, "label": int(r.grounded)} for r in rows(25, 25))
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(("out", "said"), [("", "it is a folder"), ("none/profile.json", "there is no folder")])
def test_where_the_profile_goes_is_looked_at_before_anything_is_scored(file, tmp_path, capsys, monkeypatch, out, said):
    monkeypatch.setattr("guardrail.evaluation.calibration.calibrate", lambda *a, **k: pytest.fail("it was scored"))
    assert main(["calibrate", file, "--target-miss", "0.1", "--out", str(tmp_path / out)]) == 2
    assert said in capsys.readouterr().err


def test_an_interrupted_calibration_leaves_no_profile(file, tmp_path, capsys, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("guardrail.evaluation.calibration.calibrate", interrupted)
    out = tmp_path / "profile.json"
    assert main(["calibrate", file, "--target-miss", "0.1", "--out", str(out)]) == 130
    assert not out.exists()


def test_the_report_fits_into_60_columns(file, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    assert main(["calibrate", file, "--target-miss", "0.1"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 60


def test_advice_that_rests_on_the_result_says_that_it_needs_fresh_answers():
    always = [AnswerSignals(hallucinated=True, claims=(claim(0.0),))] * 19
    with pytest.raises(CalibrationError, match="needs fresh answers for its promise"):
        fitting_module.fit(always, Wanted(target_miss=0.1), policy=BALANCED.override(lexical_weight=0), own_weight=0.0)
