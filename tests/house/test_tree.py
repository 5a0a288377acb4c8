"""Rules of the house that a reader of the whole tree would check."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = {".py", ".md", ".toml", ".cfg", ".ini", ".txt", ".yml", ".yaml", ".sh", ".lua", ".json", ""}
OUTSIDE = {"__pycache__", "build", "dist", "node_modules"}
HOSTS = ("pypi" + ".org", "python" + "hosted", "download.py" + "torch", "registry.npm" + "js", "hugging" + "face.co")
UNFINISHED = re.compile("TO" + "DO|FIX" + "ME|X" + "XX(?!X)|Not" + "ImplementedError")
MAX_LINES = 400
# Files past MAX_LINES, each with the reason for not splitting it.
LONG = {
    "guardrail/engine.py": "the order of a run, in one place",
    "guardrail/types.py": "all values of a run, in one place; mostly docstrings",
}


def _files():
    for path in sorted(ROOT.rglob("*")):
        parts = path.relative_to(ROOT).parts
        hidden = [p for p in parts if p.startswith(".") and p not in (".ci", ".gitignore")]
        if hidden or OUTSIDE & set(parts) or any(p.endswith(".egg-info") for p in parts) or not path.is_file():
            continue
        if path.suffix in TEXT:
            yield path


FILES = list(_files())


def _matches(pattern: str | re.Pattern[str], *, among=None) -> list[str]:
    found = []
    for path in FILES if among is None else among:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            if re.search(pattern, line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}")
    return found


def test_the_tree_was_found():
    seen = {p.relative_to(ROOT).as_posix() for p in FILES}
    assert {"pyproject.toml", "Makefile", ".ci/run", "guardrail/__init__.py", "examples/plain_callable.py"} <= seen


@pytest.mark.parametrize("host", HOSTS)
def test_no_host_of_a_registry_is_named(host):
    assert not _matches(re.escape(host))


def test_nothing_is_left_unfinished():
    assert not _matches(UNFINISHED)


def test_checks_are_not_switched_off_wholesale():
    blanket = re.compile(r"#\s*(type:\s*ignore(?!\[)|noqa(?!:)|ruff:\s*noqa|mypy:\s*ignore)")
    assert not _matches(blanket, among=[p for p in FILES if p.suffix == ".py"])


def test_files_stay_readable_in_one_sitting():
    package = [p for p in FILES if p.suffix == ".py" and p.relative_to(ROOT).parts[0] == "guardrail"]
    lengths = {p.relative_to(ROOT).as_posix(): len(p.read_text(encoding="utf-8").splitlines()) for p in package}
    assert sorted(name for name, lines in lengths.items() if lines > MAX_LINES and name not in LONG) == []
    assert sorted(name for name in LONG if lengths.get(name, 0) <= MAX_LINES) == []


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.name)
def test_an_example_is_one_idea(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) < 80


def test_the_command_of_ci_runs_the_tests():
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o111
    assert script.read_text(encoding="utf-8").splitlines()[:2] == ["#!/usr/bin/env bash", "set -euo pipefail"]
    assert "make test" in script.read_text(encoding="utf-8")
