"""The disks that a volume or an array stands on."""

from mydyno.host.protocol import Host
from mydyno.model import Action, HostError

DISKS = r"""
disk() {  # NAME: a block device, of a partition its disk
    at=$(readlink -f "/sys/class/block/$1"); [ -e "$at/partition" ] && at=${at%/*}
    echo "${at##*/}"
}
disks() {  # NAME: the disks that a block device is made of, its own where none is below it
    own=$(disk "$1"); below=$(ls "/sys/class/block/$own/slaves" 2>/dev/null)
    [ -n "$below" ] || echo "$own"
    for one in $below; do (disks "$one"); done
}
"""
_NAMED = DISKS + 'at=$(readlink -e -- "$1") || exit 0; disk "${at##*/}"'
_BELOW = DISKS + 'disks "$1" | sort -u'


def disk_named(host: Host, device: str) -> str:
    """Return a device's name in /sys/block, of a partition its disk's, ``""`` where there is none.

    Links to it, as in /dev/disk/by-id and /dev/mapper, have other names.
    """
    try:
        done = host.run(Action(("sh", "-c", _NAMED, "disk", device)))
    except HostError:
        return ""
    return done.stdout.decode(errors="replace").strip()


def disks_below(host: Host, name: str) -> list[str]:
    """Return the disks below a volume, an array or a partition, none of a disk; as in /sys/block.

    There are none where they are unknown, too.
    """
    if not name:
        return []
    try:
        done = host.run(Action(("sh", "-c", _BELOW, "disks", name)))
    except HostError:
        return []
    return [one for one in done.stdout.decode(errors="replace").split() if one != name]
