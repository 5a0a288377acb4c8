"""Models for tests of judges: they read the data out of a prompt and answer by script."""

from __future__ import annotations

import asyncio
import json
import re


def data(prompt: str) -> dict[str, str]:
    """What a prompt carries."""
    return json.loads(re.search(r"^DATA \w+\n(.*)\nEND ", prompt, re.MULTILINE)[1])


class Model:
    """An async model that answers by claim, holds its answers back if told to, and counts."""

    def __init__(self, answer="NO", *, held=False):
        self.answer = answer
        self.asked: list[tuple[str, str]] = []
        self.cancelled = 0
        self.begun = asyncio.Event()
        self.release = asyncio.Event()
        if not held:
            self.release.set()

    async def __call__(self, prompt):
        texts = data(prompt)
        self.asked.append((texts["evidence"], texts["claim"]))
        self.begun.set()
        try:
            await self.release.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        said = self.answer(texts["evidence"], texts["claim"]) if callable(self.answer) else self.answer
        if isinstance(said, BaseException):
            raise said
        return said
