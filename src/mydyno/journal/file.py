"""The journal on disk: one JSON object a line, durable when `append` returns."""

import errno
import fcntl
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import msgspec

from mydyno.journal.events import Event
from mydyno.model import JournalError

VERSION = 1


class _Line(msgspec.Struct, frozen=True):
    v: int
    at: str
    event: Event


class _Version(msgspec.Struct, frozen=True):
    v: int


class Journal(Protocol):
    """An append-only sequence of events."""

    def append(self, event: Event) -> None:
        """Add `event`; it is durable when this returns."""
        ...

    def events(self) -> Iterator[Event]:
        """Yield every event, oldest first."""
        ...


class MemoryJournal:
    """A journal that lives as long as the process: for plans and tests."""

    def __init__(self) -> None:
        self._events: list[Event] = []

    def append(self, event: Event) -> None:
        """Add `event`."""
        self._events.append(event)

    def events(self) -> Iterator[Event]:
        """Yield every event, oldest first."""
        yield from tuple(self._events)


class FileJournal:
    """The journal of a run directory, held by one process at a time.

    Raises `JournalError` where another process holds it, a line is unreadable, or the version is
    unknown.  A last line without an end (a torn write) is moved to ``journal.torn``.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            reason = f"{path}: {error.strerror}: choose another directory with -o"
            raise JournalError(reason) from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _cut_torn_tail(path)
            self._events = list(read(path))
        except BlockingIOError as error:
            os.close(self._file)
            raise JournalError(f"{path.parent}: another mydyno is running this campaign") from error
        except JournalError:
            os.close(self._file)
            raise
        _sync_directory(path.parent)

    def append(self, event: Event) -> None:
        """Write `event` and wait for the disk; a failed write leaves the journal as it was."""
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = msgspec.json.encode(_Line(VERSION, at, event)) + b"\n"
        size = os.fstat(self._file).st_size
        try:
            _write(self._file, line)
        except OSError as error:
            os.ftruncate(self._file, size)
            reason = f"{self._path}: {error.strerror}: make room and run again to resume"
            raise JournalError(reason) from error
        self._events.append(event)

    def events(self) -> Iterator[Event]:
        """Yield every event, oldest first."""
        yield from tuple(self._events)

    def close(self) -> None:
        """Let go of the journal."""
        os.close(self._file)


def _write(descriptor: int, line: bytes) -> None:
    if os.write(descriptor, line) < len(line):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.fsync(descriptor)


def read(path: Path) -> Iterator[Event]:
    """Yield the events of a journal without holding it; a torn last line is left out."""
    if not path.exists():
        raise JournalError(f"{path.parent}: no journal here; is it a run directory?")
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines[:-1], start=1):
        yield _decode(line, f"{path}:{number}")


def held(path: Path) -> bool:
    """Return whether a process is writing this journal now."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _decode(line: bytes, place: str) -> Event:
    try:
        version = msgspec.json.decode(line, type=_Version).v
        if version != VERSION:
            raise JournalError(f"{place}: version {version}; this mydyno reads version {VERSION}")
        return msgspec.json.decode(line, type=_Line).event
    except msgspec.DecodeError as error:
        raise JournalError(f"{place}: not a record of a campaign: {error}") from error


def _cut_torn_tail(path: Path) -> None:
    """Move what follows the last newline aside: the write was cut, so its act never began."""
    raw = path.read_bytes()
    keep = raw.rfind(b"\n") + 1
    if keep == len(raw):
        return
    with path.with_suffix(".torn").open("ab") as torn:
        torn.write(raw[keep:] + b"\n")
    os.truncate(path, keep)


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)
