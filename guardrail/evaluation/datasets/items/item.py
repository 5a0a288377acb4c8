"""One row of a data set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from guardrail.types import Passage


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A question, what was retrieved for it, and an answer to judge.

    Attributes:
        id: Identifier of the item; the number of its row if it has none.
        question: What was asked; may be empty.
        context: The passages that the answer should rest on; may be empty.
        answer: The answer, as it was given.
        answered: Whether there is an answer at all. An answer without a character is one; a missing answer is not.
        label: What people said about the answer: fully supported or not; ``None`` if nobody did.
        detail: What the row has as ``detail``, if that is an object.

    Example:
        >>> Item(id="7", context=("Entry is free.",), answer="Entry is free.").label is None
        True
    """

    id: str
    question: str = field(default="", repr=False)
    context: tuple[str | Passage, ...] = field(default=(), repr=False)
    answer: str = field(default="", repr=False)
    answered: bool = True
    label: bool | None = None
    detail: Mapping[str, Any] = field(default_factory=dict, repr=False)
