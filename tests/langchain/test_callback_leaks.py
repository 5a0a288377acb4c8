"""What handlers could learn of rejected text beside tokens and answers."""

from __future__ import annotations

from typing import Any

import pytest
from guardrail_langchain import GuardedRunnable
from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler, adispatch_custom_event
from langchain_core.exceptions import ModelRefusalError
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.output_parsers import JsonOutputParser
from langchain_core.runnables import RunnableConfig, RunnableLambda

from tests.langchain.agents import INPUT
from tests.langchain.guarded import ANSWER, ASKED, CONTEXT, MARKER, METHODS, PROMPT, WRONG, call, settings, text_in
from tests.langchain.hall import guard
from tests.langchain.scripted_model import ScriptedChatModel
from tests.langchain.test_leaks import recorder
from tests.langchain.test_structured_answers import BAD, GOOD, Inventory, agent, given
from tests.streaming.helpers import QUESTION

Heard = list[tuple[str, str]]


def listening(heard: Heard) -> Any:
    return {"callbacks": [recorder(BaseCallbackHandler, heard), recorder(AsyncCallbackHandler, heard)]}


def leaks(heard: Heard) -> list[str]:
    return [name for name, payload in heard if MARKER in payload]


async def test_custom_events_of_attempts() -> None:
    heard: Heard = []
    drafts = iter([WRONG, ANSWER])

    async def answer(_: Any, config: RunnableConfig) -> str:
        draft = next(drafts)
        await adispatch_custom_event("draft", {"text": draft}, config=config)
        return draft

    guarded = GuardedRunnable(bound=RunnableLambda(answer), **settings())
    assert await guarded.ainvoke(ASKED, listening(heard)) == ANSWER
    assert leaks(heard) == []
    assert [name for name, _ in heard].count("on_custom_event") == 4  # two attempts, two handlers


@pytest.mark.parametrize("method", METHODS[:-1])
async def test_prompts_that_hold_a_draft(method: str) -> None:
    heard: Heard = []
    revise = RunnableLambda(lambda draft: [HumanMessage(f"Revise: {draft.text}")])
    chain = PROMPT | ScriptedChatModel(WRONG, ANSWER) | revise | ScriptedChatModel(WRONG, ANSWER)
    pieces = await call(method, GuardedRunnable(bound=chain, **settings()), ASKED, listening(heard))
    assert MARKER not in repr(pieces)
    assert leaks(heard) == []
    prompts = [payload for name, payload in heard if name == "on_chat_model_start"]
    assert sum(QUESTION in prompt for prompt in prompts) == 2  # the first prompt, for both handlers


async def test_structured_answers_in_the_form_of_tool_calls() -> None:
    heard: Heard = []
    guarded = GuardedRunnable(
        bound=ScriptedChatModel(given(BAD), given(GOOD)).with_structured_output(Inventory),
        structured=True,
        context_key=lambda _: CONTEXT,
        **settings(entailment=guard().verifier.entailment),
    )
    assert await guarded.ainvoke(QUESTION, listening(heard)) == GOOD
    assert leaks(heard) == []


@pytest.mark.parametrize("sync", [False, True])
async def test_structured_responses_of_agents(sync: bool) -> None:
    heard: Heard = []
    built = agent(given(BAD), given(GOOD))
    config = {"callbacks": [recorder(BaseCallbackHandler, heard)]}
    out = built.invoke(INPUT, config) if sync else await built.ainvoke(INPUT, config)
    assert out["structured_response"] == GOOD
    assert leaks(heard) == []


@pytest.mark.parametrize("method", METHODS[:-1])
async def test_rejected_text_beside_a_tool_call(method: str) -> None:
    heard: Heard = []
    turn = AIMessage(WRONG, id="turn", tool_calls=[{"name": "search", "args": {"q": MARKER}, "id": "c"}])
    model = ScriptedChatModel(turn, ANSWER, disable_streaming=True)
    guarded = GuardedRunnable(bound=model, context_key=lambda _: CONTEXT, **settings())
    pieces = await call(method, guarded, QUESTION, listening(heard))
    assert text_in(pieces) == ANSWER
    assert MARKER not in repr(pieces)
    assert leaks(heard) == []


@pytest.mark.parametrize("method", METHODS[:-1])
async def test_errors_that_quote_an_answer(method: str) -> None:
    heard: Heard = []
    chain = PROMPT | ScriptedChatModel(f'{{"hall": "{WRONG}"}}', f"{WRONG} It is no JSON.") | JsonOutputParser()
    guarded = GuardedRunnable(bound=RunnableLambda(chain.invoke), structured=True, **settings())
    with pytest.raises(ModelRefusalError):
        await call(method, guarded, ASKED, listening(heard))
    assert leaks(heard) == []
    assert any("OutputParserException" in payload for name, payload in heard if name == "on_chain_error")
