"""Many guarded streams on one loop, with a model that judges them: nobody waits for somebody else's scoring.

Turns of the loop are measured by the processor time of its thread and compared with the same streams unchecked and with
hardly a context, so that neither a slow nor a busy machine changes the result.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from guardrail import Guardrail
from guardrail.policy import as_policy
from guardrail.scoring.entailment import OnnxEntailment, embedded_model_dir
from guardrail.types import Outcome
from tests.benchmarks.overhead import AcceptEverything
from tests.loop_turns import run_timed
from tests.tiny_models import tiny_models

STREAMS = 16
SENTENCES = 4
LONG = 40
ROUNDS = 3
# Everything is checked, whatever the model says of it, and however long that takes.
POLICY = replace(as_policy("balanced"), release="observe", timeout_s=None, scoring_timeout_s=None)


@pytest.fixture(scope="module")
def model_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The embedded model; a tiny one where the package ships none."""
    return embedded_model_dir() or tiny_models(tmp_path_factory).onnx_dir


def sentence(stream: int, at: int, turn: int) -> str:
    """A sentence of words that the tiny model knows; no two streams have one in common, so nothing is remembered."""
    return f"The archive of plan {stream} holds {at + 2} maps and opens at nine {turn}. "


async def serve(guard: Guardrail, turn: int, *, context_sentences: int) -> list[Outcome]:
    """Streams that begin together, each with a context of its own."""

    async def read(stream: int) -> Outcome:
        async def generate(question: str) -> AsyncIterator[str]:
            for at in range(SENTENCES):
                for word in sentence(stream, at, turn).split(" "):
                    await asyncio.sleep(0)
                    yield word + " "

        context = ["".join(sentence(stream, at, turn) for at in range(context_sentences))]
        guarded = guard.stream(generate, question="What does the archive hold?", context=context)
        async for _ in guarded:
            pass
        return await guarded.outcome()

    return await asyncio.gather(*map(read, range(STREAMS)))


def guards(model_dir: Path) -> tuple[Guardrail, Guardrail]:
    """One that checks with the model, and one whose verifier costs nothing."""
    entailment = OnnxEntailment(model_dir, cache_entries=0)
    entailment.load()
    checked = Guardrail(policy=POLICY, entailment=entailment, observers=())
    unchecked: Any = Guardrail(policy=POLICY, observers=())
    unchecked.verifier = AcceptEverything()
    return checked, unchecked


def test_no_turn_of_the_loop_waits_for_the_model_or_for_contexts(model_dir: Path) -> None:
    checked, unchecked = guards(model_dir)
    for guard in (checked, unchecked):  # patterns are compiled at first use
        asyncio.run(serve(guard, 0, context_sentences=LONG))
    ours: list[float] = []
    bare: list[float] = []
    for turn in range(1, ROUNDS + 1):
        outcomes, turns = run_timed(serve(checked, turn, context_sentences=LONG))
        assert {len(o.attempts[0].verdicts) for o in outcomes} == {SENTENCES}
        ours.append(max(turns.cpu))
        _, turns = run_timed(serve(unchecked, turn, context_sentences=1))
        bare.append(max(turns.cpu))
    # Indexing the contexts or a forward pass on the loop would be tens of times as long.
    assert min(ours) <= 10 * min(bare)
