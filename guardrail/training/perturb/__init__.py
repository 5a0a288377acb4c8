"""Training pairs from plain prose: faithful rewritings of its sentences, and rewritings with known errors."""

from guardrail.training.perturb.prose import prose_pairs

__all__ = ["prose_pairs"]
