"""The words that keys of records and claims about them are compared by."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from guardrail.scoring.json_units import label_of
from guardrail.text.identifiers import same_length_fold, same_length_lower


class Token(NamedTuple):
    """A word or a mark of a claim, as it is compared."""

    word: str
    start: int
    end: int


_TOKEN = re.compile(r"\d+(?:[.:]\d+)*|[^\W\d_]+(?:'[a-z]+)?|[,;:.!?()/&—–]|(?<=\s)-(?=\s)")

_PLURALS = {
    "children": "kid", "child": "kid", "kids": "kid", "family": "kid", "families": "kid", "people": "person",
    "is": "is", "has": "has", "does": "does", "was": "was", "this": "this", "its": "its", "always": "always",
    "television": "tv", "televisions": "tv", "tvs": "tv", "bicycle": "bike", "bicycles": "bike", "bikes": "bike",
    "elevator": "lift", "elevators": "lift", "atmosphere": "ambience", "ambiance": "ambience", "vibe": "ambience",
    "wlan": "wifi", "alcoholic": "alcohol", "carryout": "takeout", "takeaway": "takeout", "takeaways": "takeout",
    "catering": "cater", "pools": "pool", "gymnasium": "gym", "conditioned": "conditioning", "outdoors": "outdoor",
    "outside": "outdoor", "deliver": "delivery", "delivers": "delivery", "smokers": "smoker", "plus": "and",
}  # fmt: skip
# Wordings of the same thing; the longest is taken first.
_PHRASES: dict[tuple[str, ...], tuple[str, ...]] = {
    ("wi", "fi"): ("wifi",),
    ("wireless", "internet"): ("wifi",),
    ("take", "out"): ("takeout",),
    ("take", "away"): ("takeout",),
    ("carry", "out"): ("takeout",),
    ("to", "go"): ("takeout",),
    ("drive", "thru"): ("drivethrough",),
    ("drive", "through"): ("drivethrough",),
    ("full", "bar"): ("fullbar", "alcohol"),
    ("beer", "and", "wine"): ("beerwine", "alcohol"),
    ("fitness", "center"): ("gym",),
    ("fitness", "centre"): ("gym",),
    ("fitness", "room"): ("gym",),
    ("swimming", "pool"): ("pool",),
    ("car", "park"): ("parking",),
    ("air", "conditioner"): ("air", "conditioning"),
    ("wheelchair", "access"): ("wheelchair", "accessible"),
    ("wheelchair", "accessibility"): ("wheelchair", "accessible"),
    ("outdoor", "dining"): ("outdoor", "seating"),
    ("al", "fresco", "dining"): ("outdoor", "seating"),
    ("suitable", "for"): ("good", "for"),
    ("suited", "for"): ("good", "for"),
    ("great", "for"): ("good", "for"),
    ("ideal", "for"): ("good", "for"),
    ("perfect", "for"): ("good", "for"),
    ("appropriate", "for"): ("good", "for"),
    ("a", "lot", "of"): ("many",),
    ("lot", "of"): ("many",),
    ("as", "well", "as"): ("and",),
    ("along", "with"): ("and",),
    ("in", "addition", "to"): ("and",),
    ("not", "only"): ("also",),
    ("but", "also"): ("and",),
    ("but", "not"): ("but", "no"),
    ("such", "as"): (",",),
    ("including",): (",",),
    ("can", "enjoy"): ("have",),
    ("described", "as"): ("being",),
}
_FIRST = {key[0] for key in _PHRASES}

# Words that name the record itself, where a key begins with them or a claim speaks of it.
PREFIXES = frozenset(
    "business restaurant hotel venue store shop product device item property place listing facility establishment "
    "patient employee user customer".split()
)
SUBJECTS = PREFIXES | frozenset(
    "it they this that these he she its their his her the a an spot location eatery model phone laptop car vehicle "
    "apartment school clinic library museum bar cafe bistro person member company".split()
)
CONTAINERS = frozenset(
    "attribute feature amenity detail info information spec specification option facility policy setting general "
    "metadata data record result profile characteristic other misc extra overview summary flag".split()
)
_SCAFFOLD = frozenset(
    "has have is are offer offers offered available availability provide provided support supported include included "
    "enabled present for of the a an in to with and or".split()
)
ALLOWING = frozenset("allow allowed accept accepted permitted permit welcome friendly takes".split())
NEEDING = frozenset("require required need needed necessary mandatory".split())


def lemma(word: str) -> str:
    """The singular of a lower-case word; crude, and only for comparison.

    Example:
        >>> [lemma(w) for w in ("reservations", "dishes", "families", "wireless")]
        ['reservation', 'dish', 'kid', 'wireless']
    """
    known = _PLURALS.get(word)
    if known:
        return known
    if len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("shes", "ches", "xes", "sses")):
        return word[:-2]
    return word[:-1]


def read(text: str) -> list[Token]:
    """The words and marks of a text, in a form in which wordings of the same thing are the same.

    Args:
        text: A claim, or a key in words.

    Returns:
        Tokens with their offsets in the text.

    Example:
        >>> [token.word for token in read("Wi-Fi, take-out; suitable for children")]
        ['wifi', ',', 'takeout', ';', 'good', 'for', 'kid']
    """
    low = same_length_lower(same_length_fold(text))
    found = [Token(lemma(m[0]), m.start(), m.end()) for m in _TOKEN.finditer(low)]
    if not any(token.word in _FIRST for token in found):
        return found
    joined: list[Token] = []
    at = 0
    while at < len(found):
        for length in (3, 2, 1):
            run = found[at : at + length]
            replacement = _PHRASES.get(tuple(t.word for t in run)) if found[at].word in _FIRST else None
            if replacement:
                joined += (Token(word, run[0].start, run[-1].end) for word in replacement)
                at += length
                break
        else:
            joined.append(found[at])
            at += 1
    return joined


@lru_cache(maxsize=4096)
def key_words(key: str) -> tuple[str, ...]:
    """The words of a key.

    Args:
        key: Name of a field, in camel case, with underscores or in words.

    Returns:
        Its words, in the form of :func:`read`.

    Example:
        >>> key_words("RestaurantsTakeOut"), key_words("free_wifi"), key_words("Good for children")
        (('restaurant', 'takeout'), ('free', 'wifi'), ('good', 'for', 'kid'))
    """
    return tuple(token.word for token in read(label_of(key).lower().replace("_", " ")) if token.word[0].isalnum())


def bare(words: tuple[str, ...]) -> tuple[frozenset[str], str]:
    """What a key is about.

    Args:
        words: Words of the key.

    Returns:
        The words that carry its meaning; and ``"allow"`` if it says what is allowed, ``"need"`` for what is required.

    Example:
        >>> sorted(bare(("restaurant", "good", "for", "group"))[0]), bare(("dog", "allowed"))
        (['good', 'group'], (frozenset({'dog'}), 'allow'))
    """
    if len(words) > 1 and words[0] in PREFIXES:
        words = words[1:]
    own = frozenset(w for w in words if w not in _SCAFFOLD and w not in ALLOWING and w not in NEEDING)
    needs = any(w in NEEDING for w in words)
    return own, "need" if needs else "allow" if any(w in ALLOWING for w in words) else ""
