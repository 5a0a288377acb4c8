"""What a generative judge says about a claim, and who may say it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, runtime_checkable

from guardrail.protocols import Pair


class JudgeVerdict(StrEnum):
    """Whether the evidence supports a claim."""

    YES = "yes"
    NO = "no"
    PARTIAL = "partial"  # a part of the claim is supported: not enough


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A verdict, or why there is none.

    Attributes:
        verdict: What the judge said; ``None`` if it said nothing that counts.
        error: Why there is no verdict: ``"unreadable"`` (the reply is no verdict, or was cut off), ``"misled"`` (the
            text told the judge what to say, and a control question showed that it obeys), ``"timeout"``,
            ``"rate_limited"``, ``"transport"`` (the connection or the server), ``"failed"`` (anything else that went
            wrong), ``"budget"`` (it was not asked). Empty if there is a verdict.
        cached: Whether the verdict was known already, or another caller was asking for it.

    Raises:
        ValueError: If there are both a verdict and an error, or neither.

    Example:
        >>> Judgement(verdict=JudgeVerdict.PARTIAL).supported, Judgement(error="timeout").supported
        (False, False)
    """

    verdict: JudgeVerdict | None = None
    error: str = ""
    cached: bool = False

    def __post_init__(self) -> None:
        if (self.verdict is None) == (not self.error):
            raise ValueError("a judgement is a verdict or an error, and never both")
        if self.verdict is not None and not isinstance(self.verdict, JudgeVerdict):
            raise ValueError(f"verdict must be a JudgeVerdict, got {type(self.verdict).__name__}")

    @property
    def supported(self) -> bool:
        """Whether the verdict is YES."""
        return self.verdict is JudgeVerdict.YES


@runtime_checkable
class Judge(Protocol):
    """Says whether premises support hypotheses, in words that leave no doubt."""

    @property
    def judge_id(self) -> str:
        """Name that appears in results."""
        ...

    async def judge(self, pairs: Sequence[Pair]) -> Sequence[Judgement]:
        """Judge pairs, in order.

        Args:
            pairs: Any number of pairs; empty gives an empty result.

        Returns:
            One judgement per pair. What goes wrong with a pair is a judgement with an error: never an exception, and
            never a YES.

        Cancellation cancels the calls that are under way.
        """
        ...
