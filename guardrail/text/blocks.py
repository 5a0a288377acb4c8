"""Markdown lines: where a new line begins a block instead of continuing a paragraph.

Every question may be asked of an unfinished line; the answer is ``None`` while more text is needed, and once it is
``True`` or ``False`` no further text changes it. That is what makes segments independent of the chunking.
"""

from __future__ import annotations

import re
from enum import Enum, auto

_BULLETS = frozenset("-*+•‣◦▪▸●○·–—")
_RULE_CHARS = frozenset("-*_=")
_ROMAN = frozenset("ivxIVX")
_MAX_MARKER_DIGITS = 3
_MAX_MARKER_LETTERS = 5

_QUOTE_PREFIX = re.compile(r"(?:>[ \t]?)+[ \t]*")
_NUMBERED = re.compile(r"(\d+)([.)]?)(.?)", re.DOTALL)
_LETTERED = re.compile(r"([A-Za-z]+)([.)]?)(.?)", re.DOTALL)
_BRACKETED = re.compile(r"\((?:[A-Za-z]{1,4}|\d{1,3})\)(.?)", re.DOTALL)
_BRACKETED_PREFIX = re.compile(r"\((?:[A-Za-z]{0,4}|\d{0,3})\)?")
# "[1] Smith, 2004" in a list of sources, or a line of nothing but citation marks.
_REFERENCE = re.compile(
    r"\[\^?\d{1,3}\]:?(?:\s|$)|(?:\[[\^C]?\d{1,3}(?:\s?[,;–-]\s?\d{1,3}){0,3}\][,; ]{0,2}){1,3}[ \t\r]{0,8}$"
)
_REFERENCE_PREFIX = re.compile(r"(?:\[[\^C\d ,;–-]{0,19}\]?:?[,; ]{0,2}){1,3}[ \t\r]{0,9}")
_TABLE_RULE = re.compile(r"\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*")
_TABLE_RULE_CHARS = re.compile(r"[|:\-\s]*")
_BOLD_LINE = re.compile(r"(\*\*|__)(?=\S)(?:(?!\1).)+\1:?\s*")
_LIST_MARKER = re.compile(
    r"(?:>[ \t]?)*[ \t]*(?:[-*+•‣◦▪▸●○·–—]|\d{1,3}[.)]|[A-Za-z][.)]|[ivxIVX]{2,5}[.)]|\((?:[A-Za-z]{1,4}|\d{1,3})\))"
    r"(?:[ \t]+|(?=\s)|$)(?:\[[ xX]\][ \t]+)?"
)


class Line(Enum):
    """What the current line is."""

    UNKNOWN = auto()  # not enough of it has been seen
    PROSE = auto()
    ITEM = auto()
    HEADING = auto()
    QUOTE = auto()
    RULE = auto()
    ROW = auto()
    ROW_END = auto()  # a first table row that waits for the line after it
    FENCE = auto()


def line_at(text: str, start: int) -> tuple[str, bool]:
    """The line that begins at ``start``, and whether its end has been seen."""
    end = text.find("\n", start)
    return (text[start:], False) if end < 0 else (text[start:end], True)


def open_line(line: str, *, complete: bool, after_label: bool = False) -> Line | None:
    """Classify a line by its first characters.

    Args:
        line: The line without indentation and newline, at least one character.
        complete: Whether nothing can be appended to it.
        after_label: Whether a marker such as ``A.`` counts, because the line before is an item or ends in a colon.

    Returns:
        The type, or ``None`` if the characters so far do not tell.
    """
    first = line[0]
    if first == "|":
        return Line.ROW
    if first == ">":
        return _open_quote(line, complete)
    if first == "#":
        return _open_heading(line, complete)
    if first in "`~":
        return _open_fence(line, complete)
    if first in _BULLETS or first in _RULE_CHARS:
        return _open_bullet(line, complete)
    if first == "(" or first == "[":
        return _open_bracket(line, complete)
    if first.isdecimal() and first.isascii():
        return _open_numbered(line, complete)
    if first.isascii() and first.isalpha():
        return _open_lettered(line, complete, after_label)
    return Line.PROSE


def _open_quote(line: str, complete: bool) -> Line | None:
    rest = line[1:].lstrip(" \t\r>")
    if not rest:
        return Line.QUOTE if complete else None
    inner = open_line(rest, complete=complete)
    return inner if inner in (None, Line.ITEM, Line.HEADING) else Line.QUOTE


def _open_heading(line: str, complete: bool) -> Line | None:
    rest = line.lstrip("#")
    if len(line) - len(rest) > 6:
        return Line.PROSE
    if not rest:
        return Line.HEADING if complete else None
    return Line.HEADING if rest[0].isspace() else Line.PROSE


def _open_fence(line: str, complete: bool) -> Line | None:
    run = len(line) - len(line.lstrip(line[0]))
    if run < 3:
        return None if run == len(line) and not complete else Line.PROSE
    # An info string cannot hold a backtick: "```x``` is a name" is prose.
    if line[0] == "`" and "`" in line[run:]:
        return Line.PROSE
    return Line.FENCE if complete else None


def _open_bullet(line: str, complete: bool) -> Line | None:
    if line[0] in _RULE_CHARS and not line.replace(line[0], "").strip():
        if not complete:
            return None
        if line.count(line[0]) >= 3:
            return Line.RULE
    if line[0] not in _BULLETS:
        return Line.PROSE
    if len(line) == 1:
        return Line.ITEM if complete else None
    return Line.ITEM if line[1].isspace() else Line.PROSE


def _open_bracket(line: str, complete: bool) -> Line | None:
    full, prefix = (_BRACKETED, _BRACKETED_PREFIX) if line[0] == "(" else (_REFERENCE, _REFERENCE_PREFIX)
    match = prefix.match(line)
    if not complete and match is not None and match.end() == len(line):
        return None
    marker = full.match(line)
    if marker is None:
        return Line.PROSE
    return Line.ITEM if line[0] == "[" or not marker[1] or marker[1].isspace() else Line.PROSE


def _open_numbered(line: str, complete: bool) -> Line | None:
    digits, mark, after = _NUMBERED.match(line).groups()  # type: ignore[union-attr]
    if len(digits) > _MAX_MARKER_DIGITS:
        return Line.PROSE
    if not mark:
        return None if len(digits) == len(line) and not complete else Line.PROSE
    if not after:
        return Line.ITEM if complete else None
    return Line.ITEM if after.isspace() else Line.PROSE


def _open_lettered(line: str, complete: bool, after_label: bool) -> Line | None:
    letters, mark, after = _LETTERED.match(line).groups()  # type: ignore[union-attr]
    if len(letters) > _MAX_MARKER_LETTERS or (len(letters) > 1 and not _ROMAN.issuperset(letters)):
        return Line.PROSE
    if not mark:
        return None if len(letters) == len(line) and not complete else Line.PROSE
    # "J. Smith" may begin a wrapped line; "a)" and, in a list, "A." are markers.
    if mark == "." and not after_label:
        return Line.PROSE
    if not after:
        return Line.ITEM if complete else None
    return Line.ITEM if after.isspace() else Line.PROSE


def quote_prefix_end(text: str, start: int) -> int:
    """Offset after the ``>`` marks at ``start``; ``start`` if there are none."""
    match = _QUOTE_PREFIX.match(text, start)
    return match.end() if match else start


def marker_end(text: str, start: int) -> int:
    """Offset after the list marker at ``start``; ``start`` if there is none."""
    match = _LIST_MARKER.match(text, start)
    return match.end() if match else start


def is_bold_line(line: str) -> bool:
    """Whether a line is nothing but one bold label."""
    return _BOLD_LINE.fullmatch(line) is not None


def is_table_rule(line: str, *, complete: bool) -> bool | None:
    """Whether a line is the rule under a table's header, such as ``|---|:-:|``."""
    if _TABLE_RULE_CHARS.fullmatch(line) is None:
        return False
    if not complete:
        return None
    return "|" in line and _TABLE_RULE.fullmatch(line) is not None
