"""Negations, opposites, swapped roles and quantifiers that turn a sentence around."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from guardrail.scoring.lexicon import (
    COLOURS,
    LOOSE_OPPOSITES,
    QUANTIFIER_CLASHES,
    QUANTIFIERS,
)
from guardrail.scoring.modality_clashes import modality_clash
from guardrail.scoring.role_clashes import role_clash
from guardrail.scoring.statements import ALIGNED, Statement, Word, conditions, coverage, sentence_clash, values_agree
from guardrail.text.identifiers import same_length_fold
from guardrail.types import Clash, ClashKind

_QUANTIFIED = 0.6
_EQUAL = 0.05
_LOOSE_ALIGNED = 0.99
_NEAR = 3
_POSSIBLE = ("may", "might", "can", "could")


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
        role_clash(claim, evidence),
        _quantifier_clash(claim, evidence),
        modality_clash(claim, evidence),
    ]
    return [clash for clash in found if clash is not None]


# ------------------------------------------------------------------ negation and opposites


def _polarity_clash(claim: Statement, evidence: Sequence[Statement]) -> Clash | None:
    worst: tuple[float, Clash] | None = None
    best_same = 0.0
    enough = (ALIGNED - _EQUAL) * (len(claim.stems) - 1)
    for statement in evidence:
        if len(claim.stems & statement.stems) < enough:
            continue  # most sentences: too few words, even if one of the claim does not count
        turned = _turned(claim, statement)
        if turned is None:
            best_same = max(best_same, coverage(claim, statement))
            continue
        kind, mine, its, rest = turned
        same_occasion = values_agree(claim, statement) or _denies_altogether(claim, statement, its)
        if rest >= ALIGNED and same_occasion and (worst is None or rest > worst[0]):
            worst = (rest, Clash(kind=kind, claim_text=mine, evidence_text=its))
    if worst is None or best_same >= worst[0] - _EQUAL:
        return None
    return worst[1]


def _denies_altogether(claim: Statement, statement: Statement, word: str) -> bool:
    """Whether a sentence denies something whatever the amount and the case.

    "Do not take ibuprofen" leaves no dose of it, "do not take ibuprofen with alcohol" leaves some.
    """
    if statement.values or any(w.text != word and w.stem not in claim.stems for w in statement.content()):
        return False
    return any(w.text == word and w.sign < 0 for w in statement.words)


def _turned(claim: Statement, statement: Statement) -> tuple[ClashKind, str, str, float] | None:
    """What one side asserts and the other denies, and how well the rest of the claim fits."""
    pairs = _opposed_pairs(claim, statement)
    if pairs:
        mine, its = pairs
        rest = _rest(claim, statement, mine.stem)
        loose = mine.text in LOOSE_OPPOSITES or its.text in LOOSE_OPPOSITES
        if rest >= (_LOOSE_ALIGNED if loose else ALIGNED):
            direct = mine.sign == its.sign == 1
            return (ClashKind.ANTONYM if direct else ClashKind.NEGATION), mine.text, its.text, rest
    rival = _rival_colour(claim, statement)
    if rival:
        mine, its = rival
        rest = _rest(claim, statement, mine.stem)
        if rest >= ALIGNED:
            return ClashKind.ANTONYM, mine.text, its.text, rest
    prefixed = _prefixed(claim, statement)
    if prefixed:
        mine, its = prefixed
        rest = _rest(claim, statement, mine.stem)
        if rest >= ALIGNED:
            return ClashKind.ANTONYM, mine.text, its.text, rest
    shared = claim.stems & statement.stems
    opposed = [s for s in shared if claim.signs[s].isdisjoint(statement.signs[s])]
    if not opposed or any(claim.signs[s] == statement.signs[s] == {-1} for s in shared):
        return None
    heads = {word.stem for side in (claim, statement) for word in _heads(side)}
    open_to_doubt = _conditional(claim) | _conditional(statement) | _only_warned_of(claim, statement)
    opposed = [s for s in opposed if s in heads - open_to_doubt and _denies_shared(claim, statement, s)]
    if not opposed or _agrees_by_opposite(claim, statement) or _compares(claim) or _compares(statement):
        return None
    rest = coverage(claim, statement)
    word = _first(claim, opposed)
    return ClashKind.NEGATION, word, _first(statement, opposed), rest


def _rest(claim: Statement, statement: Statement, stem: str) -> float:
    """How well a claim fits a sentence but for one word; if all that is left are values, how well those fit.

    "It is open on Mondays." has nothing else to say what it is about.
    """
    if claim.values and not claim.stems - {stem}:
        return float(values_agree(claim, statement))
    return coverage(claim, statement, frozenset((stem,)))


def _heads(statement: Statement) -> list[Word]:
    """The words that are denied outright: what stands under a condition asserts nothing."""
    under = conditions(statement)
    return [w for w in statement.words if w.head and not w.name and w.start < under.get(w.clause, w.start + 1)]


def _conditional(statement: Statement) -> frozenset[str]:
    """Stems that stand under a condition: "unless both agree" does not say that they do."""
    under = conditions(statement)
    return frozenset(w.stem for w in statement.words if w.start >= under.get(w.clause, w.start + 1))


def _only_warned_of(claim: Statement, statement: Statement) -> frozenset[str]:
    """Stems that one side calls possible and the other advises or acts against.

    "May burn" and "take care not to burn"; "could freeze" and "drain it, so that it won't freeze".
    """
    found: set[str] = set()
    for one, other in ((claim, statement), (statement, claim)):
        advised = _following(one, "not", "to") | _following(one, "avoid") | _kept_from(one)
        found |= advised & frozenset().union(*(_following(other, modal) for modal in _POSSIBLE))
    return frozenset(found)


def _kept_from(statement: Statement) -> frozenset[str]:
    """Stems that are denied behind "so that": what something is done against."""
    words = statement.words
    behind = next((b.start for a, b in pairwise(words) if (a.text, b.text) == ("so", "that")), len(statement.text))
    return frozenset(word.stem for word in words if word.sign < 0 and word.start > behind)


def _following(statement: Statement, *texts: str) -> frozenset[str]:
    """Stems of the first content word after words that follow each other."""
    words = statement.words
    found: set[str] = set()
    for at in range(len(words) - len(texts)):
        if tuple(word.text for word in words[at : at + len(texts)]) == texts:
            after = [w for w in words[at + len(texts) :] if w.content and w.clause == words[at].clause]
            found |= {w.stem for w in after[:1]}
    return frozenset(found)


def _denies_shared(claim: Statement, statement: Statement, stem: str) -> bool:
    """Whether the two sentences share what stands around a word that one of them denies.

    "Tied to the stem to keep birds away from the seeds" denies nothing of seeds in cloth.
    """
    for one, other in ((claim, statement), (statement, claim)):
        for at, word in enumerate(one.words):
            if word.stem == stem and word.sign < 0:
                near = [w for w in one.words[max(0, at - _NEAR) : at + _NEAR + 1] if w.content and w is not word]
                near = [w for w in near if w.clause == word.clause]
                if near and not any(w.stem in other.stems for w in near):
                    return False
    return True


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
            if mine.stem != its.stem and not _swapped_comparison(claim, mine, statement, its):
                return mine, its
    return None


def _swapped_comparison(claim: Statement, mine: Word, statement: Statement, its: Word) -> bool:
    """Whether opposites say the same because the compared things changed places: larger than X, smaller than Y."""
    measure, other = _compared_with(claim, mine), _compared_with(statement, its)
    return bool(measure and other) and measure != other


def _compared_with(statement: Statement, word: Word) -> str:
    """Stem of the first content word after the "than" that follows a word."""
    following = [w for w in statement.words if w.start > word.start]
    than = next((w.start for w in following[:3] if w.text == "than"), None)
    if than is None:
        return ""
    return next((w.stem for w in following if w.start > than and w.content), "")


def _member(statement: Statement, pair: str) -> Word:
    return next(word for word in statement.words if any(name == pair for name, _ in word.sides))


def _rival_colour(claim: Statement, statement: Statement) -> tuple[Word, Word] | None:
    """Another colour for the same thing; none if either side names several."""
    if len(claim.stems & statement.stems) + len(claim.values) < 2:
        return None  # "red: energy" and "black means energy" speak of two things
    mine, its = _colours(claim), _colours(statement)
    if len(mine) != 1 or len(its) != 1 or mine[0].text == its[0].text or mine[0].sign != its[0].sign:
        return None
    return mine[0], its[0]


def _colours(statement: Statement) -> list[Word]:
    """The colours of a sentence; a part of a compound ("silver-white") is none."""
    text = same_length_fold(statement.text)
    return [w for w in statement.words if w.text in COLOURS and not w.name and text[w.start - 1 : w.start] != "-"]


_PREFIXES = ("un", "non", "in", "im", "dis", "ir", "il")


def _prefixed(claim: Statement, statement: Statement) -> tuple[Word, Word] | None:
    """Find words that differ by a denying prefix: "broken" and "unbroken"."""
    by_text = {word.text: word for word in statement.words if word.content}
    longer = [text for text in by_text if text.startswith(_PREFIXES)]
    own = {word.text for word in claim.words}
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
            if other is None or other.text in own or word.text in by_text:
                continue  # a side that has both sets them against each other
            if len(other.text) > 4 and other.sign == word.sign:
                return word, other
    return None


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
    similar = [statement for statement in evidence if coverage(claim, statement) >= _QUANTIFIED]
    mine = _quantifiers(claim) if similar else {}
    if not mine:
        return None
    clash: Clash | None = None
    for statement in similar:
        its = _quantifiers(statement)
        for kind, nouns in mine.items():
            if kind in its and (not its[kind] or not nouns or nouns & its[kind]):
                return None
            for other, others in its.items():
                contradicts = QUANTIFIER_CLASHES.get((kind, other))
                if contradicts is None or not nouns & others or (kind == "none" and statement.negated):
                    continue
                if clash is None and coverage(claim, statement) >= ALIGNED:
                    clash = sentence_clash(ClashKind.QUANTIFIER, claim, statement, contradicts=contradicts)
    return clash
