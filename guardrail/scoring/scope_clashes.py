"""When and under which condition a sentence holds: what ended is told as present, or a condition is left out."""

from __future__ import annotations

import re
from collections.abc import Sequence

from guardrail.scoring.statements import Statement, Word, coverage, sentence_clash
from guardrail.text.values import ValueKind
from guardrail.types import Clash, ClashKind

_ALIGNED = 0.75  # share of the claim's content words that a clause must have
_SAME_WORDS = 0.95
_PAST = frozenset("was were had did used".split())
_PRESENT = frozenset("is are has have does now currently today still".split())
_ENDED = frozenset("formerly previously".split())
_UNTIL = re.compile(r"\b(?:until|till|up to)\s*$", re.IGNORECASE)
_TIMELESS = frozenset("until till before since after once when while during if".split())
_CONDITIONS = frozenset("if unless provided providing except".split())
_ADDRESSED = frozenset("you your i we".split())


def scope_clashes(claim: Statement, evidence: Sequence[Statement]) -> list[Clash]:
    """Find what held only in the past, or only under a condition, and is claimed without either.

    Args:
        claim: The claim.
        evidence: Evidence sentences, best first.

    Returns:
        At most one clash of each sort. It contradicts where the evidence says that the thing has ended; a condition
        that is left out is a lack of certainty.

    Example:
        >>> from guardrail.scoring.statements import analyse
        >>> ended = analyse("Until 2019 the mill was owned by the parish.")
        >>> [c.contradicts for c in scope_clashes(analyse("The mill is owned by the parish."), [ended])]
        [True]
    """
    found = [_ended(claim, evidence), _unconditional(claim, evidence)]
    return [clash for clash in found if clash is not None]


def _ended(claim: Statement, evidence: Sequence[Statement]) -> Clash | None:
    """What the evidence says of the past ("until 2020", "formerly") and the claim of the present."""
    aligned = [statement for statement in evidence if coverage(claim, statement) >= _ALIGNED]  # or no clause of it is
    texts = {word.text for word in claim.words} if aligned else set()
    if texts.isdisjoint(_PRESENT) or texts & (_PAST | _TIMELESS | _ENDED) or claim.negated or len(claim.stems) < 2:
        return None
    clash: Clash | None = None
    for statement in aligned:
        for clause in {word.clause for word in statement.words}:
            words = [word for word in statement.words if word.clause == clause]
            if _share(claim, words) < _ALIGNED:
                continue
            if not _has_ended(statement, words):
                return None
            clash = clash or sentence_clash(ClashKind.DATE, claim, statement, contradicts=True)
    return clash


def _has_ended(statement: Statement, words: Sequence[Word]) -> bool:
    if all(word.text not in _PAST for word in words):
        return False
    if any(word.text in _ENDED for word in words):
        return True
    first, last = words[0].start, words[-1].start
    return any(
        value.kind is ValueKind.DATE or value.dates
        for value in statement.values
        if first <= value.start <= last and _UNTIL.search(statement.text, 0, value.start)
    )


def _unconditional(claim: Statement, evidence: Sequence[Statement]) -> Clash | None:
    """What the evidence says under a condition that the claim leaves out."""
    same = [statement for statement in evidence if coverage(claim, statement) >= _SAME_WORDS]
    texts = {word.text for word in claim.words} if same else set()
    if texts & (_CONDITIONS | _TIMELESS | _ADDRESSED) or len(claim.stems) < 2:
        return None
    clash: Clash | None = None
    for statement in same:
        at = next((i for i, word in enumerate(statement.words) if i > 2 and word.text in _CONDITIONS), None)
        if at is None or any(word.text in _ADDRESSED for word in statement.words):
            return None
        condition = {word.stem for word in statement.words[at:] if word.content}
        if not condition or condition & claim.stems or _share(claim, statement.words[:at]) < _SAME_WORDS:
            return None
        clash = clash or sentence_clash(ClashKind.MODALITY, claim, statement, contradicts=False)
    return clash


def _share(claim: Statement, words: Sequence[Word]) -> float:
    return len(claim.stems & {word.stem for word in words if word.content}) / len(claim.stems)
