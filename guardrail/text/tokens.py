"""Words of a text, for the longest common subsequence and for alignment.

The tokens keep what a comparison needs: accents, whole numbers, single CJK characters. Markdown emphasis,
typographic variants and letter case do not count.
"""

from __future__ import annotations

import re
import unicodedata

from guardrail.text.lazy import LazyPattern

FOLDED_SPACES = "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_INVISIBLE = "\u00ad\u200b\u200c\u200d\u2060\ufeff\u200e\u200f\u0640"
_ARABIC_VOWELS = "".join(map(chr, range(0x064B, 0x0653))) + "\u0670"
FOLDED_QUOTES = "‘’‚‛′ʼ´"
FOLDED_DOUBLE_QUOTES = "“”„‟″«»"
FOLDED_DASHES = "‐‑‒–—―−﹣-"

_ZEROS = (0x660, 0x6F0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xBE6, 0xC66, 0xCE6, 0xE50, 0xED0, 0x17E0, 0xFF10)
FOLDED_DIGITS: dict[int, str | None] = {zero + digit: str(digit) for zero in _ZEROS for digit in range(10)}

_FOLDED = FOLDED_DIGITS | str.maketrans(
    {
        **dict.fromkeys(FOLDED_QUOTES, "'"),
        **dict.fromkeys(FOLDED_DOUBLE_QUOTES, '"'),
        **dict.fromkeys(FOLDED_DASHES, "-"),
        **dict.fromkeys(FOLDED_SPACES, " "),
        **dict.fromkeys(_INVISIBLE + _ARABIC_VOWELS, None),  # optional in Arabic spelling
        "٫": ".",
        "٬": ",",
        "٪": "%",
        **{mark: f"^{digit}" for digit, mark in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")},  # NFKC would make a 102 of 10²
    }
)
# Scripts that are written without spaces: each character is a token, as a word boundary cannot be seen.
_UNSPACED = (
    "\u0e01-\u0e4e\u0e81-\u0ecd\u1000-\u103f\u1780-\u17d3"  # Thai, Lao, Burmese, Khmer
    "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0002fa1f"
)
# Vowel signs of Indic scripts and combining accents are part of a word, but not \w.
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u0900-\u0903\u093a-\u094f"
    "\u0981-\u09cd\u0a01-\u0a4d\u0b82-\u0bcd\u0c00-\u0c4d"
)
_LETTER = rf"(?:(?![{_UNSPACED}])\w|[{_MARKS}])"
_NUMBER = r"(?<![\w.,])\.\d+|\d+(?:[.,]\d+|'\d{3})*"
_TOKEN = LazyPattern(rf"{_NUMBER}|[{_UNSPACED}]|{_LETTER}+(?:'{_LETTER}+)*")
_TOKEN_ASCII = re.compile(rf"{_NUMBER}|\w+(?:'\w+)*", re.ASCII)
_EMPHASIS = re.compile(r"(?<!\w)_{1,20}(?=\S)|(?<=\S)_{1,20}(?!\w)")


def fold(text: str) -> str:
    """Fold typographic variants: quotes, dashes and spaces to their ASCII form, invisible characters to nothing.

    The result may differ in length from ``text``; letter case and accents stay.

    Example:
        >>> fold("9–17 h “daily”")
        '9-17 h "daily"'
    """
    return text if text.isascii() else unicodedata.normalize("NFKC", text.translate(_FOLDED))


def tokens(text: str) -> list[str]:
    """Split a text into comparable words.

    Words keep their accents and their apostrophes ("door's" is one word, so that LCS counts it once); decimals and
    grouped numbers stay whole, without a unit glued to them; hyphenated words are split; scripts written without
    spaces give one token per character; markdown emphasis disappears, while ``under_scores`` inside a word stay.

    Args:
        text: Any text.

    Returns:
        Case-folded tokens in order; empty for a text without letters and digits.

    Example:
        >>> tokens("The **door’s** code is 12,480; snake_case, well-known, 2.5mg.")
        ['the', "door's", 'code', 'is', '12,480', 'snake_case', 'well', 'known', '2.5', 'mg']
    """
    ascii_only = text.isascii()
    folded = text.lower() if ascii_only else fold(text).casefold()
    if "_" in folded:
        folded = _EMPHASIS.sub(" ", folded)
    return _TOKEN_ASCII.findall(folded) if ascii_only else _TOKEN.findall(folded)
