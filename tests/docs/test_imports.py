"""What the fast gate does not run, slow suites and benches, imports names that exist."""

import ast
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("tests/vm", "tests/keep", "tests/harm", "tests/recipes", "tests/clean", "bench")
OURS = ("mydyno", "mydyno_vm", "mydyno_simulate")


def imported(path):
    """Return each name that a file imports from us, with its module."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in OURS:
            yield from ((node.module, alias.name) for alias in node.names)


def is_there(module, name):
    there = import_module(module)
    package = hasattr(there, "__path__")
    return hasattr(there, name) or (package and find_spec(f"{module}.{name}") is not None)


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_name_is_there(folder):
    found = {pair for path in (ROOT / folder).rglob("*.py") for pair in imported(path)}
    assert [pair for pair in sorted(found) if not is_there(*pair)] == []


def test_a_name_that_is_gone_is_seen():
    assert not is_there("mydyno.keep.lease", "stack")
