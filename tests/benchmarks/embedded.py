"""What the embedded model costs: loading, memory, the whole path around it, and what many streams do to the loop.

Usage::

    python -m tests.benchmarks.embedded [--model DIR] [--parts load memory path latency streams]
        [--answers 40] [--streams 200] [--json]

Ratios compare two things in one process, in turns; ``cpu`` counts the time in which the process ran and ``wall`` what
a clock shows, which is only worth something on an idle machine. ``work`` is a turn of the loop without full garbage
collections, which walk all objects of the process, whatever the loop does. The bars: loaded in 400 ms; 250 MB of memory
after 200 pairs; the whole path per claim 1.15 times the bare session; one claim 1.3 times a bare pair of 128 tokens; no
turn of the event loop longer than 20 ms with 200 streams.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from guardrail import Guardrail
from guardrail.context import as_passages
from guardrail.evaluation.labelled import LabelledAnswer
from guardrail.policy import as_policy
from guardrail.protocols import Pair
from guardrail.scoring.claims import needs_check
from guardrail.scoring.entailment import OnnxEntailment, embedded_model_dir
from guardrail.scoring.entailment.forward import ModelLimits, PairModel, PairOutputs
from guardrail.scoring.entailment.windows import Offsets
from guardrail.scoring.evidence import EvidenceIndex
from guardrail.scoring.verifier import Verifier
from guardrail.text.segmenter import segment
from tests.benchmarks.answers import realistic_answers
from tests.benchmarks.overhead import AcceptEverything
from tests.loop_turns import run_timed

PARTS = ("load", "memory", "path", "latency", "streams")
Figures = dict[str, float]

_LOAD = """
import sys, time
wall, cpu = time.perf_counter(), time.process_time()
import onnxruntime, tokenizers, numpy
imported = time.perf_counter(), time.process_time()
from guardrail.scoring.entailment.onnx import OnnxEntailment
ours = time.perf_counter(), time.process_time()
OnnxEntailment(sys.argv[1]).load()
loaded = time.perf_counter(), time.process_time()
for now, before in ((imported, (wall, cpu)), (loaded, ours)):
    print(now[0] - before[0], now[1] - before[1])
"""
_MEMORY = """
import asyncio, json, resource, sys
from guardrail.scoring.entailment.onnx import OnnxEntailment
scores = asyncio.run(OnnxEntailment(sys.argv[1]).score([tuple(pair) for pair in json.load(sys.stdin)]))
with open("/proc/self/statm") as pages:
    print(len(scores), int(pages.read().split()[1]) * resource.getpagesize() / 1e6)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6)
"""


class _Recording:
    """A model that remembers which pairs it was given together."""

    def __init__(self, model: PairModel) -> None:
        self._model = model
        self.batches: list[list[Pair]] = []

    def offsets(self, text: str) -> Offsets:
        return self._model.offsets(text)

    def forward(self, pairs: Sequence[Pair]) -> PairOutputs:
        self.batches.append(list(pairs))
        return self._model.forward(pairs)


class RecordingEntailment(OnnxEntailment):
    """The model, without a cache, and with the batches it scored since they were last taken."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, cache_entries=0)
        self._recording: _Recording | None = None

    def _open(self) -> tuple[Any, ModelLimits]:
        model, limits = super()._open()
        self._recording = _Recording(model)
        return self._recording, limits

    def taken(self) -> list[list[Pair]]:
        """The batches since the last call."""
        assert self._recording is not None, "not loaded"
        batches, self._recording.batches = self._recording.batches, []
        return batches


class BareSession:
    """The tokeniser and the session of a model directory, with nothing around them."""

    def __init__(self, directory: Path) -> None:
        import onnxruntime
        from tokenizers import Tokenizer

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        path = str(directory / "model.onnx")
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
        self.tokenizer.no_truncation()
        self.tokenizer.enable_padding(pad_id=self.tokenizer.token_to_id("[PAD]") or 0)
        self._names = [node.name for node in self.session.get_inputs()]

    def feed(self, batch: Sequence[Pair]) -> dict[str, Any]:
        """Tokenise a batch."""
        import numpy as np

        rows = self.tokenizer.encode_batch([tuple(pair) for pair in batch])
        columns = {
            "input_ids": [row.ids for row in rows],
            "attention_mask": [row.attention_mask for row in rows],
            "token_type_ids": [row.type_ids for row in rows],
        }
        return {name: np.array(columns[name], dtype=np.int64) for name in self._names}

    def run(self, feed: dict[str, Any]) -> Any:
        """One forward pass."""
        return self.session.run(None, feed)


class Timer:
    """Wall-clock and processor time of some blocks, in seconds."""

    def __init__(self) -> None:
        self.wall: list[float] = []
        self.cpu: list[float] = []

    def __enter__(self) -> Timer:
        self._began = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.cpu.append(time.process_time() - self._began[1])
        self.wall.append(time.perf_counter() - self._began[0])

    def add(self, other: Timer) -> None:
        """Take over the times of another one."""
        self.wall += other.wall
        self.cpu += other.cpu


def load(directory: Path, rounds: int = 5) -> Figures:
    """Milliseconds to import the libraries and to load the model in a fresh process, best of several."""
    runs = []
    for _ in range(rounds + 1):  # the first one fills caches of the file system
        words = _fresh(_LOAD, directory).split()
        runs.append([float(word) * 1e3 for word in words])
    import_wall, import_cpu, load_wall, load_cpu = (min(column) for column in zip(*runs[1:], strict=True))
    return {
        "import_wall_ms": import_wall,
        "load_wall_ms": load_wall,
        "both_wall_ms": import_wall + load_wall,
        "import_cpu_ms": import_cpu,
        "load_cpu_ms": load_cpu,
        "both_cpu_ms": import_cpu + load_cpu,
    }


async def memory(directory: Path, pairs: int = 200) -> Figures:
    """Megabytes of a fresh process that has scored pairs: at the end, and at most."""
    entailment = RecordingEntailment(directory)
    texts: list[Pair] = []
    for row in realistic_answers(2 * pairs):
        if len(texts) >= pairs:
            break
        await Verifier(entailment=entailment).verify(row.answer, list(row.context), question=row.question)
        texts += [pair for batch in entailment.taken() for pair in batch]
    count, now, peak = _fresh(_MEMORY, directory, json.dumps(texts[:pairs])).split()
    return {"pairs": float(count), "resident_mb": float(now), "peak_mb": float(peak)}


async def path(directory: Path, answers: int) -> Figures:
    """The whole path per claim, and the bare session for exactly the same batches."""
    entailment, bare = RecordingEntailment(directory), BareSession(directory)
    verifier = Verifier(entailment=entailment)
    whole, tokenising, running = Timer(), Timer(), Timer()
    claims = pairs = tokens = 0
    *rows, first = realistic_answers(answers + 1)
    await verifier.verify(first.answer, list(first.context), question=first.question)  # compiles, starts, loads
    for row in rows:
        entailment.taken()
        with whole:
            found = await verifier.verify(row.answer, list(row.context), question=row.question)
        batches = entailment.taken()
        with tokenising:
            feeds = [bare.feed(batch) for batch in batches]
        with running:
            for feed in feeds:
                bare.run(feed)
        claims += sum(claim.entailment is not None for claim in found.claims)
        pairs += sum(map(len, batches))
        tokens += sum(feed["input_ids"].size for feed in feeds)
    figures: Figures = {"claims": claims, "pairs_per_claim": pairs / claims, "tokens_per_pair": tokens / pairs}
    for clock in ("cpu", "wall"):
        own, cut, run = (getattr(timer, clock) for timer in (whole, tokenising, running))
        figures |= {
            f"whole_{clock}_us_per_claim": sum(own) / claims * 1e6,
            f"tokenising_{clock}_us_per_claim": sum(cut) / claims * 1e6,
            f"session_{clock}_us_per_claim": sum(run) / claims * 1e6,
            f"ratio_to_tokenising_and_session_{clock}": sum(own) / (sum(cut) + sum(run)),
            f"ratio_to_session_{clock}": sum(own) / sum(run),
        }
    return figures


async def latency(directory: Path, answers: int, tokens: int = 128) -> Figures:
    """One claim on a warm index beside one bare pair of 128 tokens.

    The claims that are compared have one pair of about that length, because their context is one passage and their
    evidence smaller than by default; *any* claim is one with the context and the policy as they are.
    """
    import numpy as np

    entailment, bare = RecordingEntailment(directory), BareSession(directory)
    entailment.load()
    default = Verifier(entailment=entailment)
    small = Verifier(policy=replace(default.policy, evidence_words=80), entailment=entailment)
    feed = {name: np.resize(ids, (1, tokens)) for name, ids in bare.feed([Pair("a", "a")]).items()}
    feed["attention_mask"][:] = 1
    every, alike, single = Timer(), Timer(), Timer()
    for row in realistic_answers(answers):
        for verifier, context in ((default, list(row.context)), (small, ["\n".join(row.context)])):
            passages, state = as_passages(context)
            index = await EvidenceIndex.build(passages)
            for part in filter(needs_check, segment(row.answer)):
                entailment.taken()
                with Timer() as timer:
                    await verifier.check([part], index, state=state)
                lengths = [bare.feed(batch)["input_ids"].size for batch in entailment.taken()]
                if verifier is default:
                    every.add(timer)
                elif len(lengths) == 1 and abs(lengths[0] - tokens) <= tokens // 10:
                    alike.add(timer)
                    with single:
                        bare.run(feed)
    if not alike.wall:
        raise SystemExit(f"no claim has one pair of about {tokens} tokens: take more --answers")
    figures: Figures = {"claims": len(every.wall), "claims_of_one_such_pair": len(alike.wall)}
    for clock in ("cpu", "wall"):
        any_claim, such, pair = (median(getattr(timer, clock)) for timer in (every, alike, single))
        figures |= {
            f"any_claim_p50_{clock}_ms": any_claim * 1e3,
            f"such_claim_p50_{clock}_ms": such * 1e3,
            f"bare_pair_p50_{clock}_ms": pair * 1e3,
            f"ratio_{clock}": such / pair,
        }
    return figures


def streams(directory: Path, count: int) -> Figures:
    """Guarded streams that begin together: the longest turns of the loop, throughput, and who waits how long."""
    rows = realistic_answers(count, max_chars=500)
    # One attempt and no limits: an answer that is refused late would count twice, and a busy machine is no failure.
    policy = replace(as_policy("balanced"), max_attempts=1, timeout_s=None, scoring_timeout_s=None)
    entailment = OnnxEntailment(directory)
    entailment.load()
    guard = Guardrail(policy=policy, entailment=entailment, observers=())
    unchecked = Guardrail(policy=policy, observers=())
    unchecked.verifier = AcceptEverything()  # type: ignore[assignment]
    claims = sum(needs_check(part) for row in rows for part in segment(row.answer))
    figures: Figures = {"streams": count}
    for name, own in (("unchecked", unchecked), ("checked", guard)):
        cpu = time.process_time()
        (times, drift, total), turns = run_timed(_serve(own, rows))
        cpu = time.process_time() - cpu
        figures |= {
            f"{name}_longest_turn_wall_ms": max(turns.wall) * 1e3,
            f"{name}_longest_turn_cpu_ms": max(turns.cpu) * 1e3,
            f"{name}_turns_over_20_ms_cpu": sum(turn > 0.020 for turn in turns.cpu),
            f"{name}_longest_turn_work_ms": max(turns.work) * 1e3,
            f"{name}_longest_collection_cpu_ms": max(turns.collector) * 1e3,
            f"{name}_longest_drift_ms": max(drift) * 1e3,
            f"{name}_loop_cpu_us_per_claim": sum(turns.cpu) / claims * 1e6,
        }
        if own is guard:
            figures |= {
                "claims_per_s": claims / total,
                "claims_per_cpu_s": claims / cpu,
                "stream_p50_s": median(times),
                "stream_p95_s": sorted(times)[int(0.95 * count)],
                "stream_max_s": max(times),
            }
    return figures


async def _serve(guard: Guardrail, rows: Sequence[LabelledAnswer]) -> tuple[list[float], list[float], float]:
    """Seconds per stream, how late a timer of 5 ms was each time, and seconds for all."""
    drift: list[float] = [0.0]
    times: list[float] = []

    async def watch() -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0.005)
            drift.append(time.perf_counter() - before - 0.005)

    async def read(row: LabelledAnswer) -> None:
        async def generate(question: str) -> AsyncIterator[str]:
            for word in row.answer.split(" "):
                await asyncio.sleep(0)
                yield word + " "

        before = time.perf_counter()
        stream = guard.stream(generate, question=row.question or "?", context=list(row.context))
        async for _ in stream:
            pass
        times.append(time.perf_counter() - before)

    watching = asyncio.create_task(watch())
    started = time.perf_counter()
    await asyncio.gather(*map(read, rows))
    total = time.perf_counter() - started
    watching.cancel()
    return times, drift, total


def _fresh(script: str, directory: Path, text: str = "") -> str:
    command = [sys.executable, "-c", script, str(directory)]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=embedded_model_dir(), help="default: the embedded model")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--answers", type=int, default=40)
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if arguments.model is None:
        parser.error("the package ships no model; give the directory of one with --model")
    directory: Path = arguments.model
    measures: dict[str, Callable[[], Figures]] = {
        "load": lambda: load(directory),
        "memory": lambda: asyncio.run(memory(directory)),
        "path": lambda: asyncio.run(path(directory, arguments.answers)),
        "latency": lambda: asyncio.run(latency(directory, arguments.answers)),
        "streams": lambda: streams(directory, arguments.streams),
    }
    found: dict[str, Figures] = {}
    for part in arguments.parts:
        found[part] = measures[part]()
        if not arguments.json:
            print(part)
            for name, value in found[part].items():
                print(f"  {name:42s} {value:10.2f}", flush=True)
    if arguments.json:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
