"""Regular expressions that are compiled at first use."""

from __future__ import annotations

import re
from functools import cached_property


class LazyPattern:
    """Alternatives compiled when first needed: the lists of wordings cost 30 ms, which an import should not.

    Args:
        *alternatives: Regular expressions, joined by ``|``.
        flags: As of :func:`re.compile`.

    Example:
        >>> bool(LazyPattern("hi", "hello").fullmatch("hello"))
        True
    """

    def __init__(self, *alternatives: str, flags: int = 0) -> None:
        self._alternatives = alternatives
        self._flags = flags

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile("(?:" + "|".join(self._alternatives) + ")", self._flags)

    def match(self, text: str, start: int = 0) -> re.Match[str] | None:
        """As :meth:`re.Pattern.match`."""
        return self._pattern.match(text, start)

    def fullmatch(self, text: str) -> re.Match[str] | None:
        """As :meth:`re.Pattern.fullmatch`."""
        return self._pattern.fullmatch(text)

    def search(self, text: str) -> re.Match[str] | None:
        """As :meth:`re.Pattern.search`."""
        return self._pattern.search(text)

    def findall(self, text: str) -> list[str]:
        """As :meth:`re.Pattern.findall`, for patterns without groups."""
        return self._pattern.findall(text)

    def sub(self, replacement: str, text: str, count: int = 0) -> str:
        """As :meth:`re.Pattern.sub`."""
        return self._pattern.sub(replacement, text, count)
