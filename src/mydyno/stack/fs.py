"""The filesystem layer: type, mkfs and mount options of the data directory; its access times."""

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from mydyno.model import Action, Change, Cost, Probe, Settings, SpecError
from mydyno.stack.protocol import IDENTITY, refuse_unknown

# What kernel 6.18 does not show because it is the default, tried on ext4, xfs and btrfs.
_SILENT = frozenset(
    {
        *("acl", "attr2", "auto", "auto_da_alloc", "barrier", "barrier=1", "commit=30", "commit=5"),
        *("compress=no", "datacow", "datasum", "defaults", "delalloc", "dioread_nolock"),
        *("errors=continue", "ikeep", "init_itable=10", "inode64", "inode_readahead_blks=32"),
        *("journal_checksum", "max_inline=2048", "noautodefrag", "nodiscard", "nofail"),
        *("noflushoncommit", "noikeep", "nolargeio", "norelatime", "nostrictatime"),
        *("treelog", "user_xattr"),
    }
)
_NEVER_SHOWN = frozenset({"thread_pool"})
_SPELT = {
    "barrier=0": "nobarrier",
    **dict.fromkeys(("compress", "compress=zlib"), "compress=zlib:3"),
    **dict.fromkeys(("compress-force", "compress-force=zlib"), "compress-force=zlib:3"),
    **{f"{word}=zstd": f"{word}=zstd:3" for word in ("compress", "compress-force")},
    "dioread_lock": "nodioread_nolock",
    "discard=sync": "discard",
}
# Files are made with or without these; to those that are there already they come too late.
_SHAPING = frozenset({"compress", "compress-force", "nodatacow", "nodatasum"})
# The word that takes an option away on a remount, which leaves alone what it does not name.
_REMOVED_BY = {
    "": {
        **dict.fromkeys(("noatime", "strictatime"), "relatime"),
        "dirsync": "",
        "lazytime": "nolazytime",
        "mand": "nomand",
        "nodev": "dev",
        "nodiratime": "diratime",
        "noexec": "exec",
        "nosuid": "suid",
        "ro": "rw",
        "nosymfollow": "symfollow",
        "sync": "async",
    },
    "ext4": {
        "commit": "commit=5",
        "discard": "nodiscard",
        "grpid": "nogrpid",
        "inode_readahead_blks": "inode_readahead_blks=32",
        "init_itable": "init_itable=10",
        "max_batch_time": "max_batch_time=15000",
        "min_batch_time": "min_batch_time=0",
        "errors": "errors=continue",
        "noauto_da_alloc": "auto_da_alloc",
        "nobarrier": "barrier",
        "noblock_validity": "block_validity",
        "nodelalloc": "delalloc",
        "nodioread_nolock": "dioread_nolock",
        "noinit_itable": "init_itable=10",
    },
    "btrfs": {
        "autodefrag": "noautodefrag",
        "commit": "commit=30",
        "compress": "compress=no",
        "compress-force": "compress=no",
        "flushoncommit": "noflushoncommit",
        "max_inline": "max_inline=2048",
        "nobarrier": "barrier",
        "nodatacow": "datacow",
        "nodatasum": "datasum",
        "notreelog": "treelog",
    },
    "xfs": {},
}
_UNITS = {"k": 2**10, "m": 2**20, "g": 2**30}
_SIZED = re.compile(r"(?P<name>\w+)=(?P<number>\d+)(?P<unit>[kmg])", re.IGNORECASE)


def shaping(options: str) -> str:
    """Return those of a mount's options that must hold when files are made (btrfs(5)), sorted."""
    chosen = {o.strip() for o in options.split(",") if o.strip().partition("=")[0] in _SHAPING}
    return ",".join(sorted(chosen))


def missing(now: str, want: str) -> list[str]:
    """Return the wanted options that a mount is without; both are lists with commas between.

    An option that is a default may be silent, unless its contrary is shown.
    """
    shown = {spelt(option) for option in now.split(",")}
    wanted = sorted({option.strip() for option in want.split(",") if option.strip()})
    return [option for option in wanted if not _there(option, shown)]


def removing(kind: str, option: str) -> str | None:
    """Return the word that takes a shown option away on a remount, None where none is known.

    It is empty for one that goes where a remount does not name it.
    """
    name = option.partition("=")[0]
    return {**_REMOVED_BY[""], **_REMOVED_BY.get(kind, {})}.get(name)


def silent(option: str) -> bool:
    """Return whether the kernel shows nothing of an option, for it is the default."""
    return option in _SILENT or option in {"atime", "strictatime", "defaults"}


def _there(option: str, shown: set[str]) -> bool:
    if option == "strictatime":  # the kernel's way to show it is to show neither
        return not {"noatime", "relatime"} & shown
    if option == "atime":
        return "noatime" not in shown
    if spelt(option) in shown or option.partition("=")[0] in _NEVER_SHOWN:
        return True
    return option in _SILENT and not any(_contrary(option, other) for other in shown)


def _contrary(option: str, other: str) -> bool:
    name, known = option.partition("=")[0], other.partition("=")[0]
    return known in {name, f"no{name}", name.removeprefix("no")}


def spelt(option: str) -> str:
    """Return an option as the kernel spells it, and a size in bytes."""
    word = _SPELT.get(option, option)
    if sized := _SIZED.fullmatch(word):
        return f"{sized['name']}={int(sized['number']) * _UNITS[sized['unit'].lower()]}"
    return word


KEYS = ("type", "mkfs", "mount")
_FORCE = {
    "ext4": ("-F", "-q", "-E", "nodiscard"),
    **dict.fromkeys(("xfs", "btrfs"), ("-f", "-q", "-K")),
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
    name: ClassVar[str] = "fs"

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
        moved = {"type"} if want.get("type", now.get("type")) != now.get("type") else set()
        moved |= {"mount"} if missing(now.get("mount", ""), want.get("mount", "")) else set()
        return [self._change(key, now, want) for key in KEYS if key in moved]

    def undo(self, now: Settings, first: Settings) -> Sequence[Change]:
        """Return one remount to exactly the first options; raise nothing for what it cannot do."""
        was, here = first.get("mount", ""), now.get("mount", "")
        if not was or not here or was == here:
            return []
        return [Change("mount", here, was, self._back(now, here, was))]

    def remounts(self, now: Settings, mount: str) -> Sequence[Sequence[str]]:
        """Return the commands of a remount with other options, and with the present ones again.

        Raise `SpecError` for options that no remount takes away.
        """
        self.plan(now, {"mount": mount})
        then = merged(now["mount"], mount)
        return self._remount(now, then.split(",")).argv, self._back(now, then, now["mount"]).argv

    def restores(self, now: Settings, was: str) -> Sequence[Sequence[str]]:
        """Return the commands of a remount with exactly these options, and with the present ones.

        Both are empty where these are the present ones.
        """
        here = now["mount"]
        ways = [(here, was), (was, here)] if was != here else []
        return [self._back(now, *way).argv for way in ways] or [(), ()]

    def _back(self, now: Settings, here: str, was: str) -> Action:
        former = was.split(",")
        extra = [o for o in here.split(",") if o not in former]
        words = [word for o in extra if (word := removing(now["type"], o))]
        named = {*_ATIME, *(o.partition("=")[0] for o in former)}  # one of these is always set
        gone = [w for w in words if w.partition("=")[0] not in named]
        return self._remount(now, [*former, *gone])

    def _remount(self, now: Settings, options: Sequence[str]) -> Action:
        # left to itself, mount adds the present options, and noatime would win over relatime
        words = f"remount,{canonical(','.join(options))}"
        where = now.get("target", self.where)
        return Action(("mount", "--options-mode", "ignore", "-o", words, where))

    def _change(self, key: str, now: Settings, want: Settings) -> Change:
        if key == "type":
            action = Action(mkfs(want[key], want.get("mkfs", ""), self.device))
            return Change(key, now.get(key, ""), want[key], action, Cost.REFORMAT)
        action = self._remount(now, merged(now.get("mount", ""), want[key]).split(","))
        return Change(key, now.get(key, ""), want[key], action, Cost.REMOUNT)

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
        refuse_unknown(want, KEYS, "fs")
        if not self.device and set(want) - {"mount"}:
            raise SpecError("fs.type and fs.mkfs need a device of ours; set stack.device to a lab")
        if named := [word for word in want.get("mkfs", "").split() if "/" in word]:
            raise SpecError(
                f"fs.mkfs: {named[0]!r} names a file or another device, and would be written to; "
                "a filesystem is made of one disk"
            )
        if want.get("type", "ext4") not in _FORCE:
            raise SpecError(f"fs.type: {want['type']!r} is not one of {', '.join(_FORCE)}")
        for option in want.get("mount", "").split(","):
            if option in _REMOVED and (option == "nobootwait" or want.get("type") == "xfs"):
                raise SpecError(f"fs.mount: {option}: {_REMOVED[option]}")


def mkfs(kind: str, options: str, device: str, *more: str) -> tuple[str, ...]:
    """Return the command that makes a filesystem of `kind` on a device of ours.

    Only btrfs takes `more` of them: its profiles (``-d raid10 -m raid10``) define how it uses them.
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


_CLOSE = 'mount -t "$1" -- "$2" "$3" && chmod 711 "$3" && umount "$3"'


def close_root(kind: str, device: str, where: str) -> tuple[str, ...]:
    """Return the command after which others may only pass through a new filesystem's root (0711).

    mkfs lets everybody list it. The mount is seen by this command alone, and ends with it.
    """
    own = (
        "unshare",
        "--mount",
        "--propagation",
        "slave",
    )  # what is unmounted elsewhere goes here, too
    return (*own, "sh", "-c", _CLOSE, "close", kind, device, where)


def canonical(options: str) -> str:
    """Return an option list without blanks and repeats, sorted."""
    return ",".join(sorted({o.strip() for o in options.split(",") if o.strip()}))


def merged(now: str, want: str) -> str:
    """Return the present options with the wanted ones in the place of their contraries."""
    wanted = [option for option in canonical(want).split(",") if option]
    gone = {name for option in wanted for name in _contraries(option)}
    others = [o for o in now.split(",") if o and o.partition("=")[0] not in gone]
    return canonical(",".join([*others, *wanted]))


def _contraries(option: str) -> set[str]:
    """Return the names of options that cannot stand beside this one."""
    name = option.partition("=")[0]
    if name in _ATIME:
        return set(_ATIME)
    if name in _ACCESS:
        return set(_ACCESS)
    return {name, name.removeprefix("no") if name.startswith("no") else f"no{name}"}


def unsafe(options: str) -> bool:
    """Return whether mount options may lose what was committed."""
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


_ATIME_FILE = ".mydyno-atime"
_LONG_AGO = "2001-01-01"  # relatime also moves a time that is older than a day
_TICK_S = "0.05"  # the kernel stamps files by its tick, which is at most 10 ms
_ATIME_WORDS = {
    "noatime": "noatime",
    "relatime": "relatime",
    "atime": "relatime",  # what the kernel makes of it since 2.6.30
    "strictatime": "strictatime",
}


def wanted_atime(options: str) -> str:
    """Return what mount options ask of access times, or ``""``: the last word decides."""
    asked = [_ATIME_WORDS[option] for option in options.split(",") if option in _ATIME_WORDS]
    return asked[-1] if asked else ""


def probe_atime(where: str) -> Probe[str]:
    """Return the probe of how a mounted folder keeps access times, asked by reading a file there.

    A file is given an old access time and read twice: `noatime` leaves the time alone, `relatime`
    moves it once, since it was older than the change of the file, `strictatime` moves it twice.
    ``find`` is there to do it all in one command; it removes the file whatever happened before.
    """
    file = str(Path(where) / _ATIME_FILE)
    print_time = ("stat", "--format=%.9X", file)
    read = ("cksum", file)
    steps = (
        ("install", "-m", "600", "/proc/version", file),
        ("touch", "-a", "-d", _LONG_AGO, file),
        *(print_time, ("sleep", _TICK_S), read, print_time, ("sleep", _TICK_S), read, print_time),
    )
    found = [word for step in steps for word in ("-exec", *step, ";")]
    removed = (",", "-exec", "rm", "-f", file, ";")
    return Probe(Action(("find", where, "-maxdepth", "0", "(", *found, ")", *removed)), parse_atime)


def parse_atime(raw: bytes) -> str:
    """Return `noatime`, `relatime` or `strictatime`; raise `ValueError` for another reply."""
    lines = raw.decode(errors="replace").splitlines()
    times = [line for line in lines if " " not in line]  # the others are sums of what was read
    if len(times) != 3:  # noqa: PLR2004 - before, between and after two reads
        raise ValueError(f"no three access times: {raw[:200]!r}")
    first, second, third = times
    if first == second == third:
        return "noatime"
    return "relatime" if second == third else "strictatime"
