"""The specification of a VM lab, its state, its paths, and the caps of its disks."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import msgspec

from mydyno.host import Process
from mydyno.journal.register import save, state_folder
from mydyno.lab.values import record_path
from mydyno.model import HostError, SpecError
from mydyno_vm.throttle import Throttle

Accelerator = Literal["kvm", "tcg"]
Phase = Literal["starting", "up", "removing"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,39}")
_MOST_DISKS = 24  # slots of the machine, less those of its own devices
_SECTOR = 512  # bytes


@dataclass(frozen=True, slots=True)
class VmSpec:
    """One machine: `lab` is its name on this one, `size` is each disk's in bytes.

    `kernel` is a word of the recipe (``6.1``) or a full release; `memory` is in bytes; `credits`
    are those that each load begins with, as a share of a full bucket.
    """

    lab: str
    disks: int = 1
    size: int = 2 << 30
    disk_class: str = ""
    kernel: str = "6.1"
    memory: int = 2 << 30
    cores: int = 2
    caps: Throttle = field(default_factory=Throttle)
    credits: float = 0.0


@dataclass(frozen=True, slots=True)
class VmState:
    """The record of one machine.

    `owner` is the process that made it; None if it is to outlive that.  `port` of 127.0.0.1
    leads to its ssh.  `qemu` is its process, `folder` the device and inode of `home`, empty
    until it is made.
    """

    spec: VmSpec
    home: str
    image: str
    phase: Phase
    accelerator: Accelerator
    port: int
    release: str
    owner: Process | None = None
    qemu: Process | None = None
    folder: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Return its name on this machine."""
        return self.spec.lab

    @property
    def description(self) -> str:
        """Return a description in one line: name, kernel, accelerator, disks, phase."""
        system, disks = f"Linux {self.release}", f"{self.spec.disks} disks"
        return f"{self.name:<24} {system:<34} {self.accelerator}  {disks}  {self.phase}"


@dataclass(frozen=True, slots=True)
class VmPaths:
    """The paths of a machine's files; `home` is absolute and belongs to the machine."""

    home: Path

    @property
    def root(self) -> Path:
        """Return what it wrote over the image."""
        return self.home / "root.qcow2"

    @property
    def seed(self) -> Path:
        """Return the archive that it takes its keys and its name from."""
        return self.home / "seed.tar"

    @property
    def console(self) -> Path:
        """Return what it printed while it booted."""
        return self.home / "console.log"

    @property
    def mark(self) -> Path:
        """Return the pid file; its path on QEMU's command line identifies the machine."""
        return self.home / "qemu.pid"

    @property
    def orders(self) -> Path:
        """Return the socket on which QEMU takes orders; only root reaches it."""
        return self.home / "qmp"

    @property
    def config(self) -> Path:
        """Return the ssh configuration with its address, its key and its host key."""
        return self.home / "ssh_config"

    @property
    def known_hosts(self) -> Path:
        """Return its host key, known before it was booted."""
        return self.home / "known_hosts"

    @property
    def key(self) -> Path:
        """Return the private key that opens it."""
        return self.home / "key"

    @property
    def host_key(self) -> Path:
        """Return its own private key."""
        return self.home / "host_key"

    def disk(self, number: int) -> Path:
        """Return the file of a data disk, counted from 0."""
        return self.home / f"disk{number}.raw"


def check(spec: VmSpec) -> None:
    """Raise `SpecError` for an invalid machine."""
    place = f"lab {spec.lab!r}"
    if not _NAME.fullmatch(spec.lab):
        raise SpecError(f"{place}: invalid name; use up to 40 letters, digits and dashes")
    if not 0 <= spec.disks <= _MOST_DISKS:
        raise SpecError(f"{place}: disks = {spec.disks}: must be from 0 to {_MOST_DISKS}")
    if spec.size <= 0 or spec.size % _SECTOR:
        raise SpecError(f"{place}: size {spec.size}: must be a multiple of {_SECTOR} bytes")


@dataclass(frozen=True, slots=True)
class VmRecords:
    """The folder of the records; each names the boot of its processes."""

    folder: Path

    def write(self, state: VmState) -> VmState:
        """Record a state atomically, and return it."""
        save(self._path(state.spec.lab), msgspec.json.encode(state))
        return state

    def step(self, state: VmState, phase: Phase) -> VmState:
        """Record that a phase begins, and return the state in it."""
        return self.write(replace(state, phase=phase))

    def read(self, lab: str) -> VmState | None:
        """Return the state of one machine, or None; raise `HostError` if it cannot be read."""
        path = self._path(lab)
        try:
            return msgspec.json.decode(path.read_bytes(), type=VmState)
        except FileNotFoundError:
            return None
        except msgspec.DecodeError as error:
            raise HostError(
                f"{path}: not a valid machine record ({error}); check for its QEMU with "
                "`pgrep -a qemu`, then remove the file"
            ) from error

    def all(self) -> Sequence[VmState]:
        """Return the state of every machine, by name."""
        states = (self.read(path.stem) for path in sorted(self.folder.glob("[!.]*.json")))
        return tuple(state for state in states if state is not None)

    def forget(self, lab: str) -> None:
        """Remove the record of a machine that is gone."""
        self._path(lab).unlink(missing_ok=True)

    def _path(self, lab: str) -> Path:
        return record_path(self.folder, lab)


def records() -> VmRecords:
    """Return the records of this machine's VMs."""
    return VmRecords(state_folder("vms"))
