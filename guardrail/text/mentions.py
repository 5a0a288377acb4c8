"""Citation marks in words: "(Passage 2)", "[Source 1, Source 3]"."""

from __future__ import annotations

import re

from guardrail.text.marks import not_prose

_NOUNS = (
    r"(?:passage|source|document|doc|excerpt|snippet|context|ref(?:erence)?"
    r"|passaggio|fonte|documento|estratto|quelle|dokument|auszug|fuente|extrait)"
)
_NUMBERS = r"\d{1,3}(?:\s?(?:[,;&–-]|and|or|to|e|und|et|y)\s?\d{1,3}){0,8}(?!\d|[.,]\d|\s?[%°€$£])"
_IN_BRACKETS = re.compile(
    rf"\s?(?P<open>[(\[])\s?(?:see |per |from )?{_NOUNS}s?:?\s?#?{_NUMBERS}"
    rf"(?:\s?(?:[,;&]|and|und|e|et|y)\s?{_NOUNS}s?:?\s?#?{_NUMBERS}){{0,8}}\s?(?P<close>[)\]])",
    re.IGNORECASE,
)
_NAME = re.compile(r"\s?[^\W\d_]+\d")
_FENCES = ("```", "~~~")


def without_mentions(text: str, *, passages: int | None = None) -> str:
    """The text without brackets that only name passages; those in code and formulas stay.

    Args:
        text: Any text.
        passages: How many passages there are: brackets that name another one stay. ``None`` if all go.

    Example:
        >>> without_mentions("Knead it (Passage 2), says source 1 (document 9).", passages=3)
        'Knead it, says source 1 (document 9).'
    """
    if ("(" not in text and "[" not in text) or text.lstrip().startswith(_FENCES):
        return text
    taken = list(not_prose(text))

    def kept(match: re.Match[str]) -> str:
        start = match.start("open")
        if (match["open"] == "(") != (match["close"] == ")") or _is_argument(text, start):
            return match[0]
        if any(first <= start < last for first, last in taken):
            return match[0]
        numbers = [int(number) for number in re.findall(r"\d+", match[0])]
        leads_somewhere = passages is None or all(1 <= number <= passages for number in numbers)
        return "" if leads_somewhere else match[0]

    return _IN_BRACKETS.sub(kept, text)


def _is_argument(text: str, start: int) -> bool:
    """Whether brackets follow a name and hold one: "parse(doc1)", "rows[ref2]"."""
    before = text[start - 1 : start]
    return before.isascii() and (before.isalnum() or before == "_") and _NAME.match(text, start + 1) is not None
