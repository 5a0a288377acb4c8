"""What is being asked at this moment, so that concurrent callers of a model ask once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from guardrail.protocols import Pair
from guardrail.types import EntailmentScore


class InFlight:
    """The pairs that callers in one event loop are asking for.

    Nobody waits while others wait for him: a caller waits for others only when it asks for nothing itself. If asking
    fails or is cancelled, those who waited ask themselves.

    Example:
        >>> async def ask(pairs):
        ...     return [EntailmentScore(entailment=1.0) for _ in pairs]
        >>> async def show():
        ...     return len(await InFlight().through({Pair("a", "b"): "key"}, ask))
        >>> asyncio.run(show())
        1
    """

    def __init__(self) -> None:
        self._running: dict[str, asyncio.Future[dict[str, EntailmentScore]]] = {}

    async def through(
        self, wanted: Mapping[Pair, str], ask: Callable[[list[Pair]], Awaitable[Sequence[EntailmentScore]]]
    ) -> dict[Pair, EntailmentScore]:
        """The scores of pairs, asking only for those that nobody else is asking for.

        Args:
            wanted: Pairs, each with the key that is the same for callers that may share.
            ask: Scores pairs, in order; not called at all if others ask for all of them.

        Returns:
            One score per pair. Exceptions of ``ask`` are raised.

        Cancellation cancels what this caller asks for; another one that waits for it asks itself.
        """
        scores: dict[Pair, EntailmentScore] = {}
        while missing := {pair: key for pair, key in wanted.items() if pair not in scores}:
            mine = {pair: key for pair, key in missing.items() if key not in self._running}
            if mine:
                scores |= await self._ask(mine, ask)
                continue
            others = {self._running[key] for key in missing.values()}
            await asyncio.wait(others)
            known = {key: score for other in others for key, score in other.result().items()}
            scores |= {pair: known[key] for pair, key in missing.items() if key in known}
        return scores

    async def _ask(
        self, mine: Mapping[Pair, str], ask: Callable[[list[Pair]], Awaitable[Sequence[EntailmentScore]]]
    ) -> dict[Pair, EntailmentScore]:
        result: asyncio.Future[dict[str, EntailmentScore]] = asyncio.get_running_loop().create_future()
        self._running.update(dict.fromkeys(mine.values(), result))
        fresh: dict[Pair, EntailmentScore] = {}
        try:
            fresh = dict(zip(mine, await ask(list(mine)), strict=True))
        finally:
            for key in mine.values():
                del self._running[key]
            result.set_result({mine[pair]: score for pair, score in fresh.items()})
        return fresh
