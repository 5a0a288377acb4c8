"""Structured answers: every string and number of a value is checked, and the value is given or refused as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from langchain_core.exceptions import ModelRefusalError
from langchain_core.messages import AIMessage
from langchain_core.runnables import AddableDict
from langchain_core.utils.json import parse_json_markdown
from pydantic import BaseModel

from guardrail import GenerationTypeError, Outcome, OutcomeStatus
from guardrail_langchain.leaves import leaf_text, structured_value
from guardrail_langchain.messages import AttemptMessages, accepted_message, refusal_message


class StructuredOutput:
    """Reads JSON texts, messages with JSON or a tool call, mappings, lists and pydantic models.

    Each value is checked as a claim that is named by the keys that lead to it; keys are never touched.
    """

    def __init__(self) -> None:
        self._attempts: list[Any] = []

    def begin(self, attempt: int) -> None:
        """See :class:`~guardrail_langchain.outputs.Output`."""
        self._attempts.append(None)

    def read(self, chunk: Any) -> Iterable[Any]:
        """Keep a chunk: nothing is known of a structure before its end."""
        before = self._attempts[-1]
        if isinstance(chunk, AIMessage):
            message = before or AttemptMessages()
            message.add(chunk)
            self._attempts[-1] = message
        elif before is not None and isinstance(chunk, (str, AddableDict)):
            self._attempts[-1] = before + chunk
        else:  # parsers stream what they have so far, each time from the beginning
            self._attempts[-1] = chunk
        return ()

    def end(self) -> Iterable[Any]:
        """The leaves of the attempt, as text."""
        value = self._plain(self._attempts[-1])
        if not isinstance(value, (Mapping, list)):
            raise GenerationTypeError(
                "the runnable gave no structured value: with structured=True it has to give JSON, a mapping, a list "
                "or a pydantic model",
                attempt=len(self._attempts),
            )
        return ({"text": leaf_text(value), "as_is": True},)

    def released(self, text: str, attempt: int) -> Any:
        """Nothing: a value is given as a whole."""
        return None

    def closing(self, outcome: Outcome) -> Iterable[Any]:
        """See :class:`~guardrail_langchain.outputs.Output`."""
        return (self.whole(outcome),)

    def whole(self, outcome: Outcome) -> Any:
        """The value of the delivered attempt, as the runnable gave it.

        Raises:
            ModelRefusalError: If the run was refused: what needs a structure cannot use a text.
        """
        number = outcome.delivered_attempt
        if number is None or outcome.status is OutcomeStatus.REFUSED:
            raise ModelRefusalError(outcome.text, raw_message=refusal_message(outcome))
        given = self._attempts[number - 1]
        if not isinstance(given, AttemptMessages):
            return given
        told = accepted_message(outcome, [given] * number).response_metadata
        return given.message().model_copy(update={"response_metadata": told})

    @staticmethod
    def _plain(given: Any) -> Any:
        if isinstance(given, AttemptMessages):
            return structured_value(given.message())
        if isinstance(given, BaseModel):
            return given.model_dump(mode="json")
        if not isinstance(given, str):
            return given
        try:
            return parse_json_markdown(given)
        except ValueError:
            return None
