"""A sentence as a comparison sees it: content words, what is denied, what is a name, which values it gives."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from guardrail.scoring.lexicon import (
    CJK_NEGATORS,
    IRREGULAR,
    NEGATORS,
    NO_DETERMINERS,
    NOT_A_NEGATION,
    NOT_A_NEGATION_PARTS,
    PARTICLE_VERBS,
    PREVENTING,
    QUANTIFIERS,
    STOPWORDS,
    opposites,
)
from guardrail.text.identifiers import same_length_fold, same_length_lower
from guardrail.text.tokens import fold
from guardrail.text.values import Value, compatible, parse_values
from guardrail.types import Clash, ClashKind

_WORD = re.compile(
    r"(?P<cjk>[\u3040-\u30ff\u3400-\u9fff])"
    r"|(?P<word>(?:(?:non|pre|re)-)?(?:[a-z]++|(?![\u3040-\u30ff\u3400-\u9fff])\w)+(?:'(?:s|t|re|ve|ll|d)\b)?)"
    r"|(?P<stop>[,;:.!?()|\[\]\n—]|(?<=\s)-+(?=\s))"
)
_CLAUSE_WORDS = frozenset(
    "but although though because if when while whereas which who unless however whenever "
    "aber weil wenn obwohl ma perché "
    "se quando mais parce lorsque pero porque cuando".split()
)
_CJK_STOP = frozenset("的了是在和与及也都就而其这那有共个于为被把从到由着过吗呢吧啊")
_AUXILIARIES = frozenset("is are was were be been being am has have had do does did will would can could".split())
_FINITE = frozenset("is are was were has have had does did will".split())
_AND = frozenset(("and", "und", "e", "et", "y"))
_POSTPOSED = frozenset(("nicht", "pas", "nie", "niemals", "mai", "jamais", "nunca"))
_ANSWERS = frozenset(("no", "none"))
_NEGATING = NEGATORS | NO_DETERMINERS | frozenset("from little few t 没 不 未 无".split())
_SIGNS = {(True, False): frozenset((1,)), (False, True): frozenset((-1,)), (True, True): frozenset((1, -1))}
_CONDITIONS = frozenset("if unless until till whether se wenn si".split())
ALIGNED = 0.75
"""Share of the claim's content words that a sentence must have to be compared with it."""
_SCOPE = 4  # content words that a negator reaches
_NOUN_SCOPE = 3
_KEPT_SENTENCES = 4096
_KEPT_WORDS = 8192


class Word(NamedTuple):
    """One word of a sentence.

    Attributes:
        text: As folded and lower-cased.
        stem: What it is compared by.
        start: Offset in the sentence.
        clause: Index of its clause.
        content: Whether it carries meaning of its own; words of a value do not.
        name: Whether it is written like a name.
        sides: Pairs of opposites it belongs to, with its side, negation applied.
        sign: -1 if it is denied, else 1.
        head: Whether it is the first word that a negator reaches: what is denied.
    """

    text: str
    stem: str
    start: int
    clause: int
    content: bool
    name: bool
    sides: tuple[tuple[str, int], ...]
    sign: int = 1
    head: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A sentence, analysed.

    Attributes:
        text: The sentence.
        words: Its words in order.
        values: Its values in order.
        stems: Stems of its content words.
        signs: For each stem the signs it occurs with.
        sides: For each pair of opposites the sides it occurs on.
        negated: Whether anything is denied.
        wording: What makes it the same sentence as another one; see :func:`wording`.
    """

    text: str = field(repr=False)
    words: tuple[Word, ...] = field(repr=False)
    values: tuple[Value, ...]
    stems: frozenset[str] = field(repr=False)
    signs: dict[str, frozenset[int]] = field(repr=False, hash=False)
    sides: dict[str, frozenset[int]] = field(repr=False, hash=False)
    negated: bool
    wording: str = field(repr=False)

    def content(self, clause: int | None = None) -> list[Word]:
        """Content words, of one clause or of all."""
        return [w for w in self.words if w.content and (clause is None or w.clause == clause)]


def wording(text: str) -> str:
    """A sentence without case, spacing, typography, emphasis and its end mark.

    Signs, currencies and operators stay: they make another value of the same word.

    Example:
        >>> wording("**Entry  costs $5.**") == wording("entry costs $5")
        True
    """
    return " ".join(fold(text).casefold().split()).strip("*_ ").rstrip(".!?;:, ")


def stem(word: str) -> str:
    """Reduce a word to what its inflected forms share; crude, and only used to compare words with each other.

    Example:
        >>> [stem(w) for w in ("covers", "covered", "tested", "photographs", "stops")]
        ['cover', 'cover', 'test', 'photograph', 'stop']
    """
    word = word.removesuffix("'s")
    if word in IRREGULAR:
        return IRREGULAR[word]
    if len(word) <= 3 or not word.isalpha():
        return word
    base = _strip_suffix(word)
    if len(base) > 3 and base[-1] == base[-2] and base[-1] not in "lsze":
        base = base[:-1]
    if len(base) > 4 and base[-1] in "eaioèéàì":
        base = base[:-1]
    return IRREGULAR.get(base, base)


def _strip_suffix(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith("ied") and len(word) > 4:
        return word[:-3] + "y"
    for suffix, least in (("ings", 7), ("ing", 6), ("ed", 5), ("es", 5), ("s", 4)):
        if word.endswith(suffix) and len(word) >= least and not word.endswith("ss"):
            if suffix == "es" and word[-3] not in "sxzho":
                return word[:-1]
            return word[: -len(suffix)]
    return word


def _sides_by_form() -> dict[str, tuple[tuple[str, int], ...]]:
    sides: dict[str, tuple[tuple[str, int], ...]] = {}
    for table in opposites():
        for word, side in table.items():
            for form in {word, stem(word)}:
                if side not in sides.get(form, ()):
                    sides[form] = (*sides.get(form, ()), side)
    return sides


_SIDES = _sides_by_form()


@lru_cache(maxsize=_KEPT_SENTENCES)
def analyse(text: str) -> Statement:
    """Analyse a sentence.

    Args:
        text: One sentence.

    Returns:
        Its words, values and denials.
    """
    values = parse_values(text)
    folded = same_length_fold(text)
    low = PARTICLE_VERBS.sub(_joined, same_length_lower(folded))
    if any(part in low for part in NOT_A_NEGATION_PARTS) or not low.isascii():
        low = NOT_A_NEGATION.sub(lambda match: " " * len(match.group()), low)
    words = _deny(_words(folded, low, values), low)
    content = [word for word in words if word.content]
    affirmed = {word.stem for word in content if word.sign > 0}
    denied = {word.stem for word in content if word.sign < 0}
    sides: dict[str, frozenset[int]] = {}
    for word in words:
        for pair, side in word.sides:
            sides[pair] = sides.get(pair, frozenset()) | {side}
    return Statement(
        text=text,
        words=tuple(words),
        values=values,
        stems=frozenset(affirmed | denied),
        signs={stem: _SIGNS[stem in affirmed, stem in denied] for stem in affirmed | denied},
        sides=sides,
        negated=any(word.sign < 0 for word in words),
        wording=wording(text),
    )


def _joined(match: re.Match[str]) -> str:
    return match.group().replace(" ", "_")


def _words(folded: str, low: str, values: tuple[Value, ...]) -> list[Word]:
    spans = [(value.start, value.end) for value in values]
    words: list[Word] = []
    clause = span = 0
    for match in _WORD.finditer(low):
        start, kind = match.start(), match.lastgroup
        while span < len(spans) and spans[span][1] <= start:
            span += 1
        in_value = span < len(spans) and spans[span][0] <= start
        if kind == "stop":
            clause += 0 if in_value else 1
            continue
        text = match.group().replace("-", "", 1)  # "non-stick" is "nonstick", "pre-heat" "preheat"
        if text in _CLAUSE_WORDS:
            clause += 1
        root, sides, content, particle = _reading(text, kind == "cjk")
        name = (
            folded[start].isupper()
            and not (particle or kind == "cjk")
            and (bool(words) or folded[start : start + 2].isupper())
        )
        if in_value:
            content, sides = False, sides if particle else ()
        words.append(Word(text, root, start, clause, content, name, sides))
    return words


@lru_cache(maxsize=_KEPT_WORDS)
def _reading(text: str, cjk: bool) -> tuple[str, tuple[tuple[str, int], ...], bool, bool]:
    """Of a word by itself: stem, opposites, whether it carries meaning, whether it is a verb with its particle."""
    base = text.split("_")[0] if "_" in text else text
    particle = {"turn": "turn-", "switch": "switch-"}.get(stem(base), "") if "_" in text else ""
    content = not (text in _CJK_STOP if cjk else text in STOPWORDS or text.isdecimal() or text.endswith("n't"))
    if particle:
        root = particle + text.rsplit("_", 1)[1]
        return root, _SIDES.get(root, ()), content, True
    root = "exclud" if "_" in text and stem(base) in ("rule", "rul") else (text if cjk else stem(text))
    return root, _SIDES.get(text, ()) or _SIDES.get(root, ()), content, False


def _deny(words: list[Word], low: str) -> list[Word]:
    """Apply the negators of a sentence to the words they reach."""
    signs = [1] * len(words)
    heads: set[int] = set()
    for index, word in enumerate(words):
        text = word.text
        possible = text in _NEGATING or text.endswith("n't") or word.stem == "prevent"
        if possible and _negates(words, index, low):
            reach = _NOUN_SCOPE if word.text in NO_DETERMINERS else _SCOPE
            reached = _scope(words, index, reach)
            denied = [i for i in reached if not words[i].text.endswith("ly")]
            behind = word.text in _POSTPOSED or (denied and denied[-1] < index)
            heads.update(denied if behind else denied[:1])
            for target in reached:
                signs[target] = -signs[target]
    if all(sign == 1 for sign in signs):
        return words
    return [
        word
        if sign == 1
        else word._replace(sign=-1, head=at in heads, sides=tuple((pair, -side) for pair, side in word.sides))
        for at, (word, sign) in enumerate(zip(words, signs, strict=True))
    ]


def _negates(words: list[Word], index: int, low: str) -> bool:
    text = words[index].text
    following = words[index + 1].text if index + 1 < len(words) else ""
    if text == "not" and QUANTIFIERS.get(following) == "all":
        return False  # "not all": how many is for the comparison of quantifiers
    if text == "from" and index and words[index - 1].text == "away":
        return True  # "store away from heat" and "keep away from heat" alike
    if text == "from":
        return any(w.stem in PREVENTING and w.clause == words[index].clause for w in words[max(0, index - 6) : index])
    if words[index].stem == "prevent" and following not in ("or", "and"):
        return all(w.text != "from" for w in words[index + 1 : index + 7] if w.clause == words[index].clause)
    if text in ("little", "few") and index and words[index - 1].text == "too":
        return True  # too little of something is a lack of it
    if text in NEGATORS or text in NO_DETERMINERS or text.endswith("n't"):
        return low[words[index].start + len(text) :][:1] != "-"  # "non-profit" denies nothing
    if len(text) == 1 and text in "没不未无":
        return any(low.startswith(negator, words[index].start) for negator in CJK_NEGATORS)
    return text == "t" and index > 0 and words[index - 1].text.endswith("n")


def _scope(words: list[Word], index: int, reach: int) -> list[int]:
    """Indexes of the words a negator denies: what follows in its clause; what precedes, if nothing follows."""
    clause = words[index].clause
    found: list[int] = []
    for target in range(index + 1, len(words)):
        word = words[target]
        if word.clause != clause or (word.text in _AND and _starts_clause(words, target)):
            break
        if found and word.text in _FINITE and words[index].text not in NO_DETERMINERS:
            break
        if word.content or word.sides:
            found.append(target)
            if len(found) == reach:
                break
    if len(found) < 2 and words[index].text in _POSTPOSED:
        before = [i for i in range(index) if words[i].clause == clause and (words[i].content or words[i].sides)]
        found = before[-_NOUN_SCOPE:] + found
    if words[index].text in _ANSWERS and not any(word.clause == clause for word in words[index + 1 :]):
        found = _answered(words, index)
    return found


def _answered(words: list[Word], index: int) -> list[int]:
    """Indexes of the words that a "no" behind them denies: "outdoor seating: no", as records are read."""
    own = words[index].clause
    clause = own if index and words[index - 1].clause == own else own - 1
    return [i for i in range(index) if words[i].clause == clause and (words[i].content or words[i].sides)][-_SCOPE:]


def _starts_clause(words: list[Word], index: int) -> bool:
    return any(word.text in _AUXILIARIES for word in words[index + 1 : index + 3])


def coverage(claim: Statement, statement: Statement, without: frozenset[str] = frozenset()) -> float:
    """Share of the claim's content words that a sentence has."""
    wanted = claim.stems - without if without else claim.stems
    return len(wanted & statement.stems) / len(wanted) if wanted else 0.0


def values_agree(claim: Statement, statement: Statement) -> bool:
    """Whether a sentence can be about the same occasion: it gives every value of the claim."""
    return all(any(compatible(value, other) for other in statement.values) for value in claim.values)


def conditions(statement: Statement) -> dict[int, int]:
    """Clauses with a condition, and where it begins."""
    return {word.clause: word.start for word in statement.words if word.text in _CONDITIONS}


def sentence_clash(kind: ClashKind, claim: Statement, statement: Statement, *, contradicts: bool = True) -> Clash:
    """A clash of two sentences as wholes, where no single words of them stand against each other."""
    return Clash(
        kind=kind, claim_text=claim.text.strip(), evidence_text=statement.text.strip(), contradicts=contradicts
    )
