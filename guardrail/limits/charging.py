"""Charging one generator call."""

from __future__ import annotations

import asyncio
from typing import Any

from guardrail.cancellation import cancelled_from_outside
from guardrail.errors import GuardrailError, RateLimitedError
from guardrail.protocols import Decision, RateLimiter


async def charge(
    limiter: RateLimiter, key: str, attempt: int, *, timeout_s: float | None, found: dict[str, Any]
) -> None:
    """Charge an attempt; whatever goes wrong counts as a refusal: a limiter that cannot decide is not walked around.

    Args:
        limiter: The limiter.
        key: Who is charged.
        attempt: Number of the attempt.
        timeout_s: How long the limiter may wait; ``None`` for as long as it likes.
        found: Gets what the limiter said, for telemetry.

    Raises:
        RateLimitedError: If the limiter refuses, fails, or answers with something else than a ``Decision``.
    """
    try:
        decision = await limiter.acquire(key, 1.0, timeout_s)
    except asyncio.CancelledError as error:
        if cancelled_from_outside():
            raise
        raise RateLimitedError("the limiter was cancelled from inside") from error
    except GuardrailError:
        raise
    except Exception as error:
        raise RateLimitedError(f"the limiter raised {type(error).__name__}") from error
    if not isinstance(decision, Decision):
        raise RateLimitedError(f"the limiter returned {type(decision).__name__} instead of a Decision")
    found |= {"allowed": decision.allowed, "source": decision.source, "waited_s": decision.waited_s}
    if not decision.allowed:
        raise RateLimitedError(
            f"the limiter ({decision.source}) refused attempt {attempt}", retry_after_s=decision.retry_after_s
        )
