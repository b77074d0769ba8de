"""Change records: what was changed on a host and made there, written before it happens.

One file a campaign, one line an entry: a checksum and JSON.  `rollback` needs nothing else.
"""

import errno
import fcntl
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import msgspec

from mydyno.model import JournalError, RefusedError

VERSION = 1
_BLANK: dict[str, str] = {}


class Registered(msgspec.Struct, frozen=True, tag="registered"):
    """The campaign whose records these are.

    `directory` is its run directory, known again by device and inode; `host` is as a spec names it.
    """

    id: str
    name: str
    directory: str
    device: int
    inode: int
    host: str
    version: int = VERSION


class Acting(msgspec.Struct, frozen=True, tag="acting"):
    """Settings of a layer are about to be changed from `before`, all that is watched, to `wanted`.

    `at` is the layer's place, a disk or a mount point; `identity` and `boot` identify it.
    What is `owned` ends with things that mydyno made, and is not restored after them.
    """

    role: str
    layer: str
    at: str
    identity: str
    boot: str
    owned: bool
    trial: int
    before: dict[str, str]
    wanted: dict[str, str]


class Acted(msgspec.Struct, frozen=True, tag="acted"):
    """What the act changed, wanted or not, as it was read back afterwards."""

    layer: str
    at: str
    after: dict[str, str]
    """By key; empty for one that is gone."""


class Restored(msgspec.Struct, frozen=True, tag="restored"):
    """Settings with their first values again, gone, or changed by another process."""

    layer: str
    at: str
    identity: str
    keys: tuple[str, ...]


class Made(msgspec.Struct, frozen=True, tag="made"):
    """Something is about to be made: a folder, a server, a filesystem on a device.

    `facts` are what it is known by, so that nothing else is removed in its place.
    """

    kind: str
    place: str
    facts: dict[str, str] = _BLANK


class Removed(msgspec.Struct, frozen=True, tag="removed"):
    """What was made is gone."""

    kind: str
    place: str


class Damaged(msgspec.Struct, frozen=True, tag="damaged"):
    """A line whose checksum is wrong: whatever it recorded is not known."""

    line: int


Entry = Registered | Acting | Acted | Restored | Made | Removed | Damaged


class Records(Protocol):
    """The change records of one campaign."""

    def add(self, entry: Entry) -> None:
        """Add an entry; it is durable when this returns.  Raises `JournalError`."""
        ...

    def entries(self) -> Iterator[Entry]:
        """Yield every entry, oldest first."""
        ...


class MemoryRecords:
    """Records that last as long as the process."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []

    def add(self, entry: Entry) -> None:
        """Add an entry."""
        self._entries.append(entry)

    def entries(self) -> Iterator[Entry]:
        """Yield every entry, oldest first."""
        yield from tuple(self._entries)


class FileRecords:
    """The records in a file of the state folder; a last line that was cut is left out."""

    def __init__(self, path: Path) -> None:
        self.path = path
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            self._file = os.open(path, flags, 0o600)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            raw = path.read_bytes()
            complete = raw.rfind(b"\n") + 1
            if complete < len(raw):  # an incomplete entry: its step never began
                os.truncate(path, complete)
            _sync(path.parent)
        except BlockingIOError as error:
            os.close(self._file)
            raise RefusedError(f"{path}: locked by another mydyno; wait until it ends") from error
        except OSError as error:
            raise JournalError(
                f"{path}: {error.strerror}; free disk space and run again"
            ) from error
        self._entries = list(decoded(raw[:complete]))

    def add(self, entry: Entry) -> None:
        """Write an entry and wait for the disk; a failed write leaves the file as it was."""
        size = os.fstat(self._file).st_size
        try:
            _append(self._file, encoded(entry))
        except OSError as error:
            with suppress(OSError):  # what stays of the line has no valid checksum
                os.ftruncate(self._file, size)
            raise JournalError(
                f"{self.path}: {error.strerror}; free disk space and run again"
            ) from error
        self._entries.append(entry)

    def entries(self) -> Iterator[Entry]:
        """Yield every entry, oldest first."""
        yield from tuple(self._entries)

    def close(self) -> None:
        """Close the file; once is enough."""
        if self._file >= 0:
            os.close(self._file)
        self._file = -1


@dataclass(slots=True)
class Moved:
    """Settings of one layer that are not as they were: first values, and what we last read back.

    `sure` is False between an act's announcement and its outcome: a crash may have come between.
    `doubtful` are settings whose first record comes after a damaged line.
    """

    acting: Acting
    first: dict[str, str] = field(default_factory=dict)
    last: dict[str, str] = field(default_factory=dict)
    wanted: Mapping[str, str] = field(default_factory=dict)
    pending: Acting | None = None
    doubtful: set[str] = field(default_factory=set)

    @property
    def sure(self) -> bool:
        """Return whether the last act's outcome was recorded."""
        return self.pending is None

    def values(self) -> dict[str, str]:
        """Return the first values to restore; after a crash in an act, of all that it watched."""
        unsure = self.pending.before if self.pending else {}
        return {**unsure, **self.first}


def moved(entries: Iterable[Entry]) -> dict[tuple[str, str, str], Moved]:
    """Return what is not restored yet, by layer, place and identity."""
    found: dict[tuple[str, str, str], Moved] = {}
    latest: dict[tuple[str, str], tuple[str, str, str]] = {}
    damaged = False
    for entry in entries:
        match entry:
            case Damaged():
                damaged = True
            case Acting():
                key = (entry.layer, entry.at, entry.identity)
                latest[key[:2]] = key
                begun = found.setdefault(key, Moved(entry))
                _retained(begun, entry, damaged=damaged)
                begun.pending, begun.wanted = entry, entry.wanted
            case Acted(layer=layer, at=at):
                if (last := latest.get((layer, at))) and found[last].pending:
                    _acted(found[last], entry, damaged=damaged)
            case Restored(layer=layer, at=at, identity=identity):
                if one := found.get((layer, at, identity)):
                    _restored(one, entry)
    return {key: one for key, one in found.items() if one.first or one.pending}


def first_values(entries: Iterable[Entry]) -> dict[str, str]:
    """Return the first value of each setting that was moved, by its full key ``db/layer.key``."""
    return {
        f"{one.acting.role}/{layer}.{key}": value
        for (layer, _, _), one in moved(entries).items()
        for key, value in one.first.items()
    }


def damage(entries: Iterable[Entry]) -> int:
    """Return the number of damaged lines."""
    return sum(isinstance(entry, Damaged) for entry in entries)


def nothing_left(entries: Iterable[Entry]) -> bool:
    """Return whether all that was moved is restored, and all that was made is removed."""
    seen = list(entries)
    there = {(e.kind, e.place) for e in seen if isinstance(e, Made)}
    left = (kind for kind in {kind for kind, _ in there} if things(seen, kind))
    foreign = (one for one in moved(seen).values() if not one.acting.owned)
    return not damage(seen) and not any(True for _ in left) and not any(True for _ in foreign)


def things(entries: Iterable[Entry], kind: str) -> list[Made]:
    """Return what was made of a kind and not removed, in the order it was made."""
    there: dict[str, Made] = {}
    for entry in entries:
        match entry:
            case Made(kind=of, place=place) if of == kind:
                there.pop(place, None)
                there[place] = entry
            case Removed(kind=of, place=place) if of == kind:
                there.pop(place, None)
    return list(there.values())


def encoded(entry: Entry) -> bytes:
    """Return an entry's line: its CRC-32 in hexadecimal digits, a blank, JSON."""
    text = msgspec.json.encode(entry)
    return b"%08x %b\n" % (zlib.crc32(text), text)


def decoded(raw: bytes) -> Iterator[Entry]:
    """Yield the entries of complete lines, `Damaged` for an invalid one."""
    for number, line in enumerate(raw.split(b"\n")[:-1], start=1):
        sum_, _, text = line.partition(b" ")
        if sum_ != b"%08x" % zlib.crc32(text):
            yield Damaged(number)
            continue
        try:
            yield msgspec.json.decode(text, type=Entry)
        except msgspec.DecodeError:
            yield Damaged(number)


def _retained(one: Moved, then: Acting, *, damaged: bool) -> None:
    """Retain the first values of an act that failed or was cut off, before another one begins.

    What the next act found in place was not moved; all else may have been.
    """
    before = one.pending.before if one.pending else {}
    for key, value in before.items():
        if key not in one.first and then.before.get(key) != value:
            one.first[key] = value
            one.doubtful |= {key} if damaged else set()


def _acted(one: Moved, entry: Acted, *, damaged: bool) -> None:
    before = one.pending.before if one.pending else {}
    for key, value in entry.after.items():
        if key not in one.first and key in before:
            one.first[key] = before[key]
            one.doubtful |= {key} if damaged else set()
        one.last[key] = value
    one.pending = None


def _restored(one: Moved, entry: Restored) -> None:
    for key in entry.keys:
        one.first.pop(key, None)
        one.last.pop(key, None)
    if one.pending:
        one.pending = msgspec.structs.replace(
            one.pending,
            before={k: v for k, v in one.pending.before.items() if k not in entry.keys},
        )
        one.pending = one.pending if one.pending.before else None
    one.wanted = {}


def _append(descriptor: int, line: bytes) -> None:
    if os.write(descriptor, line) < len(line):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.fsync(descriptor)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
