"""Tells on the console what happens in a run, as it happens: who sees what, and why."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from guardrail.cli.console import VERDICT_STYLES, count, labelled, marked, score
from guardrail.cli.tables import evidence_passage, shorten
from guardrail.events import AttemptStarted, Checked, Event, Held, Regenerating, Released, RunStarted
from guardrail.reasons import why_failed
from guardrail.types import ClaimVerdict

HELD_MARK = "HELD"
READER_MARK = "reader"
NEVER_SHOWN = "never shown to the reader"


class Storyteller:
    """An observer that prints every step for an operator, held text included.

    Args:
        console: Where to print.

    Attributes:
        told: What was checked: attempt, verdict, and whether it was held.
    """

    def __init__(self, console: Console) -> None:
        self.told: list[tuple[int, ClaimVerdict, bool]] = []
        self._console = console
        self._live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None
        self._checked: dict[tuple[int, int], ClaimVerdict] = {}
        self._shown: tuple[str, ...] = ()
        self._max_attempts = 0
        self._passages = 0

    def __enter__(self) -> Storyteller:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._live is not None:
            self._live.update(Text(""), refresh=True)
            self._live.stop()

    def open_run(self, run_id: str) -> Storyteller:
        """See :class:`guardrail.protocols.Observer`; tells one run."""
        del run_id
        return self

    def activate(self, step_id: int) -> AbstractContextManager[None]:
        """See :class:`guardrail.protocols.RunObserver`."""
        del step_id
        return nullcontext()

    def writes(self, unchecked: str) -> None:
        """Show what the model is writing, on the last line of a terminal.

        Args:
            unchecked: The text since the last boundary; empty to clear the line.
        """
        if self._live is None:
            return
        line = Text("")
        if unchecked:
            room = max(10, self._console.width - 36)
            tail = unchecked if len(unchecked) <= room else "…" + unchecked[1 - room :]
            line = Text.assemble("    model  ", (tail, "italic"), "▌  not checked yet", style="dim")
        self._live.update(line, refresh=True)

    def on_event(self, event: Event) -> None:
        """See :class:`guardrail.protocols.RunObserver`."""
        if isinstance(event, RunStarted):
            self._max_attempts, self._passages = event.max_attempts, event.passages
        elif isinstance(event, AttemptStarted):
            self._attempt(event)
        elif isinstance(event, Checked):
            self._checked[event.attempt, event.verdict.segment.start] = event.verdict
        elif isinstance(event, Released):
            self._released(event)
        elif isinstance(event, Held):
            self._held(self._checked[event.attempt, event.start], event.attempt)
        elif isinstance(event, Regenerating):
            failed = count(event.failed, "claim")
            self._row("", Text(f"{failed} failed: rerank the context, generate again", style="cyan"))

    def _attempt(self, event: AttemptStarted) -> None:
        self._console.print()
        self._console.rule(f"attempt {event.attempt} of at most {self._max_attempts}", style="dim")
        context = Text(", ".join(event.passage_ids))
        context.append(f"  {len(event.passage_ids)} of {count(self._passages, 'passage')}", style="dim")
        new = [pid for pid in event.passage_ids if pid not in self._shown]
        if self._shown:
            context.append(f"  reranked, new: {', '.join(new)}" if new else "  reranked", style="cyan")
        self._row("context", context)
        if event.released_chars:
            self._row("", Text(f"continues after the {event.released_chars} characters the reader has", style="dim"))
        self._shown = event.passage_ids

    def _released(self, event: Released) -> None:
        if not event.text.strip():
            return
        if event.verdict is None:
            said = marked(" ", event.text.strip(), Text("the guard's own words", style="dim"))
        else:
            self.told.append((event.attempt, event.verdict, False))
            why = _scores(event.verdict)
            if event.verdict.evidence:
                why.append(f" · see {evidence_passage(event.verdict)}", style="dim")
            said = marked(Text("✓", style="green"), event.verdict.segment.body, why)
        self._row(Text(READER_MARK, style="bold green"), said)

    def _held(self, verdict: ClaimVerdict, attempt: int) -> None:
        self.told.append((attempt, verdict, True))
        text = Text(shorten(verdict.segment.body, 400), style="strike red")
        fate = Text.assemble((NEVER_SHOWN, "bold"), " · ", _scores(verdict))
        held = marked(Text("✗", style="red"), text, fate, why_failed(verdict))
        self._row(Text(HELD_MARK, style="bold red"), held)

    def _row(self, label: str | Text, body: RenderableType) -> None:
        self._console.print(labelled(label, body))


def _scores(verdict: ClaimVerdict) -> Text:
    if verdict.verdict is None:
        return Text(f"{verdict.segment.kind.value}, nothing to check", style="dim")
    text = Text().append(verdict.verdict.value, style=VERDICT_STYLES[verdict.verdict])
    return text.append(f" · ΔR {score(verdict.delta_r)}", style="dim")
