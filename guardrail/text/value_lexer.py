"""The words of a text with their offsets, for the scanners that look for values in them."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from guardrail.text.identifiers import same_length_lower
from guardrail.text.numbers import CJK_NUMERAL, ENGLISH, LITERAL
from guardrail.text.qualifiers import (
    NEGATIONS,
    PLAIN,
    QUALIFIER_ENDS,
    QUALIFIER_STARTS,
    QUALIFIERS_AFTER,
    QUALIFIERS_BEFORE,
    QUALIFIERS_CJK,
    Qualifier,
    denied,
    guess_language,
)
from guardrail.text.quantities import Value, ValueKind
from guardrail.text.units import Unit

_CLASSIFIERS = "层個个位名座条张本次种家台辆棵只岁年月日天周号度米克升元欧美公"
_CLASSIFIERS += "千厘毫分小秒人件套间倍项页章点段部所国英平吨楼栋集首场支队"
_LEX = re.compile(
    r"(?P<d>(?<![\d/.-])\d{1,4}([/-])\d{1,2}\2\d{1,4}(?![\d/-]))"
    rf"|(?P<n>{LITERAL})"
    rf"|(?P<z>{CJK_NUMERAL}{{1,20}}(?=[{_CLASSIFIERS}]))"
    r"|(?P<w>(?:[a-z]++|(?![\u3005-\u30ff\u3400-\u9fff])[^\W\d_])+(?:'(?:(?![\u3005-\u9fff])[^\W\d_])+)?)"
    r"|(?P<s>[^\w\s]|\n)"
)
_AFTER_CLOCK = frozenset("on and or but every each sharp in the for except then o daily e il la und am im".split())


def is_unspaced(char: str) -> bool:
    """Whether a character belongs to a script that is written without spaces (Chinese, Japanese)."""
    return "\u3005" <= char <= "\u9fff"


def is_wordlike(char: str) -> bool:
    """Whether a character glued to a numeral makes it a part of a name, as in ``A1``."""
    return (char.isalnum() or char == "_") and not is_unspaced(char)


class Lexer:
    """Words, numerals and signs of one text, and the values found so far."""

    def __init__(self, text: str, masked: str) -> None:
        self.original = text
        self.text = masked
        self.low = same_length_lower(masked)
        found = list(_LEX.finditer(self.low))
        if "-" in self.low:
            pairs = zip([None, *found], found, strict=False)
            found = [match for before, match in pairs if not self._joins(before, match)]
        self.kinds = [match.lastgroup or "s" for match in found]
        self.words = [match.group() for match in found]
        self.starts = [match.start() for match in found]
        self.ends = [match.end() for match in found]
        self.values: list[Value] = []
        self._scales: dict[int, Decimal] = {}  # magnitude of the value that ends at an offset
        self._units_of: dict[int, tuple[Unit, ...]] = {}
        self._language: str | None = None

    def _joins(self, before: re.Match[str] | None, match: re.Match[str]) -> bool:
        """Whether a hyphen only joins a number word to the next: "twenty-five", "three-storey"."""
        return (
            match.group() == "-"
            and before is not None
            and before.group() in ENGLISH
            and before.end() == match.start()
            and self.low[match.end() : match.end() + 1].isalpha()
        )

    @property
    def language(self) -> str:
        """Language of the text, guessed when it is first needed."""
        if self._language is None:
            self._language = guess_language(self.low)
        return self._language

    def _at(self, index: int) -> str:
        return self.words[index] if 0 <= index < len(self.words) else ""

    def _index_after(self, offset: int, index: int) -> int:
        while index < len(self.starts) and self.starts[index] < offset:
            index += 1
        return index

    def _add(self, first: int, end: int, kind: ValueKind, qualifier: Qualifier = PLAIN, **fields: Any) -> None:
        start = self.starts[first]
        value = Value(
            kind=kind,
            text=self.original[start:end],
            start=start,
            end=end,
            approximate=qualifier.approximate,
            exact=qualifier.exact,
            bound=qualifier.bound,
            strict=qualifier.strict,
            **fields,
        )
        self.values.append(value)

    def _qualifier(self, first: int, after: int) -> Qualifier:
        """What the words before token ``first`` and from token ``after`` on say."""
        found = self._before(first)
        if found is None and self._at(after) in QUALIFIER_STARTS:
            for length in (3, 2, 1):
                found = QUALIFIERS_AFTER.get(" ".join(self.words[after : after + length]))
                if found is not None:
                    break
        if found is None and self._at(after) == "+" and self.starts[after] == self.ends[after - 1]:
            found = Qualifier(bound="min")
        return found or PLAIN

    def _before(self, first: int) -> Qualifier | None:
        words = self.words
        start = self.starts[first]
        if start and "\u4e00" <= self.low[start - 1] <= "\u9fff":
            return next((q for word, q in QUALIFIERS_CJK.items() if self.low.endswith(word, 0, start)), None)
        for last in (first, first - 1):  # "more than a million": an article may stand between
            if last < first and self._at(last) not in ("a", "the", "the first", "as", "il", "le", "les"):
                break
            if last > 0 and words[last - 1] in QUALIFIER_ENDS:
                for length in (4, 3, 2, 1):
                    if last >= length and (found := QUALIFIERS_BEFORE.get(" ".join(words[last - length : last]))):
                        before = words[max(0, last - length - 2) : last - length]
                        is_denied = any(word in NEGATIONS or word.endswith("n't") for word in before)
                        return denied(found) if is_denied else found
        return None

    def _is_name(self, at: int) -> bool:
        return self.text[self.starts[at]].isupper()

    def _ends_clause(self, index: int) -> bool:
        word = self._at(index)
        if word == "-" and self.kinds[index + 1 : index + 2] == ["n"]:
            return False  # "around 7-8 mph"
        return not word or not (word[0].isalnum() or word[0] in "%$€£°/") or word in _AFTER_CLOCK
