"""The line of /etc/fstab of the data's filesystem, its mount options changed; no other line."""

import re
from collections.abc import Sequence

from mydyno.keep.kept import Form, Kept, KeptFile

PATH = "/etc/fstab"
_FIELD = re.compile(r"(\s*)(\S+)(\s+)(\S+)(\s+)(\S+)(\s+)(\S+)(.*)", re.DOTALL)
_ATIME = {"noatime", "relatime", "strictatime", "atime", "norelatime", "nostrictatime"}


def options(present: str, wanted: str) -> str:
    """Return mount options with those that are wanted in the place of those that contradict."""
    new = [o for o in wanted.split(",") if o]
    names = {_name(option) for option in new}
    left = [o for o in present.split(",") if _name(o) not in names and o != "defaults"]
    return ",".join([*left, *new])


def _name(option: str) -> str:
    key = option.partition("=")[0]
    return "atime" if key in _ATIME else key.removeprefix("no")


def _edited(kept: Kept) -> str:
    lines = kept.target.fstab.splitlines(keepends=True)
    for number, line in enumerate(lines):
        found = _FIELD.fullmatch(line)
        if found and not found[2].startswith("#") and found[4] == kept.target.mount:
            new = options(found[8], kept.of("fs")["mount"])
            lines[number] = "".join([*found.groups()[:7], new, found[9]])
    return "".join(lines)


def _write(kept: Kept) -> Sequence[KeptFile]:
    return [KeptFile(PATH, _edited(kept))]


def _inverse(kept: Kept) -> Sequence[KeptFile]:
    return [KeptFile(PATH, kept.target.fstab)]


def _refusal(kept: Kept) -> str:
    target = kept.target
    if not target.fstab or not target.mount:
        return "needs the table of the host: add --target fstab=FILE --target mount=POINT"
    lines = (line.split() for line in target.fstab.splitlines() if not line.startswith("#"))
    if target.mount not in {fields[1] for fields in lines if len(fields) > 1}:
        return f"mount={target.mount}: no line of fstab has it; name one of its mount points"
    return ""


FORM = Form(
    "fstab",
    "the line of /etc/fstab",
    lambda key: key == "fs.mount",
    _write,
    _inverse,
    "compare it with /etc/fstab, copy it there, then run findmnt --verify and mount -o remount",
    _refusal,
)
