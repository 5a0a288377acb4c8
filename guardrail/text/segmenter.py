"""Cuts a growing answer into lossless segments at sentence and block boundaries."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import ClassVar

from guardrail.errors import ConfigurationError
from guardrail.text import blocks
from guardrail.text.blocks import Line
from guardrail.text.boundaries import (
    TERMINATOR,
    begins_small,
    follows_boundary,
    glued_boundary,
    inside_pair,
    is_tight,
    sentence_end,
    starts_next,
)
from guardrail.text.cuts import clause_within, lines_within
from guardrail.text.kinds import classify
from guardrail.text.surrogates import SurrogateJoiner
from guardrail.types import Segment, SegmentKind

DEFAULT_MAX_CHARS = 600
DEFAULT_MAX_BLOCK_CHARS = 8000

# How far beyond a limit the scanner may look to decide a boundary in front of it.
_LOOK_AHEAD = 64
# Input is taken in pieces of this size, so that the text after the last boundary stays short in any case.
_PIECE = 4096

_NOT_SPACE = re.compile(r"\S")
_FINISHED = frozenset(".!?:…。！？")


class Segmenter:
    """Splits a stream of text into :class:`~guardrail.types.Segment` values.

    The texts of the segments, joined, are the input, character for character; only halves of surrogate pairs are
    repaired (see :mod:`guardrail.text.surrogates`). Whitespace belongs to the segment before it. The segments do not
    depend on how the text is divided into chunks, and a boundary, once reported, stays. A sentence is reported with
    the first character that shows it to be finished, mostly the first one of the next sentence.

    Args:
        max_chars: Prose without a boundary is cut before it is longer, in characters, at least 8: at a clause
            boundary if there is one in the second half, else at a space.
        max_block_chars: The same for a fenced block, cut at a line end; at least ``max_chars``.

    Raises:
        ConfigurationError: If a limit is too small.

    Example:
        >>> segmenter = Segmenter()
        >>> [s.text for s in segmenter.feed("Dr. Okafor starts today. B")]
        ['Dr. Okafor starts today. ']
        >>> [s.text for s in segmenter.feed("ring it.") + segmenter.flush()]
        ['Bring it.']
    """

    __slots__ = (
        "_after_label",
        "_bare_rows",
        "_continued",
        "_fence",
        "_forced",
        "_in_table",
        "_joiner",
        "_line",
        "_line_start",
        "_max_block_chars",
        "_max_chars",
        "_offset",
        "_scan",
        "_tail",
    )

    def __init__(self, *, max_chars: int = DEFAULT_MAX_CHARS, max_block_chars: int = DEFAULT_MAX_BLOCK_CHARS) -> None:
        if max_chars < 8:
            raise ConfigurationError(f"max_chars must be at least 8, not {max_chars}")
        if max_block_chars < max_chars:
            raise ConfigurationError(f"max_block_chars must be at least max_chars ({max_chars}), not {max_block_chars}")
        self._max_chars = max_chars
        self._max_block_chars = max_block_chars
        self._joiner = SurrogateJoiner()
        self._tail = ""  # the text since the last boundary
        self._offset = 0  # where the tail begins in the answer
        self._scan = 0  # how much of the tail needs no second look
        self._line = Line.UNKNOWN
        self._line_start = 0  # in the tail; 0 also for a line that began before it
        self._fence = ""  # the marker that closes the current fenced block
        self._in_table = False
        self._bare_rows = False  # the rows of the table do not begin with "|"
        self._after_label = False  # the line before was an item or ended in a colon, so that "A. Text" is an item
        self._forced = False  # the end found last is a cut inside a segment that was too long
        self._continued = False  # the tail goes on after such a cut

    @property
    def pending(self) -> str:
        """The text that has been fed and not reported."""
        return self._tail + self._joiner.pending

    def feed(self, text: str) -> list[Segment]:
        """Take the next chunk.

        Args:
            text: Any number of characters, also none.

        Returns:
            The segments that are finished now, in order; mostly none.
        """
        text = self._joiner.feed(text)
        if len(text) <= _PIECE:
            return self._take(text) if text else []
        return [s for at in range(0, len(text), _PIECE) for s in self._take(text[at : at + _PIECE])]

    def flush(self) -> list[Segment]:
        """Report the rest, at the end of the stream."""
        return self._take(self._joiner.flush(), ended=True)

    def _take(self, text: str, *, ended: bool = False) -> list[Segment]:
        self._tail += text
        segments: list[Segment] = []
        while self._tail:
            end = self._next_end(ended)
            if not end:
                break
            segments.append(self._cut(end))
        return segments

    def _next_end(self, ended: bool) -> int:
        """Where the first segment of the tail ends; 0 while more text is needed."""
        self._forced = False
        while True:
            line = self._line
            limit = self._max_block_chars if line in (Line.FENCE, Line.ROW_END) else self._max_chars
            view = _View(self._tail, limit, ended)
            end = self._scanners[line](self, view)
            if end:
                return end
            if self._line is not line:
                continue  # now it is known how to read this line
            if view.full or (self._scan >= limit and len(view.text) > limit):
                self._forced = True
                return lines_within(view.text, limit) if line is Line.FENCE else clause_within(view.text, limit)
            return len(view.text) if view.ended else 0

    def _cut(self, end: int) -> Segment:
        text = self._tail[:end]
        whole = not (self._forced or self._continued)
        if self._line is Line.FENCE:
            kind = SegmentKind.CODE
        else:
            kind = self._kind_of(text)
            if not whole and kind is not SegmentKind.BLANK:
                kind = SegmentKind.CLAIM  # half a sentence may hide what it says
        segment = Segment(start=self._offset, end=self._offset + end, text=text, kind=kind)
        self._tail = self._tail[end:]
        self._offset += end
        self._scan = self._line_start = 0
        self._continued = self._forced
        body = text.rstrip()
        if self._forced:
            if self._line is Line.UNKNOWN and body:
                self._line = Line.PROSE
            return segment
        newlines = text.count("\n", len(body))
        if newlines:
            self._line = Line.UNKNOWN
            self._after_label = self._after_label or body.endswith(":")
            self._in_table = self._in_table and newlines == 1
        return segment

    _kind_of = staticmethod(classify)

    # Scanners: each reads lines of one type from ``_scan`` on and returns the end of the segment, or 0.

    def _open(self, view: _View) -> int:
        start = view.skip_space(self._scan)
        if start == len(view.text):
            return 0
        line, complete = blocks.line_at(view.text, start)
        opened = blocks.open_line(line, complete=complete or view.ended, after_label=self._after_label)
        if opened is None:
            return 0
        if opened is Line.PROSE and self._in_table and self._bare_rows:
            opened = Line.ROW
        self._in_table = self._in_table and opened is Line.ROW
        self._after_label = opened is Line.ITEM
        self._line, self._line_start, self._scan = opened, start, start
        if opened is Line.ITEM:
            self._scan = blocks.marker_end(view.text, start)
        elif opened is Line.QUOTE:
            self._scan = blocks.quote_prefix_end(view.text, start)
        elif opened is Line.FENCE:
            self._fence = line[: len(line) - len(line.lstrip(line[0]))]
            self._scan = min(start + len(line) + 1, len(view.text))
        return 0

    def _prose(self, view: _View) -> int:
        while True:
            match = TERMINATOR.search(view.text, self._scan, view.limit)
            if match is None:
                self._scan = max(self._scan, min(len(view.text), view.limit))
                return 0
            at = self._scan = match.start()
            decided = self._newline(view, at) if match[0] == "\n" else self._stop(view, at)
            if decided is None:
                return 0
            end, boundary = decided
            if boundary:
                return end
            self._scan = end

    def _stop(self, view: _View, at: int) -> tuple[int, bool] | None:
        """Decide the terminator at ``at``: where to go on, and whether a segment ends there."""
        text = view.text
        found = sentence_end(text, at, ended=view.ended)
        if found is None:
            return None
        end, cited = found
        if end == len(text):
            return end, True
        tight = is_tight(text, at, end)
        if not text[end].isspace():
            if tight:
                return end, starts_next(text, at, end) and not inside_pair(text, end)
            glued = glued_boundary(text, at, end, cited=cited, ended=view.ended)
            return None if glued is None else (end, glued and not inside_pair(text, end))
        after = view.skip_space(end)
        if after == len(text):
            return (after, True) if view.ended or view.full else None
        newline = text.find("\n", end, after)
        if newline >= 0:
            breaks = self._breaks(view, newline, after)
            if breaks is None or breaks:
                return None if breaks is None else (after, True)
        if inside_pair(text, end):
            return end, False
        first = after if newline < 0 else blocks.quote_prefix_end(text, after)
        lower = self._line is Line.PROSE and not self._continued and begins_small(text)
        follows = tight or follows_boundary(text, at, end, first, ended=view.ended, lower_style=lower)
        return None if follows is None else (after if follows else end, follows)

    def _newline(self, view: _View, at: int) -> tuple[int, bool] | None:
        text = view.text
        after = view.skip_space(at)
        if after == len(text):
            return (after, True) if view.ended or view.full else None
        if "|" in text[self._line_start : at] and text.count("\n", at, after) == 1:
            end = self._table_head(view, after)
            if end is None:
                return None
            if end:
                self._bare_rows = True
                return end, True
        breaks = self._breaks(view, at, after)
        if breaks is None:
            return None
        self._line_start = after
        return (after, True) if breaks else (blocks.quote_prefix_end(text, after), False)

    def _breaks(self, view: _View, newline: int, after: int) -> bool | None:
        """Whether the newline ends a segment by what the lines on both sides of it are."""
        text = view.text
        if text.count("\n", newline, after) > 1:
            return True
        here = text[self._line_start : newline].rstrip()
        line, complete = blocks.line_at(text, after)
        label = self._after_label or here.endswith(":")
        opened = blocks.open_line(line, complete=complete or view.ended, after_label=label)
        if opened is None:
            return None
        if self._line is Line.QUOTE:
            return opened is not Line.QUOTE or not line.strip("> \t\r")
        if opened is not Line.PROSE:
            return True
        if self._line is Line.ITEM:
            # An indented line goes on with the item, unless the item is a finished sentence or a label.
            indent = after - text.rfind("\n", newline, after) - 1
            return indent < 2 or here.rstrip("*_")[-1:] in _FINISHED
        return blocks.is_bold_line(here) or (here.startswith("**") and line.startswith("**"))

    def _row(self, view: _View) -> int:
        newline = view.text.find("\n", self._scan, view.limit)
        if newline < 0:
            self._scan = max(self._scan, min(len(view.text), view.limit))
            return 0
        self._scan = newline
        if self._in_table:
            return view.end_of_space(newline)
        self._line = Line.ROW_END
        return 0

    def _row_end(self, view: _View) -> int:
        """Hold the first row of a table until the next line shows whether it is the header."""
        after = view.end_of_space(self._scan)
        if not after or after == len(view.text) or view.text.count("\n", self._scan, after) > 1:
            return after
        end = self._table_head(view, after)
        if end is None:
            return 0
        self._in_table, self._bare_rows = True, False
        return end or after

    def _table_head(self, view: _View, after: int) -> int | None:
        """End of a header whose rule would be the line at ``after``; 0 if it is none, ``None`` if unknown."""
        line, complete = blocks.line_at(view.text, after)
        rule = blocks.is_table_rule(line, complete=complete or view.ended)
        if not rule:
            return None if rule is None else 0
        self._in_table = True
        return view.end_of_space(after + len(line)) or None

    def _single_line(self, view: _View) -> int:
        newline = view.text.find("\n", self._scan, view.limit)
        if newline < 0:
            self._scan = max(self._scan, min(len(view.text), view.limit))
            return 0
        self._scan = newline
        return view.end_of_space(newline)

    def _fenced(self, view: _View) -> int:
        while self._scan < view.limit and (newline := view.text.find("\n", self._scan)) >= 0:
            line = view.text[self._scan : newline].strip()
            if line.startswith(self._fence) and not line.strip(self._fence[0]):
                return view.end_of_space(newline)
            self._scan = newline + 1
        return 0

    _scanners: ClassVar[Mapping[Line, Callable[[Segmenter, _View], int]]] = {
        Line.UNKNOWN: _open,
        Line.PROSE: _prose,
        Line.ITEM: _prose,
        Line.QUOTE: _prose,
        Line.HEADING: _single_line,
        Line.RULE: _single_line,
        Line.ROW: _row,
        Line.ROW_END: _row_end,
        Line.FENCE: _fenced,
    }


class _View:
    """The part of the tail that may decide about its first segment, so that no decision depends on the chunking."""

    __slots__ = ("ended", "full", "limit", "text")

    def __init__(self, tail: str, limit: int, ended: bool) -> None:
        self.limit = limit
        self.text = tail[: limit + _LOOK_AHEAD]
        self.full = len(self.text) == limit + _LOOK_AHEAD
        self.ended = ended and len(self.text) == len(tail)

    def skip_space(self, at: int) -> int:
        """Offset of the first visible character from ``at`` on; the end of the view if there is none."""
        match = _NOT_SPACE.search(self.text, at)
        return match.start() if match else len(self.text)

    def end_of_space(self, at: int) -> int:
        """The same, but 0 while more whitespace may follow."""
        end = self.skip_space(at)
        return end if end < len(self.text) or self.ended or self.full else 0


def segment(
    text: str, *, max_chars: int = DEFAULT_MAX_CHARS, max_block_chars: int = DEFAULT_MAX_BLOCK_CHARS
) -> list[Segment]:
    """Split a whole text.

    Args:
        text: The answer.
        max_chars: See :class:`Segmenter`.
        max_block_chars: See :class:`Segmenter`.

    Returns:
        What a :class:`Segmenter` reports for the same text in chunks.

    Raises:
        ConfigurationError: If a limit is too small.

    Example:
        >>> [s.text for s in segment("It costs $3.50. Is that fair?")]
        ['It costs $3.50. ', 'Is that fair?']
    """
    segmenter = Segmenter(max_chars=max_chars, max_block_chars=max_block_chars)
    return segmenter.feed(text) + segmenter.flush()
