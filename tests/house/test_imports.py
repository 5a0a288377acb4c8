"""What `import guardrail` costs, and what it does not load."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.imports import measure

PACKAGE = Path(__file__).parents[2] / "guardrail"
OPTIONAL = (
    "torch", "transformers", "sentence_transformers", "redis", "langchain", "langchain_core", "starlette", "httpx",
)  # fmt: skip
LATE = ("onnxruntime", "tokenizers", "opentelemetry", "rich", "numpy", "asyncio_throttle")
MAX_RATIO = 2.9  # to the standard library part; 150 ms on the machine of the README

_PROBE = """
import json, sys
import guardrail
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def _loaded() -> set[str]:
    done = subprocess.run([sys.executable, "-c", _PROBE], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


@pytest.mark.parametrize("name", OPTIONAL + LATE)
def test_importing_the_package_does_not_load(name, loaded_modules):
    assert name not in loaded_modules


@pytest.fixture(scope="module")
def loaded_modules():
    return _loaded()


def test_importing_the_package_is_fast():
    assert measure(rounds=5)["ratio"] < MAX_RATIO


def _imported_when_loaded(tree: ast.Module) -> set[str]:
    """Top-level packages that a module imports outside functions and `if TYPE_CHECKING`."""
    found = set()
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting.extend(node.orelse)
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
        waiting.extend(ast.iter_child_nodes(node))
    return found


@pytest.mark.parametrize(
    "path",
    [p for p in sorted(PACKAGE.rglob("*.py")) if "training" not in p.relative_to(PACKAGE).parts],
    ids=lambda p: str(p.relative_to(PACKAGE)),
)
def test_no_module_loads_an_optional_package_when_it_is_imported(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert not _imported_when_loaded(tree) & {*OPTIONAL, "onnxruntime", "tokenizers"}


def test_the_check_sees_an_import_at_module_level_only():
    seen = _imported_when_loaded(
        ast.parse(
            "import torch.nn\nif TYPE_CHECKING:\n    import redis\ntry:\n    from httpx import x\nfinally: pass\n"
            "def f():\n    import langchain\n"
        )
    )
    assert seen == {"torch", "httpx"}
