"""Whether a claim is in a language that its judge was not trained for."""

from __future__ import annotations

from collections.abc import Collection

from guardrail.errors import ScoringError
from guardrail.text.language import language_of


def trained_languages(model: object) -> frozenset[str] | None:
    """The languages that an entailment model declares.

    Args:
        model: An entailment model. It may have an attribute ``languages``: ISO 639-1 codes, or ``None``.

    Returns:
        The codes; ``None`` if the model declares none, which stands for any language.

    Raises:
        ScoringError: If the attribute is something else.

    Example:
        >>> from guardrail.scoring.entailment import LexicalEntailment
        >>> trained_languages(LexicalEntailment()) is None
        True
    """
    declared = getattr(model, "languages", None)
    if declared is None:
        return None
    is_set = isinstance(declared, Collection) and not isinstance(declared, str) and len(declared) > 0
    if not is_set or not all(isinstance(code, str) for code in declared):
        raise ScoringError(
            f"languages of {type(model).__name__} must be a set of ISO codes such as {{'en'}}, or None, "
            f"not {declared!r}"
        )
    return frozenset(declared)


def untrained_language(model: object, claim: str, evidence: str, source: str = "") -> str | None:
    """The language of a claim, or of its evidence, if an entailment model was not trained for it.

    Args:
        model: An entailment model; see :func:`trained_languages`.
        claim: The claim.
        evidence: What it is checked against: in another language it is as strange to the model as the claim would be.
        source: The passage that the evidence is from; it tells only if claim and evidence are too short to.

    Returns:
        An ISO code; ``None`` if the model declares nothing, if nothing can be told, or if it was trained for it.

    Raises:
        ScoringError: If the model declares something that is no set of codes.
    """
    trained = trained_languages(model)
    if trained is None:
        return None
    spoken = language_of(claim)
    if spoken is not None and spoken not in trained:
        return spoken
    read = language_of(evidence)
    if spoken is None and read is None:
        read = language_of(source)
    return None if read in trained else read
