"""The caps of a machine's disks: those of a class, and as QEMU keeps them, in leaky buckets."""

import json
import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BufferedRWPair
from pathlib import Path
from typing import Any

import msgspec

from mydyno.lab.loop_lab import binary, classes
from mydyno.model import HostError, SpecError

_ANSWER_S = 60.0  # of QEMU on a busy machine; usually a millisecond
_LEAST_S = 2  # with a bucket of one second QEMU does not hold a burst to its rate


@dataclass(frozen=True, slots=True)
class Cap:
    """A rate per second, 0 for none; `burst` while there are `credits`, which are a full bucket."""

    base: float = 0.0
    burst: float = 0.0
    credits: float = 0.0

    def limits(self, name: str, level: float) -> dict[str, int]:
        """Return QEMU's limits of a disk that begins with this share of a full bucket (0 to 1).

        Its bucket holds `max` times `max_length` requests, of which the base rate leaks (its
        docs/throttle.txt); it begins with room for all of them, and earns room while it idles.
        The length is a number of seconds: credits of less than two at the burst's rate are none.
        """
        found = {name: round(self.base)}
        seconds = round(level * self.credits / self.burst) if self.burst > self.base else 0
        if seconds >= _LEAST_S:
            found |= {f"{name}_max": round(self.burst), f"{name}_max_length": seconds}
        return found


@dataclass(frozen=True, slots=True)
class Throttle:
    """The caps of one disk: I/Os and bytes."""

    iops: Cap = field(default_factory=Cap)
    bytes_per_s: Cap = field(default_factory=Cap)

    @property
    def bursts(self) -> bool:
        """Return whether it has credits to begin with."""
        return any(cap.credits and cap.burst > cap.base for cap in (self.iops, self.bytes_per_s))

    def limits(self, level: float) -> dict[str, int]:
        """Return all limits of ``block_set_io_throttle``; 0 is none."""
        apart = dict.fromkeys(("iops_rd", "iops_wr", "bps_rd", "bps_wr"), 0)
        return apart | self.iops.limits("iops", level) | self.bytes_per_s.limits("bps", level)


def throttle(name: str) -> Throttle:
    """Return the caps of a class of ``mydyno-disk classes``."""
    if not binary():
        raise HostError("mydyno-disk is not built, which knows the classes; `make setup` builds it")
    known = parse(classes(json=True))
    if name not in known:
        raise SpecError(f"class {name!r}: not one of {', '.join(known)}")
    return known[name]


def parse(raw: bytes | str) -> dict[str, Throttle]:
    """Return the classes by name."""
    rows = msgspec.json.decode(raw)["disks"]
    return {str(row["name"]): msgspec.convert(row, Throttle) for row in rows}


def set_caps(orders: Path, disks: Sequence[str], caps: Throttle, level: float) -> None:
    """Give each of a running machine's disks its caps, with a new bucket at this level.

    `orders` is QEMU's socket.  Raise `HostError` with its answer if it refuses.
    """
    try:
        with _inside(orders.parent) as folder, socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_ANSWER_S)
            connection.connect(f"{folder}/{orders.name}")
            with connection.makefile("rwb") as qemu:
                _order(qemu, "qmp_capabilities", {})
                for disk in disks:
                    _order(qemu, "block_set_io_throttle", {"device": disk, **caps.limits(level)})
    except (OSError, ValueError) as error:
        raise HostError(f"{orders}: QEMU does not set the caps of its disks: {error}") from error


@contextmanager
def _inside(folder: Path) -> Iterator[str]:
    """Give a short path of a folder: the address of a socket has 107 bytes at most."""
    there = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{there}"
    finally:
        os.close(there)


def _order(qemu: BufferedRWPair, command: str, arguments: dict[str, Any]) -> None:
    """Have QEMU execute a command of its machine protocol; its greeting and events are passed."""
    qemu.write(json.dumps({"execute": command, "arguments": arguments}).encode() + b"\n")
    qemu.flush()
    for line in qemu:
        answer = json.loads(line)
        if "return" in answer:
            return
        if "error" in answer:
            raise ValueError(answer["error"]["desc"])
    raise ValueError("it ended")
