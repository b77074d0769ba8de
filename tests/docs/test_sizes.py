"""Files and functions keep the sizes that CONTRIBUTING names, and the package does not grow.

Where a limit is today's size, a change that adds lines takes others away.
"""

import ast
import io
import tokenize
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILE, FUNCTION, FIELDS = 500, 50, 10
RECORDS = {"LabState"}  # the record of a lab, whose fields are the format of a file
FILES = 211  # what a reader can know; raised only with what a user can do more
# folders of one small file for each thing of a kind: not counted
PLUGINS = ("diagnose/limits", "keep/forms")
CODE = 31_370  # lines of code in src; raised only with what a user can do more
# Files and lines of code of each distribution of its own, which an extra requires; as above.
EXTRAS = {"mydyno-simulate": (7, 510), "mydyno-vm": (12, 1320)}
CORE = 13_910  # lines of code on the way of a plain campaign: from its spec to the text report
# The rooms of that way, and the files of larger rooms that it takes.
CORE_ROOMS = ("campaign", "journal", "stack", "stats", "testbed")
CORE_FILES = (
    *("cli/plan.py", "cli/recipes.py", "cli/run_directory.py"),
    *("host/files.py", "host/local.py", "host/processes.py"),
    *("host/protocol.py", "loads/command.py", "loads/protocol.py", "loads/sysbench.py"),
    *("loads/sysbench_fileio.py", "loads/sysbench_oltp.py", "loads/sysbench_tpcc.py"),
    *("report/text.py", "report/units.py", "report/verdicts.py", "report/words.py"),
)
_LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def sources(*places):
    """Yield the Python files in folders of the repository, by default those that are shipped."""
    for place in places or ("src", *(f"packages/{name}/src" for name in EXTRAS)):
        yield from (ROOT / place).rglob("*.py")


def test_no_file_is_longer_than_a_person_reads():
    long = {
        str(p.relative_to(ROOT)): n
        for pattern in (
            "src/**/*.py",
            "packages/*/src/**/*.py",
            "crates/*/src/**/*.rs",
            "src/**/*.lua",
        )
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


def test_no_parameter_packs_several_things_into_a_tuple():
    """A value has a name for each of its parts; a tuple of unlike things has none."""
    packed = []
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.FunctionDef):
                continue
            for one in (*node.args.args, *node.args.kwonlyargs):
                kind = one.annotation
                if (
                    isinstance(kind, ast.Subscript)
                    and ast.unparse(kind.value) == "tuple"
                    and isinstance(kind.slice, ast.Tuple)
                    and len({ast.unparse(part) for part in kind.slice.elts} - {"..."}) > 1
                ):
                    packed.append(f"{path.relative_to(ROOT)}:{node.lineno} {one.arg}")
    assert packed == []


def wide(text):
    """Return the dataclasses in a module that have too many fields, with their number."""
    counts = {
        node.name: sum(isinstance(one, ast.AnnAssign) for one in node.body)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ClassDef)
        and any("dataclass" in ast.unparse(one) for one in node.decorator_list)
    }
    return {name: count for name, count in counts.items() if count > FIELDS}


def test_no_value_has_more_fields_than_a_reader_keeps_in_mind():
    """Tables of a spec and what `--json` prints are no dataclasses: users know their keys."""
    found = {name: count for path in sources() for name, count in wide(path.read_text()).items()}
    assert found.keys() - RECORDS == set()


def test_an_eleventh_field_is_found():
    ten = "@dataclass(frozen=True)\nclass A:\n" + "".join(f"    a{i}: int\n" for i in range(10))
    assert wide(ten) == {}
    assert wide(ten + "    b: int = 0\n") == {"A": 11}


def test_the_package_has_no_more_files_than_a_reader_can_know():
    places = [ROOT / "src" / "mydyno" / folder for folder in PLUGINS]
    assert sum(path.parent not in places for path in sources("src")) <= FILES


def test_no_class_name_is_used_twice():
    names = [
        node.name
        for path in sources()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    assert sorted({name for name in names if names.count(name) > 1}) == []


def code(path):
    """Return a file's lines of code: neither blank, comment, docstring nor import."""
    text = path.read_text()
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _LAYOUT:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            lines -= set(range(node.lineno, node.end_lineno + 1))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node
        ):
            lines -= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return len(lines)


def test_lines_of_code_are_neither_blank_nor_comment_nor_docstring_nor_import(tmp_path):
    path = tmp_path / "a.py"
    path.write_text('"""Two\n\nlines."""\n\nimport os\n\n# no\nx = [\n    1,\n]  # two\n')
    assert code(path) == 3


def test_the_package_does_not_grow():
    assert sum(map(code, sources("src"))) <= CODE


def test_the_distributions_of_extras_do_not_grow():
    assert {path.name for path in (ROOT / "packages").iterdir()} == set(EXTRAS)
    for name, (files, lines) in EXTRAS.items():
        found = [*sources(f"packages/{name}/src")]
        assert (len(found) <= files, sum(map(code, found)) <= lines) == (True, True), name


def test_the_way_of_a_plain_campaign_can_be_read_in_a_day():
    src = ROOT / "src" / "mydyno"
    missing = [name for name in CORE_FILES if not (src / name).is_file()]
    assert missing == []
    core = [src / name for name in CORE_FILES]
    core += [path for room in CORE_ROOMS for path in (src / room).rglob("*.py")]
    assert sum(map(code, core)) <= CORE
