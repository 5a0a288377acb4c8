"""Which field of a row is what, and a row as an :class:`Item`."""

from __future__ import annotations

import ast
import io
import json
import math
import tokenize
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from guardrail.context import as_passages
from guardrail.errors import ConfigurationError, InputError
from guardrail.evaluation.datasets.items.item import Item
from guardrail.evaluation.datasets.items.rows import Row
from guardrail.text.surrogates import repair_surrogates
from guardrail.types import Passage

FIELDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "id": ("id",),
        "question": ("question", "query", "user_input", "input"),
        "context": ("context", "contexts", "retrieved_contexts", "retrieval_context", "documents", "passages"),
        "answer": ("answer", "response", "claim", "actual_output"),
        "label": ("label",),
        "detail": ("detail",),
    }
)
"""The names under which each part of an item is looked for: ours, and those of ragas, DeepEval and LangChain."""

# A column of numbers with gaps has no whole ones.
_LABELS = {"1": True, "1.0": True, "true": True, "0": False, "0.0": False, "false": False}
_CONTENT = (tokenize.STRING, tokenize.NAME, tokenize.NUMBER, tokenize.OP)
_NAMES = ("None", "True", "False")
_LAYOUT = (tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldNames:
    """Which field holds what.

    Args:
        given: Part of an item (a key of :data:`FIELDS`) to name of the field; the others go by :data:`FIELDS`.

    Raises:
        ConfigurationError: If there is no such part.
    """

    given: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for part, name in self.given.items():
            if part not in FIELDS:
                raise ConfigurationError(f"an item has no {part!r}; fields can be named for {', '.join(FIELDS)}")
            if not isinstance(name, str) or not name:
                raise ConfigurationError(f"the name of the field for {part} must be a text, not {name!r}")

    @property
    def all(self) -> set[str]:
        """Every name that is looked for."""
        return {name for part in FIELDS for name in self.names(part)}

    def names(self, part: str) -> tuple[str, ...]:
        """The names under which a part is looked for."""
        return (self.given[part],) if part in self.given else FIELDS[part]

    def find(self, row: Row, part: str) -> Any:
        """The value of a part; ``None`` if the row does not have it.

        Raises:
            InputError: If two fields of the row could be meant.
        """
        found = [name for name in self.names(part) if not _missing(row.values.get(name))]
        if len(found) > 1:
            raise InputError(
                f"{row.where}: {' and '.join(found)} could each be the {part}; "
                f"say which with --field {part}=NAME, in Python fields={{{part!r}: NAME}}"
            )
        return row.values[found[0]] if found else None


def item_of(row: Row, names: FieldNames) -> Item:
    """A row as an item.

    Raises:
        InputError: If a value is of a type that cannot be used; the message names file and place.
    """
    answer = answer_of(row, names)
    return Item(
        id=id_of(row, names) or str(row.number),
        question=_text(row, names, "question") or "",
        context=_context(row, names),
        answer=answer or "",
        answered=answer is not None,
        label=_label(row, names),
        detail=_detail(row, names),
    )


def id_of(row: Row, names: FieldNames) -> str | None:
    """The identifier; ``None`` if the row has none.

    Raises:
        InputError: If it is neither a text nor a whole number.
    """
    value = names.find(row, "id")
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, (str, int, type(None))):
        raise InputError(f"{row.where}: the id must be a text or a whole number, not {type(value).__name__}")
    return None if value in (None, "") else repair_surrogates(str(value))


def answer_of(row: Row, names: FieldNames) -> str | None:
    """The answer; ``None`` if the row has none.

    Raises:
        InputError: If it is not a text.
    """
    return _text(row, names, "answer")


def _text(row: Row, names: FieldNames, part: str) -> str | None:
    value = names.find(row, part)
    if value is None:
        return None
    if not isinstance(value, str):
        raise InputError(f"{row.where}: the {part} must be a text, not {type(value).__name__}")
    return repair_surrogates(value)


def _label(row: Row, names: FieldNames) -> bool | None:
    value = names.find(row, "label")
    if value is None:
        return None
    label = _LABELS.get(str(value).strip().lower())
    if label is None:
        raise InputError(f"{row.where}: the label must be 1 (fully supported) or 0, or missing")
    return label


def _context(row: Row, names: FieldNames) -> tuple[Passage, ...]:
    value = names.find(row, "context")
    if row.flat and isinstance(value, str):
        value = _passages_in(value)
    try:
        return as_passages(value)[0]
    except InputError as error:
        raise InputError(
            f"{row.where}: the context must be a text, or a list of texts or of objects with id and text ({error})"
        ) from error


def _detail(row: Row, names: FieldNames) -> Mapping[str, Any]:
    value = names.find(row, "detail")
    if row.flat and isinstance(value, str):
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    return value if isinstance(value, dict) else {}


def _passages_in(text: str) -> Any:
    """The list or the passage that a cell holds, as JSON, Python or numpy writes it; the text itself if it is none."""
    bare = text.strip()
    if bare[:1] + bare[-1:] not in ("[]", "{}"):
        return text
    for read in (json.loads, _python):
        try:
            found = read(bare)
        except (ValueError, SyntaxError, MemoryError, RecursionError, tokenize.TokenError):
            continue
        if all(map(_is_passage, found if isinstance(found, list) else [found])):
            return found
    return text


def _is_passage(part: Any) -> bool:
    """Whether it is one; a list of anything else is a text that happens to be JSON, such as records."""
    if isinstance(part, dict):
        return any(name in part for name in ("text", "page_content", "content"))
    return part is None or isinstance(part, str)


def _python(text: str) -> Any:
    """A literal, with a comma where numpy leaves it out: between two texts or objects that stand beside each other."""
    parts: list[str] = []
    ended = False  # what stands before is a whole text or object
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in _LAYOUT:
            continue
        if token.type not in _CONTENT or (token.type == tokenize.NAME and token.string not in _NAMES):
            raise ValueError("is no literal")
        is_text = token.type == tokenize.STRING
        if ended and (is_text or token.string == "{"):
            parts.append(",")
        parts.append(token.string)
        ended = is_text or token.string == "}"
    return ast.literal_eval(" ".join(parts))


def _missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))
