"""One turn of a conversation as the generator of a guarded run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager, closing
from typing import Any, NoReturn, TypeVar

from langchain_core.exceptions import ModelRefusalError
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolMessage

from guardrail import GenerationError, GenerationRequest, GuardrailError, InputError, Outcome
from guardrail_langchain.attempt_callbacks import FEEDBACK_ID, is_signal
from guardrail_langchain.closing import close_watched, watch
from guardrail_langchain.context import feedback
from guardrail_langchain.leaves import leaf_text, structured_value
from guardrail_langchain.messages import METADATA_KEY, AttemptMessages, accepted_message, outcome_metadata, text_of
from guardrail_langchain.outputs import read_message

T = TypeVar("T")
_DOCUMENT_TEXTS = ("page_content", "text", "content")


class Turn:
    """The attempts of one turn: what the model said, attempt by attempt, and whether it calls a tool.

    A turn in which the model calls a tool is not an answer: nothing of it is guarded, and the reader gets it as it is.

    Args:
        messages: The conversation so far.
        whole: Whether nothing is read by anybody before an attempt is complete. Then a turn that calls a tool is known
            before the engine sees any of its text.
        is_structured: Whether the message of an attempt is a structured answer, which is checked value by value, even
            if it has the form of a tool call.

    Attributes:
        attempts: The chunks of every attempt.
        tool_turn: The attempt that calls a tool, if one does.
        ended: Whether the last attempt was read to its end.
        raised: What the model raised, untouched.
    """

    def __init__(
        self,
        messages: Sequence[BaseMessage],
        *,
        whole: bool,
        is_structured: Callable[[AIMessage], bool] = lambda message: False,
    ) -> None:
        self.attempts: list[AttemptMessages] = []
        self.tool_turn: AttemptMessages | None = None
        self.ended = False
        self.raised: Exception | None = None
        self.whole = whole
        self._messages = list(messages)
        self._is_structured = is_structured
        self._read_ahead: list[AIMessage] | None = None

    def read_ahead(self, chunks: Sequence[AIMessage]) -> bool:
        """Hand over the first attempt, read before the run began.

        Args:
            chunks: All of it.

        Returns:
            Whether it calls a tool, so that there is nothing to guard.
        """
        self._read_ahead = list(chunks)
        attempt = AttemptMessages()
        for chunk in chunks:
            attempt.add(chunk)
        message = attempt.message()
        if calls_tools(message) and not self._is_structured(message):
            self.tool_turn = attempt
        return self.tool_turn is not None

    def generator(self, call: Callable[[int, list[BaseMessage]], Any]) -> Any:
        """The turn as an asynchronous generator function.

        Args:
            call: Calls the model: attempt and messages → an asynchronous generator of chunks.
        """

        async def generate(request: GenerationRequest) -> AsyncIterator[Any]:
            if self.tool_turn is not None:  # there is nothing to try again
                return
            attempt = self._begin()
            try:
                if request.attempt == 1 and self._read_ahead is not None:
                    for item in self._items(attempt, self._read_ahead):
                        yield item
                    return
                kept: list[AIMessage] = []
                async with aclosing(call(request.attempt, self._messages_for(request))) as chunks:
                    async for chunk in chunks:
                        if self.whole:
                            kept.append(chunk)
                        else:
                            for item in self._live(attempt, chunk):
                                yield item
                for item in self._items(attempt, kept):
                    yield item
            except Exception as error:
                self._failed(error)
                raise

        return generate

    def sync_generator(self, call: Callable[[int, list[BaseMessage]], Any]) -> Any:
        """The turn as a synchronous generator function; ``call`` gives a generator of chunks."""

        def generate(request: GenerationRequest) -> Iterator[Any]:
            if self.tool_turn is not None:  # there is nothing to try again
                return
            attempt = self._begin()
            try:
                if request.attempt == 1 and self._read_ahead is not None:
                    yield from self._items(attempt, self._read_ahead)
                    return
                kept: list[AIMessage] = []
                with closing(call(request.attempt, self._messages_for(request))) as chunks:
                    for chunk in chunks:
                        if self.whole:
                            kept.append(chunk)
                        else:
                            yield from self._live(attempt, chunk)
                yield from self._items(attempt, kept)
            except Exception as error:
                self._failed(error)
                raise

        return generate

    def message(self, outcome: Outcome) -> AIMessage:
        """What the reader gets, as a whole.

        Raises:
            Exception: What steers LangGraph, and a refusal that the model itself raised: as they are.
        """
        self.raise_signals()
        if self.tool_turn is not None:
            return self.tool_turn.message()
        number = outcome.delivered_attempt
        if number is not None and self._is_structured(message := self.attempts[number - 1].message()):
            metadata = {**message.response_metadata, METADATA_KEY: outcome_metadata(outcome)}
            return message.model_copy(update={"response_metadata": metadata})
        return accepted_message(outcome, self.attempts)

    def raise_signals(self) -> None:
        """Exceptions that are no failures of an attempt go on to the caller."""
        if self.raised is not None and (is_signal(self.raised) or isinstance(self.raised, ModelRefusalError)):
            raise self.raised

    def reraise(self, error: GuardrailError) -> NoReturn:
        """Raise what the model raised, so that retries and fallbacks around the guard recognise it."""
        if isinstance(error, GenerationError) and self.raised is not None:
            raise self.raised from None
        raise error

    def _begin(self) -> AttemptMessages:
        attempt = AttemptMessages()
        self.attempts.append(attempt)
        self.ended = False
        return attempt

    def _items(self, attempt: AttemptMessages, chunks: Sequence[AIMessage]) -> Iterator[Any]:
        """A complete attempt for the engine."""
        self.ended = True
        for chunk in chunks:
            attempt.add(chunk)
        message = attempt.message()
        if chunks and self._is_structured(message):
            text = leaf_text(structured_value(message))
            yield {"text": text, "as_is": True, "usage_metadata": message.usage_metadata}
            return
        if calls_tools(message):
            self.tool_turn = attempt
            yield {"text": "", "tool_calls": True, "usage_metadata": message.usage_metadata}
            return
        for chunk in chunks:
            yield read_message(chunk)

    def _live(self, attempt: AttemptMessages, chunk: AIMessage) -> Iterator[Any]:
        """A chunk for the engine while the attempt goes on; what follows the beginning of a tool call is not judged."""
        attempt.add(chunk)
        if self.tool_turn is None and calls_tools(chunk):
            self.tool_turn = attempt
        if self.tool_turn is None:
            yield read_message(chunk)
        else:
            yield {"text": "", "tool_calls": True, "usage_metadata": chunk.usage_metadata}

    def _messages_for(self, request: GenerationRequest) -> list[BaseMessage]:
        if request.attempt == 1:
            return self._messages
        note = feedback(request, with_passages=True)
        return [*self._messages, HumanMessage(note, id=f"{FEEDBACK_ID}-{request.attempt}")] if note else self._messages

    def _failed(self, error: Exception) -> None:
        if not isinstance(error, GuardrailError):
            self.raised = error


@asynccontextmanager
async def closing_layers(stream: AsyncIterator[T]) -> AsyncIterator[AsyncIterator[T]]:
    """Close a stream of LangChain together with the streams inside it, which LangChain drops instead of closing."""
    begun = watch()
    ended = False
    try:
        async with aclosing(stream) as opened:  # type: ignore[type-var]
            yield opened
        ended = True
    finally:
        if not ended:
            await close_watched(begun)


def calls_tools(message: AIMessage) -> bool:
    """Whether a message or a chunk has a tool call or a part of one."""
    return bool(message.tool_calls or message.invalid_tool_calls or getattr(message, "tool_call_chunks", None))


def rest_of_tool_turn(message: AIMessage, sent: str) -> AIMessageChunk:
    """A turn that calls a tool, as the last chunk of a stream.

    Args:
        message: The whole turn.
        sent: Text that the reader already has.

    Returns:
        The rest of its text and everything else. If the reader has text of another attempt, no more text follows.
    """
    text = text_of(message)
    rest = text[len(sent) :] if text.startswith(sent) else ""
    content: str | list[Any] = rest
    if isinstance(message.content, list):
        others = [block for block in message.content if not isinstance(block, str) and block.get("type") != "text"]
        content = [{"type": "text", "text": rest}, *others] if rest else others
    fields = {k: v for k, v in message.__dict__.items() if k not in ("type", "content")}
    return AIMessageChunk(content=content, chunk_position="last", **fields)


def question_in(messages: Sequence[BaseMessage]) -> str:
    """What the user asked: the last human message with text.

    Raises:
        InputError: If there is none.
    """
    for message in reversed(messages):
        if isinstance(message, HumanMessage) and (text := text_of(message)).strip():
            return text
    raise InputError("there is no human message with text in the conversation: the guard needs the user's question")


def tool_results(messages: Sequence[BaseMessage]) -> list[Any] | None:
    """What tools found in this turn: the passages to check an answer against.

    Args:
        messages: The conversation; the turn begins after its last human message.

    Returns:
        The documents of tools that give them as an artifact, the text of other results; ``None`` if no tool was called.
        Failed calls are left out.
    """
    start = max((i for i, m in enumerate(messages) if isinstance(m, HumanMessage)), default=-1) + 1
    results = [m for m in messages[start:] if isinstance(m, ToolMessage)]
    if not results:
        return None
    found: list[Any] = []
    for result in results:
        if result.status == "success":
            found.extend(_documents(result.artifact) or ([text_of(result)] if text_of(result).strip() else []))
    return found


def _documents(artifact: Any) -> list[Any]:
    items = artifact if isinstance(artifact, (list, tuple)) else [artifact]
    return [item for item in items if any(isinstance(getattr(item, name, None), str) for name in _DOCUMENT_TEXTS)]


def joined_context(*sources: Any) -> list[Any] | None:
    """Everything there is to check against; ``None`` if no source has anything to say."""
    found: list[Any] = []
    given = False
    for source in sources:
        if source is None:
            continue
        given = True
        found.extend(source if isinstance(source, (list, tuple)) else [source])
    return found if given else None
