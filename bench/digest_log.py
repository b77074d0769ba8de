"""The bench's logs: made from a seed, with totals that are known before anything reads them."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
QUERY_TIME = re.compile(rb"^# Query_time: (\d+)\.(\d{6}) ", re.MULTILINE)
BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Log:
    """A log and what is in it: bytes, events, and the sum of their times in microseconds."""

    shape: str
    path: Path
    size: int
    events: int
    query_time_us: int


def build_generator() -> str:
    """Build the generator and return its path."""
    argv = ["cargo", "build", "--release", "--quiet", "--locked", "--package=mydyno-digest"]
    subprocess.run([*argv, "--example=slowlog"], cwd=ROOT, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
    return str(target / "release/examples/slowlog")


def generate(generator: str, shape: str, size: int, seed: int, folder: Path) -> Log:
    """Write a log of that size; its totals are those that the generator reports."""
    path = folder / f"{shape}.log"
    argv = [generator, shape, f"--bytes={size}", f"--seed={seed}", f"--out={path}"]
    totals = json.loads(subprocess.run(argv, check=True, capture_output=True).stdout)
    return Log(shape, path, totals["bytes"], totals["events"], totals["query_time_us"])


def cut(log: Log, size: int, folder: Path) -> Log:
    """Write the start of a log up to an event's end; its totals are of lines looked for by regex.

    The generated statements hold no line that looks like a header.
    """
    path = folder / f"{log.shape}-cut.log"
    with log.path.open("rb") as file:
        text = file.read(size)
    header = b"\n# Time: " if log.shape == "wide" else b"\n# User@Host: "
    text = text[: text.rfind(header) + 1]
    path.write_bytes(text)
    times = [int(found[1] + found[2]) for found in QUERY_TIME.finditer(text)]
    return Log(log.shape, path, len(text), len(times), sum(times))


def warm(path: Path) -> None:
    """Read a file once, so that it is in memory for every tool alike."""
    for _ in _blocks(path):
        pass


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb", buffering=0) as file:
        while block := file.read(BLOCK):
            yield block
