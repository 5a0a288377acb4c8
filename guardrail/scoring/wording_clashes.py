"""Negations, opposites, swapped roles, quantifiers and modals that turn a sentence around."""

from __future__ import annotations

from collections.abc import Sequence

from guardrail.scoring.lexicon import (
    COLOURS,
    HEDGE_VERBS,
    HEDGES,
    LOOSE_OPPOSITES,
    MODAL_PHRASES,
    MODALS,
    QUANTIFIER_CLASHES,
    QUANTIFIERS,
    SYMMETRIC,
)
from guardrail.scoring.statements import Statement, Word
from guardrail.text.identifiers import same_length_fold, same_length_lower
from guardrail.text.values import compatible
from guardrail.types import Clash, ClashKind

_ALIGNED = 0.75  # share of the claim's other content words that a sentence must have
_QUANTIFIED = 0.6
_SAME_WORDS = 0.9
_EQUAL = 0.05
_LOOSE_ALIGNED = 0.99


def wording_clashes(claim: Statement, evidence: Sequence[Statement]) -> list[Clash]:
    """Find what turns the claim around, compared with the sentences that say nearly the same.

    Args:
        claim: The claim.
        evidence: Evidence sentences, best first.

    Returns:
        The clashes, at most one of a kind.
    """
    found = [
        _polarity_clash(claim, evidence),
        _role_clash(claim, evidence),
        _quantifier_clash(claim, evidence),
        _modality_clash(claim, evidence),
    ]
    return [clash for clash in found if clash is not None]


def _coverage(claim: Statement, statement: Statement, without: frozenset[str] = frozenset()) -> float:
    wanted = claim.stems - without if without else claim.stems
    return len(wanted & statement.stems) / len(wanted) if wanted else 0.0


def _values_agree(claim: Statement, statement: Statement) -> bool:
    """Whether a sentence can be about the same occasion: it gives every value of the claim."""
    return all(any(compatible(value, other) for other in statement.values) for value in claim.values)


# ------------------------------------------------------------------ negation and opposites


def _polarity_clash(claim: Statement, evidence: Sequence[Statement]) -> Clash | None:
    worst: tuple[float, Clash] | None = None
    best_same = 0.0
    for statement in evidence:
        turned = _turned(claim, statement)
        if turned is None:
            best_same = max(best_same, _coverage(claim, statement))
            continue
        kind, mine, its, rest = turned
        if rest >= _ALIGNED and _values_agree(claim, statement) and (worst is None or rest > worst[0]):
            worst = (rest, Clash(kind=kind, claim_text=mine, evidence_text=its))
    if worst is None or best_same >= worst[0] - _EQUAL:
        return None
    return worst[1]


def _turned(claim: Statement, statement: Statement) -> tuple[ClashKind, str, str, float] | None:
    """What one side asserts and the other denies, and how well the rest of the claim fits."""
    denied_by_both = {s for s in claim.stems & statement.stems if claim.signs[s] == statement.signs[s] == {-1}}
    pairs = _opposed_pairs(claim, statement)
    if pairs:
        mine, its = pairs
        rest = _coverage(claim, statement, frozenset((mine.stem,)))
        loose = mine.text in LOOSE_OPPOSITES or its.text in LOOSE_OPPOSITES
        if rest >= (_LOOSE_ALIGNED if loose else _ALIGNED):
            direct = mine.sign == its.sign == 1
            return (ClashKind.ANTONYM if direct else ClashKind.NEGATION), mine.text, its.text, rest
    rival = _rival_colour(claim, statement)
    if rival:
        mine, its = rival
        rest = _coverage(claim, statement, frozenset((mine.stem,)))
        if rest >= _ALIGNED:
            return ClashKind.ANTONYM, mine.text, its.text, rest
    prefixed = _prefixed(claim, statement)
    if prefixed:
        mine, its = prefixed
        rest = _coverage(claim, statement, frozenset((mine.stem,)))
        if rest >= _ALIGNED:
            return ClashKind.ANTONYM, mine.text, its.text, rest
    if denied_by_both:
        return None
    heads = {word.stem for side in (claim, statement) for word in side.words if word.head and not word.name}
    opposed = [s for s in claim.stems & statement.stems & heads if claim.signs[s].isdisjoint(statement.signs[s])]
    if not opposed or _agrees_by_opposite(claim, statement) or _compares(claim) or _compares(statement):
        return None
    rest = _coverage(claim, statement)
    word = _first(claim, opposed)
    return ClashKind.NEGATION, word, _first(statement, opposed), rest


def _compares(statement: Statement) -> bool:
    """Whether a sentence compares: "not greater than" denies a degree, not the thing."""
    texts = [word.text for word in statement.words]
    return "than" in texts or texts.count("as") > 1


def _first(statement: Statement, stems: Sequence[str]) -> str:
    return next((word.text for word in statement.words if word.stem in stems), "")


def _agrees_by_opposite(claim: Statement, statement: Statement) -> bool:
    """Whether both are on one side in other words: "not open" and "closed"."""
    return any(
        claim.sides[pair] == statement.sides[pair] and _forms(claim, pair) != _forms(statement, pair)
        for pair in claim.sides.keys() & statement.sides.keys()
    )


def _forms(statement: Statement, pair: str) -> set[str]:
    return {word.stem for word in statement.words if any(name == pair for name, _ in word.sides)}


def _opposed_pairs(claim: Statement, statement: Statement) -> tuple[Word, Word] | None:
    for pair in claim.sides.keys() & statement.sides.keys():
        if claim.sides[pair].isdisjoint(statement.sides[pair]):
            mine, its = _member(claim, pair), _member(statement, pair)
            if mine.stem != its.stem:
                return mine, its
    return None


def _member(statement: Statement, pair: str) -> Word:
    return next(word for word in statement.words if any(name == pair for name, _ in word.sides))


def _rival_colour(claim: Statement, statement: Statement) -> tuple[Word, Word] | None:
    """Another colour for the same thing; none if either side names several."""
    mine = [word for word in claim.words if word.text in COLOURS and not word.name]
    its = [word for word in statement.words if word.text in COLOURS and not word.name]
    if len(mine) != 1 or len(its) != 1 or mine[0].text == its[0].text or mine[0].sign != its[0].sign:
        return None
    return mine[0], its[0]


_PREFIXES = ("un", "non", "in", "im", "dis", "ir", "il")


def _prefixed(claim: Statement, statement: Statement) -> tuple[Word, Word] | None:
    """Find words that differ by a denying prefix: "broken" and "unbroken"."""
    by_text = {word.text: word for word in statement.words if word.content}
    longer = [text for text in by_text if text.startswith(_PREFIXES)]
    bare = {text.removeprefix(prefix) for text in longer for prefix in _PREFIXES}
    for word in claim.words:
        if word.text not in bare and not word.text.startswith(_PREFIXES):
            continue  # nearly every word: seven look-ups for each would be a tenth of a comparison
        if not word.content or word.stem in statement.stems:
            continue
        for prefix in _PREFIXES:
            other = by_text.get(prefix + word.text)
            if other is None and word.text.startswith(prefix):
                other = by_text.get(word.text.removeprefix(prefix))
            if other is not None and len(other.text) > 4 and other.sign == word.sign:
                return word, other
    return None


# ------------------------------------------------------------------ roles


def _role_clash(claim: Statement, evidence: Sequence[Statement]) -> Clash | None:
    swapped: Clash | None = None
    for statement in evidence:
        coverage = _coverage(claim, statement)
        if coverage < _ALIGNED or not _values_agree(claim, statement):
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
            if coverage < _SAME_WORDS and not (mine[0] <= names and mine[1] <= names):
                continue
            if _meets(mine[0], its[1]) and _meets(mine[1], its[0]) and swapped is None:
                swapped = Clash(
                    kind=ClashKind.ROLE, claim_text=claim.text.strip(), evidence_text=statement.text.strip()
                )
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
    passive = any(word in _BE for word in before) and "by" in after
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


# ------------------------------------------------------------------ quantifiers


def _quantifiers(statement: Statement) -> dict[str, set[str]]:
    """Quantifiers of a sentence, each with the stems that follow it; rates such as "every 40 minutes" are none."""
    found: dict[str, set[str]] = {}
    words = statement.words
    for at, word in enumerate(words):
        kind = QUANTIFIERS.get(word.text)
        if kind is None or (word.text == "few" and at and words[at - 1].text == "a"):
            continue
        if at and words[at - 1].text in ("not", "at") and kind == "all":
            kind = "few" if words[at - 1].text == "not" else ""
        following = [w.stem for w in words[at + 1 : at + 5] if w.content][:1]
        if kind and (following or word.text in ("always", "never", "sometimes", "usually", "rarely", "often")):
            found.setdefault(kind, set()).update(following)
    for low, high in zip(statement.values, statement.values[1:], strict=False):
        between = statement.text[low.end : high.start].lower().split()
        if between[:1] == ["of"] or between[:2] == ["out", "of"]:
            if low.amount is not None and high.amount is not None and low.amount < high.amount:
                found.setdefault("part", set()).update([w.stem for w in words if w.start >= high.end and w.content][:2])
    return found


def _quantifier_clash(claim: Statement, evidence: Sequence[Statement]) -> Clash | None:
    mine = _quantifiers(claim)
    if not mine:
        return None
    clash: Clash | None = None
    for statement in evidence:
        if _coverage(claim, statement) < _QUANTIFIED:
            continue
        its = _quantifiers(statement)
        for kind, nouns in mine.items():
            if kind in its and (not its[kind] or not nouns or _meets(frozenset(nouns), frozenset(its[kind]))):
                return None
            for other, others in its.items():
                contradicts = QUANTIFIER_CLASHES.get((kind, other))
                if contradicts is None or not nouns & others or (kind == "none" and statement.negated):
                    continue
                if clash is None and _coverage(claim, statement) >= _ALIGNED:
                    clash = Clash(
                        kind=ClashKind.QUANTIFIER,
                        claim_text=claim.text.strip(),
                        evidence_text=statement.text.strip(),
                        contradicts=contradicts,
                    )
    return clash


# ------------------------------------------------------------------ modality

_UNCERTAIN = frozenset(("may", "might", "could"))


def _modals(statement: Statement) -> dict[str, set[str]]:
    """Modals of a sentence, each with the stems of the words that follow."""
    found: dict[str, set[str]] = {}
    words = statement.words
    marks = [
        (w.start, w.start + len(w.text), MODALS[w.text]) for w in words if w.text in MODALS and _is_modal(w, statement)
    ]
    low = same_length_lower(same_length_fold(statement.text))
    ends = {end + 1 for _, end, _ in marks}
    marks += [
        (m.start(), m.end(), m.lastgroup or "") for m in MODAL_PHRASES.finditer(low) if m.start() not in ends
    ]  # "may need to" is a "may"
    for _, end, kind in marks:
        following = [w for w in words if w.start >= end and w.content][:1]
        if following and following[0].sign > 0:
            found.setdefault(kind, set()).add(following[0].stem)
    return found


def _is_modal(word: Word, statement: Statement) -> bool:
    return not (word.text == "may" and any(v.start <= word.start < v.end for v in statement.values))


def _modality_clash(claim: Statement, evidence: Sequence[Statement]) -> Clash | None:
    mine = _modals(claim)
    hedged = any(w.text in HEDGES or w.text in HEDGE_VERBS for w in claim.words)
    clash: Clash | None = None
    for statement in evidence:
        coverage = _coverage(claim, statement)
        if coverage < _ALIGNED:
            continue
        contradicts = _modal_difference(mine, _modals(statement))
        if contradicts is None and not mine and not hedged and _hedges(claim, statement):
            contradicts = False
        if contradicts is None:
            return None
        if clash is None:
            clash = Clash(
                kind=ClashKind.MODALITY,
                claim_text=claim.text.strip(),
                evidence_text=statement.text.strip(),
                contradicts=contradicts,
            )
    return clash


def _modal_difference(mine: dict[str, set[str]], its: dict[str, set[str]]) -> bool | None:
    """Whether the same action is bidden on one side and only allowed or advised on the other."""
    for kind, verbs in mine.items():
        for other, others in its.items():
            if kind == other or not verbs & others or verbs & its.get(kind, set()):
                continue
            if {kind, other} == {"must", "may"}:
                return True
            if {kind, other} == {"must", "should"}:
                return False
    return None


def _hedges(claim: Statement, statement: Statement) -> bool:
    """Whether the evidence only says that something may be so, where the claim says that it is."""
    for at, word in enumerate(statement.words):
        if word.text not in _UNCERTAIN or not _is_modal(word, statement):
            continue
        following = [w.stem for w in statement.words[at + 1 : at + 5] if w.content][:1]
        if following and following[0] in claim.stems:
            return True
    return False
