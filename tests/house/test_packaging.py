"""The wheel that users install."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

import guardrail

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def _run(*command: str, **options) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    _run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), cwd=ROOT)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def names(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.fixture(scope="module")
def metadata(wheel, names):
    (name,) = [n for n in names if n.endswith(".dist-info/METADATA")]
    with zipfile.ZipFile(wheel) as archive:
        return Parser().parsestr(archive.read(name).decode())


def test_the_wheel_holds_every_file_of_the_package(names):
    files = [p for p in (ROOT / "guardrail").rglob("*") if p.is_file() and "__pycache__" not in p.parts]
    assert {p.relative_to(ROOT).as_posix() for p in files} <= names
    assert "guardrail/py.typed" in names


def test_the_wheel_holds_nothing_else(names):
    tops = {name.partition("/")[0] for name in names}
    assert tops == {"guardrail", "guardrail_langchain", f"guardrail_stream-{guardrail.__version__}.dist-info"}
    assert not [name for name in names if "test_" in name or "__pycache__" in name]


def test_the_licence_is_in_the_wheel(names):
    assert [name for name in names if name.endswith("/LICENSE")]


def test_the_metadata_says_what_the_project_says(metadata):
    assert metadata["Name"] == "guardrail-stream"
    assert metadata["Version"] == guardrail.__version__
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["License-Expression"] == "Apache-2.0"
    assert set(metadata.get_all("Provides-Extra")) == set(PROJECT["optional-dependencies"])


def test_the_core_needs_no_optional_package(metadata):
    core = {line for line in metadata.get_all("Requires-Dist") if "extra ==" not in line}
    assert len(core) == len(PROJECT["dependencies"])
    assert not [line for line in core if line.startswith(("torch", "transformers", "sentence", "redis", "langchain"))]


def test_the_installed_wheel_works_without_the_source_tree(wheel, tmp_path):
    target = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--no-compile", "--quiet"]
    _run(*pip, "--target", str(target), str(wheel))
    here = {**os.environ, "PYTHONPATH": str(target)}
    found = _run(sys.executable, "-c", "import guardrail; print(guardrail.__file__)", env=here, cwd=tmp_path)
    assert Path(found.stdout.strip()).is_relative_to(target)
    shown = _run(sys.executable, "-m", "guardrail", "--version", env=here, cwd=tmp_path)
    assert shown.stdout == f"guardrail {guardrail.__version__}\n"
    transcript = _run(sys.executable, "-m", "guardrail", "demo", env=here, cwd=tmp_path).stdout
    assert "accepted" in transcript


def test_the_command_is_declared(wheel, names):
    (name,) = [n for n in names if n.endswith("entry_points.txt")]
    with zipfile.ZipFile(wheel) as archive:
        assert "guardrail = guardrail.cli:main" in archive.read(name).decode()
