"""What is layout and not content: removed from a claim before it is compared, never from what the reader gets."""

from __future__ import annotations

import re

from guardrail.text.marks import without_marks
from guardrail.text.mentions import without_mentions
from guardrail.text.values import parse_values

_LINE_MARKER = re.compile(
    r"^[ \t]*(?:#{1,6}[ \t]+|>[ \t]?|[-*+•·–][ \t]+|\(?\d{1,3}[.)][ \t]+|\(?[a-z][.)][ \t]+)+", re.M
)
_LINK = re.compile(r"!?\[([^\[\]\n]{0,300})\]\(([^\s()]{1,500})(?:\s+\"[^\"\n]{0,200}\")?\)")
_EMPHASIS = re.compile(r"(?<!\w)(\*{1,3}|_{1,3}|~~)(?=\S)(.{1,300}?)(?<=\S)\1(?!\w)", re.S)
_STARS = re.compile(r"\*{2,3}")
_BRACKETED = re.compile(r"\[(\d{1,9}(?:[.,]\d{1,9})?)\](\s?[^\W\d_]{1,12}|\s?[%°€$£])")
_SPACES = re.compile(r"\s+")
_MAX_ITEM = 30
_UNIT_STARTS = ("mg ", "ml ", "kg ", "km ", "cm ", "mm ", "µg ", "mg.", "ml.", "kg.", "% o", "eur", "usd")


def _without_marker(match: re.Match[str]) -> str:
    """A number before a small letter, or a large one, is no list marker: "50) mg", "(50) mg is the daily dose"."""
    number = re.search(r"\d+", match[0])
    if number and (int(number[0]) > _MAX_ITEM or match.string[match.end() : match.end() + 3] in _UNIT_STARTS):
        return match[0][number.start() :].replace(")", "").replace(".", "")
    return ""


def _without_brackets(match: re.Match[str]) -> str:
    """A unit belongs to the number, whatever stands between them: "[50] mg" is "50 mg"."""
    amount = f"{match[1]}{match[2]}"
    measured = any(value.start == 0 and value.end == len(amount) for value in parse_values(amount))
    return amount if measured else match[0]


def plain(text: str, *, passages: int | None = None, mentions: int | None = None) -> str:
    r"""The words of a segment without markdown emphasis, list and heading markers, citation marks and link syntax.

    A link keeps its visible text and its target, because a wrong address is a wrong statement. Which numbers in
    brackets are citation marks says :func:`guardrail.text.marks.find_marks`; brackets such as "(Passage 2)" are marks
    in words. Only those go that lead to passages.

    Args:
        text: Text of one segment.
        passages: How many passages there are; ``None`` if all marks go (text of the passages themselves).
        mentions: How many of them marks in words can name; ``None`` for as many as ``passages``.

    Returns:
        One line of text for models and comparisons.

    Example:
        >>> plain("- The **dam** is 212 m high [1].\n")
        'The dam is 212 m high.'
    """
    named = passages if mentions is None else mentions
    cited = without_mentions(without_marks(text, passages=passages), passages=named)
    stripped = _LINE_MARKER.sub(_without_marker, cited)
    stripped = _LINK.sub(r"\1 (\2)", stripped)
    if "[" in stripped:
        stripped = _BRACKETED.sub(_without_brackets, stripped)
    if "*" in stripped or "_" in stripped or "~" in stripped:
        stripped = _STARS.sub("", _EMPHASIS.sub(r"\2", stripped))
    if "|" in stripped and stripped.strip().startswith("|"):
        stripped = ", ".join(cell.strip() for cell in stripped.strip().strip("|").split("|") if cell.strip())
    return _SPACES.sub(" ", stripped).strip()
