"""Texts, chunks and messages."""

from __future__ import annotations

from typing import Any

import pytest
from guardrail_langchain.messages import (
    AttemptMessages,
    accepted_message,
    closing_chunk,
    outcome_metadata,
    refusal_message,
    text_of,
)
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage

from guardrail import Attempt, InputError, Outcome, OutcomeStatus, ReceiptRange, ReceiptStatus, ReleaseMode

REASONING = {"type": "reasoning", "reasoning": "hm", "index": 0}
USAGE: Any = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}


def outcome(status: str = "accepted", text: str = "At ten.", delivered: int | None = 2, **more: Any) -> Outcome:
    attempts = tuple(Attempt(number=n, text=f"secret {n}", usage=USAGE, worst_delta_r=n / 10) for n in (1, 2))
    fields: dict[str, Any] = {"reason": "passed", "receipt": (), "policy": "balanced", "delta": 0.74}
    fields["release"] = ReleaseMode.ANSWER
    fields |= {"status": OutcomeStatus(status), "text": text, "delivered_attempt": delivered, "run_id": "r"} | more
    return Outcome(attempts=attempts, **fields)


def of(*chunks: AIMessage) -> AttemptMessages:
    attempt = AttemptMessages()
    for chunk in chunks:
        attempt.add(chunk)
    return attempt


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("At ten.", "At ten."),
        (HumanMessage("At ten."), "At ten."),
        (AIMessageChunk(content=[REASONING, {"type": "text", "text": "At "}, "ten."]), "At ten."),
        ([{"type": "output_text", "text": "At ten."}, {"type": "image", "url": "u"}], "At ten."),
        ([], ""),
    ],
)
def test_text(value: Any, text: str) -> None:
    assert text_of(value) == text


@pytest.mark.parametrize("value", [42, None, b"x", [42], [{"type": "text"}], {"text": "x"}])
def test_what_has_no_readable_text(value: Any) -> None:
    with pytest.raises(InputError):
        text_of(value)


def test_chunks_of_an_attempt_become_one_message() -> None:
    attempt = of(
        AIMessageChunk(content=[REASONING], id="lc_run--1"),
        AIMessageChunk(content=[{"type": "text", "text": "At ", "index": 1}], id="lc_run--1"),
        AIMessageChunk(content=[{"type": "text", "text": "ten.", "index": 1}], id="m1"),
        AIMessageChunk(content="", tool_call_chunks=[{"name": "f", "args": '{"a":', "id": "c1", "index": 0}]),
        AIMessageChunk(content="", tool_call_chunks=[{"name": None, "args": " 1}", "id": None, "index": 0}]),
        AIMessageChunk(content="", usage_metadata=USAGE, response_metadata={"model_name": "m"}),
    )
    message = attempt.message()
    assert type(message) is AIMessage
    assert (message.id, message.text, message.usage_metadata) == ("m1", "At ten.", USAGE)
    assert message.tool_calls == [{"name": "f", "args": {"a": 1}, "id": "c1", "type": "tool_call"}]
    assert message.response_metadata == {"model_name": "m"}
    assert message.content[0] == REASONING
    assert of(message).message() == message
    assert attempt.id == "lc_run--1"


def test_an_attempt_without_chunks() -> None:
    assert AttemptMessages().message() == AIMessage(content="")
    assert AttemptMessages().id is None


def test_metadata_holds_sums_and_no_text() -> None:
    told = outcome_metadata(outcome())
    assert told["usage"] == {"input_tokens": 2, "output_tokens": 4, "total_tokens": 6}
    assert (told["status"], told["attempts"], told["delivered_attempt"], told["worst_delta_r"]) == (
        "accepted",
        2,
        2,
        0.2,
    )
    assert "secret" not in repr(told)
    assert outcome_metadata(outcome(delivered=None))["worst_delta_r"] is None


def test_the_delivered_attempt_gives_everything_but_other_text() -> None:
    first = of(AIMessage(content="Wrong.", id="m1", response_metadata={"model_name": "m"}))
    second = of(
        AIMessage(
            content=[REASONING, {"type": "text", "text": "Ten."}, {"type": "image", "url": "u"}, "More."],
            id="m2",
            usage_metadata=USAGE,
            additional_kwargs={"k": 1},
        )
    )
    message = accepted_message(outcome(), [first, second])
    assert message.content == [REASONING, {"type": "text", "text": "At ten."}, {"type": "image", "url": "u"}]
    assert (message.id, message.usage_metadata, message.additional_kwargs) == ("m2", USAGE, {"k": 1})
    assert set(message.response_metadata) == {"guardrail"}
    same = accepted_message(outcome(text="Ten.More."), [first, second])
    assert same.content == second.message().content


def test_text_chunks_and_the_closing_chunk_add_up_to_the_message() -> None:
    attempts = [of(AIMessage(content="")), of(AIMessage(content="At ten.", id="m2", usage_metadata=USAGE))]
    total = AIMessageChunk(content="At ten.", id="m2") + closing_chunk(outcome(), attempts)
    whole = accepted_message(outcome(), attempts)
    assert (total.content, total.id, total.usage_metadata) == (whole.content, whole.id, whole.usage_metadata)
    assert total.response_metadata == whole.response_metadata
    assert total.chunk_position == "last"


def test_a_refusal_has_a_native_block_with_the_guards_own_words() -> None:
    checked = ReceiptStatus.CHECKED_BEFORE
    receipt = (
        ReceiptRange(start=0, end=8, status=checked, reason="supported", attempt=1),
        ReceiptRange(start=8, end=17, status=checked, reason="refusal", attempt=0),
    )
    refused = outcome("refused", "At ten. \n\nNo more", None, receipt=receipt)
    message = refusal_message(refused)
    assert message.text == refused.text
    assert message.content[1] == {"type": "refusal", "refusal": "No more"}
    assert accepted_message(refused, []) == message
    assert closing_chunk(refused, [], id="x").content == [message.content[1]]
