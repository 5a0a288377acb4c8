"""``guardrail demo``: a scripted model gets a number wrong and invents a sentence, and the guard deals with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

from rich.console import Console
from rich.padding import Padding
from rich.panel import Panel
from rich.text import Text

from guardrail.cli.console import count, describe_judge, labelled, marked, open_console
from guardrail.cli.story import Storyteller
from guardrail.cli.tables import receipt_table, verdict_table
from guardrail.cli.trace import TraceCollector, duration, render_trace
from guardrail.guard import Guardrail
from guardrail.policy import BALANCED, Policy
from guardrail.types import Outcome, Passage

QUESTION = "How long is the warranty on the Aero kettle, and can I send it back?"
PASSAGES = (
    Passage(id="care", text="Descale the Aero kettle once a month with citric acid. Never put it in water."),
    Passage(
        id="warranty",
        text="The Aero kettle has a warranty of 24 months from the date of purchase. "
        "The warranty covers the heating element and the base.",
    ),
    Passage(
        id="returns",
        text="You can return the Aero kettle free of charge within 30 days of delivery. "
        "The refund arrives within 5 working days.",
    ),
)
ANSWERS = (
    "The Aero kettle has a warranty of 24 months from the date of purchase. "
    "You can return it free of charge within 90 days of delivery. "
    "Every customer also receives a second kettle as a birthday present.",
    "You can return the kettle free of charge within 30 days of delivery. The refund arrives within 5 working days.",
)
# The retriever's third passage is cut off at first, so the model has to guess. The whole of a failing attempt is
# checked, not only its first wrong sentence, because there is something to show for it here.
POLICY: Policy = BALANCED.override(context_size=2, on_exhausted="best")

_WORD_DELAY_S = 0.06


class TypingModel:
    """A scripted model that types: one answer per attempt, the later ones continue what was released.

    Args:
        answers: One per attempt.
        delay_s: Seconds between words.
        on_text: Called with the text since the last sentence, whenever it grows; with ``""`` at the end.
    """

    def __init__(self, answers: Sequence[str], *, delay_s: float, on_text: Callable[[str], None]) -> None:
        self._answers = answers
        self._delay_s = delay_s
        self._on_text = on_text

    async def __call__(self, question: str, attempt: int, released_text: str) -> AsyncIterator[str]:
        """Type the answer of an attempt."""
        del question, released_text  # the script knows what was asked, and how to go on
        sentence = ""
        for word in self._answers[min(attempt, len(self._answers)) - 1].split():
            await asyncio.sleep(self._delay_s)
            sentence = word if sentence.endswith(".") else f"{sentence} {word}".strip()
            self._on_text(sentence)
            yield word + " "
        self._on_text("")


def demo(*, no_color: bool = False, fast: bool = False) -> int:
    """Run the demonstration.

    Args:
        no_color: Whether to leave out colours.
        fast: Whether to type without delay; so it is when the output is not a terminal.

    Returns:
        The exit status, 0.
    """
    console = open_console(no_color=no_color)
    delay_s = 0.0 if fast or not console.is_terminal else _WORD_DELAY_S
    asyncio.run(_demo(console, delay_s))
    return 0


async def _demo(console: Console, delay_s: float) -> None:
    trace = TraceCollector()
    story = Storyteller(console)
    guard = Guardrail(policy=POLICY, observers=[story, trace])
    model = TypingModel(ANSWERS, delay_s=delay_s, on_text=story.writes)
    _introduce(console, guard.verifier.scorer)
    with story:
        stream = guard.stream(model, question=QUESTION, context=PASSAGES)
        async with stream:
            seen = [text async for text in stream]
            outcome = await stream.outcome()
    _sum_up(console, "".join(seen), outcome, story, trace)


def _introduce(console: Console, scorer: str) -> None:
    console.print()
    console.print(Text.assemble((" guardrail demo", "bold"), ("  a scripted model, no network", "dim")))
    console.print()
    console.print(labelled("question", Text(QUESTION, style="bold")))
    for position, passage in enumerate(PASSAGES):
        listed = marked(Text(f"{passage.id:9}", style="cyan"), passage.text)
        console.print(labelled("" if position else "passages", listed))
    rules = f"{POLICY.name}: a claim passes if ΔR = 1 − L^w × N is at most δ = {POLICY.delta:g}"
    console.print(labelled("policy", rules))
    console.print(labelled("judge", describe_judge(scorer)))


def _sum_up(console: Console, seen: str, outcome: Outcome, story: Storyteller, trace: TraceCollector) -> None:
    console.print()
    console.print(Panel(Text(seen.strip()), title="What the reader saw", title_align="left", border_style="green"))
    _section(console, "Verdicts", "L overlap in order, N entailment, ΔR hallucination score")
    rows = [(f"{attempt} {'held' if held else 'shown'}", verdict, held) for attempt, verdict, held in story.told]
    console.print(Padding(verdict_table(rows, first="attempt"), (0, 1)))
    _section(console, "Receipt", "how every delivered character was checked")
    console.print(Padding(receipt_table(outcome), (0, 1)))
    _section(console, "Trace", "scoring runs while the model writes")
    console.print(Padding(render_trace(trace.runs[0]), (0, 1)))
    console.print()
    console.print(_closing_line(outcome, story))
    console.print()


def _section(console: Console, title: str, explanation: str) -> None:
    console.print()
    console.print(Text.assemble((f" {title}", "bold"), (f"  {explanation}", "dim")))
    console.print()


def _closing_line(outcome: Outcome, story: Storyteller) -> Text:
    held = sum(1 for _, _, was_held in story.told if was_held)
    first = outcome.timings.first_release_ms
    text = Text.assemble((f" {outcome.status.value}", "bold green" if outcome.accepted else "bold red"))
    text.append(f" after {count(len(outcome.attempts), 'attempt')}, {count(held, 'claim')} held back")
    if first is not None:
        text.append(f", first sentence out at {duration(first / 1000)}")
    return text
