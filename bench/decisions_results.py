"""The saved results of the bench of decisions: one line per campaign, of one method."""

import hashlib
import json
import lzma
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

HERE = Path(__file__).parent
_METHOD = ("src/mydyno/stats/**/*.py", "packages/mydyno-simulate/src/mydyno_simulate/*.py")
_DESIGNS = ("blocks", "designs", "plan", "race", "search", "switchback", "treatments")
_VERSION = "of.txt"

Lines = dict[int, dict[str, float]]


def opened(folder: Path) -> None:
    """Make the folder ready; end the program where it holds results of another method."""
    folder.mkdir(parents=True, exist_ok=True)
    written = folder / _VERSION
    if written.exists() and written.read_text().strip() != version():
        sys.exit(
            f"{folder}: of another version of the method; remove it, choose another --results, or "
            "check with --again whether this version decides alike"
        )
    renewed(folder)


def renewed(folder: Path) -> None:
    """Count what the folder holds as of this version."""
    (folder / _VERSION).write_text(f"{version()}\n")


def version() -> str:
    """Return a digest of all that the results depend on."""
    root = HERE.parent
    files = [f for pattern in _METHOD for f in root.glob(pattern)]
    files += [root / f"src/mydyno/campaign/{name}.py" for name in _DESIGNS]
    files += [f for f in HERE.glob("decisions_*.py") if f != Path(__file__)]
    found = hashlib.sha256()
    for file in sorted(files):
        found.update(file.read_bytes())
    return found.hexdigest()[:16]


def read(folder: Path, cell: str, most: int) -> Lines:
    """Return the campaigns of a cell by seed, up to seed `most`; a torn end is left out."""
    path = folder / f"{cell}.jsonl.xz"
    if not path.exists():
        return {}
    lines: Lines = {}
    try:
        with lzma.open(path, "rt") as file:
            for line in file:
                figures = json.loads(line)
                lines[figures["seed"]] = figures
    except (EOFError, lzma.LZMAError, json.JSONDecodeError):
        sys.stderr.write(f"{path}: its last line is incomplete; the complete lines are retained\n")
        path.unlink()
        append(folder, cell, lines.values())
    return {seed: figures for seed, figures in lines.items() if seed <= most}


def append(folder: Path, cell: str, lines: Iterable[Mapping[str, float]]) -> None:
    """Write campaigns behind those that are there."""
    with lzma.open(folder / f"{cell}.jsonl.xz", "at") as file:
        for figures in lines:
            print(json.dumps(figures), file=file)
