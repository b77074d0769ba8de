"""The queue of a lab's loop device, which the kernel keeps when the device is free again."""

from collections.abc import Mapping

from mydyno.host import Host, ask
from mydyno.stack.block import Block
from mydyno.stack.protocol import IDENTITY

# A free loop device shows 0 discards because it has no file; written back, 0 forbids them for good.
_NOT_KEPT = (IDENTITY, "discard_max_bytes")
_ROUNDS = 3  # the scheduler first, then what it reset, then what depended on that


def seen(host: Host, disk: str) -> dict[str, str]:
    """Return all that can be set of a disk's queue; which disk it is, is not of the queue."""
    now = ask(host, Block(disk, ours=True).observe())
    return {key: value for key, value in now.items() if key not in _NOT_KEPT}


def begin(host: Host, disk: str) -> None:
    """Give a loop device just attached the kernel's scheduler.

    A device that was used before keeps that user's queue, and a campaign's baseline is the
    kernel's own: no scheduler, as on every loop device since Linux 5.2.
    """
    for change in Block(disk, ours=True).plan(seen(host, disk), {"scheduler": "none"}):
        host.run(change.action)


def restore(host: Host, disk: str, was: Mapping[str, str]) -> None:
    """Give a loop device the queue it had before we used it; what it does not take is left."""
    layer = Block(disk, ours=True)
    for _ in range(_ROUNDS):
        changes = layer.undo(seen(host, disk), was)
        for change in changes:
            host.run(change.action)
        if not changes:
            break
