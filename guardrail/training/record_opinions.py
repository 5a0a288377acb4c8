"""Sentences about the reviews of an invented business, faithful or with one error between « and »."""

from __future__ import annotations

import random
from itertools import combinations

from guardrail.training import record_vocabulary as words
from guardrail.training.pairs import NOT_ENTAILMENT
from guardrail.training.record_business import Business, Point, Review
from guardrail.training.record_claims import Claim, listed

_ONE = ("One reviewer", "A customer", "One customer", "One review", "A reviewer")
_SAY = ("mentioned that", "noted that", "said that", "stated that", "reported that", "wrote that")
_MANY = (
    "Many customers",
    "All of the reviewers",
    "Most customers",
    "Several reviewers",
    "All customers",
    "Many reviewers",
)
_SAYING = ("saying that", "stating that", "noting that", "mentioning that")
_MORE = ("and praised", "and also mentioned", "and spoke highly of")
_NUMBERS = ("zero", "one", "two", "three", "four", "five")


def _norm(text: str) -> str:
    return text.lower()


def _told(b: Business) -> list[tuple[int, Point]]:
    return [(i, p) for i, r in enumerate(b.reviews) for p in r.points]


def _disputed(b: Business, point: Point) -> bool:
    """Whether any review says the opposite of a point, or speaks of the same thing again."""
    return sum(p.aspect == point.aspect for _, p in _told(b)) > 1


def _unheard(b: Business, rng: random.Random) -> str:
    """Something that no review speaks of."""
    text = " ".join(r.text for r in b.reviews)
    return rng.choice([thing for thing in words.INVENTED_IN_REVIEWS if thing not in text])


def said_by_one(b: Business, rng: random.Random, bad: bool) -> Claim | None:
    """One to three things that one reviewer says."""
    told = [r for r in b.reviews if r.points]
    if not told:
        return None
    review = rng.choice(told)
    points = rng.sample(review.points, min(len(review.points), rng.choice([1, 1, 2, 3])))
    at = rng.randrange(len(points)) if bad else -1
    if bad and _disputed(b, points[at]):
        return None
    if bad and rng.random() < 0.35:
        if len(b.reviews) == 1 or any(_disputed(b, p) for p in points):
            return None
        text = f"«{rng.choice(_MANY)}» {rng.choice(_SAY)} {listed([p.summary for p in points])}"
        needs = tuple(p.sentence for p in points)
        return Claim(text=text, needs=needs, wrong=NOT_ENTAILMENT, whole=True)
    needs = tuple(_norm(p.sentence) for p in points)
    if bad and rng.random() < 0.25:
        more = f"{listed([p.summary for p in points])}, {rng.choice(_MORE)} «{_unheard(b, rng)}»"
        return Claim(text=f"{rng.choice(_ONE)} {rng.choice(_SAY)} {more}", needs=needs, wrong="neutral", whole=True)
    starred = rng.random() < 0.2
    wrong_stars = bad and starred and rng.random() < 0.5
    parts = [p.error if i == at and not wrong_stars else p.summary for i, p in enumerate(points)]
    who = rng.choice(_ONE)
    if starred:
        needs += (f"{review.key} review stars {review.stars}",)
        who = _starred(review, rng, wrong_stars)
    first = points[0]
    if not starred and first.aspect in words.ASPECTS and rng.random() < 0.3:
        verb = rng.choice(("praised", "complimented") if first.praise else ("criticized", "complained about"))
        said = f"{verb} {_named(rng, first.aspect, first.praise)}, {rng.choice(_SAYING)} {listed(parts)}"
    else:
        said = f"{rng.choice(_SAY)} {listed(parts)}"
    return Claim(text=f"{who} {said}", needs=needs, wrong="contradiction" if bad else "", whole=True)


def _starred(review: Review, rng: random.Random, bad: bool) -> str:
    """A reviewer, by the stars that they gave."""
    value = int(review.stars)
    number = f"«{rng.choice([n for n in range(1, 6) if n != value])}»" if bad else str(value)
    return rng.choice(
        [
            f"One reviewer, who gave {number} out of 5 stars,",
            f"A {number}-star reviewer",
            f"In a {number}-star review, a customer",
        ]
    )


def two_voices(b: Business, rng: random.Random, bad: bool) -> Claim | None:
    """What two reviewers say, one after the other."""
    pairs = [(p, q) for (i, p), (j, q) in combinations(_told(b), 2) if i != j]
    if not pairs:
        return None
    first, second = rng.choice(pairs)
    if bad and _disputed(b, second):
        return None
    text = rng.choice(
        [
            "While one reviewer {say} {a}, another {say2} {b}",
            "One customer {say} {a}, while another {say2} {b}",
            "One review {say} {a}, and another {say2} {b}",
        ]
    )
    said = text.format(
        say=rng.choice(_SAY), say2=rng.choice(_SAY), a=first.summary, b=second.error if bad else second.summary
    )
    return Claim(
        text=said,
        needs=(_norm(first.sentence), _norm(second.sentence)),
        wrong="contradiction" if bad else "",
        whole=True,
    )


def _held(b: Business) -> dict[tuple[str, bool], dict[int, Point]]:
    """Who holds which opinion on which aspect."""
    found: dict[tuple[str, bool], dict[int, Point]] = {}
    for i, point in _told(b):
        if point.aspect in words.ASPECTS:
            found.setdefault((point.aspect, point.praise), {})[i] = point
    return found


def _named(rng: random.Random, aspect: str, praise: bool) -> str:
    return rng.choice(words.ASPECTS[aspect][0 if praise else 1])


def praised(b: Business, rng: random.Random, bad: bool) -> Claim | None:
    """What customers praise or complain about."""
    held = _held(b)
    if not held:
        return None
    key = rng.choice(list(held))
    aspect, praise = key
    who = held[key]
    needs = tuple(_norm(p.sentence) for p in who.values())
    name = _named(rng, aspect, praise)
    verbs = ("praised", "complimented", "appreciated") if praise else ("complained about", "criticized")
    verb = rng.choice(verbs)
    wrong = ""
    many = len(who) > 1
    subject = rng.choice(["Some customers", "Several reviewers", "Customers", "Reviewers"] if many else _ONE)
    if many and len(who) == len(b.reviews) and rng.random() < 0.7:
        subject = rng.choice(["All of the reviewers", "All customers", "Many customers", "Most reviewers"])
    elif len(who) == 2:
        subject = rng.choice(["Two reviewers", "Two customers", "Customers", "Reviewers", "Most of the reviewers"])
    if many and not subject.startswith("Two") and rng.random() < 0.4:
        verb = f"consistently {verb}"
    if bad:
        kind = rng.choice(["inverted", "general", "general", "general", "invented", "elsewhere"])
        others = [a for a in words.ASPECTS if not any((a, p) in held for p in (True, False))]
        if kind == "general" and not many and len(b.reviews) > 1:
            subject, wrong = f"«{rng.choice(_MANY)}»", NOT_ENTAILMENT
            verb = f"consistently {verb}" if rng.random() < 0.3 else verb
        elif kind == "invented" and praise:
            name, wrong = f"{name} and «{_unheard(b, rng)}»", "neutral"
        elif kind == "elsewhere" and others:
            name, wrong = f"{name} and «{_named(rng, rng.choice(others), praise)}»", "neutral"
        elif (aspect, not praise) not in held and not many:
            verb = rng.choice(("praised", "complimented") if not praise else ("complained about", "criticized"))
            name, wrong = rng.choice(words.ASPECTS[aspect][0])[4:], "contradiction"
            if aspect in ("wait", "price"):
                return None
            return Claim(text=f"{subject} «{verb}» the {name}", needs=needs, wrong=wrong, whole=True)
        else:
            return None
    perfect = "have " if "One" not in subject and "A " not in subject and rng.random() < 0.4 else ""
    return Claim(text=f"{subject} {perfect}{verb} {name}", needs=needs, wrong=wrong, whole=True)


def chorus(b: Business, rng: random.Random, bad: bool) -> Claim | None:
    """What several customers together praise or complain about, one thing each."""
    held = _held(b)
    praise = rng.random() < 0.6
    sides = [(a, i, p) for (a, good), who in held.items() if good is praise for i, p in who.items()]
    pairs = [(x, y) for x, y in combinations(sides, 2) if x[0] != y[0] and x[1] != y[1]]
    if not pairs:
        return None
    items, wrong = list(rng.choice(pairs)), ""
    names = [_named(rng, a, praise) for a, _, _ in items]
    needs = tuple(_norm(p.sentence) for _, _, p in items)
    if bad:
        unsaid = [a for a in words.ASPECTS if not any((a, p) in held for p in (True, False))]
        opposed = [(a, who) for (a, good), who in held.items() if good is not praise and (a, praise) not in held]
        if opposed and rng.random() < 0.5:
            aspect, who = rng.choice(opposed)
            needs += tuple(_norm(p.sentence) for p in who.values())
            added, wrong = words.ASPECTS[aspect][0 if praise else 1][0], "contradiction"
        elif unsaid:
            added, wrong = _named(rng, rng.choice(unsaid), praise), "neutral"
        else:
            return None
        names.insert(rng.randint(0, len(names)), f"«{added}»")
    said = listed(names)
    praising = (
        "Customers have praised {}",
        "Reviewers appreciate {}",
        "Customers speak well of {}",
        "The reviews praise {}",
        "Reviewers highlight {} in a positive way",
    )
    blaming = (
        "Customers have complained about {}",
        "Reviewers criticize {}",
        "The reviews mention problems with {}",
        "Customers were dissatisfied with {}",
    )
    return Claim(text=rng.choice(praising if praise else blaming).format(said), needs=needs, wrong=wrong, whole=True)


def mixed(b: Business, rng: random.Random, bad: bool) -> Claim | None:
    """Reviews that differ."""
    held = _held(b)
    good = [(k[0], i, p) for k, who in held.items() if k[1] for i, p in who.items()]
    poor = [(k[0], i, p) for k, who in held.items() if not k[1] for i, p in who.items()]
    pairs = [(g, h) for g in good for h in poor if g[1] != h[1]]
    if not pairs:
        return None
    (a1, _, p1), (a2, _, p2) = rng.choice(pairs)
    needs = (_norm(p1.sentence), _norm(p2.sentence))
    one, other = _named(rng, a1, True), _named(rng, a2, False)
    if bad:
        unsaid = [a for a in words.ASPECTS if not any((a, p) in held for p in (True, False))]
        roll = rng.random()
        if roll < 0.4:
            lead = rng.choice(["overwhelmingly positive", "all positive", "all negative", "entirely negative"])
            text = f"The reviews are «{lead}»"
            return Claim(text=text, needs=needs, wrong="contradiction", whole=True)
        if not unsaid:
            return None
        aspect = rng.choice(unsaid)
        if roll < 0.7:
            one = f"«{_named(rng, aspect, True)}»"
        else:
            other = f"«{_named(rng, aspect, False)}»"
    text = rng.choice(
        [
            f"The reviews are mixed, with one customer praising {one} and another complaining about {other}",
            f"Customer reviews are mixed: one reviewer praised {one}, while another criticized {other}",
            f"While one reviewer praised {one}, another complained about {other}",
            f"Reviews vary, with some praise for {one} and some criticism of {other}",
        ]
    )
    return Claim(text=text, needs=needs, wrong="neutral" if bad else "", whole=True)


def dish(b: Business, rng: random.Random, bad: bool) -> Claim | None:
    """A dish that a review speaks well of."""
    liked = [p for _, p in _told(b) if p.dish and p.praise and "husband" not in p.sentence]
    if not liked:
        return None
    point = rng.choice(liked)
    said = f"the {point.dish}"
    if bad:
        text = str(b.record).lower()
        pool = [d for c, line in words.DISHES.items() if c != b.cuisine for d in line.split(",") if d not in text]
        other = rng.choice(pool)
        said = f"the «{other}»" if rng.random() < 0.5 else f"the {point.dish} and the «{other}»"
    text = rng.choice(
        [
            f"{rng.choice(_ONE)} enjoyed {said}",
            f"{rng.choice(_ONE)} spoke highly of {said}",
            f"One of the reviews praises {said}",
            f"{said} received praise from a reviewer",
        ]
    )
    return Claim(text=text, needs=(_norm(point.sentence),), wrong="neutral" if bad else "", whole=True)


def stars(b: Business, rng: random.Random, bad: bool) -> Claim | None:
    """How many stars reviewers gave."""
    given = [int(r.stars) for r in b.reviews]
    needs = tuple(f"{r.key} review stars {r.stars}" for r in b.reviews)
    low, high = min(given), max(given)
    if len(given) > 1 and low == high and rng.random() < 0.7:
        wrong = rng.choice([n for n in range(1, 6) if n != low])
        number = f"«{_NUMBERS[wrong]}»" if bad else _NUMBERS[low]
        lead = f"All {_NUMBERS[len(given)]} reviewers gave it"
        text = f"{lead} {number} star{'s' if number != 'one' else ''}"
        return Claim(text=text, needs=needs, wrong="contradiction" if bad else "", whole=True)
    if len(given) > 1 and low != high and rng.random() < 0.6:
        ends = [str(low), str(high)]
        if bad:
            at = rng.randrange(2)
            free = [n for n in range(1, 6) if (n != low and n < high if at == 0 else n != high and n > low)]
            if not free:
                return None
            ends[at] = f"«{rng.choice(free)}»"
        text = rng.choice(["The reviews range from {} to {} stars", "Review ratings range from {} to {} stars"])
        return Claim(text=text.format(*ends), needs=needs, wrong="contradiction" if bad else "", whole=True)
    review: Review = rng.choice(b.reviews)
    value = int(review.stars)
    if bad:
        free = [n for n in range(1, 6) if n not in given]
        if not free:
            return None
        value = rng.choice(free)
    number = f"«{value}»" if bad else str(value)
    date = review.key.split()[0]
    text = rng.choice(
        [
            f"{rng.choice(_ONE)} gave it {number} {'star' if value == 1 else 'stars'}",
            f"The review from {date} gives {number} out of 5 stars",
            f"One of the reviews has a rating of {number} out of 5",
        ]
    )
    own = f"{review.key} review stars {review.stars}"
    needs = needs if bad else (own,)
    return Claim(text=text, needs=needs, wrong="contradiction" if bad else "", whole=True)


def tone(b: Business, rng: random.Random, bad: bool) -> Claim | None:
    """Whether the reviews are good on the whole; only where they agree."""
    points = _told(b)
    if len(b.reviews) < 2 or any(not r.points for r in b.reviews) or len({p.praise for _, p in points}) != 1:
        return None
    praise = points[0][1].praise
    if any((r.stars >= 4) is not praise for r in b.reviews):
        return None
    said = rng.choice(["", "", "all ", "overwhelmingly "]) + ("positive" if praise is not bad else "negative")
    said = f"«{said}»" if bad else said
    text = rng.choice(
        [
            f"The reviews are {said}",
            f"The customer reviews are {said}",
            f"Reviews for this business are {said}",
            f"The feedback from customers is {said}",
        ]
    )
    needs = tuple(f"review stars {r.stars}" for r in b.reviews)
    return Claim(text=text, needs=needs, wrong="contradiction" if bad else "", whole=True)


def quote(b: Business, rng: random.Random, bad: bool) -> Claim | None:
    """Words of a reviewer, in quotation marks."""
    own = [(r, q) for r in b.reviews for q in (*r.quotes, *(p.sentence for p in r.points))]
    if not own:
        return None
    _, said = rng.choice(own)
    needs = (_norm(said).rstrip("."),)
    body = said.rstrip(".!?")
    if bad:
        dishes = words.DISHES.get(b.cuisine, "haircut").split(",")
        mood = rng.random() < 0.5
        pool = [p[1] for a, points in words.POINTS.items() if a != "food" for p in points if p[0] is mood]
        body = rng.choice([*pool, f"I still dream about the {rng.choice(dishes)}."]).rstrip(".!?")
        if body.lower() in str(b.record).lower():
            return None
        body = f"«{body}»"
    text = rng.choice(
        [f'One reviewer wrote, "{body}"', f'In one review, a customer says: "{body}"', f'One review reads: "{body}"']
    )
    return Claim(text=text, needs=needs, wrong="neutral" if bad else "", whole=True)
