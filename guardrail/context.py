"""What callers hand in as question and context, turned into values, with clear errors."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from numbers import Real
from typing import Any

from guardrail.errors import InputError
from guardrail.text.surrogates import repair_surrogates
from guardrail.types import ContextState, Passage


def as_question(question: object) -> str:
    """Validate a question.

    Raises:
        InputError: If it is not a text, or has no visible character.
    """
    if not isinstance(question, str):
        raise InputError(f"the question must be a str, not {type(question).__name__}")
    if not question.strip():
        raise InputError("the question is empty: pass what the user asked")
    return repair_surrogates(question)


def as_passages(context: object) -> tuple[tuple[Passage, ...], ContextState]:
    """Turn what a retriever returned into passages.

    Args:
        context: ``None`` (the caller has no retrieval), one text, or an iterable of texts, :class:`Passage` values,
            mappings with ``text``/``page_content``/``content``, or objects with one of these attributes
            (LangChain documents). Items without a letter or digit are left out.

    Returns:
        The passages, with unique ids, and whether there is something to check against.

    Raises:
        InputError: If an item is of another type; the message names its index.

    Example:
        >>> passages, state = as_passages(["The desk opens at ten.", "  "])
        >>> [p.id for p in passages], state.value
        (['1'], 'given')
        >>> as_passages(None)[1].value, as_passages([])[1].value
        ('absent', 'empty')
    """
    if context is None:
        return (), ContextState.ABSENT
    items: Iterable[object]
    if isinstance(context, (str, Passage, Mapping)) or _attribute_text(context) is not None:
        items = [context]
    elif isinstance(context, Iterable) and not isinstance(context, (bytes, bytearray)):
        items = context
    else:
        raise InputError(f"the context must be a list of passages, not {type(context).__name__}")
    passages: list[Passage] = []
    taken: set[str] = set()
    suffixes: dict[str, int] = {}
    for index, item in enumerate(items):
        passage = _as_passage(item, index)
        if passage is None:
            continue
        unique = passage.id
        while unique in taken:
            suffixes[passage.id] = suffixes.get(passage.id, 1) + 1
            unique = f"{passage.id}~{suffixes[passage.id]}"
        taken.add(unique)
        passages.append(passage if unique == passage.id else replace(passage, id=unique))
    return tuple(passages), ContextState.GIVEN if passages else ContextState.EMPTY


def _attribute_text(item: object) -> object:
    for name in ("page_content", "text", "content"):
        value = getattr(item, name, None)
        if isinstance(value, str):
            return value
    return None


def _as_passage(item: object, index: int) -> Passage | None:
    default_id = str(index + 1)
    if item is None:
        return None
    if isinstance(item, Passage):
        if not isinstance(item.text, str):
            raise InputError(f"passage {index} has a text of type {type(item.text).__name__}, not str")
        source = item if item.source is None else item.source
        return replace(item, text=repair_surrogates(item.text), source=source) if _has_words(item.text) else None
    text: object
    identifier: object = None
    score: Any = None
    metadata: object = None
    if isinstance(item, str):
        text = item
    elif isinstance(item, Mapping):
        given = [item[k] for k in ("text", "page_content", "content") if k in item]
        text = next((value for value in given if value is not None), None if given else _MISSING)
        identifier, score, metadata = item.get("id"), item.get("score"), item.get("metadata")
    else:
        found = _attribute_text(item)
        text = _MISSING if found is None else found
        identifier, metadata = getattr(item, "id", None), getattr(item, "metadata", None)
        score = getattr(item, "score", None)
    if text is None:
        return None
    if not isinstance(text, str):
        raise InputError(
            f"context item {index} is {type(item).__name__} without a text: pass a str, a Passage, a mapping with "
            "'text', or a document with page_content"
        )
    if not _has_words(text):
        return None
    return Passage(
        id=default_id if identifier in (None, "") else str(identifier),
        text=repair_surrogates(text),
        score=float(score) if _is_score(score) else None,
        metadata=dict(metadata) if isinstance(metadata, Mapping) else {},
        source=item,
    )


_MISSING = object()


def _is_score(score: Any) -> bool:
    return isinstance(score, Real) and not isinstance(score, bool)


def _has_words(text: str) -> bool:
    return any(character.isalnum() for character in text)


def excerpt(passage: Passage, text: str, *, suffix: str) -> Passage:
    """A shorter passage cut from another, with a source of the same type.

    Args:
        passage: The passage.
        text: The excerpt.
        suffix: Appended to the id.

    Returns:
        A passage with id ``f"{passage.id}{suffix}"``.
    """
    return replace(passage, id=f"{passage.id}{suffix}", text=text, source=_source_with_text(passage.source, text))


def origin_of(passage_id: str, known: Collection[str]) -> str | None:
    """The passage that an id stands for: itself, or what :func:`excerpt` cut it from.

    Args:
        passage_id: Id of a passage that a generator was shown.
        known: Ids of the passages of a request.

    Returns:
        A known id; ``None`` if it stands for none of them.

    Example:
        >>> origin_of("a#0-12", {"a", "b"}), origin_of("b", {"a", "b"}), origin_of("c", {"a", "b"})
        ('a', 'b', None)
    """
    whole = passage_id
    while whole and whole not in known:
        whole = whole.rpartition("#")[0]
    return whole if whole in known else None


def _source_with_text(source: Any, text: str) -> Any:
    if source is None or isinstance(source, str):
        return text if isinstance(source, str) else None
    if isinstance(source, Passage):
        return replace(source, text=text)
    if isinstance(source, Mapping):
        key = next(k for k in ("text", "page_content", "content") if k in source)
        return {**source, key: text}
    name = next(n for n in ("page_content", "text", "content") if isinstance(getattr(source, n, None), str))
    copied = copy.copy(source)
    try:
        setattr(copied, name, text)
    except (AttributeError, TypeError, ValueError):  # a frozen type: hand out a Passage instead, which has .text
        return None
    return copied


def handed_back(passages: Iterable[Passage]) -> tuple[Any, ...]:
    """The passages in the type the caller handed in."""
    return tuple(p if p.source is None else p.source for p in passages)
