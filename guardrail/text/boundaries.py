"""Where a sentence ends: what a terminator means, given the text on both sides of it.

Like the questions of :mod:`guardrail.text.blocks`, every question may be asked of unfinished text: ``None`` means that
more text is needed, and a ``True`` or ``False`` is never taken back. Where a rule cannot decide, the answer is *no
boundary*: one check over two sentences is better than a check of half a sentence.
"""

from __future__ import annotations

import re
import unicodedata

from guardrail.text.abbreviations import GERMAN_MONTHS, OPENERS, ORDINAL_LEADS, StopRole, begins_sentence, role_of

# Terminators that need no space after them.
_TIGHT_STOPS = frozenset("。！？｡؟۔।॥։።။។")
_STOPS = ".!?…‥。！？｡؟۔।॥։።။។"
TERMINATOR = re.compile(f"[\n{_STOPS}]")

_CLOSERS = "\"'”’“»›«)\\]}*_~`」』】〉》）］〕"
_END = re.compile(f"[{_STOPS}][{_STOPS}{_CLOSERS}]*")
# After "„Ja." a German “ closes; after a space it opens. The same holds for » and «.
_SPACED_CLOSER = re.compile(r"[ \u00a0\u202f][»](?!\w)")
# Marks: [1], [2, 3], [^4], [C1], [1](https://…), 【4:0†source】, (Passage 1), ¹.
_CITATIONS = re.compile(
    r"(?:[ \u00a0]?(?:\[\^?[A-Za-z]?\d{1,3}(?:\s?[,;–-]\s?[A-Za-z]?\d{1,3})*\](?:\([^()\s]{0,200}\))?"
    r"|【[^】\n]{1,24}】"
    r"|\((?:[Pp]assage|[Ss]ource|[Dd]ocument|[Dd]oc|[Cc]ontext|[Rr]ef|[Qq]uelle|[Ff]onte|"
    r"[Ff]uente)s?:? ?#?\d[\d ,:–-]{0,12}\)))+"
    r"|[¹²³⁰⁴-⁹]+"
)
_CITATION_PREFIX = re.compile(
    r"[ \u00a0]?(?:\[[\^A-Za-z\d\s,;–-]{0,20}|【[^】\n]{0,24}|"
    r"\([A-Za-z]{0,9}(?:(?<=[a-z]):? ?#?(?:\d[\d ,:–-]{0,12})?)?)?"
)
_LINK_PREFIX = re.compile(r"\([^()\s]{0,200}")

_OPENERS = frozenset("\"'“”„«»‹‘([{*_¿¡`「『（【《~#")
_CURRENCY = frozenset("$€£¥₹@§&")
_DASHES = frozenset("-–—•")

_WORD_BEFORE = re.compile(r"(?:(?<![^\W_])(?:[^\W\d_]\.[ \u00a0\u202f]|[^\W\d_]{1,5}\.)+)?[^\W\d_]+$")
_PHRASE_BEFORE = re.compile(r"[^\W\d_]+\s[^\W\d_]+$")
_NUMBER_BEFORE = re.compile(r"\d[\s\u00a0]?$")
_SMALL_NUMBER = re.compile(r"(?:^|(?<=[\s(\[–*_]))\d{1,2}$")
_LEAD_BEFORE = re.compile(r"([^\W\d_]+)\s+$")
_WORD = re.compile(r"[^\W\d_]+")
_LETTER = re.compile(r"[^\W\d_]")
_NUMERAL = re.compile(r"[IVXLC]+")
_TOKEN_BEFORE = re.compile(r"[^\s(\[{\"“„«*_]+$")
_PLAIN_NUMBER = re.compile(r"\d{3,}")
_FILE_SUFFIXES = frozenset("com org net edu gov js ts py md txt pdf json html xml csv exe dll io".split())

_PAIRS = {"(": ")", "[": "]", "„": "“", "“": "”", "«": "»", "「": "」", "『": "』", "（": "）", "《": "》", "【": "】"}
_PAIR_MARKS = re.compile(r'["()\[\]„“”«»「」『』（）《》【】]')
_PAIR_REACH = 240
_LOOK_BACK = 40


def sentence_end(text: str, stop: int, *, ended: bool) -> tuple[int, bool] | None:
    """Find the end of a terminator run with the closers and citation marks that belong to it.

    Args:
        text: The text so far.
        stop: Offset of the first terminator.
        ended: Whether nothing follows ``text``.

    Returns:
        Offset after the run and whether a citation mark is part of it, or ``None`` if more text is needed.
    """
    match = _END.match(text, stop)
    end = match.end() if match else stop + 1
    spaced = _SPACED_CLOSER.match(text, end)
    if spaced is not None:
        if spaced.end() == len(text) and not ended:
            return None
        end = spaced.end()
    elif not ended and len(text) - end <= 1 and text[end : end + 1] in ("", " ", "\u00a0", "\u202f"):
        return None
    cited = _CITATIONS.match(text, end)
    after = cited.end() if cited else end
    if not ended:
        prefix = _CITATION_PREFIX.match(text, after)
        if prefix is not None and prefix.end() == len(text):
            return None
        if cited is not None and text[after - 1] == "]":
            link = _LINK_PREFIX.match(text, after)
            if link is not None and link.end() == len(text):
                return None
    return after, cited is not None


def is_tight(text: str, stop: int, end: int) -> bool:
    """Whether the run ends a sentence without a space after it, as in Chinese, Arabic or Hindi."""
    run = text[stop:end]
    if not _TIGHT_STOPS.isdisjoint(run):
        return True
    # Latin "!" and "?" between ideographs.
    return run[0] in "!?" and stop > 0 and _is_ideograph(text[stop - 1]) and _is_ideograph(text[end : end + 1])


def starts_next(text: str, stop: int, end: int) -> bool:
    """Whether text that follows a tight stop at once is a new sentence: not after a closed quotation (「好。」他说)."""
    return text[end - 1] not in _CLOSERS or text[end] in _OPENERS


def begins_small(text: str) -> bool:
    """Whether the first letter of a text is a small one."""
    match = _LETTER.search(text)
    return match is not None and match[0].islower()


def _is_ideograph(char: str) -> bool:
    return "\u3040" <= char <= "\u9fff" or "\uac00" <= char <= "\ud7a3"


def inside_pair(text: str, end: int) -> bool:
    """Whether a bracket or quotation that was opened in the last 240 characters is still open at ``end``."""
    start = max(0, end - _PAIR_REACH)
    stack: list[str] = []
    for match in _PAIR_MARKS.finditer(text, start, end):
        mark = match[0]
        if stack and stack[-1] == mark:
            stack.pop()
        elif _opens(text, match.start(), mark):
            stack.append(_PAIRS.get(mark, "«" if mark == "»" else '"'))
    return bool(stack)


def _opens(text: str, at: int, mark: str) -> bool:
    before, after = text[at - 1 : at] if at else "", text[at + 1 : at + 2]
    if mark in "「『（《【":
        return True
    if mark in ")]”」』）》】" or (after.isspace() and mark != "«"):
        return False
    if mark == '"' or mark == "»":
        return not before or before.isspace() or before in "([{*_—–-„“"
    return before not in (":", ";", "-") or mark not in "(["


def follows_boundary(text: str, stop: int, end: int, after: int, *, ended: bool, lower_style: bool) -> bool | None:
    """Decide a terminator that is followed by whitespace and more text on the same paragraph.

    Args:
        text: The text since the last boundary.
        stop: Offset of the terminator.
        end: Offset after the terminator, its closers and citation marks.
        after: Offset of the first character after the whitespace.
        ended: Whether nothing follows ``text``.
        lower_style: Whether the text begins its sentences with small letters.

    Returns:
        Whether a new sentence begins at ``after``; ``None`` if more text is needed.
    """
    letter = after
    while letter < len(text) and text[letter] in _OPENERS:
        letter += 1
    if letter == len(text):
        return True if ended else None
    char = text[letter]
    if char in _DASHES:
        return _after_dash(text, letter, ended)
    bare = end == stop + 1 and text[stop] == "."
    if char.islower():
        return lower_style and end == stop + 1 and (not bare or _is_plain_word(text, stop))
    if not (char.isalnum() or char in _CURRENCY or unicodedata.category(char) == "So"):
        return False
    if not bare:
        return True if text[stop] != "." or text[stop : stop + 2] == ".." else _after_stop(text, stop, letter, ended)
    return _after_stop(text, stop, letter, ended)


def _after_dash(text: str, dash: int, ended: bool) -> bool | None:
    at = dash
    while at < len(text) and (text[at] in _DASHES or text[at].isspace()):
        at += 1
    if at == len(text):
        return True if ended else None
    return text[at].isupper()


def _word_before(text: str, stop: int) -> tuple[str, StopRole]:
    start = max(0, stop - _LOOK_BACK)
    match = _WORD_BEFORE.search(text, start, stop)
    if match is None:
        return "", StopRole.ORDINARY
    word = match[0].replace(" ", "").replace("\u00a0", "").replace("\u202f", "")
    phrase = _PHRASE_BEFORE.search(text, start, stop)
    after_number = _NUMBER_BEFORE.search(text, max(0, match.start() - 3), match.start()) is not None
    if len(word) == 1 and match.start() and text[match.start() - 1] in "°'’/&-":
        return word, StopRole.ORDINARY
    role = role_of(word, phrase[0] if phrase else "", after_number=after_number)
    if role is StopRole.SOMETIMES and len(word) < len(match[0]):
        role = StopRole.INITIAL  # "J. R", as opposed to "U.S"
    return word, role


def _is_plain_word(text: str, stop: int) -> bool:
    if text[stop - 1 : stop].isdigit():
        return _SMALL_NUMBER.search(text, max(0, stop - 3), stop) is None
    word, role = _word_before(text, stop)
    return len(word) >= 3 and role is StopRole.ORDINARY


def _after_stop(text: str, stop: int, letter: int, ended: bool) -> bool | None:
    """The same for a single full stop before a capital, a digit or a caseless letter."""
    if stop and text[stop - 1].isdigit():
        return _after_number(text, stop, letter, ended)
    word, role = _word_before(text, stop)
    if role is StopRole.ORDINARY:
        return True
    if role is StopRole.NEVER or (len(word) == 1 and not text[: stop - 1].strip("([*_-> \n")):
        return False  # a lone letter at the start is a list marker
    opened = text[letter - 1] in "([" if letter else False
    if text[letter].isdigit() or opened:
        return role is StopRole.FINAL and not opened
    if role is StopRole.FINAL:
        return True
    return _after_abbreviation(text, word, role, letter, ended)


def _after_abbreviation(text: str, word: str, role: StopRole, letter: int, ended: bool) -> bool | None:
    match = _WORD.match(text, letter)
    if match is None:
        return role is StopRole.NUMBERED
    if match.end() == len(text) and not ended:
        return None
    next_word = match[0]
    if len(next_word) == 1 and text[match.end() : match.end() + 1] == ".":
        return False  # "J. A. Smith"
    if role is StopRole.NUMBERED:
        numeral = _NUMERAL.fullmatch(next_word) is not None and (next_word != "I" or word.lower() != "no")
        return not (numeral or (len(next_word) == 1 and next_word not in "AI"))
    return begins_sentence(next_word, role)


def _after_number(text: str, stop: int, letter: int, ended: bool) -> bool | None:
    small = _SMALL_NUMBER.search(text, max(0, stop - 3), stop)
    if small is None:
        return True
    # German writes ordinals with a stop ("3. Juni"); "Steps: 1. Open it. 2. Pour." has markers.
    if text[letter].isdigit():
        return False
    head = text[: small.start()].rstrip(" \t\n([*_")
    if not head or (head[-1] in ".:;!?" and not (head[-1] == "." and _is_abbreviation(head))):
        return False
    lead = _LEAD_BEFORE.search(text, max(0, small.start() - _LOOK_BACK), small.start())
    if lead is not None and lead[1].lower() in ORDINAL_LEADS and not head.endswith("I am"):
        return False
    match = _WORD.match(text, letter)
    if match is None:
        return True
    if match.end() == len(text) and not ended:
        return None
    return match[0].lower() not in GERMAN_MONTHS or not match[0][0].isupper()


def _is_abbreviation(head: str) -> bool:
    return _word_before(head, len(head) - 1)[1] is not StopRole.ORDINARY


def glued_boundary(text: str, stop: int, end: int, *, cited: bool, ended: bool) -> bool | None:
    """Decide a terminator that a letter follows at once: ``1990.It closed`` is a boundary, ``docs.example`` is not.

    Args:
        text: The text since the last boundary.
        stop: Offset of the terminator.
        end: Offset after the terminator, its closers and citation marks.
        cited: Whether a citation mark stands between.
        ended: Whether nothing follows ``text``.

    Returns:
        Whether a new sentence begins at ``end``; ``None`` if more text is needed.
    """
    if not text[end].isupper():
        return False
    if cited:
        return True
    if end != stop + 1:
        return False
    token = _TOKEN_BEFORE.search(text, max(0, stop - _LOOK_BACK), stop)
    before = token[0] if token else ""
    lower = before.replace("-", "").isalpha() and before.islower() and len(before) > 1
    if not (_PLAIN_NUMBER.fullmatch(before) or before.replace("-", "").isalpha() or before.isdigit()):
        return False
    match = _WORD.match(text, end)
    if match is None or (match.end() == len(text) and not ended):
        return None if match is not None else False
    word, follower = match[0], text[match.end() : match.end() + 1]
    if follower and not (follower.isspace() or follower in ",'’"):
        return False
    if not (word[1:].islower() or word in ("I", "A")) or word.lower() in _FILE_SUFFIXES:
        return False
    if text[stop] == "." and _word_before(text, stop)[1] is not StopRole.ORDINARY:
        return False
    return lower or (len(before) > 2 and before.isdigit()) or text[stop] != "." or word.lower() in OPENERS
