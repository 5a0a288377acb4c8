"""A guarded chat model: what its readers get, what everybody else sees, and how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

import pytest
from guardrail_langchain import GuardedChatModel
from langchain_core.documents import Document
from langchain_core.exceptions import ModelRefusalError
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from guardrail import ConfigurationError, Decision, InputError, RateLimitedError
from tests.langchain.hall import ALSO_WRONG, ANSWER, MARKER, ONE, PASSAGE, QUESTION, TWO, WRONG, guard
from tests.langchain.model_ways import WAYS, ainvoke, astream, guarded, joined, stream, v3
from tests.langchain.scripted_model import ScriptedChatModel, text_chunks, tool_call

REFUSAL = "I can't give an answer that the provided documents support."
TOOLS = [{"type": "function", "function": {"name": "search", "parameters": {"type": "object", "properties": {}}}}]


pytestmark = pytest.mark.filterwarnings("ignore::langchain_core._api.beta_decorator.LangChainBetaWarning")


@pytest.mark.parametrize("policy", ["balanced", "strict"])
@pytest.mark.parametrize("way", WAYS)
async def test_a_regenerated_answer(way: Callable[..., Any], policy: str):
    model, chat = guarded(WRONG, ANSWER, policy=policy)
    message = await way(chat, QUESTION)
    assert message.text == ANSWER
    assert MARKER not in str(message)
    assert message.usage_metadata == {"input_tokens": 10, "output_tokens": 18, "total_tokens": 28}
    told = message.response_metadata["guardrail"]
    assert (told["status"], told["reason"], told["attempts"], told["delivered_attempt"]) == ("accepted", "passed", 2, 2)
    assert told["usage"] == {"input_tokens": 20, "output_tokens": 24, "total_tokens": 44}
    assert message.response_metadata["model_name"] == "scripted-1"
    assert message.id == "msg-2" or way is v3
    assert model.log.opened == model.log.closed
    assert WRONG in model.log.prompts[1][-1].text
    assert model.log.prompts[0][-1].text == QUESTION


@pytest.mark.parametrize("way", WAYS)
async def test_a_refusal(way: Callable[..., Any]):
    model, chat = guarded(WRONG, ALSO_WRONG, f"{WRONG} {ALSO_WRONG}", stop_on_repeat=False)
    message = await way(chat, QUESTION)
    assert message.text == REFUSAL
    if way is not v3:  # the stream protocol has no refusal block yet
        assert message.content[-1] == {"type": "refusal", "refusal": REFUSAL}
    assert message.response_metadata["guardrail"]["reason"] == "attempts_exhausted"
    assert len(model.log.prompts) == 3


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("policy", ["balanced", "strict"])
@pytest.mark.parametrize("said", ["", f"{WRONG} I will look."])
async def test_turns_that_call_tools_are_passed_on(way: Callable[..., Any], policy: str, said: str):
    turn = tool_call(q="hall").model_copy(update={"content": said})
    model, chat = guarded(turn, ANSWER, policy=policy)
    message = await way(chat.bind_tools(TOOLS), QUESTION)
    assert [(c["name"], c["args"], c["id"]) for c in message.tool_calls] == [("search", {"q": "hall"}, "call-1")]
    assert message.text == said
    assert "guardrail" not in message.response_metadata
    assert len(model.log.prompts) == 1
    assert model.log.options[0]["tools"] == TOOLS
    assert model.log.opened == model.log.closed


@pytest.mark.parametrize("policy", ["balanced", "strict"])
@pytest.mark.parametrize("way", [ainvoke, astream, stream])
async def test_a_tool_call_instead_of_a_second_answer(way: Callable[..., Any], policy: str):
    _, chat = guarded(WRONG, tool_call(q="hall"), policy=policy)
    message = await way(chat.bind_tools(TOOLS), QUESTION)
    assert [c["args"] for c in message.tool_calls] == [{"q": "hall"}]
    assert MARKER not in str(message)


async def test_tool_call_deltas_wait_for_their_text():
    turn = tool_call(q="hall").model_copy(update={"content": f"{ONE} {WRONG}"})
    _, chat = guarded(turn)
    chunks = [chunk async for chunk in chat.bind_tools(TOOLS).astream(QUESTION)]
    assert "".join(chunk.text for chunk in chunks) == f"{ONE} {WRONG}"
    assert joined(chunks).tool_calls[0]["args"] == {"q": "hall"}


async def test_a_tool_call_that_nobody_offered():
    turn = tool_call(q="hall").model_copy(update={"content": f"{ONE} I will look."})
    model, chat = guarded(turn)
    chunks = [chunk async for chunk in chat.astream(QUESTION)]
    assert not any(chunk.tool_call_chunks for chunk in chunks[:-1])
    assert joined(chunks).text == f"{ONE} I will look."
    assert chunks[-1].tool_calls[0]["args"] == {"q": "hall"}
    assert len(model.log.prompts) == 1


async def test_sentences_stream_and_a_clean_attempt_goes_on():
    _, chat = guarded(f"{ONE} {WRONG}", ANSWER)
    chunks = [chunk async for chunk in chat.astream(QUESTION)]
    assert [chunk.text for chunk in chunks] == [ONE + " ", TWO, ""]
    assert {chunk.id for chunk in chunks} == {"msg-1"}
    assert chunks[-1].usage_metadata["output_tokens"] == 18


async def test_a_refusal_after_a_partial_release_is_the_end_of_the_text():
    _, chat = guarded(f"{ONE} {WRONG}", WRONG)
    whole = await astream(chat, QUESTION)
    tail = chat.guard.policy.refusal_tail
    assert whole.text == f"{ONE} \n\n{tail}"
    assert whole.content[-1] == {"type": "refusal", "refusal": tail}


async def test_what_another_attempt_adds_is_set_off_by_a_space():
    first, second = "大厅里有一个木钟。", "花园里有玫瑰。"
    model = ScriptedChatModel(f"{first}{MARKER} 地窖里有硬币。", second)
    chat = GuardedChatModel(model=model, guard=guard(), context=lambda messages: [first + second])
    assert (await astream(chat, "大厅里有什么？")).text == f"{first} {second}"


async def test_the_best_attempt_of_a_policy_that_wants_it():
    _, chat = guarded(f"{ONE} {WRONG}", stop_on_repeat=False, on_exhausted="best")
    message = await chat.ainvoke(QUESTION)
    assert message.text == f"{ONE} {WRONG}"
    assert message.response_metadata["guardrail"]["status"] == "best_attempt"
    assert message.usage_metadata["output_tokens"] == 16


async def test_observing_changes_nothing():
    model, chat = guarded(f"{ONE} {WRONG}", release="observe")
    chunks = [chunk async for chunk in chat.astream(QUESTION)]
    assert [c.text for c in chunks if c.text] == [c.text for c in text_chunks(f"{ONE} {WRONG}") if c.text]
    assert joined(chunks).response_metadata["guardrail"]["reason"] == "claims_failed"
    assert len(model.log.prompts) == 1


async def test_many_calls_at_once_do_not_mix():
    class Echo(ScriptedChatModel):
        def _next(self, messages: Any, **options: Any) -> Any:
            answer = "The hall has " + messages[0].text + " clocks."
            bad = len(messages) == 1
            return iter(text_chunks(f"The {MARKER} has {messages[0].text} doors." if bad else answer))

    chat = GuardedChatModel(model=Echo(), guard=guard(), context=lambda ms: [f"The hall has {ms[0].text} clocks."])
    found = await asyncio.gather(*(astream(chat, str(n)) for n in range(2, 42)))
    assert [message.text for message in found] == [f"The hall has {n} clocks." for n in range(2, 42)]


async def test_content_blocks_keep_what_is_not_text():
    reasoning = {"type": "reasoning", "reasoning": "The passage says so."}
    model = AIMessage(content=[reasoning, {"type": "text", "text": ANSWER}], id="m", additional_kwargs={"kept": 1})
    _, chat = guarded(model)
    for message in (await chat.ainvoke(QUESTION), await astream(chat, QUESTION)):
        assert message.text == ANSWER
        assert reasoning in message.content
        assert message.additional_kwargs == {"kept": 1}
        assert message.id == "m"


TURN = [HumanMessage(QUESTION), tool_call(q="hall")]


@pytest.mark.parametrize(
    ("messages", "configurable"),
    [
        ([*TURN, ToolMessage(PASSAGE, tool_call_id="call-1")], {}),
        ([*TURN, ToolMessage("found", artifact=[Document(PASSAGE)], tool_call_id="call-1")], {}),
        ([*TURN, ToolMessage([{"type": "text", "text": PASSAGE}], tool_call_id="call-1")], {}),
        ([HumanMessage(QUESTION)], {"context": [Document(PASSAGE)]}),
        ([HumanMessage(QUESTION)], {"context": PASSAGE}),
    ],
)
async def test_context_of_the_turn(messages: list[Any], configurable: dict[str, Any]):
    chat = GuardedChatModel(model=ScriptedChatModel(ANSWER), guard=guard("strict"))
    assert (await chat.ainvoke(messages, {"configurable": configurable})).text == ANSWER
    assert (await astream(chat, messages, config={"configurable": configurable})).text == ANSWER


@pytest.mark.parametrize(
    "messages",
    [
        [HumanMessage(QUESTION)],
        [*TURN, ToolMessage(PASSAGE, tool_call_id="call-1", status="error")],
        [*TURN, ToolMessage(PASSAGE, tool_call_id="call-1"), AIMessage(ANSWER), HumanMessage("And the roof?")],
    ],
)
async def test_without_context_there_is_no_answer(messages: list[Any]):
    chat = GuardedChatModel(model=ScriptedChatModel(ANSWER), guard=guard())
    message = await chat.ainvoke(messages)
    assert message.response_metadata["guardrail"]["reason"] == "no_context"
    assert message.text == REFUSAL


async def test_a_conversation_needs_a_question():
    _, chat = guarded(ANSWER)
    with pytest.raises(InputError, match="no human message"):
        await chat.ainvoke([AIMessage("Hello.")])


class NotToday(Exception):
    pass


@pytest.mark.parametrize("way", [w for w in WAYS if w is not v3])
@pytest.mark.parametrize("error", [NotToday("down"), ModelRefusalError("no")])
async def test_errors_of_the_model_keep_their_type(way: Callable[..., Any], error: Exception):
    _, chat = guarded(error)
    with pytest.raises(type(error)) as caught:
        await way(chat, QUESTION)
    assert caught.value is error


async def test_an_error_after_a_decision_is_a_refusal_and_a_refusal_of_the_model_is_not():
    _, chat = guarded(WRONG, NotToday("down"))
    message = await chat.ainvoke(QUESTION)
    assert message.response_metadata["guardrail"]["reason"] == "generation_error"
    _, chat = guarded(WRONG, ModelRefusalError("no"))
    with pytest.raises(ModelRefusalError):
        await chat.ainvoke(QUESTION)


async def test_fallbacks_and_retries_work_around_it():
    _, chat = guarded(NotToday("down"))
    _, other = guarded(ANSWER)
    assert (await chat.with_fallbacks([other], exceptions_to_handle=(NotToday,)).ainvoke(QUESTION)).text == ANSWER
    _, chat = guarded(NotToday("down"), ANSWER)
    assert (
        chat.with_retry(retry_if_exception_type=(NotToday,), wait_exponential_jitter=False).invoke(QUESTION).text
        == ANSWER
    )


@pytest.mark.parametrize("attempts_before", [0, 1])
@pytest.mark.parametrize("policy", ["balanced", "strict"])
async def test_closing_a_stream_closes_the_model(policy: str, attempts_before: int):
    waiting = [*text_chunks(f"{ONE} {TWO}")[:12], asyncio.Event(), *text_chunks("never")]
    model, chat = guarded(*[WRONG] * attempts_before, waiting, policy=policy)
    async with aclosing(chat.astream(QUESTION)) as chunks:
        reading = asyncio.ensure_future(anext(chunks))
        while len(model.log.prompts) <= attempts_before:
            await asyncio.sleep(0)
        if policy == "balanced":
            assert (await reading).text == ONE + " "
        else:
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading
    assert model.log.opened == model.log.closed == attempts_before + 1


async def test_cancelling_a_call_closes_the_model():
    model, chat = guarded([*text_chunks(ONE), asyncio.Event()])
    call = asyncio.create_task(_drain(chat.astream(QUESTION)))
    while not model.log.prompts:
        await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert model.log.opened == model.log.closed == 1


async def _drain(items: AsyncIterator[Any]) -> None:
    async for _ in items:
        pass


async def test_breaking_off_a_synchronous_stream_closes_the_model():
    model, chat = guarded(ANSWER)
    chunks = chat.stream(QUESTION)
    assert next(chunks).text == ONE + " "
    chunks.close()
    assert model.log.opened == model.log.closed == 1


# --- the model inside -------------------------------------------------------------------------------------------


class BindsItself(ScriptedChatModel):
    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self


class BindsSomethingElse(ScriptedChatModel):
    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self.bind(tools=tools) | str


async def test_bindings_of_the_model_inside():
    chat = GuardedChatModel(model=BindsItself(tool_call(q="hall")), guard=guard())
    assert (await chat.bind_tools(TOOLS).ainvoke(QUESTION)).tool_calls
    chat = GuardedChatModel(model=BindsSomethingElse(ANSWER), guard=guard())
    with pytest.raises(ConfigurationError, match="GuardedRunnable"):
        chat.bind_tools(TOOLS)


async def test_options_reach_the_model():
    model, chat = guarded(WRONG, ANSWER)
    await chat.bind(stop=["END"], seed=7).ainvoke(QUESTION)
    assert [(o["stop"], o["seed"]) for o in model.log.options] == [(["END"], 7)] * 2


class NeverAgain:
    """A limiter that refuses the tenant who has used up everything."""

    async def acquire(self, key: str, cost: float = 1.0, timeout_s: float | None = None) -> Decision:
        return Decision(allowed=key != "spent")


async def test_the_tenant_comes_from_the_configuration():
    model = ScriptedChatModel(ANSWER)
    built = guard()
    built._limiter = NeverAgain()  # type: ignore[assignment]
    chat = GuardedChatModel(model=model, guard=built, context=lambda messages: PASSAGE)
    assert (await chat.ainvoke(QUESTION)).text == ANSWER
    with pytest.raises(RateLimitedError):
        await chat.ainvoke(QUESTION, {"configurable": {"guardrail_key": "spent"}})


def test_tokens_are_counted_by_the_model_inside():
    class Counting(ScriptedChatModel):
        def get_token_ids(self, text: str) -> list[int]:
            return [len(word) for word in text.split()]

        def get_num_tokens_from_messages(self, messages: Any, tools: Any = None) -> int:
            return 100 * len(messages) + len(tools or [])

    chat = GuardedChatModel(model=Counting(ANSWER), guard=guard())
    assert (chat.get_token_ids("a bc"), chat.get_num_tokens("a bc")) == ([1, 2], 2)
    assert chat.get_num_tokens_from_messages([HumanMessage(QUESTION)], tools=TOOLS) == 101
