"""Metrics that fail until they are mended, and results with such errors."""

from __future__ import annotations

from dataclasses import dataclass, field

from guardrail.evaluation.datasets.evaluating import evaluate
from guardrail.evaluation.datasets.metrics import Measurement
from tests.data_sets import Counting, fake, save

FOURTH = {str(n) for n in range(0, 40, 4)}


@dataclass
class Flaky(Counting):
    """Fails for some items until it is mended."""

    failing: set[str] = field(default_factory=set)
    error: BaseException | str = "rate_limited"

    async def measure(self, item):
        found = await super().measure(item)
        if item.item.id not in self.failing:
            return found
        if isinstance(self.error, BaseException):
            raise self.error
        return Measurement(error=self.error, detail={"tries": 3})


def forty(folder):
    """A data set of forty items, and its results if nothing fails."""
    data = save(folder / "n.jsonl", [{"id": str(n), "context": "C.", "answer": "x" * n} for n in range(40)])
    evaluate(data, metrics=[Flaky()], out=folder / "n.whole", verifier=fake())
    return data, (folder / "n.whole").read_bytes()


def retry(numbers, out, metric, **options):
    return evaluate(numbers[0], metrics=[metric], out=out, verifier=fake(), retry_errors=True, **options)


def left(out):
    """What an interrupted retry leaves."""
    return out.with_name(out.name + ".retry")
