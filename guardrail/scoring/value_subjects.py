"""What a value is a value of: its subject, the noun it counts, what it measures."""

from __future__ import annotations

from itertools import takewhile

from guardrail.scoring.lexicon import LIGHT_VERBS
from guardrail.scoring.statements import Statement
from guardrail.text.values import Value, ValueKind

_NOUN_REACH = 24  # characters between a number and the noun it counts
CONJUNCTIONS = frozenset("and or but e o ed und oder et ou y".split())


def subject_of(claim: Statement, value: Value) -> frozenset[str]:
    """Stems of the words that say what the value is a value of."""
    clause = clause_of(claim, value)
    own = frozenset(w.stem for w in claim.content(clause) if w.text not in LIGHT_VERBS)
    colon = claim.text.rfind(": ", 0, value.start)
    if own and colon > 0:  # "Model A1: Price 84 EUR" speaks of the A1
        own |= frozenset(w.stem for w in claim.content() if w.start < colon)
    return own if own else frozenset(w.stem for w in claim.content() if w.text not in LIGHT_VERBS)


def clause_of(statement: Statement, value: Value) -> int | None:
    """The clause that a value stands in; ``None`` if no word stands before its end."""
    clause = None
    for word in statement.words:
        if word.start >= value.end:
            break
        clause = word.clause
    return clause


def is_denied(statement: Statement, value: Value) -> bool:
    """Whether something in the clause of a value is denied."""
    clause = clause_of(statement, value)
    return any(word.sign < 0 for word in statement.words if word.clause == clause)


def share_of(subject: frozenset[str], statement: Statement) -> float:
    """Share of the stems of a subject that a sentence has; 1 for a subject without any."""
    return len(subject & statement.stems) / len(subject) if subject else 1.0


def noun_of(statement: Statement, value: Value) -> str:
    """Stem of the noun that a bare number counts; ``""`` if it has a unit or counts nothing."""
    if value.kind not in (ValueKind.NUMBER, ValueKind.ORDINAL) or value.unit:
        return ""
    for word in statement.words:
        if word.start >= value.end:
            between = statement.text[value.end : word.start]
            if len(between) > _NOUN_REACH or any(mark in between for mark in ",;:.()|\n"):
                return ""
            if word.text == "of":
                continue
            return word.stem if word.content and not word.text.isdecimal() else ""
    return ""


def nouns_of(statement: Statement, value: Value) -> set[str]:
    """Stems of the words right after a number: adjectives may stand before the noun."""
    found: set[str] = set()
    for word in statement.words:
        if word.start < value.end:
            continue
        between = statement.text[value.end : word.start]
        if len(between) > _NOUN_REACH or any(mark in between for mark in ",;:.()|\n") or len(found) == 3:
            break
        if word.text in CONJUNCTIONS:
            break
        if word.content:
            found.add(word.stem)
    return found


def measured_by(claim: Statement, value: Value) -> frozenset[str]:
    """Stems of the words that say what a quantity is one of ("100 GB of disk space"); empty if none do."""
    after = [word for word in claim.words if word.start >= value.end]
    if not after or after[0].text != "of" or claim.text[value.end : after[0].start].strip():
        return frozenset()
    return frozenset(word.stem for word in takewhile(lambda word: word.content, after[1:]))
