"""Names: who did what to whom, who said it, and whom a pronoun means."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Sequence

from guardrail.training.perturb.draft import Draft, outside
from guardrail.training.perturb.material import Document, names_in
from guardrail.training.perturb.words import third, verbs

_VERBS = verbs()
_PLACE_BEFORE = re.compile(r"\b(?:in|at|from|near|to|across|of) (?:the )?$")
_SYMMETRIC = re.compile(
    r"\b(?:and|or|with|between|married|met|both|versus|vs|near|border\w*|including|such as|like)\b|[,;(]", re.IGNORECASE
)
_ROLE = "|".join(
    sorted(
        {*_VERBS, *(third(v[0]) for v in _VERBS.values())} - {"married", "met", "marry", "meet", "marries"},
        key=len,
        reverse=True,
    )
)
_DOES = re.compile(rf"^(?:'s)? ?(?:\w+ly )?(?:had |has |was |were |is |later )?(?:{_ROLE})\b")
_SPEAKER = re.compile(
    r"(?:[Aa]ccording to|(?:said|says|told by|reported by|stated by)) ((?:[A-Z][\w'’-]+ ?){1,4})(?=[,.]"
    r"| (?:in|on|who)\b)"
    r"|((?:[A-Z][\w'’-]+ ){1,4})(?=(?:said|says|told|stated|argued|argues|claimed|explained|wrote|testified)\b)"
)
_SUBJECT = re.compile(
    r"^((?:The|A|An|His|Her|Their|Some|Most|Many)(?: [a-z][\w’'-]+){1,3}?"
    r"|(?:The )?[A-Z][\w’'.-]+(?: [A-Z][\w’'.-]+){0,3})"
    r" ((?:is|was|are|were|has|had|have|will|can|may|could|should|must|became|began|won|lost|made|took"
    r"|gave|died|went|said|wrote|scored|threw"
    r"|led|ran|came|began|founded|built|killed|used|moved|returned|received|announced|played|served|worked)\b.*)$"
)
_DETERMINERS = frozenset("The A An His Her Their Some Most Many".split())
_PLURAL_VERB = frozenset("are were have".split())
_SINGULAR_VERB = frozenset("is was has".split())
_ACTIVE = re.compile(
    r"^((?:The )?[A-Z][\w’'-]+(?: [A-Z][\w’'-]+){0,2}|The [a-z]+(?: [a-z]+)?) ([a-z]+) "
    r"((?:the|a|an) (?:[a-z-]+ ){0,2}?[a-z-]+|(?:the )?[A-Z][\w’'-]+(?: [A-Z][\w’'-]+){0,3})((?: (?:in|on"
    r"|for|during|at) [\w ,]+)?)\.$"
)
_NO_PASSIVE = frozenset(
    "become come go get leave live die work say think know return rise fall speak agree arrive happen "
    "remain need want win join reach marry run lose have".split()
)


def wrong_name(draft: Draft, rng: random.Random, document: Document, foreign: Sequence[str]) -> bool:
    """Exchange a name for another one of the document, or of another document.

    Args:
        draft: The sentence; changed in place.
        rng: Decides which name, and for which.
        document: Where the sentence comes from.
        foreign: Names of other documents.

    Returns:
        Whether there was a name and another one for its place.
    """
    spans = [s for s in names_in(draft.text) if _free(draft, *s) and draft.text[s[0] : s[1]] in document.text]
    spans = [s for s in spans if " " in draft.text[s[0] : s[1]] or draft.text[s[0] : s[1]] in document.names]
    if not spans:
        return False
    start, end = rng.choice(spans)
    name = draft.text[start:end]
    others = fitting(name, document.names if rng.random() < 0.75 else foreign, document, draft.text)
    if not others:
        others = fitting(name, foreign, document, draft.text)
        others = [other for other in others if other not in document.text]
    return bool(others) and draft.replace(start, end, rng.choice(others), wrong=True)


def fitting(name: str, pool: Sequence[str], document: Document, sentence: str) -> list[str]:
    """Names that could stand in the place of one and are not parts of it or of the sentence."""
    parts = set(name.lower().split())
    place = _is_place(name, document.text)
    return [
        other
        for other in pool
        if other not in sentence
        and abs(len(other.split()) - len(parts)) <= 1
        and not parts & set(other.lower().split())
        and name.isupper() == other.isupper()
        and name.endswith("s") == other.endswith("s")
        and (other not in document.text or _is_place(other, document.text) == place)
        and not any(p[:4] == q[:4] for p in parts for q in other.lower().split())
    ]


def _is_place(name: str, text: str) -> bool:
    at = text.find(name)
    while at >= 0:
        if _PLACE_BEFORE.search(text, max(0, at - 12), at):
            return True
        at = text.find(name, at + 1)
    return False


def swapped_roles(draft: Draft, rng: random.Random) -> bool:
    """Let two names around a verb change places.

    Example:
        >>> draft = Draft("In 1932 Anna Rossi defeated Carla Bruni.")
        >>> swapped_roles(draft, random.Random(1)), draft.text, draft.spans
        (True, 'In 1932 Carla Bruni defeated Anna Rossi.', [(8, 19), (29, 39)])
    """
    spans = names_in(draft.text)
    first = re.match(r"[A-Z][a-z]+(?= (?:[a-z]+ed|beat|led|won|told|shot|met|gave|threw)\b)", draft.text)
    if first and (not spans or spans[0][0] > 0) and first[0] not in ("The", "He", "She", "It", "They", "Who"):
        spans = [first.span(), *spans]
    pairs = []
    for (a, b), (c, d) in itertools.pairwise(spans):
        between = draft.text[b:c]
        if (
            _DOES.match(between)
            and not _SYMMETRIC.search(between)
            and len(between) < 40
            and draft.text[d : d + 2] not in ("'s", "’s")
        ):
            pairs.append((a, b, c, d))
    pairs = [p for p in pairs if _free(draft, p[0], p[3]) and draft.text[p[0] : p[1]] != draft.text[p[2] : p[3]]]
    if not pairs:
        return False
    a, b, c, d = rng.choice(pairs)
    left, right = draft.text[a:b], draft.text[c:d]
    return draft.replace(c, d, left, wrong=True) and draft.replace(a, b, right, wrong=True)


def wrong_speaker(draft: Draft, rng: random.Random, document: Document, foreign: Sequence[str]) -> bool:
    """Let somebody else have said it."""
    found = list(outside(draft, _SPEAKER))
    if not found:
        return False
    match = rng.choice(found)
    group = 1 if match[1] else 2
    start = match.start(group)
    name = match[group].strip()
    pool = [n for n in document.names if document.is_person(n)] or list(foreign)
    others = [o for o in pool if not set(o.split()) & set(name.split()) and o not in draft.text]
    if not others or name.split()[0] in _DETERMINERS or name in ("He", "She", "They", "It"):
        return False
    return draft.replace(start, start + len(name), rng.choice(others), wrong=True)


def split_subject(sentence: str) -> tuple[str, str] | None:
    """Subject and predicate of a simple sentence.

    Example:
        >>> split_subject("The old mill was sold in 1932.")
        ('The old mill', 'was sold in 1932.')
    """
    found = _SUBJECT.match(sentence)
    if not found or found[1] in (
        "It",
        "He",
        "She",
        "They",
        "There",
        "This",
        "That",
        "These",
        "You",
        "What",
        "Who",
        "Which",
        "If",
        "When",
        "One",
    ):
        return None
    return found[1], found[2]


def wrong_join(draft: Draft, rng: random.Random, other: str) -> bool:
    """Say of this sentence's subject what the document says of another one.

    Args:
        draft: The sentence; changed in place.
        rng: Decides between taking the predicate and adding it.
        other: Another sentence of the document.

    Returns:
        Whether both sentences could be cut, have different subjects, and agree in number.
    """
    mine, theirs = split_subject(draft.text), split_subject(other)
    if draft.spans or not mine or not theirs:
        return False
    if (mine[0].split()[0] in _DETERMINERS) != (theirs[0].split()[0] in _DETERMINERS):
        return False  # a name and a description can mean the same
    own, their = {w.lower() for w in mine[0].split()}, {w.lower() for w in theirs[0].split()}
    if own & their - {"the", "a", "an"} or _number(mine) != _number(theirs):
        return False
    said = set(theirs[1].split())
    if len(said & set(mine[1].split())) * 2 > len(said):
        return False  # nearly the same is said of both
    if rng.random() < 0.5:
        draft.text = f"{mine[0]} {theirs[1]}"
        return draft.mark(len(mine[0]) + 1, len(draft.text) - 1)
    if len(draft.text.split()) > 24 or re.search(r"\b(?:if|that|which|who|when)\b", mine[1]):
        return False
    body = draft.text[:-1]
    draft.text = f"{body} and {theirs[1]}"
    return draft.mark(len(body) + 5, len(draft.text) - 1)


def _number(parts: tuple[str, str]) -> str:
    verb = parts[1].split(" ", 1)[0]
    return "p" if verb in _PLURAL_VERB else "s" if verb in _SINGULAR_VERB else "p" if parts[0].endswith("s") else "s"


def passive(draft: Draft) -> bool:
    """Turn a simple active sentence around without changing what it says.

    Example:
        >>> draft = Draft("Anna Rossi designed the bridge in 1932.")
        >>> passive(draft), draft.text
        (True, 'The bridge was designed by Anna Rossi in 1932.')
    """
    found = _ACTIVE.match(draft.text)
    if not found or found[2] not in _VERBS:
        return False
    base, past, participle = _VERBS[found[2]]
    if found[2] != past or base in _NO_PASSIVE or found[2] == base:
        return False
    agent = found[1] if not found[1].startswith("The ") else "the " + found[1][4:]
    if agent in ("He", "She", "They", "It", "You", "Who"):
        return False
    patient = found[3][0].upper() + found[3][1:]
    were = "were" if re.search(r"[^s]s$", patient) and patient[:2] not in ("A ", "An") and " " in patient else "was"
    draft.text = f"{patient} {were} {participle} by {agent}{found[4]}."
    return True


def _free(draft: Draft, start: int, end: int) -> bool:
    return not any(a < end and start < b for a, b in draft.spans)


def named(sentence: str, before: str, document: Document) -> str | None:
    """The sentence with the person of the sentence before instead of its first pronoun, if it can be only one.

    Args:
        sentence: A sentence that begins with ``He`` or ``She``.
        before: The sentence before it.
        document: Knows which names are people.

    Returns:
        The sentence, or ``None`` if the pronoun could mean somebody else.
    """
    if not re.match(r"(?:He|She) [a-z]", sentence):
        return None
    names = [before[a:b] for a, b in names_in(before)]
    people = [name for name in names if document.is_person(name)]
    if len(people) != 1 or len(names) > 2 or not before.startswith(people[0]):
        return None
    return people[0] + sentence[sentence.index(" ") :]
