"""Where to cut text that has no boundary within a limit."""

from __future__ import annotations

import re
import unicodedata

_CLAUSE_END = re.compile(
    r"[;:,—–]\s+|[，；：、]|\s+(?=(?:and|or|but|because|which|while|und|oder|aber|weil|e|o|ma|perché|et|ou|mais|y|pero)\s)"
)
_SPACE = re.compile(r"\s+")
_EXTENDING = frozenset({"Mn", "Mc", "Me"})


def clause_within(text: str, limit: int) -> int:
    """Where to cut prose that is too long: after a clause, else at a space, else between two characters."""
    head = text[:limit]
    end = 0
    for match in _CLAUSE_END.finditer(head, limit // 2):
        end = match.end()
    if end:
        return end
    body = head.rstrip()
    for match in _SPACE.finditer(head, 1 if body else limit):
        if not head[: match.start()].isspace():
            end = match.end()
    if end:
        return end
    end = limit
    while end > limit // 2 and _is_joined(text, end):
        end -= 1
    return end if end > limit // 2 else limit


def lines_within(text: str, limit: int) -> int:
    """Where to cut a block that is too long: at the last line end, else between two characters."""
    return text.rfind("\n", 0, limit) + 1 or limit


def _is_joined(text: str, at: int) -> bool:
    """Whether the characters around ``at`` belong together: a combined character, an emoji sequence or a number."""
    before, after = text[at - 1], text[at : at + 1]
    if not after:
        return False
    if "\u200d" in (before, after) or unicodedata.combining(after) or unicodedata.category(after) in _EXTENDING:
        return True
    if "\U0001f3fb" <= after <= "\U0001f3ff" or "\U0001f1e6" <= before <= "\U0001f1ff":
        return True
    return (before.isdigit() and (after.isdigit() or after in ".,")) or (before in ".," and after.isdigit())
