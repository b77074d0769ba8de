"""What a lab disk is to be, and what was measured on it."""

import re
from dataclasses import dataclass, field

from mydyno.model import SpecError

CHUNK = 4096  # bytes; the grain of the overlay, which the size must be a multiple of
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
class LabSpec:
    """One lab disk: `lab` is its name on this machine, `size` is in bytes.

    `disk_class` is a name of ``mydyno-disk classes``; empty with no caps means uncapped.
    `credits` is ``empty``, ``full`` or a share between 0 and 1.
    """

    lab: str
    size: int
    disk_class: str = ""
    credits: str | float = "empty"
    caps: Caps = field(default_factory=Caps)
    latency: Latency = field(default_factory=Latency)

    @property
    def capped(self) -> bool:
        """Return whether any cap is asked for."""
        return bool(self.disk_class) or self.caps != Caps()


@dataclass(frozen=True, slots=True)
class Measured:
    """What a lab disk gave: 16 KiB random I/O at depth 32, and sequential reads.

    `write_iops` is None where writing would have destroyed something.
    """

    read_iops: float
    read_bytes_per_s: float
    write_iops: float | None = None


def check(spec: LabSpec) -> None:
    """Raise `SpecError` for a lab that cannot be; the class's name is judged by mydyno-disk."""
    if not _NAME.fullmatch(spec.lab):
        raise SpecError(
            f"lab {spec.lab!r}: a name has up to 64 letters, digits, dots, dashes and underscores"
        )
    if spec.size <= 0 or spec.size % CHUNK:
        raise SpecError(f"lab {spec.lab}: size {spec.size}: give a multiple of {CHUNK} bytes")
    level_text(spec.credits)


def level_text(level: str | float) -> str:
    """Return a credit level as ``ctl`` reads it; raise `SpecError` if it is none."""
    try:
        valid = level in {"empty", "full"} or 0 <= float(level) <= 1
    except ValueError:
        valid = False
    if not valid:
        raise SpecError(f"credits {level!r}: give empty, full, or a share between 0 and 1")
    return str(level)
