"""What a sentence says is there, and what it says is not: "offers takeout, but no outdoor seating"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from guardrail.scoring.record_words import ALLOWING, NEEDING, PREFIXES, Token, read

_HAS = frozenset(
    "offer offering provide providing feature featuring has have having include boast boasting serve serving "
    "contain support supporting with".split()
)
_LACKS = frozenset("without lack lacking".split())
_ALLOWS = frozenset("accept accepting allow allowing permit permitting take taking welcome welcoming".split())
_NEEDS = frozenset("require need requiring".split())
_TRIGGERS = _HAS | _LACKS | _ALLOWS | _NEEDS
_BE = frozenset("is are be isn't aren't it's they're there's".split())
_POST = frozenset("available offered accepted allowed permitted provided included supported welcome present possible "
                  "served".split())  # fmt: skip
_POST_DENIED = frozenset("unavailable prohibited forbidden banned disallowed excluded unsupported".split())
_NOT = frozenset("not no never cannot neither nor hardly".split())
_DETERMINERS = frozenset("no not zero".split())
_AUXILIARIES = frozenset("do does can not cannot don't doesn't can't".split())
_LINKS = frozenset(", and or nor & /".split(" "))
_STOPS = frozenset("; : . ! ? ( ) — – - but although though while whereas however which who because since where when "
                   "as so yet whose".split())  # fmt: skip
_RESUMING = frozenset("but though although yet".split())
_UNSAID = frozenset(
    "specify specified unspecified mention mentioned stated indicate indicated listed clear unclear unknown known "
    "information detail data confirmed disclosed".split()
)
_DOUBT = frozenset(
    "may might could would should probably possibly perhaps likely maybe seem appear whether if unless suggest "
    "suggesting used formerly previously once until soon planned plan will expected was were had did didn't wasn't "
    "unlike than instead other another nearby near adjacent except unclear unknown unspecified upcoming rather".split()
)
_REPORTS = frozenset(
    "said say saying mention mentioned mentioning complain complained complaining complaint review reviewer reviewed "
    "praise praised praising note noted noting report reported feel felt think thought found find describe described "
    "recommend recommended disappointed appreciate appreciated appreciating feedback opinion claim claimed love loved "
    "experience experienced wished told asked comment commented highlight highlighted highlighting".split()
)
_LEAD = re.compile(
    r"\s*(?:(?:according to|based on|from|as per|per|in) (?:the |this |its )?(?:[a-z]+ ){0,2}"
    r"(?:data|information|record|listing|details|profile|context|passage)s?(?: provided| given| available)?, "
    r"|(?:it is|it's) worth (?:noting|mentioning) that |(?:please )?note that |it should be noted that )",
    re.IGNORECASE,
)
_SILENCE = re.compile(
    r"(?:^|, )(?:[^.;,]{0,40}\b(?:data|information|record|listing|profile|passages?|context) (?:does|do)(?: not|n't) "
    r"(?:(?:specify|mention|state|indicate)(?: anything| any information| information| any details| details)?"
    r"(?: about| on| regarding)?|(?:provide|include)(?: any)? (?:information|details) (?:about|on|regarding))"
    r"|(?:there (?:is|are) )?no (?:information|mention|details?|data)(?: (?:is |are )?(?:given|provided|available))? "
    r"(?:about|of|on|regarding))"
    r"(?! whether| if| that) (?P<what>[^.;,:]{3,60})\.?$",
    re.IGNORECASE,
)
_RECORDS = frozenset("data record information listing detail profile it".split())
_FREELY = frozenset("can to you guest customer visitor".split())
_NO_BASE = frozenset("has with without including having".split())
_PERSONS = frozenset("them it they you we he she i him us".split())
_MAX_ITEM = 8
_VERBS = frozenset("deliver delivers cater caters".split())
_LISTS = frozenset("amenity feature facility service offering include".split())
_LABELS = PREFIXES | frozenset("key main available additional other the its it and".split())
_VERB_ENDS: dict[str, tuple[list[str], ...]] = {"delivery": ([], ["to"]), "cater": ([],)}
_ANSWERS = {"yes": 1, "available": 1, "no": -1, "unavailable": -1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Assertion:
    """A thing that a sentence says is there or is not.

    Attributes:
        tokens: The words for it, in order.
        sign: 1 if it is said to be there, -1 if that is denied, 0 if it is said not to be known.
        frame: How it is said: ``"has"``, ``"allow"`` ("accepts cards", "dogs are welcome"), ``"need"`` or ``"is"``;
            empty if any will do.
        subject: What it is said of, for ``"is"``.
        shared: Words that the sentence says once for several things: the "parking" of "street and valet parking".
    """

    tokens: tuple[Token, ...]
    sign: int
    frame: str
    subject: tuple[str, ...] = ()
    shared: frozenset[str] = frozenset()


@dataclass(slots=True)
class _State:
    """What the items of a list that follow stand under."""

    frame: str = ""
    sign: int = 0  # 0: nothing is certain
    subject: tuple[str, ...] = ()
    good: bool = False  # "good for kids and groups"


@lru_cache(maxsize=1024)
def assertions(claim: str) -> tuple[Assertion, ...]:
    """Find the plain assertions of a sentence.

    Args:
        claim: One sentence.

    Returns:
        What is said to be there or not. Nothing of what others say, of what may be, and of what is not known.

    Example:
        >>> found = assertions("It offers takeout and delivery, but no outdoor seating.")
        >>> [(" ".join(t.word for t in a.tokens), a.sign) for a in found]
        [('takeout', 1), ('delivery', 1), ('no outdoor seating', -1)]
        >>> assertions("One guest said that it has a garage.")
        ()
    """
    lead = _LEAD.match(claim)
    tokens = [token for token in read(claim) if lead is None or token.start >= lead.end()]
    words = [token.word for token in tokens]
    if not words or words[-1] == "?" or _reported(words):
        return ()
    if answered := _answer(tokens, words) or _unknown(claim, tokens):
        return answered
    found: list[Assertion] = []
    carried = _State()
    if _is_list(words):
        tokens = [tokens[0]._replace(word="with"), *tokens[words.index(":") + 1 :]]
    for opening, chunk in _chunks(tokens):
        inside = {token.word for token in chunk}
        denied = bool(inside & _NOT) or any(word.endswith("n't") for word in inside)
        if inside & _DOUBT or (denied and inside & _UNSAID):
            break
        state = carried if opening in _RESUMING else _State()
        parser = _Chunk(claim, chunk, state, complete=opening in ("", "which") or chunk[0] is tokens[0])
        found += parser.read()
        carried = parser.base
        if parser.stopped:
            break
    return tuple(found)


def _reported(words: list[str]) -> bool:
    visible = [word for word in words if word[0].isalnum()]
    if "according" in words and not _RECORDS & set(words[words.index("according") : words.index("according") + 6]):
        return True
    return bool(visible) and visible[-1] in _REPORTS


def _answer(tokens: list[Token], words: list[str]) -> tuple[Assertion, ...]:
    """A line such as "Outdoor seating: no"."""
    if ":" not in words:
        return ()
    at = words.index(":")
    rest = [word for word in words[at + 1 :] if word not in (".", "!")]
    sign = -1 if rest == ["not", "available"] else _ANSWERS.get(rest[0], 0) if len(rest) == 1 else 0
    return (Assertion(tokens=tuple(tokens[:at]), sign=sign, frame=""),) if sign and at else ()


def _unknown(claim: str, tokens: Sequence[Token]) -> tuple[Assertion, ...]:
    """What a sentence such as "The data does not specify anything about parking" says is not known."""
    match = _SILENCE.search(claim)
    if match is None:
        return ()
    groups: list[list[Token]] = [[]]
    for token in tokens:
        if token.start >= match.start("what") and token.word[0].isalnum():
            if token.word in _LINKS:
                groups.append([])
            else:
                groups[-1].append(token)
        elif token.start >= match.start("what"):
            groups.append([])
    return tuple(Assertion(tokens=tuple(group), sign=0, frame="") for group in groups if group)


def _is_list(words: list[str]) -> bool:
    """Whether a sentence is a list under a label such as "Main facilities:"."""
    label = set(words[: words.index(":")]) if ":" in words[:5] else set()
    return bool(label & _LISTS) and label <= _LISTS | _LABELS


def _chunks(tokens: Sequence[Token]) -> Iterator[tuple[str, list[Token]]]:
    chunk: list[Token] = []
    opening = ""
    for token in tokens:
        if token.word in _STOPS:
            if token.word == ":" and chunk:
                continue  # "amenities include: a pool"
            if any(t.word not in _LINKS for t in chunk):
                yield opening, chunk
                opening = ""
            if token.word in _RESUMING or not opening:
                opening = token.word
            chunk = []
        else:
            chunk.append(token)
    if chunk:
        yield opening, chunk


class _Chunk:
    """A clause or several that share their verbs."""

    def __init__(self, claim: str, tokens: Sequence[Token], state: _State, *, complete: bool) -> None:
        self._claim = claim
        self._complete = complete  # whether its subject is in it or plain, and not before a parenthesis
        self._state = state
        self.base = _State(frame=state.frame, sign=state.sign)
        self.stopped = False
        self._neither = False
        self._not_verbs = False  # "does not deliver, serve alcohol or take reservations"
        self._items: list[tuple[str, list[Token]]] = []
        link = ""
        item: list[Token] = []
        for token in tokens:
            if token.word in _LINKS:
                if item:
                    self._items.append((link, item))
                    link, item = "", []
                link = token.word if token.word != "," or not link else link
            else:
                item.append(token)
        if item:
            self._items.append((link, item))
        self._found: list[Assertion] = []
        self._pending: list[list[Token]] = []

    def read(self) -> list[Assertion]:
        for at, (_, item) in enumerate(self._items):
            if any(token.word in _REPORTS for token in item):
                self.stopped = True
            if self.stopped:
                break
            self._item(at, item)
        return self._shared()

    def _item(self, at: int, item: list[Token]) -> None:
        words = [token.word for token in item]
        first = next((i for i, word in enumerate(words) if word in _TRIGGERS and not _is_post(words, i)), None)
        be = next((i for i, word in enumerate(words) if word in _BE), None)
        goes_on = first is None or (first == 0 and self._is_base(item[first]))
        self._neither = "neither" in words or (self._neither and (goes_on or self._items[at][0] in ("or", "nor")))
        self._not_verbs = _denies_verb(words) or (self._not_verbs and goes_on)
        if be is not None and (first is None or be < first):
            self._be(at, item[: first if first is not None else len(item)], words, be)
        if first is not None:
            self._triggered(at, item, words, first)
        elif be is None and not self._verb(item, words):
            self._bare(at, item, words)

    def _be(self, at: int, item: list[Token], words: list[str], be: int) -> None:
        rest = words[be + 1 : len(item)]
        denied = words[be].endswith("n't") or bool(_NOT & set(rest[:2])) or self._neither or self._items[at][0] == "nor"
        post = next((i for i, word in enumerate(rest[:4]) if word in _POST | _POST_DENIED | NEEDING), None)
        subject = item[:be]
        contracted = words[be] in ("it's", "they're")
        if words[be] == "there's" or (subject and subject[-1].word == "there"):
            if rest[:1] == ["no"]:
                self._begin("has", 1)
                self._deny(at, item[be + 1 :])
            else:
                self._begin("has", -1 if denied else 1)
                self._add(item[be + 1 :], self._state.sign)
            return
        if post is not None and subject and not (contracted or self._is_pronoun(subject)):
            denied ^= rest[post] in _POST_DENIED
            denied |= any(phrase[0].word in _DETERMINERS for phrase in [*self._pending, subject])
            if denied and any(w not in ("here", "at", "the", "currently", "this") for w in rest[post + 1 :]):
                self._pending = []
                return  # "not available on Sundays" denies less
            frame = "allow" if rest[post] in ALLOWING or rest[post] in _POST_DENIED else "has"
            frame = "need" if rest[post] in NEEDING else frame
            for phrase in [*self._pending, subject]:
                self._found.append(Assertion(tokens=tuple(phrase), sign=-1 if denied else 1, frame=frame))
            self._pending = []
            self._state = _State()
            return
        self._begin("is", -1 if denied else 1)
        self._state.subject = tuple(t.word for t in subject) or (("it",) if contracted or self._complete else ("?",))
        self._pending = []
        complement = item[be + 1 :]
        self._state.good = any(t.word == "good" for t in complement)
        self._add(complement, self._state.sign)

    def _is_pronoun(self, subject: list[Token]) -> bool:
        return len(subject) == 1 and subject[0].word in ("it", "they", "this", "these", "he", "she")

    def _triggered(self, at: int, item: list[Token], words: list[str], first: int) -> None:
        self._pending = []
        if self._is_base(item[first]) and (words[first - 1 : first] == ["to"] or (first == 0 and at == 0)):
            self.stopped = first == 0  # "take your dog for a walk" is advice
            self._state = _State()
            return
        if first and self._state.frame and (at or self._state.sign) and not any(w in _BE for w in words[:first]):
            self._add(item[:first], self._state.sign)  # "takeout, a garage with ten spaces"
        last = 0
        while first is not None:
            following = next((i for i in range(first + 1, len(words)) if words[i] in _TRIGGERS), None)
            before = words[max(last, first - (1 if words[first] == "with" else 4)) : first]
            denied = any(w in _NOT or w.endswith("n't") for w in before) or words[first] in _LACKS
            denied |= first == 0 and self._not_verbs
            if words[first] in ("has", "have") and words[first + 1 : first + 2] in (["not"], ["to"], ["been"]):
                return  # "has not been renovated", "have to wait"
            if words[first] == "without" and _FREELY & set(words[:first]):
                return  # "you can come without a reservation"
            frame = "allow" if words[first] in _ALLOWS else "need" if words[first] in _NEEDS else "has"
            vague = words[first] == "with" and not _NOT.isdisjoint(words[:first])  # "is not a place with Wi-Fi"
            self._begin(frame, 0 if vague else -1 if denied or self._neither else 1)
            phrase = item[first + 1 : following if following is not None else len(item)]
            if phrase and phrase[0].word in _DETERMINERS:
                self._deny(at, phrase)
            else:
                self._add(phrase, self._state.sign)
            last = first + 1
            first = following  # type: ignore[assignment]

    def _is_base(self, verb: Token) -> bool:
        """Whether a verb is an infinitive or an imperative, or may be one: "take", not "takes"."""
        return verb.word not in _NO_BASE and self._claim[verb.start : verb.end].lower() == verb.word

    def _begin(self, frame: str, sign: int) -> None:
        self._state = _State(frame=frame, sign=sign)
        self.base = _State(frame=frame, sign=sign) if frame != "is" and sign > 0 else _State()

    def _deny(self, at: int, phrase: list[Token]) -> None:
        """Deny a thing; "no X" reaches the items after it only if they are joined by "or"."""
        self._add(phrase, -1)
        links = []
        for link, item in self._items[at + 1 :]:
            if any(t.word in _TRIGGERS or t.word in _BE or t.word in _DETERMINERS for t in item):
                break
            links.append(link)
        self._state.sign = -1 if links and links[-1] in ("or", "nor") else 0

    def _verb(self, item: list[Token], words: list[str]) -> bool:
        """Verbs that are attributes themselves: "they deliver"."""
        for at, token in enumerate(item):
            if (
                self._claim[token.start : token.end].lower() in _VERBS
                and words[at + 1 : at + 2] in _VERB_ENDS[token.word]
            ):
                denied = any(w in _NOT or w.endswith("n't") for w in words[:at])
                self._begin("has", -1 if denied or self._neither else 1)
                self._add([token], self._state.sign)
                return True
        return False

    def _bare(self, at: int, item: list[Token], words: list[str]) -> None:
        if words[0] in _DETERMINERS and self._state.frame:
            self._deny(at, item)
        elif len(item) > _MAX_ITEM or _PERSONS & set(words):
            self._state, self._pending = _State(), []  # a clause of its own
        elif self._state.frame and words[0] != "only":
            self._add(item, -1 if self._neither else self._state.sign)
        else:
            self._pending.append(item)

    def _add(self, phrase: Sequence[Token], sign: int) -> None:
        if not phrase or not sign:
            return
        if len(phrase) > 1 and phrase[-1].word in ("yes", "no"):  # "Services: takeout yes, reservations no"
            phrase, sign = phrase[:-1], _ANSWERS[phrase[-1].word]
        state = self._state
        shared = frozenset(("good",)) if state.good else frozenset()
        self._found.append(
            Assertion(tokens=tuple(phrase), sign=sign, frame=state.frame, subject=state.subject, shared=shared)
        )

    def _shared(self) -> list[Assertion]:
        """Lend the last word of a list to the items before it."""
        lent: frozenset[str] = frozenset()
        done: list[Assertion] = []
        for item in reversed(self._found):
            word = item.tokens[-1].word
            own = frozenset((word,)) if len(item.tokens) > 1 or not lent else lent
            done.append(replace(item, shared=item.shared | lent))
            lent = own
        return done[::-1]


def _denies_verb(words: list[str]) -> bool:
    denied = any(word in _NOT or word.endswith("n't") for word in words)
    return denied and not _AUXILIARIES.isdisjoint(words) and not _BE.intersection(words)


def _is_post(words: list[str], at: int) -> bool:
    """Whether "welcome" is said of what stands before it."""
    return words[at] == "welcome" and any(word in _BE for word in words[max(0, at - 3) : at])
