"""What a lab disk is to be, and what was measured on it."""

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
    """Seconds added to every read and write, and that a flush takes; none is invented."""

    read_s: float = 0.0
    write_s: float = 0.0
    flush_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Stripe:
    """RAID level 0 over equal disks, with `chunk` bytes on one before the next; one is not cut."""

    disks: int = 1
    chunk: int = 512 << 10  # bytes; mdadm's default


@dataclass(frozen=True, slots=True)
class LabSpec:
    """One lab device: `lab` is its name on this machine, `size` is its own in bytes.

    `disk_class` is what each disk may do, `vm` what all may together: names of ``mydyno lab
    classes``; neither, and no caps, means uncapped.  `credits` of disks and VM at the start are
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
        """Return whether any cap is asked for."""
        return bool(self.disk_class or self.vm) or self.caps != Caps()

    @property
    def description(self) -> str:
        """Return in words what stands in for real disks: ``4 disks of azure-p15, ...``."""
        kind = self.disk_class or ("capped" if self.capped else "uncapped")
        each = f"{self.stripe.disks} x {kind}" if self.stripe.disks > 1 else kind
        chunk = f", chunks of {self.stripe.chunk >> 10}K" if self.stripe.disks > 1 else ""
        return each + chunk + (f", on {self.vm}" if self.vm else "")


def check(spec: LabSpec) -> None:
    """Raise `SpecError` for a lab that cannot be; the class's name is judged by mydyno-disk."""
    if not _NAME.fullmatch(spec.lab):
        raise SpecError(
            f"lab {spec.lab!r}: a name has up to 64 letters, digits, dots, dashes and underscores"
        )
    if spec.size <= 0 or spec.size % PAGE:
        raise SpecError(f"lab {spec.lab}: size {spec.size}: give a multiple of {PAGE} bytes")
    check_stripe(spec.stripe, f"lab {spec.lab}")
    if spec.stripe.disks * spec.stripe.chunk > spec.size:
        raise SpecError(f"lab {spec.lab}: size {spec.size}: less than one chunk on each disk")
    level_text(spec.credits)


def check_stripe(stripe: Stripe, place: str) -> None:
    """Raise `SpecError` for a stripe that no lab can have."""
    if not 1 <= stripe.disks <= DISKS:
        raise SpecError(f"{place}: {stripe.disks} disks: give 1 to {DISKS}")
    if not PAGE <= stripe.chunk <= CHUNK or stripe.chunk % PAGE:
        raise SpecError(
            f"{place}: chunk {stripe.chunk}: give a multiple of 4K from 4K to {CHUNK >> 20}M"
        )


def level_text(level: str | float) -> str:
    """Return a credit level as ``ctl`` reads it; raise `SpecError` if it is none."""
    try:
        valid = level in {"empty", "full"} or 0 <= float(level) <= 1
    except ValueError:
        valid = False
    if not valid:
        raise SpecError(f"credits {level!r}: give empty, full, or a share between 0 and 1")
    return str(level)
