"""Numbers, dates and amounts: other notations of the same value, and other values."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from guardrail.text.dates import MONTHS
from guardrail.text.quantities import Value, ValueKind, compatible
from guardrail.text.values import parse_values
from guardrail.training.perturb.draft import Draft, outside

_WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty"
).split()
_TENS = dict(enumerate("thirty forty fifty sixty seventy eighty ninety".split(), start=3))
_BARE = re.compile(
    r"(?<![\w.,$€£/:#’'–-])(?:(?<!no )(?<!No )(?<!No\. ))(\d{1,3}(?:,\d{3})+|\d{1,2})(?![\w%/:’'–-]"
    r"|[.,]\d| ?%| percent| degrees| [ap]\.?m\b| (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec))"
)
_AFTER_MONTH = re.compile(
    r"(?:"
    + "|".join(m.capitalize() for m in MONTHS if len(m) > 2)
    + r")\.? $|\b(?:Week|Route|Chapter|Section|Windows|Article|Act|Part|World War|Game|No\.?|Highway"
    r"|Interstate|Type|Level|Step) $"
)
_HALF = re.compile(r"\b50 ?(?:%|percent|per cent) of\b")
_PERCENT = re.compile(r"(?<=\d)(%| percent\b| per cent\b)")
_DIGITS = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
_UNITS = (
    "miles=kilometers kilometers=miles feet=meters meters=feet inches=centimeters pounds=kilograms kilograms=pounds "
    "minutes=hours hours=minutes days=weeks weeks=months months=years years=months seconds=minutes million=billion "
    "billion=million thousand=million yards=feet cups=tablespoons tablespoons=teaspoons teaspoons=tablespoons "
    "Fahrenheit=Celsius grams=ounces ounces=grams degrees=percent percent=degrees hundred=thousand acres=hectares"
)
_UNIT = dict(pair.split("=") for pair in _UNITS.split())
_UNIT_WORD = re.compile(r"(?<=\d )(" + "|".join(_UNIT) + r")\b")
_MONTH = re.compile(
    r"\b(January|February|March|April|June|July|August|September|October|November|December"
    r"|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day)\b"
)
_MONTH_NAMES = "January February March April June July August September October November December".split()
_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()


def in_words(number: int) -> str | None:
    """A small number in words; ``None`` above 99.

    Example:
        >>> in_words(12), in_words(45), in_words(100)
        ('twelve', 'forty-five', None)
    """
    if 0 < number <= 20:
        return _WORDS[number]
    if 20 < number < 100:
        tens = "twenty" if number < 30 else _TENS[number // 10]
        return tens + (f"-{_WORDS[number % 10]}" if number % 10 else "")
    return None


def reword_values(draft: Draft, rng: random.Random) -> bool:
    """Write a number another way: 12 as twelve, 1,000,000 as 1 million, 50 % of as half of.

    Args:
        draft: A sentence without errors; changed in place.
        rng: Decides which of the possible changes is made.

    Returns:
        Whether something changed.

    Example:
        >>> draft = Draft("It took 12 men and 4,500,000 bricks.")
        >>> [reword_values(draft, random.Random(seed)) for seed in (1, 2, 3)][-1]
        False
        >>> draft.text
        'It took twelve men and 4.5 million bricks.'
    """
    options: list[tuple[int, int, str]] = [(m.start(), m.end(), "half of") for m in _HALF.finditer(draft.text)]
    for match in _BARE.finditer(draft.text):
        if _AFTER_MONTH.search(draft.text, 0, match.start()):
            continue
        number = int(match[1].replace(",", ""))
        if "," in match[1]:
            if number >= 1_000_000 and number % 100_000 == 0:
                options.append((*match.span(1), f"{number / 1_000_000:g} million"))
        elif match.start() and (word := in_words(number)):
            options.append((*match.span(1), word))
    options.extend((m.start(), m.end(), " percent" if m[1] == "%" else "%") for m in _PERCENT.finditer(draft.text))
    return bool(options) and draft.replace(*rng.choice(options))


def wrong_value(draft: Draft, rng: random.Random, others: Sequence[Value]) -> bool:
    """Exchange one value for one that the document has elsewhere, or for a near one.

    Args:
        draft: The sentence; changed in place.
        rng: Decides which value, and for what.
        others: Values of the same document.

    Returns:
        Whether a value was found and exchanged.

    Example:
        >>> draft = Draft("It cost 40 euros.")
        >>> wrong_value(draft, random.Random(1), ()), draft.text[:8], draft.text == "It cost 40 euros."
        (True, 'It cost ', False)
    """
    if rng.random() < 0.15 and (units := list(outside(draft, _UNIT_WORD))):
        chosen = rng.choice(units)
        return draft.replace(*chosen.span(), _UNIT[chosen[0]], wrong=True)
    own = [v for v in parse_values(draft.text) if not v.kind.is_identifier]
    own = [v for v in own if not any(a < v.end and v.start < b for a, b in draft.spans)]
    if not own:
        return False
    value = rng.choice(own)
    if rng.random() < 0.6:
        written = shape(value)
        fitting = sorted(
            {
                o.text
                for o in others
                if o.kind is value.kind
                and o.unit == value.unit
                and shape(o) == written
                and not any(compatible(o, v) for v in own)
            }
        )
        if fitting:
            return draft.replace(value.start, value.end, rng.choice(fitting), wrong=True)
    return _near(draft, rng, value)


def shape(value: Value) -> str:
    """How a value is written, with its figures masked: only values of one shape fit the same place.

    Example:
        >>> [shape(v) for v in parse_values("It took 12 days in 1932.")]
        ['N days', 'NNNN']
    """
    text = value.text
    year = re.fullmatch(r"\d{4}", text)
    masked = "NNNN" if year else _DIGITS.sub("N", text)
    for name in (*_MONTH_NAMES, "May"):
        masked = masked.replace(name, "M")
    return "D" if masked.rstrip("s") in _DAYS else "W" if masked.isalpha() and masked.islower() else masked


def _near(draft: Draft, rng: random.Random, value: Value) -> bool:
    text = value.text
    if name := _MONTH.search(text):
        pool = _DAYS if name[1] in _DAYS else _MONTH_NAMES
        new = rng.choice([other for other in pool if other != name[1]])
        return draft.replace(value.start + name.start(), value.start + name.end(), new, wrong=True)
    digits = list(_DIGITS.finditer(text))
    if not digits:
        return _near_word(draft, rng, value)
    chosen = rng.choice(digits)
    new = other_number(chosen[0], rng, is_date=value.kind in (ValueKind.DATE, ValueKind.TIME))
    return draft.replace(value.start + chosen.start(), value.start + chosen.end(), new, wrong=True)


def _near_word(draft: Draft, rng: random.Random, value: Value) -> bool:
    first = re.match(r"[A-Za-z]+", value.text)
    if not first or first[0].lower() not in _WORDS[2:]:
        return False
    at = _WORDS.index(first[0].lower())
    new = _WORDS[rng.choice([n for n in (at - 2, at - 1, at + 1, at + 2, at + 4, at * 2) if 2 <= n <= 20 and n != at])]
    new = new.capitalize() if first[0][0].isupper() else new
    return draft.replace(value.start, value.start + len(first[0]), new, wrong=True)


def other_number(written: str, rng: random.Random, *, is_date: bool = False) -> str:
    """A number near enough to be believed, in the same notation.

    Example:
        >>> other_number("1,932", random.Random(1)) != "1,932"
        True
    """
    number = float(written.replace(",", ""))
    places = len(written.partition(".")[2])
    if is_date and number > 1000:
        new = number + rng.choice((-21, -12, -10, -5, -3, -2, -1, 1, 2, 3, 4, 7, 10))
    elif is_date:
        new = rng.choice([n for n in range(1, 13 if number <= 12 else 29) if n != number])
    elif number < 10 and not places:
        new = rng.choice(
            [n for n in (number - 2, number - 1, number + 1, number + 2, number + 3, number * 10) if n > 0]
        )
    else:
        new = number * rng.choice((0.1, 0.25, 0.5, 0.7, 0.8, 0.9, 1.1, 1.2, 1.25, 1.5, 2, 3, 10))
        new = round(new, places) if abs(round(new, places) - number) >= 10**-places else number + 10**-places
    return f"{new:,.{places}f}" if "," in written else f"{new:.{places}f}"
