"""ZFS: the properties of a pool and dataset of ours, and the commands that make and restore one."""

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from mydyno.model import Action, Change, Cost, Probe, Settings, SpecError, unknown_value
from mydyno.stack.known import normalise
from mydyno.stack.zfs import KIND, LOG, property_of

_KEY = "fs.zfs."
# What may be set of a pool and of a filesystem (zpoolprops(7), zfsprops(7) of ZFS 2.3).
_PROPERTIES = frozenset(
    {
        *("altroot", "ashift", "autoexpand", "autoreplace", "autotrim", "bootfs", "cachefile"),
        *("comment", "compatibility", "dedup_table_quota", "delegation", "failmode"),
        *("listsnapshots", "multihost", "version"),
        *("aclinherit", "aclmode", "acltype", "atime", "canmount", "casesensitivity", "checksum"),
        *("compression", "context", "copies", "dedup", "defcontext", "devices", "direct"),
        *("dnodesize", "encryption", "exec", "filesystem_limit", "fscontext", "keyformat"),
        *("keylocation", "logbias", "longname", "mlslabel", "mountpoint", "nbmand"),
        *("normalization", "overlay", "pbkdf2iters", "prefetch", "primarycache", "quota"),
        *("readonly", "recordsize", "redundant_metadata", "refquota", "refreservation"),
        *("relatime", "reservation", "rootcontext", "secondarycache", "setuid", "sharenfs"),
        *("sharesmb", "snapdev", "snapdir", "snapshot_limit", "special_small_blocks", "sync"),
        *("utf8only", "volmode", "volsize", "vscan", "xattr", "zoned"),
    }
)
_SNAPSHOT = "golden"
_PREFIX = "zfs."
_POOL = frozenset(("ashift", "autoexpand", "autotrim", "failmode", "multihost"))
# These hold for what is written from then on: the data must be written again to have them.
_SHAPING = frozenset(
    ("checksum", "compression", "copies", "dedup", "dnodesize", "encryption", "recordsize", "xattr")
)
_AT_BIRTH = frozenset(("ashift", "casesensitivity", "encryption", "normalization", "utf8only"))
_WORDS = ("on", "off")


def misspelt(keys: Iterable[str]) -> str:
    """Return what a property among `keys` may have been meant to be, or an empty string.

    A name that is like none of those known is left to the host's ZFS, which may be newer.
    """
    for key in keys:
        prop = property_of(key.removeprefix("db/").removeprefix("fs."))
        if _KEY in key and prop not in _PROPERTIES:
            known = sorted(_PROPERTIES)
            message = unknown_value(prop, known, "ZFS property", prefix="fs.zfs.", listed=False)
            if "did you mean" in message:
                return message
    return ""


@dataclass(frozen=True, slots=True)
class Zfs:
    """Keys ``type``, ``mkfs`` (options of ``zpool create``), ``zfs.<property>``, ``zfs.log.…``.

    `pool` stands on disks of ours; `dataset` is the one that holds the data: ``mydyno/data``.  One
    below it, ``mydyno/data/log``, may hold the redo log.
    """

    name: ClassVar[str] = "fs"
    owned: ClassVar[bool] = True
    dataset: str

    @property
    def pool(self) -> str:
        """Return the pool of the dataset."""
        return self.dataset.partition("/")[0]

    def observe(self) -> Probe[Settings]:
        """Return the probe for all properties of pool and datasets, as exact numbers."""
        pool = ("zpool", "get", "-H", "-p", "-o", "name,property,value", "all", self.pool)
        data = ("zfs", "get", "-r", "-t", "filesystem", "-H", "-p", *pool[4:7], self.dataset)
        start = ("find", "/proc/self/mounts", "-maxdepth", "0")
        return Probe(Action((*start, "-exec", *pool, ";", "-exec", *data, ";")), self.parse)

    def parse(self, raw: bytes) -> Settings:
        """Return ``zfs.<property>`` of all; a name that the pool has, too, is the dataset's."""
        found: dict[str, str] = {}
        for line in raw.decode(errors="replace").splitlines():
            name, _, rest = line.partition("\t")
            key, tab, value = rest.partition("\t")
            if tab and (name == self.dataset or key in _POOL):
                found[_PREFIX + key] = value
            elif tab and name == log_of(self.dataset):
                found[LOG + key] = value
        return {"type": KIND, **found} if found else {}

    def plan(self, now: Settings, want: Settings) -> Sequence[Change]:
        """Return the changes; REFORMAT where they only hold for what is written from then on.

        Raise `SpecError` for a property that this version of ZFS does not have or that is fixed
        when the pool is made.
        """
        wanted = {key: _plain(value) for key, value in want.items() if key.startswith(_PREFIX)}
        self._check(now, want)
        return [
            self._change(key, now[key], wanted[key])
            for key in sorted(wanted)
            if not _same(now[key], wanted[key])
        ]

    def _change(self, key: str, before: str, after: str) -> Change:
        name = property_of(key)
        dataset = log_of(self.dataset) if key.startswith(LOG) else self.dataset
        tool, whose = ("zpool", self.pool) if name in _POOL else ("zfs", dataset)
        action = Action((tool, "set", f"{name}={after}", whose))
        cost = Cost.REFORMAT if name in _SHAPING else Cost.ONLINE
        return Change(key, before, after, action, cost)

    def _check(self, now: Settings, want: Settings) -> None:
        if want and not now:
            raise SpecError(f"fs: the dataset {self.dataset} is not there, or ZFS is not loaded")
        for key, value in want.items():
            name = property_of(key)
            if not key.startswith(_PREFIX):
                _refuse_plain(key, value)
            elif key not in now:
                raise SpecError(unknown_value(key, now, "ZFS property", prefix="fs.", listed=False))
            elif name in _AT_BIRTH and not _same(now[key], _plain(value)):
                option = f"-o {name}" if name in _POOL else f"-O {name}"
                raise SpecError(
                    f"fs.{key}: is fixed when the pool is made: "
                    f'fs.mkfs = "{option}={value}" instead'
                )


def create(options: str, dataset: str, where: str, devices: Sequence[str]) -> Sequence[Action]:
    """Return the commands that make a pool on empty devices of ours, and its dataset at `where`.

    No force: `zpool create` itself refuses a device that holds anything.  The pool is in no
    cache file, so that no boot imports it.
    """
    pool = dataset.partition("/")[0]
    argv = ("zpool", "create", "-o", "cachefile=none", "-O", "mountpoint=none")
    return (
        Action((*argv, *shlex.split(options), pool, *devices)),
        Action(("zfs", "create", "-o", f"mountpoint={where}", dataset)),
    )


def log_of(dataset: str) -> str:
    """Return the dataset for the redo log of what a dataset holds."""
    return f"{dataset}/log"


def flush(dataset: str) -> Action:
    """Return the command that writes all that is dirty of a pool, which `sync` does not."""
    return Action(("zpool", "sync", dataset.partition("/")[0]))


def separate(dataset: str) -> Action:
    """Return the command that makes a dataset for the redo log, mounted in the other as ``log``."""
    return Action(("zfs", "create", log_of(dataset)))


def destroy(dataset: str) -> Action:
    """Return the command that ends a pool of ours with all it holds."""
    return Action(("zpool", "destroy", dataset.partition("/")[0]))


def snapshot(dataset: str) -> Action:
    """Return the command that keeps what a dataset of ours and those below it hold now."""
    return Action(("zfs", "snapshot", "-r", f"{dataset}@{_SNAPSHOT}"))


def has_snapshot(dataset: str) -> Action:
    """Return the command that fails where nothing was kept of a dataset, or it is not there."""
    return Action(("zfs", "list", "-H", "-o", "name", f"{dataset}@{_SNAPSHOT}"))


def rollback(*datasets: str) -> Sequence[Action]:
    """Return the commands that bring back what was kept, with nothing of the pool in memory."""
    pool = datasets[0].partition("/")[0]
    return (
        *(Action(("zfs", "rollback", "-r", f"{dataset}@{_SNAPSHOT}")) for dataset in datasets),
        Action(("zpool", "export", pool)),
        Action(("zpool", "import", "-o", "cachefile=none", "-d", "/dev", pool)),
    )


def _refuse_plain(key: str, value: str) -> None:
    if key == "mount":
        raise SpecError(
            f"fs.mount = {value!r}: ZFS mounts by its properties: noatime is fs.zfs.atime = off"
        )
    if key == "type" and value != "zfs":
        raise SpecError(f"fs.type = {value!r}: the data is on ZFS")
    if key not in ("type", "mkfs"):
        raise SpecError(f"fs.{key}: unknown; ZFS has fs.type, fs.mkfs and fs.zfs.<property>")


def _plain(value: str) -> str:
    """Return a value as ZFS shows it with exact numbers; its switches are words."""
    word = {"true": "on", "false": "off"}.get(value.lower(), value)
    return word if word in _WORDS else normalise(word)


def _same(now: str, want: str) -> bool:
    return _plain(now) == want
