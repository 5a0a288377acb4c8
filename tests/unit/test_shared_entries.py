"""What the shared cache keeps: keys without text, and scores as they were."""

import dataclasses

import pytest

from guardrail.protocols import Pair
from guardrail.scoring.entailment.shared_entries import Entries, pack, unpack
from guardrail.types import EntailmentScore
from tests.unit.shared_caches import DAMAGED, FULL, A


@pytest.mark.parametrize(
    "score",
    [
        FULL,
        EntailmentScore(entailment=0.0),
        EntailmentScore(entailment=1.0, contradiction=0.0),
        EntailmentScore(entailment=1 / 3, unsupported=2 / 3),
    ],
)
def test_a_score_comes_back_as_it_was(score):
    assert unpack(pack(score)) == score
    given = (score.entailment, score.contradiction, score.unsupported)
    assert len(pack(score)) == 1 + 8 * sum(value is not None for value in given)


def test_every_field_that_a_model_gives_is_packed():
    """What a judge has decided is not: it depends on a budget and a deadline, so it is never stored."""
    names = {field.name for field in dataclasses.fields(EntailmentScore)} - {"screened", "judged"}
    for name in names:
        changed = dataclasses.replace(FULL, **{name: 0.5})
        assert unpack(pack(changed)) == changed != FULL


@pytest.mark.parametrize("data", DAMAGED)
def test_damaged_values_are_no_scores(data):
    assert unpack(data) is None


def keys(*pairs, model="model", name="shop"):
    return Entries(name, ttl_ms=1000, max_entries=10).keys(model, pairs)


def test_keys_tell_pairs_models_and_names_apart():
    pairs = [Pair("ab", "c"), Pair("a", "bc"), Pair("c", "ab"), Pair("", "abc"), Pair("abc", ""), Pair("ab", "C")]
    found = [*keys(*pairs), *keys(*pairs, model="other"), *keys(*pairs, name="hotel")]
    assert len(set(found)) == 3 * len(pairs)
    assert keys(*pairs) == [keys(pair)[0] for pair in pairs]


def test_keys_are_hashes_in_one_slot():
    secret = Pair("Anna's diagnosis is influenza.", "Anna is ill. \ud83d \x00")
    (key,) = keys(secret)
    assert key.startswith("{shop:scores}:")
    assert len(bytes.fromhex(key.removeprefix("{shop:scores}:"))) == 16


def test_the_key_of_a_pair_stays_the_same_from_release_to_release():
    assert keys(A) == ["{shop:scores}:608b2d2ca312d82d9ba5fba831c43a41"]


def test_many_entries_are_one_round_trip_of_several_calls():
    entries = Entries("shop", ttl_ms=1500, max_entries=7)
    calls = entries.calls({f"{{shop:scores}}:{number}": b"%d" % number for number in range(1001)})
    assert [len(call.keys) for call in calls] == [501, 501, 2]
    assert calls[2].keys == ("{shop:scores}:index", "{shop:scores}:1000")
    assert calls[2].args == (1500, 7, "{shop:scores}:", b"1000")
    assert entries.calls({}) == []
