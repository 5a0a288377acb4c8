"""Which segments are checked, and which of them cannot be understood alone."""

from __future__ import annotations

import re

from guardrail.scoring.entailment.lexical import content_words
from guardrail.scoring.markup import plain
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
_STATEMENT_WORDS = 3


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
