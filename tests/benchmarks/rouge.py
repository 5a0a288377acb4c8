"""Time of the longest common subsequence, per method.

Run with ``python -m tests.benchmarks.rouge``; prints milliseconds (best of several runs) for an answer of 150 and a
context of 3,000 tokens, which is what one verification of a whole answer costs.
"""

from __future__ import annotations

import random
import timeit
from collections.abc import Callable

from guardrail.scoring.rouge import IncrementalLcs, lcs_length, reference_tokens, rouge_l_f1, rouge_n_f1

ANSWER_TOKENS = 150
CONTEXT_TOKENS = 3000


def texts(seed: int = 20) -> tuple[str, str]:
    """A context of words with a natural skew, and an answer of which half is quoted."""
    rng = random.Random(seed)
    words = ["".join(rng.choices("abcdefghij", k=rng.randint(2, 9))) for _ in range(1500)]
    weights = [1 / rank for rank in range(1, len(words) + 1)]
    context = rng.choices(words, weights, k=CONTEXT_TOKENS)
    start = rng.randrange(CONTEXT_TOKENS - ANSWER_TOKENS)
    answer = [word if rng.random() < 0.5 else rng.choice(words) for word in context[start : start + ANSWER_TOKENS]]
    return " ".join(answer), " ".join(context)


def best_ms(call: Callable[[], object], repeat: int = 7) -> float:
    """Best time of one call in milliseconds."""
    timer = timeit.Timer(call)
    number, _ = timer.autorange()
    return min(timer.repeat(repeat, number)) / number * 1000


def main() -> None:
    """Print the table."""
    answer_text, context_text = texts()
    answer, context = reference_tokens(answer_text), reference_tokens(context_text)
    ready = IncrementalLcs(context)
    methods: dict[str, Callable[[], object]] = {
        "tokenise answer and context": lambda: (reference_tokens(answer_text), reference_tokens(context_text)),
        "lcs_length (rapidfuzz)": lambda: lcs_length(answer, context),
        "IncrementalLcs, set-up on the context": lambda: IncrementalLcs(context),
        "IncrementalLcs, whole answer": lambda: ready.copy().extend(answer),
        "IncrementalLcs, one answer token": lambda: ready.copy().extend(answer[:1]),
        "rouge_l_f1": lambda: rouge_l_f1(answer, context),
        "rouge_n_f1, n = 2": lambda: rouge_n_f1(answer, context, 2),
    }
    assert lcs_length(answer, context) == IncrementalLcs(context).extend(answer)
    print(f"{len(answer)} answer tokens, {len(context)} context tokens, LCS {lcs_length(answer, context)}")
    for name, call in methods.items():
        print(f"{best_ms(call, repeat=5):10.4f} ms  {name}")


if __name__ == "__main__":
    main()
