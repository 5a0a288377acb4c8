"""A model screens, a generative judge decides the doubtful claims (S3)."""

from guardrail.evaluation.cascade.budget import JudgeBudget
from guardrail.evaluation.cascade.cascading import Cascade

__all__ = ["Cascade", "JudgeBudget"]
