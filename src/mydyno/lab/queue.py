"""The queue settings of a lab's loop device, which persist after the device is detached."""

from collections.abc import Mapping

from mydyno.host import Host, ask
from mydyno.stack.block import Block
from mydyno.stack.protocol import IDENTITY

# A value written to one of these is kept by the kernel as a user's limit, for every later file.
# A device that never had a file shows `write through` and 0 discards: written back, they would lose
# all flushes of the next user, and disable discards permanently.
_USER_LIMITS = (
    "discard_max_bytes",
    "max_sectors_kb",
    "write_cache",
    "write_zeroes_unmap_max_bytes",
)
_ROUNDS = 3  # the scheduler first, then what it reset, then what depended on that


def seen(host: Host, disk: str) -> dict[str, str]:
    """Return all settings of a disk's queue."""
    now = ask(host, Block(disk, ours=True).observe())
    return {key: value for key, value in now.items() if key != IDENTITY}


def begin(host: Host, disk: str) -> None:
    """Reset the scheduler of a loop device just attached to the kernel's default.

    A device keeps the queue of its last user, but the baseline is the kernel's default: no
    scheduler, as on every loop device since Linux 5.2.
    """
    for change in Block(disk, ours=True).plan(seen(host, disk), {"scheduler": "none"}):
        host.run(change.action)


def kept(was: Mapping[str, str], attached: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a free loop device's queue that are restored after its use.

    A limit that attaching changed was set by the kernel for the file, not by a user.
    """
    return {k: v for k, v in was.items() if k not in _USER_LIMITS or attached.get(k) == v}


def restore(host: Host, disk: str, was: Mapping[str, str]) -> None:
    """Restore the queue settings of a loop device; those that it refuses are skipped."""
    layer = Block(disk, ours=True)
    for _ in range(_ROUNDS):
        changes = layer.undo(seen(host, disk), was)
        for change in changes:
            host.run(change.action)
        if not changes:
            break
