"""Ctrl-C ends a command that scores with its exit status, whatever a model is doing at that moment."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from guardrail.cli import EXIT_INTERRUPTED

LIMIT_S = 120.0
_INTERRUPTED = """
import os, signal, sys
from guardrail.cli import main
from guardrail.scoring.entailment import worker

turns, take_turn = int(sys.argv.pop(1)), worker._take_turn

def interrupting(*turn):
    global turns
    turns -= 1
    if not turns:
        os.kill(os.getpid(), signal.SIGINT)
    take_turn(*turn)

worker._take_turn = interrupting
sys.exit(main())
"""
_EXITING = """
import sys, threading
from guardrail.scoring.entailment.worker import ScoringWorker
import asyncio

begun, go_on = threading.Event(), threading.Event()

def stuck(part):
    begun.set()
    go_on.wait(float(sys.argv[1]))
    print("turn ended", flush=True)

def call():
    asyncio.run(ScoringWorker().spread(lambda: [1, 2, 3], stuck))

threading.Thread(target=call, daemon=True).start()
begun.wait()
"""


@pytest.fixture(scope="module")
def long_answers(tmp_path_factory):
    """Labelled answers that keep the model busy for long."""
    path = tmp_path_factory.mktemp("interrupts") / "long.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for n in range(20):
            towers = range(50 * n, 50 * (n + 1))
            item = {
                "id": str(n),
                "question": "How tall are the towers?",
                "context": [
                    " ".join(f"Tower {t} is {100 + t} metres tall and stands in district {t}." for t in towers)
                ],
                "answer": " ".join(f"Tower {t} is {100 + t} metres tall and was built by guild {t}." for t in towers),
                "label": n % 2,
            }
            file.write(json.dumps(item) + "\n")
    return path


@pytest.mark.parametrize("turn", [1, 2, 3, 5, 8])
def test_an_interrupted_benchmark(long_answers, turn):
    command = [sys.executable, "-c", _INTERRUPTED, str(turn), "bench", "quality", str(long_answers), "--json"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (EXIT_INTERRUPTED, "", "")


@pytest.mark.parametrize(("seconds", "shown"), [(0.5, "turn ended\n"), (600.0, "")])
def test_an_interpreter_that_exits_waits_for_a_turn_but_not_for_ever_nor_for_the_next(seconds, shown):
    command = [sys.executable, "-c", _EXITING, str(seconds)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, shown, "")
