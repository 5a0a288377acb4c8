"""Scores in Redis, so that replicas and attempts do not score the same pair twice."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from weakref import WeakKeyDictionary

from guardrail._version import __version__
from guardrail.errors import ConfigurationError
from guardrail.protocols import Pair, SelectiveEntailment
from guardrail.redis_store import RedisStore, StoreUnavailableError
from guardrail.scoring.entailment.adapt import as_entailment
from guardrail.scoring.entailment.declared import Declares
from guardrail.scoring.entailment.identity import fingerprint_of, identity
from guardrail.scoring.entailment.in_flight import InFlight
from guardrail.scoring.entailment.lexical import LexicalEntailment
from guardrail.scoring.entailment.local import LocalEntailment
from guardrail.scoring.entailment.onnx import default_entailment
from guardrail.scoring.entailment.remote import RemoteEntailment
from guardrail.scoring.entailment.shared_entries import Entries, pack, unpack
from guardrail.scoring.entailment.worker import shared_worker
from guardrail.types import EntailmentScore

_log = logging.getLogger("guardrail")

_MAX_PENDING = 64  # writes on their way, per event loop; a call more than that does without
_MAX_TTL_S = 365 * 24 * 3600.0
_MAX_NAME = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheCounts:
    """What a cache has done in this process so far, in pairs unless said otherwise.

    Attributes:
        hits: Found in Redis.
        misses: Asked of the model because Redis did not have them.
        damaged: Found in Redis, and no scores; they are among the misses.
        unread: Asked of the model because Redis could not be asked.
        unwritten: Scored, and not stored because Redis could not be asked, too many writes were on their way, or a
            judge had decided the score.
    """

    hits: int = 0
    misses: int = 0
    damaged: int = 0
    unread: int = 0
    unwritten: int = 0


class SharedCache(Declares):
    """An entailment model whose scores are kept in Redis, for all processes that use the same model.

    It takes the place of the model: verdicts, declared languages and calibration are those of the model, and so is the
    name in verdicts. One round trip reads what is known of a call. The rest is scored by the model and stored after
    the answer, in the background.

    **What is stored**: hashes of (premise, claim, model) and up to three numbers. No text, although somebody who reads
    the store can tell whether a text that he already has was checked. Whoever can write to the store can change
    verdicts: protect it as you protect the model.

    **What tells models apart**: never their name. :class:`OnnxEntailment` and :class:`CrossEncoderEntailment` hash
    their weights, tokeniser, labels and calibration. A model of your own may have a method ``fingerprint()`` (see
    :class:`~guardrail.scoring.entailment.identity.Fingerprinted`); without one its ``model_id`` counts, which then must
    change when the weights do. A :class:`RemoteEntailment` does not know which weights answer: it needs ``version``.
    Releases of this package do not share scores either.

    **When Redis is down, slow or wrong**, the model is asked as if there were no cache, and after the first failures
    without waiting for Redis. Damaged values are ignored, scored and stored again. No run ends in an error for it.

    **Bounds**: an entry lives for ``ttl_s`` and there are at most ``max_entries``; the oldest leave first. An entry
    takes about 300 bytes of Redis. At most 64 writes per event loop are on their way.

    A model in this process also remembers scores itself (``cache_entries``); what it remembers is not asked of Redis.
    It is loaded at the first use, also if Redis knows every score, because what it declares is part of verdicts. A
    model of your own that declares something only when it is loaded should load itself in ``fingerprint()``.

    Args:
        entailment: The model: whatever ``Guardrail(entailment=…)`` takes; ``None`` is the embedded model. Word overlap
            (:class:`LexicalEntailment`) costs less than a round trip and is refused, and so is a cascade, whose scores
            depend on the run: the cache belongs around its model.
        url_or_store: Address of a Redis, as for a limiter (``"redis://localhost:6379/0"``), or a
            :class:`~guardrail.redis_store.RedisStore` to use; closing that stays with the caller.
        ttl_s: Seconds until a score is forgotten, at least 1.
        max_entries: Most scores to keep under this name, over all models and processes.
        name: Caches with different names in one Redis do not see each other.
        timeout_s: Most seconds to wait for an answer of Redis, and for a connection; for an address only.
        version: What else tells the model apart. Change it when the weights behind a remote address change.

    Raises:
        ConfigurationError: If one of them cannot be used.
        MissingExtraError: If the extra ``redis`` is not installed.

    One cache serves any number of event loops and threads. Close it in each loop (:meth:`aclose`, or ``async with``)
    to wait for the last writes.

    Example:
        >>> cached = SharedCache(lambda pairs: [0.9] * len(pairs), "redis://localhost:6379/0", version="2026-11")
        >>> cached.model_id
        '<lambda>'
        >>> asyncio.run(cached.score([]))
        []
    """

    def __init__(
        self,
        entailment: Any,
        url_or_store: str | RedisStore,
        *,
        ttl_s: float = 3600.0,
        max_entries: int = 100_000,
        name: str = "guardrail",
        timeout_s: float = 0.1,
        version: str = "",
    ) -> None:
        self._model = default_entailment() if entailment is None else as_entailment(entailment)
        self._given = self._model if entailment is None else entailment
        if isinstance(self._model, LexicalEntailment):
            raise ConfigurationError(
                "SharedCache is for models: word overlap costs less than asking Redis. Use it without a cache"
            )
        if isinstance(self._model, SelectiveEntailment):
            raise ConfigurationError(
                "SharedCache cannot keep the scores of a cascade, which depend on budgets and deadlines of one run: "
                "put the cache around its model, Cascade(judge, model=SharedCache(...))"
            )
        if not isinstance(version, str):
            raise ConfigurationError(f"version must be a str, not {type(version).__name__}")
        if isinstance(self._model, RemoteEntailment) and not version:
            raise ConfigurationError(
                "SharedCache cannot know which weights answer at a remote address: give it a version, such as "
                'version="2026-11", and another one when they change'
            )
        self._version = version
        self._entries = Entries(_name(name), ttl_ms=_ttl_ms(ttl_s), max_entries=_bound(max_entries))
        self._owns_store = isinstance(url_or_store, str)
        self._store: RedisStore = (
            RedisStore(url_or_store, timeout_s=timeout_s, connect_timeout_s=timeout_s)
            if isinstance(url_or_store, str)
            else url_or_store
        )
        self._memory = self._model.memory if isinstance(self._model, LocalEntailment) else None
        self._fingerprint: str | None = None
        self._ready = False
        self._per_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopState] = WeakKeyDictionary()
        self._counted = dict.fromkeys(CacheCounts.__slots__, 0)
        self._warned = False

    @property
    def model_id(self) -> str:
        """Name of the model, as without a cache."""
        return self._model.model_id

    @property
    def behind(self) -> Any:
        """The model, as it was given."""
        return self._given

    @property
    def counts(self) -> CacheCounts:
        """What it has done in this process so far."""
        return CacheCounts(**self._counted)

    def load(self) -> None:
        """Ask the model for its fingerprint now, in the calling thread, for which it is loaded; Redis is not asked.

        Raises:
            ScoringError: If its fingerprint is none.
            ModelLoadError: If it cannot be loaded.
        """
        self._fingerprint = fingerprint_of(self._given, self._model)
        self._ready = True

    async def score(self, pairs: Sequence[Pair]) -> list[EntailmentScore]:
        """Score pairs, in order; see :class:`~guardrail.protocols.Entailment`.

        Raises:
            ScoringError: If the model cannot score a pair that Redis does not have.

        Cancellation ends the question to Redis and to the model; nothing of the call is stored. Writes of earlier calls
        are not affected.
        """
        asked = [Pair(premise, hypothesis) for premise, hypothesis in pairs]
        if not asked:
            return []
        if not self._ready:
            await shared_worker().run(self.load)
        scores = self._memory.find(asked) if self._memory is not None else {}
        missing = [pair for pair in dict.fromkeys(asked) if pair not in scores]
        if missing:
            keys = dict(zip(missing, self._entries.keys(self._identity(), missing), strict=True))
            scores |= await self._shared(keys)
        return [scores[pair] for pair in asked]

    async def aclose(self) -> None:
        """Wait for the writes of the running event loop, then close its connections and those of the model.

        The next :meth:`score` opens new ones. A store that was given stays open. Waiting takes no longer than Redis may
        take for an answer; on cancellation the writes go on.
        """
        while pending := self._state().writes:
            await asyncio.wait(pending)
        if self._owns_store:
            await self._store.aclose()
        close = getattr(self._given, "aclose", None) or getattr(self._model, "aclose", None)
        if callable(close):
            await close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    def _identity(self) -> str:
        if self._fingerprint is not None:
            return identity(__version__, self._version, "fingerprint", self._fingerprint)
        name = getattr(self._given, "model_id", None)  # asked every time: a model may be replaced while it is in use
        return identity(__version__, self._version, "model_id", name if isinstance(name, str) else self.model_id)

    async def _shared(self, keys: Mapping[Pair, str]) -> dict[Pair, EntailmentScore]:
        if self._memory is not None and self._memory.entries:
            return await self._read_or_score(keys)  # the model itself scores once for all, and lets callers take turns

        async def ask(pairs: list[Pair]) -> list[EntailmentScore]:
            found = await self._read_or_score({pair: keys[pair] for pair in pairs})
            return [found[pair] for pair in pairs]

        return await self._state().in_flight.through(keys, ask)

    async def _read_or_score(self, keys: Mapping[Pair, str]) -> dict[Pair, EntailmentScore]:
        try:
            scores = await self._read(keys)
        except StoreUnavailableError as error:
            self._failed("unread", len(keys), error.reason)
            return dict(zip(keys, await self._model.score(list(keys)), strict=True))
        if self._memory is not None:
            self._memory.put(scores)
        rest = [pair for pair in keys if pair not in scores]
        if rest:
            fresh = dict(zip(rest, await self._model.score(rest), strict=True))
            kept = {keys[pair]: pack(score) for pair, score in fresh.items() if not score.judged}
            if len(kept) < len(fresh):  # a cascade behind an adapter
                self._failed("unwritten", len(fresh) - len(kept), "what a judge decided holds for one run only")
            if kept:
                self._write_later(kept)
            scores |= fresh
        return scores

    async def _read(self, keys: Mapping[Pair, str]) -> dict[Pair, EntailmentScore]:
        values = await self._store.command("MGET", *keys.values())
        if not isinstance(values, list) or len(values) != len(keys):
            values = [None] * len(keys)
        read = {pair: unpack(value) for pair, value in zip(keys, values, strict=True)}
        scores = {pair: score for pair, score in read.items() if score is not None}
        self._counted["hits"] += len(scores)
        self._counted["misses"] += len(keys) - len(scores)
        self._counted["damaged"] += sum(value is not None for value in values) - len(scores)
        return scores

    def _write_later(self, values: Mapping[str, bytes]) -> None:
        writes = self._state().writes
        if len(writes) >= _MAX_PENDING:
            self._failed("unwritten", len(values), "too many writes are on their way")
            return
        # A context of its own: a write outlives the run, and its spans do not belong to it.
        task = asyncio.get_running_loop().create_task(self._write(values), context=contextvars.Context())
        writes.add(task)
        task.add_done_callback(writes.discard)

    async def _write(self, values: Mapping[str, bytes]) -> None:
        calls = self._entries.calls(values)
        try:
            try:
                await self._store.call(calls)
            except asyncio.CancelledError:
                # Only the end of the event loop cancels a write, and that waits for it: asyncio.run() of one answer
                # would otherwise never store a score.
                await self._store.call(calls)
                raise
        except StoreUnavailableError as error:
            self._failed("unwritten", len(values), error.reason)
        except Exception as error:  # nobody waits for this task: said here or nowhere
            self._failed("unwritten", len(values), type(error).__name__)

    def _failed(self, what: str, pairs: int, reason: str) -> None:
        self._counted[what] += pairs
        if not self._warned:
            self._warned = True
            _log.warning("the shared cache of scores cannot be used (%s); from here on this is only counted", reason)

    def _state(self) -> _LoopState:
        loop = asyncio.get_running_loop()
        state = self._per_loop.get(loop)
        if state is None:
            state = self._per_loop[loop] = _LoopState()
        return state


class _LoopState:
    """What belongs to one event loop."""

    def __init__(self) -> None:
        self.in_flight = InFlight()
        self.writes: set[asyncio.Task[None]] = set()


def _ttl_ms(ttl_s: float) -> int:
    if isinstance(ttl_s, bool) or not isinstance(ttl_s, int | float) or not 1 <= ttl_s <= _MAX_TTL_S:
        raise ConfigurationError(f"ttl_s must be a number of seconds from 1 to {_MAX_TTL_S:.0f}, got {ttl_s!r}")
    return math.ceil(ttl_s * 1000)


def _bound(max_entries: int) -> int:
    if isinstance(max_entries, bool) or not isinstance(max_entries, int) or max_entries < 1:
        raise ConfigurationError(f"max_entries must be an integer of at least 1, got {max_entries!r}")
    return max_entries


def _name(name: str) -> str:
    if not isinstance(name, str) or not 0 < len(name) <= _MAX_NAME or not name.isprintable() or set(name) & set("{}"):
        raise ConfigurationError(
            f"name must be a str of 1 to {_MAX_NAME} printable characters without braces, got {name!r}"
        )
    return name
