"""Invented local businesses in the shape of open review data, with what is known about their reviews."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from guardrail.training import record_vocabulary as words

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One thing that a review says: its sentence, a summary of it, and a summary with an error in «…»."""

    aspect: str
    praise: bool
    sentence: str
    summary: str
    error: str
    dish: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """A review with the points that it makes; ``key`` is how its rating is read out."""

    stars: float
    key: str
    text: str
    points: tuple[Point, ...] = ()
    quotes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Business:
    """A record and what its reviews say."""

    record: dict[str, Any] = field(repr=False)
    cuisine: str
    noun: str
    reviews: tuple[Review, ...]


def invent_business(rng: random.Random, prose: Sequence[str]) -> Business:
    """Invent a business.

    Args:
        rng: Source of chance.
        prose: First-person texts, of which some stand in for a review.

    Returns:
        The business; its record has a varying set of fields.
    """
    is_food = rng.random() < 0.88
    cuisine = rng.choice(list(words.DISHES if is_food else words.OTHER_TRADES))
    noun = "restaurant" if is_food else words.OTHER_TRADES[cuisine]
    if cuisine == "Coffee & Tea":
        noun = "café"
    dishes = words.DISHES[cuisine].split(",") if is_food else []
    shared = (rng.choice(["service", "price", "ambience", "food" if is_food else "wait"]), rng.random() < 0.65)
    agreed = shared if rng.random() < 0.35 else None  # something that several reviews say, so that "most" can be true
    reviews = tuple(_review(rng, dishes, prose, agreed) for _ in range(3 if rng.random() < 0.85 else rng.randint(1, 2)))
    city, state = rng.choice(words.CITIES)
    record: dict[str, Any] = {
        "name": _name(rng, cuisine, noun),
        "address": f"{rng.randint(2, 7200)} {rng.choice(words.STREETS)}",
        "city": city,
        "state": state,
        "categories": ", ".join(_categories(rng, cuisine, is_food)),
        "hours": _hours(rng) if rng.random() < 0.93 else None,
        "attributes": _attributes(rng, is_food),
        "business_stars": rng.choice([2.0, 2.5, 3.0, 3.5, 3.5, 4.0, 4.0, 4.5, 4.5, 5.0]),
        "review_info": [{"review_stars": r.stars, "review_date": r.key, "review_text": r.text} for r in reviews],
    }
    for optional in ("address", "hours", "business_stars"):
        if rng.random() < 0.04:
            del record[optional]
    return Business(record=record, cuisine=cuisine, noun=noun, reviews=reviews)


def _name(rng: random.Random, cuisine: str, noun: str) -> str:
    first = rng.choice(words.FIRST_NAMES)
    if noun == "restaurant":
        last = rng.choice([f"{cuisine.split()[0]} Kitchen", "Grill", "Cafe", "Bistro", "House", "Eatery", "Table"])
    else:
        last = {"café": "Coffee"}.get(noun, noun.title())
    return f"{first}'s {last}" if rng.random() < 0.3 else f"{first} {last}"


def _categories(rng: random.Random, cuisine: str, is_food: bool) -> list[str]:
    if not is_food:
        return [cuisine, *rng.sample(["Shopping", "Local Services", "Home & Garden"], rng.randint(1, 2))]
    found = [cuisine, "Restaurants", *rng.sample(words.SIDE_CATEGORIES, rng.randint(0, 3))]
    rng.shuffle(found)
    return found


def _hours(rng: random.Random) -> dict[str, str | None]:
    def span() -> str:
        start = rng.choice([6, 7, 8, 9, 10, 11, 11, 12, 16, 17])
        end = rng.choice([hour for hour in (14, 15, 18, 20, 21, 21, 22, 22, 23) if hour > start + 3])
        return f"{start}:{rng.choice([0, 0, 30])}-{end}:{rng.choice([0, 0, 0, 30])}"

    base, late, weekend = span(), span(), span()
    style = rng.randrange(4)
    plan = {
        0: [base] * 7,
        1: [base] * 5 + [weekend] * 2,
        2: [base] * 4 + [late] * 2 + [weekend],
        3: [base] * 3 + [late] * 2 + [weekend] * 2,
    }[style]
    hours: dict[str, str | None] = dict(zip(DAYS, plan, strict=True))
    if rng.random() < 0.3:
        hours[rng.choice(["Monday", "Tuesday", "Sunday"])] = None if rng.random() < 0.6 else "Closed"
    if rng.random() < 0.2:
        del hours[rng.choice(DAYS)]
    return hours


def _flags(rng: random.Random, keys: Sequence[str], yes: float) -> dict[str, bool | None]:
    missing = rng.choice([0.0, 0.0, 0.15, 0.35])
    return {key: None if rng.random() < missing else rng.random() < yes for key in keys}


def _attributes(rng: random.Random, is_food: bool) -> dict[str, Any]:
    common = list(words.ATTRIBUTES)[:5]
    more = rng.sample(list(words.ATTRIBUTES)[5:], rng.choice([0, 0, 1, 2, 4]))
    found: dict[str, Any] = {}
    if rng.random() < 0.92:
        found["BusinessParking"] = _flags(rng, list(words.PARKING), 0.35) if rng.random() < 0.93 else None
    for key in common + more if is_food else more + common[2:3]:
        value: Any = None if rng.random() < 0.22 else rng.random() < 0.6
        if key == "WiFi" and value is not None:
            value = "free" if value else "no"
        if rng.random() < 0.93:
            found[key] = value
    if is_food:
        found["Music"] = None if rng.random() < 0.5 else _flags(rng, list(words.MUSIC), 0.3)
        if rng.random() < 0.25:
            found["Amenities"] = rng.sample(words.INVENTED, rng.randint(1, 4))
        found["Ambience"] = None if rng.random() < 0.1 else _flags(rng, words.AMBIENCES, 0.2)
    return found


def _review(rng: random.Random, dishes: Sequence[str], prose: Sequence[str], agreed: tuple[str, bool] | None) -> Review:
    date = f"20{rng.randint(12, 22)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
    key = f"{date} {rng.randint(0, 23):02}:{rng.randint(0, 59):02}:{rng.randint(0, 59):02}"
    if prose and rng.random() < (0.1 if agreed else 0.3):
        text = rng.choice(prose)
        quotes = tuple(s.strip() + "." for s in text.split(". ") if 5 <= len(s.split()) <= 16)
        return Review(stars=float(rng.randint(1, 5)), key=key, text=text, quotes=quotes)
    mood = rng.choice([1.0, 1.0, 0.95, 0.5, 0.0, 0.05])
    aspects = [a for a in words.POINTS if dishes or a != "food"]
    points = [
        _point(rng, aspect, rng.random() < mood, dishes)
        for aspect in rng.sample(aspects, rng.randint(1, min(4, len(aspects))))
    ]
    if agreed and rng.random() < 0.85:
        points = [*[p for p in points if p.aspect != agreed[0]][:3], _point(rng, *agreed, dishes)]
        rng.shuffle(points)
    if rng.random() < 0.12:
        points.append(_extra(rng))
    said = [p.sentence for p in points]
    for _ in range(rng.randint(0, 3)):
        said.insert(rng.randint(0, len(said)), rng.choice(words.FILLERS))
    if rng.random() < 0.6:
        praise, sentence, summary, error = rng.choice([c for c in words.CLOSERS if c[0] is (mood >= 0.5)])
        said.append(sentence)
        points.append(Point(aspect="return", praise=praise, sentence=sentence, summary=summary, error=error))
    share = sum(p.praise for p in points) / len(points)
    stars = float(max(1, min(5, round(1 + 4 * share + rng.choice([-0.5, 0, 0, 0.4])))))
    text = rng.choice([" ", " ", "\n\n", "  "]).join(dict.fromkeys(said))
    return Review(stars=stars, key=key, text=text, points=tuple(points))


def _extra(rng: random.Random) -> Point:
    thing = rng.choice(words.INVENTED_IN_REVIEWS)
    return Point(
        aspect="extra",
        praise=True,
        sentence=rng.choice(["We especially loved {}.", "A big plus is {}."]).format(thing),
        summary=f"they liked {thing}",
        error=f"they «complained about» {thing}",
    )


def _point(rng: random.Random, aspect: str, praise: bool, dishes: Sequence[str]) -> Point:
    _, sentence, summary, error = rng.choice([p for p in words.POINTS[aspect] if p[0] is praise])
    dish = rng.choice(dishes) if dishes else ""
    was = "were" if dish in words.PLURAL_DISHES else "was"
    return Point(
        aspect=aspect,
        praise=praise,
        sentence=sentence.format(d=dish, w=was),
        summary=summary.format(d=dish, w=was),
        error=error.format(d=dish, w=was),
        dish=dish if "{d}" in sentence else "",
    )
