"""Bound arguments and configurations around a guard, closed with the stream that is read from them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any, cast

from langchain_core.runnables import Runnable, RunnableBinding, RunnableConfig, RunnableSerializable


class ClosingBinding(RunnableBinding[Any, Any]):
    """A binding whose streams close the stream inside before ``aclose()`` returns; that of langchain-core drops it."""

    @classmethod
    def is_lc_serializable(cls) -> bool:
        """Not: what is inside is not either."""
        return False

    async def astream(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> AsyncIterator[Any]:
        """As the runnable inside, with what is bound."""
        inside: Any = self.bound.astream(input, self._merge_configs(config), **{**self.kwargs, **kwargs})
        async with aclosing(inside) as stream:
            async for piece in stream:
                yield piece

    async def atransform(
        self, input: AsyncIterator[Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[Any]:
        """As the runnable inside, with what is bound."""
        inside: Any = self.bound.atransform(input, self._merge_configs(config), **{**self.kwargs, **kwargs})
        async with aclosing(inside) as stream:
            async for piece in stream:
                yield piece


class BindsClosing(RunnableSerializable[Any, Any]):
    """A runnable whose bindings are closed with it."""

    def bind(self, **kwargs: Any) -> Runnable[Any, Any]:
        """As every runnable."""
        return ClosingBinding(bound=self, kwargs=kwargs, config={})

    def with_config(self, config: RunnableConfig | None = None, **kwargs: Any) -> Runnable[Any, Any]:
        """As every runnable."""
        return ClosingBinding(bound=self, config=cast(RunnableConfig, {**(config or {}), **kwargs}), kwargs={})
