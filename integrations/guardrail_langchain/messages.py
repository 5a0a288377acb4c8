"""Messages of one answer: read its text, keep the chunks of each attempt apart, build what the reader gets.

Adding chunks of two attempts would add their token counts and join their metadata (``"m" + "m"``), so chunks are only
ever added to chunks of the same attempt, and the message of a run is made from the attempt that was delivered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import add_ai_message_chunks

from guardrail import Attempt, InputError, Outcome, OutcomeStatus

METADATA_KEY = "guardrail"


def text_of(value: Any) -> str:
    """The text of a string, a message or a list of content blocks.

    Args:
        value: A ``str``, any message or message chunk, or a list of strings and content blocks. Blocks that are not
            of type ``"text"`` (reasoning, tool calls, images) have no text of the answer.

    Returns:
        The text, unchanged.

    Raises:
        InputError: If the value is of another type, because what cannot be read cannot be checked.

    Example:
        >>> text_of(AIMessage(content=[{"type": "text", "text": "It opens "}, {"type": "text", "text": "at ten."}]))
        'It opens at ten.'
    """
    if isinstance(value, str):
        return str(value)
    if isinstance(value, BaseMessage):
        return text_of(value.content)
    if isinstance(value, (list, tuple)):
        return "".join(_block_text(block) for block in value)
    raise InputError(
        f"cannot read the text of a {type(value).__name__}: pass a str, a message, or a list of content blocks"
    )


def _block_text(block: Any) -> str:
    if isinstance(block, str):
        return block
    if not isinstance(block, Mapping):
        raise InputError(f"a content block must be a str or a mapping, not {type(block).__name__}")
    text = block.get("text") if _is_text(block) else ""
    if not isinstance(text, str):
        raise InputError("a content block of type 'text' has no text: it needs the key 'text' with a str")
    return text


def _is_text(block: Any) -> bool:
    return isinstance(block, str) or block.get("type", "text") in ("text", "output_text")


class AttemptMessages:
    """The message chunks of one attempt.

    Example:
        >>> attempt = AttemptMessages()
        >>> attempt.add(AIMessageChunk(content="At ", id="m1"))
        >>> attempt.add(AIMessageChunk(content="ten.", id="m1"))
        >>> attempt.message().content
        'At ten.'
    """

    def __init__(self) -> None:
        self._chunks: list[AIMessageChunk] = []

    def add(self, chunk: AIMessageChunk | AIMessage) -> None:
        """Keep the next chunk, or a whole message."""
        self._chunks.append(chunk if isinstance(chunk, AIMessageChunk) else _as_chunk(chunk))

    @property
    def id(self) -> str | None:
        """Id of the first chunk that has one."""
        return next((chunk.id for chunk in self._chunks if chunk.id), None)

    def message(self) -> AIMessage:
        """All chunks as one message; an empty message if there were none."""
        if not self._chunks:
            return AIMessage(content="")
        end = AIMessageChunk(content="", chunk_position="last")  # parses tool calls that came in pieces
        return _as_message(add_ai_message_chunks(self._chunks[0], *self._chunks[1:], end))


def _as_chunk(message: AIMessage) -> AIMessageChunk:
    fields = {name: value for name, value in message.__dict__.items() if name != "type"}
    return AIMessageChunk(**fields)


def _as_message(chunk: AIMessageChunk) -> AIMessage:
    left_out = ("type", "tool_call_chunks", "chunk_position")
    return AIMessage(**{name: value for name, value in chunk.__dict__.items() if name not in left_out})


def outcome_metadata(outcome: Outcome) -> dict[str, Any]:
    """What a message says about its run, as plain values that a checkpoint can store.

    Args:
        outcome: How the run ended.

    Returns:
        ``run_id``, ``status``, ``reason``, ``attempts`` (how many), ``delivered_attempt``, ``worst_delta_r`` of the
        delivered attempt, ``policy``, ``scorer``, ``citations`` (per claim of a delivered answer that cites: numbers,
        passage ids and what became of them) and ``usage`` (token counts summed over all attempts); never a character
        of a rejected attempt.
    """
    delivered = _delivered(outcome)
    usage: dict[str, int] = {}
    for attempt in outcome.attempts:
        for name, count in attempt.usage.items():
            usage[name] = usage.get(name, 0) + count
    return {
        "run_id": outcome.run_id,
        "status": outcome.status.value,
        "reason": outcome.reason,
        "attempts": len(outcome.attempts),
        "delivered_attempt": outcome.delivered_attempt,
        "worst_delta_r": None if delivered is None else delivered.worst_delta_r,
        "policy": outcome.policy,
        "scorer": outcome.scorer,
        "citations": _citations(outcome),
        "usage": usage,
    }


def _citations(outcome: Outcome) -> list[dict[str, Any]]:
    """In the order of the text; an answer without a single mark has none, and none are missing."""
    found = [citation for verdict in outcome.verdicts for citation in verdict.citations]
    if all(citation.number is None for citation in found):
        return []
    return [
        {"status": c.status.value, "number": c.number, "passage_id": c.passage_id, "right": list(c.right)}
        for c in found
    ]


def _delivered(outcome: Outcome) -> Attempt | None:
    return next((a for a in outcome.attempts if a.number == outcome.delivered_attempt), None)


def accepted_message(outcome: Outcome, attempts: Sequence[AttemptMessages]) -> AIMessage:
    """The message that the reader gets.

    Args:
        outcome: How the run ended.
        attempts: The chunks of every attempt, in order.

    Returns:
        The text of the outcome with everything else (id, tool calls, usage, response metadata, other content blocks)
        of the attempt that was delivered, and ``response_metadata["guardrail"]``; a refusal message if the run was
        refused.
    """
    if outcome.status is OutcomeStatus.REFUSED:
        return refusal_message(outcome)
    number = outcome.delivered_attempt
    message = AIMessage(content="") if number is None else attempts[number - 1].message()
    content = message.content if text_of(message) == outcome.text else _with_text(message.content, outcome.text)
    metadata = {**message.response_metadata, METADATA_KEY: outcome_metadata(outcome)}
    return message.model_copy(update={"content": content, "response_metadata": metadata})


def _with_text(content: str | list[Any], text: str) -> str | list[Any]:
    """Other text in the same place: where the first text block was."""
    if isinstance(content, str):
        return text
    before: list[Any] = []
    after: list[Any] = []
    seen = False
    for block in content:
        if _is_text(block):
            seen = True
        else:
            (after if seen else before).append(block)
    return [*before, {"type": "text", "text": text}, *after]


def refusal_message(outcome: Outcome) -> AIMessage:
    """A refusal as LangChain knows it.

    Args:
        outcome: The outcome of a refused run.

    Returns:
        A message whose content is the text the reader got, for everything that reads text, followed by a block of
        type ``"refusal"`` with the guard's own words.
    """
    return AIMessage(
        content=[{"type": "text", "text": outcome.text}, _refusal_block(outcome)],
        response_metadata={METADATA_KEY: outcome_metadata(outcome)},
    )


def _refusal_block(outcome: Outcome) -> dict[str, Any]:
    """After a partial release only the end of the text is the refusal."""
    own = [outcome.text[r.start : r.end] for r in outcome.receipt if r.reason == "refusal" and r.attempt == 0]
    return {"type": "refusal", "refusal": "".join(own).strip() or outcome.text}


def closing_chunk(outcome: Outcome, attempts: Sequence[AttemptMessages], *, id: str | None = None) -> AIMessageChunk:
    """The last chunk of a stream whose earlier chunks were the released text.

    Args:
        outcome: How the run ended.
        attempts: The chunks of every attempt, in order.
        id: Id of the chunks that were sent; by default the id of the delivered attempt.

    Returns:
        What :func:`accepted_message` has beside the text, with ``chunk_position="last"``: added to the text chunks it
        gives the same message.
    """
    message = accepted_message(outcome, attempts)
    content: str | list[str | dict[str, Any]] = ""
    if isinstance(message.content, list):
        content = list(_without_text(message.content)) or ""
    fields = {name: value for name, value in message.__dict__.items() if name not in ("type", "content", "id")}
    return AIMessageChunk(content=content, id=id or message.id, chunk_position="last", **fields)


def _without_text(blocks: Iterable[Any]) -> Iterable[Any]:
    return (block for block in blocks if not _is_text(block))
