"""Written citations reach every reader of LangChain; structured values are judged as they are given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from guardrail_langchain import GuardedChatModel, GuardedRunnable
from langchain_core.exceptions import ModelRefusalError
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import JsonOutputParser

from guardrail import Guardrail, Policy
from guardrail.testing import FakeEntailment
from guardrail.text.marks import without_marks
from tests.langchain.agents import INPUT, kinds, thread, with_middleware, with_model
from tests.langchain.guarded import ASKED, CONTEXT, KINDS, METHODS, ONE, PROMPT, TWO, build, call, text_in
from tests.langchain.model_ways import WAYS, joined
from tests.langchain.scripted_model import ScriptedChatModel, tool_call
from tests.langchain.test_structured_answers import Inventory, given

pytestmark = pytest.mark.filterwarnings("ignore::langchain_core._api.beta_decorator.LangChainBetaWarning")

QUESTION = "What is in the hall?"
SAID = f"{ONE[:-1]} [2]. {TWO}"
FIXED = f"{ONE[:-1]} [1]. {TWO[:-1]} [2]."


def says(premise: str, claim: str) -> float:
    said = without_marks(claim).rstrip(". ").rpartition(": ")[2]
    return 1.0 if said in premise else 0.0


def guard(**policy: Any) -> Guardrail:
    return Guardrail(policy=Policy(lexical_weight=0.0, **policy), entailment=FakeEntailment(says), observers=[])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
async def test_runnables_give_what_was_written(method: str, kind: str):
    guarded = build(kind, SAID, policy=Policy(lexical_weight=0.0, cite="fix"), entailment=FakeEntailment(says))
    assert text_in(await call(method, guarded.runnable, guarded.asked)) == FIXED
    assert [outcome.text for outcome in guarded.outcomes] == [FIXED]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("release", ["sentence", "answer"])
async def test_chat_models_give_what_was_written(way: Callable[..., Any], release: str):
    chat = GuardedChatModel(
        model=ScriptedChatModel(SAID), guard=guard(cite="fix", release=release), context=lambda _: CONTEXT
    )
    message = await way(chat, QUESTION)
    assert message.text == FIXED
    told = message.response_metadata["guardrail"]["citations"]
    assert [(c["status"], c["number"]) for c in told] == [("right", 1), ("right", 2)]


async def test_blocks_of_content_get_the_written_text():
    blocks = [{"type": "text", "text": f"{ONE[:-1]} [2]. "}, {"type": "text", "text": TWO}]
    model = ScriptedChatModel(AIMessage(content=blocks, id="m"))
    chat = GuardedChatModel(model=model, guard=guard(cite="fix"), context=lambda _: CONTEXT)
    whole = await chat.ainvoke(QUESTION)
    assert whole.text == FIXED
    assert joined([chunk async for chunk in chat.astream(QUESTION)]).text == FIXED


@pytest.mark.parametrize("make", [with_middleware, with_model])
async def test_agents_give_what_was_written(make: Any):
    agent = make(ScriptedChatModel(tool_call(q="hall"), SAID), guard(cite="fix"))
    result = await agent.ainvoke(INPUT, thread())
    assert kinds(result["messages"]) == ["human", "ai+tool", "tool", "ai"]
    # The tool gives both sentences as one passage.
    assert result["messages"][-1].text == f"{ONE[:-1]} [1]. {TWO[:-1]} [1]."


@pytest.mark.parametrize("cite", ["check", "add", "fix"])
async def test_structured_values_are_judged_as_they_are_given(cite: str):
    told: list[Any] = []
    value = '{"hall": "The old hall keeps a wooden clock near its door [2]."}'
    runnable = GuardedRunnable(
        bound=PROMPT | ScriptedChatModel(value) | JsonOutputParser(),
        structured=True,
        policy=Policy(lexical_weight=0.0, cite=cite, on_wrong_citation="fail"),
        entailment=FakeEntailment(says),
        observers=[],
        on_outcome=told.append,
    )
    with pytest.raises(ModelRefusalError):
        await runnable.ainvoke(ASKED)
    assert [c.status.value for c in told[0].attempts[0].verdicts[0].citations] == ["wrong"]


@pytest.mark.parametrize("cite", ["add", "fix"])
async def test_structured_answers_of_models_keep_their_text(cite: str):
    model = ScriptedChatModel(given(Inventory(hall=f"{ONE[:-1]} [2].", gardenPlants=[TWO])))
    chat = GuardedChatModel(model=model, guard=guard(cite=cite), context=lambda _: CONTEXT)
    answer = await chat.with_structured_output(Inventory, include_raw=True).ainvoke(QUESTION)
    assert answer["parsed"] == Inventory(hall=f"{ONE[:-1]} [2].", gardenPlants=[TWO])
    cited = answer["raw"].response_metadata["guardrail"]["citations"]
    assert [c["status"] for c in cited] == ["wrong", "missing"]
