"""Scores that do not depend on what was scored before or beside them."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from guardrail.protocols import Pair
from guardrail.scoring.entailment.local import LocalEntailment
from guardrail.scoring.verifier import Verifier
from guardrail.types import EntailmentScore


class OneByOne:
    """An entailment model that is given one pair at a time.

    A model of 8 bits rounds by the largest number in its batch, and one of 32 bits adds in another order: the score of
    a pair differs with its company, and which pairs are scored together depends on what is in the cache. Alone, a pair
    has one score. On a processor that costs nothing.

    Args:
        model: The model.
    """

    def __init__(self, model: LocalEntailment) -> None:
        self._model = model

    @property
    def model_id(self) -> str:
        """The name of the model."""
        return self._model.model_id

    async def score(self, pairs: Sequence[Pair]) -> list[EntailmentScore]:
        """Score pairs, in order, as the model does; cancellation too is that of the model."""
        return [score for pair in pairs for score in await self._model.score([pair])]

    def fingerprint(self) -> str:
        """What the scores depend on, as the model says."""
        return self._model.fingerprint()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)  # what the model declares: languages, weights, thresholds


def steady(verifier: Verifier) -> Verifier:
    """A verifier whose results for an answer are the same whenever it is asked.

    Args:
        verifier: The verifier; it is not changed.

    Returns:
        One that gives a model of this process one pair at a time. Other models are asked as before, also those that
        contain one: give a cascade ``OneByOne(model)``.

    Example:
        >>> steady(Verifier()).verify_sync("Entry is free.", ["Entry is free."]).accepted
        True
    """
    if not isinstance(verifier.entailment, LocalEntailment):
        return verifier
    alone = copy.copy(verifier)
    alone.entailment = OneByOne(verifier.entailment)
    return alone
