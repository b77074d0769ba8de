"""The map of the house is made of the first sentences of its modules, and is up to date."""

import ast
from pathlib import Path

from golden.rewrite import hold

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "mydyno"
ORDER = [
    "model",
    "journal",
    "host",
    "stack",
    "server",
    "dataset",
    "workloads",
    "measure",
    "lab",
    "apply",
    "analyse",
    "campaign",
    "report",
    "recipes",
    "cli",
    "testing",
]

CRATES = {
    "disk": "`mydyno-disk`, the lab disk.",
    "probe": "`mydyno-probe`, the sampler and the slow log's digest.",
}


def first_sentence(path: Path) -> str:
    doc = ast.get_docstring(ast.parse(path.read_text()))
    assert doc, f"{path} has no docstring"
    return doc.split("\n", 1)[0]


def drawn() -> str:
    lines = ["# Map", "", "Where to find any behaviour: each module in its own words.", ""]
    for room in ORDER:
        lines += [f"## {room}", "", first_sentence(SOURCE / room / "__init__.py"), ""]
        files = sorted((SOURCE / room).rglob("*.py"))
        rows = [
            f"| `{f.relative_to(SOURCE / room)}` | {first_sentence(f)} |"
            for f in files
            if f.name != "__init__.py"
        ]
        lines += ["| file | what is in it |", "|---|---|", *rows, ""] if rows else []
    for name, summary in CRATES.items():
        source = ROOT / "crates" / name / "src"
        lines += [f"## crates/{name}", "", summary, "", "| file | what is in it |", "|---|---|"]
        for path in sorted(source.rglob("*.rs")):
            first = path.read_text().split("\n", 1)[0]
            assert first.startswith("//! "), f"{path} says nothing of itself"
            lines.append(f"| `{path.relative_to(source)}` | {first.removeprefix('//! ')} |")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def test_the_map_shows_every_room():
    made = {"__pycache__", "bin"}  # `bin` holds programs that are built, not modules
    assert {p.name for p in SOURCE.iterdir() if p.is_dir()} - made == set(ORDER)
    assert {p.name for p in (ROOT / "crates").iterdir()} == set(CRATES)


def test_the_map_is_drawn_from_the_modules():
    hold(ROOT / "docs" / "map.md", drawn())
