"""The RAID layer: a Linux md array over disks of ours, and the geometry that mkfs should know."""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from operator import itemgetter
from pathlib import PurePath
from typing import Any, ClassVar

from mydyno.lab.values import RAID_KEYS, Geometry
from mydyno.model import (
    Action,
    Change,
    Cost,
    HostError,
    Probe,
    RefusedError,
    Settings,
    SpecError,
    unknown_value,
)
from mydyno.stack.known import normalise

NONE = "none"
_ARRAY = "mydyno"  # the name in the superblocks of our arrays: only those are ever taken apart
_STOPPED = "stopped"  # our superblocks are there, and no array
_LVM = "lvm"
_MEMBER = "linux_raid_member"
_LEAST = {"0": 2, "1": 2, "4": 3, "5": 3, "6": 4, "10": 2}  # man mdadm(8), md(4)
_CHUNK_LESS = ("1", NONE)
_SHOWN = 200  # characters of a reply that was not understood
_SMALLEST_CHUNK = 4096  # bytes; man mdadm(8): a power of two of at least 4K
_DEFAULT_CHUNK = 512 << 10  # bytes; man mdadm(8), since mdadm 3.1

Tree = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Raid:
    """An md array over the first `devices` of `disks`, which are of a lab.

    Where there is none, every key is ``none``.  LVM stripes are read and never written.
    """

    name: ClassVar[str] = "raid"
    owned: ClassVar[bool] = True
    disks: tuple[str, ...]

    def observe(self) -> Probe[Settings]:
        """Return the probe for what stands on the disks, and for their signatures.

        Signatures are read from the disks: what udev remembers of them may be a moment old.
        """
        columns = "NAME,PATH,TYPE,MIN-IO,SIZE,MOUNTPOINTS"
        tree = ("lsblk", "--json", "--bytes", "--output", columns)
        marks = ("wipefs", "--json", "--output", "DEVICE,TYPE,LABEL")
        start = ("find", "-L", *self.disks, "-maxdepth", "0")
        argv = (*start, "-exec", *tree, "{}", ";", "-exec", *marks, "{}", ";")
        return Probe(Action(argv), self.parse)

    def parse(self, raw: bytes) -> Settings:
        """Return the parsed reply; raise `HostError` for one that does not report every disk.

        An unreported disk must not be taken for an empty one.
        """
        documents = _documents(raw.decode(errors="replace"))
        if {len(kind) for kind in documents} != {len(self.disks)}:
            words = raw.decode(errors="replace").strip()[-_SHOWN:] or "nothing"
            raise HostError(
                f"raid: lsblk or wipefs did not report all of {', '.join(self.disks)}: {words}"
            )
        return read(*documents)

    def plan(self, now: Settings, want: Settings) -> Sequence[Change]:
        """Return the changes, one step at a time: an array is stopped before the next is made.

        Raise `SpecError` for an array that cannot be, `RefusedError` where a disk holds anything
        that is not ours.
        """
        if not want:
            return []
        aim = self._aim(now, want)
        moved = [key for key in RAID_KEYS if aim[key] != now.get(key, NONE)]
        if not moved:
            return []
        _refuse_foreign(now)
        action = self._step(now, aim)
        return [Change(k, now.get(k, NONE), aim[k], action, Cost.REFORMAT) for k in moved]

    def _aim(self, now: Settings, want: Settings) -> dict[str, str]:
        """Return level, chunk and devices as they will be observed.

        What is not wanted stays as it is; what is wanted as ``none`` is mdadm's own choice.
        """
        if unknown := sorted(set(want) - set(RAID_KEYS)):
            raise SpecError(unknown_value(unknown[0], RAID_KEYS, "setting", prefix="raid."))
        standing = now if now.get("level") not in (None, NONE, _STOPPED, _LVM) else {}
        merged = {**{key: standing.get(key, NONE) for key in RAID_KEYS}, **want}
        level = level_of(merged["level"])
        if level == NONE:
            return dict.fromkeys(RAID_KEYS, NONE)
        devices = str(len(self.disks)) if merged["devices"] == NONE else merged["devices"]
        self._check_devices(level, devices)
        chunk = str(_DEFAULT_CHUNK) if merged["chunk"] == NONE else _chunk(merged["chunk"])
        return {
            "level": level,
            "chunk": NONE if level in _CHUNK_LESS else chunk,
            "devices": devices,
        }

    def _check_devices(self, level: str, devices: str) -> None:
        if not devices.isdigit() or not _LEAST[level] <= int(devices) <= len(self.disks):
            raise SpecError(
                f"raid.devices = {devices!r}: level {level} takes from {_LEAST[level]} to the "
                f"{len(self.disks)} disks that there are"
            )

    def _step(self, now: Settings, aim: Settings) -> Action:
        """Return the next command on the way; `apply` looks again after each."""
        if array := now.get("array"):
            return Action(("mdadm", "--quiet", "--stop", array))
        if aim["level"] == NONE:
            names = set(now["members"].split())  # wipefs names a disk without its folder
            members = [disk for disk in self.disks if PurePath(disk).name in names]
            return Action(("mdadm", "--quiet", "--zero-superblock", *members))
        chunk = () if aim["chunk"] == NONE else ("--chunk", f"{int(aim['chunk']) // 1024}")
        disks = self.disks[: int(aim["devices"])]
        return Action(
            (
                *("mdadm", "--quiet", "--create", f"/dev/md/{_ARRAY}", "--name", _ARRAY, "--run"),
                *("--homehost", "any", "--metadata", "1.2", "--level", aim["level"], *chunk),
                # a lab's disks read as zeros: they are in step already, and no resync need run
                *(("--assume-clean",) if aim["level"] != "0" else ()),
                *("--raid-devices", aim["devices"], *disks),
            )
        )


def geometry(settings: Settings) -> Geometry | None:
    """Return the stripes of an array, or None where there are none: no array, or a mirror."""
    level, chunk = level_of(settings.get("level", NONE)), settings.get("chunk", NONE)
    if level in _CHUNK_LESS or chunk == NONE:
        return None
    devices = int(settings["devices"])
    width = {"10": devices // 2, "4": devices - 1, "5": devices - 1, "6": devices - 2}
    return Geometry(int(_chunk(chunk)), width.get(level, devices))


def level_of(value: str) -> str:
    """Return a level as it is observed: ``raid10`` and ``10`` are one."""
    plain = value.strip().lower().removeprefix("raid")
    plain = {"stripe": "0", "mirror": "1", "": NONE, _STOPPED: NONE}.get(plain, plain)
    if plain not in (*_LEAST, NONE):
        raise SpecError(f"raid.level = {value!r}: one of none, {', '.join(_LEAST)}")
    return plain


def read(trees: Sequence[Tree], signed: Sequence[Sequence[Tree]]) -> Settings:
    """Return what stands on the disks: level, chunk in bytes, devices, and what is not ours.

    One tree and one list of signatures for each disk.
    """
    marks = [mark for each in signed for mark in each]
    above = [child for tree in trees for child in tree.get("children", [])]
    volumes = {child["path"]: child for child in above if child["type"] == _LVM}
    members = [m["device"] for m in marks if m["type"] == _MEMBER and _ours(m)]
    found = {"members": " ".join(sorted(set(members))), "foreign": _foreign(trees, marks)}
    arrays = {c["path"]: c for c in above if c["type"].startswith("raid")}
    if volumes and not arrays:
        _, first = min(volumes.items(), key=itemgetter(0))
        return {**found, **_shape(_LVM, first, len(above))}
    if not arrays:
        level = _STOPPED if members else NONE
        return {**found, "level": level, "chunk": NONE, "devices": NONE}
    path, array = min(arrays.items(), key=itemgetter(0))
    count = sum(1 for child in above if child["path"] == path)
    return {**found, "array": path, **_shape(array["type"].removeprefix("raid"), array, count)}


def _shape(level: str, array: Mapping[str, Any], count: int) -> dict[str, str]:
    """Return the keys; the kernel's smallest good I/O of a striped device is its chunk."""
    chunk = NONE if level in _CHUNK_LESS else str(array["min-io"])
    return {"level": level, "chunk": chunk, "devices": str(count)}


def _ours(mark: Mapping[str, Any]) -> bool:
    """Return whether a superblock names an array of ours: ``host:name``, or the name alone."""
    return str(mark.get("label") or "").rpartition(":")[2] == _ARRAY


def _foreign(trees: Sequence[Mapping[str, Any]], marks: Sequence[Mapping[str, Any]]) -> str:
    """Return what the disks hold that no array of ours put there."""
    found = [f"{m['device']}: {m['type']}" for m in marks if m["type"] != _MEMBER or not _ours(m)]
    for tree in trees:
        found += [f"{tree['path']}: mounted" for place in tree.get("mountpoints", []) if place]
        for child in tree.get("children", []):
            found += [f"{child['path']}: mounted" for p in child.get("mountpoints", []) if p]
            if child["type"] in ("part", "crypt", "dm"):
                found.append(f"{tree['path']}: {child['type']}")
    return "; ".join(dict.fromkeys(found))


def _refuse_foreign(now: Settings) -> None:
    if now.get("level") == _LVM:
        raise RefusedError("raid: the disks are in LVM, whose stripes are read and never written")
    if foreign := now.get("foreign", ""):
        raise RefusedError(f"raid: {foreign}: an array would destroy it; free the disk first")


def _chunk(value: str) -> str:
    plain = normalise(value)
    size = int(plain) if plain.isdigit() else 0
    if size < _SMALLEST_CHUNK or size & (size - 1):
        raise SpecError(f"raid.chunk = {value!r}: a power of two from 4K on")
    return plain


def _documents(text: str) -> tuple[list[Tree], list[list[Tree]]]:
    """Return the devices and the signatures of JSON documents, one after the other, if complete."""
    decoder = json.JSONDecoder()
    trees: list[Tree] = []
    signed: list[list[Tree]] = []
    for start in re.finditer(r"(?m)^\{", text):
        with suppress(json.JSONDecodeError):
            document, _ = decoder.raw_decode(text, start.start())
            trees += document.get("blockdevices", [])
            signed += [document["signatures"]] if "signatures" in document else []
    return trees, signed
