"""A trace on the console: collects what happens in a run and draws it as a tree with durations.

It needs no OpenTelemetry SDK; the tree has the same spans as :class:`guardrail.telemetry.spans.SpanObserver` makes.
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from rich.table import Table
from rich.text import Text

from guardrail.cli.console import count, score
from guardrail.events import AttemptEnded, AttemptStarted, Event, RunEnded, RunStarted, StepEnded, StepStarted
from guardrail.protocols import Clock
from guardrail.telemetry import names

_BAR_COLUMNS = 16
_BETWEEN_ATTEMPTS = ("budget", "limit", "rerank")


@dataclass(slots=True, kw_only=True)
class TraceNode:
    """One span.

    Attributes:
        name: Name of the span.
        start_s: When it began, in seconds of the collector's clock.
        end_s: When it ended; ``None`` while it runs.
        note: What is worth knowing about it.
        children: Spans inside it, in order of their beginning.
    """

    name: str
    start_s: float
    end_s: float | None = None
    note: str = ""
    children: list[TraceNode] = field(default_factory=list)

    @property
    def duration_s(self) -> float:
        """Seconds from beginning to end; 0 while it runs."""
        return 0.0 if self.end_s is None else self.end_s - self.start_s


class TraceCollector:
    """An observer that keeps the spans of the runs it sees.

    Args:
        clock: Monotonic seconds.

    Attributes:
        runs: The root span of every run that has begun.

    Example:
        >>> from guardrail import Guardrail
        >>> trace = TraceCollector()
        >>> guard = Guardrail(observers=[trace])
        >>> _ = guard.run_sync(lambda question, context: context[0], question="Open?", context=["It is open."])
        >>> [child.name for child in trace.runs[0].children]
        ['guardrail.attempt 1']
    """

    def __init__(self, *, clock: Clock = time.perf_counter) -> None:
        self.runs: list[TraceNode] = []
        self._clock = clock

    def open_run(self, run_id: str) -> _RunTrace:
        """See :class:`guardrail.protocols.Observer`."""
        del run_id
        return _RunTrace(self.runs, self._clock)


class _RunTrace:
    def __init__(self, runs: list[TraceNode], clock: Clock) -> None:
        self._runs = runs
        self._clock = clock
        self._root = TraceNode(name=names.SPAN_RUN, start_s=0.0)
        self._attempts: dict[int, TraceNode] = {}
        self._steps: dict[int, TraceNode] = {}

    def activate(self, step_id: int) -> AbstractContextManager[None]:
        del step_id
        return nullcontext()

    def on_event(self, event: Event) -> None:
        now = self._clock()
        if isinstance(event, RunStarted):
            self._root.start_s = now
            self._runs.append(self._root)
        elif isinstance(event, AttemptStarted):
            node = TraceNode(name=f"{names.SPAN_ATTEMPT} {event.attempt}", start_s=now)
            self._attempts[event.attempt] = node
            self._root.children.append(node)
        elif isinstance(event, StepStarted):
            node = TraceNode(name=names.STEP_SPANS[event.name], start_s=now)
            parent = None if event.name in _BETWEEN_ATTEMPTS else self._attempts.get(event.attempt)
            (parent or self._root).children.append(node)
            self._steps[event.step_id] = node
        elif isinstance(event, StepEnded):
            node = self._steps.pop(event.step_id)
            node.end_s, node.note = now, _step_note(event)
        elif isinstance(event, AttemptEnded):
            node, attempt = self._attempts[event.attempt.number], event.attempt
            node.end_s = now
            node.note = f"{attempt.reason}, ΔR {score(attempt.worst_delta_r)}"
        elif isinstance(event, RunEnded):
            self._root.end_s = now
            self._root.note = f"{event.outcome.status.value}, {count(len(event.outcome.attempts), 'attempt')}"


def _step_note(event: StepEnded) -> str:
    found = event.attributes
    if event.cancelled:
        return "cancelled"
    if event.error is not None:
        return type(event.error).__name__
    if "verdicts" in found:
        scored = [v for v in found["verdicts"] if v.checked]
        worst = max((v.delta_r for v in scored if v.delta_r is not None), default=None)
        return f"{count(len(scored), 'claim')}, ΔR {score(worst)}"
    if "chars" in found:
        return count(found["chars"], "character")
    if "passages" in found:
        return count(found["passages"], "passage")
    return ""


def render_trace(root: TraceNode) -> Table:
    """Draw a run: tree, duration, when it happened, note.

    Args:
        root: The span of the run.
    """
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(no_wrap=True, width=_BAR_COLUMNS)
    grid.add_column(overflow="fold", style="dim")
    _add_rows(grid, root, root, lead="", branch="")
    return grid


def _add_rows(grid: Table, node: TraceNode, root: TraceNode, *, lead: str, branch: str) -> None:
    name = Text.assemble((lead + branch, "dim"), (node.name, "bold" if node is root else ""))
    grid.add_row(name, duration(node.duration_s), _bar(node, root), node.note)
    inner = lead + {"": "", "├─ ": "│  ", "└─ ": "   "}[branch]
    last = len(node.children) - 1
    for position, child in enumerate(node.children):
        _add_rows(grid, child, root, lead=inner, branch="└─ " if position == last else "├─ ")


def _bar(node: TraceNode, root: TraceNode) -> Text:
    """When the span ran, within the run."""
    scale = _BAR_COLUMNS / max(root.duration_s, 1e-9)
    first = min(int((node.start_s - root.start_s) * scale), _BAR_COLUMNS - 1)
    length = max(1, min(round(node.duration_s * scale), _BAR_COLUMNS - first))
    after = _BAR_COLUMNS - first - length
    return Text.assemble(("·" * first, "dim"), ("━" * length, "cyan"), ("·" * after, "dim"))


def duration(seconds: float) -> str:
    """A duration for people: seconds, or milliseconds below one."""
    if seconds >= 1:
        return f"{seconds:.2f} s"
    milliseconds = seconds * 1000
    return f"{milliseconds:.0f} ms" if milliseconds >= 100 else f"{milliseconds:.1f} ms"
