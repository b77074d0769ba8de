"""The specification of a lab disk, and its validation."""

import re
from dataclasses import dataclass, field

from mydyno.model import SpecError

PAGE = 4096  # bytes; the grain of overlays, of which sizes and chunks are multiples
DISKS = 64  # more than any VM of these clouds takes
CHUNK = 64 << 20  # bytes; far more than any I/O
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


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
    if not _NAME.fullmatch(spec.lab):
        raise SpecError(
            f"lab {spec.lab!r}: invalid name; use up to 64 letters, digits, dots, dashes and "
            "underscores"
        )
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
