"""The marker file that base files contain a frozen, complete data set."""

from pathlib import Path

import msgspec

from mydyno.host import Host, boot_of
from mydyno.lab.values import LabSpec
from mydyno.model import Action


def mark_frozen(host: Host, marker: Path, spec: LabSpec) -> None:
    """Write the marker: the bases in its folder are frozen at a lab's size and stripe."""
    argv = ("install", "-m", "600", "/dev/stdin", str(marker))
    host.run(Action(argv, _words(host, spec))).check()


def is_frozen(host: Host, marker: Path, spec: LabSpec) -> bool:
    """Return whether the bases were frozen at this size and stripe since the host was booted.

    The base is not synced to the host's disk, which would take as long as a trial; so it is not
    used after a reboot of the host.
    """
    done = host.run(Action(("cat", str(marker))))
    return done.returncode == 0 and done.stdout == _words(host, spec)


def _words(host: Host, spec: LabSpec) -> bytes:
    boot = boot_of(host)
    stripe = {"disks": spec.stripe.disks, "chunk": spec.stripe.chunk}
    shape = stripe if spec.stripe.disks > 1 else {}
    return msgspec.json.encode({"size": spec.size, "boot": boot, **shape})
