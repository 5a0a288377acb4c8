"""From labelled answers to a profile, to a file and back, and which files are not believed."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import hashlib
import json

import pytest

from guardrail import CalibrationError, ConfigurationError, InputError, ScoringError, Verifier
from guardrail.evaluation.calibration import Profile, acalibrate, calibrate
from guardrail.evaluation.calibration.profile import model_identity
from guardrail.evaluation.labelled import LabelledAnswer
from guardrail.policy import BALANCED, STRICT, Policy
from guardrail.testing import FakeEntailment

CONTEXT = "The desk opens at ten. Entry is free on Mondays."
TRUE, SILENT = "The desk opens at ten.", "Elephants enjoy warm puddles."
DAY = datetime.date(2026, 11, 30)


def rows(bad=19, good=21, **detail):
    made = [(SILENT, False)] * bad + [(TRUE, True)] * good
    return [
        LabelledAnswer(id=str(n), question="", context=(CONTEXT,), answer=text, grounded=label, detail=detail)
        for n, (text, label) in enumerate(made)
    ]


class Model:
    """Says how sure it is by what the claim speaks of."""

    def __init__(self, name="model", fingerprint="abc"):
        self.model_id = name
        self.fingerprint = lambda: fingerprint

    async def score(self, pairs):
        return await FakeEntailment(lambda p, h: 0.9 if "desk" in h else 0.4).score(pairs)


@pytest.fixture
def profile():
    return calibrate(
        rows(), target_miss=0.1, policy=BALANCED.override(lexical_weight=0.0), entailment=Model(), created=DAY
    )


@pytest.fixture
def labelled(tmp_path):
    path = tmp_path / "ours.jsonl"
    lines = [
        {"context": CONTEXT, "answer": r.answer, "label": int(r.grounded), "detail": {"prompt": n // 2}}
        for n, r in enumerate(rows(40, 40))
    ]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return path


def test_a_profile_says_what_is_promised_at_what_cost_and_why(profile):
    assert (profile.name, profile.created, profile.scorer, profile.fingerprint) == (
        "calibrated",
        "2026-11-30",
        "model",
        "abc",
    )
    assert profile.delta == 0.599
    promise, cost, data = profile.promise, profile.cost, profile.data
    assert (promise.hallucinated, promise.rank, promise.bound, promise.accepted) == (19, 2, 0.1, 0)
    assert (cost.grounded, cost.released, cost.share) == (21, 21, 1.0)
    assert cost.interval == (pytest.approx(0.8389, abs=1e-4), 1.0)
    assert (data.file, data.answers, data.hallucinated, data.groups, data.fitting) == (None, 40, 19, None, 0)
    assert [(p.delta, p.missed, p.released) for p in profile.curve] == [
        (0.0, 0.0, 0.0), (0.1, 0.0, 1.0), (0.599, 0.0, 1.0), (0.6, 1.0, 1.0), (1.0, 1.0, 1.0),
    ]  # fmt: skip
    assert (profile.scores.n, profile.scores.clip) == (40, 0.599)
    assert profile.scores.points == ((0.1, 21 / 40), (0.599, 21 / 40))
    assert any("exchangeable" in text for text in profile.assumptions)


def test_its_policy_decides_as_promised(profile):
    policy = profile.policy(Model())
    assert (policy.name, policy.delta, policy.lexical_weight) == ("calibrated", 0.599, 0.0)
    verifier = Verifier(policy=policy, entailment=Model())
    assert verifier.verify_sync(TRUE, [CONTEXT]).accepted is True
    assert verifier.verify_sync(SILENT, [CONTEXT]).accepted is False


def test_fields_that_differ_from_the_usual_policy_are_kept():
    strict = STRICT.override(max_attempts=2, lexical_weight=0.0)
    made = calibrate(rows(), target_miss=0.1, policy=strict, entailment=Model())
    assert made.fields["strict_threshold"] == 0.7
    assert made.fields["release"] == "answer"
    assert made.policy(Model()) == strict.override(name="calibrated", delta=made.delta)


def test_save_and_load_give_the_same_profile(profile, tmp_path):
    path = tmp_path / "profile.json"
    profile.save(path)
    loaded = Profile.load(path)
    assert loaded == profile
    assert loaded.policy(Model()) == profile.policy(Model())
    values = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(dict(reversed(values.items()))), encoding="utf-8")  # layout and order do not matter
    assert Profile.load(path) == profile


def test_a_file_is_known_by_its_name_and_its_bytes_and_nothing_of_its_text_is_kept(labelled):
    made = calibrate(labelled, target_miss=0.1, entailment=Model())
    assert (made.data.file, made.data.sha256) == ("ours.jsonl", hashlib.sha256(labelled.read_bytes()).hexdigest())
    text = json.dumps(made.to_json(), ensure_ascii=False)
    assert not any(word in text for word in ("desk", "Elephants", "Mondays", str(labelled.parent)))
    assert calibrate(str(labelled), target_miss=0.1, entailment=Model()) == made


def test_other_answers_have_another_hash():
    made = [calibrate(rows(19, n), target_miss=0.1, entailment=Model()).data.sha256 for n in (5, 6, 5)]
    assert made[0] == made[2] != made[1]


def test_of_a_group_one_answer_is_used_and_n_counts_groups(labelled):
    made = calibrate(labelled, target_miss=0.1, group="prompt", entailment=Model(), seed=3)
    assert (made.data.answers, made.data.groups, made.data.group) == (80, 40, "prompt")
    assert (made.promise.hallucinated, made.cost.grounded) == (20, 20)
    assert any("detail.prompt" in text for text in made.assumptions)
    with pytest.raises(InputError, match=r"answer 1 \(id 1\) has no detail\.topic"):
        calibrate(labelled, target_miss=0.1, group="topic", entailment=Model())


def test_the_draw_from_a_group_does_not_look_at_labels():
    mixed = [
        LabelledAnswer(
            id=str(n), question="", context=(CONTEXT,), answer=SILENT, grounded=n % 4 != 0, detail={"g": n // 4}
        )
        for n in range(800)
    ]
    made = calibrate(mixed, target_miss=0.1, group="g", entailment=Model())
    assert made.data.groups == 200
    assert 30 <= made.promise.hallucinated <= 70  # a quarter of each group is


def test_too_few_answers_are_told_before_anything_is_scored():
    model = FakeEntailment(0.5)
    with pytest.raises(CalibrationError) as caught:
        calibrate(rows(8), target_miss=0.1, entailment=model)
    assert (caught.value.needed, model.pairs) == (9, [])
    with pytest.raises(CalibrationError, match="there are 0"):
        calibrate([], target_miss=0.5)


def test_an_answer_that_cannot_be_scored_ends_the_calibration():
    def fails(premise, hypothesis):
        raise ConnectionError

    with pytest.raises(ScoringError):
        calibrate(rows(), target_miss=0.1, entailment=FakeEntailment(fails))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"policy": "reference"}, "only the evidence formula"),
        ({"name": " "}, "name must be a text"),
        ({"max_refusal": 1.5}, "max_refusal must be a number from 0 to 1"),
        ({"max_refusal": float("nan")}, "max_refusal must be a number from 0 to 1"),
        ({"target_miss": 0}, "target_miss must be"),
        ({"confidence": 0.3}, "confidence must be"),
    ],
)
def test_settings_out_of_range_are_refused(change, said):
    with pytest.raises(ConfigurationError, match=said):
        calibrate(rows(), **{"target_miss": 0.1, "entailment": Model(), **change})


def test_answers_of_another_kind_are_refused():
    with pytest.raises(InputError, match="not dict"):
        calibrate([{"answer": TRUE}], target_miss=0.1)


async def test_inside_a_loop_there_is_an_asynchronous_call():
    with pytest.raises(RuntimeError, match="await acalibrate"):
        calibrate(rows(), target_miss=0.1)
    seen = []
    made = await acalibrate(rows(), target_miss=0.1, entailment=Model(), progress=lambda *at: seen.append(at))
    assert made.promise.rank == 2
    assert (seen[0], seen[-1]) == ((1, 40), (40, 40))


async def test_cancellation_ends_it():
    begun = asyncio.Event()

    class Stuck(Model):
        async def score(self, pairs):
            begun.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(acalibrate(rows(), target_miss=0.1, entailment=Stuck()))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (Model(name="other"), "for the entailment model 'model' and this is 'other'"),
        (Model(fingerprint="xyz"), "has other weights or settings"),
        (FakeEntailment(0.5), "this is 'fake'"),
    ],
)
def test_another_model_is_refused(profile, model, said):
    with pytest.raises(ConfigurationError, match=said):
        profile.policy(model)


def test_a_model_that_no_longer_tells_its_weights_is_refused(profile):
    named = type("Named", (FakeEntailment,), {"model_id": "model"})(0.5)
    with pytest.raises(ConfigurationError, match="cannot say what its scores depend on"):
        profile.policy(named)


def test_a_model_without_a_fingerprint_is_known_by_its_name_which_the_profile_says():
    made = calibrate(rows(), target_miss=0.1, entailment=FakeEntailment(lambda p, h: 0.9 if "desk" in h else 0.4))
    assert (made.scorer, made.fingerprint) == ("fake", None)
    assert any("by its name only" in text for text in made.assumptions)
    assert made.policy(FakeEntailment(0.1)).delta == made.delta


@pytest.mark.parametrize("fingerprint", [None, "", 7])
def test_a_fingerprint_that_is_none_is_refused(fingerprint):
    with pytest.raises(ScoringError, match="must return a str"):
        model_identity(Model(fingerprint=fingerprint))


def test_another_version_of_the_package_is_refused(profile, monkeypatch):
    monkeypatch.setattr("guardrail.evaluation.calibration.profile.__version__", "99.0")
    with pytest.raises(ConfigurationError, match=r"and this is 99\.0, whose scores may differ: calibrate again"):
        profile.policy(Model())


def changed(values, path, value):
    *way, last = path
    at = values
    for step in way:
        at = at[step]
    if value is ...:
        del at[last]
    else:
        at[last] = value
    return values


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (["delta"], 0.9, "was changed after it was made"),
        (["delta"], 0.5, "was changed after it was made"),
        (["promise", "target_miss"], 0.01, "was changed"),
        (["fields", "no_claims"], "refuse", "was changed"),
        (["assumptions"], [], "was changed"),
        (["checksum"], "sha256:0", "was changed"),
        (["checksum"], ..., "was changed"),
        (["format"], 2, "is of format 2 and this version reads 1"),
        (["format"], True, "is of format True"),
        (["format"], ..., "it has no format"),
        (["delta"], ..., "delta is missing"),
        (["promise", "rank"], ..., "in promise rank is missing"),
        (["extra"], 1, "extra is not known"),
        (["cost", "extra"], 1, "in cost extra is not known"),
        (["delta"], "0.5", "delta must be float, not str"),
        (["delta"], True, "delta must be float, not bool"),
        (["delta"], None, "delta must be float, not NoneType"),
        (["promise", "hallucinated"], 19.5, r"promise\.hallucinated must be int, not float"),
        (["scores", "points"], [[0.1]], r"scores\.points\[0\] must have 2 items"),
        (["scores", "points"], 7, r"scores\.points must be a list"),
        (["curve", 0], 7, r"curve\[0\] must be an object"),
        (["data"], [], "data must be an object"),
    ],
)
def test_a_file_that_was_changed_is_not_believed(profile, tmp_path, path, value, said):
    file = tmp_path / "profile.json"
    file.write_text(json.dumps(changed(profile.to_json(), path, value)), encoding="utf-8")
    with pytest.raises(ConfigurationError, match=said) as caught:
        Profile.load(file)
    assert str(caught.value).startswith("profile.json: ")


@pytest.mark.parametrize(
    "change",
    [
        {"delta": 1.5},
        {"lexical_weight": -1.0},
        {"created": "yesterday"},
        {"fields": {"colour": "red"}},
        {"fields": {"on_conflict": "maybe"}},
        {"weight_source": "guessed"},
    ],
)
def test_numbers_that_do_not_fit_together_are_refused_even_with_a_checksum(profile, tmp_path, change):
    file = tmp_path / "profile.json"
    dataclasses.replace(profile, **change).save(file)
    with pytest.raises(ConfigurationError, match=r"does not hold together|not known"):
        Profile.load(file)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"target_miss": 0.01}, r"promise\.rank"),
        ({"rank": 3}, r"promise\.rank"),
        ({"accepted": 2}, r"promise\.accepted"),
        ({"bound": 0.05}, r"promise\.bound"),
        ({"target_miss": 2.0}, "target_miss must be a number"),
    ],
)
def test_a_promise_that_its_numbers_do_not_carry_is_refused(profile, tmp_path, change, said):
    file = tmp_path / "profile.json"
    dataclasses.replace(profile, promise=dataclasses.replace(profile.promise, **change)).save(file)
    with pytest.raises(ConfigurationError, match=said):
        Profile.load(file)


@pytest.mark.parametrize(
    "text", ["", "[]", "7", '{"format": 1', '{"format": 1, "delta": NaN}', '{"format": Infinity}', "null"]
)
def test_what_is_no_profile_is_refused(tmp_path, text):
    file = tmp_path / "profile.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"profile\.json: is not a profile"):
        Profile.load(file)


def test_files_that_cannot_be_read_or_written(profile, tmp_path):
    with pytest.raises(InputError, match="cannot read"):
        Profile.load(tmp_path / "none.json")
    with pytest.raises(InputError, match="cannot write"):
        profile.save(tmp_path / "none" / "profile.json")
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="cannot read"):
        Profile.load(tmp_path / "bytes.json")


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (Policy(), "sentences before the one that fails"),
        (Policy(on_exhausted="best"), "delivers the best attempt"),
        (Policy(on_error="pass_marked"), "could not be checked"),
        (Policy(release="observe"), "observes"),
        (STRICT, "Citations did not count"),
    ],
)
def test_ways_around_the_promise_are_said(policy, words):
    made = calibrate(rows(), target_miss=0.1, policy=policy.override(lexical_weight=0.0), entailment=Model())
    assert any(words in text for text in made.assumptions)


def test_the_readings_of_the_promise_are_said():
    sure = calibrate(rows(40), target_miss=0.1, confidence=0.95, max_refusal=0.5, entailment=Model())
    assert any("With confidence 95 %" in text and "at most 10 %" in text for text in sure.assumptions)
    assert any("more than 50 % refusals" in text for text in sure.assumptions)
    assert (sure.promise.confidence, sure.promise.rank) == (0.95, 1)
