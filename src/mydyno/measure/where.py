"""Where a trial's data and traffic go: the disk under a folder, the interface of the load."""

from dataclasses import dataclass
from pathlib import Path

from mydyno.host import Host
from mydyno.model import Action, HostError


@dataclass(frozen=True, slots=True)
class Where:
    """Which disk holds the data and which interface carries the load, as the kernel names them.

    Each is empty where there is none, or none that can be told.
    """

    disk: str = ""
    interface: str = ""


def disk_of(host: Host, folder: Path) -> str:
    """Return the disk, volume or array under `folder` as /proc/diskstats names it, or ``""``.

    A partition's disk is named, as it is the disk that has a queue and flushes.
    """
    try:
        return _named(host, folder)
    except HostError:  # a tool is missing, or no answer came
        return ""


def _named(host: Host, folder: Path) -> str:
    columns = ("findmnt", "--noheadings", "--raw", "--output", "MAJ:MIN,SOURCE")
    told = host.run(Action((*columns, "--target", str(folder)))).stdout.decode(errors="replace")
    number, _, source = told.strip().partition(" ")
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
