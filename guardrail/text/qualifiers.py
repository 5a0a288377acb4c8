"""Words around a value: "about", "exactly", "at least"; and which language a text is in."""

from __future__ import annotations

import re
from typing import NamedTuple

from guardrail.text.quantities import Bound


class Qualifier(NamedTuple):
    """What the words beside a value say about it."""

    approximate: bool = False
    exact: bool = False
    bound: Bound | None = None
    strict: bool = False


PLAIN = Qualifier()
_ABOUT = Qualifier(approximate=True)
_EXACT = Qualifier(exact=True)
_MIN, _MAX = Qualifier(bound="min"), Qualifier(bound="max")
_ABOVE, _BELOW = Qualifier(bound="min", strict=True), Qualifier(bound="max", strict=True)

_BEFORE: dict[Qualifier, str] = {
    _ABOUT: "about|around|roughly|approximately|approx|approx .|circa|ca|ca .|c .|nearly|almost|some|close to|~|≈"
    "|an estimated|estimated|in the region of|on the order of|quasi|etwa|ungefähr|rund|fast|knapp"
    "|environ|près de|aproximadamente|unos|unas|alrededor de|حوالي|نحو",
    _EXACT: "exactly|precisely|esattamente|genau|exactement|exactamente",
    _MIN: "at least|over|no less than|not less than|no fewer than|not fewer than|a minimum of|minimum"
    "|minimum of|min .|≥|> ="
    "|not under|almeno|mindestens|au moins|al menos",
    _MAX: "at most|up to|no more than|not more than|not exceeding|not exceed|a maximum of|maximum|maximum of|max|max ."
    "|≤|< =|within|no later than|as much as|as many as|al massimo|fino a|höchstens|bis zu|maximal|au plus|jusqu'à"
    "|como máximo|hasta|entro",
    _ABOVE: "more than|above|greater than|in excess of|exceeding|exceeds|exceeded|exceed|upwards of|>|larger than"
    "|higher than|longer than|older than|just over|well over|slightly over|più di|oltre|mehr als|über|plus de|más de"
    "|أكثر من",
    _BELOW: "less than|under|below|fewer than|smaller than|lower than|shorter than|younger than|<|just under"
    "|slightly under|well under|meno di|sotto|weniger als|unter|moins de|menos de|أقل من",
}
_AFTER: dict[Qualifier, str] = {
    _ABOUT: "or so|approximately|roughly|circa",
    _EXACT: "exactly|sharp",
    _MIN: "or more|and more|or over|and over|or above|and above|or older|and older|or longer|or higher|minimum"
    "|o più|oder mehr|ou plus",
    _MAX: "or less|or fewer|or under|and under|or below|and below|or lower|or younger|at most|maximum|o meno"
    "|oder weniger|ou moins",
}


def _by_phrase(table: dict[Qualifier, str]) -> dict[str, Qualifier]:
    return {phrase: qualifier for qualifier, phrases in table.items() for phrase in phrases.split("|")}


QUALIFIERS_BEFORE = _by_phrase(_BEFORE)
QUALIFIERS_AFTER = _by_phrase(_AFTER)
NEGATIONS = frozenset(("not", "cannot", "never", "n't", "non", "nicht", "pas"))
QUALIFIER_ENDS = frozenset(phrase.split()[-1] for phrase in QUALIFIERS_BEFORE)
QUALIFIER_STARTS = frozenset(phrase.split()[0] for phrase in QUALIFIERS_AFTER)
# Chinese has no spaces: the words stand directly before the numeral.
QUALIFIERS_CJK: dict[str, Qualifier] = {
    "大约": _ABOUT, "约": _ABOUT, "正好": _EXACT, "至少": _MIN, "最多": _MAX, "超过": _ABOVE, "不到": _BELOW
}  # fmt: skip


def denied(qualifier: Qualifier) -> Qualifier:
    """The opposite bound: "cannot exceed" is "at most"."""
    if qualifier.bound is None:
        return qualifier
    return Qualifier(bound="max" if qualifier.bound == "min" else "min", strict=not qualifier.strict)


_FUNCTION_WORDS = {
    "en": "the of and is are was were in to for with on at by from has have it that this be or an as not must may",
    "it": "il la lo gli di del della dei delle è non che per con una sono nel nella alle dalle dal dalla si ha ed ogni",
    "de": "der die das und ist nicht ein eine einen den dem im am mit von für auf wurde sie bei zum zur oder sind hat",
    "fr": "la le les des du est et une un dans pour pas avec au aux sur qui sont à chaque ou il elle",
    "es": "la el los las y es en una por que se del para con son cada su al",
}
_LANGUAGES_OF: dict[str, list[str]] = {}
for _code, _words in _FUNCTION_WORDS.items():
    for _word in _words.split():
        _LANGUAGES_OF.setdefault(_word, []).append(_code)
_WORD = re.compile(r"[^\W\d_]+")
_ARABIC = re.compile("[\u0620-\u06d3]")
_ENOUGH_CHARS = 2000


def guess_language(low: str) -> str:
    """Guess the language of a text from its function words.

    Args:
        low: Lower-case text.

    Returns:
        An ISO 639-1 code; ``""`` if the text has no function words, or English ties with another language.

    Example:
        >>> guess_language("la rete conta 23.940 abbonati nel comune"), guess_language("| 23.940 |")
        ('it', '')
    """
    votes: dict[str, int] = {}
    for word in _WORD.findall(low[:_ENOUGH_CHARS]):
        for code in _LANGUAGES_OF.get(word, ()):
            votes[code] = votes.get(code, 0) + 1
    if not votes:
        return "ar" if _ARABIC.search(low[:_ENOUGH_CHARS]) else ""
    best = max(votes.values())
    leading = [code for code, count in votes.items() if count == best]
    return "" if "en" in leading and len(leading) > 1 else leading[0]
