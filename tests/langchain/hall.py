"""A small world for the tests: one passage, true answers, and answers whose marker may reach nobody."""

from __future__ import annotations

from typing import Any

from guardrail import Guardrail, Policy
from guardrail.policy import as_policy
from guardrail.testing import FakeEntailment

MARKER = "zqx"
PASSAGE = "The old hall keeps a wooden clock near its door. The garden grows tall roses by the wall."
ONE = "The old hall keeps a wooden clock near its door."
TWO = "The garden grows tall roses by the wall."
ANSWER = f"{ONE} {TWO}"
WRONG = f"The {MARKER} cellar hides rare coins."
ALSO_WRONG = f"A {MARKER} tunnel leads to the river."
QUESTION = "What is in the hall?"


def guard(policy: Policy | str = "balanced", observers: Any = (), **changes: Any) -> Guardrail:
    """A guard that knows which sentences are true; no telemetry unless asked for."""
    entailment = FakeEntailment(lambda premise, claim: 0.0 if MARKER in claim else 1.0)
    return Guardrail(policy=as_policy(policy).override(**changes), entailment=entailment, observers=observers)
