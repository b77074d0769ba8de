"""The disk of a trial's data and the network interface of its load."""

import re
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

import msgspec

from mydyno.host import Host
from mydyno.model import Action, HostError

_UNKNOWN = (0, 65535, 4294967295)


@dataclass(frozen=True, slots=True)
class Where:
    """Which disk holds the data and which interface carries the load, as the kernel names them.

    Each is empty where there is none, or it is unknown.  `link_bytes_per_s` is how fast
    the interface's link is, None where that is not known.
    """

    disk: str = ""
    interface: str = ""
    link_bytes_per_s: float | None = None


def disk_of(host: Host, folder: Path) -> str:
    """Return the disk, volume or array under `folder` as /proc/diskstats names it, or ``""``.

    A partition's disk is named, as it is the disk that has a queue and flushes.
    """
    try:
        return _named(host, folder)
    except HostError:  # a tool is missing, or no answer came
        return ""


def interface_to(host: Host, address: str, *, elsewhere: bool = False) -> str:
    """Return the interface through which `host` reaches an address, or ``""``.

    That of an address of its own is the loopback, whichever interface has it; but for who comes
    from `elsewhere` it is that very interface.
    """
    if not elsewhere and ip_address(address).is_loopback:
        return "lo"
    asked = ("addr", "show", "to") if elsewhere else ("route", "get")
    try:
        done = host.run(Action(("ip", "-j", *asked, address)))
        found = msgspec.json.decode(done.stdout or b"[]", type=list[_Named])
    except (HostError, msgspec.DecodeError):
        return ""
    return next((one.dev or one.ifname for one in found if one.dev or one.ifname), "")


def link_speed(host: Host, interface: str) -> float | None:
    """Return the bytes per second of an interface's link, None where it is not known.

    Only what has hardware behind it, or stands on such, reports a real speed: the kernel's virtual
    pairs report 10 Gbit/s whatever happens on them.
    """
    place = f"/sys/class/net/{interface}"
    if not interface:
        return None
    try:
        shown = host.run(Action(("grep", "-s", ".", f"{place}/speed", f"{place}/uevent"))).stdout
        real = host.run(Action(("test", "-e", f"{place}/device"))).returncode == 0
    except HostError:
        return None
    return parse_speed(shown, real=real)


def parse_speed(raw: bytes, *, real: bool) -> float | None:
    """Return bytes per second from an interface's files `speed` (Mbit/s) and `uevent`.

    A driver that does not know says -1, 65535 or 4294967295.
    """
    text = raw.decode(errors="replace")
    stacked = any(f"DEVTYPE={kind}\n" in text for kind in ("bond", "vlan"))
    found = re.search(r"/speed:(\d+)$", text, re.MULTILINE)
    mbit = int(found[1]) if found and (real or stacked) else 0
    return None if mbit in _UNKNOWN else mbit * 1e6 / 8


class _Named(msgspec.Struct, frozen=True):
    dev: str = ""
    ifname: str = ""


def _named(host: Host, folder: Path) -> str:
    columns = ("findmnt", "--noheadings", "--raw", "--output", "MAJ:MIN,SOURCE")
    output = host.run(Action((*columns, "--target", str(folder)))).stdout.decode(errors="replace")
    number, _, source = output.strip().partition(" ")
    if not number:
        return ""
    # btrfs has a number of its own, which is no device's; its source names one
    device = _real(host, source.partition("[")[0]) if source.startswith("/dev/") else None
    links = [f"/sys/dev/block/{number}", *([f"/sys/class/block/{device.name}"] if device else [])]
    found = next((path for link in links if (path := _real(host, link))), None)
    if found is None:
        return ""
    is_part = host.run(Action(("test", "-e", str(found / "partition")))).returncode == 0
    return found.parent.name if is_part else found.name


def _real(host: Host, path: str) -> Path | None:
    done = host.run(Action(("realpath", "-e", "--", path)))
    return None if done.returncode else Path(done.stdout.decode(errors="replace").strip())
