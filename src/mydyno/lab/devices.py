"""Loop devices and mounts of a host: listing them, and detaching lab devices."""

import re
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from mydyno.host import Host, ask
from mydyno.host.mounts import mounts as all_mounts
from mydyno.host.mounts import number_of
from mydyno.model import Action, Probe

_LOOPS = Action(("losetup", "--json", "--list", "--output", "NAME,BACK-FILE"))
_POLL_S = 0.02


def parse_loops(raw: bytes) -> Sequence[tuple[str, str]]:
    """Return device and backing file of ``losetup --json``, which may print nothing."""
    if not raw.strip():
        return ()
    rows = msgspec.json.decode(raw, type=dict[str, list[dict[str, str | None]]])
    return tuple((row["name"] or "", row["back-file"] or "") for row in rows["loopdevices"])


def loops_on(host: Host, backing: Path) -> Sequence[str]:
    """Return the loop devices with exactly this backing file.

    After its daemon has died the kernel shows the file as deleted.
    """
    loops = ask(host, Probe(_LOOPS, parse_loops))
    ours = (str(backing), f"{backing} (deleted)")
    return tuple(device for device, file in loops if file in ours)


def diskseq(host: Host, device: str) -> str:
    """Return the kernel's number of a loop device's attachment, or ``""`` before Linux 5.15."""
    file = f"/sys/block/{Path(device).name}/diskseq"
    return host.run(Action(("cat", file))).stdout.decode().strip()


def mounts_of(host: Host, source: str) -> Sequence[str]:
    """Return where a device is mounted, the oldest first; btrfs shows only its name."""
    number = number_of(host, source)
    return tuple(
        mount.target
        for mount in all_mounts(host)
        if (mount.number == number if mount.kind != "btrfs" else mount.source == source)
    )


def mounted_elsewhere(host: Host, device: str) -> Sequence[int]:
    """Return the processes in whose mount namespace a device is still mounted.

    A namespace that was made while it was mounted has a copy of the mount, which stays after
    `umount` here.
    """
    files = ("find", "/proc", "-mindepth", "2", "-maxdepth", "2", "-name", "mountinfo")
    found = host.run(Action((*files, "-exec", "grep", "-ls", "--", f" {device} ", "{}", "+")))
    return sorted(
        {int(n) for n in re.findall(r"^/proc/(\d+)/", found.stdout.decode(), re.MULTILINE)}
    )


def detach(host: Host, device: str, backing: Path, *, within_s: float = 2.0) -> bool:
    """Detach a loop device that stands on `backing`; return whether it is gone."""
    until = time.monotonic() + within_s
    while device in loops_on(host, backing):
        if time.monotonic() > until:
            return False
        host.run(Action(("losetup", "--detach", device)))
        time.sleep(_POLL_S)
    return True
