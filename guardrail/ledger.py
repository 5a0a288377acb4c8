"""What the reader has been given so far, and what is known about it."""

from __future__ import annotations

from guardrail.types import ReceiptRange, ReceiptStatus


class Ledger:
    """Append-only record of delivered text; only an explicit retraction takes anything back."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._ranges: list[ReceiptRange] = []
        self._length = 0

    @property
    def text(self) -> str:
        """Everything the reader has."""
        return "".join(self._parts)

    @property
    def length(self) -> int:
        """Code points delivered."""
        return self._length

    @property
    def receipt(self) -> tuple[ReceiptRange, ...]:
        """One range per delivered piece, contiguous from 0."""
        return tuple(self._ranges)

    def add(self, text: str, *, status: ReceiptStatus, reason: str, attempt: int) -> int:
        """Record delivered text.

        Args:
            text: The text; empty text leaves no trace.
            status: Whether and when it was checked.
            reason: The verdict, the kind, or why it was not checked.
            attempt: Where it comes from; 0 for the guard's own words.

        Returns:
            Its offset in the delivered text.
        """
        start = self._length
        if text:
            self._parts.append(text)
            self._length += len(text)
            self._ranges.append(
                ReceiptRange(start=start, end=self._length, status=status, reason=reason, attempt=attempt)
            )
        return start

    def clear(self) -> None:
        """The reader was told to take everything back."""
        self._parts.clear()
        self._ranges.clear()
        self._length = 0
