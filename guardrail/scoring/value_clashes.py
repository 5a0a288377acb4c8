"""Numbers, dates and times of a claim that its evidence does not give."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from guardrail.scoring.identifier_clashes import identifier_clash
from guardrail.scoring.lexicon import LIGHT_VERBS
from guardrail.scoring.statements import Statement, coverage
from guardrail.scoring.value_subjects import (
    CONJUNCTIONS,
    clause_of,
    is_denied,
    measured_by,
    noun_of,
    nouns_of,
    share_of,
    subject_of,
)
from guardrail.text.values import Value, ValueKind, compatible
from guardrail.types import Clash, ClashKind

_SAME_SUBJECT = 0.5  # share of the claim's words a sentence must have to speak of the same thing
_CERTAIN_SUBJECT = 0.8
_SAME_CLAIM = 0.4  # ... and of all the words of the claim, with the clauses that say more
_SHARED_WORDS = 2
_BINDING = 0.75  # ... to be the one that the claim takes its subject from
_BINDING_LEAD = 0.3  # ... and how much better it must fit than the sentence that has the value
_CONVERSION = Decimal("0.03")  # by how much a conversion may be rounded, as a share
_DEGREES = Decimal(3)  # ... or in kelvin
_SMALL_COUNT = 12  # counts of listed things are often not written out in the evidence
_PRONOUNS = frozenset(
    "it its he she his her they their this that these those there such both esso essa questo questa lui lei sie er es "
    "ihr ihre diese dieser il elle ils elles sa son ella él".split()
)
_UNIVERSAL = frozenset("all every each both always tutti tutte jeder jede alle tous toutes todos todas".split())
_MORE = frozenset(
    "another other others more additional further also altro altri andere autre autres otro otros".split()
)
_EXCEPT = r"(?:of the week|a week)?,?\s*(?:but|except|excluding|other than|apart from)(?: for)?(?: on)?\s*"
_BETWEEN = re.compile(rf"\s*{_EXCEPT}", re.IGNORECASE)
_EXCEPTED = re.compile(rf"(?:days?|daily|week)\s*{_EXCEPT}\Z", re.IGNORECASE)
_CLASH_KINDS = {ValueKind.DATE: ClashKind.DATE, ValueKind.WEEKDAY: ClashKind.DATE, ValueKind.TIME: ClashKind.DATE}


@dataclass(frozen=True, slots=True)
class _Match:
    """How one evidence sentence relates to one value of the claim."""

    statement: Statement
    agrees: bool
    value: Value
    coverage: float
    subject: frozenset[str]

    @property
    def own(self) -> frozenset[str]:
        """Stems of what else the sentence speaks of."""
        stems = frozenset(word.stem for word in self.statement.content() if word.text not in LIGHT_VERBS)
        return stems - self.subject


def value_clashes(claim: Statement, evidence: Sequence[Statement], context: frozenset[str]) -> list[Clash]:
    """Compare every value of a claim with the values of its evidence.

    Args:
        claim: The claim.
        evidence: Evidence sentences, best first.
        context: Stems that the claim leaves to the question ("12 euro." after "What does a permit cost?").

    Returns:
        One clash per value that no sentence about the same subject gives.
    """
    found: list[Clash] = []
    for value in claim.values:
        if value.kind.is_identifier:
            clash = identifier_clash(value, evidence)
        elif _is_conversion(claim, value):
            continue
        else:
            clash = _amount_clash(claim, value, evidence, context)
        if clash is not None:
            found.append(clash)
    return found


def _is_conversion(claim: Statement, value: Value) -> bool:
    """Whether a value only repeats the one before its bracket in another unit: "350°F (175°C)"."""
    for other in claim.values:
        if 0 < value.start - other.end <= 2 and "(" in claim.text[other.end : value.start]:
            pairs = [(mine, its) for mine in value.readings for its in other.readings]
            return any(
                mine.dimension == its.dimension
                and mine.symbol != its.symbol
                and _is_close(mine.dimension, mine.low, its.low)
                and _is_close(mine.dimension, mine.high, its.high)
                for mine, its in pairs
            )
    return False


def _is_close(dimension: str, mine: Decimal, its: Decimal) -> bool:
    room = _DEGREES if dimension == "temperature" else _CONVERSION * abs(its)
    return abs(mine - its) <= room


def _amount_clash(
    claim: Statement, value: Value, evidence: Sequence[Statement], context: frozenset[str]
) -> Clash | None:
    subject = subject_of(claim, value) | context
    noun = noun_of(claim, value)
    universal = _is_universal(claim, value)
    matches = [
        match for statement in evidence if (match := _match(value, noun, universal, statement, subject)) is not None
    ]
    agreeing = [match for match in matches if match.agrees]
    differing = [match for match in matches if not match.agrees]
    if agreeing:
        if any(other is not value and compatible(value, other) is not None for other in claim.values):
            return None  # a claim that gives several such values binds each in its own words
        return _binding_clash(claim, value, noun, agreeing, differing) or _clash_within(value, noun, agreeing, subject)
    if value.days and _EXCEPTED.search(claim.text[: value.start]):
        return None  # "but Sunday": that no sentence gives it is what is said
    days = value.days - _excepted(claim, value)
    if days and any(days <= _days_of(statement) for statement in evidence):
        return None  # "at weekends", where a sentence gives Saturday and Sunday
    if differing:
        best = max(differing, key=lambda match: match.coverage)
        if _is_small_count(value) and not _is_only_count(noun, best):
            return None
        if is_denied(claim, value) != is_denied(best.statement, best.value):
            return None  # "was not the first": another value is what a denial expects
        if value.kind is ValueKind.ORDINAL and (not noun or noun not in nouns_of(best.statement, best.value)):
            return None
        contradicts = (
            value.kind is not ValueKind.WEEKDAY
            and _same_thing(claim, value, noun, best)
            and not _is_spoken_for(claim, value, best.statement)
        )
        if _vaguely_given(claim, value, evidence, best.coverage - _BINDING_LEAD if contradicts else 0.0, subject):
            return None
        return _clash(value, best.value, contradicts=contradicts and not _spans(value, evidence))
    if (
        _is_small_count(value)
        or value.kind is ValueKind.ORDINAL
        or _vaguely_given(claim, value, evidence, 0.0, subject)
    ):
        return None
    return _unit_clash(value, evidence, subject) or _clash(value, None, contradicts=False)


def _excepted(claim: Statement, value: Value) -> frozenset[int]:
    """The days that a claim takes out: "every day but Tuesday"."""
    after = next((other for other in claim.values if value.days and other.days and other.start >= value.end), None)
    if after is None or not _BETWEEN.fullmatch(claim.text, value.end, after.start):
        return frozenset()
    return after.days


def _days_of(statement: Statement) -> frozenset[int]:
    return frozenset().union(*(value.days for value in statement.values))


def _clash(value: Value, other: Value | None, *, contradicts: bool) -> Clash:
    kind = _CLASH_KINDS.get(value.kind, ClashKind.VALUE)
    if other is not None and value.unit != other.unit and value.amount is not None and value.amount == other.amount:
        kind = ClashKind.UNIT
    return Clash(kind=kind, claim_text=value.text, evidence_text=other.text if other else "", contradicts=contradicts)


def _is_universal(claim: Statement, value: Value) -> bool:
    """Whether a bound is said of everything; "every 5-7 minutes" is only how often."""
    ranged = value.bound is not None or value.high is not None
    clause = clause_of(claim, value)
    said_of = (word for word in claim.words if word.text in _UNIVERSAL and word.clause == clause)
    return ranged and any(claim.text[word.start + len(word.text) : value.start].strip() for word in said_of)


def _match(value: Value, noun: str, universal: bool, statement: Statement, subject: frozenset[str]) -> _Match | None:
    answers = [(other, answer) for other in statement.values if (answer := compatible(value, other)) is not None]
    if not answers:
        return None
    if noun:
        same_noun = [(other, answer) for other, answer in answers if noun in nouns_of(statement, other)]
        if same_noun:  # "seventh and final season": a value without a noun of its own shares the next one
            answers = same_noun + [(v, answer) for v, answer in answers if answer and not nouns_of(statement, v)]
    agreeing = [other for other, answer in answers if answer]
    differing = [other for other, answer in answers if not answer]
    agrees = bool(agreeing) and not (universal and differing)
    rival = next((other for other in differing if other.amount == value.amount), differing[0]) if differing else None
    other = agreeing[0] if agrees or rival is None else rival
    return _Match(statement, agrees, other, share_of(subject, statement), subject)


def _same_thing(claim: Statement, value: Value, noun: str, match: _Match) -> bool:
    """Whether a sentence gives another value for the very thing the claim speaks of."""
    denied = frozenset(word.stem for word in claim.words if word.sign < 0)
    if match.coverage < _SAME_SUBJECT or (
        claim.stems > denied and coverage(claim, match.statement, denied) < _SAME_CLAIM
    ):
        return False
    shared = len(match.subject & match.statement.stems)
    if shared < min(len(match.subject), _SHARED_WORDS) and not _shares_a_name(claim, match.statement):
        return False  # one word of two: a melting point is no boiling point
    if noun:
        others = nouns_of(match.statement, match.value)
        return noun in others or (not others and match.coverage >= _CERTAIN_SUBJECT)
    anchor = _anchor(claim, value)
    label = _label(claim, value)
    if label and label != _label(match.statement, match.value):
        return False  # "carbon 14" is no other number of protons
    return not anchor or anchor in match.statement.stems or match.coverage >= _CERTAIN_SUBJECT


def _shares_a_name(claim: Statement, statement: Statement) -> bool:
    return any(word.name and word.content and word.stem in statement.stems for word in claim.words)


def _label(statement: Statement, value: Value) -> str:
    """Stem of the word right before a bare number, if that is a content word: "locker 42", "seats 800"."""
    if value.kind is not ValueKind.NUMBER or value.dates:
        return ""
    before = next((word for word in reversed(statement.words) if word.start < value.start), None)
    return before.stem if before is not None and before.content else ""


def _anchor(claim: Statement, value: Value) -> str:
    """Stem of the nearest word before a value that says what it measures."""
    anchor = ""
    clause = clause_of(claim, value)
    for word in claim.words:
        if word.start >= value.start:
            break
        if word.content and word.clause == clause and word.text not in LIGHT_VERBS:
            anchor = word.stem
    return anchor


def _binding_clash(
    claim: Statement, value: Value, noun: str, agreeing: Sequence[_Match], differing: Sequence[_Match]
) -> Clash | None:
    """The value is there, but said of another subject: "The kettle weighs 1.9 kg" for the toaster."""
    if not differing:
        return None
    has = max(agreeing, key=lambda match: match.coverage)
    owner = max(differing, key=lambda match: match.coverage)
    if owner.coverage < _BINDING or owner.coverage - has.coverage < _BINDING_LEAD or not has.own:
        return None
    if any(_starts_with_pronoun(match.statement) for match in agreeing):
        return None
    if noun and noun not in nouns_of(owner.statement, owner.value):
        return None
    if coverage(claim, owner.statement) <= coverage(claim, has.statement):
        return None  # as a whole the claim says what the sentence with its value says
    if value.kind is ValueKind.WEEKDAY or (_is_small_count(value) and not noun):
        return None
    anchor = _anchor(claim, value)
    if anchor and anchor not in owner.statement.stems:
        return None
    return _clash(value, owner.value, contradicts=True)


def _clash_within(value: Value, noun: str, agreeing: Sequence[_Match], subject: frozenset[str]) -> Clash | None:
    """One sentence gives the value to one subject and another value to the claim's subject."""
    found: Clash | None = None
    for match in agreeing:
        answers = [(v, a) for v in match.statement.values if (a := compatible(value, v)) is not None]
        regions = [(v, answer, _region(match.statement, v, [o for o, _ in answers])) for v, answer in answers]
        mine = [(_share(subject, words), words - subject) for _, answer, words in regions if answer]
        its = [(_share(subject, words), v) for v, answer, words in regions if not answer]
        if not its or noun:
            return None
        has, own = max(mine, key=lambda pair: pair[0])
        owns, owner = max(its, key=lambda pair: pair[0])
        if not subject & _region_of(regions, answers=True) <= _region_of(regions, answers=False):
            return None  # "a median of 30 and a mean of 44": the claim names the first as well
        if owns < _BINDING or owns - has < _BINDING_LEAD or not own:
            return None
        found = _clash(value, owner, contradicts=True)
    return found


def _region_of(regions: Sequence[tuple[Value, bool, frozenset[str]]], *, answers: bool) -> frozenset[str]:
    return frozenset().union(*(words for _, answer, words in regions if answer is answers))


def _share(subject: frozenset[str], words: frozenset[str]) -> float:
    return len(subject & words) / len(subject) if subject else 0.0


def _region(statement: Statement, value: Value, rivals: Sequence[Value]) -> frozenset[str]:
    """Stems around a value: from the rival before it to the end of its own clause, where its subject stands."""
    start = max((other.end for other in rivals if other.end <= value.start), default=0)
    clause = clause_of(statement, value)
    found: set[str] = set()
    for word in statement.words:
        if word.start >= value.end and (word.clause != clause or word.text in CONJUNCTIONS):
            break
        if word.start >= start and word.content and word.text not in LIGHT_VERBS:
            found.add(word.stem)
    return frozenset(found)


def _starts_with_pronoun(statement: Statement) -> bool:
    return any(word.text in _PRONOUNS for word in statement.words[:2])


def _is_small_count(value: Value) -> bool:
    return (
        value.kind is ValueKind.NUMBER
        and not value.unit
        and value.amount is not None
        and 0 <= value.amount <= _SMALL_COUNT
        and value.amount == value.amount.to_integral_value()
    )


def _is_spoken_for(claim: Statement, value: Value, statement: Statement) -> bool:
    """Whether every value a sentence could hold against this one belongs to another value of the claim."""
    others = [other for other in claim.values if other is not value]
    rivals = [rival for rival in statement.values if compatible(value, rival) is False]
    return bool(others) and all(any(compatible(other, rival) for other in others) for rival in rivals)


def _is_only_count(noun: str, match: _Match) -> bool:
    """Whether a sentence counts the same things once: "four men and two women" also has six people."""
    if not noun or noun not in nouns_of(match.statement, match.value) or match.value.amount in (0, 1):
        return False
    counts = [v for v in match.statement.values if v.kind is ValueKind.NUMBER and not v.unit and not v.dates]
    return sum(noun in nouns_of(match.statement, v) for v in counts) == 1 and not any(
        word.text in _MORE for word in match.statement.words
    )


def _spans(value: Value, evidence: Sequence[Statement]) -> bool:
    """Whether a range only puts together what two sentences give: "20 to 30" and "up to 40"."""
    if value.high is None:
        return False
    ends = [(other.amount, other.high) for statement in evidence for other in statement.values]
    return any(value.amount in end for end in ends) and any(value.high in end for end in ends)


def _vaguely_given(
    claim: Statement, value: Value, evidence: Sequence[Statement], least: float, subject: frozenset[str]
) -> bool:
    """Whether a sentence with that share of the subject gives the bare number, without its unit or noun."""
    if value.kind in (ValueKind.TIME, ValueKind.DATE, ValueKind.WEEKDAY):
        return False
    if value.kind is ValueKind.NUMBER and not noun_of(claim, value):
        return any(  # "costs 120" leaves out the unit that the evidence has
            bool(other.unit) and (other.amount, other.high) == (value.amount, value.high)
            for statement in evidence
            if share_of(subject, statement) >= max(least, _SAME_SUBJECT)
            for other in statement.values
        )
    measured = measured_by(claim, value)
    bare = {
        (other.amount, other.high)
        for statement in evidence
        if (not least or share_of(subject, statement) >= least) and (not measured or measured & statement.stems)
        for other in statement.values
        if other.kind is ValueKind.NUMBER and not noun_of(statement, other) and other.amount is not None
    }
    return (value.amount, value.high) in bare and value.kind is ValueKind.QUANTITY


def _unit_clash(value: Value, evidence: Sequence[Statement], subject: frozenset[str]) -> Clash | None:
    """The same figure in another unit: "12 euro" for "12%"."""
    for statement in evidence:
        if share_of(subject, statement) < _CERTAIN_SUBJECT or not subject:
            continue
        for other in statement.values:
            if other.amount is not None and other.amount == value.amount and other.unit and value.unit:
                return Clash(kind=ClashKind.UNIT, claim_text=value.text, evidence_text=other.text, contradicts=True)
    return None


def question_context(claim: Statement, question: Statement | None) -> frozenset[str]:
    """Stems that a very short answer takes from its question."""
    if question is None or len(claim.content()) > 1:
        return frozenset()
    return frozenset(w.stem for w in question.content() if w.text not in LIGHT_VERBS)
