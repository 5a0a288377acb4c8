"""The report of ``guardrail bench quality`` as a table: what was measured beside what others report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from guardrail.cli.console import count, describe_judge
from guardrail.evaluation.benchmarks.published import Published, published
from guardrail.evaluation.benchmarks.quality import CascadeQuality, QualityReport, SetQuality
from guardrail.evaluation.benchmarks.thresholds import BestThreshold

_Cell = Callable[[Any], str]
_Line = tuple[str, Mapping[str, Any], str]


def _number(value: float | None, digits: int = 3) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.1%}"


_COLUMNS: Mapping[str, tuple[str, _Cell]] = {
    "n": ("n", lambda value: "–" if value is None else str(value)),
    "AUROC": ("auroc", _number),
    "F1": ("f1", _number),
    "P": ("precision", _number),
    "R": ("recall", _number),
    "bal.\nacc.": ("balanced_accuracy", _number),
    "false\nrefusal": ("false_refusals", _percent),
    "halluc.\nstopped": ("hallucinated_stopped", _percent),
    "ms/\nclaim": ("ms_per_claim", lambda value: _number(value, 1)),
}
_SHOWN = {field for field, _ in _COLUMNS.values()}


def print_quality(console: Console, report: QualityReport) -> None:
    """Print a report.

    Args:
        console: Where to.
        report: The report.
    """
    table = Table(box=box.SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False)
    table.add_column("set", overflow="fold")
    for heading in _COLUMNS:
        table.add_column(heading, justify="right", no_wrap=True)
    for name, found in report.sets.items():
        for label, figures, style in _lines(name, found):
            cells = (cell(figures[field]) if field in figures else "" for field, cell in _COLUMNS.values())
            table.add_row(Text(label), *cells, style=style)
    console.print(table)
    console.print()
    for name, found in report.sets.items():
        if found.overall.skipped:
            reasons = ", ".join(f"{reason} {number}" for reason, number in found.overall.skipped.items())
            skipped = f"{name}: {count(sum(found.overall.skipped.values()), 'answer')} skipped ({reasons})"
            console.print(Text(skipped, style="yellow"))
    for line in _explanations(report):
        console.print(Text(line, style="dim"))
    for name in report.sets:
        for line in _sources(name, published(name)):
            console.print(Text(line, style="dim"))


def _lines(name: str, found: SetQuality) -> Iterator[_Line]:
    yield name, asdict(found.overall), ""
    for task, row in found.by_task.items():
        yield f"  {task}", asdict(row), ""
    if found.overall.best is not None:
        yield f"best: {_threshold(found.overall.best)}", asdict(found.overall.best), ""
    if found.cascade is not None:
        judged = asdict(found.cascade.overall)
        del judged["ms_per_claim"]
        yield f"+ judge: {_percent(found.cascade.claims_asked)} asked", judged, ""
    for other in published(name):
        if _SHOWN & set(other.figures):
            yield f"· {_system(other)}", other.figures, "dim"


def _threshold(best: BestThreshold) -> str:
    if best.threshold > 1:
        return "vetoes only"  # those stand above every ΔR
    return f"ΔR ≥ {best.threshold:.3f}" if best.threshold >= 0 else "all flagged"


def _explanations(report: QualityReport) -> Iterator[str]:
    flagged = "that the policy stops" if report.detection_delta is None else f"above ΔR {report.detection_delta:g}"
    yield f"P, R, F1 and bal. acc. of flagging hallucinated answers: those {flagged}"
    yield "false refusal: grounded answers that the policy does not accept"
    if any(found.overall.best is not None for found in report.sets.values()):
        yield "best: the threshold with the best F1 on this very set, chosen with its labels; an upper bound"
    cascade = next((found.cascade for found in report.sets.values() if found.cascade is not None), None)
    if cascade is not None:
        yield _about(cascade)
    if any(published(name) for name in report.sets):
        yield "·: published by others, on the whole set unless a part is named; sources below"
    judge = describe_judge(report.scorer)
    yield f"policy {report.policy} · δ {report.delta:g} · judged by {judge}"


def _about(cascade: CascadeQuality) -> str:
    return (
        "+ judge: doubtful claims, asked as a share of all, decided by a simulated judge that knows the labels and "
        f"errs with probability {cascade.error_rate:g} (seed {cascade.seed}); no forecast for a real one"
    )


def _sources(name: str, others: tuple[Published, ...]) -> Iterator[str]:
    """One line per source, with the systems that have no column."""
    by_source: dict[tuple[str, str], list[str]] = {}
    for other in others:
        extra = ", ".join(f"{key} {value:.3f}" for key, value in other.figures.items())
        hidden = [] if _SHOWN & set(other.figures) else [f"{_system(other)} {extra}".strip()]
        by_source.setdefault((other.source, other.note), []).extend(hidden)
    for (source, note), hidden in by_source.items():
        listed = f": {'; '.join(hidden)}" if hidden else ""
        yield f"· {name}: {source}{f' ({note})' if note else ''}{listed}"


def _system(other: Published) -> str:
    return f"{other.system}, {other.task}" if other.task else other.system
