"""The middleware: which calls it guards, what it checks against, how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from guardrail_langchain import GroundednessMiddleware
from langchain.agents import AgentState, create_agent
from langchain.agents.middleware import AgentMiddleware, ModelRetryMiddleware
from langchain_core.callbacks import BaseCallbackHandler, get_usage_metadata_callback
from langchain_core.documents import Document
from langchain_core.exceptions import ModelRefusalError
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.types import Command, interrupt

from guardrail import Decision, InputError, RateLimitedError
from tests.langchain.agents import INPUT, kinds, thread, with_middleware
from tests.langchain.hall import ALSO_WRONG, ANSWER, MARKER, PASSAGE, QUESTION, WRONG, guard
from tests.langchain.scripted_model import ScriptedChatModel, tool_call


async def ainvoke(agent: Any, value: Any, *args: Any) -> Any:
    return await agent.ainvoke(value, *args)


async def invoke(agent: Any, value: Any, *args: Any) -> Any:
    return agent.invoke(value, *args)  # inside a running loop


async def invoke_in_thread(agent: Any, value: Any, *args: Any) -> Any:
    return await asyncio.to_thread(agent.invoke, value, *args)


WAYS = [ainvoke, invoke, invoke_in_thread]
each_way = pytest.mark.parametrize("way", WAYS)


@each_way
@pytest.mark.parametrize("policy", ["balanced", "strict"])
@pytest.mark.parametrize(
    ("answers", "text", "reason", "calls"),
    [
        ([ANSWER], ANSWER, "passed", 1),
        ([WRONG, ANSWER], ANSWER, "passed", 2),
        ([WRONG, ALSO_WRONG, ANSWER], ANSWER, "passed", 3),
        ([WRONG, ALSO_WRONG, f"{MARKER} is a word. {MARKER} runs."], None, "attempts_exhausted", 3),
        ([WRONG, WRONG, ANSWER], None, "same_claim_failed_twice", 2),
        ([WRONG, ValueError("down")], None, "generation_error", 2),
    ],
)
async def test_final_answers(
    way: Callable[..., Any], policy: str, answers: list[Any], text: str | None, reason: str, calls: int
):
    model = ScriptedChatModel(tool_call(q="hall"), *answers)
    out = await way(with_middleware(model, guard(policy)), INPUT, thread())
    message = out["messages"][-1]
    assert kinds(out["messages"]) == ["human", "ai+tool", "tool", "ai"]
    assert message.text == (text or "I can't give an answer that the provided documents support.")
    assert (message.content_blocks[-1]["type"] == "refusal") == (text is None)
    assert message.response_metadata["guardrail"]["reason"] == reason
    assert message.response_metadata["guardrail"]["attempts"] == calls
    assert len(model.log.prompts) == 1 + calls
    assert MARKER not in str(out)


@each_way
async def test_what_failed_is_told_to_the_model_and_not_kept(way: Callable[..., Any]):
    model = ScriptedChatModel(tool_call(q="hall"), WRONG, ANSWER)
    await way(with_middleware(model, guard(), system_prompt="Be brief."), INPUT, thread())
    assert [m.type for m in model.log.prompts[2]] == ["system", "human", "ai", "tool", "human"]
    assert WRONG in model.log.prompts[2][-1].text
    assert all(options["tools"][0]["function"]["name"] == "search" for options in model.log.options)


class Refuses:
    """A limiter that counts, and refuses everything."""

    def __init__(self) -> None:
        self.keys: list[str] = []

    async def acquire(self, key: str, cost: float = 1.0, timeout_s: float | None = None) -> Decision:
        self.keys.append(key)
        return Decision(allowed=False)


async def test_turns_that_call_tools_cost_nothing():
    limited = guard("strict")
    limiter = limited._limiter = Refuses()  # type: ignore[assignment]
    turn = tool_call(q="hall").model_copy(update={"content": WRONG})
    model = ScriptedChatModel(turn, ANSWER)
    config = thread()
    config["configurable"]["guardrail_key"] = "tenant"
    agent = with_middleware(model, limited)
    with pytest.raises(RateLimitedError):
        await agent.ainvoke(INPUT, config)
    assert limiter.keys == ["tenant"]
    messages = (await agent.aget_state(config)).values["messages"]
    assert kinds(messages) == ["human", "ai+tool", "tool"]
    assert messages[1].text == WRONG


@each_way
async def test_a_model_that_searches_again_instead_of_answering(way: Callable[..., Any]):
    again = tool_call(id="call-2", q="cellar")
    model = ScriptedChatModel(tool_call(q="hall"), WRONG, again, ANSWER)
    out = await way(with_middleware(model, guard()), INPUT, thread())
    assert kinds(out["messages"]) == ["human", "ai+tool", "tool", "ai+tool", "tool", "ai"]
    assert out["messages"][3].tool_calls[0]["args"] == {"q": "cellar"}
    assert MARKER not in str(out)


class Documents(AgentState[Any]):
    documents: list[Any]


@pytest.mark.parametrize("documents", [[Document(PASSAGE)], [PASSAGE]])
@each_way
async def test_documents_in_the_state(way: Callable[..., Any], documents: list[Any]):
    agent = create_agent(
        ScriptedChatModel(WRONG, ANSWER), middleware=[GroundednessMiddleware(guard())], state_schema=Documents
    )
    out = await way(agent, {**INPUT, "documents": documents})
    assert out["messages"][-1].text == ANSWER
    out = await way(agent, {**INPUT, "documents": []})
    assert out["messages"][-1].response_metadata["guardrail"]["reason"] == "no_context"


async def test_context_from_a_function():
    middleware = GroundednessMiddleware(guard(), context=lambda request: request.state["messages"][0].text)
    agent = create_agent(ScriptedChatModel(ANSWER), middleware=[middleware])
    assert (await agent.ainvoke({"messages": [("human", PASSAGE)]}))["messages"][-1].text == ANSWER


async def test_only_results_of_this_turn_count():
    earlier = [("human", "?"), tool_call(q="hall"), ToolMessage(PASSAGE, tool_call_id="call-1"), ("ai", ANSWER)]
    agent = create_agent(ScriptedChatModel(ANSWER), middleware=[GroundednessMiddleware(guard())])
    out = await agent.ainvoke({"messages": [*earlier, ("human", QUESTION)]})
    assert out["messages"][-1].response_metadata["guardrail"]["reason"] == "no_context"


async def test_a_question_is_needed():
    agent = create_agent(ScriptedChatModel(ANSWER), middleware=[GroundednessMiddleware(guard())])
    with pytest.raises(InputError, match="no human message"):
        await agent.ainvoke({"messages": [("ai", "Hello.")]})


class NotToday(Exception):
    pass


@each_way
async def test_an_error_of_the_first_call_keeps_its_type(way: Callable[..., Any]):
    error = NotToday("down")
    with pytest.raises(NotToday) as caught:
        await way(with_middleware(ScriptedChatModel(error), guard()), INPUT, thread())
    assert caught.value is error


@each_way
@pytest.mark.parametrize("before", [[], [WRONG]])
async def test_a_refusal_that_the_model_raises(way: Callable[..., Any], before: list[Any]):
    model = ScriptedChatModel(tool_call(q="hall"), *before, ModelRefusalError("no"))
    with pytest.raises(ModelRefusalError):
        await way(with_middleware(model, guard()), INPUT, thread())


@each_way
async def test_retries_act_on_every_attempt(way: Callable[..., Any]):
    model = ScriptedChatModel(tool_call(q="hall"), WRONG, NotToday("down"), ANSWER)
    retry = ModelRetryMiddleware(max_retries=1, retry_on=(NotToday,), initial_delay=0.0)
    out = await way(with_middleware(model, guard(), retry), INPUT, thread())
    assert out["messages"][-1].text == ANSWER
    assert out["messages"][-1].response_metadata["guardrail"]["attempts"] == 2


class AskFirst(AgentMiddleware):
    """Interrupts a model call, the way a review by a human does."""

    def __init__(self, call: int) -> None:
        super().__init__()
        self._call = call
        self.calls = 0

    def _asks(self) -> None:
        self.calls += 1
        if self.calls >= self._call:
            interrupt("May I?")

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        self._asks()
        return handler(request)

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        self._asks()
        return await handler(request)


@each_way
@pytest.mark.parametrize("call", [1, 2, 3])
async def test_interrupts_pass_and_resume(way: Callable[..., Any], call: int):
    model = ScriptedChatModel(*[tool_call(q="hall")] * min(call - 1, 1), *[WRONG] * (call - 2), ANSWER)
    agent = with_middleware(model, guard(no_context="pass_marked"), AskFirst(call))
    out = await way(agent, INPUT, thread())
    assert [i.value for i in out["__interrupt__"]] == ["May I?"]
    assert MARKER not in str(out)
    out = await way(agent, Command(resume="yes"), thread())
    assert out["messages"][-1].text == ANSWER
    assert MARKER not in str(out)


class Hangs(ScriptedChatModel):
    """Never comes back from its third call."""

    async def _agenerate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
        if len(self.log.prompts) < 2:
            return self._generate(messages, stop, None, **kwargs)
        self.log.opened += 1
        try:
            await asyncio.Event().wait()
        finally:
            self.log.closed += 1


async def test_cancellation_ends_the_call():
    model = Hangs(tool_call(q="hall"), WRONG)
    running = asyncio.create_task(with_middleware(model, guard()).ainvoke(INPUT, thread()))
    while not model.log.opened:
        await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert model.log.closed == 1


async def test_a_refusal_carries_the_name_of_the_agent():
    agent = create_agent(ScriptedChatModel(WRONG), middleware=[GroundednessMiddleware(guard())], name="porter")
    out = await agent.ainvoke(INPUT)
    assert isinstance(out["messages"][-1], AIMessage)
    assert out["messages"][-1].name == "porter"


class Everything(BaseCallbackHandler):
    def __init__(self) -> None:
        self.payloads: list[str] = []

    def on_chat_model_start(self, *args: Any, **kwargs: Any) -> None:
        self.payloads.append(str((args, kwargs)))

    def on_llm_new_token(self, *args: Any, **kwargs: Any) -> None:
        self.payloads.append(str((args, kwargs)))

    def on_llm_end(self, *args: Any, **kwargs: Any) -> None:
        self.payloads.append(str((args, kwargs)))


@each_way
async def test_handlers_that_the_model_has_see_no_text(way: Callable[..., Any]):
    handler = Everything()
    model = ScriptedChatModel(tool_call(q="hall"), WRONG, ANSWER, callbacks=[handler])
    out = await way(with_middleware(model, guard()), INPUT, thread())
    assert out["messages"][-1].text == ANSWER
    assert len(handler.payloads) == 6
    assert MARKER not in str(handler.payloads)
    assert "output_tokens" in handler.payloads[-1]


class KnowsNoChatModels(BaseCallbackHandler):
    def __init__(self) -> None:
        self.prompts: list[Any] = []

    def on_llm_start(self, serialized: Any, prompts: Any, **kwargs: Any) -> None:
        self.prompts.append(prompts)


@each_way
async def test_handlers_that_know_no_chat_models_see_no_text(way: Callable[..., Any]):
    handler = KnowsNoChatModels()
    model = ScriptedChatModel(tool_call(q="hall"), WRONG, ANSWER)
    await way(with_middleware(model, guard()), INPUT, thread(callbacks=[handler]))
    assert handler.prompts == [["[withheld by guardrail]"]] * 3


@each_way
async def test_tokens_of_every_attempt_are_counted(way: Callable[..., Any]):
    model = ScriptedChatModel(tool_call(q="hall"), WRONG, ANSWER)
    with get_usage_metadata_callback() as counted:
        await way(with_middleware(model, guard()), INPUT, thread())
    assert counted.usage_metadata["scripted-1"]["output_tokens"] == 6 + 18
