"""Modals that clash: what must be done and what may, what may be so and what is."""

from __future__ import annotations

import re
from collections.abc import Sequence

from guardrail.scoring.lexicon import HEDGE_VERBS, HEDGES, MODAL_PHRASES, MODALS
from guardrail.scoring.statements import ALIGNED, Statement, Word, conditions, coverage, sentence_clash
from guardrail.text.identifiers import same_length_fold, same_length_lower
from guardrail.types import Clash, ClashKind

_MODAL_REACH = 10  # characters up to the verb: "only be used"
_UNCERTAIN = frozenset(("may", "might", "could"))
_SOME = re.compile(r"\b(?:some|several|at least one|one or more)\b")


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
    under = conditions(statement)
    for _, end, kind in marks:
        following = [w for w in words if w.start >= end and w.content][:1]
        if following and following[0].start > end + _MODAL_REACH:
            continue  # "it may be time to replace it" allows nothing
        if following and following[0].sign > 0 and under.get(following[0].clause, end) >= end:
            found.setdefault(kind, set()).add(following[0].stem)
    return found


def _is_modal(word: Word, statement: Statement) -> bool:
    return not (word.text == "may" and any(v.start <= word.start < v.end for v in statement.values))


def modality_clash(claim: Statement, evidence: Sequence[Statement]) -> Clash | None:
    """Find a modal that the sentences which say nearly the same do not have.

    Args:
        claim: The claim.
        evidence: Evidence sentences, best first.

    Returns:
        The clash; ``None`` if there is none, or if one sentence agrees.
    """
    aligned = [statement for statement in evidence if coverage(claim, statement) >= ALIGNED]
    if not aligned:
        return None
    mine = _modals(claim)
    hedged = any(w.text in HEDGES or w.text in HEDGE_VERBS for w in claim.words)
    if _SOME.match(claim.text.lstrip(" -*•").casefold()):
        mine.pop("may", None)  # what all must do, some may do
    clash: Clash | None = None
    for statement in aligned:
        contradicts = _modal_difference(mine, _modals(statement))
        if contradicts is None and not mine and not hedged and _hedges(claim, statement):
            contradicts = False
        if contradicts is None:
            return None
        if clash is None:
            clash = sentence_clash(ClashKind.MODALITY, claim, statement, contradicts=contradicts)
    return clash


def _modal_difference(mine: dict[str, set[str]], its: dict[str, set[str]]) -> bool | None:
    """Whether the same action is bidden on one side and only allowed or advised on the other."""
    for kind, verbs in mine.items():
        for other, others in its.items():
            if kind == other or not verbs & others or verbs & its.get(kind, set()):
                continue
            if {kind, other} == {"must", "may"} or (kind, other) == ("must", "able"):
                return True
            if (kind, other) == ("must", "should"):
                return False  # the other way round the claim only says less
    return None


def _hedges(claim: Statement, statement: Statement) -> bool:
    """Whether the evidence only says that something may be so, where the claim says that it is."""
    for at, word in enumerate(statement.words):
        if word.text not in _UNCERTAIN or not _is_modal(word, statement):
            continue
        following = statement.words[at + 1 : at + 2]  # "may be used" allows, "may not" forbids
        if following and following[0].content and following[0].stem in claim.stems:
            return True
    return False
