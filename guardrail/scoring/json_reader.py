"""Reads JSON, and Python's spelling of it, and knows where every value stands in the text."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass

MAX_WORDS = 25  # of a unit, so that it stays a fact; a longer text is cut into sentences
_MAX_CHARS = 240  # the same for scripts that are written without spaces
_SENTENCE_END = re.compile(r"[.!?。！？][\"')\]]*(?:\s|$)|[。！？]|\n")
_MAX_DEPTH = 64

SPACE = re.compile(r"[ \t\r\n]*+")

_STRING = re.compile(r'"((?:[^"\\\x00-\x1f]|\\[^\x00-\x1f])*+)(")?' + r"|'((?:[^'\\\x00-\x1f]|\\[^\x00-\x1f])*+)(')?")

_ATOM = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?(?![\w.])|-?(?:Infinity|NaN)\b|[A-Za-z]++")

_HALF = re.compile(r"[-+.\w]*+\Z")  # what may go on, had the text not ended there

CONSTANTS = {"true": "yes", "false": "no", "null": "not given", "True": "yes", "False": "no", "None": "not given"}

NOT_GIVEN = "not given"

_ESCAPE = re.compile(
    r"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|(?:u|U0000)([0-9a-fA-F]{4})"
    r"|U(000[1-9a-fA-F][0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))"
)

_PLAIN_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", '"': '"', "'": "'", "/": "/", "\\": "\\"}


class NotStructured(Exception):
    """Internal: the text is not of the form that was tried."""


@dataclass(slots=True)
class Node:
    """A value with its place in the passage."""

    start: int
    end: int


@dataclass(slots=True)
class Scalar(Node):
    """A string, a number or a constant, as it is said."""

    value: str
    text: bool  # a string, in contrast to a number or a constant
    place: Callable[[int], int]  # from an offset in the value to one in the passage


@dataclass(slots=True)
class Container(Node):
    """An object or an array."""

    keyed: bool
    members: list[tuple[str, int, Node]]  # key ("" in an array), where the key begins, value

    def leaves(self) -> bool:
        """Whether there is any value in it."""
        return any(not isinstance(node, Container) or node.leaves() for *_, node in self.members)


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


class Reader:
    """Reads one document from ``text``, strictly, in one pass; also Python's spelling of the same values."""

    __slots__ = ("_nested", "_place", "at", "cut", "text")

    def __init__(self, text: str, at: int, place: Callable[[int], int], *, nested: bool = False) -> None:
        self.text = text
        self.at = at
        self.cut = False  # the text ended before the document
        self._place = place
        self._nested = nested

    def document(self) -> Container:
        """The object or array that begins here."""
        root = self._value(0)
        if not isinstance(root, Container):
            raise NotStructured
        return root

    def fragment(self) -> list[Container]:
        """What can be read of a document whose beginning is missing: the rest of each object that is open there."""
        parts = [Container(self._place(self.at), self._place(self.at), True, [])]
        while found := self._peek():
            start = self.at
            if found in "}],":
                self.at += 1
                if found != "," and parts[-1].members:
                    parts.append(Container(self._place(self.at), self._place(self.at), True, []))
                continue
            try:
                key = self._key() if found in "\"'" else ""
                self._take(parts[-1], key, start, 1)
            except NotStructured:
                self.at = start
                break
            parts[-1].end = self._place(self.at)
        return [part for part in parts if part.leaves()]

    def _take(self, node: Container, key: str, start: int, depth: int) -> None:
        """Read a member; half a value is none, only a text may end early."""
        value = self._value(depth)
        if self.cut and isinstance(value, Scalar) and not (value.text and is_text(value.value)):
            return
        node.members.append((key, self._place(start), value))

    def _key(self) -> str:
        name = self._value(_MAX_DEPTH)
        if self._peek() == ":":
            self.at += 1
        elif not self.cut:
            raise NotStructured
        return name.value if isinstance(name, Scalar) else ""

    def _peek(self) -> str:
        self.at = SPACE.match(self.text, self.at).end()  # type: ignore[union-attr]
        if self.at == len(self.text):
            self.cut = True
        return self.text[self.at : self.at + 1]

    def _value(self, depth: int) -> Node:
        first = self._peek()
        if first in ("{", "["):
            if depth == _MAX_DEPTH:
                raise NotStructured
            return self._container(first, depth)
        if first in ('"', "'"):
            return self._string()
        if _HALF.match(self.text, self.at):
            self.cut, self.at = True, len(self.text)
            return self._scalar(self.at, "", text=False, place=self._place)
        match = _ATOM.match(self.text, self.at)
        if match is None:
            raise NotStructured
        written = match[0]
        if written[0].isalpha() and written not in CONSTANTS and written not in ("NaN", "Infinity"):
            raise NotStructured
        start, self.at = self.at, match.end()
        return self._scalar(start, CONSTANTS.get(written, written), text=False, place=self._place)

    def _scalar(self, start: int, value: str, *, text: bool, place: Callable[[int], int]) -> Scalar:
        return Scalar(self._place(start), self._place(self.at), value, text, place)

    def _container(self, opening: str, depth: int) -> Container:
        keyed, closing = opening == "{", "}" if opening == "{" else "]"
        node = Container(self._place(self.at), 0, keyed, [])
        self.at += 1
        while (found := self._peek()) and found != closing:
            key, key_start = "", self.at
            if keyed:
                key = self._key()
                if not self._peek():
                    break
            self._take(node, key, key_start, depth + 1)
            if self._peek() == ",":
                self.at += 1
            elif self._peek() not in ("", closing):
                raise NotStructured
        self.at += not self.cut
        node.end = self._place(self.at)
        return node

    def _string(self) -> Node:
        match = _STRING.match(self.text, self.at)
        assert match is not None
        start, self.at = self.at, match.end()
        group = 1 if match[1] is not None else 3
        if match[group + 1] is None:
            if self.at < len(self.text) - self.text.endswith("\\"):
                raise NotStructured
            self.cut, self.at = True, len(self.text)
        value, place = _unescape(match[group], match.start(group), self._place)
        if not self._nested and value[:1] == "{":
            try:
                inner = Reader(value, 0, place, nested=True)
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


def is_text(value: str) -> bool:
    """Whether a value is text of its own, to be cut into sentences, and not a value to be listed."""
    count = value.count(" ") + 1
    if count > MAX_WORDS or len(value) > _MAX_CHARS:
        return True
    return count > 6 and sum(1 for _ in _SENTENCE_END.finditer(value.strip())) > 1
