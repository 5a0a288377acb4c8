"""A retriever that the guard asks by itself: once for the question, and more widely for claims that failed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig

from guardrail import FailedClaim, Guardrail, Passage, Reranker, RerankingError
from guardrail.rerank import FailureDirectedReranker

_DEFAULT_K = 4
_CLAIMS_ASKED = 3


def widened(retriever: Any, factor: int) -> Any:
    """The same retriever with a larger k.

    Args:
        retriever: A retriever with ``search_kwargs`` (vector stores), or with a field ``k`` or ``top_k``.
        factor: How many times as many documents it is asked for.

    Returns:
        A copy; the retriever itself if it has none of these, which is then asked with other words only.
    """
    if isinstance(getattr(retriever, "search_kwargs", None), dict):
        asked = {**retriever.search_kwargs, "k": factor * retriever.search_kwargs.get("k", _DEFAULT_K)}
        return retriever.model_copy(update={"search_kwargs": asked})
    for name in ("k", "top_k"):
        k = getattr(retriever, name, None)
        if isinstance(k, int) and hasattr(retriever, "model_copy"):
            return retriever.model_copy(update={name: factor * k})
    return retriever


class Retrieval:
    """The documents of one run. After a failure it is the reranker of the run.

    Args:
        retriever: The retriever.
        config: The configuration of the first call.
        config_for: The configuration of calls for an attempt; their queries hold what was rejected.
        reranker: Chooses from all documents when asking again has found nothing new.
        widen: Gives the retriever for a round: ``(retriever, factor) -> retriever``.
        blocking: Whether to call the synchronous methods of the retriever.
    """

    def __init__(
        self,
        retriever: Runnable[str, list[Document]],
        config: RunnableConfig,
        config_for: Callable[[int], RunnableConfig],
        reranker: Reranker,
        widen: Callable[[Any, int], Any] = widened,
        *,
        blocking: bool = False,
    ) -> None:
        self._retriever = retriever
        self._config = config
        self._config_for = config_for
        self._reranker = reranker
        self._widen = widen
        self._blocking = blocking
        self._loop = asyncio.get_running_loop()
        self._texts: set[str] = set()
        self._found = 0

    async def first(self, question: str) -> list[Document]:
        """Ask for the question."""
        if self._blocking:
            documents = list(await asyncio.to_thread(self._retriever.invoke, question, self._config))
        else:
            documents = list(await self._retriever.ainvoke(question, self._config))
        self._texts = {document.page_content for document in documents}
        return documents

    def next_context(
        self,
        *,
        question: str,
        passages: Sequence[Passage],
        shown: Sequence[Passage],
        failed: Sequence[FailedClaim],
        tried: Sequence[tuple[str, ...]],
    ) -> tuple[Passage, ...] | None:
        """Ask again, with a larger k, for the question and the claims that failed; what is new comes first.

        The engine calls this in a thread; a retriever that does not block runs where the guard runs.

        Raises:
            RerankingError: If the retriever fails.
        """
        queries = [question, *dict.fromkeys(claim.text.strip() for claim in failed[:_CLAIMS_ASKED])]
        attempt = len(tried) + 1
        try:
            new = self._as_new_passages(self._more(queries, attempt))
        except Exception as error:
            raise RerankingError(f"the retriever raised {type(error).__name__}") from error
        if new:
            self._found += len(new)
            return (*new, *shown)
        return self._reranker.next_context(
            question=question, passages=passages, shown=shown, failed=failed, tried=tried
        )

    def _more(self, queries: Sequence[str], attempt: int) -> list[Document]:
        if self._blocking:
            retriever, config = self._widen(self._retriever, attempt), self._config_for(attempt)
            return [document for query in queries for document in retriever.invoke(query, config)]
        more: Future[list[Document]] = asyncio.run_coroutine_threadsafe(self._ask(queries, attempt), self._loop)
        return more.result()

    async def _ask(self, queries: Sequence[str], attempt: int) -> list[Document]:
        retriever = self._widen(self._retriever, attempt)
        config = self._config_for(attempt)
        answers = await asyncio.gather(*(retriever.ainvoke(query, config) for query in queries))
        return [document for documents in answers for document in documents]

    def _as_new_passages(self, documents: Sequence[Document]) -> list[Passage]:
        new: list[Passage] = []
        for document in documents:
            text = document.page_content
            if text not in self._texts and any(character.isalnum() for character in text):
                self._texts.add(text)
                number = self._found + len(new) + 1
                new.append(
                    Passage(id=f"retrieved-{number}", text=text, metadata=dict(document.metadata), source=document)
                )
        return new


def guard_of_run(guard: Guardrail, settings: dict[str, Any], retrieval: Retrieval) -> Guardrail:
    """The guard of one run that retrieves again: the same settings, its own passages.

    Args:
        guard: The guard.
        settings: What it was made from.
        retrieval: The documents of the run.

    Returns:
        A guard that shares models, limits and budgets with the first.
    """
    own = Guardrail(**{**settings, "reranker": retrieval})
    own.verifier = guard.verifier
    return own


def reranker_of(settings: dict[str, Any], context_size: int | None) -> Reranker:
    """The reranker that was asked for, or the default one."""
    chosen: Reranker = settings["reranker"] or FailureDirectedReranker(context_size=context_size)
    return chosen
