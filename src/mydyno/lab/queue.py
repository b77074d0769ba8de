"""The queue of a lab's loop device, which the kernel keeps when the device is free again."""

from collections.abc import Mapping

from mydyno.host import Host, ask
from mydyno.stack.block import Block
from mydyno.stack.protocol import IDENTITY

_ROUNDS = 3  # the scheduler first, then what it reset, then what depended on that


def seen(host: Host, disk: str) -> dict[str, str]:
    """Return all that can be set of a disk's queue; which disk it is, is not of the queue."""
    now = ask(host, Block(disk, ours=True).observe())
    return {key: value for key, value in now.items() if key != IDENTITY}


def begin(host: Host, disk: str) -> None:
    """Give a loop device that was just attached the kernel's scheduler.

    A device that was used before keeps that user's queue, and a campaign's baseline is the
    kernel's own: no scheduler, as on every loop device since Linux 5.2.
    """
    for change in Block(disk, ours=True).plan(seen(host, disk), {"scheduler": "none"}):
        host.run(change.action)


def kept(was: Mapping[str, str], attached: Mapping[str, str]) -> dict[str, str]:
    """Return what of a free loop device's queue its attachment left alone: that is its user's.

    The rest the kernel chooses anew for each file.  Written back to a free device, its values
    would be orders: `write through` loses every flush of whoever uses the device next, and no
    discards are no discards for good.
    """
    return {key: value for key, value in was.items() if attached.get(key) == value}


def restore(host: Host, disk: str, was: Mapping[str, str]) -> None:
    """Give a loop device the queue it had before we used it; what it does not take is left."""
    layer = Block(disk, ours=True)
    for _ in range(_ROUNDS):
        changes = layer.undo(seen(host, disk), was)
        for change in changes:
            host.run(change.action)
        if not changes:
            break
