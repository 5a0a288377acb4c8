"""The `guardrail` command itself: version, help, how it ends."""

from __future__ import annotations

import subprocess
import sys

import pytest

import guardrail
from guardrail.cli import main
from guardrail.errors import ScoringError


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"guardrail {guardrail.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--help"], ["demo", "check", "bench"]),
        (["demo", "--help"], ["--no-color", "--fast"]),
        (["check", "--help"], ["--answer", "--context", "--strict", "--json", "Exit status", ".jsonl"]),
        (["bench", "--help"], ["replay"]),
        (["bench", "replay", "--help"], ["--policy", "--limit", "--json"]),
    ],
)
def test_help_names_what_there_is(capsys, arguments, words):
    assert main(arguments) == 0
    text = capsys.readouterr().out
    assert all(word in text for word in words)


@pytest.mark.parametrize("arguments", [[], ["bench"], ["frobnicate"], ["check"]])
def test_wrong_usage_ends_with_2(capsys, arguments):
    assert main(arguments) == 2
    assert "usage: guardrail" in capsys.readouterr().err


def test_help_does_not_load_rich():
    probe = "import sys; from guardrail.cli import main; main(['--help']); sys.stderr.write(str('rich' in sys.modules))"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stderr == "False"


def test_an_interrupt_ends_quietly_with_130(capsys, monkeypatch):
    def interrupted(**_):
        raise KeyboardInterrupt

    monkeypatch.setattr("guardrail.cli.demo.demo", interrupted)
    assert main(["demo"]) == 130
    assert "Traceback" not in capsys.readouterr().err


def test_an_error_of_the_package_ends_with_2_and_its_message(capsys, monkeypatch):
    def failing(**_):
        raise ScoringError("the model is asleep")

    monkeypatch.setattr("guardrail.cli.demo.demo", failing)
    assert main(["demo"]) == 2
    assert capsys.readouterr().err == "guardrail: the model is asleep\n"


def test_a_bug_is_not_hidden(monkeypatch):
    def broken(**_):
        raise ZeroDivisionError

    monkeypatch.setattr("guardrail.cli.demo.demo", broken)
    with pytest.raises(ZeroDivisionError):
        main(["demo"])


def test_a_terminal_without_greek_letters_gets_a_transcript(tmp_path):
    command = [sys.executable, "-X", "utf8=0", "-m", "guardrail", "demo"]
    environment = {"PYTHONIOENCODING": "ascii", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, capture_output=True, check=False, cwd=tmp_path, env=environment)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"never shown to the reader" in done.stdout
