"""`guardrail demo`: what a person sees, in a pipe and on a terminal."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from guardrail.cli import main
from guardrail.cli.demo import ANSWERS, PASSAGES
from guardrail.cli.trace import TraceCollector, render_trace
from guardrail.guard import Guardrail

WRONG = "within 90 days"
INVENTED = "birthday present"


@pytest.fixture
def transcript(capsys, monkeypatch):
    def run(*arguments, columns=80, **environment):
        monkeypatch.setenv("COLUMNS", str(columns))
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        assert main(["demo", *arguments]) == 0
        shown = capsys.readouterr()
        assert shown.err == ""
        return shown.out

    return run


def _rows(text: str, label: str) -> list[str]:
    """The rows that stand beside a label, continuation lines included."""
    rows: list[str] = []
    inside = False
    for line in text.splitlines():
        head = line[:9].strip()
        if head == label:
            rows.append(line[11:].strip())
            inside = True
        elif inside and not head and line.startswith(" " * 11):
            rows[-1] += " " + line[11:].strip()
        else:
            inside = False
    return rows


def _pane(text: str) -> str:
    """What stands in the reader's pane."""
    inside = re.search(r"╭─ What the reader saw ─+╮\n(.*?)╰─+╯", text, re.DOTALL)
    assert inside
    return " ".join(line.strip("│ ") for line in inside[1].splitlines())


def test_the_reader_never_sees_what_was_held(transcript):
    text = transcript()
    assert _pane(text) == f"{ANSWERS[0].partition('. ')[0]}. {ANSWERS[1]}"
    assert len(_rows(text, "reader")) == 3
    for seen in (_pane(text), *_rows(text, "reader")):
        assert WRONG not in seen
        assert INVENTED not in seen


def test_the_operator_sees_what_was_held_and_why(transcript):
    held = _rows(transcript(), "HELD")
    assert len(held) == 2
    assert all("never shown to the reader" in row for row in held)
    assert WRONG in held[0]
    assert "contradicted" in held[0]
    assert "'30 days', not '90 days'" in held[0]
    assert INVENTED in held[1]


def test_both_attempts_and_the_reranked_context_are_shown(transcript):
    text = transcript()
    assert "attempt 1 of at most 3" in text
    assert "attempt 2 of at most 3" in text
    assert "attempt 3 of" not in text
    first, second = _rows(text, "context")
    assert first.startswith("care, warranty")
    assert second.startswith("returns")
    assert "reranked, new: returns" in second


def test_verdicts_receipt_and_trace_follow(transcript):
    text = transcript()
    table = text[text.index(" Verdicts") : text.index(" Receipt")]
    assert re.findall(r"\b(\d) (shown|held)", table) == [
        ("1", "shown"), ("1", "held"), ("1", "held"), ("2", "shown"), ("2", "shown"),
    ]  # fmt: skip
    receipt = text[text.index(" Receipt") : text.index(" Trace")]
    assert receipt.count("checked before release") == 3
    assert "NOT CHECKED" not in receipt
    trace = text[text.index(" Trace") :]
    for name in ("guardrail.run", "├─ guardrail.attempt 1", "├─ guardrail.rerank", "└─ guardrail.attempt 2"):
        assert re.search(rf"{re.escape(name)} +[\d.]+ m?s", trace)
    assert "accepted after 2 attempts, 2 claims held back" in trace


def test_it_says_what_judged(transcript):
    (judge,) = _rows(transcript(), "judge")
    assert Guardrail().verifier.scorer in judge


@pytest.mark.parametrize("columns", [60, 80, 120, 200])
def test_it_fits_the_width(transcript, columns):
    lines = transcript(columns=columns).splitlines()
    assert max(len(line) for line in lines) <= min(columns, 120)


def test_it_writes_no_escape_codes_into_a_pipe(transcript):
    assert "\x1b" not in transcript()


def _colours(text: str) -> list[str]:
    codes = [code for found in re.findall(r"\x1b\[([\d;]*)m", text) for code in found.split(";")]
    return [code for code in codes if code and (30 <= int(code) <= 49 or 90 <= int(code) <= 107)]


def test_a_terminal_gets_colours_struck_text_and_the_typing_model(transcript):
    text = transcript("--fast", FORCE_COLOR="1", TERM="xterm-256color")
    assert _colours(text)
    assert re.search(r"\x1b\[9;31mYou can return it", text)
    assert "not checked yet" in text


@pytest.mark.parametrize("how", ["flag", "environment"])
def test_a_terminal_without_colours_shows_the_same_words(transcript, how):
    terminal = {"FORCE_COLOR": "1", "TERM": "xterm-256color"}
    if how == "flag":
        text = transcript("--fast", "--no-color", **terminal)
    else:
        text = transcript("--fast", NO_COLOR="1", **terminal)
    assert _colours(text) == []
    assert "never shown to the reader" in text


def test_a_reader_of_the_pipe_may_leave(tmp_path):
    command = [sys.executable, "-m", "guardrail", "demo"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_the_trace_is_a_tree_of_nested_times():
    trace = TraceCollector()
    guard = Guardrail(observers=[trace])
    guard.run_sync(lambda question, context: context[0], question="Open?", context=["The desk is open."])
    (root,) = trace.runs

    def check(node):
        assert node.end_s is not None
        for child in node.children:
            assert node.start_s <= child.start_s <= child.end_s <= node.end_s
            check(child)

    check(root)
    assert [c.name for c in root.children[0].children] == ["guardrail.generate", "guardrail.score"]
    assert render_trace(root).row_count == 4


def test_the_passages_have_what_the_final_answer_says():
    everything = " ".join(p.text for p in PASSAGES)
    assert INVENTED not in everything
    assert WRONG not in everything
