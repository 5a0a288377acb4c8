"""What tells two models apart. Their names do not: weights are replaced behind a path, a name or an address."""

from __future__ import annotations

import hashlib
from typing import Protocol, runtime_checkable


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
