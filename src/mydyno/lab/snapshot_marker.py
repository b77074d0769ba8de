"""The mark that the base files hold a frozen, complete data set."""

from pathlib import Path

import msgspec

from mydyno.host import Host, boot_of
from mydyno.lab.values import LabSpec
from mydyno.model import Action


def mark_frozen(host: Host, marker: Path, spec: LabSpec) -> None:
    """Say that the bases beside `marker` are frozen at a lab's size and stripe."""
    argv = ("install", "-m", "600", "/dev/stdin", str(marker))
    host.run(Action(argv, _words(host, spec))).check()


def is_frozen(host: Host, marker: Path, spec: LabSpec) -> bool:
    """Return whether the bases were frozen at this size and stripe since the host was booted.

    Nothing forces the base to the host's own disk, which would cost a trial's time; so what a
    crash of the host may have torn is not trusted after it.
    """
    done = host.run(Action(("cat", str(marker))))
    return done.returncode == 0 and done.stdout == _words(host, spec)


def _words(host: Host, spec: LabSpec) -> bytes:
    boot = boot_of(host)
    stripe = {"disks": spec.stripe.disks, "chunk": spec.stripe.chunk}
    shape = stripe if spec.stripe.disks > 1 else {}
    return msgspec.json.encode({"size": spec.size, "boot": boot, **shape})
