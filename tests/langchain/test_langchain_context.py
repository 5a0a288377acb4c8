"""Question and context out of inputs, and the inputs of attempts."""

from __future__ import annotations

from typing import Any

import pytest
from guardrail_langchain.context import Asked, context_of, question_of
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.prompt_values import ChatPromptValue, StringPromptValue

from guardrail import FailedClaim, GenerationRequest, InputError, Passage, VerdictLabel

Q = "When?"
CHAT = [SystemMessage("Be brief."), HumanMessage("Before?"), AIMessage("Yes."), HumanMessage(Q)]
CLAIM = FailedClaim(text="At nine.", verdict=VerdictLabel.CONTRADICTED, why="9 is not 10", delta_r=1.0, attempt=1)


@pytest.mark.parametrize(
    "value",
    [
        Q,
        HumanMessage(Q),
        CHAT,
        [("system", "Be brief."), ("human", Q)],
        [{"role": "user", "content": Q}],
        ChatPromptValue(messages=CHAT),
        StringPromptValue(text=Q),
        {"question": Q},
        {"question": HumanMessage(Q)},
        {"messages": CHAT},
        {"question": [HumanMessage([{"type": "text", "text": Q}])]},
    ],
)
def test_question(value: Any) -> None:
    assert question_of(value) == Q


def test_question_by_key_or_function() -> None:
    assert question_of({"query": Q}, "query") == Q
    assert question_of({"deep": {"down": HumanMessage(Q)}}, lambda asked: asked["deep"]["down"]) == Q


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"query": Q}, "question_key"),
        ([AIMessage("x")], "no human message"),
        (42, "type int"),
        ({"question": 1}, "int"),
    ],
)
def test_no_question(value: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        question_of(value)


def test_context() -> None:
    documents = [Document("At ten.")]
    assert context_of({"context": documents}) is documents
    assert context_of({"docs": "At ten."}, "docs") == "At ten."
    assert context_of(Q, lambda _: documents) is documents
    assert context_of({"context": None}) is None
    assert context_of(Q) is None
    with pytest.raises(InputError, match="context_key"):
        context_of({"question": Q})


def asked(value: Any, **more: Any) -> Asked:
    return Asked(value=value, question=Q, context=None, **more)


def request(attempt: int, *sources: Any, failed: bool = True) -> GenerationRequest:
    texts = [s.page_content if isinstance(s, Document) else s for s in sources]
    return GenerationRequest(
        question=Q,
        passages=tuple(Passage(id=str(i), text=text) for i, text in enumerate(texts)),
        context=sources,
        attempt=attempt,
        failed_claims=(CLAIM,) if failed else (),
    )


def test_the_first_attempt_gets_the_input_itself() -> None:
    value = {"question": Q, "context": ["a", "b"]}
    assert asked(value, placed=True).for_attempt(request(1, "a", "b", failed=False)) is value


@pytest.mark.parametrize(
    ("context", "sources", "expected"),
    [
        (["a", "b"], ("b", "a"), ["b", "a"]),
        ("a", ("b", "a"), "b\n\na"),
        ([Document("a")], (Document("b"),), [Document("b")]),
        (Document("a", metadata={"m": 1}), ("b", "c"), Document("b\n\nc", metadata={"m": 1})),
    ],
)
def test_later_attempts_get_their_selection_in_the_same_form(context: Any, sources: Any, expected: Any) -> None:
    value = {"question": Q, "context": context, "more": 1}
    found = asked(value, placed=True).for_attempt(request(2, *sources))
    assert found == {"question": Q, "context": expected, "more": 1, "failed_claims": ["At nine."]}
    assert "failed_claims" not in value


def test_a_first_attempt_may_see_less() -> None:
    value = {"question": Q, "context": ["a", "b"]}
    narrowed = asked(value, placed=True, narrowed=True).for_attempt(request(1, "a", failed=False))
    assert narrowed == {"question": Q, "context": ["a"]}


def test_inputs_without_a_place_get_a_paragraph_or_a_message() -> None:
    text = asked(Q).for_attempt(request(2, "At ten."))
    assert text.startswith(Q)
    assert "- At nine. (9 is not 10)" in text
    assert "[1] At ten." in text
    for value in (CHAT, ChatPromptValue(messages=CHAT), {"messages": CHAT}):
        found = asked(value).for_attempt(request(2, "At ten."))
        messages = found["messages"] if isinstance(found, dict) else getattr(found, "messages", found)
        assert messages[:-1] == CHAT
        assert isinstance(messages[-1], HumanMessage)
        assert "[1] At ten." in messages[-1].text
    prompt = asked(StringPromptValue(text=Q)).for_attempt(request(2, "At ten."))
    assert isinstance(prompt, StringPromptValue)
    assert "At nine." in prompt.text


def test_nothing_to_tell_changes_nothing() -> None:
    assert asked(Q).for_attempt(request(2, failed=False)) == Q


def test_retrieved_passages_are_put_in() -> None:
    documents = (Document("a"), Document("b"))
    first = request(1, *documents, failed=False)
    expected = {"question": Q, "context": "a\n\nb", "documents": list(documents)}
    assert asked(Q, retrieved=True).for_attempt(first) == expected
    assert asked({"question": Q}, retrieved=True).for_attempt(first) == expected
    assert asked(CHAT, retrieved=True).for_attempt(first) == {**expected, "messages": CHAT}
    system, *rest = asked(CHAT, retrieved=True, for_model=True).for_attempt(first)
    assert "[2] b" in system.text
    assert rest == CHAT
