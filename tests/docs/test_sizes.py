"""Files and functions keep the sizes of the design (section 7)."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILE, FUNCTION = 500, 50


def sources():
    yield from (ROOT / "src").rglob("*.py")


def test_no_file_is_longer_than_a_person_reads():
    long = {
        str(p.relative_to(ROOT)): n
        for pattern in ("src/**/*.py", "crates/*/src/**/*.rs", "src/**/*.lua")
        for p in ROOT.glob(pattern)
        if (n := p.read_text().count("\n")) > FILE
    }
    assert long == {}


def test_no_function_is_longer_than_a_screen():
    long = {}
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.FunctionDef):
                continue
            body = node.body[1:] if ast.get_docstring(node) else node.body
            lines = (node.end_lineno or 0) - body[0].lineno + 1 if body else 0
            if lines > FUNCTION:
                long[f"{path.relative_to(ROOT)}:{node.name}"] = lines
    assert long == {}
