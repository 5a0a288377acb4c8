"""Where the sentences of a passage stand, without saying what they are."""

from __future__ import annotations

from guardrail.text.segmenter import Segmenter
from guardrail.types import SegmentKind


class _Cutter(Segmenter):
    """Leaves open what the pieces are: to tell costs as much as to find them."""

    __slots__ = ()

    @staticmethod
    def _kind_of(text: str) -> SegmentKind:
        return SegmentKind.CLAIM


def bodies(text: str) -> list[tuple[int, int, str]]:
    """The segments of a text without the space around them; see :func:`~guardrail.text.segmenter.segment`.

    Args:
        text: A passage.

    Returns:
        Start, end and text of each, in order.

    Example:
        >>> bodies(" It costs $3.50.  Is that fair?")
        [(1, 16, 'It costs $3.50.'), (18, 31, 'Is that fair?')]
    """
    cutter = _Cutter()
    return [(piece.body_start, piece.body_end, piece.body) for piece in cutter.feed(text) + cutter.flush()]
