"""The leaves of a structured passage as typed facts: what a record says, exactly."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import NamedTuple

from guardrail.scoring.json_reader import Container, NotStructured, Reader, Scalar, is_text
from guardrail.scoring.json_units import label_of
from guardrail.scoring.record_words import PREFIXES, key_words

_JSON = re.compile(r"^[^{\[\n\"']{0,80}?(?=\{[ \t\r\n]*[\"']|\[[ \t\r\n]*\{)", re.M)
_MEMBER = re.compile(r"[ \t\r\n]*(?=\"[^\"\n]{1,80}\"[ \t]*:[ \t]*[\"{\[\dtfn-])")
_PAIR = re.compile(r"[ \t]*(?:[-*+•][ \t]+)?(?:\*\*)?(?P<key>[^\W\d_][^:=|\n{}\[\]<>;!?*\",]{0,47}?)(?:\*\*)?:(?:\*\*)?"
                   r"[ \t]+(?P<value>\S[^\n]*)")  # fmt: skip
_PAIRS_SHARE = 0.6  # of the lines; below it is prose with a colon here and there
_MAX_KEY_WORDS = 6
_QUOTED = re.compile(r"u?(['\"])(.*)\1", re.S)
_NUMBER = re.compile(r"-?\d{1,12}(?:\.\d{1,6})?")
_TIME = r"(\d{1,2})(?:[:.h](\d{1,2}))?(?::\d{2})?[ ]?(?:([ap])\.?[ ]?m\b\.?)?|(noon|midday|midnight)"
_SPAN = re.compile(rf"(?:{_TIME})\s*(?:-|–|—|to|until|till)\s*(?:{_TIME})", re.I)
_DAY = 1440
_YES = frozenset(
    ("yes", "true", "y", "available", "included", "allowed", "accepted", "supported", "enabled", "free", "paid",
     "complimentary", "full_bar", "full bar", "beer_and_wine", "beer and wine")
)  # fmt: skip
_NO = frozenset(
    ("no", "false", "none", "not available", "unavailable", "not included", "not allowed", "not accepted",
     "not supported", "disabled")
)  # fmt: skip
_UNKNOWN = frozenset(
    ("", "-", "—", "null", "n/a", "na", "nan", "unknown", "not given", "not specified", "not provided", "not stated",
     "unspecified", "not known", "not applicable", "tbd")
)  # fmt: skip
_NAME_KEYS = ("name", "title", "model", "product", "label")


class FactKind(StrEnum):
    """What a value of a record is."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"
    HOURS = "hours"
    NUMBER = "number"
    TEXT = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One leaf of a record.

    Attributes:
        path: The words of each key on the way to it.
        label: The last two keys in words, as they are said.
        value: The value as it is said; for booleans "yes" and "no".
        kind: What the value is.
        record: Number of the record in its passage.
        subject: Name of the record; empty if it has none.
        row: Whether the record is a row of a list inside another record.
        source: Id of the passage.
        start: Offset of the key in the passage.
        end: Offset after the value.
        number: The amount, for numbers.
        spans: Opening and closing time in minutes after midnight, each with every meaning it can have, for hours;
            none if closed all day.
    """

    path: tuple[tuple[str, ...], ...]
    label: str = field(default="", repr=False)
    value: str = field(repr=False)
    kind: FactKind
    record: int = 0
    subject: str = ""
    row: bool = False
    source: str = ""
    start: int = 0
    end: int = 0
    number: Decimal | None = None
    spans: tuple[tuple[frozenset[int], frozenset[int]], ...] = ()


def record_facts(text: str, *, source: str = "") -> tuple[Fact, ...]:
    """Read the records of a passage: JSON, Python's spelling of it, or lines of keys and values.

    Args:
        text: The passage.
        source: Its id, kept with each fact.

    Returns:
        The leaves in the order of the passage; none if the passage has no record. Time is linear in the text.

    Example:
        >>> [(f.path[-1], f.kind.value) for f in record_facts('{"WiFi": "no", "hasPool": true, "lift": null}')]
        [(('wifi',), 'no'), (('has', 'pool'), 'yes'), (('lift',), 'unknown')]
        >>> record_facts("The hotel has a pool.")
        ()
    """
    return tuple(_Collector(text, source).facts())


class _Record(NamedTuple):
    number: int
    subject: str
    row: bool


class _Collector:
    def __init__(self, text: str, source: str) -> None:
        self._text = text
        self._source = source
        self._records = -1

    def facts(self) -> Iterator[Fact]:
        at, found = 0, False
        if "{" in self._text:
            while match := _JSON.search(self._text, at):
                reader = Reader(self._text, match.end(), _same)
                try:
                    root = reader.document()
                except NotStructured:
                    at = max(reader.at, match.end() + 1)
                    continue
                at, found = max(reader.at, match.end() + 1), True
                yield from self._rows(root, (), nested=False) if not root.keyed else self._record(root, (), row=False)
        if not found and (member := _MEMBER.match(self._text)):
            self._records += 1
            for part in Reader(self._text, member.end(), _same).fragment():
                found = True
                yield from self._members(part, (), _Record(self._records, "", False))
        if not found:
            yield from self._pairs()

    def _record(self, node: Container, keys: tuple[str, ...], *, row: bool) -> Iterator[Fact]:
        self._records += 1
        yield from self._members(node, keys, _Record(self._records, _name(node), row))

    def _rows(self, node: Container, keys: tuple[str, ...], *, nested: bool) -> Iterator[Fact]:
        for _, _, child in node.members:
            if isinstance(child, Container) and child.keyed:
                yield from self._record(child, keys, row=nested)

    def _members(self, node: Container, keys: tuple[str, ...], record: _Record) -> Iterator[Fact]:
        for key, start, child in node.members:
            own = (*keys, key) if key_words(key) else keys
            if isinstance(child, Scalar):
                if own and not (child.text and is_text(child.value)):
                    yield self._fact(own, child.value, record, start, child.end, text=child.text)
            elif isinstance(child, Container) and child.keyed:
                yield from self._members(child, own, record)
            elif isinstance(child, Container):
                values = [c for *_, c in child.members if isinstance(c, Scalar)]
                if values and own:
                    said = ", ".join(v.value for v in values if not is_text(v.value))
                    yield self._fact(own, said, record, start, child.end)
                yield from self._rows(child, own, nested=True)

    def _pairs(self) -> Iterator[Fact]:
        lines = pairs = 0
        found: list[tuple[str, str, int, int]] = []
        subject = ""
        at = 0
        for line in self._text.split("\n"):
            lines += bool(line.strip())
            match = _PAIR.fullmatch(line.rstrip())
            if match and len(match["key"].split()) <= _MAX_KEY_WORDS:
                pairs += 1
                words, value = key_words(match["key"]), match["value"].strip()
                if words and words[-1] in _NAME_KEYS and not subject:
                    subject = value
                if words and not is_text(value):
                    found.append((match["key"], value, at + match.start("key"), at + match.end("value")))
            at += len(line) + 1
        keys = [key for key, *_ in found]
        if pairs < 2 or pairs < _PAIRS_SHARE * lines or len(set(keys)) < len(keys):
            return  # prose, or several records without a border between them
        for key, value, start, end in found:
            yield self._fact((key,), value, _Record(0, subject, False), start, end)

    def _fact(
        self, keys: tuple[str, ...], value: str, record: _Record, start: int, end: int, *, text: bool = True
    ) -> Fact:
        kind, number, spans = typed(value, text=text)
        return Fact(
            path=tuple(map(key_words, keys)), label=" ".join(map(label_of, keys[-2:])), value=value, kind=kind,
            record=record.number, subject=record.subject, row=record.row, source=self._source, start=start, end=end,
            number=number, spans=spans,
        )  # fmt: skip


def typed(
    value: str, *, text: bool = True
) -> tuple[FactKind, Decimal | None, tuple[tuple[frozenset[int], frozenset[int]], ...]]:
    """What a value is.

    Args:
        value: As it is said.
        text: Whether it was written as a string; "None" as a string can mean either, so it is unknown.

    Returns:
        The kind; the number, if it is one; the opening times, if it gives any.

    Example:
        >>> typed("11:0-21:0")[2] == ((frozenset({660}), frozenset({1260})),)
        True
        >>> typed("u'no'")[0].value, typed("not given", text=False)[0].value, typed("4.5")[1]
        ('no', 'unknown', Decimal('4.5'))
    """
    said = value.strip()
    quoted = _QUOTED.fullmatch(said) if text else None
    said = (quoted[2] if quoted else said).strip()
    low = said.lower().rstrip(".")
    if said == "None" or low in _UNKNOWN:
        return FactKind.UNKNOWN, None, ()
    if low in _YES:
        return FactKind.YES, None, ()
    if low in _NO:
        return FactKind.NO, None, ()
    if _NUMBER.fullmatch(said):
        return FactKind.NUMBER, Decimal(said), ()
    if low in ("closed", "geschlossen", "chiuso"):
        return FactKind.HOURS, None, ()
    if spans := _spans(said):
        return FactKind.HOURS, None, spans
    return FactKind.TEXT, None, ()


def _spans(said: str) -> tuple[tuple[frozenset[int], frozenset[int]], ...]:
    found: list[tuple[frozenset[int], frozenset[int]]] = []
    at = 0
    for match in _SPAN.finditer(said):
        if said[at : match.start()].strip(" ,;/&and").strip():
            return ()
        at = match.end()
        span = span_of(match.groups())
        if span is None:
            return ()
        found.append(span)
    return tuple(found) if not said[at:].strip(" .") else ()


def span_of(groups: tuple[str | None, ...]) -> tuple[frozenset[int], frozenset[int]] | None:
    """Opening and closing time of the eight groups of a span: hour, minute, half of the day, word; twice."""
    hour, minute, half, word, hour_2, minute_2, half_2, word_2 = groups
    start, end = clock(hour, minute, half, word), clock(hour_2, minute_2, half_2, word_2)
    if start is None or end is None:
        return None
    first, last = _as_written(hour, minute), _as_written(hour_2, minute_2)
    if len(start) > 1 and (not half_2 or minute is not None):
        start = frozenset((first,))  # without a half of the day the opening time is in the 24-hour clock
    if len(end) > 1 and last > first:
        end = frozenset((last,))
    return start, end


def _as_written(hour: str | None, minute: str | None) -> int:
    return int(hour or 0) % 24 * 60 + int(minute or 0)


def clock(hour: str | None, minute: str | None, half: str | None, word: str | None) -> frozenset[int] | None:
    """Minutes after midnight that a time can mean; ``None`` if it is no time of day.

    Example:
        >>> sorted(clock("9", "30", None, None)), sorted(clock("12", None, "a", None)), clock("31", None, None, None)
        ([570, 1290], [0], None)
    """
    if word:
        return frozenset((0 if word.lower() == "midnight" else _DAY // 2,))
    at, past = int(hour or 0), int(minute or 0)
    if at > 24 or past > 59:
        return None
    if half and 1 <= at <= 12:
        return frozenset(((at % 12 + (12 if half.lower() == "p" else 0)) * 60 + past,))
    base = (at % 24) * 60 + past
    return frozenset((base, (base + _DAY // 2) % _DAY)) if 1 <= at <= 12 else frozenset((base,))


def _same(at: int) -> int:
    return at


def _name(node: Container) -> str:
    for wanted in _NAME_KEYS:
        for key, _, child in node.members:
            words = key_words(key)
            named = words[-1:] == (wanted,) and (len(words) == 1 or words[0] in PREFIXES)
            if named and isinstance(child, Scalar) and child.text and len(child.value.split()) <= 10:
                return child.value.strip()
    return ""
