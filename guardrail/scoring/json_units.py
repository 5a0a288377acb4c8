"""JSON as facts: a reader that knows where everything stands, and the sentences its leaves are read as."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from guardrail.text.segmenter import segment

MAX_WORDS = 25  # of a unit, so that it stays a fact; a longer text is cut into sentences
_MAX_CHARS = 240  # the same for scripts that are written without spaces
_MAX_DEPTH = 64
_MAX_HEAD_WORDS = 16
_MAX_SUBJECT_WORDS = 8
_MAX_LABEL_WORDS = 3

_SPACE = re.compile(r"[ \t\r\n]*+")
_STRING = re.compile(r'"((?:[^"\\\x00-\x1f]|\\[^\x00-\x1f])*+)(")?' + r"|'((?:[^'\\\x00-\x1f]|\\[^\x00-\x1f])*+)(')?")
_ATOM = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?(?![\w.])|-?(?:Infinity|NaN)\b|[A-Za-z]++")
_CONSTANTS = {"true": "yes", "false": "no", "null": "not given", "True": "yes", "False": "no", "None": "not given"}
_NOT_GIVEN = "not given"

_ESCAPE = re.compile(
    r"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|(?:u|U0000)([0-9a-fA-F]{4})"
    r"|U(000[1-9a-fA-F][0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))"
)
_PLAIN_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", '"': '"', "'": "'", "/": "/", "\\": "\\"}

_KEY_BREAK = re.compile(r"_+|(?<=[^\W\d_]{2})\.(?=[^\W\d_]{2})")
_CAMEL = re.compile(r"(?<=[^\W\d_])(?<![A-Z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=\d)(?=[A-Z][a-z])")
_ONE_WORD = frozenset("WiFi YouTube LinkedIn PayPal GitHub JavaScript TypeScript PowerPoint TikTok WhatsApp".split())
_SENTENCE_END = re.compile(r"[.!?。！？][\"')\]]*(?:\s|$)|[。！？]|\n")
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


class NotStructured(Exception):
    """Internal: the text is not of the form that was tried."""


@dataclass(slots=True)
class _Node:
    start: int
    end: int


@dataclass(slots=True)
class _Scalar(_Node):
    value: str
    text: bool  # a string, in contrast to a number or a constant
    place: Callable[[int], int]  # from an offset in the value to one in the passage


@dataclass(slots=True)
class _Container(_Node):
    keyed: bool
    members: list[tuple[str, int, _Node]]  # key ("" in an array), where the key begins, value

    def leaves(self) -> bool:
        return any(not isinstance(node, _Container) or node.leaves() for *_, node in self.members)


class _Offsets:
    """From an offset in an unescaped string to one in the source; logarithmic in the number of escapes."""

    __slots__ = ("_outer", "_source", "_value")

    def __init__(self, source: int, outer: Callable[[int], int]) -> None:
        self._value, self._source, self._outer = [0], [source], outer

    def add(self, value: int, source: int) -> None:
        self._value.append(value)
        self._source.append(source)

    def __call__(self, at: int) -> int:
        i = bisect_right(self._value, at) - 1
        return self._outer(self._source[i] + at - self._value[i])


class _Reader:
    """Reads one document from ``text``, strictly, in one pass; also Python's spelling of the same values."""

    __slots__ = ("_nested", "_place", "at", "cut", "text")

    def __init__(self, text: str, at: int, place: Callable[[int], int], *, nested: bool = False) -> None:
        self.text = text
        self.at = at
        self.cut = False  # the text ended before the document
        self._place = place
        self._nested = nested

    def document(self) -> _Container:
        root = self._value(0)
        if not isinstance(root, _Container):
            raise NotStructured
        return root

    def fragment(self) -> list[_Container]:
        """What can be read of a document whose beginning is missing: the rest of each object that is open there."""
        parts = [_Container(self._place(self.at), self._place(self.at), True, [])]
        while found := self._peek():
            start = self.at
            if found in "}],":
                self.at += 1
                if found != "," and parts[-1].members:
                    parts.append(_Container(self._place(self.at), self._place(self.at), True, []))
                continue
            try:
                key = self._key() if found in "\"'" else ""
                parts[-1].members.append((key, self._place(start), self._value(1)))
            except NotStructured:
                self.at = start
                break
            parts[-1].end = self._place(self.at)
        return [part for part in parts if part.leaves()]

    def _key(self) -> str:
        name = self._value(_MAX_DEPTH)
        if self._peek() == ":":
            self.at += 1
        elif not self.cut:
            raise NotStructured
        return name.value if isinstance(name, _Scalar) else ""

    def _peek(self) -> str:
        self.at = _SPACE.match(self.text, self.at).end()  # type: ignore[union-attr]
        if self.at == len(self.text):
            self.cut = True
        return self.text[self.at : self.at + 1]

    def _value(self, depth: int) -> _Node:
        first = self._peek()
        if first in ("{", "["):
            if depth == _MAX_DEPTH:
                raise NotStructured
            return self._container(first, depth)
        if first in ('"', "'"):
            return self._string()
        match = _ATOM.match(self.text, self.at)
        if match is None:
            raise NotStructured
        written = match[0]
        if written[0].isalpha() and written not in _CONSTANTS and written not in ("NaN", "Infinity"):
            raise NotStructured
        start, self.at = self.at, match.end()
        return self._scalar(start, _CONSTANTS.get(written, written), text=False, place=self._place)

    def _scalar(self, start: int, value: str, *, text: bool, place: Callable[[int], int]) -> _Scalar:
        return _Scalar(self._place(start), self._place(self.at), value, text, place)

    def _container(self, opening: str, depth: int) -> _Container:
        keyed, closing = opening == "{", "}" if opening == "{" else "]"
        node = _Container(self._place(self.at), 0, keyed, [])
        self.at += 1
        while (found := self._peek()) and found != closing:
            key, key_start = "", self.at
            if keyed:
                key = self._key()
                if not self._peek():
                    break
            node.members.append((key, self._place(key_start), self._value(depth + 1)))
            if self._peek() == ",":
                self.at += 1
            elif self._peek() not in ("", closing):
                raise NotStructured
        self.at += not self.cut
        node.end = self._place(self.at)
        return node

    def _string(self) -> _Node:
        match = _STRING.match(self.text, self.at)
        assert match is not None
        start, self.at = self.at, match.end()
        group = 1 if match[1] is not None else 3
        if match[group + 1] is None:
            if self.at < len(self.text):
                raise NotStructured
            self.cut = True
        value, place = _unescape(match[group], match.start(group), self._place)
        if not self._nested and value[:1] == "{":
            try:
                inner = _Reader(value, 0, place, nested=True)
                node = inner.document()
                if inner.at == len(value) and not inner.cut and node.leaves():
                    return node
            except NotStructured:
                pass
        return self._scalar(start, value, text=True, place=place)


def _unescape(raw: str, start: int, outer: Callable[[int], int]) -> tuple[str, Callable[[int], int]]:
    offsets = _Offsets(start, outer)
    if "\\" not in raw:
        return raw, offsets
    pieces: list[str] = []
    length = last = 0
    for match in _ESCAPE.finditer(raw):
        char = _escaped(match)
        pieces += (raw[last : match.start()], char)
        length += match.start() - last + len(char)
        last = match.end()
        offsets.add(length, start + last)
    pieces.append(raw[last:])
    return "".join(pieces), offsets


def _escaped(match: re.Match[str]) -> str:
    high, low, four, eight, two, plain = match.groups()
    if high:
        return chr(0x10000 + ((int(high, 16) - 0xD800) << 10) + int(low, 16) - 0xDC00)
    if plain:
        return _PLAIN_ESCAPES.get(plain, match[0])
    code = int(four or eight or two, 16)
    return "\ufffd" if 0xD800 <= code < 0xE000 else chr(code)


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
    return sentence if sentence.rstrip()[-1:] in (".", "!", "?", "…", "。", "！", "？") else sentence + "."


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


def is_text(value: str) -> bool:
    """Whether a value is text of its own, to be cut into sentences, and not a value to be listed."""
    count = value.count(" ") + 1
    if count > MAX_WORDS or len(value) > _MAX_CHARS:
        return True
    return count > 6 and sum(1 for _ in _SENTENCE_END.finditer(value.strip())) > 1


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


def json_at(text: str, start: int, heading: str = "") -> tuple[int, list[Unit]] | None:
    """Read JSON that begins at ``start``: an object, an array, or several of them (JSON lines).

    Python's spelling of such values (single quotes, ``True``, ``None``) is read as well, and a document that the end
    of the text cuts short as far as it goes. Time is linear in what is read.

    Args:
        text: The passage.
        start: Offset of the opening bracket.
        heading: What the document is about, if the text before it says so.

    Returns:
        The offset after it and its units in order, without overlap; ``None`` if there is no JSON or nothing in it.
        An array ends its line, so that "[1] Smith" is none.
    """
    documents: list[tuple[str, int, _Node]] = []
    end = at = start
    while text[at : at + 1] in ("{", "["):
        reader = _Reader(text, at, _same)
        try:
            root = reader.document()
        except NotStructured:
            break
        if not root.leaves() or not (root.keyed or _ends_line(text, reader.at)):
            break
        documents.append(("", at, root))
        end = reader.at
        at = _SPACE.match(text, end + (text[end : end + 1] == ",")).end()  # type: ignore[union-attr]
    if not documents:
        return None
    head = _Head(parts=((heading, True),)) if heading else _Head()
    if len(documents) == 1:
        return end, list(_told(documents[0][2], head, in_array=False))
    return end, list(_array(_Container(start, end, False, documents), head))


def json_rest(text: str, start: int, heading: str = "") -> tuple[int, list[Unit]] | None:
    """Read members of a JSON document whose beginning is not in the passage, because it was cut into chunks.

    Args:
        text: The passage.
        start: Offset of the first key.
        heading: What the document is about, if the text before it says so.

    Returns:
        As :func:`json_at`; no record is named, because its name may stand in another chunk.
    """
    parts = _Reader(text, start, _same).fragment()
    head = _Head(parts=((heading, True),)) if heading else _Head()
    found = [unit for part in parts for unit in _members(part, head, None)]
    return (parts[-1].end, found) if found else None


def _same(at: int) -> int:
    return at


def _ends_line(text: str, at: int) -> bool:
    newline = text.find("\n", at)
    rest = text[at : at + 80 if newline < 0 else min(newline, at + 80)]
    return not rest.strip(" \t\r,;`")


def _told(node: _Node, head: _Head, *, in_array: bool) -> Iterator[Unit]:
    assert isinstance(node, _Container)
    return _object(node, head, in_array=in_array) if node.keyed else _array(node, head)


def _object(node: _Container, head: _Head, *, in_array: bool) -> Iterator[Unit]:
    identifier = _identifier(node, in_array=in_array)
    if identifier is not None:
        key, scalar = identifier
        name = label_of(key).casefold() in _NAMES
        subject = scalar.value.strip() if name else f"{label_of(key)} {scalar.value.strip()}"
        head = head.of(subject, subject if in_array and _rank(key) < len(_NAMES) else "")
    known = identifier[1] if identifier else None
    return _members(node, head, known)


def _array(node: _Container, head: _Head) -> Iterator[Unit]:
    return _members(node, head, None)


def _members(node: _Container, head: _Head, known: _Scalar | None) -> Iterator[Unit]:
    pending: list[Item] = []
    for key, key_start, child in node.members:
        label = label_of(key)
        if isinstance(child, _Scalar) and not (child.text and is_text(child.value)):
            value = child.value if child.value.strip() else _NOT_GIVEN
            pending.append(Item(start=key_start, end=child.end, label=label, value=value, known=child is known))
            continue
        yield from _listed(head, pending)
        pending = []
        if isinstance(child, _Scalar):
            yield from sentences(child.value, child.place, first=label, every=head.row)
        else:
            yield from _told(child, head.below(label), in_array=not node.keyed)
    yield from _listed(head, pending)


def _listed(head: _Head, items: list[Item]) -> Iterator[Unit]:
    if len(items) == 1 and not head.named and items[0].label:
        only = items[0]
        said = finished(f"{head} {only.label}: {only.value}".strip())
        yield Unit(start=only.start, end=only.end, said=said)
    elif items and all(item.known for item in items):
        yield Unit(start=items[0].start, end=items[-1].end, said=says("", items))
    else:
        yield from grouped(str(head), items)


def _identifier(node: _Container, *, in_array: bool) -> tuple[str, _Scalar] | None:
    """The field that names a record: by its key or, in a row, the first short string."""
    best: tuple[int, str, _Scalar] | None = None
    limit = len(_NAMES) + len(_IDENTIFIERS) if in_array else len(_NAMES) - 1
    for key, _, child in node.members:
        if not isinstance(child, _Scalar) or not 0 < len(child.value.split()) <= _MAX_SUBJECT_WORDS:
            continue
        rank = _rank(key)
        if rank > limit or is_text(child.value) or (not child.text and child.value in _CONSTANTS.values()):
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
