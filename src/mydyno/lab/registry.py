"""The records of the labs: one file for each, written before each step."""

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import msgspec

from mydyno.host import Process
from mydyno.journal.register import state_folder
from mydyno.lab.values import LabSpec
from mydyno.model import HostError, SpecError

VERSION = 3  # of the record format
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_BEFORE = ("labs", "links", "vms")  # folders of older records
Phase = Literal["starting", "attaching", "up", "removing", "kept"]


@dataclass(frozen=True, slots=True)
class Loop:
    """The loop device of a lab, and the queue settings it had before.

    `diskseq` is the kernel's sequence number of the attachment, unique since boot.
    """

    device: str = ""
    diskseq: str = ""
    queue: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LabState:
    """The record of one lab.

    `owner` is the local process that made it; None if the lab outlives that.  `daemon` runs on
    `host`.  With `keep` its frozen base is retained after the owner's end, for a resumed campaign;
    the phase is then `kept`, and only the base files exist.  `folder` is the device and inode of
    `home`, empty until it is made; `mount` is the device number of the daemon's mount; `boot` is
    the boot id of `host`.
    """

    spec: LabSpec
    host: str
    home: str
    phase: Phase
    owner: Process | None = None
    daemon: Process | None = None
    loop: Loop = Loop()
    keep: bool = False
    boot: str = ""
    folder: Mapping[str, str] = field(default_factory=dict)
    mount: str = ""

    @property
    def device(self) -> str:
        """Return the block device, or ``""`` before there is one."""
        return self.loop.device


class _Record(msgspec.Struct, frozen=True):
    """A state in the file format."""

    lab: LabState
    version: int = VERSION


class _Version(msgspec.Struct, frozen=True):
    version: int = 1


@dataclass(frozen=True, slots=True)
class Registry:
    """The folder of the records, on the machine that mydyno runs on."""

    folder: Path

    def write(self, state: LabState) -> LabState:
        """Record a state atomically, and return it."""
        save(self._path(state.spec.lab), msgspec.json.encode(_Record(state)))
        return state

    def step(self, state: LabState, phase: Phase) -> LabState:
        """Record that a phase begins, and return the state in it."""
        return self.write(replace(state, phase=phase))

    def read(self, lab: str) -> LabState | None:
        """Return the state of one lab, or None; raise `HostError` if it cannot be read."""
        path = self._path(lab)
        try:
            return _decode(path.read_bytes(), path)
        except FileNotFoundError:
            return None
        except msgspec.DecodeError as error:
            raise HostError(
                f"{path}: not a valid lab record ({error}); check `losetup` and `findmnt` for its "
                "device and mounts, then remove the file"
            ) from error

    def all(self) -> Sequence[LabState]:
        """Return the state of every lab, by name."""
        states = (self.read(path.stem) for path in sorted(self.folder.glob("[!.]*.json")))
        return tuple(state for state in states if state is not None)

    def forget(self, lab: str) -> None:
        """Remove the record of a lab that is gone."""
        self._path(lab).unlink(missing_ok=True)

    def _path(self, lab: str) -> Path:
        return record_path(self.folder, lab)


def record_path(folder: Path, name: str) -> Path:
    """Return the path of the record of this name; raise `SpecError` for an invalid name."""
    if not _NAME.fullmatch(name):
        raise SpecError(
            f"lab {name!r}: invalid name; use up to 64 letters, digits, dots, dashes and "
            "underscores"
        )
    return folder / f"{name}.json"


def save(path: Path, text: bytes) -> None:
    """Write a record with mode 0600, atomically, and sync it to disk."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = path.with_name(f".{path.stem}.{os.getpid()}")
    clear_parts(path.parent)
    part.unlink(missing_ok=True)
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def clear_parts(folder: Path) -> None:
    """Remove the parts of records that killed processes have left half written."""
    for part in folder.glob(".*"):
        owner = part.suffix.removeprefix(".")
        if owner.isdigit() and not Path("/proc", owner).exists():
            part.unlink(missing_ok=True)


def _decode(raw: bytes, path: Path) -> LabState:
    """Return the state in a record of this version; raise `HostError` for another one."""
    version = msgspec.json.decode(raw, type=_Version).version
    if version != VERSION:
        age = "a newer" if version > VERSION else "an older"
        raise HostError(f"{path}: written by {age} mydyno (version {version}); use that one")
    return msgspec.json.decode(raw, type=_Record).lab


def run_folder() -> Path:
    """Return the folder of records of older versions: /run/mydyno, or one of the user's."""
    if os.geteuid() == 0:
        return Path("/run/mydyno")
    return Path(os.environ.get("XDG_RUNTIME_DIR") or "/tmp") / f"mydyno-{os.geteuid()}"  # noqa: S108 - only read


def older() -> Sequence[Path]:
    """Return the records of an older version; they are shown only."""
    found: list[Path] = []
    for name in _BEFORE:
        with suppress(OSError):
            found += sorted((run_folder() / name).glob("*.json"))
    return tuple(found)


def registry() -> Registry:
    """Return the registry of the local labs, writable for root, or this user, only."""
    return Registry(state_folder("labs"))
