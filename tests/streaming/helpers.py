"""What the streaming tests share: sentences with markers, generators that count, observers that record."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import gc
import itertools
import logging
import sys
import threading
import warnings
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from guardrail import Guardrail, Policy
from guardrail.events import (
    AttemptEnded,
    AttemptStarted,
    Event,
    Released,
    Retracted,
    RunEnded,
    RunStarted,
    StepEnded,
    StepStarted,
)
from guardrail.protocols import Pair
from guardrail.testing import FakeEntailment
from guardrail.types import EntailmentScore, EvidenceSpan, ReceiptStatus

LENIENT_WORDS = Policy(lexical_weight=0.0)
"""Only the entailment model decides, so that a test says by itself what is supported."""

HALL = "The old hall keeps a wooden clock near its door. The garden grows tall roses by the wall."
QUESTION = "What is in the hall?"


def says(*supported: str) -> FakeEntailment:
    """A scorer that supports exactly these sentences."""
    known = {s.strip() for s in supported}
    return FakeEntailment(lambda premise, claim: 1.0 if claim.strip() in known else 0.0)


def guard_for(*supported: str, policy: Policy = LENIENT_WORDS, **more: Any) -> Guardrail:
    """A guard without telemetry for which exactly these sentences are supported."""
    more.setdefault("observers", [])
    return Guardrail(policy=policy, entailment=says(*supported), **more)


def half_surrogates(text: str) -> str:
    """The text with every character beyond the basic plane as two surrogate halves."""
    units = text.encode("utf-16-le", "surrogatepass")
    return "".join(chr(int.from_bytes(units[i : i + 2], "little")) for i in range(0, len(units), 2))


def split_at(text: str, cuts: Iterable[int]) -> list[str]:
    """Cut a text at these offsets; repeated offsets give empty chunks."""
    places = [0, *sorted(min(max(c, 0), len(text)) for c in cuts), len(text)]
    return [text[a:b] for a, b in itertools.pairwise(places)]


# --- generators -----------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Counts:
    """What happened to the sources of one test."""

    calls: int = 0
    opened: int = 0
    closed: int = 0
    pulled: int = 0
    released_texts: list[str] = dataclasses.field(default_factory=list)
    contexts: list[tuple[str, ...]] = dataclasses.field(default_factory=list)

    @property
    def all_closed(self) -> bool:
        return self.opened == self.closed


def generator(
    attempts: Sequence[Sequence[Any]],
    counts: Counts,
    *,
    can_continue: bool = False,
    kind: str = "async",
    pause: int = 0,
) -> Callable[..., Any]:
    """A generator of a kind (``async``, ``sync``, ``object``) that plays one list of chunks per attempt.

    Exceptions in a list are raised in their place; ``pause`` loop turns pass before every chunk.
    """

    def script(passages: Any, released: str) -> Sequence[Any]:
        counts.calls += 1
        counts.released_texts.append(released)
        counts.contexts.append(tuple(p.text for p in passages))
        return attempts[min(counts.calls - 1, len(attempts) - 1)]

    async def play(chunks: Sequence[Any]) -> AsyncIterator[Any]:
        counts.opened += 1
        try:
            for chunk in chunks:
                for _ in range(pause):
                    await asyncio.sleep(0)
                if isinstance(chunk, BaseException):
                    raise chunk
                counts.pulled += 1
                yield chunk
        finally:
            counts.closed += 1

    def play_sync(chunks: Sequence[Any]) -> Iterator[Any]:
        counts.opened += 1
        try:
            for chunk in chunks:
                if isinstance(chunk, BaseException):
                    raise chunk
                counts.pulled += 1
                yield chunk
        finally:
            counts.closed += 1

    def start(passages: Any, released: str) -> Any:
        chunks = script(passages, released)
        if kind == "sync":
            return play_sync(chunks)
        if kind == "object":
            return ClosableSource(chunks, counts)
        return play(chunks)

    # Coroutine functions, so that the call itself stays on the loop and tests are deterministic.
    async def continues(question: str, passages: Any, released_text: str) -> Any:
        return start(passages, released_text)

    async def begins_anew(question: str, passages: Any) -> Any:
        return start(passages, "")

    return continues if can_continue else begins_anew


class ClosableSource:
    """An async iterator that is not an async generator, with an async ``close``."""

    def __init__(self, chunks: Sequence[Any], counts: Counts) -> None:
        self._chunks = iter(chunks)
        self._counts = counts
        counts.opened += 1

    def __aiter__(self) -> ClosableSource:
        return self

    async def __anext__(self) -> Any:
        for chunk in self._chunks:
            if isinstance(chunk, BaseException):
                raise chunk
            self._counts.pulled += 1
            return chunk
        raise StopAsyncIteration

    async def close(self) -> None:
        self._counts.closed += 1


class SlowFake:
    """A scorer that gives way to the loop a few times for every batch, then supports what it was told to."""

    def __init__(self, *supported: str, turns: int = 2) -> None:
        self._known = {s.strip() for s in supported}
        self._turns = turns
        self.batches = 0

    @property
    def model_id(self) -> str:
        return "slow-fake"

    async def score(self, pairs: Sequence[Pair]) -> list[EntailmentScore]:
        self.batches += 1
        for _ in range(self._turns):
            await asyncio.sleep(0)
        return [EntailmentScore(entailment=1.0 if p.hypothesis.strip() in self._known else 0.0) for p in pairs]


# --- observers ------------------------------------------------------------------------------------------------


class Recorder:
    """An observer that keeps every event of every run, and whether activations were left open."""

    def __init__(self) -> None:
        self.runs: dict[str, list[Event]] = {}

    def open_run(self, run_id: str) -> _RunRecorder:
        self.runs[run_id] = []
        return _RunRecorder(self.runs[run_id])

    @property
    def events(self) -> list[Event]:
        """The events of the only run that had any."""
        (only,) = [events for events in self.runs.values() if events]
        return only


class _RunRecorder:
    def __init__(self, events: list[Event]) -> None:
        self._events = events

    def on_event(self, event: Event) -> None:
        self._events.append(event)

    def activate(self, step_id: int) -> AbstractContextManager[None]:
        return nullcontext()


def assert_balanced(events: Sequence[Event]) -> None:
    """Every run, attempt and step ends exactly once, after its begin and inside its parent."""
    assert [type(e) for e in events if isinstance(e, RunStarted)] == [RunStarted]
    assert [type(e) for e in events if isinstance(e, RunEnded)] == [RunEnded]
    assert isinstance(events[0], RunStarted)
    steps = Counter(e.step_id for e in events if isinstance(e, StepStarted))
    ends = Counter(e.step_id for e in events if isinstance(e, StepEnded))
    assert steps == ends
    assert set(steps.values()) <= {1}
    begun = [e.attempt for e in events if isinstance(e, AttemptStarted)]
    ended = [e.attempt.number for e in events if isinstance(e, AttemptEnded)]
    assert begun == list(range(1, len(begun) + 1))
    assert sorted(ended) == begun
    last = max(i for i, e in enumerate(events) if isinstance(e, (StepEnded, AttemptEnded, RunEnded)))
    assert isinstance(events[last], RunEnded)


def strings_in(value: Any, *, passages: bool = True) -> Iterator[str]:
    """Every text that can be reached from a value, exceptions and their causes included.

    ``passages=False`` leaves out the texts of evidence, which are the caller's own passages and not answers.
    """
    seen: set[int] = set()
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            yield str(item)
            continue
        if item is None or isinstance(item, (bool, int, float, type)) or id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, EvidenceSpan) and not passages:
            continue
        if dataclasses.is_dataclass(item):
            yield repr(item)
            stack.extend(getattr(item, f.name) for f in dataclasses.fields(item))
        elif isinstance(item, Mapping):
            stack.extend([*item.keys(), *item.values()])
        elif isinstance(item, (list, tuple, set, frozenset)):
            stack.extend(item)
        elif isinstance(item, BaseException):
            yield str(item)
            stack.extend([*item.args, item.__cause__, item.__context__, *vars(item).values()])


def told(events: Iterable[Event]) -> str:
    """The text that a reader of these events has in the end; checks that offsets fit."""
    text = ""
    for event in events:
        if isinstance(event, Released):
            assert event.start == len(text), "released text is append-only and contiguous"
            text += event.text
        elif isinstance(event, Retracted):
            assert 0 <= event.start <= len(text)
            text = text[: event.start]
    return text


def assert_receipt(outcome: Any) -> None:
    """The receipt covers the delivered text without a gap; timings make sense."""
    place = 0
    for part in outcome.receipt:
        assert part.start == place
        assert part.end > part.start
        place = part.end
    assert place == len(outcome.text)
    if outcome.accepted and outcome.attempts and outcome.reason == "passed":
        assert all(r.status is not ReceiptStatus.NOT_CHECKED or r.attempt == 0 for r in outcome.receipt)
    timings = outcome.timings
    for name in ("total_ms", "scoring_ms", "limiter_ms", "added_ms"):
        assert getattr(timings, name) >= 0
    assert timings.first_release_ms is None or 0 <= timings.first_release_ms <= timings.total_ms
    assert (timings.first_release_ms is None) == (outcome.text == "")


# --- noise ----------------------------------------------------------------------------------------------------


class _Log(logging.Handler):
    def __init__(self, lines: list[str]) -> None:
        super().__init__(logging.DEBUG)
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.WARNING:
            self._lines.append(f"log {record.name}: {record.getMessage()}")


@contextlib.contextmanager
def quiet() -> Iterator[list[str]]:
    """Fail if something is logged, warned about, or raised where nobody can catch it."""
    lines: list[str] = []
    handler = _Log(lines)
    loggers = [logging.getLogger(n) for n in ("asyncio", "opentelemetry", "guardrail")]
    old_hook = sys.unraisablehook
    sys.unraisablehook = lambda args: lines.append(f"unraisable {args.exc_value!r} in {args.object!r}")
    for logger in loggers:
        logger.addHandler(handler)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield lines
            gc.collect()
        lines.extend(f"warning {w.category.__name__}: {w.message}" for w in caught)
    finally:
        sys.unraisablehook = old_hook
        for logger in loggers:
            logger.removeHandler(handler)
    assert lines == []


def others() -> set[asyncio.Task[Any]]:
    """Tasks that are alive besides the current one."""
    return asyncio.all_tasks() - {asyncio.current_task()}  # type: ignore[arg-type]


async def turns(count: int) -> None:
    """Let the loop run some times."""
    for _ in range(count):
        await asyncio.sleep(0)


def guard_threads() -> list[threading.Thread]:
    """Threads that are alive besides the main one and are not daemons."""
    return [t for t in threading.enumerate() if t is not threading.main_thread() and not t.daemon]
