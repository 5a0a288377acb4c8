from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from guardrail.errors import ModelLoadError, ScoringError
from guardrail.scoring.entailment.labels import (
    SYNONYMS,
    LabelMap,
    probabilities,
    probability,
    resolve_labels,
    unsupported_probability,
)


@pytest.mark.parametrize(
    ("id2label", "expected"),
    [
        ({0: "contradiction", 1: "entailment", 2: "neutral"}, (1, 0, 2)),
        ({0: "CONTRADICTION", 1: "NEUTRAL", 2: "ENTAILMENT"}, (2, 0, 1)),
        ({"0": "entailment", "1": "neutral", "2": "contradiction"}, (0, 2, 1)),
        ({0: "SUPPORTS", 1: "REFUTES", 2: "NOT ENOUGH INFO"}, (0, 1, 2)),
        ({0: "entailment", 1: "not_entailment"}, (0, None, 1)),
        ({1: "Not-Entailment", 0: "Entailed"}, (0, None, 1)),
        ({0: "entailment"}, (0, None, None)),
    ],
)
def test_labels_are_found_by_name(id2label, expected):
    found = resolve_labels(id2label)
    assert (found.entailment, found.contradiction, found.neutral) == expected
    assert found.size == len(id2label)


@pytest.mark.parametrize(
    "id2label",
    [
        {0: "LABEL_0", 1: "LABEL_1", 2: "LABEL_2"},
        {0: "LABEL_0"},
        {0: "entailment", 1: "positive"},
        {0: "neutral", 1: "contradiction"},
        {0: "entailment", 1: "supports"},
        {1: "entailment", 2: "neutral"},
        {"a": "entailment"},
        {},
        None,
        ["entailment"],
    ],
)
def test_what_is_not_clear_is_an_error_that_asks_for_a_map(id2label):
    with pytest.raises(ModelLoadError, match=r"some-model.*labels=\{0:"):
        resolve_labels(id2label, model_id="some-model")


def test_every_documented_synonym_is_understood():
    for role, names in SYNONYMS.items():
        for name in names:
            labels = {0: name} if role == "entailment" else {0: name.upper(), 1: "entailment"}
            assert getattr(resolve_labels(labels), role) == 0


@pytest.mark.parametrize(("logit", "expected"), [(-8.3, 0.0002), (0.0, 0.5), (8.1, 0.9997), (-1e4, 0.0), (1e4, 1.0)])
def test_one_logit_gets_one_sigmoid(logit, expected):
    for outputs in ([[logit]], [logit]):
        assert probabilities(outputs, rows=1, width=1)[0, 0] == pytest.approx(expected, abs=5e-5)


@given(hnp.arrays(np.float32, (4, 3), elements=st.floats(-3e4, 3e4, width=32)))
def test_several_logits_get_a_softmax(logits):
    table = probabilities(logits, rows=4, width=3)
    assert table.sum(axis=1) == pytest.approx(np.ones(4))
    assert ((table >= 0) & (table <= 1)).all()
    assert (table.max(axis=1) == table[range(4), logits.argmax(axis=1)]).all()


def test_declared_probabilities_are_taken_as_they_are():
    values = [[0.1, 0.7, 0.2]]
    assert probabilities(values, rows=1, width=3, activation="softmax").tolist() == values
    assert probabilities([[0.7]], rows=1, width=1, activation="sigmoid").tolist() == [[0.7]]
    assert probabilities(values, rows=1, width=3)[0, 1] != 0.7  # undeclared: logits, whatever they look like


@pytest.mark.parametrize(
    ("values", "activation"),
    [([[2.0, -1.0, 0.0]], "softmax"), ([[0.9, 0.9, 0.9]], "softmax"), ([[1.5]], "sigmoid"), ([[-0.1]], "sigmoid")],
)
def test_a_false_declaration_is_an_error(values, activation):
    with pytest.raises(ScoringError, match="declared"):
        probabilities(values, rows=1, width=len(values[0]), activation=activation)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_nothing_is_made_of_nan(bad):
    with pytest.raises(ScoringError, match="NaN or infinity") as caught:
        probabilities([[0.0, bad, 0.0]], rows=1, width=3, scorer="m")
    assert caught.value.scorer == "m"


@pytest.mark.parametrize(
    "outputs", [[], [[0.0]], [[0.0, 0.0]], [[0.0] * 3] * 3, [0.0, 0.0, 0.0], None, "no", [["a", "b", "c"]] * 2, [{}]]
)
def test_another_shape_is_an_error(outputs):
    with pytest.raises(ScoringError):
        probabilities(outputs, rows=2, width=3)


def test_probability_accepts_numbers_only():
    assert [probability(v) for v in (0, 1, 0.0, np.float32(0.5))] == [0.0, 1.0, 0.0, 0.5]
    for bad in (None, True, np.True_, "0.5", {}, [0.5], (0.1,), -0.1, 1.1, math.nan, math.inf):
        with pytest.raises(ScoringError):
            probability(bad)


def test_label_map_size():
    assert LabelMap(entailment=0).size == 1


@pytest.mark.parametrize(
    ("positions", "expected"),
    [
        ([2], 0.5),
        ([2, 3], 0.75),
        ([1, 3], 0.5),
        ([0, 3], 1.0),
        ([0, 1, 3], 2 / 3),
        ([0, 2, 3, 5], 0.75),
        ([0, 1, 2, 3, 5], 0.75),  # the mean of the four highest
        ([], None),
    ],
)
def test_the_least_supported_words_count(positions, expected):
    (found,) = unsupported_probability([[800.0, -800.0, 0.0, 800.0, math.nan, 0.0]], [positions])
    assert found == expected


@pytest.mark.parametrize(
    "outputs", [[[0.0, math.nan]], [[0.0, math.inf]], [[0.0]], [0.0, 0.0], [[0.0, 0.0]] * 2, [[[0.0, 0.0]]]]
)
def test_words_that_are_no_table_of_numbers_are_an_error(outputs):
    with pytest.raises(ScoringError, match="words") as caught:
        unsupported_probability(outputs, [[0, 1]], scorer="m")
    assert caught.value.scorer == "m"


@given(
    hnp.arrays(np.float32, (5, 12), elements=st.floats(-90, 90, width=32)),
    st.lists(st.lists(st.integers(0, 11), unique=True), min_size=5, max_size=5),
)
def test_the_words_of_a_batch_are_those_of_its_rows(logits, positions):
    found = unsupported_probability(logits, positions)
    for row, own, value in zip(logits.astype(np.float64), positions, found, strict=True):
        expected = (1 / (1 + np.exp(-np.sort(row[own])[-4:]))).mean() if own else None
        assert value == (None if expected is None else pytest.approx(float(expected), abs=1e-12))


@pytest.mark.parametrize("at", range(5))
@pytest.mark.parametrize(("bad", "fails"), [(math.nan, True), (math.inf, True), (-math.inf, False)])
def test_a_bad_logit_is_an_error_wherever_it_stands(at, bad, fails):
    logits = [0.0] * 5
    logits[at] = bad
    if fails:
        with pytest.raises(ScoringError, match="NaN or infinity for words"):
            unsupported_probability([logits], [range(5)])
    else:  # it is lower than the four that are used
        assert unsupported_probability([logits], [range(5)]) == [0.5]
    others = [position for position in range(5) if position != at]
    assert unsupported_probability([logits], [others]) == [0.5]
