"""The single rules: rewritings that keep the meaning, and changes that do not."""

import random

import pytest

from guardrail.text.values import parse_values
from guardrail.training.perturb import compress, entities, invent, material, rephrase, values, wording
from guardrail.training.perturb.draft import Draft, is_broken, lowered, merged

SEEDS = range(60)


def outcomes(rule, text, *rest):
    found = set()
    for seed in SEEDS:
        draft = Draft(text)
        rule(draft, random.Random(seed), *rest)
        found.add(draft.text)
    return found


@pytest.mark.parametrize(
    ("text", "shorter"),
    [
        ("The mill (built in 1902) burned down completely.", "The mill burned down completely."),
        ("The mill, a small building near the river, was sold to a family.", "The mill was sold to a family."),
        ("However, the mill was sold to a family from Riverton.", "The mill was sold to a family from Riverton."),
        ("The very old mill was sold to a family from Riverton.", "The old mill was sold to a family from Riverton."),
        (
            "The committee sold the old mill to a family from Riverton, which surprised many people.",
            "The committee sold the old mill to a family from Riverton.",
        ),
    ],
)
def test_asides_can_be_left_out(text, shorter):
    assert shorter in outcomes(compress.compress, text)


@pytest.mark.parametrize(
    "text", ["If it rains, the very old mill is not opened.", "No very old mill was ever sold here."]
)
def test_nothing_is_left_out_under_a_condition_or_a_negation(text):
    assert outcomes(compress.compress, text) == {text}


def test_time_moves_from_one_end_to_the_other():
    assert "In 1932, the mill burned down." in outcomes(compress.move_time, "The mill burned down in 1932.")
    assert "The mill burned down in 1932." in outcomes(compress.move_time, "In 1932, the mill burned down.")


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("It took 12 men.", "It took twelve men."),
        ("It has 1,000,000 rooms.", "It has 1 million rooms."),
        ("About 50% of them left.", "About half of them left."),
        ("It grew by 7 percent.", "It grew by 7%."),
    ],
)
def test_numbers_can_be_written_another_way(text, other):
    assert other in outcomes(values.reword_values, text)


@pytest.mark.parametrize("text", ["It opened on May 12.", "It lasted from 8:12 on.", "Use Windows 10 here."])
def test_dates_times_and_versions_keep_their_notation(text):
    assert outcomes(values.reword_values, text) == {text}


def test_a_wrong_value_comes_from_the_document_and_is_marked():
    others = parse_values("It burned down in 1950.")
    draft = Draft("It was sold in 1932.")
    assert values.wrong_value(draft, random.Random(1), others)
    assert all(draft.text[a:b] != "1932" for a, b in draft.spans)
    assert "It was sold in 1950." in outcomes(values.wrong_value, "It was sold in 1932.", others)


@pytest.mark.parametrize(
    ("rule", "text", "wrong"),
    [
        (wording.negated, "The mill was sold.", "The mill was not sold."),
        (wording.negated, "The mill was not sold.", "The mill was sold."),
        (wording.negated, "Fisher did not win the race.", "Fisher won the race."),
        (wording.negated, "Fisher won the race.", "Fisher did not win the race."),
        (wording.wrong_opposite, "Prices rose in May.", "Prices fell in May."),
        (wording.wrong_opposite, "It took more than 12 days.", "It took fewer than 12 days."),
        (wording.stretched, "Some of the goats bite.", "All of the goats bite."),
        (wording.stretched, "Goats often bite.", "Goats always bite."),
        (wording.unhedged, "It costs up to 40 euros.", "It costs 40 euros."),
        (wording.unhedged, "Fisher reportedly sold the mill.", "Fisher sold the mill."),
        (
            wording.unhedged,
            "The roof of the old mill may fall if snow lies on it.",
            "The roof of the old mill may fall.",
        ),
        (entities.swapped_roles, "In May Tom Fisher defeated Anna Rossi.", "In May Anna Rossi defeated Tom Fisher."),
    ],
)
def test_a_small_change_makes_the_claim_wrong(rule, text, wrong):
    assert wrong in outcomes(rule, text)
    draft = Draft(text)
    assert rule(draft, random.Random(1))
    assert draft.spans


def test_a_negation_of_some_is_no_contradiction():
    assert not wording.negated(Draft("Some of the mills were sold."), random.Random(1))


def test_active_becomes_passive():
    draft = Draft("Anna Rossi designed the bridge in 1932.")
    assert entities.passive(draft)
    assert draft.text == "The bridge was designed by Anna Rossi in 1932."


def test_a_pronoun_gets_its_name_only_if_there_is_one_candidate():
    document = material.read_document(
        ["Anna Rossi said it was late. Then Anna Rossi met Tom Fisher, who said nothing."]
    )
    assert entities.named("She left the town.", "Anna Rossi said it was late.", document) == "Anna Rossi left the town."
    assert entities.named("She left.", "Anna Rossi met Tom Fisher.", document) is None


def test_predicates_are_joined_to_the_wrong_subject():
    said = outcomes(entities.wrong_join, "The mill was sold in May.", "The library was closed in June.")
    assert said == {"The mill was closed in June.", "The mill was sold in May and was closed in June."}


def test_a_detail_is_added_before_the_full_stop():
    document = material.read_document(["The mill was sold in May to a family."])
    draft = Draft("The mill was sold in May.")
    assert invent.added_detail(draft, random.Random(1), document, ())
    (span,) = draft.spans
    assert draft.text == f"{draft.text[: span[1]]}."
    assert draft.text.startswith("The mill was sold in May")


def test_a_sentence_is_neutral_without_its_source():
    document = material.read_document(
        ["The mill was sold to Anna Rossi. Two rivers cross the valley. Children play football there. Goats eat grass."]
    )
    pair = invent.removed_source(Draft("The mill was sold to Anna Rossi."), document, (0,))
    assert pair is not None
    assert pair.label == "neutral"
    assert "mill" not in pair.premise
    assert pair.unsupported == ((0, len(pair.hypothesis)),)


def test_an_instruction_becomes_advice():
    assert "You should cut the beets." in outcomes(rephrase.reported_order, "Cut the beets.")
    assert outcomes(rephrase.reported_order, "Do not cut the beets.") == {"You should not cut the beets."}


def test_a_range_moves_with_the_text_before_it():
    draft = Draft("It cost 5 euros.")
    assert draft.replace(8, 9, "12", wrong=True)
    assert draft.replace(0, 2, "The hat")
    assert [draft.text[a:b] for a, b in draft.spans] == ["12"]
    assert not draft.replace(13, 14, "3")


def test_an_article_agrees_with_the_word_behind_it():
    draft = Draft("He had a large hat.")
    assert draft.word(9, 14, "enormous")
    assert draft.text == "He had an enormous hat."


@pytest.mark.parametrize(
    "text", ["He saw the the hat there.", "He saw a hat , there.", "he saw a hat there.", "Too short."]
)
def test_broken_sentences_are_found(text):
    assert is_broken(text)


def test_names_keep_their_capital_behind_a_comma():
    assert lowered("Rome burned.") == "Rome burned."
    assert lowered("The mill burned.") == "the mill burned."
    assert lowered("Mills burned.", "many mills") == "mills burned."


def test_touching_ranges_are_joined():
    assert merged([(5, 8), (0, 2), (2, 4)]) == ((0, 4), (5, 8))
