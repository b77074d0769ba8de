"""A udev rule: attributes of the data's disk, set whenever the disk appears."""

from collections.abc import Sequence

from mydyno.keep.kept import NO_DISK, Form, Kept, KeptFile, prefixed

PATH = "/etc/udev/rules.d/99-mydyno.rules"  # after those that distributions ship
_RELOAD = ("sh", "-c", "udevadm control --reload && udevadm trigger --subsystem-match=block")


def _rules(disk: str, attributes: Sequence[tuple[str, str]]) -> list[str]:
    """Return a rule for each attribute, in order."""
    match = f'ACTION=="add|change", SUBSYSTEM=="block", KERNEL=="{disk}"'
    return [f'{match}, ATTR{{queue/{name}}}="{value}"' for name, value in attributes]


def attributes(kept: Kept) -> list[tuple[str, str]]:
    """Return the attributes below queue/ and their values, the scheduler before its tunables."""
    found = {name.replace("iosched.", "iosched/"): v for name, v in kept.of("block").items()}
    return sorted(found.items(), key=lambda pair: ("iosched/" in pair[0], pair[0] != "scheduler"))


def _write(kept: Kept) -> Sequence[KeptFile]:
    lines = [*kept.heading(), *_rules(kept.target.disk, attributes(kept))]
    return [KeptFile(PATH, "\n".join(lines) + "\n", _RELOAD)]


def _inverse(kept: Kept) -> Sequence[KeptFile]:
    first = [(name, kept.before(f"block.{name.replace('/', '.')}")) for name, _ in attributes(kept)]
    known = [(name, value) for name, value in first if value]
    lines = [f"# queue/{name}: no first value is recorded" for name, value in first if not value]
    lines += _rules(kept.target.disk, known)
    return [KeptFile(PATH, "\n".join(lines) + "\n", _RELOAD)]


def _refusal(kept: Kept) -> str:
    disk = kept.target.disk
    if not disk:
        return NO_DISK
    if not disk.isalnum():
        return f"disk={disk!r} is not a name of /sys/block, such as sdc or nvme0n1"
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
