"""What the guard costs per streamed token, the checker excluded.

Usage::

    python -m tests.benchmarks.overhead [--tokens 2000] [--rounds 7] [--json]

The same scripted stream is read bare and through a guard whose verifier accepts at once, in one process; the
difference is divided by the number of tokens. The bar is 25 µs per token.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from statistics import median
from typing import Any

from guardrail import Guardrail
from guardrail.types import ClaimVerdict, Segment, VerdictLabel

SENTENCE = "The north wing of the museum shows about 40 mammals from the coast , and it opens at ten . "


class AcceptEverything:
    """Stands where the verifier stands and costs nothing."""

    scorer = "none"

    async def check(self, segments: Sequence[Segment], *_: Any, **__: Any) -> list[ClaimVerdict]:
        """Every segment is supported."""
        return [
            ClaimVerdict(
                segment=s, verdict=VerdictLabel.SUPPORTED, rouge_l=1.0, entailment=1.0, delta_r=0.0, scorer="none"
            )
            for s in segments
        ]


def tokens(count: int) -> list[str]:
    """Tokens of a long answer, each with the space that follows it."""
    words = [word + " " for word in SENTENCE.split(" ") if word]
    return [words[i % len(words)] for i in range(count)]


async def measure(count: int, rounds: int) -> dict[str, float]:
    """Microseconds per token: bare, guarded by sentence, guarded as a whole, and the differences."""
    stream = tokens(count)

    async def generate(question: str) -> AsyncIterator[str]:
        for token in stream:
            yield token

    async def bare() -> None:
        async for _ in generate("q"):
            pass

    async def guarded(guard: Guardrail) -> None:
        out = guard.stream(generate, question="When?", context=["The museum opens at ten."])
        got = [text async for text in out]
        assert sum(map(len, got)) == sum(map(len, stream)), "text was lost"

    guards = {
        "sentence": Guardrail(policy="balanced", observers=()),
        "answer": Guardrail(policy="strict", observers=()),
        "sentence_with_spans": Guardrail(policy="balanced"),
    }
    for guard in guards.values():
        guard.verifier = AcceptEverything()  # type: ignore[assignment]
    timings: dict[str, list[float]] = {"bare": [], **{name: [] for name in guards}}
    for _ in range(rounds):
        started = time.perf_counter()
        await bare()
        timings["bare"].append(time.perf_counter() - started)
        for name, guard in guards.items():
            started = time.perf_counter()
            await guarded(guard)
            timings[name].append(time.perf_counter() - started)
    per_token = {name: median(values) / count * 1e6 for name, values in timings.items()}
    added = {f"added_{name}": per_token[name] - per_token["bare"] for name in guards}
    return {**per_token, **added}


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    result = asyncio.run(measure(arguments.tokens, arguments.rounds))
    if arguments.json:
        print(json.dumps(result))
    else:
        for name, value in result.items():
            print(f"{name:28s} {value:8.2f} µs per token")


if __name__ == "__main__":
    main()
