"""Repair of UTF-16 surrogate halves that arrive in separate chunks."""

from __future__ import annotations

import re

REPLACEMENT = "\ufffd"

_SURROGATE = re.compile("[\ud800-\udfff]")
_PAIR_OR_HALF = re.compile("([\ud800-\udbff])([\udc00-\udfff])|[\ud800-\udfff]")


def _join(match: re.Match[str]) -> str:
    if match[1] is None:
        return REPLACEMENT
    return chr(0x10000 + ((ord(match[1]) - 0xD800) << 10) + (ord(match[2]) - 0xDC00))


def repair_surrogates(text: str) -> str:
    r"""Join surrogate pairs and replace stray halves by U+FFFD.

    Args:
        text: Any string, also one that cannot be encoded as UTF-8.

    Returns:
        A string without surrogates; the same object if there was none.

    Example:
        >>> repair_surrogates("\ud83c\udf89") == "\U0001f389"
        True
    """
    if text.isascii() or _SURROGATE.search(text) is None:
        return text
    return _PAIR_OR_HALF.sub(_join, text)


class SurrogateJoiner:
    r"""The same for a stream: a high half at the end of a chunk waits for the next chunk.

    Example:
        >>> joiner = SurrogateJoiner()
        >>> joiner.feed("\ud83c"), joiner.feed("\udf89") == "\U0001f389", joiner.flush()
        ('', True, '')
    """

    __slots__ = ("_half",)

    def __init__(self) -> None:
        self._half = ""

    @property
    def pending(self) -> str:
        """The half that waits, shown as U+FFFD; empty if there is none."""
        return REPLACEMENT if self._half else ""

    def feed(self, text: str) -> str:
        """Return the text that is complete; costs one comparison for text without surrogates."""
        if not self._half and (text.isascii() or _SURROGATE.search(text) is None):
            return text
        text = self._half + text
        self._half = ""
        if "\ud800" <= text[-1:] <= "\udbff":
            self._half = text[-1]
            text = text[:-1]
        return repair_surrogates(text)

    def flush(self) -> str:
        """Return U+FFFD for a half whose partner never came."""
        rest, self._half = self.pending, ""
        return rest
