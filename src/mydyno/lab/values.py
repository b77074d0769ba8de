"""Lab disks: what is asked for, where the files are, and the record written before each step."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Literal

import msgspec

from mydyno.host import Process
from mydyno.journal.register import save, state_folder
from mydyno.model import HostError, SpecError

HOME = Path("/var/tmp/mydyno-labs")  # noqa: S108 - big files, and names are in our registry
RAID_KEYS = ("level", "chunk", "devices")  # of the layer `raid`, in every lab
PAGE = 4096  # bytes; the grain of overlays, of which sizes and chunks are multiples
DISKS = 64  # more than any VM of these clouds takes
CHUNK = 64 << 20  # bytes; far more than any I/O
VERSION = 3  # of the record format
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
Phase = Literal["starting", "attaching", "up", "removing", "kept"]


@dataclass(frozen=True, slots=True)
class Caps:
    """Caps that replace those of the class one by one; None leaves the class's own, or none.

    A full bucket lasts `burst_s` seconds at the burst rate; None is the class's own length.
    """

    iops: float | None = None
    bytes_per_s: float | None = None
    burst_iops: float | None = None
    burst_bytes_per_s: float | None = None
    burst_s: float | None = None


@dataclass(frozen=True, slots=True)
class Latency:
    """Seconds added to every read and write, and of a flush; zero by default."""

    read_s: float = 0.0
    write_s: float = 0.0
    flush_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Stripe:
    """RAID level 0 over equal disks, with `chunk` bytes on each in turn."""

    disks: int = 1
    chunk: int = 512 << 10  # bytes; mdadm's default


@dataclass(frozen=True, slots=True)
class LabSpec:
    """One lab device: `lab` is its name on this machine, `size` is its own in bytes.

    `disk_class` limits each disk, `vm` all together: names of ``mydyno lab classes``; without both,
    and without caps, it is uncapped.  `credits` of disks and VM at the start are
    ``empty``, ``full`` or a share between 0 and 1.
    """

    lab: str
    size: int
    disk_class: str = ""
    credits: str | float = "empty"
    caps: Caps = field(default_factory=Caps)
    latency: Latency = field(default_factory=Latency)
    stripe: Stripe = field(default_factory=Stripe)
    vm: str = ""

    @property
    def capped(self) -> bool:
        """Return whether any cap is set."""
        return bool(self.disk_class or self.vm) or self.caps != Caps()

    @property
    def description(self) -> str:
        """Return a description of the disks: ``4 x azure-p15, chunks of 512K``."""
        kind = self.disk_class or ("capped" if self.capped else "uncapped")
        each = f"{self.stripe.disks} x {kind}" if self.stripe.disks > 1 else kind
        chunk = f", chunks of {self.stripe.chunk >> 10}K" if self.stripe.disks > 1 else ""
        return each + chunk + (f", on {self.vm}" if self.vm else "")


def check(spec: LabSpec) -> None:
    """Raise `SpecError` for an invalid lab; mydyno-disk checks the name of the class."""
    record_path(Path(), spec.lab)
    if spec.size <= 0 or spec.size % PAGE:
        raise SpecError(f"lab {spec.lab}: size {spec.size}: must be a multiple of {PAGE} bytes")
    check_stripe(spec.stripe, f"lab {spec.lab}")
    if spec.stripe.disks * spec.stripe.chunk > spec.size:
        raise SpecError(
            f"lab {spec.lab}: size {spec.size}: less than one chunk on each disk; increase it"
        )
    level_text(spec.credits)


def check_stripe(stripe: Stripe, place: str) -> None:
    """Raise `SpecError` for an invalid stripe."""
    if not 1 <= stripe.disks <= DISKS:
        raise SpecError(f"{place}: {stripe.disks} disks: must be 1 to {DISKS}")
    if not PAGE <= stripe.chunk <= CHUNK or stripe.chunk % PAGE:
        raise SpecError(
            f"{place}: chunk {stripe.chunk}: must be a multiple of 4K from 4K to {CHUNK >> 20}M"
        )


def level_text(level: str | float) -> str:
    """Return a credit level as ``ctl`` reads it; raise `SpecError` for an invalid one."""
    try:
        valid = level in {"empty", "full"} or 0 <= float(level) <= 1
    except ValueError:
        valid = False
    if not valid:
        raise SpecError(f"credits {level!r}: must be empty, full, or a ratio between 0 and 1")
    return str(level)


@dataclass(frozen=True, slots=True)
class Geometry:
    """What mkfs should know of stripes: bytes of one disk's share (some KiB), and disks of data."""

    unit: int
    width: int

    def options(self, kind: str, block: int = 4096) -> tuple[str, ...]:
        """Return the options of ``mkfs.KIND`` for these stripes; `block` is ext4's, in bytes.

        xfs: su and sw; ext4: stride and stripe_width in blocks (man mkfs.xfs(8), mke2fs(8)).
        """
        if kind == "xfs":
            return ("-d", f"su={self.unit >> 10}k,sw={self.width}")
        if kind == "ext4":
            stride = self.unit // block
            return ("-E", f"stride={stride},stripe_width={stride * self.width}")
        return ()


_KNOWN = {
    "xfs": re.compile(r"(?:^|,)(?:su|sunit|sw|swidth|noalign)(?:=|,|$)"),
    "ext4": re.compile(r"(?:^|,)(?:stride|stripe_width|stripe-width)="),
}


def mkfs_options(kind: str, options: str, stripe: Stripe) -> str:
    """Return mkfs options with the stripe's geometry among them, unless they name one.

    For XFS stripe unit and width, for ext4 stride and stripe width in blocks; btrfs has none.
    """
    geometry = Geometry(stripe.chunk, stripe.disks).options(kind)
    if stripe.disks == 1 or not geometry:
        return options
    flag, words = geometry
    argv = shlex.split(options)
    if any(_KNOWN[kind].search(word) for word in _values(argv, flag)):
        return options
    return shlex.join(_merged(argv, flag, words))


def _values(argv: list[str], flag: str) -> list[str]:
    """Return what follows a flag, wherever it is given."""
    return [value for word, value in pairwise(argv) if word == flag]


def _merged(argv: list[str], flag: str, words: str) -> list[str]:
    """Append to the value of the last occurrence of a flag (mke2fs uses that), or add the flag."""
    if flag not in argv[:-1]:
        return [flag, words, *argv]
    at = len(argv) - argv[::-1].index(flag)
    return [*argv[:at], f"{argv[at]},{words}", *argv[at + 1 :]]


class Paths:
    """The paths of a lab's files; `home` is absolute and belongs to the lab."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.mount = home / "fuse"  # where mydyno-disk is mounted
        self.disk = self.mount / "disk"  # the block image, on which the loop device stands
        self.control = self.mount / "ctl"  # commands are written to it, the state is read
        self.snapshot_marker = home / "golden.json"
        self.log = home / "disk.log"

    def bases(self, disks: int) -> tuple[Path, ...]:
        """Return the files that hold what was written before the freeze, one for each disk."""
        return tuple(self.home / f"base{_number(n)}.img" for n in range(disks))

    def overlays(self, disks: int) -> tuple[Path, ...]:
        """Return the files for writes after the freeze; they are unlinked once open."""
        return tuple(self.home / f"overlay{_number(n)}.img" for n in range(disks))


def _number(disk: int) -> str:
    """Return the suffix of a disk's files; empty for the first."""
    return f"-{disk}" if disk else ""


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

    @property
    def paths(self) -> Paths:
        """Return the paths of its files."""
        return Paths(Path(self.home))


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
        save(record_path(self.folder, state.spec.lab), msgspec.json.encode(_Record(state)))
        return state

    def step(self, state: LabState, phase: Phase) -> LabState:
        """Record that a phase begins, and return the state in it."""
        return self.write(replace(state, phase=phase))

    def read(self, lab: str) -> LabState | None:
        """Return the state of one lab, or None; raise `HostError` if it cannot be read."""
        path = record_path(self.folder, lab)
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
        record_path(self.folder, lab).unlink(missing_ok=True)


def record_path(folder: Path, name: str) -> Path:
    """Return the path of the record of this name; raise `SpecError` for an invalid name."""
    if not _NAME.fullmatch(name):
        raise SpecError(
            f"lab {name!r}: invalid name; use up to 64 letters, digits, dots, dashes and "
            "underscores"
        )
    return folder / f"{name}.json"


def _decode(raw: bytes, path: Path) -> LabState:
    """Return the state in a record of this version; raise `HostError` for another one."""
    version = msgspec.json.decode(raw, type=_Version).version
    if version != VERSION:
        age = "a newer" if version > VERSION else "an older"
        raise HostError(f"{path}: written by {age} mydyno (version {version}); use that one")
    return msgspec.json.decode(raw, type=_Record).lab


def registry() -> Registry:
    """Return the registry of the local labs, writable for root, or this user, only."""
    return Registry(state_folder("labs"))
