"""From a model's raw outputs to P(entailment): which column it is, and which activation turns it into a probability.

Both are read from the model's configuration or given explicitly; neither is ever guessed. Models disagree on the
order (``cross-encoder/nli-*``: contradiction, entailment, neutral; ``*-mnli``: contradiction, neutral, entailment)
and on whether they return logits.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal

from guardrail.errors import ModelLoadError, ScoringError

if TYPE_CHECKING:  # numpy costs 50 ms at import: only for those who have a model
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

Activation = Literal["softmax", "sigmoid"]
"""The activation that a model has *already applied* to what it returns."""

SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "entailment": ("entail", "entails", "entailed", "entailing", "entailment", "support", "supports", "supported"),
    "contradiction": (
        *("contradict", "contradicts", "contradicted", "contradicting", "contradiction", "contradictory"),
        *("refute", "refutes", "refuted"),
    ),
    "neutral": (
        *("neutral", "neither", "nei", "not_enough_info", "not_enough_information", "not_enough_evidence"),
        *("not_entailment", "not_entailed", "non_entailment", "not_supported", "unsupported"),
    ),
}
"""Label names that are understood, in lower case with ``_`` between words."""

_ROLE = {name: role for role, names in SYNONYMS.items() for name in names}
_LEAST_SUPPORTED = 4  # tokens; of 1, 2, 4, 8 and all, 4 and 8 order labelled answers best, and fewer miss fewer slips
_EXAMPLE = 'labels={0: "contradiction", 1: "entailment", 2: "neutral"}'


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelMap:
    """Which output column means what.

    Attributes:
        entailment: Index of the entailment class.
        contradiction: Index of the contradiction class; ``None`` if the model has none.
        neutral: Index of everything else; ``None`` if the model has none.
    """

    entailment: int
    contradiction: int | None = None
    neutral: int | None = None

    @property
    def size(self) -> int:
        """Number of output columns."""
        return sum(index is not None for index in (self.entailment, self.contradiction, self.neutral))


def resolve_labels(id2label: Mapping[Any, str], *, model_id: str = "") -> LabelMap:
    """Find the classes of a model by the names in its configuration.

    Args:
        id2label: Index to label name, as in a Hugging Face ``config.json`` (indices may be strings). Names are
            compared without regard to case, spaces and hyphens; :data:`SYNONYMS` lists what is understood.
        model_id: Name for the error message.

    Returns:
        The index of each class.

    Raises:
        ModelLoadError: If a name is unknown (``LABEL_0``), a class appears twice, none is entailment, or the indices
            are not 0, 1, …; the message asks for an explicit map.

    Example:
        >>> resolve_labels({0: "CONTRADICTION", 1: "NEUTRAL", 2: "ENTAILMENT"}).entailment
        2
    """

    def fail(problem: str) -> ModelLoadError:
        hint = f"pass the order explicitly, e.g. {_EXAMPLE}, or labels={{0: 'entailment'}} for a single output"
        return ModelLoadError(f"cannot tell which output of {model_id or 'the model'} is entailment: {problem}; {hint}")

    found: dict[str, int] = {}
    try:
        named = sorted((int(index), str(name)) for index, name in id2label.items())
    except (AttributeError, TypeError, ValueError):
        raise fail("id2label is not a mapping of indices to names") from None
    if [index for index, _ in named] != list(range(len(named))):
        raise fail(f"the label indices are {[index for index, _ in named]}, not 0, 1, …")
    for index, name in named:
        role = _ROLE.get(re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_"))
        if role is None:
            raise fail(f"the label name {name!r} is unknown")
        if role in found:
            raise fail(f"two labels mean {role}")
        found[role] = index
    if "entailment" not in found:
        raise fail(f"none of the labels {[name for _, name in named]} means entailment")
    return LabelMap(**found)


def probabilities(
    outputs: ArrayLike,
    *,
    rows: int,
    width: int,
    activation: Activation | None = None,
    scorer: str = "",
) -> NDArray[np.float64]:
    """Turn model outputs into probabilities: softmax over several logits, sigmoid for one, applied exactly once.

    Args:
        outputs: Array of shape ``(rows, width)``, or ``(rows,)`` if ``width`` is 1.
        rows: How many pairs were scored.
        width: How many classes the model has.
        activation: The activation that the model has already applied, if it returns probabilities; ``None`` means
            that ``outputs`` are logits. It is declared, never inferred from the values: a logit can lie in [0, 1].
        scorer: ``model_id`` for the error message.

    Returns:
        Array of shape ``(rows, width)``, values in [0, 1].

    Raises:
        ScoringError: If the shape is another, a value is NaN or infinite, or declared probabilities are none.

    Example:
        >>> probabilities([[-8.3], [0.0], [8.1]], rows=3, width=1).round(4).ravel().tolist()
        [0.0002, 0.5, 0.9997]
    """
    import numpy as np

    try:
        values = np.asarray(outputs, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ScoringError(f"{scorer or 'the model'} did not return a table of numbers", scorer=scorer) from error
    if width == 1 and values.shape == (rows,):
        values = values.reshape(rows, 1)
    if values.shape != (rows, width):
        raise ScoringError(
            f"{scorer or 'the model'} returned shape {values.shape} for {rows} pairs and {width} labels", scorer=scorer
        )
    table = values.tolist()
    # In plain Python where it is exact: right after a forward pass every call into numpy is cold.
    if not all(map(math.isfinite, chain.from_iterable(table))):
        raise ScoringError(f"{scorer or 'the model'} returned NaN or infinity", scorer=scorer)
    if activation is not None:
        return _declared(values, activation, scorer)
    if width == 1:
        return _sigmoid(values)
    shifted = np.exp([[value - max(row) for value in row] for row in table]).reshape(values.shape)
    result: NDArray[np.float64] = shifted / shifted.sum(axis=1, keepdims=True)
    return result


def unsupported_probability(
    outputs: ArrayLike, claim_tokens: Sequence[Sequence[int]], *, scorer: str = ""
) -> list[float | None]:
    """Turn one logit per token into the probability that the least supported words of a claim are unsupported.

    It is the mean over the four tokens with the highest probability: one wrong word is enough to make a claim wrong, a
    name or a number has several tokens, and a single token in doubt is often only an unusual word.

    Args:
        outputs: Logits, shape ``(pairs, tokens)``.
        claim_tokens: Per pair the positions of the claim's tokens, special tokens left out.
        scorer: ``model_id`` for the error message.

    Returns:
        One probability per pair; ``None`` for a claim without tokens.

    Raises:
        ScoringError: If the shape is another, or a value that is used is NaN or infinite.

    Example:
        >>> unsupported_probability([[9.0, 0.0, 40.0, -40.0, 40.0, 0.0]], [[1, 2, 3, 4, 5]])
        [0.75]
    """
    import numpy as np

    name = scorer or "the model"
    logits = np.asarray(outputs, dtype=np.float64)
    rows, columns = len(claim_tokens), max((max(own, default=-1) for own in claim_tokens), default=-1) + 1
    if logits.ndim != 2 or logits.shape[0] != rows or logits.shape[1] < columns:
        raise ScoringError(f"{name} returned shape {logits.shape} for the words of {rows} pairs", scorer=scorer)
    found: list[float | None] = []
    # In plain Python: right after a forward pass every call into numpy is cold, and costs more than all these numbers.
    for row, own in zip(logits.tolist(), claim_tokens, strict=True):
        values = [row[at] for at in own]
        highest = sorted(values)[-_LEAST_SUPPORTED:]
        if any(map(math.isnan, values)) or not all(map(math.isfinite, highest)):
            raise ScoringError(f"{name} returned NaN or infinity for words", scorer=scorer)
        found.append(sum(map(_logistic, highest)) / len(highest) if highest else None)
    return found


def probability(value: object, *, what: str = "entailment", scorer: str = "") -> float:
    """Check that a value is a probability.

    Args:
        value: What a model or user code returned.
        what: Its name in the error message.
        scorer: ``model_id`` for the error message.

    Returns:
        The value as a plain ``float``.

    Raises:
        ScoringError: If it is not a finite number in [0, 1]; a ``bool`` is a verdict and not a probability.
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ScoringError(
            f"{scorer or 'the scorer'} returned {type(value).__name__} instead of a number as {what}", scorer=scorer
        )
    number = float(value)
    if not math.isfinite(number) or not 0.0 <= number <= 1.0:
        raise ScoringError(f"{scorer or 'the scorer'} returned {what} {number!r}, outside [0, 1]", scorer=scorer)
    return number


def _logistic(value: float) -> float:
    tail = math.exp(-abs(value))  # as in _sigmoid
    return (1.0 if value >= 0 else tail) / (1.0 + tail)


def _sigmoid(values: NDArray[np.float64]) -> NDArray[np.float64]:
    import numpy as np

    tail = np.exp(-np.abs(values))  # of a non-positive number only, so that large logits do not overflow
    result: NDArray[np.float64] = np.where(values >= 0, 1.0, tail) / (1.0 + tail)
    return result


def _declared(values: NDArray[np.float64], activation: Activation, scorer: str) -> NDArray[np.float64]:
    off = bool((values < 0.0).any() or (values > 1.0).any())
    if activation == "softmax" and not off:
        off = bool((abs(values.sum(axis=1) - 1.0) > 1e-2).any())  # half precision is good for two digits
    if off:
        raise ScoringError(
            f"{scorer or 'the model'} is declared to return {activation} probabilities but returned other values",
            scorer=scorer,
        )
    return values
