"""Pairs of sentences that look like a disagreement and are none, each beside one that is."""

from __future__ import annotations

import pytest

from guardrail.scoring.claims import Preceding, claim_of
from guardrail.scoring.clashes import find_clashes
from guardrail.scoring.notation import in_evidence_notation
from guardrail.text.values import parse_values
from guardrail.types import Clash, ClashKind, Segment, SegmentKind


def found(claim: str, *evidence: str) -> list[tuple[ClashKind, bool]]:
    return [(clash.kind, clash.contradicts) for clash in find_clashes(claim, evidence)]


def contradictions(claim: str, *evidence: str) -> list[Clash]:
    return [clash for clash in find_clashes(claim, evidence) if clash.contradicts]


@pytest.mark.parametrize(
    ("claim", "evidence"),
    [
        # compounds with "non-", compound colours, and a colour that is only a label
        ("Warm a non-stick pan over low heat.", "Warm a small nonstick pan over low heat."),
        ("It is a pearl-white mineral.", "It is a pearl-grey mineral."),
        ("Purple: courage", "Yellow stands for courage."),
        # "prevent", "too little" and "not all" deny as well
        (
            "Tie the cable to prevent it from touching the belt.",
            "Tie the cable so that it does not touch the belt.",
        ),
        ("Stir the rice to prevent sticking.", "Stir the rice so it cooks without sticking."),
        ("A lack of light makes the leaves fall.", "Too little light makes the leaves fall."),
        ("You should not move the lens.", "You shouldnt move the lens."),
        # both at once deny nothing, and what is done against something leaves it possible
        ("The coat is brown, in some dogs with white spots.", "The coat is brown, with or without white spots."),
        ("Es gibt ihn mit Balkon.", "Es gibt ihn mit oder ohne Balkon."),
        ("Si può ordinare con panna.", "Si può ordinare con o senza panna."),
        (
            "Drain the pipes to remove water that could freeze in them.",
            "Drain the pipes to remove the water, so that it won't freeze in them.",
        ),
        # a denial of one amount leaves others
        ("Bake the crust for 30 minutes.", "Do not bake the crust for 50 minutes."),
        # a denial of one case leaves others
        ("Take 400 mg of ibuprofen.", "Do not take ibuprofen with alcohol."),
        ("The pool opens at 9 am.", "The pool does not open in bad weather."),
        # what stands under a condition asserts nothing
        ("If there is no signal, restart the router.", "If the signal is weak, restart the router."),
        ("Members have to pay the fee.", "Ask whether members may pay the fee."),
        # what all must do, some may do; "nothing" denies what follows
        (
            "Some obligations of the agreement may survive its termination.",
            "All obligations of the agreement shall survive its termination.",
        ),
        ("* Several duties may end with the lease.", "The duties of the tenant must end with the lease."),
        (
            "The agreement does not grant the recipient any right.",
            "Nothing in this agreement shall be construed as granting the recipient any right.",
        ),
        # larger than X, smaller than Y
        ("Hares are larger than rabbits.", "Rabbits are smaller than hares."),
        # a thing beside another is no agent
        ("A man is carrying planks by two women.", "A man carrying planks and two women."),
        # a plural, and a site that has the page
        ("Firms issue K12s in spring.", "Firms issue a K12 in spring, not a K14."),
        ("Go to example.org and log in.", "Go to example.org/login and log in."),
        # notation
        ("Use 1/3 inch of sand.", "Use 1⁄3 inch of sand."),
        ("Bake it at 350° for an hour.", "Bake it at 350˚ for an hour."),
        ("Add 1-1/2 cups of flour.", "Add 1 1/2 cups of flour."),
        ("Add 1 1/2 cups of flour.", "Add 1.5 cups of flour."),
        ("Angles between 0 and 75 degrees are cut.", "Angles between zero degrees and 75 degrees are cut."),
        ("Women need about 1600-2100 calories.", "Women need about 1,600 to 2,100 calories."),
        ("Set it to 356°F (180°C).", "Set it to 356°F."),
        ("Keep it at 18-20°C (64-68°F).", "Keep it at 18 to 20 degrees Celsius."),
        ("Sun cream belongs on the list.", "On Monday the cream belongs on the list."),
        ("Guards prevent or ward off accidents.", "Guards ward off accidents."),
        ("Licensed cabs are white, unlicensed cabs are not.", "Licensed cabs are white."),
        ("To reset the clock you can press the red button.", "To reset the clock you need to press the red button."),
        ("It may be time to replace the hose.", "The hose needs to be replaced."),
        ("1/4 cup of sugar", "11 1/4 cup of sugar"),
        ("Rub one side with salt.", "Rub a side with salt."),
        # a "no" behind what it denies, as records are read
        ("There is no outdoor seating.", "Elm Inn, attributes: outdoor seating no, WiFi free."),
        ("Dogs are not allowed.", "dogs allowed: no."),
        ("The WiFi is free.", "Elm Inn, attributes: outdoor seating no, WiFi free."),
        # a sentence that is about the same thing as a whole beats one that shares a phrase
        (
            "The median rent of all tenants is $900 based on the yearly housing survey.",
            "The office gave a median rent of $900 for all tenants, and a mean rent of $1,200 based on the yearly "
            "housing survey.",
        ),
    ],
)
def test_no_contradiction(claim: str, evidence: str) -> None:
    assert contradictions(claim, evidence) == []


@pytest.mark.parametrize(
    ("claim", "evidence", "kind"),
    [
        ("The pan is nonstick.", "The pan is not nonstick.", ClashKind.NEGATION),
        ("The gate was painted purple in 2004.", "The gate was painted yellow in 2004.", ClashKind.ANTONYM),
        ("The guard stops the belt.", "The guard does not stop the belt.", ClashKind.NEGATION),
        ("The vaccine prevents measles.", "The vaccine does not prevent measles.", ClashKind.NEGATION),
        # a denial without an amount leaves none
        ("Refunds are given within 30 days.", "Refunds are not given.", ClashKind.NEGATION),
        ("The pool opens at 9 am.", "The pool does not open.", ClashKind.NEGATION),
        ("Bake the crust for 30 minutes.", "Do not bake the crust.", ClashKind.NEGATION),
        ("The coat comes with spots.", "The coat comes without spots.", ClashKind.NEGATION),
        ("Not all lockers are free.", "All lockers are free.", ClashKind.QUANTIFIER),
        ("Hares are larger than rabbits.", "Hares are smaller than rabbits.", ClashKind.ANTONYM),
        ("Firms issue a K12 in spring.", "Firms issue a K14 in spring.", ClashKind.IDENTIFIER),
        ("Go to example.org/login and log in.", "Go to example.org/signup and log in.", ClashKind.IDENTIFIER),
        ("Add 1 1/2 cups of flour.", "Add 2 1/2 cups of flour.", ClashKind.VALUE),
        ("Members must pay the fee.", "Members may pay the fee.", ClashKind.MODALITY),
        ("Members must pay the fee online.", "Members can pay the fee online.", ClashKind.MODALITY),
        ("The cab is unlicensed.", "The cab is licensed.", ClashKind.ANTONYM),
        ("There is outdoor seating.", "Elm Inn, attributes: outdoor seating no, WiFi free.", ClashKind.NEGATION),
        ("Dogs are allowed.", "dogs allowed: no.", ClashKind.NEGATION),
    ],
)
def test_still_a_contradiction(claim: str, evidence: str, kind: ClashKind) -> None:
    assert (kind, True) in found(claim, evidence)


def test_one_word_of_two_is_not_the_same_measure() -> None:
    evidence = "The metal melts at 840°C and boils at 1484°C."
    assert found("Boiling point: 1090°C", evidence) == [(ClashKind.VALUE, False)]
    assert found("The boiling point is 1090°C.", "The boiling point is 1484°C.") == [(ClashKind.VALUE, True)]


def test_days_that_a_timetable_gives_one_by_one() -> None:
    evidence = "Hours: Monday to Thursday 9 AM to 5 PM, Friday and Saturday 9 AM to 7 PM, none on Sunday."
    assert found("It opens on weekdays and weekends.", evidence) == []
    assert found("It opens from Tuesday to Saturday.", evidence) == []
    assert found("It opens every day but Sunday.", "Hours: Monday to Saturday 9 AM to 5 PM.") == []
    assert found("It opens at weekends.", "Hours: Monday to Saturday 9 AM to 5 PM.") == [(ClashKind.DATE, False)]


def test_a_shared_name_is_enough() -> None:
    assert found("The height of Wendel Tower is 90 m.", "Wendel Tower measures 70 m.") == [(ClashKind.VALUE, True)]


def test_the_sentence_with_the_value_wins_if_it_says_the_rest_too() -> None:
    second = "A ring on the second finger suggests a person who likes wealth."
    first = "A ring worn on the first finger suggests a proud person."
    claim = "Worn on the second finger: suggests a person who likes wealth."
    assert contradictions(claim, second, first) == []
    assert contradictions("The oven weighs 40 kg.", "The oven weighs 60 kg.", "The sink weighs 40 kg.")


class TestScope:
    ended = "Until 2015 the mill was owned by the parish; since then a club has owned it."

    def test_what_ended_is_not_present(self) -> None:
        assert found("The mill is owned by the parish.", self.ended) == [(ClashKind.DATE, True)]
        assert found("The inn is now a school.", "The inn was formerly a school.") == [(ClashKind.DATE, True)]

    @pytest.mark.parametrize(
        ("claim", "evidence"),
        [
            ("The mill is owned by a club.", ended),
            ("Until 2015 the mill was owned by the parish.", ended),
            ("The mill was owned by the parish.", ended),
            ("The desk is open until five.", "The desk is open until five on weekdays."),
            ("The mill is owned by the parish.", "The mill was owned by the parish."),
        ],
    )
    def test_other_tenses_stand(self, claim: str, evidence: str) -> None:
        assert found(claim, evidence) == []

    def test_another_sentence_may_confirm_it(self) -> None:
        assert found("The mill is owned by the parish.", self.ended, "Today the parish owns the mill.") == []

    def test_a_condition_is_not_left_out(self) -> None:
        evidence = "Parcels are returned free of charge if the box is unopened."
        assert found("Parcels are returned free of charge.", evidence) == [(ClashKind.MODALITY, False)]
        assert found("If the box is unopened, parcels are returned free of charge.", evidence) == []
        assert found("Unopened parcels are returned free of charge.", evidence) == []

    def test_advice_to_a_reader_needs_no_condition(self) -> None:
        evidence = "Heat the oven to 200 degrees if you want a crisp crust."
        assert found("Heat the oven to 200 degrees.", evidence) == []


@pytest.mark.parametrize(
    ("claim", "evidence", "hedged"),
    [
        ("The cream reduces scars.", "The cream may reduce scars.", True),
        ("The seeds are gathered in May.", "The seeds may be gathered in May.", False),
        ("The horse has a temperature.", "The horse may have a temperature.", False),
    ],
)
def test_may_be_is_a_permission_and_may_do_a_doubt(claim: str, evidence: str, hedged: bool) -> None:
    assert ((ClashKind.MODALITY, False) in found(claim, evidence)) is hedged


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("I don't know the price, but the pump has two valves.", "the pump has two valves."),
        ("The documents do not mention the owner; however, the pump has two valves.", "the pump has two valves."),
        ("The pump is small, but it has two valves.", "The pump is small, but it has two valves."),
        ("But the pump has two valves.", "But the pump has two valves."),
    ],
)
def test_the_claim_behind_an_honest_gap(text: str, claim: str) -> None:
    segment = Segment(start=0, end=len(text), text=text, kind=SegmentKind.CLAIM)
    assert claim_of(segment, Preceding(), passages=1) == claim


def test_a_bracket_is_a_conversion_only_if_it_is_one() -> None:
    assert find_clashes("Set it to 400°F (205°C).", ["Set it to 400°F."]) == ()
    assert found("Set it to 400°F (240°C).", "Set it to 400°F.") == [(ClashKind.VALUE, False)]
    assert (ClashKind.VALUE, True) in found("Set it to 350°F (177°C).", "Set it to 400°F.")


def test_a_lead_in_may_repeat_the_question() -> None:
    question, evidence = "How do I fold a boat in 2 minutes?", ["Fold the sheet in half."]
    assert find_clashes("Here is how you fold a boat in 2 minutes:", evidence, question=question) == ()
    assert find_clashes("You can fold a boat in 2 minutes.", evidence, question=question) != ()


def test_a_duty_may_become_advice_and_not_the_reverse() -> None:
    duty, advice = "Riders must wear a helmet.", "Riders should wear a helmet."
    assert find_clashes(advice, [duty]) == ()
    assert found(duty, advice) == [(ClashKind.MODALITY, False)]


@pytest.mark.parametrize(
    ("text", "amounts"),
    [
        ("1 1/2 cups", ["1.5"]),
        ("2-1/4 cups", ["2.25"]),
        ("1 of 1/2", ["1", "0.5"]),
        ("3/4 cup", ["0.75"]),
    ],
)
def test_mixed_fractions(text: str, amounts: list[str]) -> None:
    assert [str(value.amount) for value in parse_values(text)] == amounts


@pytest.mark.parametrize(
    ("claim", "evidence", "rewritten"),
    [
        ("It holds 12480 maps.", "It holds 12,480 maps.", "It holds 12,480 maps."),
        ("The dose is 2.50 mg.", "The dose is 2.5 mg daily.", "The dose is 2.5 mg."),
        ("It opened on 1967-01-15.", "It opened on January 15, 1967.", "It opened on January 15, 1967."),
        ("The fee is twelve per cent.", "The fee is 12%.", "The fee is 12%."),
        ("It is about 6.2 miles long.", "It is 10 km long.", "It is about 10 km long."),
        ("It opened in 1967.", "It opened on January 15, 1967.", "It opened in 1967."),
        ("It holds 1,248 maps.", "It holds 12,480 maps.", "It holds 1,248 maps."),
        ("It holds at least 12480 maps.", "It holds 12,480 maps.", "It holds at least 12480 maps."),
        ("Write to help@example.org.", "Write to Help@Example.org.", "Write to help@example.org."),
        ("Set it to 180°C.", "Set it to 180 degrees.", "Set it to 180°C."),
        ("It was built in the 1950s.", "It was built in 1950.", "It was built in the 1950s."),
        ("No number here.", "Twelve maps.", "No number here."),
        ("Three guests gave 4 stars.", "Stars: 3.0 and 4.0.", "Three guests gave 4 stars."),
        ("It closes at 23:00.", "Open 10 AM to 11 PM.", "It closes at 23:00."),
        ("It opens at 12:00.", "Open noon to 11 PM.", "It opens at 12:00."),
        ("It closes at 9 PM.", "It closes at 21:00 on Friday.", "It closes at 21:00."),
        ("It is open 10:00 to 23:00.", "Hours: 10 AM to 11 PM.", "It is open 10 AM to 11 PM."),
    ],
)
def test_values_in_the_notation_of_the_evidence(claim: str, evidence: str, rewritten: str) -> None:
    assert in_evidence_notation(claim, [evidence]) == rewritten


@pytest.mark.parametrize(
    ("claim", "evidence", "wrong"),
    [
        (  # "every" says how often, not of how many
            "Bake the tiles for 30-45 minutes, turning the tray every 5-7 minutes.",
            (
                "Bake the tiles for 30 to 45 minutes, turning the tray every 5 to 7 minutes.",
                "Bake mugs for 90 minutes.",
            ),
            "Bake the tiles for 50-65 minutes.",
        ),
        (  # the unit is written short, or not at all
            "Add 8 to 12 inches of bark to the bed.",
            ("Rake the bed, then add 8 to 12 in. of bark.", "Add 2 inches of sand to the bed."),
            "Add 5 inches of sand to the bed.",
        ),
        (  # a range that puts two together
            "Boil the roots for 20-40 minutes.",
            ("Boil fresh roots for 20 to 30 minutes.", "Boil dried roots for up to 40 minutes."),
            "Boil fresh roots for 50 minutes.",
        ),
        (
            "Preheat the kiln to 500 degrees.",
            ("Pre-heat the kiln to 500 degrees.", "Preheat the kiln to 325 degrees Fahrenheit."),
            "Preheat the kiln to 410 degrees.",
        ),
    ],
)
def test_a_value_that_the_evidence_gives_in_other_words(claim: str, evidence: tuple[str, ...], wrong: str) -> None:
    assert contradictions(claim, *evidence) == []
    assert [clash.kind for clash in contradictions(wrong, *evidence)] == [ClashKind.VALUE]


@pytest.mark.parametrize(
    ("claim", "evidence", "wrong"),
    [
        (  # "away from" denies, whatever the verb
            "Keep the bulbs away from heat until spring.",
            "Store the bulbs in a sack away from heat until spring.",
            "Keep the bulbs in heat until spring.",
        ),
        (  # what may happen, and the advice to see that it does not
            "You can use a belt sander, but be careful not to remove too much wood.",
            "You can use a belt sander, but it might remove too much wood.",
            "You cannot use a belt sander.",
        ),
        (  # "without" and "unless"
            "It is difficult to cancel the lease without both parties agreeing.",
            "It is difficult to cancel the lease unless both parties agree.",
            "It is not difficult to cancel the lease.",
        ),
        (  # a denial of something else
            "Once the seeds are dry, wrap the head in cloth and tie it to the stem.",
            "Wrap the head in cloth and tie it to the stem to keep birds away from the seeds.",
            "Never wrap the head in cloth.",
        ),
    ],
)
def test_a_denial_that_turns_nothing_around(claim: str, evidence: str, wrong: str) -> None:
    assert contradictions(claim, evidence) == []
    assert [clash.kind for clash in contradictions(wrong, evidence)] == [ClashKind.NEGATION]
