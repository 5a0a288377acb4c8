"""Pairs as tensors."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest

from guardrail.errors import ModelLoadError
from guardrail.training.pairs import LABELS, TrainingPair
from tests.tiny_models import copy_of
from tests.unit.training.toy import tiny, toy_pairs


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return tiny(tmp_path_factory).torch_dir


@pytest.fixture(scope="module")
def lib(base):
    from guardrail.training import batches

    return batches


def _pair(premise: str, claim: str, **more) -> TrainingPair:
    return TrainingPair(**{"premise": premise, "hypothesis": claim, "label": "neutral"} | more)


def test_a_long_premise_is_cut_and_the_claim_never(base, lib):
    encoder = lib.PairEncoder(base, max_tokens=48)
    claim = "the plan costs nine euros"
    (short,) = encoder.encode([_pair("the door opens", claim)])
    (long,) = encoder.encode([_pair("the door opens at nine " * 40, claim)])
    assert len(long.ids) == 48
    assert long.ids[-6:] == short.ids[-6:]
    assert long.types == [0] * 42 + [1] * 6
    assert short.types == [0] * 5 + [1] * 6


def test_a_claim_without_room_for_evidence_is_left_out(base, lib):
    encoder = lib.PairEncoder(base, max_tokens=32)
    claims = ["the door opens " * n for n in (4, 5, 8, 20)]
    kept = encoder.encode(
        [_pair("the door opens at nine and at ten in month nine and ten of the plan", c) for c in claims]
    )
    assert len(kept) == 1
    assert len(encoder.encode([_pair("the door", claims[2])])) == 1


@pytest.mark.parametrize(("label", "only", "index"), [(name, False, i) for i, name in enumerate(LABELS)]
                         + [("not_entailment", True, 0)])  # fmt: skip
def test_labels(base, lib, label, only, index):
    (example,) = lib.PairEncoder(base).encode([_pair("the door", "a door", label=label)])
    assert (example.entailment_only, example.label) == (only, index)


def test_words_are_labelled_where_it_is_known(base, lib):
    claim = "the door opens at ten"
    pairs = [
        _pair("the door opens at nine", claim, unsupported=((18, 21),)),
        _pair("the door opens at nine", claim, unsupported=()),
        _pair("the door opens at nine", claim),
    ]
    wrong, right, unknown = (e.words for e in lib.PairEncoder(base).encode(pairs))
    assert wrong == [-100] * 7 + [0, 0, 0, 0, 1] + [-100]
    assert right == [-100] * 7 + [0] * 5 + [-100]
    assert set(unknown) == {-100}


def test_every_example_comes_once_and_in_few_lengths(base, lib):
    rng = random.Random(3)
    words = "the door opens at nine".split()
    pairs = [_pair(" ".join(rng.choices(words, k=rng.randrange(3, 220))), "a door opens") for _ in range(200)]
    examples = lib.PairEncoder(base).encode(pairs)
    found = lib.batches(examples, tokens_per_batch=1024, rng=random.Random(1))
    assert Counter(i for batch in found for i in batch) == Counter(range(200))
    shapes = {tuple(lib.collate([examples[i] for i in batch]).input_ids.shape) for batch in found}
    assert {length for _, length in shapes} <= set(lib.LENGTHS)
    assert max(pairs * length for pairs, length in shapes) <= 1024
    assert found != lib.batches(examples, tokens_per_batch=1024, rng=random.Random(2))
    assert found == lib.batches(examples, tokens_per_batch=1024, rng=random.Random(1))


def test_padding_is_masked_and_has_no_labels(base, lib):
    examples = lib.PairEncoder(base).encode(toy_pairs(2))
    batch = lib.collate(examples)
    length = len(examples[0].ids)
    assert batch.input_ids.shape == (2, 32)
    assert batch.attention_mask[0].tolist() == [1] * length + [0] * (32 - length)
    assert batch.word_labels[0, length:].tolist() == [-100] * (32 - length)
    assert batch.entailment_only.tolist() == [False, True]


def test_a_tokeniser_of_another_kind_is_refused(base, lib, tmp_path):
    other = copy_of(base, tmp_path / "other")
    path = other / "tokenizer.json"
    path.write_text(path.read_text().replace("[CLS]", "<s>"))
    with pytest.raises(ModelLoadError, match=r"has no token \[CLS\]"):
        lib.PairEncoder(other)
    path.write_text("{}")
    with pytest.raises(ModelLoadError, match=r"cannot read .*tokenizer\.json"):
        lib.PairEncoder(other)
    path.unlink()
    with pytest.raises(ModelLoadError, match="is missing"):
        lib.PairEncoder(other)


@pytest.mark.parametrize("change", ["no template", "one type"])
def test_a_tokeniser_that_joins_pairs_otherwise_is_refused(base, lib, tmp_path, change):
    other = copy_of(base, tmp_path / "other")
    described = json.loads((other / "tokenizer.json").read_text())
    if change == "no template":
        described["post_processor"] = None
    else:
        for piece in described["post_processor"]["pair"]:
            next(iter(piece.values()))["type_id"] = 0
    (other / "tokenizer.json").write_text(json.dumps(described))
    with pytest.raises(ModelLoadError, match=r"its post_processor has to be that of a BERT, \[CLS\] premise \[SEP\]"):
        lib.PairEncoder(other)
