"""Asks an entailment model, and believes nothing that is not a score."""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Sequence
from dataclasses import replace

from guardrail.errors import ScoringError
from guardrail.protocols import Entailment, Pair, SelectiveEntailment
from guardrail.scoring.delta_r import WindowSignals
from guardrail.types import EntailmentScore


async def ask_model(
    model: Entailment, pairs: Sequence[Pair], decisive: Sequence[bool] | None = None
) -> list[EntailmentScore]:
    """Score pairs.

    Args:
        model: The entailment model.
        pairs: Any number of pairs.
        decisive: Per pair, whether a better score can change what is decided, for a model that asks for it; ``None`` if
            every pair can.

    Returns:
        One score per pair, in order, with every value checked.

    Raises:
        ScoringError: If the model fails, or returns something that is not a score for each pair.

    Cancellation is the model's: see :class:`~guardrail.protocols.Entailment`.
    """
    if not pairs:
        return []
    scorer = model.model_id
    try:
        if decisive is not None and isinstance(model, SelectiveEntailment):
            scores = list(await model.score_selected(pairs, decisive))
        else:
            scores = list(await model.score(pairs))
    except ScoringError:
        raise
    except Exception as error:
        raise ScoringError(f"the entailment model {scorer!r} raised {type(error).__name__}", scorer=scorer) from error
    if len(scores) != len(pairs):
        raise ScoringError(
            f"the entailment model {scorer!r} returned {len(scores)} scores for {len(pairs)} pairs", scorer=scorer
        )
    for score in scores:
        _validate(score, scorer)
    return scores


def scored_windows(
    compared: Sequence[WindowSignals],
    asked: Container[int],
    scores: Iterator[EntailmentScore],
    missing_log_odds: float | None,
) -> Iterator[WindowSignals]:
    """The windows of a claim with N.

    Args:
        compared: What comparison says, per window.
        asked: Positions of the windows that the model was asked about; the others take N from the joined evidence.
        scores: What it said, in their order.
        missing_log_odds: What the model declares; see :func:`~guardrail.scoring.delta_r.capped`.
    """
    joined = 0.0
    for at, own in enumerate(compared):
        if at not in asked:
            yield replace(own, missing_log_odds=missing_log_odds, entailment=joined)
            continue
        score = next(scores)
        joined = float(score.entailment) if at == 0 else joined
        yield replace(
            own,
            missing_log_odds=missing_log_odds,
            entailment=float(score.entailment),
            contradiction=None if score.contradiction is None else float(score.contradiction),
            screened=score.screened,
            judged=score.judged,
        )


def _validate(score: object, scorer: str) -> None:
    if not isinstance(score, EntailmentScore):
        raise ScoringError(
            f"the entailment model {scorer!r} returned {type(score).__name__} instead of EntailmentScore", scorer=scorer
        )
    values = (score.entailment, score.contradiction, score.unsupported, score.screened)
    for value in (v for v in values if v is not None):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            raise ScoringError(f"the entailment model {scorer!r} returned a score that is not a number", scorer=scorer)
        if not 0.0 <= value <= 1.0:
            raise ScoringError(f"the entailment model {scorer!r} returned {value!r}, outside [0, 1]", scorer=scorer)
