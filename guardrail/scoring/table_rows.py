"""Rows of Markdown tables and CSV as sentences about their first cell."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import add

from guardrail.scoring.json_reader import is_text
from guardrail.scoring.json_units import Item, Unit, grouped, sentences

END_MARKS = (".", "!", "?", "…", ":")
_ROW_WORDS = 50  # a row is one unit up to this length

_CELL = re.compile(r"((?:[^|\\]|\\.?)*+)(\||$)", re.S)

_BREAK = re.compile(r"<br\s*/?>", re.I)

_QUOTED = r'[ ]*+"(?P<quoted>(?:[^"]|"")*+)"[^%s]*|(?P<bare>[^%s]*+)'

_NUMBER = re.compile(r"[^\w\s]{0,2}\s?\d[\d.,:/%\-\s]*\S{0,4}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of the passage."""

    start: int
    text: str  # without the line end

    @property
    def blank(self) -> bool:
        """Whether nothing can be seen in it."""
        return not self.text.strip()

    @property
    def end(self) -> int:
        """Offset of its line end."""
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A record of a CSV block."""

    start: int
    end: int
    fields: list[str]


def cells_of(line: Line) -> list[Item]:
    """The cells of a table row, without labels."""
    text = line.text.strip()
    inner = text.removeprefix("|")
    base = line.start + line.text.index(text) + len(text) - len(inner)
    if inner.endswith("|") and not inner.endswith("\\|"):
        inner = inner[:-1]
    cells = []
    for match in _CELL.finditer(inner):
        raw = match[1]
        body = raw.strip()
        start = base + match.start() + len(raw) - len(raw.lstrip())
        value = _BREAK.sub(" ", body.replace("\\|", "|"))
        cells.append(Item(start=start, end=start + len(body), label="", value=value))
        if not match[2]:
            break
    return cells


def csv_cells(text: str, row: Record, delimiter: str) -> list[Item]:
    """The fields of a record with their places; all at the place of the record if they cannot be told apart."""
    pattern = re.compile(_QUOTED % (delimiter, delimiter))
    cells: list[Item] = []
    at = row.start
    for value in row.fields:
        match = pattern.match(text, at, row.end)
        if match is None:
            break
        group = "bare" if match["quoted"] is None else "quoted"
        if match[group].replace('""', '"').replace("\r\n", "\n").strip() != value and match[group].strip() != value:
            break
        raw = match[group]
        start = match.start(group) + len(raw) - len(raw.lstrip())
        cells.append(Item(start=start, end=start + len(raw.strip()), label="", value=value))
        at = match.end() + 1
    if len(cells) == len(row.fields):
        return cells
    return [Item(start=row.start, end=row.end, label="", value=value) for value in row.fields]


def row_units(
    text: str, heading: str, header: Sequence[str], cells: Sequence[Item], start: int, end: int
) -> Iterator[Unit]:
    """A row as sentences about its first cell; the pieces of a long row tile it."""
    labels = [*header, *[""] * (len(cells) - len(header))]
    items = [
        Item(start=cell.start, end=cell.end, label=label, value=cell.value)
        for label, cell in zip(labels, cells, strict=False)
        if cell.value
    ]
    subject = f"{labels[0]} {cells[0].value}".strip() if cells and cells[0].value and len(items) > 1 else ""
    if subject:
        del items[0]
    head = ", ".join(filter(None, (heading, subject)))
    parts: list[Unit] = []
    for long, group in groupby(items, key=lambda item: _is_verbatim_text(text, item)):
        for item in group if long else ():
            parts += sentences(item.value, partial(add, item.start), first=item.label, every=head)
        parts += grouped(head, group, _ROW_WORDS)
    if len({part.start for part in parts}) < len(parts):  # the cells have no places of their own
        parts = [Unit(start=start, end=end, said=" ".join(part.said for part in parts))]
    for i, part in enumerate(parts):
        last = i + 1 == len(parts)
        yield Unit(start=part.start if i else start, end=end if last else part.end, said=part.said)


def _is_verbatim_text(text: str, item: Item) -> bool:
    return is_text(item.value) and text.startswith(item.value, item.start)


def is_csv(rows: Sequence[Record], text: str, delimiter: str) -> bool:
    """Whether records are a table with a header, and not lines of prose with as many commas."""
    if len(rows) < 3:
        return False
    header, body = [f.casefold() for f in rows[0].fields], rows[1:]
    if not all(header[1:]) or len(set(header)) < len(header):
        return False
    if any(len(h.split()) > 5 or h.endswith(END_MARKS) or _NUMBER.fullmatch(h) or _unbalanced(h) for h in header):
        return False
    if delimiter == "\t":
        return True
    if any(_unbalanced(field) for row in body for field in row.fields):
        return False
    if any(all(_NUMBER.fullmatch(row.fields[i]) for row in body) for i in range(len(header))):
        return True
    spaced = delimiter + " " in text[rows[0].start : rows[0].end]
    return not spaced and not any(row.fields[-1].endswith(END_MARKS) and row.fields[0].islower() for row in body)


def _unbalanced(cell: str) -> bool:
    return any(cell.count(a) != cell.count(b) for a, b in ("()", "[]", "{}"))
