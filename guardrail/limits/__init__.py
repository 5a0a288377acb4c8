"""Limits: how a run asks a limiter."""
