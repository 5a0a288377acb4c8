"""Reads the text of one generator item, whatever framework it comes from, and keeps the item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from guardrail.errors import GenerationTypeError
from guardrail.types import Chunk


class ChunkReader:
    """Turns the items of one generator call into chunks.

    Known shapes: ``str``; ``None`` (an empty chunk); OpenAI chat chunks and completions, and Responses events;
    LangChain messages and message chunks; mappings with ``text`` or ``content`` (and ``as_is``, if the text stands for
    a structured value); lists of content blocks. Everything else is an error, because text that cannot be read cannot
    be checked.

    Args:
        attempt: Number of the attempt, for errors.
    """

    def __init__(self, *, attempt: int) -> None:
        self._attempt = attempt
        self._usage: dict[str, int] = {}

    def read(self, item: Any) -> Chunk:
        """Read one item.

        Raises:
            GenerationTypeError: If the item is of an unknown shape.
        """
        if isinstance(item, str):
            return Chunk(text=str(item), raw=item)
        if item is None:
            return Chunk(text="", raw=item)
        text = self._text(item)
        return Chunk(
            text=text,
            raw=item,
            rides_along=True,
            tool_calls=_has_tool_calls(item),
            usage=self._read_usage(item),
            as_is=isinstance(item, Mapping) and item.get("as_is") is True,
        )

    def _text(self, item: Any) -> str:
        if isinstance(item, Mapping):
            return self._mapping_text(item)
        if isinstance(item, (list, tuple)):
            return self._blocks_text(item)
        if isinstance(item, (bytes, bytearray)):
            raise GenerationTypeError(
                "the generator produced bytes: decode them before they reach the guard", attempt=self._attempt
            )
        choices = getattr(item, "choices", None)
        if isinstance(choices, Sequence):
            return self._choices_text(choices)
        kind = getattr(item, "type", None)
        if _is_event(kind):
            return self._event_text(kind, item)
        for name in ("content", "text"):
            value = getattr(item, name, None)
            if isinstance(value, str):
                return str(value)
            if isinstance(value, list):
                return self._blocks_text(value)
        raise self._unknown(item)

    def _mapping_text(self, item: Mapping[str, Any]) -> str:
        if isinstance(item.get("choices"), Sequence):
            return self._choices_text(item["choices"])
        kind = item.get("type")
        if _is_event(kind):
            return self._event_text(kind, item)
        for name in ("text", "content"):
            value = item.get(name)
            if isinstance(value, str):
                return value
            if isinstance(value, list):
                return self._blocks_text(value)
        if any(name in item for name in _TEXTLESS_KEYS):
            return ""
        raise self._unknown(item)

    def _blocks_text(self, blocks: Sequence[Any]) -> str:
        parts: list[str] = []
        for block in blocks:
            if isinstance(block, str):
                parts.append(block)
            elif isinstance(block, Mapping) and isinstance(block.get("type"), str):
                text = block.get("text")
                if block["type"] in _TEXT_BLOCKS:
                    if not isinstance(text, str):
                        raise self._unknown(block)
                    parts.append(text)
                elif isinstance(text, str) and text and block["type"] not in _REASONING_BLOCKS:
                    raise self._unknown(block)
            else:
                raise self._unknown(block)
        return "".join(parts)

    def _choices_text(self, choices: Sequence[Any]) -> str:
        """OpenAI chat completions: one choice, streamed (``delta``) or whole (``message``), or legacy ``text``."""
        parts: list[str] = []
        for choice in choices:
            if _get(choice, "index", 0) not in (0, None):
                raise GenerationTypeError(
                    "the generator streams several choices at once: ask the model for n=1", attempt=self._attempt
                )
            body = _get(choice, "delta", None) or _get(choice, "message", None)
            value = _get(choice, "text", None) if body is None else _get(body, "content", None)
            if not value and body is not None:
                value = _get(body, "refusal", None) or value
            if isinstance(value, list):
                value = self._blocks_text(value)
            if value is not None:
                if not isinstance(value, str):
                    raise self._unknown(value)
                parts.append(value)
        return "".join(parts)

    def _event_text(self, kind: str, item: Any) -> str:
        """OpenAI Responses and Anthropic message events: only deltas of answer text are text, the rest repeats it."""
        delta = _get(item, "delta", None)
        if kind in ("response.output_text.delta", "response.refusal.delta"):
            if not isinstance(delta, str):
                raise self._unknown(item)
            return delta
        if kind == "content_block_delta" and _get(delta, "type", None) == "text_delta":
            text = _get(delta, "text", None)
            if not isinstance(text, str):
                raise self._unknown(item)
            return text
        return ""

    def _unknown(self, item: object) -> GenerationTypeError:
        return GenerationTypeError(
            f"the generator produced an item of type {type(item).__name__}, which holds no readable text; "
            "produce str, OpenAI or LangChain chunks, or mappings with 'text'",
            attempt=self._attempt,
        )

    def _read_usage(self, item: Any) -> Mapping[str, int] | None:
        """Token counts so far: LangChain chunks add up, OpenAI chunks report the total."""
        added = _counts(_get(item, "usage_metadata", None))
        total = _counts(_get(item, "usage", None)) or _counts(_get(_get(item, "response", None), "usage", None))
        for name, count in added.items():
            self._usage[name] = self._usage.get(name, 0) + count
        self._usage.update(total)
        return dict(self._usage) if added or total else None


_TEXTLESS_KEYS = ("usage", "usage_metadata", "finish_reason", "tool_calls")
_TEXT_BLOCKS = ("text", "output_text", "text_delta")
_REASONING_BLOCKS = ("reasoning", "thinking", "redacted_thinking", "thinking_delta", "reasoning_text", "summary_text")
_ANTHROPIC_EVENTS = (
    *("message_start", "message_delta", "message_stop", "ping"),
    *("content_block_start", "content_block_delta", "content_block_stop"),
)


def _is_event(kind: object) -> TypeGuard[str]:
    return isinstance(kind, str) and (kind.startswith("response.") or kind in _ANTHROPIC_EVENTS)


_TOOL_BLOCKS = ("tool_use", "tool_call", "tool_call_chunk", "function_call", "server_tool_call")


def _has_tool_calls(item: Any) -> bool:
    holders = [item]
    if isinstance(item, (list, tuple)):
        return any(_get(block, "type", None) in _TOOL_BLOCKS for block in item)
    choices = _get(item, "choices", None)
    if isinstance(choices, Sequence):
        holders += [_get(choice, name, None) for choice in choices for name in ("delta", "message")]
    kind = _get(item, "type", None)
    if isinstance(kind, str) and "function_call" in kind:
        return True
    return any(_get(holder, name, None) for holder in holders for name in ("tool_call_chunks", "tool_calls"))


_OPENAI_NAMES = {"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens"}


def _counts(usage: Any) -> dict[str, int]:
    if usage is None:
        return {}
    found: dict[str, int] = {}
    for name in ("input_tokens", "output_tokens", "total_tokens", *_OPENAI_NAMES):
        count = _get(usage, name, None)
        if isinstance(count, int) and not isinstance(count, bool):
            found[_OPENAI_NAMES.get(name, name)] = count
    return found


def _get(item: Any, name: str, default: Any) -> Any:
    return item.get(name, default) if isinstance(item, Mapping) else getattr(item, name, default)
