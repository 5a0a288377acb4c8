"""How long ``import guardrail`` takes in a fresh interpreter, beside the standard library modules that it needs anyway.

Usage::

    python -m tests.benchmarks.imports [--rounds 9] [--json]

The bar is 150 ms on an idle machine; the ratio holds on any.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys

STANDARD = "asyncio, csv, dataclasses, decimal, difflib, email.message, inspect, json, logging, unittest.mock"
_PROBE = "import time; before = time.perf_counter(); import {}; print(time.perf_counter() - before)"


def seconds(modules: str) -> float:
    """Time of one import statement in a fresh interpreter."""
    # Compiled once and for all, as after any installation.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", _PROBE.format(modules)], capture_output=True, text=True, check=True, env=environment
    )
    return float(done.stdout)


def measure(rounds: int) -> dict[str, float]:
    """The best of several rounds, in turns, so that a busy moment hits both; the first import compiles."""
    seconds(f"guardrail, {STANDARD}")
    pairs = [(seconds("guardrail"), seconds(STANDARD)) for _ in range(rounds)]
    ours, standard = (min(times) * 1000 for times in zip(*pairs, strict=True))
    return {"guardrail_ms": ours, "standard_ms": standard, "ratio": ours / standard}


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    result = measure(arguments.rounds)
    if arguments.json:
        print(json.dumps(result))
    else:
        ours, ratio = result["guardrail_ms"], result["ratio"]
        print(f"import guardrail {ours:.0f} ms, {ratio:.2f} times the standard library part")


if __name__ == "__main__":
    main()
