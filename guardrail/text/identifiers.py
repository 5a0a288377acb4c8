"""What must be copied exactly (addresses, phone numbers, versions, code), and what is no content at all."""

from __future__ import annotations

import re

from guardrail.text.dates import MONTHS, numeric_dates
from guardrail.text.marks import find_marks
from guardrail.text.numbers import literal_readings
from guardrail.text.quantities import Value, ValueKind
from guardrail.text.tokens import (
    FOLDED_DASHES,
    FOLDED_DIGITS,
    FOLDED_DOUBLE_QUOTES,
    FOLDED_QUOTES,
    FOLDED_SPACES,
)

# Length-preserving, so that offsets are those of the original.
_SAME_LENGTH = FOLDED_DIGITS | str.maketrans(
    {
        **dict.fromkeys(FOLDED_QUOTES, "'"),
        **dict.fromkeys(FOLDED_DOUBLE_QUOTES, '"'),
        **dict.fromkeys(FOLDED_DASHES, "-"),
        **dict.fromkeys(FOLDED_SPACES, " "),
        "٫": ".",
        "٬": ",",
        "٪": "%",
        "％": "%",
        "．": ".",
        "，": ",",
        "μ": "µ",
        "⁄": "/",
        "∕": "/",
        "˚": "°",
    }
)

_TLD = "com|org|net|edu|gov|io|dev|app|ai|info|eu|uk|de|it|fr|es|ch|at|nl|us|ca|au|jp|cn|example|test"
_URL = re.compile(
    r"(?<![\w@.])(?:https?://|www\.)[^\s<>\"'`|\]]+"
    rf"|(?<![\w@./-])(?:[a-z0-9-]{{1,63}}\.){{1,5}}(?:{_TLD})(?:/[^\s<>\"'`|\]]*)?(?![\w.@-]\w|\w)",
    re.IGNORECASE,
)
_IN_URL = re.compile(r"\.\S|://")  # in every one of them, and in few sentences
_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}")
_PHONE = re.compile(
    r"(?<![\w.,+])(?:"
    r"\+\d{1,3}[ .\-/]?(?:\(\d{1,4}\)[ .\-/]?)?\d{1,4}(?:[ .\-/]\d{2,4}){1,5}"
    r"|\+\d{8,15}"
    r"|\(\d{2,5}\)[ -]?\d{3,4}[ .-]\d{3,5}"
    r"|\d{3}[.-]\d{3}[.-]\d{4}"
    r"|0\d{1,4}[ /-]\d{5,9}|0\d{2,3} \d{3,4} \d{3,4}"
    r")(?![\w])"
)
_VERSION = re.compile(
    r"(?<![\w.])v?\d{1,6}(?:\.\d{1,6}){2,4}(?:-(?:alpha|beta|rc)[.\d]{0,6})?(?!\w)|(?<!\w)v\d{1,6}(?:\.\d{1,6}){0,4}(?!\w)"
)
_CODE = re.compile(r"(?<!`)(`{1,3})(?!`)([^`\n]{1,400})\1(?!`)")
_NUMERAL = re.compile(r"\d")
_LIST_MARK = re.compile(r"^[ \t>]*(?:#{1,6}[ \t]+)?(?:[-*+•‣◦][ \t]+)?(?:(\d{1,3}[.)])[ \t]+(?=\S))?", re.MULTILINE)
_MAX_ITEM = 30
_EMPHASIS = re.compile(r"(?<!\d)\*+|\*+(?!\d)|(?<!\w)_{1,20}|_{1,20}(?!\w)|~~")
_MAX_TRAILING = ".,;:!?)*_>'\""


def same_length_fold(text: str) -> str:
    """Fold digits, quotes, dashes and spaces without moving an offset."""
    return text if text.isascii() else text.translate(_SAME_LENGTH)


def same_length_lower(text: str) -> str:
    """Lower case without moving an offset (some capitals have a longer lower-case form)."""
    low = text.lower()
    return low if len(low) == len(text) else "".join(c if len(c.lower()) != 1 else c.lower() for c in text)


def find_identifiers(text: str) -> tuple[list[Value], str]:
    """Find identifiers, and blank them, citation marks, list marks and emphasis.

    Args:
        text: A text folded by :func:`same_length_fold`.

    Returns:
        The identifiers, and the text of the same length with spaces where something was taken out.
    """
    found: list[Value] = []
    if "`" in text:
        text = _take(_CODE, ValueKind.CODE, text, found)
    if "@" in text:
        text = _take(_EMAIL, ValueKind.EMAIL, text, found)
    if _IN_URL.search(text):
        text = _take(_URL, ValueKind.URL, text, found)
    if _NUMERAL.search(text):
        if "." in text or "v" in text or "V" in text:
            text = _take(_VERSION, ValueKind.VERSION, text, found)
        text = _take(_PHONE, ValueKind.PHONE, text, found)
    for mark in find_marks(text):
        text = text[: mark.start] + " " * (mark.end - mark.start) + text[mark.end :]
    text = _LIST_MARK.sub(_blank_marks, text)
    if "*" in text or "_" in text or "~" in text:
        text = _EMPHASIS.sub(_blank, text)
    return found, text


def _blank(match: re.Match[str]) -> str:
    return " " * len(match.group())


def _blank_marks(match: re.Match[str]) -> str:
    number = match[1]
    if number:
        following = match.string[match.end() : match.end() + 12].lower().split()
        if following and following[0].strip(".,") in MONTHS:  # "3. Juni" is a date
            return match.group()
        if int(number[:-1]) > _MAX_ITEM:  # "50. is the daily dose"
            return match.group()
    return " " * len(match.group())


def _take(pattern: re.Pattern[str], kind: ValueKind, text: str, found: list[Value]) -> str:
    pieces: list[str] = []
    done = 0
    for match in pattern.finditer(text):
        raw = match.group()
        if kind is ValueKind.URL:
            raw = _trim_url(raw)
        key = _KEYS[kind](raw)
        if not key:
            continue
        start = match.start()
        found.append(Value(kind=kind, text=raw, start=start, end=start + len(raw), key=key))
        pieces += (text[done:start], " " * len(raw))
        done = start + len(raw)
    return "".join(pieces) + text[done:] if pieces else text


def _trim_url(raw: str) -> str:
    kept = raw.rstrip(_MAX_TRAILING)
    # A closing bracket belongs to the address only if it was opened in it.
    return kept + ")" if raw[len(kept) :].startswith(")") and kept.count("(") > kept.count(")") else kept


def _url_key(raw: str) -> str:
    bare = re.sub(r"^https?://", "", raw, flags=re.IGNORECASE)
    host, slash, path = bare.partition("/")
    return (host.lower().removeprefix("www.") + slash + path).rstrip("/")


def _version_key(raw: str) -> str:
    number = raw.lower().removeprefix("v")
    if raw[0] not in "vV" and (literal_readings(number, "") or numeric_dates(number)):
        return ""
    return number


def _phone_key(raw: str) -> str:
    digits = re.sub(r"\D", "", raw)
    if not raw.startswith("+") and numeric_dates(raw):
        return ""
    return digits if len(digits) >= _MIN_PHONE_DIGITS else ""


_MIN_PHONE_DIGITS = 7
_KEYS = {
    ValueKind.CODE: lambda raw: " ".join(raw.strip("`").split()),
    ValueKind.EMAIL: lambda raw: raw.rstrip(".-").lower(),
    ValueKind.URL: _url_key,
    ValueKind.VERSION: _version_key,
    ValueKind.PHONE: _phone_key,
}
