"""JSON as facts: the sentences that its leaves are read as."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from guardrail.scoring.json_reader import (
    CONSTANTS,
    MAX_WORDS,
    NOT_GIVEN,
    SPACE,
    Container,
    Node,
    NotStructured,
    Reader,
    Scalar,
    is_text,
)
from guardrail.scoring.timetables import timetable
from guardrail.text.segmenter import segment

_MAX_HEAD_WORDS = 16

_MAX_SUBJECT_WORDS = 8

_MAX_LABEL_WORDS = 3

_KEY_BREAK = re.compile(r"_+|(?<=[^\W\d_]{2})\.(?=[^\W\d_]{2})")

_CAMEL = re.compile(r"(?<=[^\W\d_])(?<![A-Z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=\d)(?=[A-Z][a-z])")

_ONE_WORD = frozenset("WiFi YouTube LinkedIn PayPal GitHub JavaScript TypeScript PowerPoint TikTok WhatsApp".split())


_END_MARKS = frozenset(".!?…。！？")

_NAMES = ("name", "title")

_IDENTIFIERS = ("model", "product", "item", "label", "id", "code", "sku", "key")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A piece of a passage, as evidence.

    Attributes:
        start: Offset of the first code point that it stands for, in the passage.
        end: Offset after the last one.
        said: The sentence it is read as.
    """

    start: int
    end: int
    said: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A labelled value with its place in the passage.

    Attributes:
        start: Offset of the label or, without one, of the value.
        end: Offset after the value.
        label: What it is a value of; may be empty.
        value: The value as it is said.
        known: Whether the head of the sentence says it already.
    """

    start: int
    end: int
    label: str
    value: str
    known: bool = False


def label_of(key: str) -> str:
    """A key as words.

    Args:
        key: Name of a field or column.

    Returns:
        The key split at underscores, dots and changes of case, in lower case where it was split there; a key that
        has spaces is left as it is.

    Example:
        >>> [label_of(k) for k in ("OutdoorSeating", "business_stars", "Monday", "HasTV", "WiFi", "Price in EUR")]
        ['outdoor seating', 'business stars', 'Monday', 'has TV', 'WiFi', 'Price in EUR']
    """
    key = key.strip()
    if any(map(str.isspace, key)) or not key.strip("_."):
        return key
    words = [word for part in _KEY_BREAK.split(key) for word in _camel_words(part)]
    return " ".join(words)


def _camel_words(part: str) -> list[str]:
    words = [w for w in _CAMEL.split(part) if w]
    if len(words) < 2 or part in _ONE_WORD or len(words[0]) == 1 or (len(words[0]) == 2 and words[0][0].isupper()):
        return [part] if part else []
    return [w if len(w) > 1 and w.isupper() else w.lower() for w in words]


def says(head: str, items: Sequence[Item]) -> str:
    """Word items as one sentence.

    Args:
        head: What they belong to; may be empty.
        items: At least one.

    Returns:
        ``"head: label value, label value."``
    """
    shown = [item for item in items if not item.known] or list(items)
    if not head and any(item.label for item in shown):
        colon = ": "
    else:
        colon = " "
    parts = [f"{item.label}{colon if item.label else ''}{item.value}" for item in shown]
    body = ("; " if any(", " in item.value for item in shown) and len(parts) > 1 else ", ").join(parts)
    return finished(f"{head}: {body}" if head else body)


def finished(sentence: str) -> str:
    """The sentence with a full stop, unless it has an end mark."""
    return sentence if sentence.rstrip(" \t\n\"'”’»)")[-1:] in _END_MARKS else sentence + "."


def grouped(head: str, items: Iterable[Item], max_words: int = MAX_WORDS) -> Iterator[Unit]:
    """Gather neighbouring items into units of at most ``max_words`` words, or one item.

    Args:
        head: What they belong to; said in every unit.
        items: In the order of the passage.
        max_words: Limit per unit, the head included.

    Yields:
        Units in order, without overlap.
    """
    room = max_words - len(head.split())
    group: list[Item] = []
    used = 0
    for item in items:
        count = 0 if item.known else len(item.label.split()) + max(len(item.value.split()), len(item.value) // 10)
        if used and used + count > room:
            yield _unit(head, group)
            group, used = [], 0
        group.append(item)
        used += count
    if group:
        yield _unit(head, group)


def _unit(head: str, group: Sequence[Item]) -> Unit:
    return Unit(start=group[0].start, end=group[-1].end, said=says(head, group))


def sentences(value: str, place: Callable[[int], int], *, first: str = "", every: str = "") -> Iterator[Unit]:
    """Cut a long text into sentences.

    Args:
        value: The text.
        place: From an offset in it to one in the passage.
        first: Label of the whole text, said with the first sentence.
        every: What the text belongs to, said with each sentence.

    Yields:
        One unit per sentence.
    """
    label = first if len(first.split()) <= _MAX_LABEL_WORDS else ""
    for piece in segment(value):
        body = piece.body
        if not body:
            continue
        lead = ", ".join(filter(None, (every, label)))
        said = f"{lead}: {body}" if lead else body
        yield Unit(start=place(piece.body_start), end=place(piece.body_start + len(body)), said=said)
        label = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Head:
    """What a value belongs to: labels on the way to it, and the names of the records it is in."""

    parts: tuple[tuple[str, bool], ...] = ()  # wording, whether it names a record
    row: str = ""  # name of the array row it is in

    def below(self, label: str) -> _Head:
        if not label:
            return self
        if self.parts and not self.parts[-1][1]:
            last = f"{self.parts[-1][0]} {label}"
            return _Head(parts=(*self.parts[:-1], (last, False)), row=self.row)
        return _Head(parts=(*self.parts, (label, False)), row=self.row)

    def of(self, subject: str, row: str) -> _Head:
        return _Head(parts=(*self.parts, (subject, True)), row=row or self.row) if subject else self

    @property
    def named(self) -> bool:
        return any(name for _, name in self.parts)

    def __str__(self) -> str:
        parts = [text for text, _ in self.parts]
        while len(parts) > 2 and sum(len(p.split()) for p in parts) > _MAX_HEAD_WORDS:
            del parts[0]
        return ", ".join(parts)


def json_at(text: str, start: int, heading: str = "") -> tuple[int, list[Unit]]:
    """Read JSON that begins at ``start``: an object, an array, or several of them (JSON lines).

    Python's spelling of such values (single quotes, ``True``, ``None``) is read as well, and a document that the end
    of the text cuts short as far as it goes. Time is linear in what is read.

    Args:
        text: The passage.
        start: Offset of the opening bracket.
        heading: What the document is about, if the text before it says so.

    Returns:
        The offset after it and its units in order, without overlap. No units if there is no JSON or nothing in it;
        the offset is then where reading failed. An array ends its line, so that "[1] Smith" is none.
    """
    documents: list[tuple[str, int, Node]] = []
    end = at = failed = start
    while text[at : at + 1] in ("{", "["):
        reader = Reader(text, at, _same)
        try:
            root = reader.document()
        except NotStructured:
            failed = reader.at
            break
        if not root.leaves() or not (root.keyed or _ends_line(text, reader.at)):
            break
        documents.append(("", at, root))
        end = reader.at
        at = SPACE.match(text, end + (text[end : end + 1] == ",")).end()  # type: ignore[union-attr]
    if not documents:
        return failed, []
    head = _Head(parts=((heading, True),)) if heading else _Head()
    if len(documents) == 1:
        return end, list(_told(documents[0][2], head, in_array=False))
    return end, list(_array(Container(start, end, False, documents), head))


def json_rest(text: str, start: int, heading: str = "") -> tuple[int, list[Unit]]:
    """Read members of a JSON document whose beginning is not in the passage, because it was cut into chunks.

    Args:
        text: The passage.
        start: Offset of the first key.
        heading: What the document is about, if the text before it says so.

    Returns:
        As :func:`json_at`; no record is named, because its name may stand in another chunk.
    """
    parts = Reader(text, start, _same).fragment()
    head = _Head(parts=((heading, True),)) if heading else _Head()
    found = [unit for part in parts for unit in _members(part, head, None)]
    return parts[-1].end if found else start, found


def _same(at: int) -> int:
    return at


def _ends_line(text: str, at: int) -> bool:
    newline = text.find("\n", at)
    rest = text[at : at + 80 if newline < 0 else min(newline, at + 80)]
    return not rest.strip(" \t\r,;`")


def _told(node: Node, head: _Head, *, in_array: bool) -> Iterator[Unit]:
    assert isinstance(node, Container)
    if hours := _week(node):
        return iter((Unit(start=node.members[0][1], end=node.members[-1][2].end, said=finished(f"{head}: {hours}")),))
    return _object(node, head, in_array=in_array) if node.keyed else _array(node, head)


def _week(node: Container) -> str:
    fields = [(key, child.value) for key, _, child in node.members if isinstance(child, Scalar)]
    return timetable(fields) if len(fields) == len(node.members) else ""


def _object(node: Container, head: _Head, *, in_array: bool) -> Iterator[Unit]:
    identifier = _identifier(node, in_array=in_array)
    if identifier is not None:
        key, scalar = identifier
        name = label_of(key).casefold() in _NAMES
        subject = scalar.value.strip() if name else f"{label_of(key)} {scalar.value.strip()}"
        head = head.of(subject, subject if in_array and _rank(key) < len(_NAMES) else "")
    known = identifier[1] if identifier else None
    return _members(node, head, known)


def _array(node: Container, head: _Head) -> Iterator[Unit]:
    return _members(node, head, None)


def _members(node: Container, head: _Head, known: Scalar | None) -> Iterator[Unit]:
    pending: list[Item] = []
    for key, key_start, child in node.members:
        label = label_of(key)
        if isinstance(child, Scalar) and not (child.text and is_text(child.value)):
            value = child.value.strip() or NOT_GIVEN
            pending.append(Item(start=key_start, end=child.end, label=label, value=value, known=child is known))
            continue
        yield from _listed(head, pending)
        pending = []
        if isinstance(child, Scalar):
            yield from sentences(child.value, child.place, first=label, every=head.row)
        else:
            yield from _told(child, head.below(label), in_array=not node.keyed)
    yield from _listed(head, pending)


def _listed(head: _Head, items: list[Item]) -> Iterator[Unit]:
    if len(items) == 1 and not head.named and items[0].label:
        only = items[0]
        said = finished(f"{head} {only.label}: {only.value}".lstrip())
        yield Unit(start=only.start, end=only.end, said=said)
    elif items and all(item.known for item in items):
        yield Unit(start=items[0].start, end=items[-1].end, said=says("", items))
    else:
        yield from grouped(str(head), items)


def _identifier(node: Container, *, in_array: bool) -> tuple[str, Scalar] | None:
    """The field that names a record: by its key or, in a row, the first short string."""
    best: tuple[int, str, Scalar] | None = None
    limit = len(_NAMES) + len(_IDENTIFIERS) if in_array else len(_NAMES) - 1
    for key, _, child in node.members:
        if not isinstance(child, Scalar) or not 0 < len(child.value.split()) <= _MAX_SUBJECT_WORDS:
            continue
        rank = _rank(key)
        if rank > limit or is_text(child.value) or (not child.text and child.value in CONSTANTS.values()):
            continue
        if rank == limit and in_array and not child.text:
            continue
        if best is None or rank < best[0]:
            best = rank, key, child
    return (best[1], best[2]) if best and len(node.members) > 1 else None


def _rank(key: str) -> int:
    """How well a key names its record; the smaller the better."""
    words = label_of(key).casefold().split()
    last = words[-1] if words else ""
    known = (*_NAMES, *_IDENTIFIERS)
    return known.index(last) if last in known else len(known)
