"""What is layout and not content: removed from a claim before it is compared, never from what the reader gets."""

from __future__ import annotations

import re

CITATION = re.compile(
    r"\s?\[[\^C]?(\d{1,3})(?:\s?[,;–-]\s?C?\d{1,3})*\](?=\s*(?:[.,;:!?)\]…]|(?:(?:and|or|e|und|et)\s)?\[|$))"
)
_LINE_MARKER = re.compile(
    r"^[ \t]*(?:#{1,6}[ \t]+|>[ \t]?|[-*+•·–][ \t]+|\(?\d{1,3}[.)][ \t]+|\(?[a-z][.)][ \t]+)+", re.M
)
_LINK = re.compile(r"!?\[([^\[\]\n]{0,300})\]\(([^\s()]{1,500})(?:\s+\"[^\"\n]{0,200}\")?\)")
_EMPHASIS = re.compile(r"(?<!\w)(\*{1,3}|_{1,3}|~~)(?=\S)(.{1,300}?)(?<=\S)\1(?!\w)", re.S)
_STARS = re.compile(r"\*{2,3}")
_SPACES = re.compile(r"\s+")
_MAX_ITEM = 30
_UNIT_STARTS = ("mg ", "ml ", "kg ", "km ", "cm ", "mm ", "µg ", "mg.", "ml.", "kg.", "% o", "eur", "usd")


def _without_marker(match: re.Match[str]) -> str:
    """A number before a small letter, or a large one, is no list marker: "50) mg", "(50) mg is the daily dose"."""
    number = re.search(r"\d+", match[0])
    if number and (int(number[0]) > _MAX_ITEM or match.string[match.end() : match.end() + 3] in _UNIT_STARTS):
        return match[0][number.start() :].replace(")", "").replace(".", "")
    return ""


def plain(text: str, *, passages: int | None = None) -> str:
    r"""The words of a segment without markdown emphasis, list and heading markers, citation marks and link syntax.

    A link keeps its visible text and its target, because a wrong address is a wrong statement. A number in brackets is
    a citation mark only at the end of a clause, and only if there is a passage of that number: "[50] mg" is a dose.

    Args:
        text: Text of one segment.
        passages: How many passages there are; ``None`` if every such mark counts (text of the passages themselves).

    Returns:
        One line of text for models and comparisons.

    Example:
        >>> plain("- The **dam** is 212 m high [1].\n")
        'The dam is 212 m high.'
    """
    stripped = _LINE_MARKER.sub(_without_marker, text)
    stripped = _LINK.sub(r"\1 (\2)", stripped)
    stripped = CITATION.sub(lambda mark: "" if passages is None or int(mark[1]) <= passages else mark[0], stripped)
    if "*" in stripped or "_" in stripped or "~" in stripped:
        stripped = _STARS.sub("", _EMPHASIS.sub(r"\2", stripped))
    if "|" in stripped and stripped.strip().startswith("|"):
        stripped = ", ".join(cell.strip() for cell in stripped.strip().strip("|").split("|") if cell.strip())
    return _SPACES.sub(" ", stripped).strip()
