"""The work on a data set: items measured side by side, their lines written in order."""

from __future__ import annotations

import asyncio
import inspect
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from guardrail.errors import ConfigurationError, ModelLoadError
from guardrail.evaluation.datasets.items import Item
from guardrail.evaluation.datasets.measurement import ItemInProgress, Measurement
from guardrail.evaluation.datasets.metrics import Metric
from guardrail.evaluation.datasets.results import TEXT_COLUMNS
from guardrail.evaluation.datasets.results_file import ResultsFile, encode
from guardrail.evaluation.datasets.retrying import NO_ANSWER, final_measurements
from guardrail.scoring.verifier import Verifier

_BEHIND_THE_FIRST = 4
_AT_ONCE = 256


class Work:
    """Measures items side by side and writes their lines in order.

    Args:
        metrics: What is measured, in the order of the lines.
        verifier: Checks the answers.
        concurrency: How many items are measured at the same time.
        with_text: Whether question and answer are written too.
    """

    def __init__(self, metrics: Sequence[Metric], verifier: Verifier, *, concurrency: int, with_text: bool) -> None:
        self._metrics = metrics
        self._verifier = verifier
        self._with_text = with_text
        self._turns = asyncio.Semaphore(concurrency)
        self._most = concurrency * _BEHIND_THE_FIRST  # so that one slow item does not stop the others, or fill memory

    async def run(self, items: Iterable[Item], results: ResultsFile, report: Callable[[], None]) -> None:
        """Measure what has no line yet.

        Args:
            items: All items.
            results: Where their lines go.
            report: Called after each line of an item that was measured.

        Raises:
            ConfigurationError: If a metric raises it or returns no measurement, or JSON cannot hold its detail.
            ModelLoadError: If a metric raises it.
            InputError: If a line cannot be written.

        Cancellation ends the items under way and keeps the lines of those that are done.
        """
        with closing(results.known()) as known:
            await self._run(enumerate(zip(items, known, strict=False), start=1), results, report)

    async def _run(
        self,
        items: Iterable[tuple[int, tuple[Item, Mapping[str, Any] | None]]],
        results: ResultsFile,
        report: Callable[[], None],
    ) -> None:
        waiting: deque[tuple[int, asyncio.Task[bytes]]] = deque()

        async def copy() -> None:
            for _ in results.copy():
                await asyncio.sleep(0)

        async def write_first() -> None:
            first = waiting[0][1]
            await asyncio.wait([first])  # which a cancellation does not end before the others: they would take its turn
            await copy()
            results.append(first.result())
            waiting.popleft()
            report()

        try:
            for number, (item, known) in items:
                if known is None:
                    if not number % _AT_ONCE:
                        await asyncio.sleep(0)  # a long way to go, and others have a turn
                    continue
                waiting.append((number, asyncio.create_task(self._line(number, item, known))))
                while len(waiting) >= self._most:
                    await write_first()
            while waiting:
                await write_first()
            await copy()
        finally:
            try:
                self._keep_done(waiting, results, report)
            finally:
                tasks = [task for _, task in waiting]
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    def _keep_done(
        self, waiting: Iterable[tuple[int, asyncio.Task[bytes]]], results: ResultsFile, report: Callable[[], None]
    ) -> None:
        for number, task in waiting:
            if number <= results.done:
                continue  # an interrupt came when its line was written already
            if not results.intact or not _has_result(task):
                return
            results.append(task.result())
            report()

    async def _line(self, number: int, item: Item, known: Mapping[str, Any]) -> bytes:
        async with self._turns:
            found = await self._measure(item, final_measurements(known))
        line: dict[str, Any] = {"n": number, "id": item.id}
        if item.label is not None:
            line["label"] = item.label
        line["scores"] = {name: one.score for name, one in found.items() if one.score is not None}
        optional = {
            "errors": {name: one.error for name, one in found.items() if one.error},
            "details": {name: one.detail for name, one in found.items() if one.detail},
        }
        line |= {key: values for key, values in optional.items() if values}
        if self._with_text:
            line |= dict(zip(TEXT_COLUMNS, (item.question, item.answer if item.answered else None), strict=True))
        try:
            return encode(line)
        except (TypeError, ValueError) as error:
            name = next(name for name, one in found.items() if not _is_json(one.detail))
            raise ConfigurationError(f"the metric {name!r} has a detail that JSON cannot hold ({error})") from error

    async def _measure(self, item: Item, known: Mapping[str, Measurement]) -> dict[str, Measurement]:
        if not item.answered:
            return {each.name: Measurement(error=NO_ANSWER) for each in self._metrics}
        own = ItemInProgress(item, verifier=self._verifier)
        return {each.name: known.get(each.name) or await _measured(each, own) for each in self._metrics}


def _is_json(detail: Mapping[str, Any]) -> bool:
    try:
        return bool(encode(detail))
    except (TypeError, ValueError):
        return False


def _has_result(task: asyncio.Task[bytes]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is None


async def _measured(each: Metric, item: ItemInProgress) -> Measurement:
    try:
        measuring: Any = each.measure(item)
        if not inspect.isawaitable(measuring):
            raise ConfigurationError(f"the metric {each.name!r} must be asynchronous: `async def measure(self, item)`")
        found = await measuring
    except (ConfigurationError, ModelLoadError):
        raise
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return _raised(error)  # nobody cancelled this: the metric raised it by itself
    except Exception as error:  # whatever it is, it is counted and not the end of the other items
        return _raised(error)
    if not isinstance(found, Measurement):
        raise ConfigurationError(f"the metric {each.name!r} must return a Measurement, not {type(found).__name__}")
    return found


def _raised(error: BaseException) -> Measurement:
    """What was raised, and where; its message may have text of the item."""
    *_, (frame, line) = traceback.walk_tb(error.__traceback__)
    return Measurement(error=type(error).__name__, detail={"at": f"{Path(frame.f_code.co_filename).name}:{line}"})
