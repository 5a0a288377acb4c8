"""Every method of a runnable, for every kind of runnable inside, for every way a run can end."""

from __future__ import annotations

import asyncio
import contextvars
from typing import Any

import pytest
from guardrail_langchain import GuardedRunnable
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import ConfigurableField, RunnableLambda, RunnablePassthrough

from guardrail import ConfigurationError, InputError, OutcomeStatus, PolicyError
from guardrail.policy import DEFAULT_REFUSAL
from tests.langchain.guarded import (
    ANSWER,
    ASKED,
    CONTEXT,
    KINDS,
    METHODS,
    ONE,
    PROMPT,
    STREAMS,
    TWO,
    WRONG,
    ListRetriever,
    build,
    call,
    cancelled,
    settings,
    text_in,
)
from tests.langchain.scripted_model import ScriptedChatModel, text_chunks, tool_call
from tests.streaming.helpers import QUESTION, guard_for, says

every_method = pytest.mark.parametrize("method", METHODS)
every_kind = pytest.mark.parametrize("kind", KINDS)
every_stream = pytest.mark.parametrize("method", STREAMS)
TAIL = "\n\nI can't continue this answer: the provided documents do not support what would follow."


@every_method
@every_kind
async def test_an_accepted_answer_is_what_the_runnable_gives(method: str, kind: str) -> None:
    guarded = build(kind, ANSWER)
    assert text_in(await call(method, guarded.runnable, guarded.asked)) == ANSWER
    assert [o.status for o in guarded.outcomes] == [OutcomeStatus.ACCEPTED]
    assert len(guarded.model.log.prompts) == 1
    assert guarded.closed


@every_stream
@every_kind
async def test_streams_give_sentence_after_sentence(method: str, kind: str) -> None:
    guarded = build(kind, ANSWER)
    pieces = await call(method, guarded.runnable, guarded.asked)
    assert [text_in([piece]) for piece in pieces if text_in([piece])] == [f"{ONE} ", TWO]


@every_method
@every_kind
async def test_a_failed_claim_is_replaced_by_another_attempt(method: str, kind: str) -> None:
    guarded = build(kind, f"{ONE} {WRONG}", ANSWER)
    assert text_in(await call(method, guarded.runnable, guarded.asked)) == ANSWER
    (outcome,) = guarded.outcomes
    assert (outcome.status, len(outcome.attempts)) == (OutcomeStatus.ACCEPTED, 2)
    assert guarded.closed


@every_method
@every_kind
async def test_a_refusal_is_an_answer(method: str, kind: str) -> None:
    guarded = build(kind, WRONG)
    assert text_in(await call(method, guarded.runnable, guarded.asked)) == DEFAULT_REFUSAL
    assert [o.status for o in guarded.outcomes] == [OutcomeStatus.REFUSED]
    assert guarded.closed


@every_method
@every_kind
async def test_errors_of_the_runnable_come_out_as_they_are(method: str, kind: str) -> None:
    error = KeyError("the model's own")
    guarded = build(kind, [*text_chunks("The old "), error])
    with pytest.raises(KeyError) as raised:
        await call(method, guarded.runnable, guarded.asked)
    assert raised.value is error
    assert [o.status for o in guarded.outcomes] == [OutcomeStatus.ERROR]
    assert guarded.closed


@pytest.mark.parametrize("method", ["ainvoke", "astream", "abatch", "atransform", "astream_events"])
@every_kind
async def test_cancelling_closes_the_runnable(method: str, kind: str) -> None:
    guarded = build(kind, [*text_chunks(ONE), asyncio.Event()])
    await cancelled(call(method, guarded.runnable, guarded.asked), lambda: guarded.model.log.opened == 1)
    for _ in range(50):  # `astream_events` and sequences end what they run in a task of their own
        await asyncio.sleep(0)
    assert guarded.closed


# --- what a runnable is asked for -----------------------------------------------------------------------------


async def test_an_error_in_a_batch_can_be_returned() -> None:
    error = KeyError("x")
    guarded = build("string", [error])
    assert await guarded.runnable.abatch([ASKED], return_exceptions=True) == [error]


@pytest.mark.parametrize("method", ["invoke", "stream", "batch"])
async def test_synchronous_methods_see_the_callers_context(method: str) -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable")
    seen: list[str] = []

    def answer(asked: Any) -> str:
        seen.append(variable.get())
        return ONE

    variable.set("mine")
    guarded = GuardedRunnable(bound=RunnableLambda(answer), **settings())
    assert text_in(await call(method, guarded, ASKED)) == ONE
    assert seen == ["mine"]


def test_synchronous_methods_work_without_a_loop() -> None:
    guarded = build("message", ANSWER)
    assert guarded.runnable.invoke(QUESTION).text == ANSWER
    assert text_in(list(guarded.runnable.stream(QUESTION))) == ANSWER


async def test_options_of_the_call_reach_the_runnable() -> None:
    guarded = build("message", ANSWER)
    await guarded.runnable.bind(stop=["x"]).ainvoke(QUESTION, temperature=0.5)
    assert guarded.model.log.options == [{"stop": ["x"], "temperature": 0.5}]


async def test_with_config_and_pipes() -> None:
    guarded = build("chain", ANSWER)
    named = guarded.runnable.with_config(tags=["mine"], run_name="museum")
    events = [e async for e in named.astream_events(ASKED, version="v2")]
    assert {e["name"] for e in events if not e["parent_ids"]} == {"museum"}
    guards = [e for e in events if e["name"] == "GuardedRunnable"]
    assert guards
    assert all("mine" in e["tags"] and e["parent_ids"] == [events[0]["run_id"]] for e in guards)


async def test_fields_can_be_configured_per_call() -> None:
    charged: list[str] = []

    class Limiter:
        async def acquire(self, key: str, cost: float = 1.0, timeout_s: float | None = None) -> Any:
            from guardrail import Decision

            charged.append(key)
            return Decision(allowed=True)

    guarded = GuardedRunnable(bound=RunnableLambda(lambda _: ONE), **settings(limiter=Limiter()))
    per_tenant = guarded.configurable_fields(key=ConfigurableField(id="tenant"))
    await per_tenant.ainvoke(ASKED, {"configurable": {"tenant": "acme"}})
    await per_tenant.ainvoke(ASKED)
    assert charged == ["acme", "default"]


def test_schemas_and_graph_are_those_of_the_runnable_inside() -> None:
    inside = PROMPT | ScriptedChatModel(ANSWER)
    guarded = GuardedRunnable(bound=inside, **settings())
    assert guarded.get_input_jsonschema() == inside.get_input_jsonschema()
    assert guarded.get_output_jsonschema() == inside.get_output_jsonschema()
    assert guarded.OutputType == inside.OutputType
    assert guarded.get_graph().to_json() == inside.get_graph().to_json()
    assert not guarded.is_lc_serializable()


def test_wrong_settings_are_found_at_once() -> None:
    inside = RunnableLambda(lambda _: ONE)
    with pytest.raises(PolicyError, match="max_attempts"):
        GuardedRunnable(bound=inside, policy=settings()["policy"].override(max_attempts=0))
    with pytest.raises(ConfigurationError, match=r"guard=\.\.\. or policy, entailment"):
        GuardedRunnable(bound=inside, guard=guard_for(ONE), policy="strict", entailment=says(ONE))
    with pytest.raises(ConfigurationError, match="with a retriever"):
        GuardedRunnable(bound=inside, guard=guard_for(ONE), retriever=ListRetriever(ONE))
    with pytest.raises(ConfigurationError, match=r"guardrail\.Guardrail, not str"):
        GuardedRunnable(bound=inside, guard="strict")


async def test_a_ready_guard_is_used() -> None:
    guarded = GuardedRunnable(bound=RunnableLambda(lambda _: ONE), guard=guard_for(ONE))
    assert await guarded.ainvoke(ASKED) == ONE


async def test_a_mapping_without_context_is_a_mistake() -> None:
    with pytest.raises(InputError, match="has no 'context'"):
        await build("string", ANSWER).runnable.ainvoke({"question": QUESTION})


# --- messages -------------------------------------------------------------------------------------------------


@every_method
async def test_messages_keep_what_rides_on_the_delivered_attempt(method: str) -> None:
    guarded = build("message", WRONG, ANSWER)
    pieces = await call(method, guarded.runnable, guarded.asked)
    message = sum(pieces[1:], pieces[0]) if method in STREAMS else pieces[0]
    assert isinstance(message, AIMessageChunk if method in STREAMS else AIMessage)
    assert message.id == "msg-2"
    assert message.usage_metadata == {"input_tokens": 10, "output_tokens": 18, "total_tokens": 28}
    assert message.response_metadata["model_name"] == "scripted-1"
    told = message.response_metadata["guardrail"]
    assert (told["status"], told["attempts"], told["delivered_attempt"]) == ("accepted", 2, 2)
    assert told["worst_delta_r"] == 0.0
    assert told["usage"]["input_tokens"] == 20 if method not in STREAMS else told["usage"]["input_tokens"] >= 10


@every_method
async def test_refusals_are_native(method: str) -> None:
    guarded = build("message", f"{ONE} {WRONG}", WRONG)
    pieces = await call(method, guarded.runnable, guarded.asked)
    message = sum(pieces[1:], pieces[0]) if method in STREAMS else pieces[0]
    assert message.text == (ONE + " " + TAIL if method in STREAMS else DEFAULT_REFUSAL)
    refusals = [block for block in message.content if isinstance(block, dict) and block["type"] == "refusal"]
    assert refusals == [{"type": "refusal", "refusal": TAIL.strip() if method in STREAMS else DEFAULT_REFUSAL}]
    assert message.response_metadata["guardrail"]["status"] == "refused"


@every_method
async def test_tool_calls_pass(method: str) -> None:
    guarded = build("message", tool_call(query="hall"))
    pieces = await call(method, guarded.runnable, guarded.asked)
    message = sum(pieces[1:], pieces[0]) if method in STREAMS else pieces[0]
    assert message.tool_calls == [{"name": "search", "args": {"query": "hall"}, "id": "call-1", "type": "tool_call"}]
    assert message.text == ""


# --- other outputs --------------------------------------------------------------------------------------------


@every_method
async def test_a_chain_that_gives_a_mapping(method: str) -> None:
    model = ScriptedChatModel(WRONG, ANSWER)
    chain = RunnablePassthrough.assign(answer=PROMPT | model | StrOutputParser())
    pieces = await call(method, GuardedRunnable(bound=chain, **settings()), ASKED)
    whole = sum(pieces[1:], pieces[0]) if method in STREAMS else pieces[0]
    assert set(whole) == {"question", "context", "answer"}
    assert (whole["question"], whole["answer"]) == (QUESTION, ANSWER)


async def test_a_refused_mapping_holds_nothing_of_the_attempts() -> None:
    chain = RunnableLambda(lambda _: {"answer": WRONG, "draft": WRONG})
    assert await GuardedRunnable(bound=chain, **settings()).ainvoke(ASKED) == {"answer": DEFAULT_REFUSAL}


async def test_what_cannot_be_read_is_an_error() -> None:
    from guardrail import GenerationTypeError

    with pytest.raises(GenerationTypeError, match="gave a int"):
        await GuardedRunnable(bound=RunnableLambda(lambda _: 42), **settings()).ainvoke(ASKED)
    with pytest.raises(GenerationTypeError, match="without 'answer'"):
        await GuardedRunnable(bound=RunnableLambda(lambda _: {"text": ONE}), **settings()).ainvoke(ASKED)


# --- retrieval ------------------------------------------------------------------------------------------------


async def test_after_a_failure_the_retriever_is_asked_for_more() -> None:
    log: list[tuple[str, int]] = []
    inputs: list[Any] = []
    answers = iter([f"{ONE} {WRONG}", ANSWER])

    def answer(asked: Any) -> str:
        inputs.append(asked)
        return next(answers)

    class OnlyEvidence:
        """Supports what the evidence says, word for word."""

        model_id = "only-evidence"

        async def score(self, pairs: Any) -> Any:
            from guardrail import EntailmentScore

            return [EntailmentScore(entailment=float(p.hypothesis.strip() in p.premise)) for p in pairs]

    guarded = GuardedRunnable(
        bound=RunnableLambda(answer),
        retriever=ListRetriever(ONE, TWO, k=1, log=log),
        **settings(entailment=OnlyEvidence()),
    )
    assert await guarded.ainvoke(QUESTION) == ANSWER
    assert log == [(QUESTION, 1), (QUESTION, 2), (WRONG, 2)]
    assert inputs[0] == {"question": QUESTION, "context": ONE, "documents": [Document(page_content=ONE)]}
    assert inputs[1]["context"] == f"{TWO}\n\n{ONE}"
    assert [d.page_content for d in inputs[1]["documents"]] == [TWO, ONE]
    assert inputs[1]["failed_claims"] == [WRONG]


async def test_errors_of_the_retriever_come_out_as_they_are() -> None:
    class Broken(ListRetriever):
        def _get_relevant_documents(self, query: str, **_: Any) -> list[Document]:
            raise ConnectionError("no index")

    with pytest.raises(ConnectionError, match="no index"):
        await GuardedRunnable(bound=RunnableLambda(lambda _: ONE), retriever=Broken(), **settings()).ainvoke(QUESTION)


async def test_a_model_gets_the_retrieved_passages_as_a_message() -> None:
    model = ScriptedChatModel(WRONG, ANSWER)
    guarded = GuardedRunnable(bound=model, retriever=ListRetriever(*CONTEXT), **settings())
    assert (await guarded.ainvoke(QUESTION)).text == ANSWER
    first, second = model.log.prompts
    assert [m.type for m in first] == ["system", "human"]
    assert ONE in first[0].text
    assert first[1].text == QUESTION
    assert [m.type for m in second] == ["system", "human", "human"]
    assert WRONG in second[2].text


async def test_the_message_says_what_became_of_its_citations():
    answer = "The old hall keeps a wooden clock near its door [1]. The garden grows tall roses by the wall [2]."
    context = ["The garden grows tall roses by the wall.", "The old hall keeps a wooden clock near its door."]
    model = FakeListChatModel(responses=[answer])
    guarded = GuardedRunnable(bound=RunnableLambda(lambda asked: asked["question"]) | model, policy="balanced")
    message = await guarded.ainvoke({"question": "What is there?", "context": context})
    wrong = {"status": "wrong", "number": 1, "passage_id": "1", "right": ["2"]}
    assert message.response_metadata["guardrail"]["citations"][0] == wrong
    assert [c["status"] for c in message.response_metadata["guardrail"]["citations"]] == ["wrong", "wrong"]
