"""The caps of a cloud disk's class as QEMU takes them."""

from typing import Any

import msgspec

from mydyno.host import Host, ask
from mydyno.lab.binary import binary
from mydyno.lab.vm.values import Throttle
from mydyno.model import Action, HostError, Probe, SpecError


def throttle(host: Host, name: str) -> Throttle:
    """Return the caps of a class of ``mydyno-disk classes``; an empty name has none.

    QEMU begins with full buckets (docs/throttle.txt of QEMU), where a loop lab begins with empty
    ones: a burst lasts as long as a full bucket of the class.
    """
    if not name:
        return Throttle()
    if not binary():
        raise HostError("mydyno-disk is not built, which knows the classes; `make setup` builds it")
    known = ask(host, Probe(Action((binary(), "classes", "--json")), parse))
    if name not in known:
        raise SpecError(f"class {name!r}: not one of {', '.join(known)}")
    return known[name]


def parse(raw: bytes) -> dict[str, Throttle]:
    """Return the classes by name."""
    rows = msgspec.json.decode(raw, type=dict[str, Any])["disks"]
    return {str(row["name"]): _of(row["iops"], row["bytes_per_s"]) for row in rows}


def _of(iops: dict[str, float], rate: dict[str, float]) -> Throttle:
    """Return QEMU's caps: it empties both buckets in one length, so the shorter one is taken."""
    lengths = [
        each["credits"] / (each["burst"] - each["base"])
        for each in (iops, rate)
        if each["burst"] > each["base"] and each["credits"]
    ]
    if not lengths:
        return Throttle(iops["base"], rate["base"])
    return Throttle(iops["base"], rate["base"], iops["burst"], rate["burst"], min(lengths))
