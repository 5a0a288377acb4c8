"""The agent of the examples runs offline and shows only what passed."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "langgraph_agent.py"


def test_langgraph_agent(capsys: pytest.CaptureFixture[str]):
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    shown = capsys.readouterr().out.splitlines()
    assert shown == [
        "  ... regenerating",
        "  ... finished",
        "The library is open from 8 am to 6 pm on weekdays. On Sundays it is closed.",
        "(accepted after 2 attempts; 4 messages in the history)",
    ]
