"""Stand-ins for models: an encoder with whitespace tokens and chosen logits, and code that blocks a thread."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

NLI = {0: "contradiction", 1: "entailment", 2: "neutral"}


class StubTokenizer:
    """One token per word, three special tokens per pair."""

    is_fast = True

    def __init__(self, max_tokens: int) -> None:
        self.model_max_length = max_tokens

    def __call__(self, text: str, **_: Any) -> dict[str, list[tuple[int, int]]]:
        return {"offset_mapping": [match.span() for match in re.finditer(r"\S+", text)]}

    def num_special_tokens_to_add(self, pair: bool = False) -> int:
        return 3 if pair else 2


class StubEncoder:
    """Records the pairs it is given."""

    def __init__(
        self,
        logits: Callable[[str, str], Sequence[float]],
        id2label: Mapping[int, str] = NLI,
        max_tokens: int = 512,
    ) -> None:
        self._logits = logits
        self.config = SimpleNamespace(id2label=dict(id2label))
        self.tokenizer = StubTokenizer(max_tokens)
        self.seen: list[tuple[str, str]] = []

    def predict(self, pairs: list[tuple[str, str]], **_: Any) -> np.ndarray:
        self.seen.extend(pairs)
        return np.array([self._logits(premise, hypothesis) for premise, hypothesis in pairs], dtype=np.float32)


class Blocker:
    """Occupies the thread that calls it until it is released."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.released = threading.Event()

    def __call__(self) -> str:
        self.entered.set()
        self.released.wait(60)
        return "late"

    async def running(self) -> None:
        """Wait until it has been called."""
        await asyncio.to_thread(self.entered.wait, 60)
