"""Guards for LangChain and LangGraph: runnables, chat models and agents whose answers are checked while they stream."""

import importlib
import typing

from guardrail_langchain.chat_model import GuardedChatModel
from guardrail_langchain.runnable import GuardedRunnable

if typing.TYPE_CHECKING:
    from guardrail_langchain.middleware import GroundednessMiddleware

__all__ = ["GroundednessMiddleware", "GuardedChatModel", "GuardedRunnable"]

# Loaded when they are first named: langchain.agents takes a second to import, and chains do not need it.
_LATE = {"GroundednessMiddleware": "guardrail_langchain.middleware"}


def __getattr__(name: str) -> typing.Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_LATE[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE})
