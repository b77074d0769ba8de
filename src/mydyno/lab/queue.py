"""The queue of a lab's loop device, which the kernel keeps when the device is free again."""

from collections.abc import Mapping

from mydyno.host import Host, ask
from mydyno.stack.block import ATTRIBUTES, Block


def seen(host: Host, disk: str) -> dict[str, str]:
    """Return a disk's queue attributes, without the tunables: they end with their scheduler."""
    now = ask(host, Block(disk, ours=True).observe())
    return {key: value for key, value in now.items() if key in ATTRIBUTES}


def begin(host: Host, disk: str) -> dict[str, str]:
    """Give a loop device just attached the kernel's scheduler; return the queue it had before.

    A device that was used before keeps that user's queue, and a campaign's baseline is the
    kernel's own: no scheduler, as on every loop device since Linux 5.2.
    """
    was = seen(host, disk)
    put_back(host, disk, {"scheduler": "none"})
    return was


def put_back(host: Host, disk: str, was: Mapping[str, str]) -> None:
    """Give a loop device the queue it had before we used it; what will not go is left."""
    layer = Block(disk, ours=True)
    for _ in range(2):  # the scheduler resets some of the others
        now = ask(host, layer.observe())
        for change in layer.plan(now, {k: v for k, v in was.items() if k in now}):
            host.run(change.action)
