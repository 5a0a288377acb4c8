"""The public names of the evaluation room: all there, none in the way of a module, none loaded before it is named."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys

import pytest

import guardrail.evaluation as room

MODULES = {module.name for module in pkgutil.iter_modules(room.__path__)}


@pytest.mark.parametrize("name", room.__all__)
def test_a_public_name_is_there(name: str):
    value = getattr(room, name)
    assert value.__name__ == name
    assert getattr(importlib.import_module(value.__module__), name) is value


def test_the_list_is_sorted_and_complete():
    assert set(room.__all__) == set(room._LATE)
    assert len(room.__all__) == len(set(room.__all__))
    assert set(room.__all__) <= set(dir(room))


def test_no_name_is_that_of_a_module():
    """Importing the module would put it in the place of the name."""
    assert MODULES.isdisjoint(room.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = room.nothing  # type: ignore[attr-defined]


def test_nothing_is_loaded_before_it_is_named():
    code = (
        "import sys, guardrail.evaluation as room; before = set(sys.modules); assert 'numpy' not in before, 'numpy'; "
        "room.summarise; print(sorted(m for m in set(sys.modules) - before if m.startswith('guardrail.evaluation')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['guardrail.evaluation.summary']"
