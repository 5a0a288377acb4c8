"""What a run is charged: the regeneration budget first, then the limiter, and the tokens when they are known."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from guardrail.cancellation import cancelled_from_outside
from guardrail.errors import GuardrailError, RateLimitedError
from guardrail.policy import Policy
from guardrail.protocols import Budget, Clock, Decision, RateLimiter, SettlingLimiter

_log = logging.getLogger("guardrail")

_SETTLE_S = 0.5


class Charges:
    """What one run is charged.

    A part that fails, or answers with something else than a :class:`~guardrail.protocols.Decision`, has refused: a
    limiter or budget that cannot decide is not walked around.

    Args:
        limiter: Charges every generator call; ``None`` for no limits.
        budget: Says whether there may be another attempt; ``None`` for no budget.
        key: Who is charged.
        policy: Says whether decisions of a degraded limiter are accepted.
        clock: Monotonic seconds.
        step: Opens a step for telemetry and gives the dictionary for what is found out in it.

    Attributes:
        waited_s: Seconds spent asking and waiting.
    """

    def __init__(
        self,
        *,
        limiter: RateLimiter | None,
        budget: Budget | None,
        key: str,
        policy: Policy,
        clock: Clock,
        step: Callable[[str, int], AbstractContextManager[dict[str, Any]]],
    ) -> None:
        self.waited_s = 0.0
        self._limiter = limiter
        self._settling = limiter if limiter is not None and isinstance(limiter, SettlingLimiter) else None
        self._budget = budget
        self._key = key
        self._accepts_degraded = policy.on_degraded_limits == "allow"
        self._clock = clock
        self._step = step
        self._degraded: dict[str, None] = {}
        self._charged: Decision | None = None
        self._settlements: set[asyncio.Task[None]] = set()

    @property
    def degraded(self) -> tuple[str, ...]:
        """Why decisions were not the ones that were configured, each reason once, in order."""
        return tuple(self._degraded)

    async def regenerate(self, attempt: int) -> bool:
        """Whether the budget allows another attempt; if so, it is counted.

        Args:
            attempt: Number of the attempt, from 2.

        Raises:
            RateLimitedError: If the budget fails.
        """
        budget = self._budget
        if budget is None:
            return True
        started = self._clock()
        try:
            with self._step("budget", attempt) as found:
                decision = await _ask("budget", lambda: budget.take(self._key, attempt))
                self._note(decision, found)
                return decision.allowed and (self._accepts_degraded or not decision.degraded)
        finally:
            self.waited_s += self._clock() - started

    async def charge(self, attempt: int, *, timeout_s: float | None) -> None:
        """Charge an attempt, and count it as a first attempt if it is one.

        Args:
            attempt: Number of the attempt.
            timeout_s: How long the limiter may wait; ``None`` for as long as it likes.

        Raises:
            RateLimitedError: If the limiter refuses or fails, or its decision is degraded and the policy does not
                accept that.

        If it does not end well, also on cancellation, tokens that were reserved are given back.
        """
        started = self._clock()
        try:
            if self._settlements:  # what the last attempt did not use is there for this one
                await asyncio.wait(self._settlements, timeout=_SETTLE_S)
            if self._limiter is not None:
                with self._step("limit", attempt) as found:
                    await self._acquire(self._limiter, attempt, timeout_s, found)
            if self._budget is not None and attempt == 1:
                await self._count_first(self._budget)
        except BaseException:
            self.settle({"total_tokens": 0})  # what was reserved for an attempt that does not begin
            raise
        finally:
            self.waited_s += self._clock() - started

    async def _acquire(
        self, limiter: RateLimiter, attempt: int, timeout_s: float | None, found: dict[str, Any]
    ) -> None:
        decision = await _ask("limiter", lambda: limiter.acquire(self._key, 1.0, timeout_s))
        self._note(decision, found)
        if not decision.allowed:
            limit = f": {decision.limit}" if decision.limit else ""
            raise RateLimitedError(
                f"the limiter ({decision.source}) refused attempt {attempt}{limit}",
                retry_after_s=decision.retry_after_s,
            )
        self._charged = decision
        if decision.degraded and not self._accepts_degraded:
            raise RateLimitedError(
                f"the limiter could not decide as configured ({decision.degraded}), and "
                'Policy.on_degraded_limits="refuse" accepts nothing else: see that its store can be reached, '
                'or set it to "allow"'
            )

    async def _count_first(self, budget: Budget) -> None:
        """A first attempt that is not counted makes the budget smaller, never larger: no reason to refuse it."""
        try:
            await budget.first(self._key)
        except asyncio.CancelledError:
            if cancelled_from_outside():
                raise
            _log.warning("the regeneration budget was cancelled from inside; a first attempt was not counted")
        except GuardrailError:
            raise
        except Exception as error:
            _log.warning("the regeneration budget raised %s; a first attempt was not counted", type(error).__name__)

    def _note(self, decision: Decision, found: dict[str, Any]) -> None:
        if decision.degraded:
            self._degraded[decision.degraded] = None
        found |= {
            "allowed": decision.allowed,
            "source": decision.source,
            "waited_s": decision.waited_s,
            "remaining": decision.remaining,
            "limit": decision.limit or None,
            "degraded": decision.degraded or None,
        }

    def settle(self, usage: Mapping[str, int]) -> None:
        """Begin to settle the last charge with the tokens that the generator reported; see :meth:`settled`.

        Args:
            usage: What the attempt reported, complete or not. If it reported nothing, the reservation stays.
        """
        decision, self._charged = self._charged, None
        tokens = tokens_of(usage)
        if self._settling is not None and decision is not None and tokens is not None:
            settlement = asyncio.create_task(_settle(self._settling, decision, tokens), name="guardrail-settle")
            self._settlements.add(settlement)

    async def settled(self) -> None:
        """Wait until what :meth:`settle` began has ended, as it does at most half a second after it began.

        A cancellation of the caller goes on after that: closing a stream early must not lose what it has used.
        """
        interrupted = False
        pending, self._settlements = self._settlements, set()
        give_up = asyncio.get_running_loop().time() + 2 * _SETTLE_S if pending else 0.0
        while pending and (left := give_up - asyncio.get_running_loop().time()) > 0:
            try:
                _, pending = await asyncio.wait(pending, timeout=left)
            except asyncio.CancelledError:
                interrupted = True
                pending = {task for task in pending if not task.done()}
        if pending:
            _log.warning("settling a charge did not end within %g s of being cancelled", _SETTLE_S)
        if interrupted:
            raise asyncio.CancelledError


async def _ask(who: str, question: Callable[[], Awaitable[Any]]) -> Decision:
    """The answer of a part that the user may have supplied."""
    try:
        decision = await question()
    except asyncio.CancelledError as error:
        if cancelled_from_outside():
            raise
        raise RateLimitedError(f"the {who} was cancelled from inside") from error
    except GuardrailError:
        raise
    except Exception as error:
        raise RateLimitedError(f"the {who} raised {type(error).__name__}") from error
    if not isinstance(decision, Decision):
        raise RateLimitedError(f"the {who} returned {type(decision).__name__} instead of a Decision")
    return decision


async def _settle(limiter: SettlingLimiter, decision: Decision, tokens: float) -> None:
    limit = asyncio.timeout(_SETTLE_S)
    try:
        async with limit:
            await limiter.settle(decision, tokens)
    except (Exception, asyncio.CancelledError) as error:
        if cancelled_from_outside():
            raise
        what = "took too long" if limit.expired() else f"raised {type(error).__name__}"
        _log.warning("settling a charge %s; what was reserved stays charged", what)


def tokens_of(usage: Mapping[str, int]) -> float | None:
    """The tokens of one generator call, input and output; ``None`` if none were reported.

    Example:
        >>> tokens_of({"input_tokens": 20, "output_tokens": 5}), tokens_of({"total_tokens": 25}), tokens_of({})
        (25.0, 25.0, None)
    """
    parts = [usage[name] for name in ("input_tokens", "output_tokens") if name in usage]
    if not parts and "total_tokens" in usage:
        parts = [usage["total_tokens"]]
    return float(sum(max(0, part) for part in parts)) if parts else None
