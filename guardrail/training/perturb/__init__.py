"""Training pairs from plain prose and from answers: faithful rewritings, and rewritings with known errors."""

from guardrail.training.perturb.answers import edited_pairs
from guardrail.training.perturb.prose import prose_pairs

__all__ = ["edited_pairs", "prose_pairs"]
