"""What belongs to one run and to no object: a place for those who are shared by many runs."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

run_scope: ContextVar[dict[object, Any] | None] = ContextVar("guardrail_run_scope", default=None)
"""A dictionary per guarded run, seen by all code that works for it and gone with it; ``None`` outside of runs.

An entailment model or a limiter serves many runs at once. What it has to remember about one of them, such as how much
of a budget is left, it keeps here under a key of its own.
"""
