"""A udev rule: attributes of the data's disks, set whenever they appear."""

import re
from collections.abc import Sequence

from mydyno.keep.kept import NO_DISK, Form, Kept, KeptFile, KeptOn, prefixed

PATH = "/etc/udev/rules.d/99-mydyno.rules"  # after those that distributions ship
_RELOAD = ("sh", "-c", "udevadm control --reload && udevadm trigger --subsystem-match=block")
_SERIAL = re.compile(r"(ID_\w+)=([\w.:-]+)")  # no sign that udev takes for a pattern


def serial(properties: str) -> str:
    """Return what ``udevadm info`` shows that names a disk in every boot, or ``""``."""
    lines = properties.splitlines()
    names = ("ID_WWN_WITH_EXTENSION", "ID_WWN", "ID_SERIAL")
    found = [line for name in names for line in lines if line.startswith(f"{name}=")]
    return next((line for line in found if _SERIAL.fullmatch(line)), "")


def _rules(target: KeptOn, attributes: Sequence[tuple[str, str]]) -> list[str]:
    """Return a rule for each disk and attribute, in order."""
    rules = []
    for disk, serial in target.disks:
        which = f'KERNEL=="{disk}"'
        if known := _SERIAL.fullmatch(serial):
            which = f'ENV{{DEVTYPE}}=="disk", ENV{{{known[1]}}}=="{known[2]}"'
        match = f'ACTION=="add|change", SUBSYSTEM=="block", {which}'
        rules += [f'{match}, ATTR{{queue/{name}}}="{value}"' for name, value in attributes]
    return rules


def attributes(kept: Kept) -> list[tuple[str, str]]:
    """Return the attributes below queue/ and their values, the scheduler before its tunables."""
    found = {name.replace("iosched.", "iosched/"): v for name, v in kept.of("block").items()}
    return sorted(found.items(), key=lambda pair: ("iosched/" in pair[0], pair[0] != "scheduler"))


def _write(kept: Kept) -> Sequence[KeptFile]:
    lines = [*kept.heading(), *_rules(kept.target, attributes(kept))]
    return [KeptFile(PATH, "\n".join(lines) + "\n", _RELOAD)]


def _inverse(kept: Kept) -> Sequence[KeptFile]:
    first = [(name, kept.before(f"block.{name.replace('/', '.')}")) for name, _ in attributes(kept)]
    known = [(name, value) for name, value in first if value]
    lines = [f"# queue/{name}: no first value is recorded" for name, value in first if not value]
    lines += _rules(kept.target, known)
    return [KeptFile(PATH, "\n".join(lines) + "\n", _RELOAD)]


def _refusal(kept: Kept) -> str:
    if not kept.target.disk:
        return NO_DISK
    for disk, serial in kept.target.disks:
        if not disk.isalnum():
            return f"disk={disk!r} is not a name of /sys/block, such as sdc or nvme0n1"
        if serial and not _SERIAL.fullmatch(serial):
            return f"serial={serial!r}: write it as udevadm info does: ID_WWN=0x5000c500"
    bad = [v for _, v in attributes(kept) if not v.replace("-", "").replace("_", "").isalnum()]
    return f"{bad[0]!r} cannot stand in a udev rule" if bad else ""


FORM = Form(
    "udev",
    "a udev rule",
    prefixed("block."),
    _write,
    _inverse,
    "copy it to the host, then udevadm control --reload and udevadm trigger",
    _refusal,
)
