"""What a runnable gives, as text for the engine; what the engine releases, in the form that the runnable gives.

A text stays a text, a message a message, and a mapping (a chain's dictionary, the state of a graph) a mapping in
which only the answer is the guard's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol, get_args

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.runnables import AddableDict, Runnable

from guardrail import GenerationTypeError, Outcome, OutcomeStatus
from guardrail_langchain.attempt_callbacks import FEEDBACK_ID
from guardrail_langchain.context import FAILED_CLAIMS_KEY
from guardrail_langchain.messages import AttemptMessages, accepted_message, closing_chunk, text_of

_MESSAGES_KEY = "messages"


class Output(Protocol):
    """Reads one run's attempts and makes what the reader gets."""

    def begin(self, attempt: int) -> None:
        """An attempt begins."""
        ...

    def read(self, chunk: Any) -> Iterable[Any]:
        """What the engine gets for a chunk of the attempt."""
        ...

    def end(self) -> Iterable[Any]:
        """What the engine gets at the end of the attempt."""
        ...

    def released(self, text: str, attempt: int) -> Any:
        """What the reader gets for released text; ``None`` if it has to wait for the end."""
        ...

    def closing(self, outcome: Outcome) -> Iterable[Any]:
        """What the reader of a stream gets after the text."""
        ...

    def whole(self, outcome: Outcome) -> Any:
        """What the reader gets if there is no stream."""
        ...


class AnyOutput:
    """Finds out at the first chunk what a runnable gives.

    Args:
        bound: The runnable; its output type tells if it was never called.
        answer_key: Where a mapping has the answer.
        run_id: Id of the guard's run, for messages that no model made.
    """

    def __init__(self, bound: Runnable[Any, Any], *, answer_key: str, run_id: str) -> None:
        self._bound = bound
        self._answer_key = answer_key
        self._run_id = run_id
        self._attempt = 0
        self._form: Output | None = None

    def begin(self, attempt: int) -> None:
        """See :class:`Output`."""
        self._attempt = attempt
        if self._form is not None:
            self._form.begin(attempt)

    def read(self, chunk: Any) -> Iterable[Any]:
        """See :class:`Output`."""
        if self._form is None:
            self._form = self._form_of(chunk)
            for attempt in range(1, self._attempt + 1):
                self._form.begin(attempt)
        return self._form.read(chunk)

    def end(self) -> Iterable[Any]:
        """See :class:`Output`."""
        return () if self._form is None else self._form.end()

    def released(self, text: str, attempt: int) -> Any:
        """See :class:`Output`."""
        return self._known().released(text, attempt)

    def closing(self, outcome: Outcome) -> Iterable[Any]:
        """See :class:`Output`."""
        return self._known().closing(outcome)

    def whole(self, outcome: Outcome) -> Any:
        """See :class:`Output`."""
        return self._known().whole(outcome)

    def _form_of(self, chunk: Any) -> Output:
        if isinstance(chunk, str):
            return TextOutput()
        if isinstance(chunk, BaseMessage):
            return MessageOutput(self._run_id)
        if isinstance(chunk, Mapping):
            return MappingOutput(self._answer_key)
        raise GenerationTypeError(
            f"the runnable gave a {type(chunk).__name__}, which holds no readable text; end it with a chat model, a "
            "StrOutputParser, or a mapping that has the answer under answer_key=..., or pass structured=True",
            attempt=self._attempt,
        )

    def _known(self) -> Output:
        if self._form is None:
            self._form = MessageOutput(self._run_id) if gives_messages(self._bound) else TextOutput()
        return self._form


def gives_messages(bound: Runnable[Any, Any]) -> bool:
    """Whether the output type of a runnable is a message."""
    given = bound.OutputType
    kinds = [given, *get_args(given), *(inner for arg in get_args(given) for inner in get_args(arg))]
    return any(isinstance(kind, type) and issubclass(kind, BaseMessage) for kind in kinds)


class TextOutput:
    """Texts."""

    def begin(self, attempt: int) -> None:
        """See :class:`Output`."""

    def read(self, chunk: Any) -> Iterable[Any]:
        """See :class:`Output`."""
        return (chunk,)

    def end(self) -> Iterable[Any]:
        """See :class:`Output`."""
        return ()

    def released(self, text: str, attempt: int) -> Any:
        """See :class:`Output`."""
        return text

    def closing(self, outcome: Outcome) -> Iterable[Any]:
        """See :class:`Output`."""
        return ()

    def whole(self, outcome: Outcome) -> Any:
        """See :class:`Output`."""
        return outcome.text


class MessageOutput:
    """Messages and message chunks.

    Args:
        run_id: Id of the guard's run, for messages that no model made.
    """

    def __init__(self, run_id: str) -> None:
        self._own_id = f"lc_run--{run_id}"
        self._attempts: list[AttemptMessages] = []
        self._stream_id: str | None = None

    def begin(self, attempt: int) -> None:
        """See :class:`Output`."""
        self._attempts.append(AttemptMessages())

    def read(self, chunk: Any) -> Iterable[Any]:
        """See :class:`Output`."""
        if not isinstance(chunk, AIMessage):
            chunk = AIMessageChunk(content=text_of(chunk), id=getattr(chunk, "id", None))
        self._attempts[-1].add(chunk)
        return (read_message(chunk),)

    def end(self) -> Iterable[Any]:
        """See :class:`Output`."""
        return ()

    def released(self, text: str, attempt: int) -> Any:
        """See :class:`Output`."""
        if self._stream_id is None:
            self._stream_id = (self._attempts[attempt - 1].id if attempt else None) or self._own_id
        return AIMessageChunk(content=text, id=self._stream_id)

    def closing(self, outcome: Outcome) -> Iterable[Any]:
        """See :class:`Output`."""
        yield closing_chunk(outcome, self._attempts, id=self._stream_id)

    def whole(self, outcome: Outcome) -> Any:
        """See :class:`Output`."""
        message = accepted_message(outcome, self._attempts)
        return message if message.id else message.model_copy(update={"id": self._own_id})


def read_message(chunk: AIMessage) -> Any:
    """A message as the engine reads it: only text, usage and whether it calls tools."""
    text = chunk.content if isinstance(chunk.content, str) else text_of(chunk.content)
    calls = bool(chunk.tool_calls or chunk.invalid_tool_calls or getattr(chunk, "tool_call_chunks", None))
    if not calls and not chunk.usage_metadata:
        return text
    return {"text": text, "tool_calls": calls, "usage_metadata": chunk.usage_metadata}


class MappingOutput:
    """Mappings: the answer is under a key, or the last message under ``"messages"``.

    Args:
        answer_key: Where the answer is.
    """

    def __init__(self, answer_key: str) -> None:
        self._key = answer_key
        self._attempts: list[dict[str, Any]] = []

    def begin(self, attempt: int) -> None:
        """See :class:`Output`."""
        self._attempts.append({})

    def read(self, chunk: Any) -> Iterator[Any]:
        """See :class:`Output`."""
        chunk = _without_feedback(chunk)
        kept = self._attempts[-1]
        for name, value in chunk.items():
            kept[name] = _added(kept[name], value) if name in kept else value
        if self._key in chunk:
            answer = chunk[self._key]
            yield read_message(answer) if isinstance(answer, AIMessage) else text_of(answer)
        elif chunk.get(_MESSAGES_KEY):
            last = chunk[_MESSAGES_KEY][-1]
            if not isinstance(last, AIMessage):
                raise GenerationTypeError(
                    f"the last message that the runnable gave is a {type(last).__name__} and no answer: a graph inside "
                    "the guard has to run to its end and to end with the message of a model",
                    attempt=len(self._attempts),
                )
            yield read_message(last)

    def end(self) -> Iterable[Any]:
        """See :class:`Output`."""
        if self._key not in self._attempts[-1] and not self._attempts[-1].get(_MESSAGES_KEY):
            raise GenerationTypeError(
                f"the runnable gave a mapping without {self._key!r}: name the key of the answer with answer_key=...",
                attempt=len(self._attempts),
            )
        return ()

    def released(self, text: str, attempt: int) -> Any:
        """See :class:`Output`."""
        kept = self._attempts[attempt - 1] if attempt else {}
        return AddableDict({self._key: text}) if isinstance(kept.get(self._key, ""), str) and not self._state else None

    def closing(self, outcome: Outcome) -> Iterable[Any]:
        """See :class:`Output`."""
        whole = self.whole(outcome)
        text_was_sent = isinstance(whole.get(self._key), str) and not self._state
        rest = {name: value for name, value in whole.items() if name != self._key or not text_was_sent}
        return [AddableDict(rest)] if rest else []

    def whole(self, outcome: Outcome) -> Any:
        """See :class:`Output`."""
        number = outcome.delivered_attempt
        kept = {} if number is None or outcome.status is OutcomeStatus.REFUSED else self._attempts[number - 1]
        if self._state:
            return {**kept, _MESSAGES_KEY: [*kept.get(_MESSAGES_KEY, [])[:-1], _answer(outcome, kept, _MESSAGES_KEY)]}
        if isinstance(self._attempts[-1].get(self._key) if self._attempts else None, BaseMessage):
            return {**kept, self._key: _answer(outcome, kept, self._key)}
        return {**kept, self._key: outcome.text}

    @property
    def _state(self) -> bool:
        """Whether this is the state of a graph: the answer is its last message."""
        return any(self._key not in kept and _MESSAGES_KEY in kept for kept in self._attempts)


def _answer(outcome: Outcome, kept: Mapping[str, Any], key: str) -> AIMessage:
    given = kept.get(key)
    last = given[-1] if isinstance(given, list) and given else given
    attempt = AttemptMessages()
    if isinstance(last, AIMessage):
        attempt.add(last)
    return accepted_message(outcome, [attempt] * max(1, outcome.delivered_attempt or 1))


def _without_feedback(chunk: Mapping[str, Any]) -> Mapping[str, Any]:
    """What later attempts were told of failed claims is not part of an answer, also if a chain passes its input on."""
    told = {name: value for name, value in chunk.items() if name != FAILED_CLAIMS_KEY}
    messages = told.get(_MESSAGES_KEY)
    if isinstance(messages, list):
        told[_MESSAGES_KEY] = [m for m in messages if not str(getattr(m, "id", "")).startswith(FEEDBACK_ID)]
    return told


def _added(before: Any, value: Any) -> Any:
    try:
        return before + value
    except TypeError:
        return value
