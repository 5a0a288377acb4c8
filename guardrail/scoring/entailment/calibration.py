"""From a model's own outputs to the one number that ΔR takes: a small fitted function that is part of the model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from guardrail.errors import ModelLoadError

CONFIG_KEY = "guardrail_calibration"
_CLOSEST = 1e-6  # a probability of exactly 0 or 1 has no logit


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """N = σ(bias + a · logit p_entailment − b · logit p_unsupported), fitted by logistic regression.

    A classifier judges the claim as a whole and misses single wrong words; a judge of words sees them and misses what
    is wrong between them. Neither is a probability of being supported before it is fitted to labelled claims.

    Attributes:
        bias: Intercept.
        entailment: a, weight of the class.
        unsupported: b, weight of the most unsupported words; where a model does not judge them, they count as even.
        missing_value: By how much a value that is missing from the evidence lowers the log-odds of N.
        lexical_weight: Exponent on ROUGE-L in ΔR that goes with it.
    """

    bias: float
    entailment: float
    unsupported: float = 0.0
    missing_value: float = 4.0
    lexical_weight: float = 0.05

    @classmethod
    def from_config(cls, config: Mapping[str, Any], *, model_id: str) -> Calibration | None:
        """Read it from a model's ``config.json``; ``None`` if the model has none.

        Raises:
            ModelLoadError: If what stands there is no calibration.
        """
        found = config.get(CONFIG_KEY)
        if found is None:
            return None
        names = {field.name for field in fields(cls)}
        numbers = isinstance(found, dict) and all(
            isinstance(v, (int, float)) and not isinstance(v, bool) and math.isfinite(v) for v in found.values()
        )
        if not numbers or not {"bias", "entailment"} <= set(found) <= names or found["entailment"] < 0:
            raise ModelLoadError(
                f"{CONFIG_KEY} in config.json of {model_id} must be an object of finite numbers with "
                f"{', '.join(sorted(names))}, entailment not negative",
                scorer=model_id,
            )
        return cls(**{name: float(value) for name, value in found.items()})

    def apply(self, entailment: float, unsupported: float | None) -> float:
        """The probability that a claim is supported.

        Args:
            entailment: Probability of the class, in [0, 1].
            unsupported: Probability that its most unsupported words are; ``None`` if the model does not judge words.

        Example:
            >>> Calibration(bias=0.0, entailment=1.0, unsupported=1.0).apply(0.9, 0.5)
            0.9
            >>> round(Calibration(bias=0.0, entailment=1.0, unsupported=1.0).apply(0.9, 0.9), 2)
            0.5
        """
        words = 0.0 if unsupported is None else _logit(unsupported)
        z = self.bias + self.entailment * _logit(entailment) - self.unsupported * words
        return round(1.0 / (1.0 + math.exp(-z)), 12)


def _logit(p: float) -> float:
    p = min(1.0 - _CLOSEST, max(_CLOSEST, p))
    return math.log(p / (1.0 - p))
