"""Cost of the segmenter: ``python -m tests.benchmarks.segmentation``.

Prints microseconds per token of four characters, fed token by token and character by character, and milliseconds per
1,000 characters for a whole text. The best of several runs is shown: the machine may be shared.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from guardrail.text import Segmenter, segment

PROSE = (
    "The museum opened in 1990. It was rebuilt by Dr. Okafor in 2004, e.g. the west wing, at a cost of $3.50 million. "
    "Entry is free on Mondays; on other days it costs 9.50 euro. Write to info@example.org or see "
    "https://docs.example.org/v1.2/a?b=1. Is it open today? Yes, until 17:30.\n\n"
)
MARKDOWN = (
    "## Opening hours\n\n- Mon–Fri: 9:00–17:00\n- Sat: 10:00–14:00\n- Sun: closed\n\n"
    "| Model | Price |\n|---|---|\n| A1 | 59 EUR |\n| B2 | 84 EUR |\n\n"
    "Run this:\n```bash\npip install tidekit\ntidekit init\n```\nDone. It seats 800 [1].\n\n"
)
UNBROKEN = "the fee is due when the lease ends and the keys are handed back to the owner of the house "
CODE = "```py\n" + "value = compute(value, 3)  # e.g. 3.\n" * 200 + "```\n"
TEXTS = {"prose": PROSE * 40, "markdown": MARKDOWN * 40, "no boundary": UNBROKEN * 120, "code block": CODE * 2}


def best_s(work: Callable[[], object], repeats: int = 7) -> float:
    """Shortest time of ``repeats`` runs, in seconds."""
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)


def stream(text: str, size: int) -> None:
    """Feed a text in chunks of ``size`` characters."""
    segmenter = Segmenter()
    for at in range(0, len(text), size):
        segmenter.feed(text[at : at + size])
    segmenter.flush()


def main() -> None:
    """Print the table."""
    print(f"{'text':<12} {'µs/token, by token':>19} {'µs/token, by char':>18} {'ms/kB, whole':>13}")
    for name, text in TEXTS.items():
        tokens = len(text) / 4
        by_token = best_s(lambda text=text: stream(text, 4)) / tokens * 1e6
        by_char = best_s(lambda text=text: stream(text, 1)) / tokens * 1e6
        whole = best_s(lambda text=text: segment(text)) / len(text) * 1e6
        print(f"{name:<12} {by_token:>19.2f} {by_char:>18.2f} {whole:>13.3f}")


if __name__ == "__main__":
    main()
