"""What decides while Redis cannot be reached."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

from guardrail.errors import ConfigurationError
from guardrail.limits.limit import Limit
from guardrail.limits.local import LocalLimiter
from guardrail.protocols import Clock, Decision

OnError = Literal["local", "open", "closed"]


class Fallback:
    """Decides in the place of a limiter that cannot be reached, and says so in every decision.

    ``"local"``: a limiter of this process with its share of the limits. It is told of every charge, so it starts with
    what this process has already used. ``"open"``: everything passes. ``"closed"``: nothing does.

    Args:
        rule: Which of the three.
        limits: The limits.
        replicas: How many processes share them.
        tokens_per_call: See :class:`~guardrail.limits.local.LocalLimiter`.
        clock: Monotonic seconds.

    Raises:
        ConfigurationError: If the rule is none of the three, or ``replicas`` is not a whole number from 1 on.
    """

    def __init__(
        self, rule: OnError, limits: Sequence[Limit], *, replicas: int, tokens_per_call: float, clock: Clock
    ) -> None:
        check_outage(rule, replicas)
        self._rule = rule
        self._local: LocalLimiter | None = None
        if rule == "local":
            shares = [share(limit, replicas, tokens_per_call) for limit in limits]
            self._local = LocalLimiter(list(dict.fromkeys(shares)), tokens_per_call=tokens_per_call, clock=clock)

    def charged(self, key: str, cost: float) -> None:
        """Take note of a charge that was made elsewhere."""
        if self._local is not None:
            self._local.note(key, cost)

    async def decide(self, key: str, cost: float, timeout_s: float | None, *, reason: str, again_s: float) -> Decision:
        """Decide about a charge.

        Args:
            key: Who is charged.
            cost: How much.
            timeout_s: How long it may wait.
            reason: Why Redis could not decide.
            again_s: Seconds after which Redis is tried again.
        """
        degraded = f"redis_{reason}"
        if self._rule == "open":
            return Decision(allowed=True, source="open", degraded=degraded)
        if self._local is None:
            return Decision(allowed=False, retry_after_s=again_s, source="closed", degraded=degraded)
        decision = await self._local.acquire(key, cost, timeout_s)
        retry_after_s = decision.retry_after_s
        if not decision.allowed and retry_after_s is None:
            retry_after_s = again_s  # more than this share ever gives, but not more than the limit in Redis does
        return replace(decision, source="local", degraded=degraded, retry_after_s=retry_after_s)

    async def settle(self, decision: Decision, tokens: float) -> None:
        """Settle a decision that was made here."""
        if self._local is not None:
            await self._local.settle(decision, tokens)

    async def aclose(self) -> None:
        """Close the limiter of this process."""
        if self._local is not None:
            await self._local.aclose()


def check_outage(rule: Any, replicas: Any) -> None:
    """See that it is known what happens while Redis cannot be reached.

    Raises:
        ConfigurationError: If the rule is none of the three, or ``replicas`` is not a whole number from 1 on.
    """
    if rule not in get_args(OnError):
        raise ConfigurationError(f'on_error: must be "local", "open" or "closed", got {rule!r}')
    if not isinstance(replicas, int) or isinstance(replicas, bool) or replicas < 1:
        raise ConfigurationError(f"replicas: must be a whole number from 1 on, got {replicas!r}")


def share(limit: Limit, replicas: int, tokens_per_call: float) -> Limit:
    """What one of several processes may use of a limit, so that all together do not use more.

    A share is never too small for one call: a window that would be gets longer instead, a bucket keeps room for one.

    Example:
        >>> str(share(Limit(60, 60.0), 4, 1000.0)), str(share(Limit(2, 1.0), 4, 1000.0))
        ('15 calls per 60 s', '1 calls per 2 s')
        >>> str(share(Limit(40, 1.0, burst=2), 4, 1000.0))
        '10 calls per 1 s, burst 1'
    """
    one_call = min(max(tokens_per_call, 1.0) if limit.unit == "tokens" else 1.0, limit.capacity)
    if limit.mode == "gcra" and limit.burst is not None:
        return replace(limit, rate=limit.rate / replicas, burst=max(limit.burst / replicas, one_call))
    rate = limit.rate / replicas
    if rate < one_call:
        return replace(limit, rate=one_call, period_s=limit.period_s * one_call / rate)
    return replace(limit, rate=rate)
