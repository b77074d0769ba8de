"""The disk that a folder is on."""

from pathlib import Path

from mydyno.host import Host
from mydyno.model import Action, SpecError


def mount_point(host: Host, folder: Path) -> str:
    """Return where the filesystem of a folder is mounted."""
    done = host.run(Action(("stat", "--format=%m", "--", str(folder)))).check()
    return done.stdout.decode(errors="surrogateescape").removesuffix("\n")


def beneath(host: Host, folder: Path) -> str:
    """Return the name in /sys/block of the disk under `folder`.

    Raises `SpecError` where there is none, or where several may be stacked: a volume or an array
    has no queue of its own to set.
    """
    find = ("findmnt", "--noheadings", "--output", "SOURCE", "--target", str(folder))
    source = host.run(Action(find)).check().stdout.decode().split("[")[0].strip()
    found = f"block settings: {folder} is on {source}"
    if not source.startswith("/dev/"):
        raise SpecError(
            f"{found}, which is not a disk; use a lab, or choose another directory with -o"
        )
    columns = ("--noheadings", "--nodeps", "--raw", "--output", "TYPE,NAME,PKNAME", source)
    kind, name, *parent = host.run(Action(("lsblk", *columns))).check().stdout.decode().split()
    if kind not in {"disk", "part", "loop"}:
        raise SpecError(f"{found}, a {kind}; set its member disks manually, or use a lab")
    return parent[0] if parent else name
