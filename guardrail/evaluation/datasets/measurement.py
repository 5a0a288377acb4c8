"""What is said about one item, and what its metrics share while it is measured."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from guardrail.errors import ScoringError
from guardrail.evaluation.datasets.items import Item
from guardrail.evaluation.summary import finite
from guardrail.scope import run_scope
from guardrail.scoring.verifier import Verifier
from guardrail.types import Verification

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What a metric says about one item: a score, or why there is none.

    Attributes:
        score: A finite number; ``None`` if the item could not be measured.
        detail: What else is worth keeping, as values that JSON has, without text of the item.
        error: Why there is no score, in a word or two that errors are counted by; empty if there is one.

    Raises:
        ValueError: If it has both or neither, the score is not a finite number, the detail no mapping, or the error no
            text.

    Example:
        >>> Measurement(score=0.75).score
        0.75
        >>> Measurement()
        Traceback (most recent call last):
        ...
        ValueError: a measurement has either a score or an error
    """

    score: float | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""

    def __post_init__(self) -> None:
        for name, kind, called in (("detail", Mapping, "mapping"), ("error", str, "text")):
            if not isinstance(getattr(self, name), kind):
                raise ValueError(f"the {name} of a measurement must be a {called}")
        if (self.score is None) is not bool(self.error):
            raise ValueError("a measurement has either a score or an error")
        if self.score is not None:
            object.__setattr__(self, "score", finite(self.score, "the score of a measurement"))


class ItemInProgress:
    """One item while its metrics are measured. They share its verification.

    Args:
        item: The item.
        verifier: Checks the answer, once, however many metrics ask.

    Example:
        >>> item = Item(id="1", context=("Entry is free.",), answer="Entry is free.")
        >>> found = asyncio.run(ItemInProgress(item, verifier=Verifier()).verification())
        >>> found.accepted
        True
    """

    def __init__(self, item: Item, *, verifier: Verifier) -> None:
        self.item = item
        self.verifier = verifier
        self._turns: defaultdict[Hashable, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._found: dict[Hashable, tuple[Any, ScoringError | None]] = {}

    async def verification(self) -> Verification:
        """The verification of the answer.

        Raises:
            ScoringError: If the checker failed, also to those who ask later.

        Cancellation drops scoring that has not begun; who asks next begins again.
        """
        return await self.once("verification", self._verify)

    async def _verify(self) -> Verification:
        item = self.item
        return await self.verifier.verify(item.answer, item.context, question=item.question or None)

    async def once(self, key: Hashable, compute: Callable[[], Awaitable[T]]) -> T:
        """Compute something that several metrics need only once for this item.

        What a guarded run may use up, such as judgements, ``compute`` may too.

        Args:
            key: What it is.
            compute: Called unless there is a result already; it may ask for other keys.

        Raises:
            ScoringError: If ``compute`` raised one, also to those who ask later; other exceptions are not kept.

        Cancellation reaches ``compute``; who asks next begins again.
        """
        async with self._turns[key]:
            if key not in self._found:
                outside = run_scope.set({})
                try:
                    self._found[key] = (await compute(), None)
                except ScoringError as error:
                    self._found[key] = (None, error)
                finally:
                    run_scope.reset(outside)
        result: T
        result, failed = self._found[key]
        if failed is not None:
            raise failed
        return result
