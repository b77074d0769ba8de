"""Copying a folder with several workers, and verifying that the copy is complete."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from mydyno.model import Action, Probe

WORKERS = 4  # tables of a data set that are read at once: docs/reference/benches.md
_SMALL_BYTES = 1 << 20  # below this, starting a program takes longer than the copy
_BATCH = 64
_SAMPLED = 8  # files, the largest ones
_SAMPLE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Entry:
    """A file, folder or link of a tree: its type and rights in one word, bytes, path below it."""

    kind: str
    size: int
    path: str


def listing(folder: Path) -> Probe[list[Entry]]:
    """Return the probe for the entries of a folder; only files have a size."""
    folders = ("-type", "d", "-printf", "%y:%m:%U:%G 0 %P\\0")
    others = ("-o", "-printf", "%y:%m:%U:%G %s %P\\0")
    return Probe(Action(("find", str(folder), *folders, *others)), _entries)


def free(folder: Path) -> Probe[int]:
    """Return the probe for the bytes available to an unprivileged user below a folder."""
    return Probe(Action(("stat", "-f", "-c", "%a %S", str(folder))), _bytes)


def skeleton(snapshot: Path, live: Path) -> Action:
    """Return the command that makes every folder, link and empty file, with rights and owners."""
    return Action(("cp", "-a", "--attributes-only", "-T", str(snapshot), str(live)))


def contents(snapshot: Path, live: Path, entries: Iterable[Entry], workers: int) -> list[Action]:
    """Return the commands that fill the files, the largest first to balance the workers.

    A file is copied by one worker; holes stay holes.  Small files go many to a program.
    """
    files = sorted((e for e in entries if _file(e) and e.size), key=lambda e: -e.size)
    large = [e for e in files if e.size >= _SMALL_BYTES]
    copy = ("cp", "-a", "--reflink=never", "--sparse=auto", "--parents", "-t", str(live), "--")
    return [
        Action(
            ("env", "-C", str(snapshot), "xargs", "-0", "-P", str(workers), "-n", str(many), *copy),
            b"".join(e.path.encode(errors="surrogateescape") + b"\0" for e in some),
        )
        for many, some in ((1, large), (_BATCH, files[len(large) :]))
        if some
    ]


def sample(snapshot: Path, live: Path, entries: Iterable[Entry]) -> Action:
    """Return the command that compares the middle of the largest files, a MiB of each."""
    files = sorted((e for e in entries if _file(e)), key=lambda e: -e.size)[:_SAMPLED]
    words = [
        word
        for e in files
        for word in (str(e.size // 2), str(snapshot / e.path), str(live / e.path))
    ]
    each = ("cmp", "-n", str(_SAMPLE_BYTES), "-i")
    given = "".join(f"{word}\0" for word in words).encode(errors="surrogateescape")
    return Action(("xargs", "-0", "-r", "-n", "3", *each), given)


def differing(snapshot: Iterable[Entry], live: Iterable[Entry]) -> list[str]:
    """Return the paths that are not the same in both, missing ones among them, in order."""
    return sorted({e.path for e in set(snapshot) ^ set(live)})


def _bytes(raw: bytes) -> int:
    blocks, size_of_block = map(int, raw.split())
    return blocks * size_of_block


def _file(entry: Entry) -> bool:
    return entry.kind.startswith("f:")


def _entries(raw: bytes) -> list[Entry]:
    found = []
    for line in raw.decode(errors="surrogateescape").split("\0"):
        kind, _, rest = line.partition(" ")
        size, _, path = rest.partition(" ")
        if line:
            found.append(Entry(kind, int(size), path))
    return found
