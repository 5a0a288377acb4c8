"""Turns the events of a run into OpenTelemetry spans. Only the API is used; without an SDK nothing is recorded."""

from __future__ import annotations

from guardrail.protocols import Observer


def default_observers() -> tuple[Observer, ...]:
    """Spans through the globally configured provider, whenever it is configured."""
    from guardrail.telemetry.spans import SpanObserver  # the API costs 30 ms at import: only for those who guard

    return (SpanObserver(),)
