"""What the models that run in this process share: loading once, a cache, turns in a worker."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence

from guardrail.protocols import Pair
from guardrail.scoring.entailment.cache import ScoreCache
from guardrail.scoring.entailment.forward import ModelLimits, PairModel, Plan, combine, plan, score_batch
from guardrail.scoring.entailment.identity import identity
from guardrail.scoring.entailment.worker import ScoringWorker, shared_worker
from guardrail.types import EntailmentScore


class LocalEntailment(ABC):
    """An entailment model that is loaded into this process at first use.

    A failed load is tried again at the next use. Long premises are cut into overlapping windows by the model's own
    tokeniser, claims never. Windows are scored in small batches, in turns with other callers of the worker, and each
    pair once as long as it is in the cache.

    Args:
        worker: Where to run; ``None`` shares one thread per process.
        cache_entries: Most scores to remember; 0 remembers none.
    """

    def __init__(self, *, worker: ScoringWorker | None, cache_entries: int) -> None:
        self._worker = worker
        self._cache = ScoreCache(cache_entries)
        self._loading = threading.Lock()
        self._loaded: tuple[PairModel, ModelLimits] | None = None

    @property
    @abstractmethod
    def model_id(self) -> str:
        """Name that appears in verdicts and traces."""

    @abstractmethod
    def _open(self) -> tuple[PairModel, ModelLimits]:
        """Load the model, in the calling thread, and see that it works."""

    @abstractmethod
    def _weights(self) -> str:
        """What identifies the files or weights of the loaded model."""

    @property
    def memory(self) -> ScoreCache:
        """The scores that it remembers; shared by all callers in this process."""
        return self._cache

    def fingerprint(self) -> str:
        """What its scores depend on, as a hash: weights, tokeniser, labels, calibration, the length of its windows.

        Loads the model if need be, and raises what :meth:`load` raises.
        """
        _, limits = self.loaded()
        settings = (limits.labels, limits.max_tokens, limits.activation, limits.calibration)
        return identity(self._weights(), repr(settings))

    def load(self) -> None:
        """Load the model now, in the calling thread, and score one pair to see that it works.

        Raises:
            MissingExtraError: If a library that it needs is not installed.
            ModelLoadError: If a file is missing, damaged or not what its checksum says, or the labels are unknown.
        """
        self.loaded()

    def loaded(self) -> tuple[PairModel, ModelLimits]:
        """The model and how it wants to be fed; loads it if need be, as :meth:`load` does."""
        with self._loading:
            if self._loaded is None:
                self._loaded = self._open()
            return self._loaded

    async def score(self, pairs: Sequence[Pair]) -> list[EntailmentScore]:
        """Score pairs, in order; see :class:`~guardrail.protocols.Entailment`."""
        asked = [Pair(premise, hypothesis) for premise, hypothesis in pairs]
        known = self._cache.find(asked)
        missing = [pair for pair in dict.fromkeys(asked) if pair not in known]
        if missing:
            call = _Scoring(self, self._cache, missing)
            windows: dict[Pair, EntailmentScore] = {}
            for scored in await (self._worker or shared_worker()).spread(call.batches, call.score):
                windows |= scored
            known |= call.combined(windows)
        return [known[pair] for pair in asked]


class _Scoring:
    """One call: what a worker does of it in its turns."""

    def __init__(self, owner: LocalEntailment, cache: ScoreCache, pairs: Sequence[Pair]) -> None:
        self._owner = owner
        self._cache = cache
        self._pairs = pairs
        self._known: dict[Pair, EntailmentScore] = {}
        self._plan = Plan(windows={}, batches=())

    def batches(self) -> Sequence[Sequence[Pair]]:
        model, limits = self._owner.loaded()
        self._known = self._cache.find(self._pairs)  # what others have scored since this call was queued
        missing = [pair for pair in self._pairs if pair not in self._known]
        self._plan = plan(model, limits, missing, scorer=self._owner.model_id)
        return self._plan.batches

    def score(self, batch: Sequence[Pair]) -> dict[Pair, EntailmentScore]:
        model, limits = self._owner.loaded()
        return self._cache.through(
            batch, lambda windows: score_batch(model, limits, windows, scorer=self._owner.model_id)
        )

    def combined(self, windows: dict[Pair, EntailmentScore]) -> dict[Pair, EntailmentScore]:
        _, limits = self._owner.loaded()
        cut: dict[Pair, EntailmentScore] = {}
        for pair, own in self._plan.windows.items():
            cut[pair] = combine([windows[window] for window in own], limits.labels)
        self._cache.put({pair: score for pair, score in cut.items() if len(self._plan.windows[pair]) > 1})
        return self._known | cut
