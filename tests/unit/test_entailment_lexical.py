from __future__ import annotations

import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail.protocols import Entailment, Pair
from guardrail.scoring.entailment.lexical import LexicalEntailment, coverage, fold_word, words


async def entailment(premise, hypothesis):
    (score,) = await LexicalEntailment().score([Pair(premise, hypothesis)])
    assert score.contradiction is None
    return score.entailment


@pytest.mark.parametrize(
    ("premise", "hypothesis", "low", "high"),
    [
        ("The archive holds 12,480 photographs.", "The archive holds 12480 photographs.", 1.0, 1.0),
        ("The policies cover planned trips.", "The policy covers a planned trip.", 0.9, 1.0),
        ("L'età conta perché il rischio cresce.", "Il rischio cresce con l'età.", 0.9, 1.0),
        ("Il prezzo dei biglietti cresce.", "I prezzi del biglietto crescono.", 0.4, 1.0),
        ("The notice period is thirty days.", "The notice period is 30 days.", 1.0, 1.0),
        ("The plan costs 100 euros a month.", "The plan costs 50 euros a month.", 0.5, 0.8),
        ("The plan costs 100 euros in 2025.", "The plan costs 100 euros in 2026.", 0.6, 0.8),
        ("Phone support is open on Mondays.", "The museum sells posters.", 0.0, 0.1),
        ("the a of in", "The posters are in the a.", 0.0, 0.3),
        ("Anything", "…", 0.0, 0.0),
        ("", "The door opens.", 0.0, 0.0),
    ],
)
async def test_overlap(premise, hypothesis, low, high):
    assert low <= await entailment(premise, hypothesis) <= high


async def test_it_is_declared_as_no_judge():
    assert LexicalEntailment().model_id == "lexical"
    assert isinstance(LexicalEntailment(), Entailment)
    assert await entailment("The policy covers lost luggage.", "The policy does not cover lost luggage.") > 0.5


async def test_it_is_not_symmetric():
    short, long = "The door opens.", "The door opens at nine and closes late at night."
    assert await entailment(long, short) > await entailment(short, long)


@pytest.mark.parametrize(
    "forms",
    [
        "cost costs",
        "price prices priced pricing",
        "policy policies",
        "plan plans planned planning",
        "box boxes",
        "glass glasses",
        "door doors door's",
        "photo photos",
        "prezzo prezzi",
        "two 2",
        "12,480 12480",
    ],
)
def test_inflections_meet(forms):
    assert len({fold_word(form) for form in forms.split()}) == 1


@pytest.mark.parametrize(
    "pair", ["cost coast", "is as", "3,14 314", "1.5 15", "2025 2026", "virus viral", "data dates"]
)
def test_other_words_stay_apart(pair):
    left, right = pair.split()
    assert fold_word(left) != fold_word(right)


@given(premise=st.text(max_size=200), hypothesis=st.text(max_size=80))
def test_scores_are_probabilities_and_more_evidence_never_lowers_them(premise, hypothesis):
    alone = coverage(words(premise), hypothesis)
    assert 0.0 <= alone <= coverage(words(premise) | words("more words 42"), hypothesis) <= 1.0
    assert coverage(words(hypothesis), hypothesis) in (0.0, 1.0)


async def test_much_work_leaves_the_event_loop(monkeypatch):
    threads = []
    from guardrail.scoring.entailment import lexical

    real = lexical._score_all
    monkeypatch.setattr(lexical, "_score_all", lambda pairs: threads.append(threading.get_ident()) or real(pairs))
    await LexicalEntailment().score([Pair("short", "short")])
    scores = await LexicalEntailment().score([Pair(f"word{i} " * 200, f"word{i}") for i in range(20)])
    assert threads[0] == threading.get_ident() != threads[1]
    assert all(score.entailment == 1.0 for score in scores)


async def test_it_is_fast():
    pair = Pair(" ".join(f"evidence{i} word" for i in range(60)), " ".join(f"evidence{i}" for i in range(25)))
    model = LexicalEntailment()
    best = min([await timed(model, pair) for _ in range(30)])
    assert best < 0.001  # ten times what it takes, for slow machines


async def timed(model, pair):
    start = time.perf_counter()
    await model.score([pair])
    return time.perf_counter() - start
