"""The filesystem layer: type, mkfs options and mount options of the data directory."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from mydyno.model import Action, Change, Cost, Durability, Probe, Settings, SpecError, unknown_value
from mydyno.stack.known.mounts import missing, removing, silent, spelt
from mydyno.stack.protocol import IDENTITY

KEYS = ("type", "mkfs", "mount")
_FORCE = {
    "ext4": ("-F", "-q", "-E", "nodiscard"),
    "xfs": ("-f", "-q", "-K"),
    "btrfs": ("-f", "-q", "-K"),
}
_REMOVED = {
    "nobarrier": "removed from XFS in 4.19; barriers cost little and keep what was committed",
    "barrier": "removed from XFS in 4.19, where it is always on",
    "nobootwait": "an Upstart option; with systemd the word is nofail",
}
_ATIME = ("atime", "noatime", "relatime", "norelatime", "strictatime", "nostrictatime")
_ACCESS = ("ro", "rw")
_COLUMNS = "FSTYPE,OPTIONS,TARGET,MAJ:MIN,UUID,ID"
_UNSAFE = {"nobarrier", "barrier=0", "data=writeback", "norecovery"}


@dataclass(frozen=True, slots=True)
class Fs:
    """The filesystem mounted at `where`; on a lab `device` it may be formatted again."""

    where: str
    device: str
    name: str = "fs"

    @property
    def owned(self) -> bool:
        """Return whether the filesystem is on a lab device."""
        return bool(self.device)

    @property
    def at(self) -> str:
        """Return the folder that the filesystem is looked for by."""
        return self.where

    def observe(self) -> Probe[Settings]:
        """Return the probe for the type and mount options, these sorted, and which it is."""
        argv = ("findmnt", "--json", "--target", self.where, "--output", _COLUMNS)
        return Probe(Action(argv), _parse)

    def plan(self, now: Settings, want: Settings) -> Sequence[Change]:
        """Return the changes; what is already so is left out, options in any order."""
        self._check(want)
        if not self.device:
            self._refuse_lasting(now, want.get("mount", ""))
        return [
            self._change(key, now, want)
            for key in KEYS
            if key in want and key != "mkfs" and not _same(key, now.get(key, ""), want[key])
        ]

    def undo(self, now: Settings, first: Settings) -> Sequence[Change]:
        """Return one remount to exactly the first options; raise nothing for what it cannot do."""
        was, here = first.get("mount", ""), now.get("mount", "")
        if not was or not here or was == here:
            return []
        kept = was.split(",")
        extra = [o for o in here.split(",") if o not in kept]
        words = [word for o in extra if (word := removing(now["type"], o))]
        named = {*_ATIME, *(o.partition("=")[0] for o in kept)}  # one of these is always kept
        gone = [w for w in words if w.partition("=")[0] not in named]
        return [Change("mount", here, was, self._remount(now, [*kept, *gone]))]

    def _remount(self, now: Settings, options: Sequence[str]) -> Action:
        # left to itself, mount adds the present options, and noatime would win over relatime
        words = f"remount,{canonical(','.join(options))}"
        where = now.get("target", self.where)
        return Action(("mount", "--options-mode", "ignore", "-o", words, where))

    def _change(self, key: str, now: Settings, want: Settings) -> Change:
        safe = Durability.WEAKER if _unsafe(want[key]) else Durability.SAME
        if key == "type":
            action = Action(mkfs(want[key], want.get("mkfs", ""), self.device))
            return Change(key, now.get(key, ""), want[key], action, Cost.REFORMAT, reversible=False)
        action = self._remount(now, merged(now.get("mount", ""), want[key]).split(","))
        return Change(key, now.get(key, ""), want[key], action, Cost.REMOUNT, durability=safe)

    def _refuse_lasting(self, now: Settings, options: str) -> None:
        """Raise `SpecError` for an option that no remount takes away from a filesystem in use."""
        here, kind = now.get("mount", "").split(","), now.get("type", "")
        for option in filter(None, (o.strip() for o in options.split(","))):
            shown = spelt(option)
            named = {o.partition("=")[0] for o in here} & _contraries(shown)
            known = shown in here or silent(option) or removing(kind, shown) is not None
            if not known and not named:
                raise SpecError(
                    f"fs.mount: {option}: no remount is known that removes it from the {kind} at "
                    f"{now.get('target', self.where)}, so it could not be restored; use a lab disk"
                )

    def _check(self, want: Settings) -> None:
        for key in want:
            if key not in KEYS:
                raise SpecError(unknown_value(key, KEYS, "setting", prefix="fs."))
        if not self.device and set(want) - {"mount"}:
            raise SpecError("fs.type and fs.mkfs need a device of ours; set stack.device to a lab")
        if want.get("type", "ext4") not in _FORCE:
            raise SpecError(f"fs.type: {want['type']!r} is not one of {', '.join(_FORCE)}")
        for option in want.get("mount", "").split(","):
            if option in _REMOVED and (option == "nobootwait" or want.get("type") == "xfs"):
                raise SpecError(f"fs.mount: {option}: {_REMOVED[option]}")


def mkfs(kind: str, options: str, device: str, *more: str) -> tuple[str, ...]:
    """Return the command that makes a filesystem of `kind` on a device of ours.

    Only btrfs takes `more` of them: its profiles (``-d raid10 -m raid10``) say how it uses them.
    """
    if more and kind != "btrfs":
        raise SpecError(f"fs.type = {kind!r}: takes one device; stripe the disks below it (raid)")
    return (f"mkfs.{kind}", *_FORCE[kind], *shlex.split(options), device, *more)


def mount(kind: str, options: str, device: str, where: str, *more: str) -> tuple[str, ...]:
    """Return the command that mounts it.

    `more` are the other devices of a btrfs, named in case the kernel has not scanned them.
    """
    named = ",".join((*(f"device={other}" for other in more), *filter(None, (options,))))
    chosen = ("-o", canonical(named)) if named else ()
    return ("mount", "-t", kind, *chosen, device, where)


def canonical(options: str) -> str:
    """Return an option list without blanks and repeats, sorted."""
    return ",".join(sorted({o.strip() for o in options.split(",") if o.strip()}))


def merged(now: str, want: str) -> str:
    """Return the present options with the wanted ones in the place of their contraries."""
    wanted = [option for option in canonical(want).split(",") if option]
    gone = {name for option in wanted for name in _contraries(option)}
    kept = [o for o in now.split(",") if o and o.partition("=")[0] not in gone]
    return canonical(",".join([*kept, *wanted]))


def _contraries(option: str) -> set[str]:
    """Return the names of options that cannot stand beside this one."""
    name = option.partition("=")[0]
    if name in _ATIME:
        return set(_ATIME)
    if name in _ACCESS:
        return set(_ACCESS)
    return {name, name.removeprefix("no") if name.startswith("no") else f"no{name}"}


def _same(key: str, now: str, want: str) -> bool:
    return not missing(now, want) if key == "mount" else now == want


def _unsafe(options: str) -> bool:
    return bool(_UNSAFE & set(options.split(",")))


def _parse(raw: bytes) -> Settings:
    if not raw.strip():
        return {}
    found = json.loads(raw)["filesystems"][0]
    options = canonical(str(found["options"]))
    if not missing(options, "strictatime"):
        options = canonical(f"{options},strictatime")  # so that a remount can keep it
    which = f"{found.get('maj:min') or ''} {found.get('uuid') or ''}".strip()
    kind, target = str(found["fstype"]), str(found["target"])
    return {"type": kind, "mount": options, "target": target, IDENTITY: which}
