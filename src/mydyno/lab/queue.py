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


def begin(host: Host, disk: str) -> dict[str, str]:
    """Give a loop device just attached the kernel's scheduler; return the queue it had before.

    A device that was used before keeps that user's queue, and a campaign's baseline is the
    kernel's own: no scheduler, as on every loop device since Linux 5.2.
    """
    was = seen(host, disk)
    for change in Block(disk, ours=True).plan(was, {"scheduler": "none"}):
        host.run(change.action)
    return was


def restore(host: Host, disk: str, was: Mapping[str, str], attached: Mapping[str, str]) -> None:
    """Give a loop device the queue it had before we used it; what it does not take is left.

    `attached` is its queue just before it was detached: what detaching alone has changed, the
    limits that came with the file, is the kernel's own, and stays.
    """
    layer, free = Block(disk, ours=True), seen(host, disk)
    first = {key: v for key, v in was.items() if free.get(key) == attached.get(key)}
    for _ in range(_ROUNDS):
        changes = layer.undo(seen(host, disk), first)
        for change in changes:
            host.run(change.action)
        if not changes:
            break
