"""Exact comparison of a claim with a structured record: attributes, opening hours, ratings and counts.

A model that reads "outdoor seating: no" among thirty such facts often misses it; a look-up does not. Precision comes
first: what is not certain is left to the model.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from guardrail.scoring.record_attributes import Attributes
from guardrail.scoring.record_facts import Fact, FactKind
from guardrail.scoring.record_hours import Hours
from guardrail.scoring.record_words import CONTAINERS, PREFIXES, read
from guardrail.text.identifiers import same_length_fold, same_length_lower
from guardrail.types import Clash, ClashKind

_STARS = frozenset(("star", "stars"))
_RATINGS = frozenset(("rating", "score"))
_PLAIN = frozenset("overall average avg mean total of out".split())
_HALF = Decimal("0.5")
_RATED = re.compile(
    r"(?P<before>(?:[\w']+ ){0,4})(?<![\d.,$€£])(?P<amount>\d(?:\.\d{1,2})?)"
    r"(?:[ -]?(?P<star>stars?\b)(?: out of (?:5|five))?|(?P<scale> out of (?:5|five)\b| ?/ ?5\b)(?: stars?)?)"
)
_RATED_AS = re.compile(
    r"\b(?:rated|rating (?:of|is)|score of)(?P<before> (?:at |as |about |around |over |above |nearly |almost |only )*)"
    r"(?P<amount>\d{1,2}(?:\.\d{1,2})?)(?![\d%]|[.,]\d| ?/ ?(?!5\b)\d| out of (?!5|five)| ?(?:reviews|times|by|people))"
)
_REPORTED = re.compile(r"\b(?:review\w*|customers?|guests?|gave|diners?|visitors?|users?|critics?|michelin)\b")
_NOT_OVERALL = re.compile(
    r"\b(?:gives?|given by|between|ranging|ranges?|from \d|each|some|several|one|another|individual|would|could|might|"
    r"may|if|not|luxury|hotel|resort)\b|n't\b"
)
_OVERALL = re.compile(
    r"\b(?:review\w*|reviewers?|customers?|guests?|gave|gives?|given by|diners?|visitors?|users?|critics?|michelin|"
    r"between|ranging|ranges?|from \d|each|some|several|one|another|individual|would|could|might|may|if|not|n't|"
    r"luxury|hotel|resort)\b"
)
_OVERALL = re.compile(r"\b(?:overall|average|averages|averaging|its \d(?:\.\d)?[- ]?star rating)\b")
_MORE = re.compile(r"\b(?:over|above|more than|exceeding|at least|minimum of|upwards of)\s*$")
_LESS = re.compile(r"\b(?:under|below|less than|at most|up to)\s*$")
_ABOUT = re.compile(
    r"\b(?:about|around|nearly|almost|approximately|roughly|close to|just)(?: (?:over|under|above|below))?\s*$"
)
_RANGED = re.compile(
    r"\b(?:reviews?|ratings?)\b[^.,;]{0,30}?\brang(?:es?|ing|ed) (?:from|between) "
    r"(?P<said>(?P<low>\d(?:\.\d)?)(?: stars?)? (?:to|and|-) (?P<high>\d(?:\.\d)?))(?: out of 5)?[ -]stars?\b"
)
_COUNT_KEYS = frozenset(("count", "number", "num", "total", "amount", "quantity"))
_COUNTED = re.compile(
    r"(?P<before>(?:[a-z']+ ){0,3})(?<![\d.,$€£])(?P<amount>\d{1,3}(?:,\d{3})+|\d{1,9}) (?P<noun>[a-z]+)"
)
_COUNT_FRAMES = re.compile(r"\b(?:has|have|with|features?|offers?|includes?|employs?|on|of|are)(?: a)?(?: total of)? $")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Record:
    name: tuple[str, ...]
    row: bool
    source: str
    attributes: Attributes
    hours: Hours
    stars: Fact | None
    rating: Fact | None
    reviews: tuple[Decimal, Decimal] | None  # the lowest and the highest rating in the rows of the record
    counts: dict[str, Fact]


class RecordIndex:
    """The records of a context, ready for comparison.

    Building it is linear in the facts. It is read-only afterwards.

    Args:
        facts: The facts of all passages, from :func:`~guardrail.scoring.record_facts.record_facts`.

    Example:
        >>> from guardrail.scoring.record_facts import record_facts
        >>> index = RecordIndex(record_facts('{"name": "Elm Inn", "pool": false, "pets_allowed": true}'))
        >>> [(clash.claim_text, clash.evidence_text) for _, clash in index.clashes("The Elm Inn has a pool.")]
        [('a pool', 'pool: no')]
        >>> index.clashes("Pets are welcome, but there is no pool.")
        ()
    """

    def __init__(self, facts: Sequence[Fact]) -> None:
        groups: dict[tuple[str, int], list[Fact]] = defaultdict(list)
        for fact in facts:
            groups[fact.source, fact.record].append(fact)
        # The same record may have been retrieved twice.
        distinct = {tuple((fact.path, fact.value) for fact in group): group for group in reversed(groups.values())}
        kept = list(reversed(distinct.values()))
        self._records = [_record(group, _rows_of(at, kept)) for at, group in enumerate(kept)]

    def clashes(self, claim: str) -> tuple[tuple[str, Clash], ...]:
        """Find what a claim says that its record does not.

        A claim is compared with the record that it names; without a name only if there is just one record.

        Args:
            claim: One sentence of an answer.

        Returns:
            Each clash with the id of the passage that it comes from. The cost is linear in the claim.
        """
        record = self._meant(claim) if self._records else None
        if record is None:
            return ()
        found = record.attributes.clashes(claim) + record.hours.clashes(claim) + _numbers(record, claim)
        return tuple((record.source, clash) for clash in dict.fromkeys(found))

    def _meant(self, claim: str) -> _Record | None:
        words = [token.word for token in read(claim)]
        named = [record for record in self._records if record.name and _contains(words, record.name)]
        for rows in (True, False):
            chosen = [record for record in named if record.row is rows]
            # "Elm Inn Annex" is not the "Elm Inn", although its name is in it
            chosen = [r for r in chosen if not any(r is not o and _contains(o.name, r.name) for o in chosen)]
            if chosen:
                return chosen[0] if len(chosen) == 1 else None
        whole = [record for record in self._records if not record.row]
        return whole[0] if len(whole) == 1 else None


def record_clashes(claim: str, facts: Sequence[Fact]) -> tuple[Clash, ...]:
    """Find what a claim says that the record it speaks of does not; see :class:`RecordIndex` for many claims.

    Args:
        claim: One sentence of an answer.
        facts: The facts of the context.

    Returns:
        The clashes: ``contradicts`` is true where the record says otherwise, false where it does not say.

    Example:
        >>> from guardrail.scoring.record_facts import record_facts
        >>> facts = record_facts('{"delivery": null, "hours": {"Monday": "9:0-17:0"}, "stars": 4.0}')
        >>> [(c.evidence_text, c.contradicts) for c in record_clashes("They offer delivery; rated 4.5 stars.", facts)]
        [('delivery: not given', False), ('stars: 4.0', True)]
    """
    return tuple(clash for _, clash in RecordIndex(facts).clashes(claim))


def _rows_of(at: int, groups: Sequence[Sequence[Fact]]) -> list[Fact]:
    """The facts of the rows that stand in a record, which follow it."""
    rows: list[Fact] = []
    for group in groups[at + 1 :]:
        if not group[0].row or group[0].source != groups[at][0].source:
            break
        rows += group
    return rows


def _record(facts: Sequence[Fact], rows: Sequence[Fact]) -> _Record:
    first = facts[0]
    single = [fact.number for fact in rows if fact.number is not None and _STARS & set(fact.path[-1])]
    numbers = [fact for fact in facts if fact.kind is FactKind.NUMBER and not first.row]
    return _Record(
        name=tuple(token.word for token in read(first.subject) if token.word[0].isalnum()),
        row=first.row,
        source=first.source,
        attributes=Attributes(facts, first.subject),
        hours=Hours(facts),
        stars=_only([fact for fact in numbers if _about(fact) in _STARS]),
        rating=_only([fact for fact in numbers if _about(fact) in _RATINGS]),
        reviews=(min(single), max(single)) if len(single) > 1 and not first.row else None,
        counts=_counts(numbers),
    )


def _only(facts: Sequence[Fact]) -> Fact | None:
    return facts[0] if len({fact.number for fact in facts}) == 1 else None


def _about(fact: Fact) -> str:
    """The one word that a key is about; empty if there are several."""
    words = {word for key in fact.path for word in key} - PREFIXES - CONTAINERS - _PLAIN
    if words == {"star", "rating"}:
        return "star"
    return next(iter(words)) if len(words) == 1 else ""


def _counts(numbers: Sequence[Fact]) -> dict[str, Fact]:
    found: dict[str, list[Fact]] = defaultdict(list)
    for fact in numbers:
        words = set(fact.path[-1]) - PREFIXES - {"of", "the"}
        if _COUNT_KEYS & words and len(words - _COUNT_KEYS) == 1:
            found[next(iter(words - _COUNT_KEYS))].append(fact)
    return {word: facts[0] for word, facts in found.items() if len(facts) == 1}


def _contains(words: Sequence[str], name: Sequence[str]) -> bool:
    size = len(name)
    return any(tuple(words[i : i + size]) == tuple(name) for i in range(len(words) - size + 1))


def _numbers(record: _Record, claim: str) -> list[Clash]:
    if not any(map(str.isdecimal, claim)):
        return []
    low = same_length_lower(same_length_fold(claim))
    return _rated(record, low) + _ranged(record, low) + _counted(record, low)


def _ranged(record: _Record, low: str) -> list[Clash]:
    """The range of the single ratings, as a claim gives it."""
    match = _RANGED.search(low) if record.reviews else None
    if match is None or record.reviews is None:
        return []
    if (Decimal(match["low"]), Decimal(match["high"])) == record.reviews:
        return []
    evidence = f"{record.reviews[0]} to {record.reviews[1]}"
    return [Clash(kind=ClashKind.VALUE, claim_text=match["said"], evidence_text=evidence)]


def _rated(record: _Record, low: str) -> list[Clash]:
    if not (record.stars or record.rating):
        return []
    matches = [*_RATED.finditer(low)] or [*_RATED_AS.finditer(low)]
    if len(matches) != 1:
        return []
    match = matches[0]
    begin = max(low.rfind(mark, 0, match.start("amount")) for mark in (",", ";", " but ")) + 1
    end = min((at for at in (low.find(mark, match.end()) for mark in (",", ";", " but ")) if at >= 0), default=len(low))
    clause = low[begin:end]
    if not _OVERALL.search(clause) and (_REPORTED.search(low, 0, end) or _NOT_OVERALL.search(clause)):
        return []
    stars = "star" in match.groupdict() and match["star"] is not None
    fact = (record.stars or record.rating) if stars else (record.rating or record.stars)
    if fact is None or fact.number is None or fact.number > 5:
        return []
    amount, before = Decimal(match["amount"]), match["before"]
    if amount > 5 or not _differs(amount, fact.number, before):
        return []
    said = match[0][len(before) if "star" in match.groupdict() else 0 :].strip()
    return [Clash(kind=ClashKind.VALUE, claim_text=said, evidence_text=f"{fact.label}: {fact.value}")]


def _differs(amount: Decimal, known: Decimal, before: str) -> bool:
    if _ABOUT.search(before):
        return abs(amount - known) > _HALF
    if _MORE.search(before):
        return known < amount
    if _LESS.search(before):
        return known > amount
    if amount == amount.to_integral_value():
        return abs(amount - known) >= _HALF  # "4 stars" may round 4.3
    return amount != known and abs(amount - known) >= _HALF.scaleb(amount.as_tuple().exponent)  # type: ignore[arg-type]


def _counted(record: _Record, low: str) -> list[Clash]:
    found: list[Clash] = []
    for match in _COUNTED.finditer(low) if record.counts else ():
        noun = read(match["noun"])[0].word
        fact = record.counts.get(noun)
        if fact is None or fact.number is None or not _COUNT_FRAMES.search(match["before"]):
            continue
        if Decimal(match["amount"].replace(",", "")) != fact.number:
            said = f"{match['amount']} {match['noun']}"
            found.append(Clash(kind=ClashKind.VALUE, claim_text=said, evidence_text=f"{fact.label}: {fact.value}"))
    return found
