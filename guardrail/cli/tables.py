"""Verdicts and receipts as tables."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from guardrail.cli.console import VERDICT_STYLES, score
from guardrail.types import ClaimVerdict, Outcome, ReceiptStatus

_RECEIPT_WORDS = {
    ReceiptStatus.CHECKED_BEFORE: "checked before release",
    ReceiptStatus.CHECKED_AFTER: "checked after release",
    ReceiptStatus.NOT_CHECKED: "NOT CHECKED",
}
_ELLIPSIS_AT = 120


def verdict_table(rows: Sequence[tuple[str, ClaimVerdict, bool]], *, first: str = "#") -> Table:
    """Verdicts, one per row: claim, verdict, L, N, ΔR, evidence passage.

    Args:
        rows: What stands in the first column, the verdict, and whether its text was held back.
        first: Heading of the first column.
    """
    table = Table(box=box.SIMPLE_HEAD, expand=True, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    table.add_column(first, no_wrap=True)
    table.add_column("claim", ratio=1, overflow="fold")
    table.add_column("verdict", no_wrap=True)
    for name in ("L", "N", "ΔR"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("evidence", max_width=18, overflow="fold")
    for label, verdict, held in rows:
        table.add_row(
            label,
            Text(shorten(verdict.segment.body), style="strike" if held else ""),
            verdict_word(verdict),
            score(verdict.rouge_l),
            score(verdict.entailment),
            score(verdict.delta_r),
            Text(evidence_passage(verdict)),
        )
    return table


def verdict_word(verdict: ClaimVerdict) -> Text:
    """The verdict, or the kind of a segment that is not checked."""
    if verdict.verdict is not None:
        return Text(verdict.verdict.value, style=VERDICT_STYLES[verdict.verdict])
    if verdict.segment.kind.checked:
        return Text("not scored", style="yellow")
    return Text(verdict.segment.kind.value, style="dim")


def evidence_passage(verdict: ClaimVerdict) -> str:
    """Id of the passage that the best evidence comes from, or a dash."""
    return verdict.evidence[0].passage_id if verdict.evidence else "–"


def receipt_table(outcome: Outcome) -> Table:
    """What is known per range of the delivered text."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    table.add_column("characters", justify="right", no_wrap=True)
    table.add_column("status", no_wrap=True)
    table.add_column("because", no_wrap=True)
    table.add_column("from", no_wrap=True)
    for part in outcome.receipt:
        table.add_row(
            f"{part.start}–{part.end}",
            Text(_RECEIPT_WORDS[part.status], style="red" if part.status is ReceiptStatus.NOT_CHECKED else ""),
            part.reason,
            f"attempt {part.attempt}" if part.attempt else "the guard",
        )
    return table


def shorten(text: str, limit: int = _ELLIPSIS_AT) -> str:
    """One line of at most ``limit`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"
