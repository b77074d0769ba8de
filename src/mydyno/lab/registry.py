"""The record of the labs that are up: one file per lab, written before each act."""

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import msgspec

from mydyno.host import Process
from mydyno.journal.state import state_folder
from mydyno.lab.values import LabSpec
from mydyno.model import HostError, SpecError

VERSION = 3  # of the record: older ones lie elsewhere, and do not say which things are theirs
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_BEFORE = ("labs", "links", "vms")  # folders of older records
Phase = Literal["starting", "attaching", "up", "removing", "kept"]


@dataclass(frozen=True, slots=True)
class Loop:
    """The loop device of a lab, and what its queue was before: the kernel keeps queues.

    `diskseq` is the kernel's count of disks at its attachment: another one has another number.
    """

    device: str = ""
    diskseq: str = ""
    queue: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LabState:
    """What is known of one lab.

    `owner` is the process on this machine that made it; None if it is to outlive that.
    `daemon` runs on `host`.  `keep` says that its frozen base outlives a dead owner, for a
    campaign that is resumed; such a lab is then `kept`: a base file and nothing else.
    `folder` is the device and inode of `home`, empty until it is made; `mount` is the number of
    the daemon's mount; `boot` is the boot of `host` in which all that was.
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
    """A state as it is written down."""

    lab: LabState
    version: int = VERSION


class _Version(msgspec.Struct, frozen=True):
    version: int = 1


@dataclass(frozen=True, slots=True)
class Registry:
    """The folder of the records, on the machine that mydyno runs on."""

    folder: Path

    def write(self, state: LabState) -> LabState:
        """Record a state, whole or not at all, and return it."""
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
                f"{path}: not the record of a lab ({error}); look for its mounts with `losetup` "
                "and `findmnt`, then remove the file"
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
    """Return where the record of this name is; raise `SpecError` for what is no name."""
    if not _NAME.fullmatch(name):
        raise SpecError(
            f"lab {name!r}: a name has up to 64 letters, digits, dots, dashes and underscores"
        )
    return folder / f"{name}.json"


def save(path: Path, text: bytes) -> None:
    """Write a record for nobody else's eyes, whole or not at all, and onto the disk."""
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
    """Return where older versions kept their records: /run/mydyno, or a folder of the user's."""
    if os.geteuid() == 0:
        return Path("/run/mydyno")
    return Path(os.environ.get("XDG_RUNTIME_DIR") or "/tmp") / f"mydyno-{os.geteuid()}"  # noqa: S108 - only looked at


def older() -> Sequence[Path]:
    """Return the records that an older version left; they are shown, and never acted on."""
    found: list[Path] = []
    for name in _BEFORE:
        with suppress(OSError):
            found += sorted((run_folder() / name).glob("*.json"))
    return tuple(found)


def registry() -> Registry:
    """Return the registry of this machine's labs, where only root, or this user, can write."""
    return Registry(state_folder("labs"))
