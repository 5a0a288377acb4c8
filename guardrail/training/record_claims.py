"""Sentences about the facts of an invented business, faithful or with one error.

What is wrong stands between « and »; the marks are taken out when a sentence becomes a pair.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from guardrail.training import record_vocabulary as words
from guardrail.training.record_business import Business


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A verb phrase about the business, or a whole sentence.

    Attributes:
        text: The words, with « and » around what is wrong.
        needs: What the evidence must hold for the claim to be decided, in small letters and without ``": "``.
        wrong: The label of the error; empty if the claim is faithful.
        whole: Whether it is a sentence that needs no subject.
    """

    text: str
    needs: tuple[str, ...]
    wrong: str = ""
    whole: bool = False


Maker = Callable[[Business, random.Random, bool], Claim | None]

_NO_PARKING_INFO = (
    "There is no information about parking",
    "No information on parking is provided",
    "The data does not specify what parking is available",
)
_TAILS = (
    ", providing convenience for customers",
    ", giving customers several options",
    ", making it convenient for customers",
    ", catering to different preferences",
)
_OBJECT_VERBS = ("offers", "provides", "has", "accepts", "takes", "features")


def listed(items: Sequence[str], word: str = "and") -> str:
    """Items as English lists them.

    Example:
        >>> listed(["a", "b", "c"])
        'a, b, and c'
    """
    if len(items) < 3:
        return f" {word} ".join(items)
    return f"{', '.join(items[:-1])}, {word} {items[-1]}"


def article(phrase: str) -> str:
    """A phrase with "a" or "an".

    Example:
        >>> article("«Italian» restaurant")
        'an «Italian» restaurant'
    """
    return f"{'an' if phrase.lstrip('«')[0] in 'aeiouAEIOU' else 'a'} {phrase}"


def marked(phrase: str) -> str:
    """A verb phrase with marks around what it asserts."""
    verb, _, rest = phrase.partition(" ")
    return f"{verb} «{rest}»" if verb in _OBJECT_VERBS and not rest.startswith("no ") else f"«{phrase}»"


def _by_value(b: Business) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {"yes": [], "no": [], "not given": []}
    for key, value in b.record["attributes"].items():
        if key in words.ATTRIBUTES:
            found["not given" if value is None else "yes" if value in (True, "free") else "no"].append(key)
    return found


def _need(key: str, value: str) -> str:
    value = "free" if key == "WiFi" and value == "yes" else value
    return f"{words.ATTRIBUTES[key][0]} {value}"


def amenity(b: Business, rng: random.Random, bad: bool) -> Claim | None:
    """One attribute, affirmed or denied."""
    found = _by_value(b)
    value = rng.choice([v for v in found if found[v]] or [""])
    if not value or (not bad and value == "not given"):
        return None
    key = rng.choice(found[value])
    says_yes = rng.random() < 0.5 if value == "not given" else (value == "yes") is not bad
    phrase = rng.choice(words.ATTRIBUTES[key][2 if says_yes else 3])
    wrong = "" if not bad else "neutral" if value == "not given" else "contradiction"
    return Claim(text=marked(phrase) if bad else phrase, needs=(_need(key, value),), wrong=wrong)


def amenities(b: Business, rng: random.Random, bad: bool) -> Claim | None:
    """Several things that are offered, perhaps with some that are not."""
    found = {v: [k for k in keys if words.ATTRIBUTES[k][1]] for v, keys in _by_value(b).items()}
    yes = rng.sample(found["yes"], min(len(found["yes"]), rng.randint(1, 4)))
    no = rng.sample(found["no"], min(len(found["no"]), rng.randint(1, 2))) if rng.random() < 0.4 else []
    items = [(rng.choice(words.ATTRIBUTES[k][1]), _need(k, "yes")) for k in yes]
    extras = b.record["attributes"].get("Amenities", [])
    items += [(thing, thing) for thing in rng.sample(extras, rng.randint(0, min(2, len(extras))))]
    rng.shuffle(items)
    lacks = [(rng.choice(words.ATTRIBUTES[k][1]).removeprefix("free "), _need(k, "no")) for k in no]
    wrong = ""
    if bad:
        kind = rng.choice(["no", "not given", "invented", "invented", "denied"])
        spare = [k for k in found.get(kind, []) if k not in no]
        if kind == "denied" and lacks and (left := [k for k in found["yes"] if k not in yes]):
            key = rng.choice(left)
            lacks.insert(rng.randint(0, 1), (f"«{rng.choice(words.ATTRIBUTES[key][1])}»", _need(key, "yes")))
            wrong = "contradiction"
        elif spare:
            key = rng.choice(spare)
            item = (f"«{rng.choice(words.ATTRIBUTES[key][1])}»", _need(key, kind))
            items.insert(rng.randint(0, len(items)), item)
            wrong = "contradiction" if kind == "no" else "neutral"
        else:
            items.insert(
                rng.randint(0, len(items)), (f"«{rng.choice([t for t in words.INVENTED if t not in extras])}»", "")
            )
            wrong = "neutral"
    if len(items) < 2:
        return None
    said = listed([item for item, _ in items])
    lead = rng.choice(["offers", "provides", "features", "offers amenities such as", "has", "provides amenities like"])
    text = f"{lead} {said}"
    if lacks:
        text += f"{rng.choice([', but', ' but'])} does not offer {listed([item for item, _ in lacks], 'or')}"
    elif rng.random() < 0.25:
        verb = rng.choice(["are available", "are offered", "are all available"]) if len(items) > 2 else "are available"
        return Claim(text=f"{said} {verb}", needs=tuple(n for _, n in items if n), wrong=wrong, whole=True)
    elif rng.random() < 0.08:
        text += rng.choice(_TAILS)
    return Claim(text=text, needs=tuple(n for _, n in items + lacks if n), wrong=wrong)


def missing(b: Business, rng: random.Random, bad: bool) -> Claim | None:
    """What the record leaves open; wrong if it does not leave it open."""
    found = _by_value(b)
    value = rng.choice(["yes", "no"]) if bad else "not given"
    if not found[value]:
        return None
    keys = rng.sample(found[value], 1 if bad else min(len(found[value]), rng.randint(1, 3)))
    names = listed([words.MISSING_NAMES[k] for k in keys], "or")
    text = rng.choice(
        [
            "There is no information about {}",
            "No information is provided regarding {}",
            "The provided data does not mention {}",
            "There is no information available on {}",
            "The data does not specify anything about {}",
        ]
    )
    said = text.format(names)
    said = f"«{said}»" if bad else said
    return Claim(
        text=said, needs=tuple(_need(k, value) for k in keys), wrong="contradiction" if bad else "", whole=True
    )


def parking(b: Business, rng: random.Random, bad: bool) -> Claim | None:
    """Ways to park."""
    flags = b.record["attributes"].get("BusinessParking", {})
    if flags is None:
        return _parking_unknown(rng, bad)
    if not flags:
        return None
    yes, no, open_ = ([k for k, v in flags.items() if v is value] for value in (True, False, None))
    need = "business parking"
    wrong = "contradiction" if bad else ""
    if not yes and not open_ and rng.random() < 0.6:
        if bad:
            key = rng.choice(no)
            return Claim(text=f"offers «{rng.choice(words.PARKING[key])}»", needs=(need, f"{key} no"), wrong=wrong)
        text = rng.choice(["does not offer any parking", "has no parking options", "does not provide parking"])
        return Claim(text=text, needs=(need, *(f"{k} no" for k in no)))
    has = [(rng.choice(words.PARKING[k]), f"{k} yes") for k in yes]
    lacks = [(words.PARKING[k][-1], f"{k} no") for k in rng.sample(no, min(len(no), rng.randint(1, 3)))]
    if bad:
        kind = rng.choice(["no", "open", "denied"])
        rest = [k for k in no if f"{k} no" not in [n for _, n in lacks]]
        if kind == "no" and rest:
            key = rng.choice(rest)
            has.insert(rng.randint(0, len(has)), (f"«{rng.choice(words.PARKING[key])}»", f"{key} no"))
        elif kind == "open" and open_:
            key, wrong = rng.choice(open_), "neutral"
            (has if has and rng.random() < 0.5 else lacks).append((f"«{words.PARKING[key][-1]}»", f"{key} not given"))
        elif yes:
            key = has.pop(rng.randrange(len(has)))
            lacks.append((f"«{key[0]}»", key[1]))
        else:
            return None
    if (not bad or "«" in "".join(i for i, _ in has)) and has and rng.random() < 0.6:
        lacks = []
    text = f"{rng.choice(['offers', 'has', 'provides'])} {listed([i for i, _ in has])}" if has else ""
    if has and not lacks and rng.random() < 0.25:
        said = f"{listed([i for i, _ in has])} {'is' if len(has) == 1 else 'are'} available"
        return Claim(text=said, needs=(need, *(n for _, n in has)), wrong=wrong, whole=True)
    if lacks:
        text += f"{', but ' if has else ''}does not have {listed([i for i, _ in lacks], 'or')}"
    return Claim(text=text, needs=(need, *(n for _, n in has + lacks)), wrong=wrong) if text else None


def _parking_unknown(rng: random.Random, bad: bool) -> Claim:
    need = "business parking not given"
    if bad:
        ways = rng.choice(list(words.PARKING.values()))
        return Claim(text=f"offers «{rng.choice(ways)}»", needs=(need,), wrong="neutral")
    return Claim(text=rng.choice(_NO_PARKING_INFO), needs=(need,), whole=True)


def ambience(b: Business, rng: random.Random, bad: bool) -> Claim | None:
    """What the place feels like."""
    flags = b.record["attributes"].get("Ambience")
    if not flags:
        return None
    yes = [k for k, v in flags.items() if v]
    yes = rng.sample(yes, min(len(yes), 3))
    items, needs, wrong = list(yes), [f"{k} yes" for k in yes], ""
    if bad:
        key = rng.choice([k for k, v in flags.items() if not v])
        wrong = "neutral" if flags[key] is None else "contradiction"
        items.insert(rng.randint(0, len(items)), f"«{key}»")
        needs.append(f"{key} {'not given' if flags[key] is None else 'no'}")
    if not items:
        no = [k for k, v in flags.items() if v is False]
        if not no:
            return None
        key = rng.choice(no)
        return Claim(text=f"is not described as {key}", needs=("ambience", f"{key} no"))
    said = listed(items)
    place = rng.choice(["ambience", "atmosphere", "ambiance"])
    text = rng.choice(
        [
            f"has {article(f'{said} {place}')}",
            f"offers {article(f'{said} {place}')}",
            f"is described as {said}",
            f"is known for its {said} {place}",
        ]
    )
    return Claim(text=text, needs=("ambience", *needs), wrong=wrong)


def music(b: Business, rng: random.Random, bad: bool) -> Claim | None:
    """Music, if the record says anything about it."""
    if "Music" not in b.record["attributes"]:
        return None
    flags = b.record["attributes"]["Music"]
    if flags is None:
        key = rng.choice(list(words.MUSIC))
        said = rng.choice([f"features «{words.MUSIC[key]}»", "«does not offer music»", f"has «{words.MUSIC[key]}»"])
        if bad:
            return Claim(text=said, needs=("music not given",), wrong="neutral")
        text = rng.choice(["There is no information about music", "The data does not specify whether there is music"])
        return Claim(text=text, needs=("music not given",), whole=True)
    if not any(flags.values()) and None not in flags.values() and rng.random() < 0.5:
        if not bad:
            return Claim(text="does not offer music", needs=("music", *(f"{k} no" for k in flags)))
    key = rng.choice([k for k in flags if bad or flags[k] is not None] or [""])
    if not key:
        return None
    value = flags[key]
    says_yes = rng.random() < 0.7 if value is None else value is not bad
    text = f"{rng.choice(['features', 'has', 'offers']) if says_yes else 'does not have'} {words.MUSIC[key]}"
    said = {True: "yes", False: "no", None: "not given"}[value]
    wrong = "" if not bad else "neutral" if value is None else "contradiction"
    return Claim(text=marked(text) if bad else text, needs=("music", f"{key} {said}"), wrong=wrong)


def rating(b: Business, rng: random.Random, bad: bool) -> Claim | None:
    """The overall rating."""
    stars = b.record.get("business_stars")
    if stars is None:
        return None
    said = stars
    if bad:
        said = rng.choice([s / 2 for s in range(3, 11) if abs(s / 2 - stars) >= 0.5])
    number = f"{said:g}" if rng.random() < 0.6 else f"{said:.1f}"
    number = f"«{number}»" if bad else number
    text = rng.choice(
        [
            f"has a rating of {number} stars",
            f"has an overall rating of {number} stars",
            f"is rated {number} stars",
            f"has a {number}-star rating",
            f"is rated {number} out of 5 stars",
            f"holds a business rating of {number} stars",
            f"has received an overall rating of {number} out of 5",
            f"boasts {number} stars",
        ]
    )
    if rng.random() < 0.12 and (stars >= 4 or stars <= 2.5):
        good = (stars >= 4) is not bad
        level = rng.choice(["high", "strong"]) if good else rng.choice(["low", "poor"])
        text = f"has a {f'«{level}»' if bad else level} overall rating"
    return Claim(text=text, needs=(f"business stars {stars}",), wrong="contradiction" if bad else "")


def identity(b: Business, rng: random.Random, bad: bool) -> Claim | None:
    """What and where it is."""
    r = b.record
    city, state, street = r["city"], r["state"], r.get("address", "")
    kind = f"{b.cuisine} restaurant" if b.noun == "restaurant" else b.noun
    slot = rng.choice(["city", "street", "kind"]) if bad else ""
    if slot == "city":
        city = f"«{rng.choice([c for c, _ in words.CITIES if c != city])}»"
    elif slot == "street" and street:
        number, name = street.split(" ", 1)
        other = rng.choice([s for s in words.STREETS if s != name])
        street = rng.choice([f"«{rng.randint(7201, 9900)}» {name}", f"{number} «{other}»"])
    elif bad:
        slot = "kind"
        taken = r["categories"]
        kind = rng.choice([c for c in words.DISHES if c not in taken and "&" not in c])
        kind = f"«{kind}» restaurant" if b.noun == "restaurant" else f"«{kind} restaurant»"
    forms = ["is {kind} in {city}, {state}", "is {kind} located in {city}, {state}"]
    if slot != "kind":
        forms += ["is located in {city}, {state}", "can be found in {city}, {state}", "is situated in {city}"]
    if street:
        forms.append("is {kind} located at {street} in {city}, {state}")
        if slot != "kind":
            forms += ["is located at {street}, {city}, {state}", "is situated at {street} in {city}"]
        if slot == "street":
            forms = [f for f in forms if "{street}" in f]
    form = rng.choice(forms)
    plain = {"kind": b.cuisine, "city": r["city"], "state": f"state {r['state']}", "street": r.get("address", "")}
    needs = tuple(str(value).lower() for name, value in plain.items() if f"{{{name}}}" in form)
    text = form.format(kind=article(kind), city=city, state=state, street=street)
    return Claim(text=text, needs=needs, wrong="contradiction" if bad else "")


def categories(b: Business, rng: random.Random, bad: bool) -> Claim | None:
    """What it is filed under."""
    own = b.record["categories"].split(", ")
    items = rng.sample(own, min(len(own), rng.randint(2, 4)))
    needs = tuple(i.lower() for i in items)
    if bad:
        pool = [*words.SIDE_CATEGORIES, *words.DISHES]
        items.insert(rng.randint(0, len(items)), f"«{rng.choice([c for c in pool if c not in own])}»")
    said = listed(items)
    text = rng.choice(
        [
            f"falls under the categories of {said}",
            f"is categorized as {said}",
            f"is listed under {said}",
            f"belongs to the categories {said}",
        ]
    )
    if b.noun == "restaurant" and not bad and rng.random() < 0.4:
        text = rng.choice([f"serves {b.cuisine} food", f"specializes in {b.cuisine} cuisine"])
        needs = (b.cuisine.lower(),)
    return Claim(text=text, needs=needs, wrong="contradiction" if bad else "")


def conclusion(b: Business, rng: random.Random, bad: bool) -> Claim | None:
    """A closing sentence that rests on kind, place and something on offer."""
    found = _by_value(b)
    yes = [k for k in found["yes"] if words.ATTRIBUTES[k][1]]
    no = [k for k in found["no"] + found["not given"] if words.ATTRIBUTES[k][1]]
    if not (no if bad else yes) or b.noun != "restaurant" or b.record.get("business_stars", 0) < 3.5:
        return None
    key = rng.choice(no if bad else yes)
    thing = rng.choice(words.ATTRIBUTES[key][1])
    thing = f"«{thing}»" if bad else thing
    value = "yes" if not bad else "no" if key in found["no"] else "not given"
    place = f"in {b.record['city']}"
    text = rng.choice(
        [
            f"is a {rng.choice(['good', 'solid', 'great'])} choice for those looking for {b.cuisine} food {place}"
            f" with {thing}",
            f"is a good option for anyone who wants {b.cuisine} cuisine and {thing} {place}",
            f"seems like a good place for {b.cuisine} food and {thing}",
        ]
    )
    needs = (_need(key, value), b.cuisine.lower())
    return Claim(text=text, needs=needs, wrong="" if not bad else "contradiction" if value == "no" else "neutral")
