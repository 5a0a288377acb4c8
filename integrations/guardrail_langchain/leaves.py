"""Structured answers as text that can be checked: every string and number of a JSON value is a claim of its own."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from langchain_core.messages import AIMessage

from guardrail_langchain.messages import text_of

_WORD_BREAK = re.compile(r"[_\-\s]+|(?<=[a-z\d])(?=[A-Z])")


def leaf_text(value: Any) -> str:
    """The values of a JSON value, each in a paragraph, named by the keys that lead to it.

    Args:
        value: Mappings, lists, strings, numbers, booleans and ``None``; the last two have no text to check.

    Returns:
        A text to check; the keys themselves are no claims.

    Example:
        >>> print(leaf_text({"cardPrice": 12, "hours": {"on_sundays": "closed"}}))
        card price: 12
        <BLANKLINE>
        hours, on sundays: closed
    """
    return "\n\n".join(_leaves(value, ()))


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(item, (*path, " ".join(_WORD_BREAK.split(str(key))).strip().lower()))
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves(item, path)
    elif isinstance(value, (str, int, float)) and not isinstance(value, bool) and str(value).strip():
        yield f"{', '.join(path)}: {value}" if path else str(value)


def structured_value(message: AIMessage) -> Any:
    """The structured answer in a message.

    Args:
        message: A message that calls the tool which stands for the structure, or has JSON as its text.

    Returns:
        The value; ``None`` if there is none.
    """
    if message.tool_calls:
        return [call["args"] for call in message.tool_calls]
    try:
        value = json.loads(text_of(message))
    except ValueError:
        return None
    return value if isinstance(value, (dict, list)) else None
