"""The queue of a lab's loop device, which the kernel keeps when the device is free again."""

from collections.abc import Mapping

from mydyno.host import Host, ask
from mydyno.stack.block import Block
from mydyno.stack.protocol import IDENTITY

# What is written here the kernel keeps as an order, for every later file too.  A device that never
# had a file shows `write through` and 0 discards: written back, they lose all flushes of whoever
# uses it next, and forbid discards for good.
_ORDERS = ("discard_max_bytes", "max_sectors_kb", "write_cache", "write_zeroes_unmap_max_bytes")
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
    """Return what of a free loop device's queue is to be restored once it is free again.

    A limit that attaching changed is the kernel's for that file, and no order of a user's.
    """
    return {k: v for k, v in was.items() if k not in _ORDERS or attached.get(k) == v}


def restore(host: Host, disk: str, was: Mapping[str, str]) -> None:
    """Give a loop device the queue it had before we used it; what it does not take is left."""
    layer = Block(disk, ours=True)
    for _ in range(_ROUNDS):
        changes = layer.undo(seen(host, disk), was)
        for change in changes:
            host.run(change.action)
        if not changes:
            break
