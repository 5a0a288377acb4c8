"""What tells two models apart. Their names do not: weights are replaced behind a path, a name or an address."""

from __future__ import annotations

import hashlib
from typing import Protocol, runtime_checkable

from guardrail.errors import ScoringError


@runtime_checkable
class Fingerprinted(Protocol):
    """An entailment model that can say exactly what its scores depend on."""

    def fingerprint(self) -> str:
        """Something that differs whenever scores may differ: another one for other weights, labels or calibration.

        It is called in a thread and may take its time: load the model, read its files.

        Raises:
            ModelLoadError: If the model cannot be loaded.
        """
        ...


@runtime_checkable
class Fronting(Protocol):
    """An entailment model that only stands before another, such as a cache: its scores are those of the other."""

    @property
    def behind(self) -> object:
        """The other model."""
        ...


def fingerprint_of(*models: object) -> str | None:
    """The fingerprint of a model, or of the one that it stands before; ``None`` if it has none.

    It may load the model.

    Args:
        models: An entailment model as a user has it, and as it was adapted: the first that has a fingerprint counts.

    Raises:
        ScoringError: If the fingerprint is not a text, or empty.
        ModelLoadError: If the model cannot be loaded.
    """
    for model in models:
        if isinstance(model, Fronting):
            return fingerprint_of(model.behind)
        if isinstance(model, Fingerprinted):
            return _fingerprint(model)
    return None


def _fingerprint(model: Fingerprinted) -> str:
    fingerprint: object = model.fingerprint()
    if not isinstance(fingerprint, str) or not fingerprint:
        name = str(getattr(model, "model_id", type(model).__name__))
        raise ScoringError(
            f"fingerprint() of {name} must return a str that is not empty, not {fingerprint!r}", scorer=name
        )
    return fingerprint


def identity(*parts: str | bytes) -> str:
    """A hash that is the same only for the same parts.

    Args:
        parts: Texts or bytes. Each counts with its length, so that no two lists of parts run together.

    Returns:
        32 hexadecimal digits.

    Example:
        >>> identity("a", "bc") == identity("ab", "c")
        False
    """
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()
