"""What a claim says a thing has or is, against the attributes of its record."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from guardrail.scoring.record_assertions import Assertion, assertions
from guardrail.scoring.record_facts import Fact, FactKind
from guardrail.scoring.record_words import CONTAINERS, PREFIXES, SUBJECTS, bare, key_words, read
from guardrail.types import Clash, ClashKind

_TYPED = (FactKind.YES, FactKind.NO, FactKind.UNKNOWN)
_PREPOSITIONS = frozenset(
    "in on at for from of by during to within inside behind throughout via through about across into onto over under "
    "around along beside between against toward towards like".split()
)
_EMPTY = frozenset(
    "a an the its their his her our some any both either also currently only just no not neither nor every each this "
    "that these those all and or being "
    "it they is are be in on at for of to by very quite fully always even well too such "
    "additionally furthermore moreover".split()
)
_HARMLESS = frozenset(
    "free private ample complimentary convenient large small spacious limited additional dedicated own many various "
    "several comfortable secure available on-site onsite site beautiful nice cozy great good excellent fast "
    "reliable full".split()
)
_FOLLOWERS = frozenset(
    "service option access facility area space spot availability available friendly good here customer guest "
    "visitor everyone".split()
)
_FIT = frozenset("good great excellent ideal perfect suitable fine".split())
_MOODS = frozenset("ambience mood style attire noise good decor".split())
_KINDS = frozenset("bike motorcycle trailer bus truck".split())  # another kind of a thing, not the thing with a quality


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attribute:
    words: frozenset[str]
    parents: frozenset[str]
    frame: str
    kind: FactKind
    said: str
    value: str


class Attributes:
    """The attributes of one record, searchable by word.

    Args:
        facts: Its facts; those that are neither yes, no nor unknown are ignored.
        subject: Name of the record.

    Example:
        >>> from guardrail.scoring.record_facts import record_facts
        >>> found = Attributes(record_facts('{"OutdoorSeating": false, "WiFi": null}'))
        >>> [(c.evidence_text, c.contradicts) for c in found.clashes("It has outdoor seating and free WiFi.")]
        [('outdoor seating: no', True), ('WiFi: not given', False)]
    """

    def __init__(self, facts: Sequence[Fact], subject: str = "") -> None:
        self._named = SUBJECTS | {token.word for token in read(subject)}
        self._by_word: dict[str, list[_Attribute]] = defaultdict(list)
        known: dict[tuple[frozenset[str], frozenset[str]], _Attribute | None] = {}
        for attribute in (*_leaves(facts), *_groups(facts)):
            key = attribute.words, attribute.parents
            before = known.get(key, attribute)
            known[key] = attribute if before is not None and before.kind is attribute.kind else None
        for found in known.values():
            for word in found.words if found else ():
                self._by_word[word].append(found)  # type: ignore[arg-type]

    def clashes(self, claim: str) -> list[Clash]:
        """What a claim asserts or denies and the record does not.

        Args:
            claim: One sentence.

        Returns:
            One clash per attribute at most, in the order of the claim.
        """
        if not self._by_word:
            return []
        found: dict[str, Clash] = {}
        for assertion in assertions(claim):
            for attribute, clash in self._compare(assertion, claim):
                found.setdefault(attribute.said, clash)
        return list(found.values())

    def _compare(self, assertion: Assertion, claim: str) -> Iterator[tuple[_Attribute, Clash]]:
        phrase = _Phrase(assertion)
        best = self._best(assertion, phrase)
        if best is None:
            return
        attribute, matched = best
        contradicts = _objection(assertion.sign, attribute, phrase, matched)
        if contradicts is None:
            return
        start, end = assertion.tokens[0].start, assertion.tokens[-1].end
        evidence = f"{attribute.said}: {'not given' if attribute.kind is FactKind.UNKNOWN else attribute.value}"
        yield (
            attribute,
            Clash(
                kind=ClashKind.NEGATION,
                claim_text=claim[start:end],
                evidence_text=evidence,
                contradicts=contradicts,
            ),
        )

    def _best(self, assertion: Assertion, phrase: _Phrase) -> tuple[_Attribute, frozenset[str]] | None:
        """The attribute that shares most words with a phrase; none if two that disagree share as many."""
        scored: list[tuple[int, _Attribute, frozenset[str]]] = []
        for word in phrase.words | (assertion.shared & {"good"}):
            for attribute in self._by_word.get(word, ()):
                matched = self._match(assertion, phrase, attribute)
                if matched:
                    scored.append((len(matched), attribute, matched))
        if not scored:
            return None
        most = max(score for score, *_ in scored)
        top = [(attribute, matched) for score, attribute, matched in scored if score == most]
        return top[0] if len({attribute.kind for attribute, _ in top}) == 1 else None

    def _match(self, assertion: Assertion, phrase: _Phrase, attribute: _Attribute) -> frozenset[str]:
        words = phrase.words | (assertion.shared & {"good"})
        own, parents = attribute.words, attribute.parents
        if not own <= words or ("good" in parents and "good" not in words):
            return frozenset()
        if attribute.frame == "allow" and assertion.frame not in ("allow", "") and "friendly" not in words:
            return frozenset()
        if (attribute.frame == "need") != (assertion.frame == "need") and assertion.frame:
            return frozenset()
        near = parents & (words | assertion.shared | set(assertion.subject))
        if assertion.frame == "is" and not set(assertion.subject) <= self._named | parents | _EMPTY:
            return frozenset()
        if parents and not near:
            alone = phrase.words - own - _EMPTY - _HARMLESS - _FOLLOWERS <= PREFIXES and not parents & _MOODS
            if assertion.frame == "is":
                alone = phrase.words == own
            if not alone:
                return frozenset()
        matched = own | near
        return matched if phrase.is_about(matched) else frozenset()


class _Phrase:
    """The words of an assertion: the noun with what stands before it, and what follows a preposition."""

    def __init__(self, assertion: Assertion) -> None:
        self.frame = assertion.frame
        self.order: list[str] = []
        self.core = 0  # how many words stand before the first preposition
        open_ = True
        for token in assertion.tokens:
            if token.word in _PREPOSITIONS and (self.order or self.frame != "is"):
                open_ = False
            if token.word not in _EMPTY and token.word[0].isalnum():
                self.order.append(token.word)
                self.core += open_
        raw = [token.word for token in assertion.tokens]
        fit = any(word == "good" and following == "for" for word, following in pairwise(raw))
        fit = fit or (self.frame == "is" and "for" in raw and bool(_FIT & set(raw[: raw.index("for")])))
        self.good = frozenset(("good",)) if fit or "friendly" in raw else frozenset()
        self.words = frozenset(self.order) - {"good"} | self.good
        self.foreign = any(token.word in ("non", "anti") for token in assertion.tokens)

    def is_about(self, matched: frozenset[str]) -> bool:
        """Whether the matched words are what the phrase names, and not a part of another name."""
        at = [i for i, word in enumerate(self.order) if word in matched]
        if not at or self.foreign:
            return False
        present = matched & self.words
        if len(present) == 1 and at[0] >= self.core:
            return False  # "discounts on delivery"
        end = self.core if at[-1] < self.core else len(self.order)
        followers = _FOLLOWERS | SUBJECTS if self.frame == "is" else _FOLLOWERS
        return all(word in followers or word[0].isdigit() for word in self.order[at[-1] + 1 : end])

    def before(self, matched: frozenset[str]) -> frozenset[str]:
        """The words that narrow the name."""
        first = next(i for i, word in enumerate(self.order) if word in matched)
        return frozenset(self.order[:first])


def _objection(sign: int, attribute: _Attribute, phrase: _Phrase, matched: frozenset[str]) -> bool | None:
    """Whether the record says otherwise; ``None`` if it does not object."""
    kind = attribute.kind
    extra = phrase.words - matched - _FOLLOWERS
    if not sign:
        return True if kind is not FactKind.UNKNOWN and not extra - PREFIXES else None
    if sign < 0:
        if extra - PREFIXES or kind is FactKind.NO:
            return None
        return kind is FactKind.YES
    if kind is FactKind.YES:
        values = key_words(attribute.value)
        partly = ("free" in extra and values == ("paid",)) or ("fullbar" in extra and "beerwine" in values)
        return True if partly else None
    narrowed = phrase.before(matched)
    if narrowed & _KINDS or any(word.endswith("ing") and word not in matched for word in narrowed):
        return None
    return kind is FactKind.NO and not narrowed - _HARMLESS - PREFIXES


def _leaves(facts: Sequence[Fact]) -> Iterator[_Attribute]:
    for fact in facts:
        if fact.kind in _TYPED:
            attribute = _attribute(fact.path, fact.kind, fact.label, fact.value)
            if attribute:
                yield attribute


def _groups(facts: Sequence[Fact]) -> Iterator[_Attribute]:
    """Groups of yes and no as attributes of their own: there is parking if there is parking of some kind."""
    children: dict[tuple[tuple[str, ...], ...], list[Fact]] = defaultdict(list)
    for fact in facts:
        if len(fact.path) > 1:
            children[fact.path[:-1]].append(fact)
    for path, members in children.items():
        kinds = {fact.kind for fact in members}
        if not kinds <= set(_TYPED) or not bare(members[0].path[-1])[0]:
            continue
        kind = next(kind for kind in (FactKind.YES, FactKind.UNKNOWN, FactKind.NO) if kind in kinds)
        value = ", ".join(f"{' '.join(m.path[-1])} {m.value}" for m in members)
        attribute = _attribute(path, kind, " ".join(path[-1]), value)
        if attribute and not attribute.words <= CONTAINERS | PREFIXES and "good" not in attribute.words:
            yield attribute


def _attribute(path: tuple[tuple[str, ...], ...], kind: FactKind, said: str, value: str) -> _Attribute | None:
    own, frame = bare(path[-1])
    above = path[:-1]
    if not own and above:  # "parking": {"available": true}
        own = bare(above[-1])[0]
        above = above[:-1]
    if not own or not all(word[0].isalpha() for word in own):
        return None
    parents = frozenset(word for words in above for word in bare(words)[0]) - CONTAINERS - PREFIXES - own
    return _Attribute(words=own, parents=parents, frame=frame, kind=kind, said=said, value=value)
