"""The examples run as they are, and print what a reader should see."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def _run(name: str, cwd: Path) -> str:
    command = [sys.executable, "-W", "error", str(EXAMPLES / name)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_plain_callable(tmp_path):
    lines = _run("plain_callable.py", tmp_path).splitlines()
    assert lines[0] == "A library card costs 12 euro a year. Children under 14 get it free of charge."
    assert lines[2].startswith("accepted after 2 attempts")
    assert [line.split(",")[0].strip() for line in lines[3:]] == ["supported", "supported"]


def test_streaming_chat(tmp_path):
    shown = _run("streaming_chat.py", tmp_path)
    assert "20 minutes" not in shown
    assert (
        shown.splitlines()[0].split()
        == (
            "Line 4 runs from the harbour to the airport. The ride takes 35 minutes. "
            "A single ticket for line 4 costs 3.20 euro."
        ).split()
    )
    assert "(accepted, 2 attempts, repaired by: continued)" in shown


def test_strict_medical(tmp_path):
    lines = _run("strict_medical.py", tmp_path).splitlines()
    assert lines[0].startswith("careful: Adults take one tablet of 5 mg")
    assert lines[1].strip().startswith("accepted (passed)")
    assert lines[2].startswith("careless: I cannot answer this")
    assert "100 mg" not in "\n".join(lines)
    assert lines[3].strip().startswith("refused (same_claim_failed_twice), 2 attempts")
    assert "failed: contradicted, evidence in 'dose'" in lines[4]
    assert lines[-1].strip() == "refused (no_context), 0 attempts"


def test_strict_legal(tmp_path):
    lines = _run("strict_legal.py", tmp_path).splitlines()
    heads = [line for line in lines if not line.startswith(" ")]
    assert heads == [
        "true to the contract: accepted (passed)",
        "another deadline: rejected (claims_failed)",
        "nothing to check: rejected (no_claims)",
    ]
    assert any(line.split()[:4] == ["contradicted", "see", "§", "7:"] for line in lines)


def test_console_trace(tmp_path):
    pytest.importorskip("opentelemetry.sdk", reason="the example needs the extra [otel]")
    lines = _run("console_trace.py", tmp_path).splitlines()
    assert lines[0] == "The museum opens at 10:00. Entry costs 8 euro."
    tree = lines[2:]
    assert tree[0].startswith("guardrail.run ")
    assert "outcome=accepted" in tree[0]
    assert [line.split()[0] for line in tree if line.startswith("  ") and line[2] != " "] == [
        "guardrail.attempt", "guardrail.rerank", "guardrail.attempt",
    ]  # fmt: skip
    assert sum("guardrail.score" in line for line in tree) >= 3


def test_langchain_chain(tmp_path):
    assert _run("langchain_chain.py", tmp_path).strip() == "The museum opens at ten. Entry is free on Sundays."


def test_langgraph_agent(tmp_path):
    lines = _run("langgraph_agent.py", tmp_path).splitlines()
    assert lines[-1] == "(accepted after 2 attempts; 4 messages in the history)"
    assert not any("9 pm" in line for line in lines)


def test_every_example_is_run_here():
    tested = {name.removeprefix("test_") + ".py" for name in globals() if name.startswith("test_")}
    assert {path.name for path in EXAMPLES.glob("*.py")} <= tested


def test_cited_answers(tmp_path):
    lines = _run("cited_answers.py", tmp_path).splitlines()
    assert [line.strip() for line in lines if line.startswith("  [") or "nothing" in line][:3] == [
        "[2]: wrong, should be 1",
        "[7]: dangling, should be 2",
        "nothing: missing",
    ]
    written = "The Orrin dam is 212 m high [1]. It was finished in 1974 [2]. "
    assert f"fix: {written}Its lake holds 90 million cubic metres of water [3]." in lines
