"""Citation marks: which numbers in brackets name a passage, and which are content."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from guardrail.text.lazy import LazyPattern

_CANDIDATE = re.compile(r"\[([\^C]?)(\d{1,3}(?:\s?[,;–-]\s?[\^C]?\d{1,3})*)\]")
_NUMBER = re.compile(r"\d{1,3}")
_JOINERS = r"and|or|but|while|whereas|although|though|which|who|e|ed|ma|mentre|und|oder|aber|während|et|mais|y|pero"
# A mark ends a clause. What follows it is a stop, a closer, the end of a line, or a word that begins the next clause.
_ENDS_CLAUSE = LazyPattern(
    r"\s*(?:[.,;:!?…)\]|。，、；：！？）】」』؟،؛।॥۔։።]|[–—](?!\s?[\d\[])|$)"
    r"|[\"”»’'](?!\w)|\*{1,3}(?!\w)|_{1,3}(?!\w)|~~(?!\w)|</?[a-z]"
    r"|\s+-\s+(?![\d\[])|[ \t]*\n(?!\s*(?:[a-z](?![.)])|\d{1,3}(?![\d.)])))"
    rf"|\s(?:{_JOINERS})\b(?![.]|\s*[\d\[])"
)
_BEFORE_ANOTHER = re.compile(r"\s{0,3}([,;–—-]?\s{0,3}(?:(?:and|or|e|und|et|y|o|oder|ou|&)\s)?)(?=\[)")
# "x[1]", "row_ids[2]", "The score is [3]", "in the range [1, 5]": an index, a value, an interval.
_INDEXED = re.compile(r"(?:(?<!\w)(?<!\d )(?<!\d)[a-z]|(?<!\w)[A-Za-z]\w*_\w*[A-Za-z\d])$")
_SAYS_VALUE = LazyPattern(
    r"(?:[=≤≥≈≠∈±×÷]|\b(?:is|are|was|were|equals?|than|exactly|approximately|è|sono|ist|sind|war|est|sont|es|son)\b)"
    r"\s*$|(?<!source)(?<!sources)(?<!reference)(?<!references)(?<!see)(?<!quelle)(?<!quellen)(?<!fonte)(?<!fonti):\s*$",
    flags=re.IGNORECASE,
)
_SAYS_INTERVAL = LazyPattern(
    r"\b(?:between|intervals?|ranges?|(?:lies?|lying|lay|falls?|fell|is|are|values?|numbers?|\w) (?:with)?in|"
    r"intervall|intervallo|intervalle|intervalo)(?: the| of| from)?\s*$",
    flags=re.IGNORECASE,
)
_CODE = re.compile(r"(`{1,3})(?!`)[^`\n]{1,400}\1(?!`)")
_MATH = re.compile(r"\$(?=[^\s$])[^$\n]{1,400}(?<=\S)\$(?!\d)|\\\(.{1,400}?\\\)|\\\[.{1,400}?\\\]", re.DOTALL)
_LINE_HEAD = re.compile(r"(?:^|\n)[ \t>]*$")
_REACH = 40


@dataclass(frozen=True, slots=True)
class MarkSpan:
    """Where a citation mark stands.

    Attributes:
        start: Offset of the mark, with the space before it.
        end: Offset after it.
        numbers: What stands between its brackets, without the sign of a kind before the first number.
        opening: What stands before the first number: ``"["``, ``" [C"``, ``"[^"``.
        names_line: Whether it names the line that it begins ("[1]: …"), as a list of sources does.
    """

    start: int
    end: int
    numbers: str
    opening: str
    names_line: bool = False

    def within(self, passages: int) -> bool:
        """Whether there is a passage for every number in it."""
        return all(1 <= int(number) <= passages for number in _NUMBER.findall(self.numbers))


def find_marks(text: str) -> list[MarkSpan]:
    """Find the citation marks of a text.

    A number in brackets is a mark only at the end of a clause: "[50] mg" is a dose. It is none in code or a formula, as
    an index, as a value ("the score is [3]") or as an interval ("between [1, 5]", "[0, 1]").

    Args:
        text: Any text.

    Example:
        >>> [mark.numbers for mark in find_marks("It is 212 m high [1] and, by [2, 3], it leaks [C4].")]
        ['1', '2, 3', '4']
        >>> find_marks("Take [50] mg, for a level in [0, 1].")
        []
    """
    if "[" not in text:
        return []
    candidates = list(_CANDIDATE.finditer(text))
    if not candidates:
        return []
    taken = list(not_prose(text))
    ends = {match.end() for match in candidates}
    starts = {match.start() for match in candidates}
    found: list[MarkSpan] = []
    marks: set[int] = set()
    listed: set[int] = set()  # "The values are [3], [5] and [7]."
    for match in candidates:
        following = _BEFORE_ANOTHER.match(text, match.end())
        listing = following is not None and following[1].strip() not in ("", ";")
        if following and listing and (match.start() in listed or _is_content(text, match, ends)):
            listed.add(following.end())
    for match in reversed(candidates):
        start, end = match.span()
        following = _BEFORE_ANOTHER.match(text, end)
        if following and following.end() in starts:
            ends_clause = following.end() in marks
        else:
            ends_clause = _ENDS_CLAUSE.match(text, end) is not None or bool(following)
        if (
            not ends_clause
            or start in listed
            or any(first <= start < last for first, last in taken)
            or _is_content(text, match, ends)
        ):
            continue
        marks.add(start)
        space = text[start - 1 : start] if text[start - 1 : start] in (" ", "\t", "\u00a0", "\u202f") else ""
        names_line = text[end : end + 1] == ":" and _LINE_HEAD.search(text, 0, start) is not None
        found.append(MarkSpan(start - len(space), end, match[2], f"{space}[{match[1]}", names_line))
    return found[::-1]


def not_prose(text: str) -> Iterator[tuple[int, int]]:
    """Where code and formulas stand in a text: first offset and the one behind the last.

    Example:
        >>> list(not_prose("Call `f(x)` first."))
        [(5, 11)]
    """
    if "`" in text:
        yield from (match.span() for match in _CODE.finditer(text))
    if "$" in text or "\\" in text:
        yield from (match.span() for match in _MATH.finditer(text))


def _is_content(text: str, match: re.Match[str], ends: set[int]) -> bool:
    start = match.start()
    numbers = [int(number) for number in _NUMBER.findall(match[2])]
    before = text[max(0, start - _REACH) : start]
    if before[-1:] == "]" and start not in ends:
        return True  # "[the report][1]" is a link
    if _INDEXED.search(before) or _SAYS_VALUE.search(before):
        return True
    if 0 in numbers and (len(numbers) > 1 or not before[-1:].isspace()):
        return True
    return len(numbers) == 2 and numbers[0] < numbers[1] and _SAYS_INTERVAL.search(before) is not None


def is_content(text: str, start: int) -> bool:
    """Whether a number in brackets that begins at ``start`` stands in code or a formula, or as an index or a value."""
    match = _CANDIDATE.match(text, start)
    spans = not_prose(text)
    return match is None or any(first <= start < last for first, last in spans) or _is_content(text, match, set())


def without_marks(text: str, *, passages: int | None = None) -> str:
    """The text without its citation marks.

    Args:
        text: Any text.
        passages: How many passages there are: a mark that leads to none of them stays. ``None`` if all marks go.

    Example:
        >>> without_marks("It is high [1], and it leaks [7].", passages=3)
        'It is high, and it leaks [7].'
    """
    pieces, at = [], 0
    for mark in find_marks(text):
        if passages is None or mark.within(passages):
            pieces.append(text[at : mark.start])
            at = mark.end
    return "".join([*pieces, text[at:]])


def is_only_marks(text: str) -> bool:
    r"""Whether a text has citation marks and nothing else.

    Example:
        >>> is_only_marks("[1], [C2]\n"), is_only_marks("It leaks [1]."), is_only_marks("…")
        (True, False, False)
    """
    return bool(find_marks(text)) and not any(map(str.isalnum, without_marks(text)))
