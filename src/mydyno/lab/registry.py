"""The record of the labs that are up: one file per lab, written before each act."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import msgspec

from mydyno.lab.process import Process
from mydyno.lab.values import LabSpec
from mydyno.model import HostError

VERSION = 2  # of the record: 1 had no stripe, and is read as one disk
Phase = Literal["starting", "attaching", "up", "removing", "kept"]


@dataclass(frozen=True, slots=True)
class Loop:
    """The loop device of a lab, and what its queue was before: the kernel keeps queues."""

    device: str = ""
    queue: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LabState:
    """What is known of one lab.

    `owner` is the process on this machine that made it; None if it is to outlive that.
    `daemon` runs on `host`.  `keep` says that its frozen base outlives a dead owner, for a
    campaign that is resumed; such a lab is then `kept`: a base file and nothing else.
    """

    spec: LabSpec
    host: str
    home: str
    phase: Phase
    owner: Process | None = None
    daemon: Process | None = None
    loop: Loop = Loop()
    keep: bool = False

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
        self.folder.mkdir(parents=True, exist_ok=True)
        part = self.folder / f".{state.spec.lab}.{os.getpid()}"
        part.write_bytes(msgspec.json.encode(_Record(state)))
        part.replace(self._path(state.spec.lab))
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
        return self.folder / f"{lab}.json"


def _decode(raw: bytes, path: Path) -> LabState:
    """Return the state in a record of this version or an older one."""
    version = msgspec.json.decode(raw, type=_Version).version
    if version > VERSION:
        raise HostError(f"{path}: written by a newer mydyno (version {version}); use that one")
    if version == 1:
        return msgspec.json.decode(raw, type=LabState)
    return msgspec.json.decode(raw, type=_Record).lab


def run_folder() -> Path:
    """Return the folder of locks and lab states: $MYDYNO_RUN_DIR, or /run/mydyno, or one's own."""
    if named := os.environ.get("MYDYNO_RUN_DIR"):
        return Path(named)
    if os.geteuid() == 0:
        return Path("/run/mydyno")
    return Path(os.environ.get("XDG_RUNTIME_DIR") or "/tmp") / f"mydyno-{os.geteuid()}"  # noqa: S108


def registry() -> Registry:
    """Return the registry of this machine's labs, in a folder that a reboot empties."""
    return Registry(run_folder() / "labs")
