"""Who did what to whom: the two sides of a verb or a comparison, exchanged."""

from __future__ import annotations

from collections.abc import Sequence

from guardrail.scoring.lexicon import SYMMETRIC
from guardrail.scoring.statements import Statement, Word, coverage, sentence_clash, values_agree
from guardrail.types import Clash, ClashKind

_ALIGNED = 0.75  # share of the claim's content words that a sentence must have
_SAME_WORDS = 0.9


def role_clash(claim: Statement, evidence: Sequence[Statement]) -> Clash | None:
    """Find who did what to whom with the two sides exchanged.

    Args:
        claim: The claim.
        evidence: Evidence sentences, best first.

    Returns:
        A clash if a sentence that says the same has the sides the other way round, and none has them like the claim.

    Example:
        >>> from guardrail.scoring.statements import analyse
        >>> role_clash(analyse("The dog chased the cat."), [analyse("The cat chased the dog.")]).kind.value
        'role'
    """
    swapped: Clash | None = None
    for statement in evidence:
        share = coverage(claim, statement)
        if share < _ALIGNED or not values_agree(claim, statement):
            continue
        names = frozenset(word.stem for word in claim.words if word.name)
        for verb in claim.stems & statement.stems:
            mine, its = _roles(claim, verb), _roles(statement, verb)
            if mine is None or its is None:
                continue
            if _meets(mine[0], its[0]) or _meets(mine[1], its[1]):
                if _meets(mine[0], its[0]) and _meets(mine[1], its[1]):
                    return None
                continue
            if share < _SAME_WORDS and not (mine[0] <= names and mine[1] <= names):
                continue
            if _meets(mine[0], its[1]) and _meets(mine[1], its[0]) and swapped is None:
                swapped = sentence_clash(ClashKind.ROLE, claim, statement)
    return swapped


def _meets(some: frozenset[str], others: frozenset[str]) -> bool:
    return not some.isdisjoint(others)


def _roles(statement: Statement, verb: str) -> tuple[frozenset[str], frozenset[str]] | None:
    """Who does it, and to whom: the noun phrases beside a word, turned round for a passive."""
    words = statement.words
    at = next((i for i, word in enumerate(words) if word.stem == verb and word.content), None)
    if at is None or words[at].name or verb in SYMMETRIC or not _can_be_verb(words, at):
        return None
    left = _phrase(words, at, -1)
    right = _phrase(words, at, 1)
    left, right = left - right, right - left
    if not left or not right:
        return None
    before = [word.text for word in words[max(0, at - 3) : at]]
    after = [word.text for word in words[at + 1 : at + 3]]
    passive = any(word in _BE for word in before) and "by" in after and not words[at].text.endswith("ing")
    return (right, left) if passive else (left, right)


_BE = frozenset("is are was were be been being gets got".split())
_DETERMINERS = frozenset(
    "a an the this that these those its their his her our your my no any some of each every".split()
)
_BREAKS = frozenset("and or but which who that while when if because then".split())
_ROLE_PREPOSITIONS = frozenset("in on at during after before for with since until near under over as".split())


def _can_be_verb(words: Sequence[Word], at: int) -> bool:
    """Whether a word can be a verb or a comparison: it does not follow a determiner, and ends no noun phrase."""
    text = words[at].text
    comparison = at + 1 < len(words) and words[at + 1].text == "than"
    if comparison:
        return True
    if at == 0 or words[at - 1].text in _DETERMINERS:
        return False
    return text.endswith(("ed", "s", "en", "t", "d", "w")) or words[at - 1].text in _BE or words[at].stem != text


def _phrase(words: Sequence[Word], at: int, step: int) -> frozenset[str]:
    """Stems of the nearest noun phrase on one side: a whole name, or the nearest content word."""
    clause = words[at].clause
    index = at + step
    names: list[str] = []
    while 0 <= index < len(words) and words[index].clause == clause and words[index].text not in _BREAKS:
        word = words[index]
        if step > 0 and word.text in _ROLE_PREPOSITIONS:
            break
        if names and not word.name and index > 0:
            break
        if word.content:
            if not word.name and not (index == 0 and words[index + 1].name):
                return frozenset((word.stem,))
            names.append(word.stem)
        index += step
    return frozenset(names)
