"""Chunks and generators of LangChain and of the OpenAI SDK, with the real classes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.documents import Document
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import ResponseCompletedEvent, ResponseTextDeltaEvent

from guardrail import GenerationError, GenerationTypeError, OutcomeStatus
from guardrail.events import RodeAlong
from guardrail.testing import ScriptedGenerator
from tests.streaming.helpers import HALL, LENIENT_WORDS, QUESTION, guard_for, others, quiet, told

ONE, TWO = "The old hall keeps a wooden clock near its door.", "The garden grows tall roses by the wall."
ANSWER = ONE + " " + TWO
WRONG = "The zqx cellar hides rare coins."
USAGE = {"input_tokens": 11, "output_tokens": 22, "total_tokens": 33}


class ScriptedChatModel(BaseChatModel):
    """Plays one list of chunks per call; counts how streams end."""

    scripts: list[list[AIMessageChunk]]
    seen: list[list[BaseMessage]]
    ended: list[str]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _next(self, messages: list[BaseMessage]) -> list[AIMessageChunk]:
        self.seen.append(messages)
        return self.scripts[min(len(self.seen), len(self.scripts)) - 1]

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        chunks = self._next(messages)
        whole = chunks[0]
        for chunk in chunks[1:]:
            whole = whole + chunk
        message = AIMessage(content=whole.content, id=whole.id, usage_metadata=whole.usage_metadata)
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        try:
            for chunk in self._next(messages):
                await asyncio.sleep(0)
                yield ChatGenerationChunk(message=chunk)
        finally:
            self.ended.append("closed")


def message_chunks(text: str, *, usage: bool = True) -> list[AIMessageChunk]:
    chunks = [AIMessageChunk(content=c, id="lc_run-1") for c in text.split("|")]
    last: dict[str, Any] = {"usage_metadata": USAGE} if usage else {}
    return [*chunks, AIMessageChunk(content="", id="lc_run-1", response_metadata={"model_name": "m"}, **last)]


def chat_model(*scripts: list[AIMessageChunk]) -> ScriptedChatModel:
    return ScriptedChatModel(scripts=list(scripts), seen=[], ended=[])


PROMPT = ChatPromptTemplate.from_template("Answer {question} from {context}.")


async def play(stream: Any) -> tuple[list[Any], Any]:
    events = [e async for e in stream.events()]
    return events, await stream.outcome()


@pytest.mark.parametrize("release", ["sentence", "answer", "observe"])
async def test_message_chunks_keep_everything_they_carry(release: str):
    chunks = message_chunks("The old hall keeps |a wooden clock near its door. |" + TWO)
    guard = guard_for(ONE, TWO, policy=LENIENT_WORDS.override(release=release))
    events, outcome = await play(guard.stream(ScriptedGenerator(chunks), question=QUESTION, context=[HALL]))
    assert told(events) == ANSWER == outcome.text
    rode = [e.raw for e in events if isinstance(e, RodeAlong)]
    assert [id(r) for r in rode] == [id(c) for c in chunks]
    whole = rode[0]
    for chunk in rode[1:]:
        whole = whole + chunk
    assert whole.usage_metadata == USAGE
    assert whole.response_metadata == {"model_name": "m"}
    assert outcome.attempts[0].usage["output_tokens"] == 22


@pytest.mark.parametrize("content", [ANSWER, [{"type": "text", "text": ONE + " "}, {"type": "text", "text": TWO}]])
async def test_whole_messages(content: Any):
    async def generate(question: str) -> AIMessage:
        return AIMessage(content=content, usage_metadata=USAGE, response_metadata={"finish_reason": "stop"})

    events, outcome = await play(guard_for(ONE, TWO).stream(generate, question=QUESTION, context=[HALL]))
    assert outcome.accepted
    assert told(events) == ANSWER
    (rode,) = [e.raw for e in events if isinstance(e, RodeAlong)]
    assert rode.usage_metadata == USAGE
    assert outcome.attempts[0].usage["input_tokens"] == 11


async def test_content_blocks_without_text_ride_along():
    chunks = [
        AIMessageChunk(content=[{"type": "reasoning", "reasoning": "zqx secret thoughts", "index": 0}]),
        AIMessageChunk(content=[{"type": "text", "text": ONE, "index": 1}]),
    ]
    events, outcome = await play(guard_for(ONE).stream(ScriptedGenerator(chunks), question=QUESTION, context=[HALL]))
    assert outcome.accepted
    assert outcome.text == ONE
    assert told(events) == ONE
    assert [id(e.raw) for e in events if isinstance(e, RodeAlong)] == [id(c) for c in chunks]


async def test_objects_of_rejected_text_do_not_ride_along():
    """A chunk that carries an id and failing text must not reach the reader by the side door."""
    chunks = [AIMessageChunk(content=ONE + " ", id="m"), AIMessageChunk(content=WRONG, id="m", usage_metadata=USAGE)]
    right = [AIMessageChunk(content=ONE + " " + TWO, id="n", usage_metadata=USAGE)]
    for release in ("sentence", "answer"):
        guard = guard_for(ONE, TWO, policy=LENIENT_WORDS.override(release=release))
        events, outcome = await play(guard.stream(ScriptedGenerator(chunks, right), question=QUESTION, context=[HALL]))
        assert outcome.accepted
        raws = [e.raw for e in events if isinstance(e, RodeAlong)]
        assert not any(WRONG in r.text for r in raws)
        if release == "answer":
            assert [r.id for r in raws] == ["n"]


async def test_a_chunk_whose_text_is_half_released_waits():
    """One chunk holds a good and a failing sentence: the object stays inside, whatever of its text is out."""
    chunks = [AIMessageChunk(content=ONE + " " + WRONG, id="m")]
    guard = guard_for(ONE, policy=LENIENT_WORDS.override(release="sentence", max_attempts=1))
    events, outcome = await play(guard.stream(ScriptedGenerator(chunks), question=QUESTION, context=[HALL]))
    assert outcome.status is OutcomeStatus.REFUSED
    assert not any(isinstance(e, RodeAlong) for e in events)


async def test_an_empty_chunk_after_failing_text_stays_inside():
    """Objects after the failing sentence belong to the rejected attempt."""
    chunks = [ONE + " ", {"text": "", "n": 1}, WRONG + " ", {"text": "", "n": 2}]
    guard = guard_for(ONE, policy=LENIENT_WORDS.override(release="sentence", max_attempts=1))
    events, _ = await play(guard.stream(ScriptedGenerator(chunks), question=QUESTION, context=[HALL]))
    assert [e.raw["n"] for e in events if isinstance(e, RodeAlong)] in ([], [1])


# --- runnables ------------------------------------------------------------------------------------------------


def build(kind: str, model: ScriptedChatModel) -> Any:
    chain = PROMPT | model
    if kind == "chain as generator":
        return chain
    if kind == "astream":
        return lambda question, context: chain.astream({"question": question, "context": context})
    if kind == "ainvoke":
        return lambda question, context: chain.ainvoke({"question": question, "context": context})
    if kind == "stream":
        return lambda question, context: chain.stream({"question": question, "context": context})
    return lambda question, context: chain.invoke({"question": question, "context": context})


@pytest.mark.parametrize("kind", ["chain as generator", "astream", "ainvoke", "stream", "invoke"])
async def test_chains(kind: str):
    model = chat_model(message_chunks(ONE + " |" + TWO))
    with quiet():
        stream = guard_for(ONE, TWO).stream(
            build(kind, model), question=QUESTION, context=[Document(page_content=HALL)]
        )
        events, outcome = await play(stream)
    assert outcome.accepted
    assert told(events) == ANSWER
    assert len(model.seen) == 1
    assert QUESTION in str(model.seen[0][0].content)
    assert "wooden clock" in str(model.seen[0][0].content)
    assert outcome.attempts[0].usage["total_tokens"] == 33
    assert others() == set()


async def test_a_chain_is_regenerated_with_another_context():
    model = chat_model(message_chunks(WRONG), message_chunks(ANSWER))
    documents = [Document(page_content=ONE), Document(page_content=TWO)]
    outcome = await guard_for(ONE, TWO).run(PROMPT | model, question=QUESTION, context=documents)
    assert outcome.accepted
    assert outcome.text == ANSWER
    first, second = (str(messages[0].content) for messages in model.seen)
    assert first != second


async def test_closing_early_closes_the_model():
    model = chat_model(message_chunks(ONE + " |" + TWO + " |" + ONE + " |" + TWO))
    with quiet():
        stream = guard_for(ONE, TWO).stream(model, question=QUESTION, context=[HALL])
        async for _ in stream:
            break
        await stream.aclose()
        assert model.ended == ["closed"]
        assert others() == set()


async def test_a_chat_model_as_generator_gets_the_question():
    model = chat_model(message_chunks(ONE))
    outcome = await guard_for(ONE).run(model, question=QUESTION, context=[HALL])
    assert outcome.accepted
    assert QUESTION in str(model.seen[0][0].content)


async def test_a_regeneration_is_told_what_failed():
    """A model that is handed over without a prompt, and a chain whose prompt asks for it."""
    model = chat_model(message_chunks(WRONG), message_chunks(ONE))
    assert (await guard_for(ONE).run(model, question=QUESTION, context=[HALL])).accepted
    first, second = (str(messages[0].content) for messages in model.seen)
    assert WRONG not in first
    assert WRONG in second

    model = chat_model(message_chunks(WRONG), message_chunks(ONE))
    prompt = ChatPromptTemplate.from_template("{question} {context} attempt {attempt}, not: {failed_claims}")
    assert (await guard_for(ONE).run(prompt | model, question=QUESTION, context=[HALL])).accepted
    first, second = (str(messages[0].content) for messages in model.seen)
    assert "attempt 1, not: []" in first
    assert "attempt 2" in second
    assert WRONG in second


async def test_a_runnable_that_raises():
    def boom(given: Any) -> str:
        raise OSError("gone")

    with pytest.raises(GenerationError) as caught:
        await guard_for(ONE).run(RunnableLambda(boom), question=QUESTION, context=[HALL])
    assert isinstance(caught.value.__cause__, OSError)


async def test_structured_output_is_not_text():
    def structured(given: Any) -> Any:
        return 42

    with pytest.raises(GenerationTypeError):
        await guard_for(ONE).run(RunnableLambda(structured), question=QUESTION, context=[HALL])


# --- OpenAI ---------------------------------------------------------------------------------------------------


def completion_chunk(delta: dict[str, Any], *, index: int = 0, **fields: Any) -> ChatCompletionChunk:
    return ChatCompletionChunk.model_validate(
        {
            "id": "c1",
            "created": 1,
            "model": "m",
            "object": "chat.completion.chunk",
            "choices": [{"index": index, "delta": delta, "finish_reason": fields.pop("finish_reason", None)}],
            **fields,
        }
    )


def usage_chunk() -> ChatCompletionChunk:
    return ChatCompletionChunk.model_validate(
        {
            "id": "c1",
            "created": 1,
            "model": "m",
            "object": "chat.completion.chunk",
            "choices": [],
            "usage": {"prompt_tokens": 11, "completion_tokens": 22, "total_tokens": 33},
        }
    )


def completion_stream() -> list[ChatCompletionChunk]:
    return [
        completion_chunk({"role": "assistant", "content": ""}),
        completion_chunk({"content": ONE[:9]}),
        completion_chunk({"content": ONE[9:] + " "}),
        completion_chunk({"content": TWO}),
        completion_chunk({}, finish_reason="stop"),
        usage_chunk(),
    ]


@pytest.mark.parametrize("release", ["sentence", "answer", "observe"])
@pytest.mark.parametrize("synchronous", [False, True])
async def test_chat_completion_chunks(release: str, synchronous: bool):
    chunks = completion_stream()
    guard = guard_for(ONE, TWO, policy=LENIENT_WORDS.override(release=release))
    source = (lambda question: iter(chunks)) if synchronous else ScriptedGenerator(chunks)
    events, outcome = await play(guard.stream(source, question=QUESTION, context=[HALL]))
    assert outcome.accepted
    assert told(events) == ANSWER
    assert [id(e.raw) for e in events if isinstance(e, RodeAlong)] == [id(c) for c in chunks]
    assert outcome.attempts[0].usage["input_tokens"] == 11
    assert outcome.attempts[0].usage["output_tokens"] == 22


async def test_a_whole_chat_completion():
    message = {"role": "assistant", "content": ANSWER}
    completion = ChatCompletion.model_validate(
        {
            "id": "c1",
            "created": 1,
            "model": "m",
            "object": "chat.completion",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 11, "completion_tokens": 22, "total_tokens": 33},
        }
    )
    events, outcome = await play(
        guard_for(ONE, TWO).stream(lambda question: completion, question=QUESTION, context=[HALL])
    )
    assert outcome.accepted
    assert told(events) == ANSWER
    assert outcome.attempts[0].usage["output_tokens"] == 22


async def test_tool_calls_of_a_completion_pass():
    call = {"index": 0, "id": "t", "type": "function", "function": {"name": "lookup", "arguments": '{"id": 7}'}}
    chunks = [
        completion_chunk({"role": "assistant", "tool_calls": [call]}),
        completion_chunk({}, finish_reason="tool_calls"),
    ]
    events, outcome = await play(guard_for(ONE).stream(ScriptedGenerator(chunks), question=QUESTION, context=[HALL]))
    assert (outcome.accepted, outcome.reason, outcome.text) == (True, "tool_calls", "")
    assert [id(e.raw) for e in events if isinstance(e, RodeAlong)] == [id(c) for c in chunks]


async def test_failing_text_beside_tool_calls_does_not_pass():
    call = {"index": 0, "id": "t", "type": "function", "function": {"name": "lookup", "arguments": "{}"}}
    chunks = [completion_chunk({"content": WRONG}), completion_chunk({"tool_calls": [call]})]
    guard = guard_for(ONE, policy=LENIENT_WORDS.override(max_attempts=1))
    events, outcome = await play(guard.stream(ScriptedGenerator(chunks), question=QUESTION, context=[HALL]))
    assert outcome.status is OutcomeStatus.REFUSED
    assert not any(isinstance(e, RodeAlong) and "zqx" in str(e.raw) for e in events)


async def test_several_choices_are_an_error():
    chunks = [completion_chunk({"content": ONE}), completion_chunk({"content": TWO}, index=1)]
    with pytest.raises(GenerationTypeError, match="n=1"):
        await guard_for(ONE, TWO).run(ScriptedGenerator(chunks), question=QUESTION, context=[HALL])


async def test_events_of_the_responses_api():
    def delta(text: str, number: int) -> ResponseTextDeltaEvent:
        return ResponseTextDeltaEvent(
            content_index=0,
            delta=text,
            item_id="i",
            logprobs=[],
            output_index=0,
            sequence_number=number,
            type="response.output_text.delta",
        )

    done = ResponseCompletedEvent.model_construct(type="response.completed", sequence_number=9, response=None)
    chunks = [delta(ONE + " ", 1), delta(TWO, 2), done]
    events, outcome = await play(
        guard_for(ONE, TWO).stream(ScriptedGenerator(chunks), question=QUESTION, context=[HALL])
    )
    assert outcome.accepted
    assert told(events) == ANSWER
    assert [id(e.raw) for e in events if isinstance(e, RodeAlong)] == [id(c) for c in chunks]


async def test_a_synchronous_stream_object_is_closed():
    """The shape of ``openai.Stream``: an iterator with ``close`` and a response behind it."""

    class Stream:
        def __init__(self) -> None:
            self.closed = 0
            self._chunks = iter(completion_stream())

        def __iter__(self) -> Iterator[Any]:
            return self

        def __next__(self) -> Any:
            return next(self._chunks)

        def close(self) -> None:
            self.closed += 1

    for early in (False, True):
        source = Stream()
        stream = guard_for(ONE, TWO).stream(lambda question, s=source: s, question=QUESTION, context=[HALL])
        async for _ in stream:
            if early:
                break
        await stream.aclose()
        assert source.closed == 1
