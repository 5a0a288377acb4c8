"""Which segments are checked, and which of them cannot be understood alone."""

from __future__ import annotations

import re
from dataclasses import dataclass

from guardrail.scoring.entailment.lexical import content_words
from guardrail.scoring.markup import plain
from guardrail.text.kinds import classify
from guardrail.text.marks import is_only_marks
from guardrail.text.tokens import tokens
from guardrail.types import Segment, SegmentKind

_PRONOUNS = frozenset(
    "it its he his him she her they their them this that these those there both such the latter former "
    "esso essa essi esse egli ella lui lei loro questo questa questi queste "
    "er sie es ihr ihre diese dieser il elle ils elles".split()
) - {"the", "il", "es"}
_LABEL_WORDS = content_words(
    "overview summary key point important information note conclusion introduction background detail additional "
    "further main step instruction tip pro con benefit advantage disadvantage feature frequently asked question "
    "answer passage based provided following above related general example final thought recommendation resource "
    "reference source table list section part category description value name type date overall other"
)
_LINKING = re.compile(
    r"\b(?:of|for|to|in|on|with|and|or|from|by|about|per|vs|at|di|da|del|della|e|von|für|zu|und|de|du|des|et)\b|&"
)
_ITEM = re.compile(r"[-*+•·–|]|\(?\w{1,3}[.)]\s")
_STATEMENT_WORDS = 3
_ADVERSATIVE = re.compile(r"[,;] (?:but|however|though|although|aber|jedoch|ma|però|mais|pero)[, ]\s*", re.IGNORECASE)


def needs_check(segment: Segment) -> bool:
    r"""Whether a segment is scored: every claim and code block, and labels that may hide a statement.

    A heading, a table header or a line that ends in a colon is a label if it is short, or is held together by "of",
    "for", "and" and the like. Three or more words of its own in a row may be a sentence ("Aspirin cures cancer"), so
    they are scored like one.

    Example:
        >>> label = Segment(start=0, end=14, text="Opening hours:", kind=SegmentKind.HEADING)
        >>> statement = Segment(start=0, end=23, text="# Aspirin cures cancer\n", kind=SegmentKind.HEADING)
        >>> needs_check(label), needs_check(statement)
        (False, True)
    """
    if segment.kind is not SegmentKind.HEADING:
        return segment.kind.checked
    if is_only_marks(segment.text):
        return True  # it cites for the claim before, or is a number if there is no passage of that number
    if not any(map(str.isalpha, segment.text)) and any(map(str.isdigit, segment.text)):
        return True
    return any(_may_state(cell) for line in segment.text.splitlines() for cell in line.split("|"))


def _may_state(label: str) -> bool:
    words = plain(label)
    return len(content_words(words) - _LABEL_WORDS) >= _STATEMENT_WORDS and not _LINKING.search(words.lower())


def leans_on_context(claim: str) -> bool:
    """Whether a claim has a pronoun among its first words, so that its subject stands in the sentence before."""
    return any(word in _PRONOUNS for word in tokens(claim)[:4])


def was_cut(text: str) -> bool:
    """Whether a segment ends inside a sentence, because the sentence was longer than a segment may be."""
    visible = text.rstrip()
    if not visible or "\n" in text[len(visible) :]:
        return False
    return visible[-1].isalnum() or visible[-1] in ",;:—–-("


@dataclass(frozen=True, slots=True, kw_only=True)
class Preceding:
    """What stands before a claim and gives it meaning.

    Attributes:
        text: The segment before.
        label: The heading, table header or line ending in a colon that the current list or table stands under.
    """

    text: str = ""
    label: str = ""

    @property
    def announces_value(self) -> bool:
        """Whether it announces or asks for something, so that a number in brackets behind it is just that."""
        return self.text.rstrip(" \t\n*_").endswith((":", "：", "?", "？"))

    @property
    def claim(self) -> Segment | None:
        """It as a segment, if it is a claim that marks on a line of their own can cite for."""
        segment = Segment(start=0, end=len(self.text), text=self.text, kind=classify(self.text))
        return segment if needs_check(segment) and not self.announces_value else None

    def after(self, segment: Segment) -> Preceding:
        """What stands before the segment that follows ``segment``; marks between two sentences part nothing."""
        if is_only_marks(segment.text) and not self.announces_value:
            return self
        label = self.label
        body = segment.body
        if segment.kind is SegmentKind.HEADING or body.rstrip("*_ ").endswith((":", "：")):
            label = body
        elif body and not _ITEM.match(body):
            label = ""
        return Preceding(text=segment.text, label=label)


def claim_of(segment: Segment, preceding: Preceding, *, passages: int) -> str:
    r"""The words of a segment to check.

    A sentence that was cut gets its beginning back, because a negation may stand there. A table row gets the names of
    its columns. Of a sentence that begins with an honest gap and goes on with "but" the rest is checked.

    Args:
        segment: The segment.
        preceding: What stands before it.
        passages: How many passages there are, for citation marks.

    Example:
        >>> row = Segment(start=0, end=15, text="| A1 | 59 EUR |")
        >>> claim_of(row, Preceding(label="| Model | Price |\n|---|---|"), passages=1)
        'Model A1: Price 59 EUR'
    """
    if segment.kind is SegmentKind.CODE:
        return segment.body
    if is_only_marks(segment.text) and (preceding.announces_value or preceding.claim is not None):
        return segment.body if preceding.announces_value else ""
    if segment.text.lstrip().startswith("|"):
        row = _with_columns(preceding.label, segment.body)
        if row:
            return plain(row, passages=passages)
    text = preceding.text + segment.text if was_cut(preceding.text) else segment.text
    return _without_abstention(plain(text, passages=passages))


def _without_abstention(text: str) -> str:
    """What a sentence asserts behind an honest gap: "I don't know the price, but the warranty lasts two years."."""
    match = _ADVERSATIVE.search(text)
    if match and match.start() and classify(text[: match.start()]) is SegmentKind.REFUSAL:
        return text[match.end() :]
    return text


def labelled(claim: str, preceding: Preceding) -> str:
    """A list item with the label it stands under ("Prohibited: knives"); empty if there is none."""
    label = plain(preceding.label)
    if not label or preceding.label.lstrip().startswith("|"):
        return ""
    return f"{label.rstrip(':： ')}: {claim}"


def _with_columns(header: str, row: str) -> str:
    names = _cells(header.partition("\n")[0])
    cells = _cells(row)
    if len(names) != len(cells) or len(cells) < 2:
        return ""
    rest = ", ".join(f"{name} {cell}" for name, cell in zip(names[1:], cells[1:], strict=True) if cell)
    return f"{names[0]} {cells[0]}: {rest}"


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")] if "|" in line else []
