"""Run directories, and the records of the campaigns that have something to restore or to remove.

A run directory names its campaign by a marker.  The marker is only a hint: the records name the
directory that is theirs, and are found for no other.  Beside the records stands what campaigns cost
here, where later plans begin.
"""

import os
import re
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from mydyno.host import Host
from mydyno.host.files import problem_for_root
from mydyno.journal.events import sync_folder
from mydyno.journal.records import Entry, FileRecords, Made, Registered, decoded, moved
from mydyno.model import CampaignError, JournalError, RefusedError, os_errors_as

_ROOTS = Path("/var/lib/mydyno")
_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def state_folder(*below: str) -> Path:
    """Return the folder of the records, or one `below` it, made with mode 0700 where missing.

    It is ``/var/lib/mydyno`` for root and ``$XDG_STATE_HOME/mydyno`` (``~/.local/state/mydyno``)
    for others.  Raises `RefusedError` where it, or for root a folder above it, can be changed by
    another user.
    """
    folder = state_place()
    above = folder.parent if os.geteuid() == 0 else Path(folder.anchor)
    if os.geteuid():
        folder.parent.mkdir(parents=True, exist_ok=True)
    for path in (*reversed(above.parents), above):
        _refuse_foreign(path)
    for name in ("", *below):
        folder = folder / name
        with os_errors_as(RefusedError, folder, "a folder is needed there"):
            folder.mkdir(mode=0o700, exist_ok=True)
        _refuse_foreign(folder, alone=True)
    return folder


def state_place() -> Path:
    """Return where the folder of the records is, whether or not it is there."""
    if os.geteuid() == 0:
        return _ROOTS
    home = os.environ.get("XDG_STATE_HOME") or str(Path("~/.local/state").expanduser())
    return Path(home) / "mydyno"


def _refuse_foreign(path: Path, *, alone: bool = False) -> None:
    """Raise `RefusedError` unless the path is a folder of root's or ours that others cannot write.

    `alone`: nobody else may even look into it.
    """
    found = path.lstat()
    problem = ""
    if not stat.S_ISDIR(found.st_mode):
        problem = "is not a folder"
    elif found.st_uid not in {0, os.geteuid()}:
        problem = f"belongs to user {found.st_uid}"
    elif found.st_mode & _OTHERS and not found.st_mode & stat.S_ISVTX:
        problem = "can be written to by other users"
    elif alone and found.st_mode & 0o077:
        problem = "can be read by other users"
    if problem:
        raise RefusedError(
            f"{path}: {problem}, so the records below it cannot be trusted; look at what is in "
            f"it, then give it to root with mode {'0700' if alone else '0755'}"
        )


MARKER = "campaign-id"
STATEMENTS = "statements.json"  # of a trial: the digest of its slow log
_ID = re.compile(r"[0-9a-f]{16}")
_CAMPAIGNS, _FILE, _CONTROLLER = "campaigns", "changes", "controller"


class RunDir:
    """The paths of one run directory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.journal = path / "journal.jsonl"
        self.spec = path / "spec.toml"
        self.facts = path / "facts"  # observed before anything was changed
        # Servers, data sets and lab disks, removed when a campaign ends.  It is absolute: files
        # below it are recognised by that when uploaded to another host.
        self.work = path.absolute() / "work"
        self.cuts = path / "cuts"  # the run directory of its crash test, where a spec asks for one

    def claim(self, here: Host) -> None:
        """Make and mark the directory; it may be new, empty, or marked already.

        Raises `RefusedError` for one that contains anything else, or, as root, that another user
        can change.
        """
        there = next(p for p in (self.path, *self.path.absolute().parents) if p.exists())
        if not there.is_dir():
            raise JournalError(f"{there}: not a folder; choose another directory with -o")
        if problem := problem_for_root(here, self.path):
            raise RefusedError(
                f"{self.path}: not safe for root: {problem}; choose another directory with -o"
            )
        with os_errors_as(JournalError, self.path, "choose another directory with -o"):
            self._make()
            if not marked(self.path):
                save(self.path / MARKER, f"{new_id()}\n".encode())

    def _make(self) -> None:
        """Make the directory and its parents, passable for the server's user."""
        mode = 0o711 if os.geteuid() == 0 else 0o700
        for folder in (*reversed(self.path.absolute().parents), self.path):
            if not folder.exists():
                folder.mkdir(mode=0o700)
                folder.chmod(mode)
        names = {p.name for p in self.path.iterdir()} - {MARKER}
        if names and not marked(self.path):
            shown = ", ".join(sorted(names)[:3])
            raise RefusedError(
                f"{self.path}: not a run directory (contains {shown}); choose a new or an empty "
                "one with -o"
            )

    def trial(self, number: int) -> Path:
        """Return the folder of one trial, whether or not it exists."""
        return self.path / "trials" / f"{number:04d}"

    def begin(self, number: int) -> Path:
        """Return an empty folder for a trial; that of an interrupted attempt is renamed."""
        folder = self.trial(number)
        with os_errors_as(CampaignError, folder, "free disk space and run again"):
            if folder.exists():
                attempts = len(list(folder.parent.glob(f"{folder.name}.interrupted-*")))
                folder.rename(folder.with_name(f"{folder.name}.interrupted-{attempts + 1}"))
            folder.mkdir(parents=True)
        return folder


@dataclass(frozen=True, slots=True)
class OpenCampaign:
    """A campaign with records: what it is, and all that was written down."""

    registered: Registered
    entries: Sequence[Entry]

    @property
    def moved(self) -> list[str]:
        """Return the settings of the host that are still changed: ``db/kernel.sysctl...``."""
        return sorted(
            f"{one.acting.role}/{layer}.{key}"
            for (layer, _, _), one in moved(self.entries).items()
            if not one.acting.owned
            for key in one.values()
            if key in one.wanted or key in one.acting.wanted
        )

    @property
    def made(self) -> bool:
        """Return whether it made something that may still be there."""
        return any(isinstance(entry, Made) for entry in self.entries)

    @property
    def line(self) -> str:
        """Return what it is and what to do, in a line."""
        there = self.registered
        changed = f"has changed {', '.join(self.moved)}" if self.moved else "has left its data"
        return (
            f"campaign {there.name} in {there.directory} on {there.host} {changed}; run it again "
            f"to go on, or `mydyno rollback {there.directory}`"
        )


def new_id() -> str:
    """Return an id that no other campaign has."""
    return secrets.token_hex(8)


def controller() -> str:
    """Return an id of this machine's records, made once."""
    path = state_folder() / _CONTROLLER
    if not path.exists() or not path.read_text(encoding="ascii"):
        save(path, new_id().encode())
    return path.read_text(encoding="ascii")


def save(path: Path, text: bytes) -> None:
    """Write a small file with mode 0600, atomically, and sync it to disk."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = path.with_name(f".{path.stem}.{os.getpid()}")
    clear_parts(path.parent)
    part.unlink(missing_ok=True)
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    sync_folder(path.parent)


def clear_parts(folder: Path) -> None:
    """Remove the parts of records that killed processes have left half written."""
    for part in folder.glob(".*"):
        owner = part.suffix.removeprefix(".")
        if owner.isdigit() and not Path("/proc", owner).exists():
            part.unlink(missing_ok=True)


def marked(directory: Path) -> str:
    """Return the id that a run directory's marker names, or ``""``."""
    try:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        file = os.open(directory / MARKER, flags)
    except OSError:
        return ""
    try:
        text = os.read(file, 64).decode(errors="replace").strip()
    except OSError:
        return ""
    finally:
        os.close(file)
    return text if _ID.fullmatch(text) else ""


def register(directory: Path, name: str, host: str) -> FileRecords:
    """Return the records of a marked run directory, begun where there are none.

    Raises `RefusedError` where they are those of another directory.
    """
    id_ = marked(directory)
    if not id_:
        raise JournalError(f"{directory}: no file {MARKER} in it; choose another directory with -o")
    found = directory.stat()
    records = FileRecords(state_folder(_CAMPAIGNS, id_) / _FILE)
    this = Registered(id_, name, str(directory), found.st_dev, found.st_ino, host)
    before = next((e for e in records.entries() if isinstance(e, Registered)), None)
    if before is None or before.directory != this.directory:
        if before is not None:
            _refuse_copy(directory, records, before)
        records.add(this)
    return records


def find(directory: Path) -> FileRecords | None:
    """Return the records of a run directory, None where it has none.

    One that was moved is found by its inode; one that is gone, or has lost its marker, by its path.
    Raises `RefusedError` for a copy of one that has records.
    """
    id_ = marked(directory)
    if not id_ or not _path(id_).exists():
        with suppress(OSError):  # of one that ended just before its records were there, or after
            _path(id_ or "-").parent.rmdir()
        lost = (one.registered for one in opened() if one.registered.directory == str(directory))
        return next((FileRecords(_path(one.id)) for one in lost), None)
    state_folder(_CAMPAIGNS, id_)
    records = FileRecords(_path(id_))
    of = registered(records.entries())
    if of is not None and of.directory != str(directory):  # a boot gives disks other numbers
        _refuse_copy(directory, records, of)
    return records


def registered(entries: Iterator[Entry]) -> Registered | None:
    """Return the latest registration entry of the records."""
    return next((e for e in reversed(list(entries)) if isinstance(e, Registered)), None)


def opened(host: str = "") -> list[OpenCampaign]:
    """Return the campaigns with records, of all hosts or of one as a spec names it."""
    folder = state_place() / _CAMPAIGNS
    if not folder.is_dir():
        return []
    state_folder(_CAMPAIGNS)
    found = []
    for path in sorted(folder.glob(f"*/{_FILE}")):
        with suppress(FileNotFoundError):  # of a campaign that has ended meanwhile
            raw = path.read_bytes()
            entries = list(decoded(raw[: raw.rfind(b"\n") + 1]))
            of = registered(iter(entries))
            if of is not None and host in {"", of.host}:
                found.append(OpenCampaign(of, entries))
    return [one for one in found if one.moved or one.made]


def forget(records: FileRecords) -> None:
    """Remove the records of a campaign that has nothing left to restore, then their lock."""
    records.path.unlink()
    records.close()
    with suppress(OSError):  # another run may have begun its own there
        records.path.parent.rmdir()


def _path(id_: str) -> Path:
    return state_place() / _CAMPAIGNS / id_ / _FILE


def _refuse_copy(directory: Path, records: FileRecords, of: Registered) -> None:
    """Raise `RefusedError` where the records are of another directory than this one."""
    found = directory.stat()
    if (found.st_dev, found.st_ino) != (of.device, of.inode):
        records.close()
        raise RefusedError(
            f"{directory}: is a copy of {of.directory}, which has changes to restore; run `mydyno "
            f"rollback {of.directory}`, and use the copy with compare and report only"
        )


_COSTS = "costs.json"
_Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e6)]
_MOST = 200  # campaigns; the oldest are forgotten


class MeasuredCosts(msgspec.Struct, frozen=True):
    """Seconds: `overhead_s` of each trial besides its load, `prepare_s` before the first one.

    `noise` is the standard deviation of the trials of one treatment over the one that was
    forecast; None where too few trials showed it.
    """

    overhead_s: _Seconds
    prepare_s: _Seconds
    noise: Annotated[float, msgspec.Meta(ge=0.01, le=100)] | None = None


def remembered(key: str) -> MeasuredCosts | None:
    """Return what the last campaign of this kind cost here, None where there was none.

    `key` describes what costs depend on: host, server, device, data.
    """
    return _costs().get(key)


def remember(key: str, costs: MeasuredCosts) -> None:
    """Store what a campaign cost; a plan is no less right where that fails."""
    with suppress(OSError, RefusedError):
        folder = state_folder()
        found = {name: value for name, value in _costs().items() if name != key}
        stored = dict([*found.items(), (key, costs)][-_MOST:])
        # in place: a file that a kill has torn counts as none, and a copy beside it would stay
        (folder / _COSTS).write_bytes(msgspec.json.encode(stored))


def _costs() -> dict[str, MeasuredCosts]:
    with suppress(OSError, msgspec.DecodeError):
        text = (state_place() / _COSTS).read_bytes()
        return msgspec.json.decode(text, type=dict[str, MeasuredCosts])
    return {}
