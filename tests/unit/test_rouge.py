from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guardrail.scoring.rouge import (
    IncrementalLcs,
    lcs_length,
    lcs_precision,
    ngram_overlap,
    ngram_precision,
    reference_tokens,
    rouge_l_f1,
    rouge_n_f1,
)


def lcs_incremental(left, right):
    return IncrementalLcs(right).extend(left)


def lcs_table(left, right):
    """The textbook dynamic programme: slow, obviously right."""
    row = [0] * (len(right) + 1)
    for a in left:
        previous = 0
        for j, b in enumerate(right, start=1):
            previous, row[j] = row[j], previous + 1 if a == b else max(row[j], row[j - 1])
    return row[-1]


IMPLEMENTATIONS = pytest.mark.parametrize("lcs", [lcs_length, lcs_incremental], ids=["rapidfuzz", "bit-parallel"])
WORDS = st.lists(st.sampled_from(["a", "b", "c", "the", "é", "日"]), max_size=90)


@IMPLEMENTATIONS
@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("", "", 0),
        ("", "a b", 0),
        ("a b", "", 0),
        ("a", "a", 1),
        ("a b c", "c b a", 1),
        ("a x b y c", "a b c", 3),
        ("a a a", "a a", 2),
        ("the the the cat", "the cat the dog", 2),
        ("w0 w4 w8", " ".join(f"w{i}" for i in range(400)), 3),
        (" ".join(f"w{i}" for i in range(200)), " ".join(f"w{i}" for i in range(64, 300)), 136),
        ("ナイン 日本", "日本 ナイン 日本", 2),
    ],
)
def test_lcs(lcs, left, right, expected):
    assert lcs(left.split(), right.split()) == expected


@IMPLEMENTATIONS
@given(left=WORDS, right=WORDS)
def test_lcs_equals_the_textbook(lcs, left, right):
    assert lcs(left, right) == lcs_table(left, right)


@given(answer=WORDS, context=WORDS)
def test_a_growing_answer_has_the_scores_of_each_prefix(answer, context):
    lcs = IncrementalLcs(context)
    for end, token in enumerate(answer, start=1):
        assert lcs.extend([token]) == lcs_table(answer[:end], context)
        assert lcs.precision == lcs_precision(answer[:end], context)
        assert lcs.f1 == rouge_l_f1(answer[:end], context)


def test_a_copy_grows_on_its_own():
    lcs = IncrementalLcs("a b c".split())
    lcs.extend(["a"])
    twin = lcs.copy()
    assert twin.extend(["b", "c"]) == 3
    assert (lcs.length, lcs.answer_length, twin.answer_length, twin.context_length) == (1, 1, 3, 3)
    assert IncrementalLcs([]).precision == 0.0


def test_reference_tokens_are_lower_case_word_runs():
    assert reference_tokens("Perché l'ETÀ, snake_case 3.14!") == ["perché", "l", "età", "snake_case", "3", "14"]
    assert reference_tokens("… !?") == []


@pytest.mark.parametrize(
    ("answer", "context", "n", "expected"),
    [
        ("the the the cat", "the cat the dog", 1, 0.75),
        ("the the the cat", "the cat the dog", 2, 1 / 3),
        ("a b", "b a", 2, 0.0),
        ("a", "a", 2, 0.0),
        ("", "a", 1, 0.0),
        ("a", "", 1, 0.0),
    ],
)
def test_rouge_n_clips_counts(answer, context, n, expected):
    assert rouge_n_f1(answer.split(), context.split(), n) == pytest.approx(expected)


def test_precision_looks_at_the_claim_only():
    claim, evidence = "costs 50 euros".split(), "it costs 100 euros a month and more".split()
    assert lcs_precision(claim, evidence) == pytest.approx(2 / 3)
    assert ngram_precision(claim, evidence, 1) == pytest.approx(2 / 3)
    assert ngram_precision(claim, evidence, 2) == 0.0
    assert ngram_precision(["a", "a"], ["a"], 1) == 0.5
    assert lcs_precision([], evidence) == ngram_precision([], evidence, 1) == ngram_precision(["a"], evidence, 2) == 0.0


def test_n_must_be_positive():
    with pytest.raises(ValueError, match="at least 1"):
        ngram_overlap(["a"], ["a"], 0)


@given(answer=WORDS, context=WORDS)
def test_scores_are_probabilities(answer, context):
    scores = [rouge_l_f1(answer, context), lcs_precision(answer, context)]
    scores += [f(answer, context, n) for f in (rouge_n_f1, ngram_precision) for n in (1, 2)]
    assert all(0.0 <= score <= 1.0 for score in scores)


@settings(deadline=None)  # the first example imports rouge_score
@given(answer=st.text("abAB1 .,", max_size=60), context=st.text("abAB1 .,", max_size=120))
def test_f1_equals_rouge_score_on_ascii_text(answer, context):
    rouge_scorer = pytest.importorskip("rouge_score.rouge_scorer")
    theirs = rouge_scorer.RougeScorer(["rouge1", "rouge2", "rougeL"]).score(context, answer)
    left, right = reference_tokens(answer), reference_tokens(context)
    assert rouge_n_f1(left, right, 1) == pytest.approx(theirs["rouge1"].fmeasure)
    assert rouge_n_f1(left, right, 2) == pytest.approx(theirs["rouge2"].fmeasure)
    assert rouge_l_f1(left, right) == pytest.approx(theirs["rougeL"].fmeasure)
