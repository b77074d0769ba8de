"""A data set on a real device: formatted only where it is empty or that was allowed."""

import json
import random
import re
import shlex
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePath
from typing import Any

from mydyno.host import Completed, Host, shielded
from mydyno.host.processes import refuse_foreign
from mydyno.journal.records import Made, Records, Removed, things
from mydyno.model import Action, HostError, JournalError, MydynoError, RefusedError
from mydyno.snapshot import DirectoryStore, Store, StorePlace
from mydyno.snapshot.store import unmount
from mydyno.stack.fs import canonical, close_root
from mydyno.stack.fs import mount as mount_command

_NOTHING = 2  # the exit code of blkid where it knows nothing on a device
_EDGE = 1 << 20  # bytes at both ends that must be zero: where data without a signature begins
_HEAD = 128 << 10  # bytes at the beginning in which ext4, xfs and btrfs have what names them
_BLOCK = 4096  # bytes of a sample
_EVEN, _RANDOM = 2048, 2048  # samples: docs/reference/spec.md lists what they can miss
_AT = rb"(?:byte|char) (\d+)"  # cmp's words differ by locale
_SAMPLES_S = 300.0
# Block numbers come in on standard input; what is read goes to cmp, which names the first byte.
_SAMPLE = (
    'while read -r n; do dd if="$1" bs=4096 count=1 skip="$n" iflag=fullblock status=none '
    '</dev/null; done | cmp --bytes="$2" - /dev/zero'
)
# Every process shows the mounts of its namespace; processes end while we look.
_MOUNTED = 'cat /proc/[0-9]*/mountinfo 2>/dev/null | grep -F -e "$1" -e "$2" | cut -d" " -f5; :'
_COLUMNS = "PATH,TYPE,FSTYPE,PTTYPE,MOUNTPOINTS,RO,SIZE"


def require_empty(host: Host, device: str) -> None:
    """Raise `RefusedError` with all reasons not to write to `device`.

    Nothing is written.  A check that cannot be made counts as a reason.
    """
    if held := holds(host, device):
        raise RefusedError(
            f"{device} is not empty: {'; '.join(held)}. Nothing was touched. If all of it may go, "
            f"erase it yourself (`wipefs --all {device}`, then "
            f"`blkdiscard --force --zeroout {device}`)"
        )


def holds(host: Host, device: str) -> Sequence[str]:
    """Return what a device holds or is used by, in words; nothing if it is empty and free."""
    found = host.run(Action(("readlink", "--canonicalize-existing", device)))
    real = found.stdout.decode(errors="replace").strip()
    if found.returncode or host.run(Action(("test", "-b", real))).returncode:
        return ("it is no block device",)
    problems = [*_signs(host, real), *_users(host, real)]
    return tuple(dict.fromkeys(problems or _contents(host, real)))


def _signs(host: Host, device: str) -> list[str]:
    return [*_blkid(host, device), *_wipefs(host, device), *_lsblk(host, device)]


def _blkid(host: Host, device: str) -> list[str]:
    """Ask libblkid for any signature, by reading the device and not its cache."""
    done = host.run(Action(("blkid", "--probe", "--output", "export", device)))
    if done.returncode == _NOTHING:
        return []
    if done.returncode:
        return [_failed("blkid", done)]
    pairs = dict(line.split("=", 1) for line in _lines(done) if "=" in line)
    kinds = [pairs[key] for key in ("TYPE", "PTTYPE") if key in pairs]
    return [f"blkid finds {', '.join(kinds) or 'something'}"]


def _wipefs(host: Host, device: str) -> list[str]:
    """Ask for every signature at every offset, and open the device for itself alone.

    With `--no-act` wipefs writes nothing, but opens the device as it would: exclusively, which
    fails where the kernel, an array or another program holds it.
    """
    listed = host.run(Action(("wipefs", "--noheadings", "--output", "TYPE,OFFSET", device)))
    if listed.returncode:
        return [_failed("wipefs", listed)]
    problems = [f"wipefs finds {' at '.join(line.split())}" for line in _lines(listed)]
    alone = host.run(Action(("wipefs", "--all", "--no-act", device)))
    return problems + (
        [_failed("it cannot be opened exclusively", alone)] if alone.returncode else []
    )


def _lsblk(host: Host, device: str) -> list[str]:
    done = host.run(Action(("lsblk", "--json", "--bytes", "--output", _COLUMNS, device)))
    return [_failed("lsblk", done)] if done.returncode else read_lsblk(done.stdout)


def read_lsblk(raw: bytes) -> list[str]:
    """Return the reasons against a device in ``lsblk --json``: contents, partitions, users."""
    rows = json.loads(raw)["blockdevices"]
    if len(rows) != 1:
        return [f"lsblk reports {len(rows)} devices"]
    row: Mapping[str, Any] = rows[0]
    problems = [
        f"it carries {child['path']} ({child['type']})" for child in row.get("children", ())
    ]
    problems += [f"lsblk finds {row[key]}" for key in ("fstype", "pttype") if row.get(key)]
    problems += [f"it is in use at {where}" for where in row.get("mountpoints") or () if where]
    if row.get("ro") in {True, "1"}:
        problems.append("it can only be read")
    if not row.get("size"):
        problems.append("it has no size")
    return problems


def _users(host: Host, device: str) -> list[str]:
    """Ask the kernel who stands on it: holders, mounts of any namespace, swap."""
    name = device.rpartition("/")[2]
    holders = host.run(Action(("ls", f"/sys/class/block/{name}/holders")))
    swaps = host.run(Action(("cat", "/proc/swaps")))
    problems = [_failed("its holders", holders)] if holders.returncode else []
    problems += [f"{holder} stands on it" for holder in _lines(holders)]
    problems += [f"it is mounted on {target}" for target in _mounts(host, device)]
    problems += [_failed("/proc/swaps", swaps)] if swaps.returncode else []
    return problems + ["it is swap" for line in _lines(swaps) if line.split()[0] == device]


def _mounts(host: Host, device: str) -> list[str]:
    """Return where it is mounted, in whatever namespace, by its number and by its name."""
    name = device.rpartition("/")[2]
    number = host.run(Action(("cat", f"/sys/class/block/{name}/dev"))).check().stdout.decode()
    words = (f" {number.strip()} ", f" {device} ")
    done = host.run(Action(("sh", "-c", _MOUNTED, "mounts", *words)))
    return list(dict.fromkeys(_lines(done)))


def _contents(host: Host, device: str) -> list[str]:
    """Look for data without a signature: raw volumes of databases, headerless encryption."""
    asked = host.run(Action(("blockdev", "--getsize64", device)))
    if asked.returncode:
        return [_failed("blockdev", asked)]
    size = int(asked.stdout)
    return _edges(host, device, size) or _samples(host, device, size)


def _edges(host: Host, device: str, size: int) -> list[str]:
    length = min(size, _EDGE)
    problems = []
    for words, at in (("first", 0), ("last", size - length)):
        window = (f"--bytes={length}", f"--ignore-initial={at}:0")
        done = host.run(Action(("cmp", *window, device, "/dev/zero")))
        if done.returncode:
            problems.append(f"its {words} MiB is not all zeroes: {_where(done, at)}")
    return problems


def _samples(host: Host, device: str, size: int) -> list[str]:
    """Read blocks evenly over the entire device and at random; it stops at the first with data."""
    blocks = sample(size // _BLOCK)
    lines = "".join(f"{block}\n" for block in blocks).encode()
    argv = ("sh", "-c", _SAMPLE, "sample", device, str(len(blocks) * _BLOCK))
    done = host.run(Action(argv, lines), timeout_s=_SAMPLES_S)
    if not done.returncode:
        return []
    if found := re.search(_AT, done.stdout):
        number, rest = divmod(int(found[1]) - 1, _BLOCK)
        return [f"it holds data: byte {blocks[number] * _BLOCK + rest} is not zero"]
    return [_failed("it cannot be read", done)]


def sample(blocks: int) -> list[int]:
    """Return the numbers of the blocks to be read, in order; all, where there are only few."""
    if blocks <= _EVEN + _RANDOM:
        return list(range(blocks))
    even = {number * blocks // _EVEN for number in range(_EVEN)}
    chance = random.SystemRandom()
    return sorted(even | {chance.randrange(blocks) for _ in range(_RANDOM)})


def _where(done: Completed, at: int) -> str:
    """Return the byte that cmp names, counted from the device's first, which is 0."""
    found = re.search(_AT, done.stdout)
    return f"byte {at + int(found[1]) - 1}" if found else _failed("cmp", done)


def _lines(done: Completed) -> list[str]:
    return done.stdout.decode(errors="replace").splitlines() if done.returncode == 0 else []


def _failed(what: str, done: Completed) -> str:
    words = done.stderr.decode(errors="replace").strip().splitlines()
    return f"{what}: {words[-1] if words else f'exit {done.returncode}'}"


FILESYSTEM = "filesystem"
_WANTED = ("device", "kind", "options")  # what is recorded of one, besides its identity
# Without the word that forces it: mkfs of xfs and btrfs then refuse what they find.
_MKFS = {
    "ext4": ("-q", "-E", "nodiscard", "-U", "{uuid}"),
    "xfs": ("-q", "-K", "-m", "uuid={uuid}"),
    "btrfs": ("-q", "-K", "-U", "{uuid}"),
}
# Which disk this is: its number, what it is counted as since the boot (a partition has its
# disk's), and the boot.
_WHICH = """
real=$(readlink -e -- "$1") && [ -b "$real" ] || exit 1
at=/sys/class/block/${real##*/}
cat "$at/dev" || exit 1
cat "$at/diskseq" 2>/dev/null || cat "$at/../diskseq" 2>/dev/null || echo
cat /proc/sys/kernel/random/boot_id
"""
_BUSY_S, _AGAIN_S = 10.0, 0.05
_LONG_S = 600.0
_ZEROES_S = 540.0  # flash takes seconds for it; a large disk that turns would take hours


class _GoneError(HostError):
    """What was made no longer exists: there is nothing to clean up."""


@dataclass(slots=True)
class RealDevice:
    """A device that is formatted once for a campaign and mounted at `where`.

    What it is formatted with, and which disk it is, stands in `records` before it happens.
    """

    host: Host
    device: str
    where: Path
    records: Records
    _mounted: str | None = None
    _name: str = ""

    @property
    def name(self) -> str:
        """Return its name in the kernel, as /dev/disk/by-id and /dev/mapper have others."""
        if not self._name:
            done = self.host.run(Action(("readlink", "-e", "--", self.device)))
            self._name = PurePath(done.stdout.decode().strip() or self.device).name
        return self._name

    def open(self, kind: str, options: str) -> None:
        """Format the device, if that was not done, and mount it; raise `RefusedError`."""
        made = self._made()
        if made is None or self._uuid() != made.facts.get("uuid"):
            require_empty(self.host, self.device)
            self._format(kind, options)
        elif (was := [made.facts.get(key, "") for key in _WANTED]) != [self.device, kind, options]:
            raise HostError(
                f"{self.device}: holds {' '.join(was[1:])} of this campaign, not "
                f"{kind} {options}; one filesystem a campaign on a real device"
            )
        self._run("mkdir", "-p", str(self.where))
        self._run(*close_root(kind, self.device, str(self.where)))
        self.mount("")

    def mount(self, options: str) -> None:
        """Mount with exactly these options, also if it is mounted with others.

        Raises `HostError` where the device is not the one that was formatted.
        """
        if self._mounted == canonical(options):
            return
        self._unmount()
        made = self._made()
        if made is None:
            raise HostError(f"{self.device}: not formatted by this campaign; run it again")
        self._recognise(made)
        argv = mount_command(made.facts["kind"], options, self.device, str(self.where))
        self._run(*argv)
        self._mounted = canonical(options)

    def close(self, *, keep: bool) -> None:
        """Unmount; unless `keep`, leave the device as empty as it was.

        Raises `HostError` where what is there is not what was made; nothing is wiped then.
        """
        made = self._made()
        if keep or made is None:
            self._unmount()
            self._mounted = None
        else:
            self.free(made)

    def free(self, made: Made) -> str:
        """Unmount and wipe the recorded filesystem, and no other; return what was wiped.

        Raises `HostError` where it cannot be, or something else is there.
        """
        try:
            self._unmount()
            self._mounted = None
            self._recognise(made)
            left = self._blank()
        except _GoneError:
            self._forget()
            raise
        self._forget()
        return f"{made.facts['kind']} on {self.device}{left}"

    def _format(self, kind: str, options: str) -> None:
        identity = str(uuid.uuid4())
        wanted = {"device": self.device, "uuid": identity, "kind": kind, "options": options}
        self.records.add(Made(FILESYSTEM, str(self.where), {**wanted, **self._which()}))
        # mke2fs asks only who sits at a terminal, and reading samples has taken minutes
        if found := _signs(self.host, self.device):
            self._forget()
            raise RefusedError(f"{self.device}: {found[0]}, and was empty before; inspect it")
        fixed = [word.format(uuid=identity) for word in _MKFS[kind]]
        with shielded():  # half a filesystem has no UUID to be recognised by
            self._run(f"mkfs.{kind}", *fixed, *shlex.split(options), self.device)

    def _made(self) -> Made | None:
        for made in things(self.records.entries(), FILESYSTEM):
            if made.place == str(self.where):
                return made
        return None

    def _which(self) -> dict[str, str]:
        done = self.host.run(Action(("sh", "-c", _WHICH, "which", self.device)))
        words = done.stdout.decode().split("\n")
        if done.returncode:
            raise _GoneError(f"{self.device}: block device no longer exists; nothing was wiped")
        return dict(zip(("dev", "diskseq", "boot"), words[:3], strict=True))

    def _recognise(self, made: Made) -> None:
        """Raise `HostError` unless the device is the recorded one and holds what was made.

        After a boot disks have other numbers; then only the filesystem's random UUID identifies it.
        """
        now = self._which()
        for key in ("dev", "diskseq") if now["boot"] == made.facts.get("boot") else ():
            if now[key] != made.facts.get(key):
                raise _GoneError(
                    f"{self.device}: not wiped: it is another disk now ({key} {now[key]}, not "
                    f"{made.facts.get(key)})"
                )
        found = self._uuid()
        if not (found or _blkid(self.host, self.device)):  # a mkfs may have outlived a kill
            self._until_free()
            found = self._uuid()
        if found == made.facts.get("uuid"):
            return
        contents = f"UUID {found}" if found else "; ".join(holds(self.host, self.device))
        # what has no signature may be a part of ours, and stays recorded
        unknown = contents and not found and not _blkid(self.host, self.device)
        raise (HostError if unknown else _GoneError)(
            f"{self.device}: not wiped: it contains {contents or 'nothing'}, not the filesystem "
            f"with the UUID {made.facts['uuid']} that was made there; zero it if it is not yours"
        )

    def _uuid(self) -> str:
        """Return the UUID of the filesystem on the device, read past every cache."""
        asked = ("blkid", "--probe", "--match-tag", "UUID", "--output", "value", self.device)
        done = self.host.run(Action(asked))
        if done.returncode not in {0, _NOTHING}:
            raise HostError(_failed(f"{self.device}: cannot be read", done))
        return done.stdout.decode(errors="replace").strip()

    def _forget(self) -> None:
        with suppress(JournalError):  # it is gone, recorded or not
            self.records.add(Removed(FILESYSTEM, str(self.where)))

    def _blank(self) -> str:
        """Remove our filesystem: all between both ends, then these; return what is left.

        What it is recognised by goes last, so that this can be interrupted and done again.
        """
        self._until_free()
        size = int(self.host.run(Action(("blockdev", "--getsize64", self.device))).check().stdout)
        argv = ("blkdiscard", "--zeroout", "--step", "256MiB", self.device)
        between = ("--offset", str(_EDGE), "--length", str(size - 2 * _EDGE))
        limited = ("timeout", f"{_ZEROES_S:.0f}", *argv, *between)
        zeroed = self.host.run(Action(limited), timeout_s=_LONG_S).returncode == 0
        for at, count in ((size - _EDGE, _EDGE), (_HEAD, _EDGE - _HEAD), (0, _HEAD)):
            span = (f"seek={at}", "oflag=seek_bytes", "iflag=count_bytes", f"count={count}")
            self._run("dd", "if=/dev/zero", f"of={self.device}", "bs=64K", "conv=fsync", *span)
        return "" if zeroed else f"; data between both ends is left: `{' '.join(argv)}` zeroes it"

    def _until_free(self) -> None:
        """Wait until wipefs can open the device for itself alone, and have it write nothing.

        A mount that ends in another namespace lets go a moment later.
        """
        end_s = time.monotonic() + _BUSY_S
        alone = Action(("wipefs", "--quiet", "--all", "--no-act", self.device))
        while (done := self.host.run(alone)).returncode:
            if time.monotonic() > end_s:
                words = done.stderr.decode(errors="replace").strip()
                raise HostError(
                    f"{self.device}: not wiped: {words}; end what has it open or mounted, also in "
                    f"another mount namespace (`grep -s {self.device} /proc/*/mountinfo`), then "
                    "run `mydyno rollback`"
                )
            time.sleep(_AGAIN_S)

    def _unmount(self) -> None:
        """Unmount our device from our place."""
        unmount(self.host, self.where, partial(refuse_foreign, self.host, self.where, self.device))

    def _run(self, *argv: str) -> None:
        self.host.run(Action(argv), timeout_s=_LONG_S).check()


@dataclass(slots=True)
class DeviceStore:
    """A data set on a real device: `copies` holds its snapshot on the same filesystem."""

    device: RealDevice
    kind: str
    options: str
    copies: DirectoryStore

    @property
    def place(self) -> StorePlace:
        """Return the folder on the mounted device; a reflink restores it where that can be."""
        return replace(self.copies.place, disk=self.device.name)

    def open(self) -> bool:
        """Format and mount the device; return whether it contains the snapshot."""
        self.device.open(self.kind, self.options)
        return self.copies.open()

    def freeze(self) -> None:
        """Move the live folder to the snapshot."""
        self.copies.freeze()

    def restore(self, mount: str) -> None:
        """Mount with these options and replace the live folder by the snapshot."""
        self.device.mount(mount)
        self.copies.restore("")

    def close(self, *, keep: bool) -> None:
        """Unmount; `keep` retains the snapshot for a resumed campaign."""
        self.device.close(keep=keep)


def discard(store: Store) -> None:
    """Remove a data set; others on the same device stay."""
    (store.copies if isinstance(store, DeviceStore) else store).close(keep=False)


def release(host: Host, records: Records) -> tuple[list[str], list[str]]:
    """Free the devices that a killed campaign formatted; return what was wiped, and what was not.

    Only the recorded filesystem is wiped, on the recorded device.  What is not there any more is
    named once, then forgotten.
    """
    done: list[str] = []
    failed: list[str] = []
    for made in things(records.entries(), FILESYSTEM):
        one = RealDevice(host, made.facts.get("device", ""), Path(made.place), records)
        try:
            done.append(one.free(made))
        except MydynoError as error:
            failed.append(str(error))
    return done, failed
