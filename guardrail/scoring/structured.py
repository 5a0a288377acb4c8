"""Passages that are not prose: JSON, tables, CSV and key/value lines, cut into units that read like sentences.

A table row or a JSON leaf says nothing to a model that was trained on sentences, and a sentence splitter tears values
from the thing that they belong to. Here each becomes one sentence that names its subject, with its place in the
passage.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import add, itemgetter

from guardrail.scoring.json_reader import is_text
from guardrail.scoring.json_units import Unit, finished, json_at, json_rest, sentences
from guardrail.scoring.table_rows import END_MARKS, Line, Record, cells_of, csv_cells, is_csv, row_units
from guardrail.text import blocks
from guardrail.text.segmenter import segment

__all__ = ["Unit", "units"]

_MAX_HEADING_WORDS = 8

_MAX_KEY_WORDS = 6

_MAX_RECORD_LINES = 20  # of one CSV record with line breaks in quoted fields

_SURROGATE = re.compile("[\ud800-\udfff]")

_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})[ \t]*(\w*)")

_DATA_FENCES = frozenset("json jsonl yaml yml csv tsv text txt md markdown ini toml properties".split())

_HEADING = re.compile(r"[ \t]{0,3}#{1,6}[ \t]+(?=\S)")

_JSON_START = re.compile(
    r"(?P<lead>[^{\[\n\"']{0,80}:[ \t]*|[ \t]*)(?P<json>\{[ \t\r\n]*[\"'}{\d]|\[[ \t\r\n]*[\"'{\[\d\-])"
)

_JSON_MEMBER = re.compile(r"[ \t]*(?P<key>\"[^\"\n]{1,80}\")[ \t]*:[ \t]*[\"{\[\dtfn-]")

_KEY_VALUE = re.compile(
    r"(?P<indent>[ \t]*)(?P<bullet>(?:[-*+•·–][ \t]+|\d{1,3}[.)][ \t]+)?)(?P<mark>\*\*|__|)"
    r"(?P<key>[^\W_][^:=|\n{}\[\]<>;!?*`\",]{0,47}?)"
    r"(?:(?P=mark)[ \t]*(?::(?=\s)|：|[ \t]=[ \t]|(?<=\w)=(?=[^\s=]))|:(?P=mark)(?=\s))[ \t]*(?P<value>\S.*)"
)

_LABEL = re.compile(
    r"[ \t]*(?:[-*+•][ \t]+)?(?P<key>(?:\*\*|__)?[^\W_][^:|\n{}\[\]<>;!?=.\"]{0,60}:?(?:\*\*|__)?:?)\s*"
)

_CODE = re.compile(
    r"[;{(\[\\]$|=>|->|\(\)|:=|==|^\s*(?:def|import|const|let|var|function|public|private|static|async|lambda|elif|print"
    r"|self)\b|^\s*for \w+ in |^\s*(?:if|while|with|class|except)\b.*:\s*(?:return|raise|pass|break|continue|\.\.\.)"
    r"|[:=]\s*(?:str|int|float|bool|bytes|dict|list|tuple|set|Any|None|string|number|boolean)\b[^a-z]*$"
    r"|=\s*[\w.]+\("
)

_NO_LABEL = frozenset(
    "and but or so because that which who he she it they we i you this these those then here see below following "
    "ma o perché che ecco und aber oder dass hier et mais ou que voici pero".split()
)

_LEAD_INS = [[word] for word in _NO_LABEL]

_SUBJECT_KEYS = frozenset("name title model product item id code sku label nome titolo modello prodotto titel".split())


def units(text: str) -> list[Unit] | None:
    r"""Cut a passage into units of evidence, if anything in it is not prose.

    Args:
        text: The passage.

    Returns:
        Units in the order of the passage, without overlap, the prose between structured blocks included, sentence by
        sentence; ``None`` if all of it is prose. Header rows and rules belong to no unit. Time is linear in the text.

    Example:
        >>> [u.said for u in units("| Model | Price |\n|---|---|\n| A1 | 59 EUR |") or []]
        ['Model A1: Price 59 EUR.']
        >>> [u.said for u in units('{"hours": {"Monday": "9-17"}, "OutdoorSeating": false}') or []]
        ['hours Monday: 9-17.', 'outdoor seating: no.']
        >>> units("It costs 59 EUR. Shipping is free.") is None
        True
    """
    return _Scanner(_SURROGATE.sub("\ufffd", text)).units()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    start: int
    end: int
    units: list[Unit]


@dataclass(frozen=True, slots=True, kw_only=True)
class _KeyValue:
    line: int
    indent: int
    key: str
    value: str
    start: int  # of the key in the passage
    value_start: int


class _Scanner:
    """Walks the lines of a passage and finds the blocks that are not prose."""

    def __init__(self, text: str, *, fenced: bool = False) -> None:
        self._text = text
        self._fenced_text = fenced
        self._lines: list[Line] = []
        at = 0
        for line in text.split("\n"):
            self._lines.append(Line(start=at, text=line.removesuffix("\r")))
            at += len(line) + 1
        self._section = ""  # the last heading
        self._label = ""  # the line just above, if it is a label
        self._last = -1  # the last line of the block before
        self._no_json = 0  # the offset up to which there is no JSON
        self._no_csv: dict[str, int] = {}  # per delimiter: the line up to which there is no table

    def units(self) -> list[Unit] | None:
        """The blocks and the prose between them; ``None`` if there is no block."""
        found: list[Unit] = []
        done = 0
        for block in self._blocks():
            found += self._prose(done, block.start)
            found += block.units
            done = block.end
        return found + self._prose(done, len(self._text)) if found else None

    def _prose(self, start: int, end: int) -> list[Unit]:
        return [
            Unit(start=start + piece.body_start, end=start + piece.body_start + len(piece.body), said=piece.body)
            for piece in segment(self._text[start:end])
            if any(map(str.isalnum, piece.body))
        ]

    def _blocks(self) -> Iterator[_Block]:
        at = 0
        while at < len(self._lines):
            if self._lines[at].blank:
                at += 1
                continue
            block = self._block(at)
            if block is None:
                self._note_heading(at)
                at = self._after_fence(at) or at + 1
                continue
            yield block
            while at < len(self._lines) and self._lines[at].start < block.end:
                at += 1
            self._last, self._label = at - 1, ""

    @property
    def _heading(self) -> str:
        return ", ".join(filter(None, (self._section, self._label)))

    def _note_heading(self, at: int) -> None:
        line = self._lines[at].text
        if heading := _HEADING.match(line):
            self._section, self._label = _short(line[heading.end() :]), ""
            return
        label = _LABEL.fullmatch(line)
        apart = at == 0 or self._lines[at - 1].blank or self._last == at - 1
        marked = label is not None and label["key"].rstrip("*_ ").endswith(":")
        self._label = _short(label["key"]) if label and (marked or apart) else ""
        if self._label.casefold().split()[:1] in _LEAD_INS or (not marked and line.strip()[0].islower()):
            self._label = ""

    def _block(self, at: int) -> _Block | None:
        if _FENCE.match(self._lines[at].text):
            return None if self._fenced_text else self._fenced(at)
        return self._json(at) or self._table(at) or self._csv(at) or self._key_values(at)

    def _after_fence(self, at: int) -> int:
        """The line after a fenced block that begins here; 0 if none does."""
        fence = _FENCE.match(self._lines[at].text)
        if fence is None or self._fenced_text:
            return 0
        for i in range(at + 1, len(self._lines)):
            if self._lines[i].text.strip().startswith(fence[1]):
                return i + 1
        return len(self._lines)

    def _fenced(self, at: int) -> _Block | None:
        """A fenced block that says it holds data or, without a word, holds nothing but data."""
        fence = _FENCE.match(self._lines[at].text)
        after = self._after_fence(at)
        if fence is None or at + 1 >= len(self._lines) or (fence[2] and fence[2].lower() not in _DATA_FENCES):
            return None
        closed = self._lines[after - 1].text.strip().startswith(fence[1]) and after - 1 > at
        offset = self._lines[at + 1].start
        inner = _Scanner(self._text[offset : self._lines[after - 1].start if closed else len(self._text)], fenced=True)
        inner._section = self._heading
        if not fence[2] and inner._block(0) is None:
            return None
        moved = [Unit(start=u.start + offset, end=u.end + offset, said=u.said) for u in inner.units() or ()]
        return _Block(start=self._lines[at].start, end=self._lines[after - 1].end, units=moved) if moved else None

    def _json(self, at: int) -> _Block | None:
        line = self._lines[at]
        if member := _JSON_MEMBER.match(line.text):
            rest = json_rest(self._text, line.start + member.start("key"), self._heading)
            return _Block(start=line.start, end=rest[0], units=rest[1]) if rest[1] else None
        match = _JSON_START.match(self._text, line.start)
        if match is None or match.start("json") < self._no_json:
            return None
        start = match.start("json")
        lead = match["lead"].strip().rstrip(":").strip()
        if len(lead.split()) > _MAX_HEADING_WORDS:
            return None
        end, found = json_at(self._text, start, ", ".join(filter(None, (self._heading, lead))))
        if not found:
            self._no_json = end
        cited = self._text[start : min(end, start + 80)].strip("[], \t\r\n").isdecimal()  # "[1]" on its own line
        return _Block(start=line.start, end=end, units=found) if found and not cited else None

    def _table(self, at: int) -> _Block | None:
        if at + 1 >= len(self._lines) or "|" not in self._lines[at].text:
            return None
        if not blocks.is_table_rule(self._lines[at + 1].text.strip(), complete=True):
            return None
        header = [item.value for item in cells_of(self._lines[at])]
        found: list[Unit] = []
        i = at + 2
        while i < len(self._lines) and "|" in self._lines[i].text:
            line = self._lines[i]
            body = line.text.strip()
            if not blocks.is_table_rule(body, complete=True):
                start = line.start + line.text.index(body)
                found += row_units(self._text, self._heading, header, cells_of(line), start, start + len(body))
            i += 1
        return _Block(start=self._lines[at].start, end=self._lines[i - 1].end, units=found) if found else None

    def _csv(self, at: int) -> _Block | None:
        for delimiter in "\t;,":
            if delimiter not in self._lines[at].text or at < self._no_csv.get(delimiter, 0):
                continue
            rows, after = self._records(at, delimiter)
            if is_csv(rows, self._text, delimiter):
                found: list[Unit] = []
                for row in rows[1:]:
                    cells = csv_cells(self._text, row, delimiter)
                    found += row_units(self._text, self._heading, rows[0].fields, cells, row.start, row.end)
                return _Block(start=rows[0].start, end=rows[-1].end, units=found) if found else None
            self._no_csv[delimiter] = after if len(rows) > 2 else 0
        return None

    def _records(self, at: int, delimiter: str) -> tuple[list[Record], int]:
        """Records from line ``at`` on that have as many fields as the first one, and the line after them."""
        rows: list[Record] = []
        while at < len(self._lines) and not self._lines[at].blank:
            lines = (line.text + "\n" for line in self._lines[at : at + _MAX_RECORD_LINES])
            reader = csv.reader(lines, delimiter=delimiter, strict=True)
            try:
                fields = [cell.strip() for cell in next(reader)]
            except csv.Error:
                break
            if len(fields) < 2 or (rows and len(fields) != len(rows[0].fields)):
                break
            first, last = self._lines[at], self._lines[at + reader.line_num - 1]
            rows.append(Record(start=first.start, end=last.end, fields=fields))
            at += reader.line_num
        return rows, at

    def _key_values(self, at: int) -> _Block | None:
        run: list[_KeyValue] = []
        i = at
        while i < len(self._lines):
            if not self._lines[i].blank:
                pair = _key_value(i, self._lines[i])
                if pair is None or (run and pair.indent < run[0].indent):
                    break
                run.append(pair)
            i += 1
        follows = self._lines[i].text if run and i == run[-1].line + 1 and i < len(self._lines) else ""
        if follows.lstrip()[:1].islower() and follows.rstrip()[-1] != ":" and not _key_value(i, self._lines[i]):
            run.pop()  # its value goes on in the next line
        if not run or (len(run) == 1 and not self._stands_alone(run[0], follows)):
            return None
        records = [[pair for _, pair in part] for _, part in groupby(_numbered(run), key=itemgetter(0))]
        found = [u for record in records for u in _record_units(self._heading, record, many=len(records) > 1)]
        return _Block(start=self._lines[at].start, end=self._lines[run[-1].line].end, units=found)

    def _stands_alone(self, pair: _KeyValue, follows: str) -> bool:
        """Whether one pair is a block: all of the passage, beside a block or a label, or short below a heading."""
        at = pair.line
        beside = self._last == at - 1 or self._lines[at - 1].text.rstrip().endswith(":")
        fact = (
            bool(self._section) and len(pair.value.split()) <= _MAX_HEADING_WORDS and not pair.value.endswith(END_MARKS)
        )
        leads = follows.rstrip().endswith(":") and _LABEL.fullmatch(follows) is not None
        return fact or leads or (at > 0 and beside) or self._lines[at].text.strip() == self._text.strip()


def _key_value(number: int, line: Line) -> _KeyValue | None:
    match = _KEY_VALUE.match(line.text)
    if match is None or _CODE.search(line.text):
        return None
    key = match["key"].strip(" *_")
    words = key.split()
    if not words or len(words) > _MAX_KEY_WORDS or words[0].casefold() in _NO_LABEL:
        return None
    value = match["value"].rstrip()
    if (key[0].islower() and len(words) > 3) or value.endswith(":") or not any(map(str.isalnum, value)):
        return None
    return _KeyValue(
        line=number,
        indent=len(match["indent"].expandtabs(4)),
        key=key,
        value=value,
        start=line.start + match.start("key"),
        value_start=line.start + match.start("value"),
    )


def _numbered(run: Sequence[_KeyValue]) -> Iterator[tuple[int, _KeyValue]]:
    """Pairs with the number of their record: a new one begins where the first key comes again."""
    number = 0
    for i, pair in enumerate(run):
        number += i > 0 and pair.key == run[0].key
        yield number, pair


def _record_units(heading: str, record: Sequence[_KeyValue], *, many: bool) -> Iterator[Unit]:
    """One unit per pair; those after the first name the record if its first pair does."""
    top = record[0]
    subject = ""
    names = top.key.casefold().split()[-1] in _SUBJECT_KEYS or (many and not top.value.endswith(END_MARKS))
    if names and len(top.value.split()) <= _MAX_HEADING_WORDS:
        subject = top.value if top.key.casefold() in ("name", "title") else f"{top.key} {top.value}"
    for pair in record:
        lead = ", ".join(filter(None, (heading, "" if pair is top else subject)))
        if is_text(pair.value):
            yield from sentences(pair.value, partial(add, pair.value_start), first=pair.key, every=lead)
            continue
        said = finished(f"{pair.key}: {pair.value}")
        end = pair.value_start + len(pair.value)
        yield Unit(start=pair.start, end=end, said=f"{lead}, {said}" if lead else said)


def _short(heading: str) -> str:
    heading = heading.strip(" \t*_:#")
    return heading if len(heading.split()) <= _MAX_HEADING_WORDS else ""
