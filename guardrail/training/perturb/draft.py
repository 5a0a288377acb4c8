"""A sentence under change that remembers which of its ranges are wrong."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from guardrail.training.pairs import Span, TrainingPair
from guardrail.training.perturb.words import ORDERS

_AN = re.compile(r"(?:[aeiou]|hour|honest|honou?r|heir)", re.IGNORECASE)
_NOT_AN = re.compile(r"(?:uni|use|usu|eu|one\b|once)", re.IGNORECASE)
_ARTICLE = re.compile(r"\b([Aa])n?(?= $)")
_BROKEN = re.compile(
    r"\b(\w+) \1\b(?<!had had)(?<!that that)|[,;] ?[,;.]|\s{2,}|\s[,;.](?!\d)|\(\s*\)"
    r"|\b(?:the|a|an|of|and|or|to|in|for|with|at|by|from|their|its) ?[.,;]"
    r"|\b(?:the|a|an) (?:the|a|an|this|that|his|her|their|its)\b|\bnot not\b|^\W*[,;]|\b(?:was|were|is"
    r"|are) (?:did|does)\b",
    re.IGNORECASE,
)
PLAIN = frozenset(
    "The A An It He She They You His Her Their Its Your This These Those Some Many Most All Several Few "
    "No One Two Three "
    "Four Five In On At By For From With After Before During When While If As To Although Because Since "
    "Until According "
    "There Each Every Both Other Another Only People Children However Once Under Over Usually Generally "
    "Typically Normally Often Sometimes Finally Eventually Initially Originally Later Then Now "
    "Today First Second Third Next Here What Where How Who Why Even Like Unlike Within Throughout Upon "
    "Despite Due Nevertheless Moreover Therefore Among Between Through Not".split()
).union(ORDERS)
"""Words that have a capital only because they begin a sentence."""


@dataclass(slots=True)
class Draft:
    """A claim while it is rewritten.

    Attributes:
        text: The claim so far.
        spans: Ranges that the evidence does not support.
    """

    text: str
    spans: list[Span] = field(default_factory=list)

    def replace(self, start: int, end: int, new: str, *, wrong: bool = False) -> bool:
        """Put ``new`` where ``start:end`` was; ranges behind it move along.

        Args:
            start: First character that goes.
            end: The character after it.
            new: What takes its place.
            wrong: Whether ``new`` is not supported.

        Returns:
            Whether it was done: a range that is wrong already is not changed again.

        Example:
            >>> draft = Draft("It cost 5 euros.")
            >>> draft.replace(8, 9, "12", wrong=True), draft.replace(0, 2, "The hat")
            (True, True)
            >>> draft.text, draft.spans
            ('The hat cost 12 euros.', [(13, 15)])
        """
        if any(a < end and start < b for a, b in self.spans):
            return False
        by = len(new) - (end - start)
        self.spans = [(a, b) if b <= start else (a + by, b + by) for a, b in self.spans]
        self.text = self.text[:start] + new + self.text[end:]
        if wrong and new.strip():
            lead = len(new) - len(new.lstrip(" ,;"))
            self.mark(start + lead, start + len(new.rstrip(" ,;.")))
        return True

    def pair(self, premise: str, label: str, source: str) -> TrainingPair:
        """The finished claim as a training pair."""
        unsupported = merged(self.spans)
        return TrainingPair(premise=premise, hypothesis=self.text, label=label, source=source, unsupported=unsupported)

    def mark(self, start: int, end: int) -> bool:
        """Call ``start:end`` unsupported; returns whether it is a range at all."""
        if start < end:
            self.spans = sorted({*self.spans, (start, end)})
        return start < end

    def word(self, start: int, end: int, new: str, *, wrong: bool = False) -> bool:
        """Replace a word, keep its capital, and let the article in front of it agree."""
        if self.text[start : start + 1].isupper() and new[:1].islower():
            new = new[:1].upper() + new[1:]
        if not self.replace(start, end, new, wrong=wrong):
            return False
        article = _ARTICLE.search(self.text, 0, start)
        if article and article.end() == start - 1 and not self.replace(*article.span(), with_article(article[1], new)):
            return False
        return True


def with_article(article: str, word: str) -> str:
    """``a`` or ``an`` as the word wants it.

    Example:
        >>> with_article("A", "hour"), with_article("a", "union")
        ('An', 'a')
    """
    return article + ("n" if _AN.match(word) and not _NOT_AN.match(word) else "")


def merged(spans: Iterable[Span]) -> tuple[Span, ...]:
    """The ranges in order, joined where they touch."""
    result: list[Span] = []
    for start, end in sorted(spans):
        if result and start <= result[-1][1]:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        else:
            result.append((start, end))
    return tuple(result)


def is_broken(text: str) -> bool:
    """Whether a sentence shows traces of a failed rewriting.

    Example:
        >>> is_broken("He went to the the shop."), is_broken("He went to the shop.")
        (True, False)
    """
    return (
        bool(_BROKEN.search(text))
        or len(text.split()) < 4
        or text.count("(") != text.count(")")
        or text.count('"') % 2 == 1
        or not text[:1].strip()
        or text[0].islower()
    )


def outside(draft: Draft, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
    """Matches of a pattern that touch no range which is wrong already."""
    for match in pattern.finditer(draft.text):
        if not any(a < match.end() and match.start() < b for a, b in draft.spans):
            yield match


def lowered(sentence: str, text: str = "") -> str:
    """A sentence as it reads behind a comma: a first word that is no name gets a small letter.

    Args:
        sentence: The sentence.
        text: A text in which a word that has a small letter is no name.

    Example:
        >>> lowered("The mill burned."), lowered("Rome burned."), lowered("Mills burned.", "old mills")
        ('the mill burned.', 'Rome burned.', 'mills burned.')
    """
    first = sentence.split(" ", 1)[0]
    plain = first.rstrip(",") in PLAIN or (len(first) > 5 and first.endswith("ing"))
    if plain or re.search(rf"(?<!\w){re.escape(first.lower())}(?!\w)", text):
        return sentence[0].lower() + sentence[1:]
    return sentence
