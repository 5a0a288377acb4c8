"""What a model said about pairs that it was asked before, so that it is asked once."""

from __future__ import annotations

import hashlib
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence

from guardrail.errors import ConfigurationError
from guardrail.protocols import Pair
from guardrail.types import EntailmentScore

DEFAULT_ENTRIES = 4096
"""About a megabyte: an entry is a digest and three numbers, however long the texts."""


class ScoreCache:
    """The last scores of a model, and which pairs a thread is scoring at this moment.

    Pairs are kept as digests, so the size does not depend on the texts and no text stays in memory. Failures are never
    kept. Any number of threads may use a cache; after a fork the child begins with an empty one.

    Args:
        entries: Most scores to keep; the one that was used longest ago goes first. 0 keeps none.

    Attributes:
        entries: As given.

    Raises:
        ConfigurationError: If ``entries`` is no integer of at least 0.

    Example:
        >>> cache = ScoreCache(2)
        >>> pair = Pair("Entry is free.", "Entry is free.")
        >>> cache.find([pair])
        {}
        >>> cache.put({pair: EntailmentScore(entailment=0.9)})
        >>> cache.find([pair])[pair].entailment
        0.9
    """

    def __init__(self, entries: int = DEFAULT_ENTRIES) -> None:
        if isinstance(entries, bool) or not isinstance(entries, int) or entries < 0:
            raise ConfigurationError(f"cache_entries must be an integer of at least 0, got {entries!r}")
        self.entries = entries
        self._reset()

    def __len__(self) -> int:
        return len(self._scores)

    def find(self, pairs: Iterable[Pair]) -> dict[Pair, EntailmentScore]:
        """The scores that are known; pairs that are not known are left out."""
        if not self.entries:
            return {}
        keys = {pair: _digest(pair) for pair in pairs}
        with self._lock():
            return {pair: self._scores[key] for pair, key in keys.items() if self._use(key)}

    def put(self, scores: dict[Pair, EntailmentScore]) -> None:
        """Keep scores, and forget the oldest ones if there are too many."""
        if self.entries:
            self._settle({_digest(pair): score for pair, score in scores.items()}, ())

    def through(
        self, pairs: Sequence[Pair], compute: Callable[[list[Pair]], Sequence[EntailmentScore]]
    ) -> dict[Pair, EntailmentScore]:
        """The scores of pairs, asking only for those that are neither known nor being computed in another thread.

        Args:
            pairs: Different pairs.
            compute: Scores pairs, in order; called in this thread, and not at all if there is nothing to ask.

        Returns:
            One score per pair. Exceptions of ``compute`` are raised, and another thread that waited asks itself.
        """
        if not self.entries:
            return dict(zip(pairs, compute(list(pairs)), strict=True))
        keys = {pair: _digest(pair) for pair in pairs}
        scores: dict[Pair, EntailmentScore] = {}
        while len(scores) < len(keys):
            mine = self._claim({pair: key for pair, key in keys.items() if pair not in scores}, scores)
            if not mine:
                continue  # another thread was at work on all that is missing, and has ended
            claimed = [keys[pair] for pair in mine]
            try:
                fresh = dict(zip(mine, compute(mine), strict=True))
            except BaseException:
                self._settle({}, claimed)
                raise
            scores |= fresh
            self._settle({keys[pair]: score for pair, score in fresh.items()}, claimed)
        return scores

    def _claim(self, wanted: dict[Pair, bytes], scores: dict[Pair, EntailmentScore]) -> list[Pair]:
        """Add what is known to ``scores``; claim what nobody is at work on. If that is nothing, wait for the others.

        Nobody waits while others wait for him: a thread waits only when it has claimed nothing.
        """
        changed = self._lock()
        with changed:
            scores |= {pair: self._scores[key] for pair, key in wanted.items() if self._use(key)}
            missing = {pair: key for pair, key in wanted.items() if pair not in scores}
            mine = [pair for pair, key in missing.items() if key not in self._running]
            self._running.update(missing[pair] for pair in mine)
            if missing and not mine:
                changed.wait_for(lambda: self._running.isdisjoint(missing.values()))
            return mine

    def _settle(self, scores: dict[bytes, EntailmentScore], claimed: Iterable[bytes]) -> None:
        changed = self._lock()
        with changed:
            self._scores.update(scores)
            for key in scores:
                self._scores.move_to_end(key)
            while len(self._scores) > self.entries:
                self._scores.popitem(last=False)
            self._running.difference_update(claimed)
            changed.notify_all()

    def _use(self, key: bytes) -> bool:
        if key not in self._scores:
            return False
        self._scores.move_to_end(key)
        return True

    def _lock(self) -> threading.Condition:
        if self._pid != os.getpid():
            self._reset()  # the lock may have been held, and pairs claimed, by threads that did not survive the fork
        return self._changed

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._changed = threading.Condition()
        self._scores: OrderedDict[bytes, EntailmentScore] = OrderedDict()
        self._running: set[bytes] = set()


def _digest(pair: Pair) -> bytes:
    premise, hypothesis = (text.encode("utf-8", "surrogatepass") for text in pair)
    digest = hashlib.blake2b(len(premise).to_bytes(8, "little"), digest_size=16)
    digest.update(premise)
    digest.update(hypothesis)
    return digest.digest()
