"""The mark that a base file holds a frozen, complete data set."""

from pathlib import Path

import msgspec

from mydyno.host import Host
from mydyno.model import Action

_BOOT = Action(("cat", "/proc/sys/kernel/random/boot_id"))


def mark(host: Host, marker: Path, size: int) -> None:
    """Say that the base beside `marker` is frozen at `size` bytes."""
    host.run(Action(("tee", str(marker)), _words(host, size))).check()


def marked(host: Host, marker: Path, size: int) -> bool:
    """Return whether the base was frozen at this size since the host was booted.

    Nothing forces the base to the host's own disk, which would cost a trial's time; so what a
    crash of the host may have torn is not trusted after it.
    """
    done = host.run(Action(("cat", str(marker))))
    return done.returncode == 0 and done.stdout == _words(host, size)


def _words(host: Host, size: int) -> bytes:
    boot = host.run(_BOOT).check().stdout.decode().strip()
    return msgspec.json.encode({"size": size, "boot": boot})
