"""The specification of a VM lab, its state, its paths, and the caps of its disks."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from mydyno.host import Process
from mydyno.model import SpecError

Accelerator = Literal["kvm", "tcg"]
Phase = Literal["starting", "up", "removing"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,39}")
_MOST_DISKS = 24  # slots of the machine, less those of its own devices
_SECTOR = 512  # bytes


@dataclass(frozen=True, slots=True)
class Throttle:
    """The caps of one disk as QEMU keeps them; 0 is none, rates are per second."""

    iops: float = 0.0
    bytes_per_s: float = 0.0
    burst_iops: float = 0.0
    burst_bytes_per_s: float = 0.0
    burst_s: float = 0.0


@dataclass(frozen=True, slots=True)
class VmSpec:
    """One machine: `lab` is its name on this one, `size` is each disk's in bytes.

    `kernel` is a word of the recipe (``6.1``) or a full release; `memory` is in bytes.
    """

    lab: str
    disks: int = 1
    size: int = 2 << 30
    disk_class: str = ""
    kernel: str = "6.1"
    memory: int = 2 << 30
    cores: int = 2
    throttle: Throttle = field(default_factory=Throttle)


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
