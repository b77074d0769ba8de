"""Mounts and their devices, checked before anything is unmounted."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mydyno.host.protocol import Host, ask
from mydyno.host.trusted import resolved
from mydyno.model import Action, HostError, Probe

_MOUNTS = Action(("cat", "/proc/self/mountinfo"))
_NUMBER = 'real=$(readlink -e -- "$1") && [ -b "$real" ] && cat "/sys/class/block/${real##*/}/dev"'


@dataclass(frozen=True, slots=True)
class Mount:
    """One line of mountinfo: where, from what, the device's ``major:minor``, the filesystem."""

    target: str
    source: str
    number: str = ""
    kind: str = ""


def parse_mounts(raw: bytes) -> Sequence[Mount]:
    """Return the mounts of /proc/PID/mountinfo, oldest first (man proc(5))."""
    mounts = []
    for line in raw.decode(errors="surrogateescape").splitlines():
        left, found, right = line.partition(" - ")
        here, there = left.split(" "), right.split(" ")
        if found and len(here) > 4 and len(there) > 1:  # noqa: PLR2004 - the fifth field is the place
            mounts.append(Mount(_unescape(here[4]), _unescape(there[1]), here[2], there[0]))
    return tuple(mounts)


def mounts(host: Host) -> Sequence[Mount]:
    """Return the mounts of this mount namespace, oldest first."""
    return ask(host, Probe(_MOUNTS, parse_mounts))


def mount_at(host: Host, target: Path) -> Mount | None:
    """Return the topmost mount at exactly this path, or None."""
    found = [mount for mount in mounts(host) if mount.target == str(target)]
    return found[-1] if found else None


def number_of(host: Host, device: str) -> str:
    """Return a block device's ``major:minor``, or ``""`` where there is none."""
    return host.run(Action(("sh", "-c", _NUMBER, "number", device))).stdout.decode().strip()


def foreign(host: Host, target: Path, device: str) -> str:
    """Return a description of a mount at `target` that is not of `device`, or ``""``.

    btrfs shows an anonymous device number, so its source device is compared instead.
    """
    if (real := resolved(host, target)) != target:
        return f"{target} is a link to {real}"
    mount = mount_at(host, target)
    if mount is None:
        return ""
    number = number_of(host, mount.source) if mount.kind == "btrfs" else mount.number
    ours = number_of(host, device)
    if ours and number == ours:
        return ""
    return f"{mount.source} ({mount.kind}, {mount.number}) is mounted at {target}, not {device}"


def refuse_foreign(host: Host, target: Path, device: str) -> None:
    """Raise `HostError` where something else than `device` is mounted at `target`."""
    if found := foreign(host, target, device):
        raise HostError(f"{target}: not unmounted: {found}; inspect it with `findmnt {target}`")


def _unescape(text: str) -> str:
    """Undo mountinfo's octal escapes of space, tab, newline and backslash."""
    return re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), text)
