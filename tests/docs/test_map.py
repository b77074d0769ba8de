"""The map shows every room and its main files in their own words, and is up to date."""

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
    "snapshot",
    "loads",
    "logs",
    "sample",
    "lab",
    "stats",
    "diagnose",
    "audit",
    "keep",
    "campaign",
    "testbed",
    "report",
    "recipes",
    "cli",
    "testing",
]
MAIN = 3  # files of a room that the map names
MAIN_BESIDE = 1  # file of a distribution of its own, or a crate, that the map names
LONGEST = 150  # lines that a new reader can hold in mind
PACKAGES = ("vm", "simulate")  # distributions of their own: mydyno-NAME, which an extra requires
CRATES = {
    "command": "What the commands of `mydyno-probe` have in common.",
    "digest": "`mydyno-probe digest`, the slow log's digest; a library.",
    "disk": "`mydyno-disk`, the lab disk.",
    "guard": "`mydyno-guard`, the part of a lease on the host that it changes.",
    "probe": "`mydyno-probe`, the sampler, with the digest as its second command.",
}


def first_sentence(path: Path) -> str:
    doc = ast.get_docstring(ast.parse(path.read_text()))
    assert doc, f"{path} has no docstring"
    return doc.split("\n", 1)[0]


def sentence_of(path: Path) -> str:
    if path.suffix == ".py":
        return first_sentence(path)
    first = path.read_text().split("\n", 1)[0]
    assert first.startswith("//! "), f"{path} has no description"
    return first.removeprefix("//! ")


def section(
    name: str, summary: str, folder: Path, files: list[Path], most: int = MAIN
) -> list[str]:
    """Return a room: what it is, and its largest files, which lead to the others."""
    main = sorted(files, key=lambda f: (-f.stat().st_size, str(f)))[:most]
    rows = [f"- `{f.relative_to(folder)}`: {sentence_of(f)}" for f in sorted(main)]
    more = f" {len(files)} files." if len(files) > len(main) else ""
    return [f"## {name}", summary + more, *rows, ""]


def drawn() -> str:
    lines = [
        "# Map",
        "",
        "Each room, and its main files.  The first line of a file describes its content.",
        "",
    ]
    for room in ORDER:
        folder = SOURCE / room
        files = [f for f in folder.rglob("*.py") if f.name != "__init__.py"]
        lines += section(room, first_sentence(folder / "__init__.py"), folder, files)
    for name in PACKAGES:
        folder = ROOT / "packages" / f"mydyno-{name}" / "src" / f"mydyno_{name}"
        files = [f for f in folder.rglob("*.py") if f.name != "__init__.py"]
        summary = first_sentence(folder / "__init__.py")
        lines += section(f"packages/mydyno-{name}", summary, folder, files, MAIN_BESIDE)
    for name, summary in CRATES.items():
        folder = ROOT / "crates" / name / "src"
        lines += section(f"crates/{name}", summary, folder, [*folder.rglob("*.rs")], MAIN_BESIDE)
    return "\n".join(lines).rstrip() + "\n"


def test_the_map_shows_every_room():
    made = {"__pycache__", "bin"}  # `bin` holds programs that are built, not modules
    assert {p.name for p in SOURCE.iterdir() if p.is_dir()} - made == set(ORDER)
    assert {p.name for p in (ROOT / "packages").iterdir()} == {f"mydyno-{n}" for n in PACKAGES}
    assert {p.name for p in (ROOT / "crates").iterdir()} == set(CRATES)


def test_the_map_is_drawn_from_the_modules():
    hold(ROOT / "docs" / "map.md", drawn())


def test_the_map_is_short_enough_to_be_read():
    assert drawn().count("\n") <= LONGEST
