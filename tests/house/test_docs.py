"""What the documentation says is true: its examples run, and it knows every module."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import guardrail

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
ROOMS = (ROOT / "guardrail" / "README.md").read_text(encoding="utf-8")
MODULES = sorted(m.name for m in pkgutil.walk_packages(guardrail.__path__, "guardrail.") if "__main__" not in m.name)
BLOCKS = re.findall(r"^```python\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)
SAYS = re.compile(r"print\(.*\)\s+# (?P<output>.+)$", re.MULTILINE)


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name, capsys):
    results = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert results.failed == 0, capsys.readouterr().out


def test_the_package_has_examples_in_docstrings():
    finder = doctest.DocTestFinder()
    examples = sum(len(t.examples) for name in MODULES for t in finder.find(importlib.import_module(name)))
    assert examples >= 40


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.strip().splitlines()[-1][:40])
def test_examples_in_the_readme_run(block, tmp_path):
    done = subprocess.run([sys.executable, "-c", block], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    promised = [match["output"].strip() for match in SAYS.finditer(block)]
    assert done.stdout.splitlines()[: len(promised)] == promised


def test_the_readme_begins_with_an_example_that_says_what_it_prints():
    assert len(BLOCKS) >= 3
    assert SAYS.search(BLOCKS[0])


def _modules_of_the_package():
    package = ROOT / "guardrail"
    return sorted(p.relative_to(package) for p in package.rglob("*.py") if not p.name.startswith("_"))


def test_the_map_of_the_rooms_names_every_module():
    unnamed = []
    for path in _modules_of_the_package():
        named = re.compile(rf"(?<!\w){re.escape(path.stem)}(\.py)?(?!\w)")
        lines = [line for line in ROOMS.splitlines() if len(path.parts) == 1 or f"{path.parts[0]}/" in line]
        if not any(named.search(line) for line in lines):
            unnamed.append(path.as_posix())
    assert unnamed == []


def test_the_map_of_the_rooms_names_no_module_that_is_gone():
    mentioned = set(re.findall(r"`((?:[a-z_]+/)*[a-z_]+\.py)`", ROOMS))
    assert mentioned
    inside = {p.as_posix() for p in _modules_of_the_package()}
    names = {Path(p).name for p in inside}
    gone = {m for m in mentioned if m not in inside and Path(m).name not in names and not (ROOT / m).exists()}
    assert not gone


def test_the_changelog_knows_this_version():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## \[{re.escape(guardrail.__version__)}\]", changelog, re.MULTILINE)


@pytest.mark.parametrize("page", ["README.md", "guardrail/README.md", "CHANGELOG.md"])
def test_links_between_pages_lead_somewhere(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    targets = [t for t in re.findall(r"\]\(([^)#\s]+)", text) if "://" not in t]
    missing = [t for t in targets if not ((ROOT / page).parent / t).exists()]
    assert not missing


def test_commands_in_the_readme_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"\bmake ([a-z]+)", README))
    assert targets
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)
