"""What the LangChain adapter costs per streamed chunk, the checker excluded.

Usage::

    PYTHONPATH=integrations python -m tests.benchmarks.langchain [--chunks 2000] [--rounds 5] [--json]

The same chain (prompt and scripted model, with and without a parser) is read bare and with a guard whose verifier
accepts at once, in one process; the difference in processor time is divided by the number of chunks that the model
streams. The bar is 60 µs per chunk.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from statistics import median
from typing import Any

from guardrail_langchain import GuardedRunnable
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate

from guardrail import Guardrail
from tests.benchmarks.overhead import SENTENCE, AcceptEverything, tokens
from tests.langchain.scripted_model import ScriptedChatModel, text_chunks

ASKED = {"question": "What does the museum show?", "context": [SENTENCE]}


def guard() -> Guardrail:
    """A guard that costs nothing but its wrapping."""
    made = Guardrail(observers=[])
    made.verifier = AcceptEverything()  # type: ignore[assignment]
    return made


async def read(runnable: Any) -> float:
    """Seconds of processor time for one stream; what else the machine does is not in it."""
    started = time.process_time()
    async for _ in runnable.astream(ASKED):
        pass
    return time.process_time() - started


async def measure(count: int, rounds: int) -> dict[str, float]:
    """Microseconds per chunk for two chains: bare, guarded, and the difference; medians over the rounds."""
    prompt = ChatPromptTemplate.from_template("{context} {question}")
    model = ScriptedChatModel(text_chunks("".join(tokens(count)).strip()))
    bare = {"messages": prompt | model, "text": prompt | model | StrOutputParser()}
    chains = {
        f"{name}_{how}": GuardedRunnable(bound=chain, guard=guard()) if how == "guarded" else chain
        for name, chain in bare.items()
        for how in ("bare", "guarded")
    }
    seconds: dict[str, list[float]] = {name: [] for name in chains}
    for turn in range(rounds + 1):
        for name, chain in chains.items():
            took = await read(chain)
            if turn:  # the first round warms up
                seconds[name].append(took)
    found = {name: median(took) * 1e6 / count for name, took in seconds.items()}
    added = {f"{name}_added": found[f"{name}_guarded"] - found[f"{name}_bare"] for name in bare}
    return {name: round(value, 2) for name, value in (found | added).items()}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    found = asyncio.run(measure(arguments.chunks, arguments.rounds))
    if arguments.json:
        print(json.dumps({"chunks": arguments.chunks, "rounds": arguments.rounds, "us_per_chunk": found}))
        return
    for name, value in found.items():
        print(f"{name:24} {value:8.1f} µs per chunk")


if __name__ == "__main__":
    main()
