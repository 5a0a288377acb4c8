"""Question and context of a run from whatever a runnable is called with, and the input of every attempt."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage, convert_to_messages
from langchain_core.prompt_values import ChatPromptValue, PromptValue, StringPromptValue

from guardrail import GenerationRequest, InputError, Passage
from guardrail_langchain.attempt_callbacks import FEEDBACK_ID
from guardrail_langchain.messages import text_of

Key = str | Callable[[Any], Any]
DOCUMENTS_KEY = "documents"
FAILED_CLAIMS_KEY = "failed_claims"
_MESSAGES_KEY = "messages"
_MISSING = object()


def question_of(value: Any, key: Key = "question") -> str:
    """What the user asked.

    Args:
        value: The input of a runnable: a text, a message, a list of messages, a prompt value, or a mapping.
        key: Where a mapping has the question, or a function of the input.

    Returns:
        The text; of several messages that of the last human one. A mapping without ``key`` may have ``messages``.

    Raises:
        InputError: If there is no question in the input.

    Example:
        >>> question_of({"question": "When does it open?", "context": []})
        'When does it open?'
        >>> question_of([("system", "Be brief."), ("human", "When does it open?")])
        'When does it open?'
    """
    if callable(key):
        return text_of(key(value))
    if isinstance(value, Mapping):
        found = value.get(key, value.get(_MESSAGES_KEY, _MISSING))
        if found is _MISSING:
            raise InputError(
                f"the input has neither {key!r} nor 'messages': name the key of the question with question_key=..., "
                "or pass a function of the input"
            )
        return question_of(found)
    if isinstance(value, str):
        return value
    messages = messages_of(value)
    human = [message for message in messages if isinstance(message, HumanMessage)]
    if not human:
        raise InputError("there is no human message in the input: pass question_key=... as a function of the input")
    return text_of(human[-1])


def messages_of(value: Any) -> list[BaseMessage]:
    """The messages of an input that a chat model takes.

    Args:
        value: A text, a message, a prompt value, or a list of messages in any form that LangChain reads.

    Returns:
        The messages.

    Raises:
        InputError: If the input is none of these.
    """
    if isinstance(value, PromptValue):
        return value.to_messages()
    if isinstance(value, str):
        return [HumanMessage(value)]
    if isinstance(value, BaseMessage):
        return [value]
    if isinstance(value, (list, tuple)):
        return convert_to_messages(value)
    raise InputError(
        f"cannot find the question in an input of type {type(value).__name__}: pass a text, messages, a prompt, a "
        "mapping, or question_key=... as a function of the input"
    )


def context_of(value: Any, key: Key = "context") -> Any:
    """The retrieved passages in the input.

    Args:
        value: The input of a runnable.
        key: Where a mapping has them, or a function of the input.

    Returns:
        What is there: a text, a document, a list of either, or ``None``, which says that there is no retrieval; inputs
        that are not mappings have no passages.

    Raises:
        InputError: If a mapping lacks the key, which is a mistake more often than a wish.
    """
    if callable(key):
        return key(value)
    if not isinstance(value, Mapping):
        return None
    if key not in value:
        raise InputError(
            f"the input has no {key!r}: name the key of the passages with context_key=..., pass a function of the "
            "input, or give the guard a retriever"
        )
    return value[key]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request, read.

    Attributes:
        value: The input as it came.
        question: The question in it.
        context: The passages to check against, as the engine takes them.
        question_key: Where a mapping has the question.
        context_key: Where a mapping has the passages.
        placed: Whether the passages stand in the input, so that another selection can take their place.
        retrieved: Whether a retriever gave them, so that they have to be put into the input.
        narrowed: Whether the first attempt may see fewer passages than there are.
        for_model: Whether the input goes to a language model and not to a chain.
    """

    value: Any = field(repr=False)
    question: str = field(repr=False)
    context: Any = field(repr=False)
    question_key: Key = "question"
    context_key: Key = "context"
    placed: bool = False
    retrieved: bool = False
    narrowed: bool = False
    for_model: bool = False

    def for_attempt(self, request: GenerationRequest) -> Any:
        """The input of one attempt.

        Args:
            request: What the engine wants to be tried.

        Returns:
            The input as it came for the first attempt, unless passages have to be put in. Later ones have the new
            selection in the same place and in the same form, and say which claims did not hold: under
            ``"failed_claims"`` in a mapping, as one more message or paragraph elsewhere.
        """
        if request.attempt == 1 and not self.retrieved and not self.narrowed:
            return self.value
        if self.retrieved:
            value = self._with_retrieved(request)
        elif self.placed:
            assert isinstance(self.context_key, str)
            value = {**self.value, self.context_key: _in_form_of(self.value[self.context_key], request)}
        else:
            value = self.value
        if request.attempt == 1:
            return value
        has_passages = self.retrieved or self.placed
        return _with_feedback(value, feedback(request, with_passages=not has_passages), request)

    def _with_retrieved(self, request: GenerationRequest) -> Any:
        if self.for_model:
            system = SystemMessage(_ANSWER_FROM + "\n\n" + _numbered(request.passages))
            return [system, *messages_of(self.value)]
        context_key = self.context_key if isinstance(self.context_key, str) else "context"
        value = dict(self.value) if isinstance(self.value, Mapping) else self._as_mapping()
        return {**value, context_key: _joined(request.passages), DOCUMENTS_KEY: _documents(request)}

    def _as_mapping(self) -> dict[str, Any]:
        question_key = self.question_key if isinstance(self.question_key, str) else "question"
        found: dict[str, Any] = {question_key: self.question}
        return found if isinstance(self.value, str) else {**found, _MESSAGES_KEY: messages_of(self.value)}


_ANSWER_FROM = "Answer from these passages only. If they do not contain the answer, say so."
_DID_NOT_HOLD = "An earlier answer contained statements that did not hold. Do not repeat them:"


def feedback(request: GenerationRequest, *, with_passages: bool) -> str:
    """What a model is told about the attempts before.

    Args:
        request: The attempt that is about to begin.
        with_passages: Whether the passages are part of it, because the input has no place for them.

    Returns:
        A paragraph; empty if there is nothing to tell.
    """
    parts: list[str] = []
    if request.failed_claims:
        parts.append("\n".join([_DID_NOT_HOLD, *_failed(request)]))
    if with_passages and request.passages:
        parts.append(_ANSWER_FROM + "\n\n" + _numbered(request.passages))
    return "\n\n".join(parts)


def _failed(request: GenerationRequest) -> list[str]:
    return [f"- {claim.text} ({claim.why})" for claim in request.failed_claims]


def _with_feedback(value: Any, note: str, request: GenerationRequest) -> Any:
    if isinstance(value, Mapping):
        told = {**value, FAILED_CLAIMS_KEY: [claim.text for claim in request.failed_claims]}
        if note and isinstance(value.get(_MESSAGES_KEY), list):
            told[_MESSAGES_KEY] = [*value[_MESSAGES_KEY], _note(note, request)]
        return told
    if not note:
        return value
    if isinstance(value, str):
        return f"{value}\n\n{note}"
    if isinstance(value, StringPromptValue):
        return StringPromptValue(text=f"{value.text}\n\n{note}")
    messages = [*messages_of(value), _note(note, request)]
    return ChatPromptValue(messages=messages) if isinstance(value, PromptValue) else messages


def _note(text: str, request: GenerationRequest) -> HumanMessage:
    return HumanMessage(text, id=f"{FEEDBACK_ID}-{request.attempt}")


def _in_form_of(original: Any, request: GenerationRequest) -> Any:
    """Another selection in the form of the first: one text, one document, or a list."""
    if isinstance(original, str):
        return _joined(request.passages)
    if isinstance(original, Document):
        return original.model_copy(update={"page_content": _joined(request.passages)})
    return list(request.context)


def _joined(passages: Iterable[Passage]) -> str:
    return "\n\n".join(passage.text for passage in passages)


def _numbered(passages: Iterable[Passage]) -> str:
    return "\n".join(f"[{number}] {passage.text}" for number, passage in enumerate(passages, start=1))


def _documents(request: GenerationRequest) -> list[Document]:
    return [
        item if isinstance(item, Document) else Document(page_content=passage.text, metadata=dict(passage.metadata))
        for item, passage in zip(request.context, request.passages, strict=True)
    ]
