"""Shorter and reordered wordings that say no more than the sentence did."""

from __future__ import annotations

import random
import re

from guardrail.training.perturb.draft import Draft, lowered

_GUARDED = re.compile(
    r"\b(?:not|no|never|n't|if|unless|every|all|each|any|only|without|few|none|cannot|whether|than|least|most)\b|n't\b",
    re.IGNORECASE,
)
_PARENTHESIS = re.compile(r" \((?![^)]*\b(?:not|no|except)\b)[^()]{2,120}\)")
_APPOSITION = re.compile(
    r"(?<=[a-z]), (?:(?:a|an|the|his|her|its) (?!most\b)[^,.;:()]{4,70}|(?:who|which|where"
    r"|whose) [^,.;:()]{4,90}|including [^,.;:()]{4,60}"
    r"|now [^,.;:()]{4,40}|also known as [^,.;:()]{3,40}|aged? \d+), (?=(?:is|was|are|were|has|had|have"
    r"|will|can|may|said|says|would|could"
    r"|told|made|won|began|became|died|took|gave|\w{3,}ed|\w{3,}s)\b)"
)
_TRAILING = re.compile(
    r", (?:which|where|who|including|while|whereas|making|leading|causing|resulting|allowing|giving"
    r"|leaving|helping|especially|although"
    r"|though|but|with|followed by|as well as|in addition to|along with) (?!means?\b)[^;:()]{6,160}(?=[.!]$)"
)
_BECAUSE = re.compile(
    r",? (?:because|since|so that|in order to|due to|thanks to|as part of|despite) (?!of which)[^,;:()]{6,100}(?=\.$)"
)
_LOOSE = re.compile(
    r"(?<=\w) (?:very|really|quite|quickly|slowly|carefully|easily|simply|actually|extremely|rapidly"
    r"|immediately|suddenly|highly"
    r"|finally|eventually|also|greatly|significantly|severely|strongly|particularly|famously|officially|successfully"
    r"|heavily|directly|basically|definitely|literally|truly|clearly)(?= [a-z])"
)
_OPENING = re.compile(
    r"^(?:However|Moreover|Furthermore|In addition|Additionally|Also|For example|For instance|Meanwhile"
    r"|In fact|Indeed|Therefore|Thus"
    r"|As a result|Of course|Nevertheless|Finally|Similarly|Likewise|Generally|Overall|Basically"
    r"|Fortunately|Unfortunately"
    r"|Interestingly|Surprisingly|Eventually|Later|Afterwards?), (?=\w)"
)
_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
_TIME = (
    rf"(?:in (?:early |late |mid-)?(?:(?:{_MONTHS})(?: of)? )?(?:1[5-9]|20)\d\d|on (?:Mon|Tues|Wednes"
    rf"|Thurs|Fri|Satur|Sun)day"
    rf"(?: (?:morning|afternoon|evening|night))?|on (?:{_MONTHS}) \d{{1,2}}(?:, (?:1[5-9]|20)\d\d)?|in (?:{_MONTHS})"
    r"|(?:last|this) (?:year|month|week)|during the (?:first|second|third|fourth) (?:quarter|half)"
    r"|in the (?:first|second|third|fourth) quarter)"
)
_TIME_LAST = re.compile(rf"(?<=[a-z0-9]),? ({_TIME})(?=\.$)", re.IGNORECASE)
_TIME_FIRST = re.compile(rf"^({_TIME}), (?=\w)", re.IGNORECASE)
_LIST = re.compile(
    r"\b([A-Za-z][\w'’-]*(?: [\w'’-]+)?), ([\w'’-]+(?: [\w'’-]+){0,2}), and "
    r"(?=[\w'’-]+(?: [\w'’-]+)?(?: (?:in|on|at|to|for|of|from|with)\b|[.,]))"
)
_SUBORDINATE = re.compile(
    r"^(?:If|When|While|Although|Though|As|Because|Since|After|Before|Once|Until|Unless|With|Without"
    r"|Following|Despite|During|In|At|On|By|For"
    r"|To|From|Under|Whether|Whenever|Even|Due|Given|According|\w+ing|\w+ed)\b"
)
_LEAD = re.compile(
    r"^(?:After|With|Following|Despite|While|Although|Though|During|In|At|On|Since|As|Because of|Due to"
    r"|Along with) (?!it\b)[^,;:()]{6,80}, "
    r"(?=(?:the|a|an|he|she|it|they|his|her|their|its|some|many|most|people|[A-Z]\w+) )(?!.*,.*,)"
)
_COORDINATE = re.compile(
    r"(?:, (?:and|but|so|yet|while|whereas) |; (?:however, )?)(?=((?:the|a|an|he|she|it|they|you|his|her"
    r"|their|its|this|these|there"
    r"|[A-Z]\w+(?: [A-Z]\w+)*)(?: [a-z]+){0,3}? (?:is|was|are|were|has|had|have|will|can|may|would|could"
    r"|should|must|did|does|\w{3,}ed"
    r"|took|made|won|led|became|began|went|came|got|threw|ran|said|gave|lost|left|found)\b))"
)
_SAFE_CLAUSE = re.compile(r"\b(?:if|unless|that|when|who|which|said|says|and|because|after|before|but|while)\b|[,;:]")


def is_guarded(text: str) -> bool:
    """Whether leaving words out could make the sentence say something else (negation, condition, universal)."""
    return bool(_GUARDED.search(text))


def compress(draft: Draft, rng: random.Random) -> None:
    """Leave out what a summary would: asides, trailing clauses, adverbs.

    Args:
        draft: A sentence without errors; changed in place.
        rng: Decides which of the possible cuts are made.

    Example:
        >>> draft = Draft("The very old mill (built in 1902) burned down.")
        >>> compress(draft, random.Random(3)); draft.text
        'The old mill burned down.'
    """
    _cut(draft, _OPENING, rng, 0.85)
    if draft.text[:1].islower():
        draft.text = draft.text[0].upper() + draft.text[1:]
    _cut(draft, _PARENTHESIS, rng, 0.8)
    _cut(draft, _APPOSITION, rng, 0.7, instead=" ")
    guarded = is_guarded(draft.text)
    if _SUBORDINATE.match(draft.text):
        if not guarded:
            _cut(draft, _LEAD, rng, 0.6)
            if draft.text[:1].islower():
                draft.text = draft.text[0].upper() + draft.text[1:]
    elif len(draft.text) > 60:
        _clause(draft, rng)
        _cut(draft, _TRAILING, rng, 0.8)
        if not guarded:
            _cut(draft, _BECAUSE, rng, 0.5)
    if not guarded:
        _cut(draft, _LOOSE, rng, 0.6)
        _list(draft, rng)


def _clause(draft: Draft, rng: random.Random) -> None:
    """Keep one of two main clauses."""
    found = _COORDINATE.search(draft.text)
    if not found or rng.random() < 0.35:
        return
    first, second = draft.text[: found.start()], draft.text[found.end() :]
    alone = not re.match(r"(?:he|she|it|they|his|her|their|its|this|these)\b", second)
    if alone and len(second.split()) > 6 and rng.random() < 0.4:
        draft.text = second[0].upper() + second[1:]
    elif len(first.split()) > 5:
        draft.text = first + "."


def move_time(draft: Draft, rng: random.Random, *, drop: bool = True) -> bool:
    """Put the time phrase at the other end of the sentence, or leave it out.

    Example:
        >>> draft = Draft("The mill burned down in 1932.")
        >>> move_time(draft, random.Random(1), drop=False), draft.text
        (True, 'In 1932, the mill burned down.')
    """
    text = draft.text
    if is_guarded(text):
        return False
    if (last := _TIME_LAST.search(text)) and not _SAFE_CLAUSE.search(text, 0, last.start()):
        phrase = last[1]
        rest = text[: last.start()] + text[last.end() :]
        draft.text = rest if drop and rng.random() < 0.25 else f"{phrase[0].upper()}{phrase[1:]}, {lowered_start(rest)}"
        return True
    if (first := _TIME_FIRST.match(text)) and not _SAFE_CLAUSE.search(text, first.end()):
        rest, phrase = text[first.end() :], first[1]
        rest = rest[0].upper() + rest[1:]
        draft.text = rest if drop and rng.random() < 0.25 else f"{rest[:-1]} {phrase[0].lower()}{phrase[1:]}{rest[-1]}"
        return True
    return False


def lowered_start(rest: str) -> str:
    """The sentence with a small first letter if its first word is no name."""
    first = rest.split(" ", 1)[0]
    small = first in (
        "The",
        "A",
        "An",
        "It",
        "He",
        "She",
        "They",
        "This",
        "These",
        "His",
        "Her",
        "Their",
        "Its",
        "Some",
        "Many",
        "Most",
    )
    return lowered(rest) if small else rest


def _cut(draft: Draft, pattern: re.Pattern[str], rng: random.Random, chance: float, *, instead: str = "") -> None:
    found = pattern.search(draft.text)
    if found and rng.random() < chance and len(draft.text) - len(found[0]) > 22:
        draft.text = draft.text[: found.start()] + instead + draft.text[found.end() :]


def _list(draft: Draft, rng: random.Random) -> None:
    found = _LIST.search(draft.text)
    if found and rng.random() < 0.6 and not re.search(r"\b(?:is|are|was|were|has|had|the three|three)\b", found[0]):
        draft.text = f"{draft.text[: found.end(1)]} and {draft.text[found.end() :]}"
