from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail.errors import ConfigurationError, GenerationError, InputError, ScoringError
from guardrail.scoring.reference import PRESETS, THRESHOLDS, ReferenceVerifier, band
from guardrail.types import Passage, SegmentKind

VECTORS = Path(__file__).parents[3] / "shared" / "cases" / "reference_vectors.json"
CONTEXT = "The plan costs 100 euros a month."
GOOD, CLOSE, BAD = CONTEXT, "The plan costs 50 euros a month.", "Posters are sold."


def vectors():
    return json.loads(VECTORS.read_text(encoding="utf-8")) if VECTORS.exists() else []


def always(value):
    return lambda answer, context: value


@pytest.mark.shared_data
def test_there_are_18_vectors():
    if not VECTORS.exists():
        pytest.skip("the shared reference vectors are not beside the repository")
    assert len(vectors()) == 18


@pytest.mark.shared_data
@pytest.mark.parametrize("vector", vectors(), ids=lambda vector: vector["answer"][:30])
def test_published_values(vector):
    verifier = ReferenceVerifier()
    result = verifier.verify(vector["answer"], vector["context"])
    reported = (result.rouge_1, result.rouge_2, result.rouge_l, result.entailment, result.delta_r, result.grounding)
    names = ("rouge_1", "rouge_2", "rouge_l", "entailment_fallback", "delta_r", "grounding")
    assert reported == tuple(vector[name] for name in names)
    assert result.band == vector["band_at_0.15"]
    assert result.entailment_source == "rouge_l"
    table = verifier.threshold_table(vector["answer"], vector["context"])
    assert {str(delta): accepted for delta, accepted in table.items()} == vector["accepted_at"]
    for delta, accepted in table.items():
        assert ReferenceVerifier(delta=delta).verify(vector["answer"], vector["context"]).accepted is accepted


def test_presets_and_thresholds():
    assert PRESETS == {"very_strict": 0.10, "default": 0.15, "lenient": 0.25, "permissive": 0.40}
    assert THRESHOLDS == (0.05, 0.10, 0.15, 0.20, 0.25, 0.30, 0.40, 0.50)
    assert (ReferenceVerifier().delta, ReferenceVerifier().max_attempts) == (0.15, 3)


def test_the_model_decides_with_rouge():
    asked = []
    verifier = ReferenceVerifier(lambda answer, context: asked.append((answer, context)) or 0.5)
    result = verifier.verify(GOOD, CONTEXT, attempt=2)
    assert asked == [(GOOD, CONTEXT)]
    assert (result.delta_r, result.entailment, result.entailment_source) == (0.5, 0.5, "model")
    assert (result.grounding, result.accepted, result.attempt) == (0.5, False, 2)


def test_zero_is_a_value_and_not_a_reason_for_a_fallback():
    result = ReferenceVerifier(always(0.0)).verify(GOOD, CONTEXT)
    assert (result.entailment, result.delta_r, result.entailment_source) == (0.0, 1.0, "model")


@pytest.mark.parametrize(("answer", "context"), [("", CONTEXT), (GOOD, ""), (GOOD, []), ("…", CONTEXT), (" \n", "")])
def test_without_words_no_model_is_asked_and_nothing_is_accepted(answer, context):
    def fail(answer, context):
        raise AssertionError("asked")

    result = ReferenceVerifier(fail, delta=0.4).verify(answer, context)
    assert (result.delta_r, result.accepted, result.entailment_source) == (1.0, False, "empty")


@pytest.mark.parametrize("value", [math.nan, math.inf, -0.1, 1.1, None, "0.9", True, {}, [0.9]], ids=repr)
def test_a_model_that_gives_no_probability_is_an_error(value):
    with pytest.raises(ScoringError):
        ReferenceVerifier(always(value)).verify(GOOD, CONTEXT)


def test_a_model_that_raises_is_an_error_without_the_text():
    def fail(answer, context):
        raise RuntimeError(answer)

    with pytest.raises(ScoringError, match="RuntimeError") as caught:
        ReferenceVerifier(fail).verify(GOOD, CONTEXT)
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert "euros" not in str(caught.value)
    with pytest.raises(ScoringError, match="own"):
        ReferenceVerifier(lambda a, c: (_ for _ in ()).throw(ScoringError("own"))).verify(GOOD, CONTEXT)


def test_an_async_model_is_refused_without_a_warning():
    async def model(answer, context):
        return 1.0

    with pytest.raises(ScoringError, match="coroutine"):
        ReferenceVerifier(model).verify(GOOD, CONTEXT)


def test_numpy_values_become_plain_floats():
    result = ReferenceVerifier(always(np.float32(0.5))).verify(GOOD, CONTEXT)
    assert type(result.entailment) is float
    assert type(result.delta_r) is float


@pytest.mark.parametrize(
    ("entailment", "accepted", "delta_r"),
    [(0.85, True, 0.15), (0.84996, False, 0.15), (0.8500001, True, 0.15), (0.8499, False, 0.1501)],
)
def test_acceptance_is_decided_before_rounding(entailment, accepted, delta_r):
    result = ReferenceVerifier(always(entailment)).verify(GOOD, CONTEXT)
    assert (result.accepted, result.delta_r) == (accepted, delta_r)
    assert (result.band == "accepted") is accepted


@pytest.mark.parametrize(
    ("delta_r", "delta", "expected"),
    [
        (0.0, 0.15, "excellent"),
        (0.05, 0.15, "excellent"),
        (0.0501, 0.15, "accepted"),
        (0.1501, 0.15, "borderline"),
        (0.35, 0.15, "borderline"),
        (0.3501, 0.15, "hallucination"),
        (0.38, 0.40, "accepted"),
        (1.0, 0.40, "hallucination"),
    ],
)
def test_bands(delta_r, delta, expected):
    assert band(delta_r, delta) == expected


@pytest.mark.parametrize(
    "context", [[CONTEXT, "Posters are sold."], (Passage(id="1", text=CONTEXT), "Posters are sold.")]
)
def test_passages_are_one_context(context):
    verifier = ReferenceVerifier()
    assert verifier.verify(GOOD, context) == verifier.verify(GOOD, f"{CONTEXT}\nPosters are sold.")


@pytest.mark.parametrize(("answer", "context"), [(None, "x"), (b"x", "x"), ("x", None), ("x", [None]), ("x", [b"x"])])
def test_other_types_are_refused(answer, context):
    with pytest.raises(InputError):
        ReferenceVerifier().verify(answer, context)


@pytest.mark.parametrize("attempt", [0, -1, True, 1.0])
def test_attempts_count_from_one(attempt):
    with pytest.raises(InputError, match="attempt"):
        ReferenceVerifier().verify(GOOD, CONTEXT, attempt)


@pytest.mark.parametrize("delta", [math.nan, math.inf, -0.1, 1.1, True, "0.15", None])
def test_delta_is_checked(delta):
    with pytest.raises(ConfigurationError, match="delta"):
        ReferenceVerifier(delta=delta)


@pytest.mark.parametrize("max_attempts", [0, True, 2.5])
def test_max_attempts_is_checked(max_attempts):
    with pytest.raises(ConfigurationError, match="max_attempts"):
        ReferenceVerifier(max_attempts=max_attempts)


@pytest.mark.parametrize(
    ("answers", "number", "made"),
    [
        ([GOOD, BAD, BAD], 1, 1),
        ([BAD, GOOD, GOOD], 2, 2),
        ([BAD, CLOSE, BAD], 2, 3),
        ([CLOSE, CLOSE, BAD], 1, 3),
        ([BAD, BAD, CLOSE, GOOD], 3, 3),
    ],
)
@pytest.mark.parametrize("form", ["callable", "list", "generator"])
def test_retry_takes_the_first_accepted_or_the_best(answers, number, made, form):
    calls = []

    def generate(attempt):
        calls.append(attempt)
        return answers[attempt - 1]

    source = {"callable": generate, "list": answers, "generator": (a for a in answers)}[form]
    result = ReferenceVerifier().verify_with_retry(source, CONTEXT)
    assert result.answer == answers[number - 1]
    assert result.best.attempt == number
    assert [attempt.attempt for attempt in result.attempts] == list(range(1, made + 1))
    assert not calls or calls == list(range(1, made + 1))


def test_retry_ends_when_the_answers_end():
    result = ReferenceVerifier().verify_with_retry([BAD], CONTEXT)
    assert (result.answer, len(result.attempts)) == (BAD, 1)


def test_retry_compares_before_rounding():
    entailments = iter([0.50001, 0.50002, 0.50002])
    result = ReferenceVerifier(lambda a, c: next(entailments)).verify_with_retry([GOOD, GOOD, GOOD], CONTEXT)
    assert result.best.attempt == 2


def test_retry_failures():
    def fail(attempt):
        raise KeyError(attempt)

    verifier = ReferenceVerifier()
    with pytest.raises(GenerationError, match="KeyError"):
        verifier.verify_with_retry(fail, CONTEXT)
    with pytest.raises(GenerationError, match="NoneType") as caught:
        verifier.verify_with_retry([BAD, None], CONTEXT)
    assert caught.value.attempt == 2
    for nothing in ([], "one string"):
        with pytest.raises(InputError):
            verifier.verify_with_retry(nothing, CONTEXT)


def test_sentences_and_short_claims_are_scored():
    answer = "Yes, 5 mg. The door opens at nine! The dose is 5 mg."
    results = ReferenceVerifier().per_sentence(answer, "The dose is 5 mg.")
    assert [e.sentence.body for e in results] == ["Yes, 5 mg.", "The door opens at nine!", "The dose is 5 mg."]
    assert results[-1].result.delta_r == 0.0
    assert not results[-1].hallucinated
    assert all(answer[e.sentence.start : e.sentence.end] == e.sentence.text for e in results)
    assert ReferenceVerifier().per_sentence(" \n ", "x") == ()
    assert len(ReferenceVerifier().per_sentence("the door opens at nine. it closes late.", "x")) == 2


def test_citation_trace():
    passages = ["The door opens at nine.", Passage(id="p", text="Posters cost five euros."), ""]
    opens, posters, other = ReferenceVerifier().citation_trace(
        "The door opens at nine. Posters cost five euros. Quantum chromodynamics fascinates everybody!", passages
    )
    assert (opens.best, opens.flagged, opens.scores["[C1]"]) == ("[C1]", False, 1.0)
    assert (posters.best, posters.flagged, posters.scores["[C3]"]) == ("[C2]", False, 0.0)
    assert (other.best, other.flagged) == (None, True)
    assert list(opens.scores) == ["[C1]", "[C2]", "[C3]"]


def test_a_weak_resemblance_has_a_best_label_and_a_flag():
    passage = "alpha " + " ".join(f"w{i}" for i in range(18))  # F1 of one shared word of 1 + 19: exactly 0.1
    (trace,) = ReferenceVerifier().citation_trace("Alpha!", [passage, passage])
    assert (trace.best, trace.flagged, trace.scores["[C1]"]) == ("[C1]", True, 0.1)


def test_citation_trace_without_passages():
    (trace,) = ReferenceVerifier().citation_trace("The door opens.", [])
    assert (trace.best, trace.flagged, dict(trace.scores)) == (None, True, {})
    with pytest.raises(InputError):
        ReferenceVerifier().citation_trace("The door opens.", "one string")


def test_report():
    answer = "# Price\n\nThe plan costs 100 euros a month. It includes a free unicorn."
    report = ReferenceVerifier(always(0.9)).report(answer, CONTEXT, attempt=2)
    assert report.result.attempt == 2
    assert (report.answer_tokens, report.context_tokens) == (13, 7)
    assert report.delta == 0.15
    assert report.margin == round(0.15 - report.result.delta_r, 4)
    assert [entry.sentence.body for entry in report.sentences if entry.hallucinated] == ["It includes a free unicorn."]
    assert [entry.sentence.kind for entry in report.sentences].count(SegmentKind.HEADING) == 1
    assert report.hallucinated == tuple(entry for entry in report.sentences if entry.hallucinated)
    assert "weaker signal is ROUGE-L" in report.verdict


@pytest.mark.parametrize(
    ("entailment", "answer", "words"),
    [
        (always(0.2), GOOD, "rejected (hallucination): ΔR 0.8000 > δ 0.15; the weaker signal is entailment"),
        (always(1.0), CLOSE, "accepted (accepted): ΔR 0.1429 ≤ δ 0.15; the weaker signal is ROUGE-L"),
        (always(1.0), GOOD, "accepted (excellent): ΔR 0.0000 ≤ δ 0.15; ROUGE-L and entailment are equal"),
        (None, GOOD, "ROUGE-L 1.0000 is the only signal, as there is no entailment model"),
        (always(1.0), "", "no words"),
    ],
)
def test_the_verdict_names_the_weaker_signal(entailment, answer, words):
    assert words in ReferenceVerifier(entailment).report(answer, CONTEXT).verdict


def test_rank_is_ascending_and_stable():
    ranked = ReferenceVerifier().rank([BAD, CLOSE, GOOD, CLOSE, BAD], CONTEXT)
    assert [entry.index for entry in ranked] == [2, 1, 3, 0, 4]
    assert ranked[0].answer == GOOD
    with pytest.raises(InputError):
        ReferenceVerifier().rank("one string", CONTEXT)


def test_threshold_table_takes_other_thresholds():
    assert ReferenceVerifier().threshold_table(CLOSE, CONTEXT, [0.26, 0.27]) == {0.26: False, 0.27: True}
    with pytest.raises(ConfigurationError):
        ReferenceVerifier().threshold_table(CLOSE, CONTEXT, [math.nan])


@given(answer=st.text(max_size=80), context=st.text(max_size=120), entailment=st.none() | st.floats(0, 1))
def test_reported_values_are_probabilities(answer, context, entailment):
    model = None if entailment is None else always(entailment)
    result = ReferenceVerifier(model).verify(answer, context)
    values = (result.delta_r, result.rouge_1, result.rouge_2, result.rouge_l, result.entailment, result.grounding)
    assert all(0.0 <= value <= 1.0 for value in values)
    assert result.grounding == pytest.approx(1 - result.delta_r, abs=1e-4)


def test_results_do_not_show_text():
    verifier = ReferenceVerifier()
    assert "euros" not in repr(verifier.verify_with_retry([GOOD], CONTEXT))
    assert "euros" not in repr(verifier.rank([GOOD], CONTEXT))
    assert "euros" not in repr(verifier.report(GOOD, CONTEXT))
