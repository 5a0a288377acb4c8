"""The progress bar of the command line."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from guardrail.cli.progress import progress


def shown(*reports):
    out = io.StringIO()
    with progress(Console(file=out, force_terminal=True, width=100), "measuring") as advance:
        for done, total in reports:
            advance(done, total)
    return out.getvalue()


def test_a_terminal_is_shown_items_and_what_is_left():
    text = shown((0, 40), (1, 40), (2, 40))
    assert "measuring" in text
    assert "2/40" in text
    assert "/s" in text


def test_what_an_earlier_run_has_done_is_no_speed():
    text = shown((9_000, 10_000))
    assert "9000/10000" in text
    assert "/s" not in text


def test_there_is_no_bar_without_a_terminal():
    out = io.StringIO()
    with progress(Console(file=out), "measuring") as advance:
        assert advance is None
    assert out.getvalue() == ""


def test_an_error_ends_the_bar():
    with pytest.raises(KeyError), progress(Console(file=io.StringIO(), force_terminal=True), "measuring"):
        raise KeyError("x")
