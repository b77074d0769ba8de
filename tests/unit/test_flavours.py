"""The table of flavours, and that nobody else compares a flavour or a version.

If the second fails, a server that a plug-in adds is treated as one of ours in that place.
"""

import ast
from pathlib import Path

import pytest

from mydyno.model import SpecError
from mydyno.server.place import parse
from mydyno.stack.flavours import flavours, known_as, quirks, recognised

SRC = Path(__file__).parents[2] / "src/mydyno"
TABLE = SRC / "stack/flavours.py"
NAMES = {"mysql", "mariadb", "percona", "maria"}
# words of a load tool's `--version`, which is no server
ELSEWHERE = {
    ("testbed/preflight.py", "'mysql' in line"),
    ("testbed/preflight.py", "'maria' in line"),
}
ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)


def texts(node):
    """Return the words in an expression that stand for themselves, in a tuple or set too."""
    parts = node.elts if isinstance(node, ast.Tuple | ast.Set | ast.List) else [node]
    return {one.value for one in parts if isinstance(one, ast.Constant)}


def is_numbers(node):
    return isinstance(node, ast.Tuple) and all(
        isinstance(one, ast.Constant) and isinstance(one.value, int) for one in node.elts
    )


def is_version(node):
    while isinstance(node, ast.Subscript):
        node = node.value
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return name.endswith("version")


def comparisons(source):
    """Yield text and line of every comparison of a flavour, or of a version with a number."""
    tree = ast.parse(source)
    bounds = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign) and is_numbers(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if compares(node, bounds):
            yield ast.unparse(node), node.lineno


def compares(node, bounds):
    if isinstance(node, ast.MatchValue):
        return bool(texts(node.value) & NAMES)
    if isinstance(node, ast.Dict):  # a branch by look-up
        return any(key is not None and texts(key) & NAMES for key in node.keys)
    if not isinstance(node, ast.Compare):
        return False
    sides = (node.left, *node.comparators)
    if any(texts(side) & NAMES for side in sides):
        return True
    fixed = any(
        is_numbers(side)
        or getattr(side, "id", "") in bounds
        or (isinstance(side, ast.Constant) and isinstance(side.value, int))
        for side in sides
    )
    ordered = all(isinstance(one, ORDER) for one in node.ops)
    return ordered and fixed and any(is_version(side) for side in sides)


def test_only_the_table_compares_flavours_and_versions():
    found = {
        f"{path.relative_to(SRC)}:{line} {text}"
        for path in SRC.rglob("*.py")
        if path != TABLE
        for text, line in comparisons(path.read_text())
        if (str(path.relative_to(SRC)), text) not in ELSEWHERE
    }
    assert found == set()


@pytest.mark.parametrize(
    "planted",
    [
        'build.flavour == "mariadb"',
        '"percona" in text',
        'flavour in ("", "mariadb")',
        'flavour not in {"mysql", "percona"}',
        "build.version >= (8, 0)",
        "version < SINCE",
        "self.build.version[0] >= 8",
        "(5, 6) <= version[:2] <= (5, 7)",
        '{"mariadb": 1, "mysql": 2}[flavour]',
    ],
)
def test_a_planted_comparison_is_found(planted):
    assert list(comparisons(f"SINCE = (8, 0, 0)\n\ndef f():\n    return {planted}\n"))


def test_a_planted_match_is_found():
    source = "def f(flavour):\n    match flavour:\n        case 'mysql':\n            return 1\n"
    assert list(comparisons(source))


def test_every_version_of_the_table_has_its_quirks():
    """A misspelt field in `since` raises only when it is asked for."""
    for name, one in flavours().items():
        for version in (one.oldest, *one.since):
            assert quirks(name, version).initialisation.options
            assert version >= one.oldest
            assert version == one.oldest or one.at(version) != one.at((*version[:-1], -1))


@pytest.mark.parametrize(
    ("flavour", "version", "option"),
    [
        ("mariadb", (10, 2, 44), "--force"),
        ("mariadb", (10, 3, 0), "--skip-test-db"),
        ("mysql", (5, 7, 5), "--bootstrap"),
        ("mysql", (5, 7, 6), "--initialize-insecure"),
        ("percona", (8, 0, 33), "--initialize-insecure"),
    ],
)
def test_each_server_is_initialised_in_its_own_way(flavour, version, option):
    options = quirks(flavour, version).initialisation.options
    assert option in options
    assert ("--auth-root-authentication-method=normal" in options) is (option == "--skip-test-db")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            "mysqld  Ver 5.5.62 for Linux on x86_64 (MySQL)",
            "MySQL 5.5.62 .* use MySQL 5.6 or later",
        ),
        ("mysqld  Ver 5.5.68-MariaDB for Linux", "MariaDB 5.5.68 .* use MariaDB 10.0 or later"),
        ("mysqld  Ver 5.1.73 for linux (Percona Server)", "Percona Server 5.1.73 is not supported"),
    ],
)
def test_a_server_that_is_too_old_is_refused_with_the_oldest_that_is_not(line, words):
    with pytest.raises(SpecError, match=words):
        parse(line.encode())


def test_a_percona_server_is_a_mysql_too():
    assert known_as("percona") == ("percona", "mysql")
    assert known_as("mysql") == ("mysql",)
    assert known_as("") == ("",)
    assert recognised("8.0.33-25 Percona Server (GPL)") == "percona"
