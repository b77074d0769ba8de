"""The journal of a campaign: its events, the file they are in, and functions over them.

The file has one JSON object a line, durable when `append` returns.  The last key of a line,
``crc``, is the CRC-32 of the bytes before it, continued from the line above: a line that was
changed, removed, repeated or moved is found.
"""

import errno
import fcntl
import os
import re
import stat
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import msgspec

from mydyno.model import JournalError, Outcome, Settings, Trial, os_errors_as


class Opened(msgspec.Struct, frozen=True, tag="opened"):
    """The campaign this journal belongs to; a journal resumes no other."""

    digest: str
    name: str
    build: str = ""


class Prepared(msgspec.Struct, frozen=True, tag="prepared"):
    """The snapshot of a data set is complete: its restore method, and the seconds it took."""

    key: str
    method: str
    cost_s: float


class MeasuredValue(msgspec.Struct, frozen=True, tag="measured"):
    """A measurement used to set up later trials, in base units: once for a campaign."""

    name: str
    value: float


class Changing(msgspec.Struct, frozen=True, tag="changing"):
    """A setting is about to be changed: written before the change.

    `owned` settings belong to things that mydyno made and end with them; others are restored.
    """

    key: str
    before: str
    after: str
    owned: bool
    trial: int


class Started(msgspec.Struct, frozen=True, tag="started"):
    """A trial is about to run."""

    trial: Trial


class Interruption(msgspec.Struct, frozen=True, tag="interrupted"):
    """A trial was interrupted; its machine time counts, its measurements do not."""

    trial: Trial
    machine_time_s: float


class Finished(msgspec.Struct, frozen=True, tag="finished"):
    """A trial has ended; its raw output is in ``trials/NNNN``."""

    outcome: Outcome


class RolledBack(msgspec.Struct, frozen=True, tag="rolled-back"):
    """Every setting changed so far has its first recorded value again, as observed."""

    keys: tuple[str, ...]


Event = (
    Opened | Prepared | MeasuredValue | Changing | Started | Interruption | Finished | RolledBack
)


def outcomes(events: Iterable[Event]) -> tuple[Outcome, ...]:
    """Return the finished trials, in the order they finished."""
    return tuple(e.outcome for e in events if isinstance(e, Finished))


def open_trial(events: Iterable[Event]) -> Trial | None:
    """Return the trial that was started and neither finished nor interrupted."""
    running: Trial | None = None
    for event in events:
        match event:
            case Started(trial):
                running = trial
            case Finished() | Interruption():
                running = None
    return running


def lost_s(events: Iterable[Event], trial: Trial) -> float:
    """Return the machine time of the interrupted attempts at `trial`, in seconds."""
    return sum(
        e.machine_time_s for e in events if isinstance(e, Interruption) and e.trial.id == trial.id
    )


def spent_s(events: Iterable[Event]) -> float:
    """Return the machine time used so far, interrupted attempts included, in seconds."""
    finished: dict[int, float] = {}
    lost: dict[int, float] = {}
    for event in events:
        match event:
            case Finished(outcome):  # an outcome's time already holds that of its lost attempts
                finished[outcome.trial.id] = outcome.machine_time_s
            case Interruption(trial, seconds):
                lost[trial.id] = lost.get(trial.id, 0.0) + seconds
    return sum(finished.values()) + sum(s for i, s in lost.items() if i not in finished)


def measured(events: Iterable[Event]) -> dict[str, float]:
    """Return the measured values for the setup of trials, by name, in base units."""
    return {e.name: e.value for e in events if isinstance(e, MeasuredValue)}


def first_values(events: Iterable[Event]) -> Settings:
    """Return the first recorded value of each setting moved since the last rollback.

    Settings of things that mydyno made are left out.
    """
    first: dict[str, str] = {}
    for event in events:
        match event:
            case Changing(key=key, before=before, owned=False):
                first.setdefault(key, before)
            case RolledBack():
                first.clear()
    return first


VERSION = 2
_SUM = re.compile(rb',"crc":"([0-9a-f]{8})"\}$')
_FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK  # a pipe in its place must not stop us
_ASIDE = "restore it from a copy of the run directory, or run into a new one with -o"


class _Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    v: int
    at: str
    event: Event
    crc: str = ""


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


class FileJournal(MemoryJournal):
    """The journal of a run directory, held by one process at a time.

    Raises `JournalError` where another process holds it, a line is damaged, or the version is
    unknown.  A last line without an end (a torn write) is moved to ``journal.torn``.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        with os_errors_as(JournalError, path, "choose another directory with -o"):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = _opened(path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        try:
            with os_errors_as(JournalError, path, "free disk space and run again"):
                self._take_over()
        except JournalError:
            os.close(self._file)
            raise

    def _take_over(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise JournalError(
                f"{self._path.parent}: another mydyno is running this campaign"
            ) from error
        _cut_torn_tail(self._path, self._file)
        found = _contents(self._path)
        if found.damage:
            raise JournalError(f"{found.damage[0]}; {_ASIDE}")
        self._events, self._sum = found.events, found.sum
        sync_folder(self._path.parent)

    def append(self, event: Event) -> None:
        """Write `event` and wait for the disk; a failed write leaves the journal as it was.

        Raises `JournalError` for an event that could not be read again: a number not finite.
        """
        line, total = _encoded(event, self._sum)
        try:
            msgspec.json.decode(line, type=_Line)
        except msgspec.DecodeError as error:
            reason = f"{self._path}: {type(event).__name__} cannot be recorded: {error}"
            raise JournalError(f"{reason}; report this as a defect of mydyno") from error
        with os_errors_as(JournalError, self._path, "free disk space and run again to resume"):
            append_line(self._file, line)
        self._sum = total
        super().append(event)

    def close(self) -> None:
        """Close the journal."""
        os.close(self._file)


@dataclass(slots=True)
class Contents:
    """What a journal's complete lines hold; `damage` names each invalid line."""

    events: list[Event] = field(default_factory=list)
    damage: list[str] = field(default_factory=list)
    began: str = ""
    """When the first event was written, in ISO 8601; empty where that is not known."""
    sum: int = 0

    def take(self, line: bytes, place: str) -> None:
        """Add a line; raise `JournalError` for one of a version that is not known."""
        summed = _SUM.search(line)
        before = self.sum
        self.sum = int(summed[1], 16) if summed else zlib.crc32(line, before)
        try:
            if summed:
                _summed(line[: summed.start()], before, self.sum)
            else:
                _refuse_unsummed(line, place)
            read_line = msgspec.json.decode(line, type=_Line)
        except (ValueError, RecursionError) as error:  # msgspec's are ValueErrors
            self.damage.append(f"{place}: damaged: {error}")
        else:
            self.events.append(read_line.event)
            self.began = self.began or read_line.at


def read(path: Path) -> Contents:
    """Return the contents of a journal, without locking it; a torn last line is left out.

    Raises `JournalError` where there is none.
    """
    with os_errors_as(JournalError, path, "name another run directory"):
        try:
            return _contents(path)
        except FileNotFoundError as error:
            raise JournalError(f"{path.parent}: no journal here; name a run directory") from error


def held(path: Path) -> bool:
    """Return whether a process is writing this journal now."""
    try:
        descriptor = os.open(path, os.O_RDONLY | _FLAGS)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _contents(path: Path) -> Contents:
    found = Contents()
    with os.fdopen(_opened(path, os.O_RDONLY), "rb") as file:
        lines = file.read().split(b"\n")
    for number, line in enumerate(lines[:-1], start=1):
        found.take(line, f"{path}:{number}")
    return found


def _summed(body: bytes, before: int, found: int) -> None:
    """Raise `ValueError` where a line does not have the checksum that was found in it."""
    if zlib.crc32(body, before) != found:
        raise ValueError("its checksum is wrong, or the line above it is missing")


def _refuse_unsummed(line: bytes, place: str) -> None:
    """Raise `JournalError` for a line of a later version, `ValueError` for another one."""
    version = msgspec.json.decode(line, type=_Version).v
    if version > VERSION:
        raise JournalError(
            f"{place}: version {version}; this mydyno reads up to {VERSION}: use a newer one"
        )
    raise ValueError("it has no checksum")


def _encoded(event: Event, before: int) -> tuple[bytes, int]:
    """Return the line of an event that follows a line with the checksum `before`, and its own."""
    at = datetime.now(UTC).isoformat(timespec="milliseconds")
    body = msgspec.json.encode({"v": VERSION, "at": at, "event": event})[:-1]
    total = zlib.crc32(body, before)
    return b'%b,"crc":"%08x"}\n' % (body, total), total


def _opened(path: Path, flags: int) -> int:
    """Open a plain file, for writing only one that has no other name (hard link).

    Raises `OSError` for a symbolic link, a pipe, a device.
    """
    descriptor = os.open(path, flags | _FLAGS, 0o600)
    found = os.fstat(descriptor)
    written = flags & os.O_ACCMODE != os.O_RDONLY
    if not stat.S_ISREG(found.st_mode) or (written and found.st_nlink != 1):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a plain file with one name")
    return descriptor


def append_line(descriptor: int, line: bytes) -> None:
    """Write a line and wait for the disk; raise `OSError` with the file as it was."""
    size = os.fstat(descriptor).st_size
    try:
        _write(descriptor, line)
    except OSError:
        with suppress(OSError):  # what stays of the line has no valid checksum
            os.ftruncate(descriptor, size)
        raise


def _write(descriptor: int, line: bytes) -> None:
    if os.write(descriptor, line) < len(line):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.fsync(descriptor)


def _cut_torn_tail(path: Path, descriptor: int) -> None:
    """Move an incomplete last line to a file: its step never began."""
    raw = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
    keep = raw.rfind(b"\n") + 1
    if keep == len(raw):
        return
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    with os.fdopen(_opened(path.with_suffix(".torn"), flags), "ab") as torn:
        torn.write(raw[keep:] + b"\n")
    os.truncate(descriptor, keep)


def is_read_only(folder: Path) -> bool:
    """Return whether a folder's filesystem takes no writes, as after a fault of its disk."""
    return bool(os.statvfs(folder).f_flag & os.ST_RDONLY)


def sync_folder(path: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
