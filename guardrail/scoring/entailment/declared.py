"""What an entailment model may declare about itself, told by whatever stands before it."""

from __future__ import annotations

from typing import Any


class Declares:
    """Base of models that stand before another one, such as a cache or a cascade: they declare what that one does."""

    _given: Any  # the other model as a user handed it in: an adapter around it would hide what it declares

    @property
    def languages(self) -> Any:
        """What the model declares; see :func:`~guardrail.scoring.languages.trained_languages`."""
        return getattr(self._given, "languages", None)

    @property
    def missing_log_odds(self) -> float | None:
        """What the model declares."""
        return getattr(self._given, "missing_log_odds", None)

    @property
    def lexical_weight(self) -> float | None:
        """What the model declares."""
        return getattr(self._given, "lexical_weight", None)

    @property
    def detection_delta(self) -> float | None:
        """What the model declares."""
        return getattr(self._given, "detection_delta", None)
