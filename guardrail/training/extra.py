"""Whether everything is installed that a training needs."""

from __future__ import annotations

from guardrail.errors import MissingExtraError


def require_extra(feature: str) -> None:
    """See that the extra ``train`` is installed, before files are read and time is spent.

    Args:
        feature: What needs it, for the message.

    Raises:
        MissingExtraError: If a library is missing.

    Example:
        >>> require_extra("guardrail train")
    """
    try:
        import onnx  # noqa: F401
        import tokenizers  # noqa: F401
        import torch  # noqa: F401
        import transformers  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(feature, "train") from error
