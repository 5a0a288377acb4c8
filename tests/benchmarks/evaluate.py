"""How fast a data set is evaluated beside the model, and what memory it needs.

Usage::

    python -m tests.benchmarks.evaluate [--items 1000 10000] [--format jsonl|csv|parquet] [--json]

Every size runs in a process of its own, so that its peak of resident memory is its own. The items are invented, the
entailment model is a fake that answers at once: what is measured is reading, checking without a model, writing, and
the figures at the end. The bar: ten times the items need less than 1.3 times the peak memory.
"""

from __future__ import annotations

import argparse
import csv
import json
import multiprocessing
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

METRICS = ("faithfulness", "worst_delta_r", "accepted", "contradicted", "rouge_l")
_PROSE = (
    "The north wing shows mammals from the coast. Guided tours start at noon and take an hour. Bags go in lockers. "
)


def rows(count: int) -> list[dict[str, Any]]:
    """Items with three passages of about 60 words each, and answers of two sentences of which some are wrong."""
    return [
        {
            "id": f"item-{number}",
            "question": "What does the museum show?",
            "context": [f"Room {number + at} was opened in {1900 + number % 100}. " + 3 * _PROSE for at in range(3)],
            "answer": f"Room {number} was opened in {1900 + number % 100 + number % 2}. Bags go in lockers.",
            "label": 1 - number % 2,
        }
        for number in range(count)
    ]


def write(path: Path, count: int) -> None:
    """Write items in the format that the file's name says."""
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows(count)), encoding="utf-8")
    elif path.suffix == ".csv":
        with path.open("w", encoding="utf-8", newline="") as file:
            table = csv.DictWriter(file, list(rows(1)[0]))
            table.writeheader()
            table.writerows({**row, "context": json.dumps(row["context"])} for row in rows(count))
    else:
        import pyarrow
        from pyarrow import parquet

        parquet.write_table(pyarrow.Table.from_pylist(rows(count)), path)


def _evaluate(path: Path, metrics: Sequence[str], results: Any) -> None:
    import resource

    from guardrail import Verifier
    from guardrail.evaluation.datasets.evaluating import evaluate
    from guardrail.testing import FakeEntailment

    if path.suffix == ".parquet":
        import pyarrow.parquet  # noqa: F401 - its own size is no memory of the items

    fake = FakeEntailment(lambda premise, hypothesis: 0.95 if hypothesis in premise else 0.1)
    fake.pairs = _Forgetful()
    verifier = Verifier(entailment=fake)
    verifier.verify_sync("Bags go in lockers.", ["Bags go in lockers."])
    idle = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began, cpu = time.perf_counter(), time.process_time()
    found = evaluate(path, metrics=metrics, out=path.with_name("out.jsonl"), verifier=verifier)
    took, used = time.perf_counter() - began, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    results.put(
        {
            "items": found.items,
            "errors": sum(found.errors.values()),
            "items_per_s": found.items / took,
            "cpu_ms_per_item": 1000 * used / found.items,
            "idle_mb": idle / 1024,
            "peak_mb": peak / 1024,
        }
    )


class _Forgetful(list[Any]):
    """Remembers nothing: the fake's own memory is not what is measured."""

    def extend(self, _: Any) -> None:
        """Do nothing."""


def _alone(work: Callable[..., None], *arguments: Any) -> dict[str, float]:
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    process = context.Process(target=work, args=(*arguments, results))
    process.start()
    found: dict[str, float] = results.get(timeout=600)
    process.join()
    return found


def measure(sizes: Sequence[int], ending: str) -> list[dict[str, float]]:
    """The figures per number of items."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for count in sizes:
            path = Path(folder) / str(count) / f"data.{ending}"
            path.parent.mkdir()
            _alone(_write, path, count)
            found.append(_alone(_evaluate, path, METRICS))
    return found


def _write(path: Path, count: int, results: Any) -> None:
    write(path, count)
    results.put({})


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--format", choices=("jsonl", "csv", "parquet"), default="jsonl")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    found = measure(arguments.items, arguments.format)
    if arguments.json:
        print(json.dumps(found, indent=2))
        return
    for row in found:
        speed = f"{row['items_per_s']:6.0f} items/s, {row['cpu_ms_per_item']:.2f} ms CPU per item"
        memory = f"peak {row['peak_mb']:.1f} MB, idle {row['idle_mb']:.1f} MB"
        print(f"{row['items']:>7} items: {speed}, {memory}, {row['errors']:.0f} errors")
    first, last = found[0], found[-1]
    ratio = last["peak_mb"] / first["peak_mb"]
    print(f"{last['items'] / first['items']:.0f} times the items: {ratio:.3f} times the peak memory")


if __name__ == "__main__":
    main()
