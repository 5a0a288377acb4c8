"""The shapes of generator items: which text is answer text, what else they carry, and what is refused."""

from __future__ import annotations

from types import SimpleNamespace as Obj
from typing import Any

import pytest

from guardrail.chunks import ChunkReader
from guardrail.errors import GenerationTypeError
from guardrail.types import Chunk

TEXT = "Entry is free."


def read(item: Any) -> Chunk:
    chunk = ChunkReader(attempt=1).read(item)
    assert chunk.raw is item
    return chunk


def as_object(value: Any) -> Any:
    """The same item as SDKs give it: objects with attributes instead of mappings."""
    if isinstance(value, dict):
        return Obj(**{key: as_object(inner) for key, inner in value.items()})
    return [as_object(inner) for inner in value] if isinstance(value, list) else value


def choice(index: int | None = 0, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": index, **fields}]}


# --- answer text ----------------------------------------------------------------------------------------------

READABLE: dict[str, Any] = {
    "chat delta": choice(delta={"content": TEXT}),
    "chat message": choice(message={"content": TEXT}),
    "chat message of parts": choice(message={"content": [{"type": "text", "text": TEXT}]}),
    "chat delta, index unknown": choice(index=None, delta={"content": TEXT}),
    "chat delta, no index": {"choices": [{"delta": {"content": TEXT}}]},
    "legacy completion": choice(text=TEXT),
    "chat refusal": choice(delta={"content": None, "refusal": TEXT}),
    "chat refusal beside empty content": choice(delta={"content": "", "refusal": TEXT}),
    "Responses delta": {"type": "response.output_text.delta", "delta": TEXT, "sequence_number": 1},
    "Responses refusal": {"type": "response.refusal.delta", "delta": TEXT},
    "Anthropic delta": {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": TEXT}},
    "content": {"content": TEXT},
    "text": {"text": TEXT},
    "text block": {"type": "text", "text": TEXT},
    "blocks": {"content": [{"type": "text", "text": "Entry "}, {"type": "output_text", "text": "is free."}]},
    "Anthropic message": {"type": "message", "role": "assistant", "content": [{"type": "text", "text": TEXT}]},
}
MAPPING_BLOCKS = ("chat message of parts", "blocks", "Anthropic message")  # blocks stay mappings inside objects


@pytest.mark.parametrize("name", READABLE)
def test_text_is_found_in_a_mapping(name: str) -> None:
    chunk = read(READABLE[name])
    assert (chunk.text, chunk.rides_along) == (TEXT, True)


@pytest.mark.parametrize("name", [name for name in READABLE if name not in MAPPING_BLOCKS])
def test_text_is_found_in_an_object(name: str) -> None:
    chunk = read(as_object(READABLE[name]))
    assert (chunk.text, chunk.rides_along) == (TEXT, True)


def test_text_is_found_in_plain_values() -> None:
    assert (read(TEXT).text, read(TEXT).rides_along) == (TEXT, False)
    assert (read(None).text, read("").text) == ("", "")
    assert read(["Entry ", {"type": "text", "text": "is free."}]).text == TEXT
    assert read(Obj(content=[{"type": "text", "text": TEXT}])).text == TEXT
    assert read(Obj(type="AIMessageChunk", content=TEXT)).text == TEXT


def test_a_text_of_a_subclass_is_read_as_plain_text() -> None:
    class Token(str):
        logprob = -0.1

    assert type(read(Token(TEXT)).text) is str


# --- what repeats, accompanies or precedes the answer ---------------------------------------------------------

WITHOUT_TEXT: dict[str, Any] = {
    "Responses: the text again": {"type": "response.output_text.done", "text": TEXT},
    "Responses: part": {"type": "response.content_part.done", "part": {"type": "output_text", "text": TEXT}},
    "Responses: begin": {"type": "response.created", "response": {"usage": None}},
    "Responses: end": {"type": "response.completed", "response": {"usage": None, "output_text": TEXT}},
    "Responses: reasoning": {"type": "response.reasoning_summary_text.delta", "delta": TEXT},
    "Responses: arguments": {"type": "response.function_call_arguments.delta", "delta": "{}"},
    "Anthropic: begin": {"type": "message_start", "message": {"content": [], "usage": None}},
    "Anthropic: end": {"type": "message_stop"},
    "Anthropic: stop reason": {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
    "Anthropic: thinking": {"type": "content_block_delta", "delta": {"type": "thinking_delta", "thinking": TEXT}},
    "Anthropic: arguments": {"type": "content_block_delta", "delta": {"type": "input_json_delta", "partial_json": "{"}},
    "Anthropic: block": {"type": "content_block_stop", "index": 0},
    "Anthropic: ping": {"type": "ping"},
    "chat reasoning": choice(delta={"content": None, "reasoning_content": TEXT}),
    "chat role": choice(delta={"role": "assistant", "content": ""}),
    "chat end": choice(delta={}, finish_reason="stop"),
    "chat usage": {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 5}},
    "usage alone": {"usage": {"input_tokens": 3}},
    "tool calls": {"content": None, "tool_calls": [{"id": "1"}]},
}


@pytest.mark.parametrize("name", WITHOUT_TEXT)
def test_what_is_not_the_answer_has_no_text_and_rides_along(name: str) -> None:
    for item in (WITHOUT_TEXT[name], as_object(WITHOUT_TEXT[name])):
        if name in ("usage alone", "tool calls") and not isinstance(item, dict):
            continue  # an object of our own making, of no known kind
        chunk = read(item)
        assert (chunk.text, chunk.rides_along) == ("", True)


@pytest.mark.parametrize("kind", ["thinking", "reasoning", "redacted_thinking"])
def test_reasoning_blocks_are_not_text(kind: str) -> None:
    blocks = [{"type": kind, kind: TEXT, "text": "Entry costs 90 euro."}, {"type": "text", "text": TEXT}]
    assert read(blocks).text == TEXT
    assert read({"content": blocks}).text == TEXT


def test_blocks_without_text_are_passed_over() -> None:
    image = {"type": "image_url", "image_url": {"url": "https://a.example"}}
    assert read([image, {"type": "text", "text": TEXT}, {"type": "tool_use", "id": "1", "input": {}}]).text == TEXT


# --- refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "item",
    [
        choice(index=1, delta={"content": TEXT}),
        {"choices": [{"index": 0, "delta": {"content": TEXT}}, {"index": 1, "delta": {"content": TEXT}}]},
        as_object(choice(index=2, message={"content": TEXT})),
    ],
)
def test_several_answers_at_once_are_refused(item: Any) -> None:
    with pytest.raises(GenerationTypeError, match="n=1"):
        read(item)


@pytest.mark.parametrize(
    "item",
    [
        [{"type": "comment", "text": TEXT}],
        {"content": [{"type": "citation", "text": TEXT}]},
        {"type": "someone.elses.delta", "delta": TEXT},
        {"type": "response.output_text.delta", "delta": {"text": TEXT}},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": None}},
        [{"type": "text", "text": 7}],
        [{"text": TEXT}],
        [["Entry", "is free."]],
        [7],
        {"answer": TEXT},
        choice(delta={"content": 7}),
        choice(delta={"content": {"text": TEXT}}),
        Obj(output_text=TEXT, content=None),
        {"text": 7},
        b"Entry is free.",
    ],
)
def test_text_that_cannot_be_read_is_refused_and_never_passed_over(item: Any) -> None:
    with pytest.raises(GenerationTypeError) as caught:
        read(item)
    assert TEXT not in str(caught.value)
    assert caught.value.attempt == 1


# --- tool calls and usage -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("item", "calls"),
    [
        ({"content": "", "tool_calls": [{"id": "1"}]}, True),
        ({"content": "", "tool_calls": []}, False),
        (choice(delta={"content": None, "tool_calls": [{"id": "1"}]}), True),
        (as_object(choice(message={"content": None, "tool_calls": [{"id": "1"}]})), True),
        (Obj(content="", tool_call_chunks=[{"id": "1"}]), True),
        ([{"type": "tool_use", "id": "1"}], True),
        ({"type": "response.function_call_arguments.delta", "delta": "{"}, True),
        ({"text": TEXT}, False),
        (TEXT, False),
    ],
)
def test_tool_calls_are_recognised(item: Any, calls: bool) -> None:
    assert read(item).tool_calls is calls


def test_usage_is_read_under_one_name_per_count() -> None:
    expected = {"input_tokens": 3, "output_tokens": 4}
    for item in (
        {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}},
        {"usage": {"input_tokens": 3, "output_tokens": 4}},
        {"type": "response.completed", "response": {"usage": {"input_tokens": 3, "output_tokens": 4}}},
        {"type": "message_delta", "delta": {}, "usage": {"input_tokens": 3, "output_tokens": 4}},
    ):
        assert read(item).usage == expected
        if "type" in item or "choices" in item:
            assert read(as_object(item)).usage == expected


def test_totals_replace_each_other_and_additions_add_up() -> None:
    totals = ChunkReader(attempt=1)
    for count in (1, 5):
        seen = totals.read({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": count}}).usage
    assert seen == {"input_tokens": 3, "output_tokens": 5}
    added = ChunkReader(attempt=1)
    for count in (1, 5):
        seen = added.read(Obj(content="", usage_metadata={"output_tokens": count})).usage
    assert seen == {"output_tokens": 6}
    assert added.read(TEXT).usage is None


@pytest.mark.parametrize("usage", [None, {}, {"input_tokens": True}, {"input_tokens": "3"}, "3"])
def test_what_is_no_count_is_no_usage(usage: Any) -> None:
    assert read({"text": TEXT, "usage": usage}).usage is None
