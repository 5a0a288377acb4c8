"""Pairs made from plain prose: what is said, what is wrong, and where."""

import random

import pytest

from guardrail.errors import InputError
from guardrail.training.pairs import LABELS, NOT_ENTAILMENT, read_pairs, write_pairs
from guardrail.training.perturb import prose_pairs
from guardrail.training.perturb.bank import DETAILS, FILLERS
from guardrail.training.perturb.draft import merged
from guardrail.training.perturb.words import antonyms, synonyms

TOWN = [
    "The old mill in Riverton was built by Anna Rossi in 1932, which surprised many people in the area. "
    "It employed 120 workers and produced 4,500 tons of flour in 1940. The owners sold the building to Carla Weber "
    "after the war. According to Tom Fisher, the roof may collapse if the heavy snow does not melt. "
    "Some of the rooms are often used for concerts during the summer.",
    "In 1998, Maria Lopez defeated Tom Fisher in the race for mayor of Riverton. Maria Lopez said the town would spend "
    "up to 3 million dollars on new schools. The population increased from 8,200 to 9,600 within ten years. "
    "The library is not open on Sunday, but the museum welcomes visitors every day.",
]
PRAISE = [
    "Green Bay scored a touchdown in the second quarter and the crowd of 61,000 people cheered loudly. "
    "Brett Favre threw a 12-yard pass to Donald Driver before halftime. The Packers won the game by three points. "
    "The team had lost five of its previous seven games. Coach Mike Sherman said the defense was very strong."
]


@pytest.fixture(scope="module")
def pairs():
    return list(prose_pairs([TOWN, PRAISE], count=240, seed=3))


def test_there_are_as_many_as_asked_for(pairs):
    assert len(pairs) == 240
    assert len({(p.premise, p.hypothesis) for p in pairs}) == 240


def test_half_of_them_are_entailed_and_every_label_occurs(pairs):
    entailed = sum(p.label == "entailment" for p in pairs)
    assert 70 <= entailed <= 150
    assert {p.label for p in pairs} == {*LABELS, NOT_ENTAILMENT}


def test_only_entailed_claims_have_no_wrong_range(pairs):
    assert all((p.unsupported == ()) == (p.label == "entailment") for p in pairs)


def test_ranges_lie_in_the_claim_and_begin_and_end_with_a_character_of_it(pairs):
    for pair in pairs:
        assert list(pair.unsupported) == sorted(merged(pair.unsupported))
        for start, end in pair.unsupported:
            wrong = pair.hypothesis[start:end]
            assert wrong == wrong.strip()
            assert wrong


def test_many_kinds_of_error_occur(pairs):
    kinds = {p.source for p in pairs}
    assert kinds >= {"prose_faithful", "prose_value", "prose_name", "prose_opposite", "prose_detail", "prose_negation"}


def test_a_swapped_value_is_not_in_the_place_where_the_passage_has_it(pairs):
    values = [p for p in pairs if p.source == "prose_value"]
    assert values
    assert all(p.hypothesis not in p.premise for p in values)


def test_most_faithful_claims_are_worded_differently(pairs):
    faithful = [p for p in pairs if p.source == "prose_faithful"]
    assert sum(p.hypothesis in p.premise for p in faithful) < len(faithful) / 2


def test_the_seed_decides_everything():
    first, again, other = (list(prose_pairs([TOWN], count=20, seed=seed)) for seed in (5, 5, 6))
    assert first == again
    assert first != other


@pytest.mark.parametrize("passages", [[], [[]], [["  "]], [["Hi there"]], [["I went home. My dog was sad?"]]])
def test_text_without_a_usable_sentence_gives_no_pairs(passages):
    assert list(prose_pairs(passages, count=5)) == []


def test_no_pairs_are_made_if_none_are_wanted():
    assert list(prose_pairs([TOWN], count=0)) == []


def test_pairs_can_be_written_and_read_again(pairs, tmp_path):
    path = tmp_path / "prose.jsonl.gz"
    assert write_pairs(path, pairs) == 240
    assert list(read_pairs(path)) == pairs


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"absent\.jsonl"):
        list(read_pairs(tmp_path / "absent.jsonl"))


def test_the_word_tables_are_large_and_lead_to_other_words():
    assert len(synonyms()) >= 250
    assert len(antonyms()) >= 240
    assert all(word != other for table in (synonyms(), antonyms()) for word, other in table.items())
    assert len(DETAILS) >= 150
    assert len(FILLERS) >= 80
    assert random.Random(1).choice(FILLERS).endswith(".")
