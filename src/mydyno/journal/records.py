"""Change records: what was changed on a host and made there, written before it happens.

One file a campaign, one line an entry: a checksum and JSON.  `rollback` needs nothing else.
"""

import fcntl
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import msgspec

from mydyno.journal.events import append_line, is_read_only, sync_folder
from mydyno.model import JournalError, RefusedError, os_errors_as

VERSION = 1
_STEP = "free disk space and run again"
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


class FileRecords(MemoryRecords):
    """The records in a file of the state folder; a last line that was cut is left out."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        with os_errors_as(JournalError, path, _STEP):
            # a disk that failed may have become read-only: to restore, reading is enough
            read_only = is_read_only(path.parent)
            flags = os.O_RDONLY if read_only else os.O_RDWR | os.O_APPEND | os.O_CREAT
            self._file = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            if not _locked(self._file):
                os.close(self._file)
                raise RefusedError(f"{path}: locked by another mydyno; wait until it ends")
            raw = path.read_bytes()
            complete = raw.rfind(b"\n") + 1
            if complete < len(raw) and not read_only:  # an incomplete entry: its step never began
                os.truncate(path, complete)
            sync_folder(path.parent)
        self._entries = list(decoded(raw[:complete]))

    def add(self, entry: Entry) -> None:
        """Write an entry and wait for the disk; a failed write leaves the file as it was."""
        with os_errors_as(JournalError, self.path, _STEP):
            append_line(self._file, encoded(entry))
        super().add(entry)

    def close(self) -> None:
        """Close the file; once is enough."""
        if self._file >= 0:
            os.close(self._file)
        self._file = -1


def _locked(file: int) -> bool:
    """Lock an open file; return False where another process has it, or has removed it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return os.fstat(file).st_nlink > 0


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

    @property
    def is_left(self) -> bool:
        """Return whether anything is to be restored."""
        return bool(self.first or self.pending)

    def note_first(self, before: Mapping[str, str], *, damaged: bool) -> None:
        """Note values from before a move, unless those of an earlier one are known."""
        for key, value in before.items():
            if key not in self.first:
                self.first[key] = value
                self.doubtful |= {key} if damaged else set()

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
                begun = _begun(found, key, entry)
                _retained(begun, entry, damaged=damaged)
                begun.pending, begun.wanted = entry, entry.wanted
            case Acted(layer=layer, at=at):
                if (last := latest.get((layer, at))) and found[last].pending:
                    _acted(found[last], entry, damaged=damaged)
            case Restored(layer=layer, at=at, identity=identity):
                if one := found.get((layer, at, identity)):
                    _restored(one, entry)
    return {key: one for key, one in found.items() if one.is_left}


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
    left = any(things(seen, kind) for kind in {e.kind for e in seen if isinstance(e, Made)})
    changed = any(not one.acting.owned for one in moved(seen).values())
    return not (damage(seen) or left or changed)


def things(entries: Iterable[Entry], kind: str) -> list[Made]:
    """Return what was made of a kind and not removed, in the order it was made."""
    there: dict[str, Made] = {}
    for entry in entries:
        if isinstance(entry, Made | Removed) and entry.kind == kind:
            there.pop(entry.place, None)
            if isinstance(entry, Made):
                there[entry.place] = entry
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


def _begun(
    found: dict[tuple[str, str, str], Moved], key: tuple[str, str, str], act: Acting
) -> Moved:
    """Return what is moved there; what was restored may have been of an earlier boot."""
    known = found.get(key)
    if known is None or not known.is_left or known.acting.boot != act.boot:
        known = found[key] = Moved(act)
    return known


def _retained(one: Moved, then: Acting, *, damaged: bool) -> None:
    """Retain the first values of an act that failed or was cut off, before another one begins.

    What the next act found in place was not moved; all else may have been.
    """
    before = one.pending.before if one.pending else {}
    one.note_first(
        {key: value for key, value in before.items() if then.before.get(key) != value},
        damaged=damaged,
    )


def _acted(one: Moved, entry: Acted, *, damaged: bool) -> None:
    before = one.pending.before if one.pending else {}
    one.note_first({key: before[key] for key in entry.after if key in before}, damaged=damaged)
    one.last |= entry.after
    one.pending = None


def _restored(one: Moved, entry: Restored) -> None:
    for key in entry.keys:
        one.first.pop(key, None)
        one.last.pop(key, None)
    if one.pending:
        left = {k: v for k, v in one.pending.before.items() if k not in entry.keys}
        one.pending = msgspec.structs.replace(one.pending, before=left) if left else None
    one.wanted = {}
