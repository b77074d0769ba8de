"""A data set in a virtual machine: copied again for every trial, or rolled back on ZFS."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from mydyno.host import Host, ask
from mydyno.model import Action, HostError, Settings
from mydyno.snapshot import StorePlace
from mydyno.stack import converge_made
from mydyno.stack.doses import CREDITS, ratio
from mydyno.stack.fs import mkfs, mount
from mydyno.stack.protocol import split
from mydyno.stack.zfs import KIND, LOG
from mydyno.testbed.stores import StoreKey
from mydyno_vm import zfs
from mydyno_vm.credits import Credits
from mydyno_vm.raid import NONE, Raid, geometry

_DATASET = "mydyno/data"
_STEP_S, _COPY_S = 600.0, 3600.0
# To a redo log's own folder, which is the server's, as its data are.
_MOVE = """chown --reference="$1" "$2" && chmod --reference="$1" "$2" || exit
for log in "$1"/ib_logfile* "$1/#innodb_redo"; do
  [ ! -e "$log" ] || mv -- "$log" "$2" || exit
done"""


@dataclass(frozen=True, slots=True)
class Shape:
    """What a data set's bytes lie on: an array by `raid` (``level`` …), a filesystem on it.

    `options` are those of mkfs, or of ``zpool create``; `properties` those of ZFS.
    """

    kind: str = "ext4"
    options: str = ""
    raid: Settings = field(default_factory=dict)
    properties: Settings = field(default_factory=dict)

    @property
    def log_apart(self) -> bool:
        """Return whether the redo log has a dataset of its own."""
        return any(key.startswith(LOG) for key in self.properties)

    @property
    def datasets(self) -> Sequence[str]:
        """Return the datasets of a pool."""
        return (_DATASET, zfs.log_of(_DATASET)) if self.log_apart else (_DATASET,)


def shape_of(key: StoreKey) -> Shape:
    """Return what a data set of a campaign lies on."""
    under = split(dict(key.under or ()))
    return Shape(key.kind, key.mkfs, under.of("raid"), under.of("fs"))


@dataclass(frozen=True, slots=True)
class Disks:
    """The paths of a machine's data disks.

    `cap` gives them their caps, and credits as a share of a full bucket; None takes the caps away.
    `level` is the lab's own share, "" where they never burst.
    """

    paths: tuple[str, ...]
    cap: Callable[[float | None], None] = lambda _: None
    level: str = ""


@dataclass(slots=True)
class VmStore:
    """A data set in a machine, mounted at `where`; its snapshot is in `home`, on the root disk.

    The disks are shared by the data sets of a campaign: one of them is on the disks at a time.
    With `alone` and ZFS, changes are rolled back instead of copying again.  Caps are for loads.
    """

    host: Host
    disks: Disks
    home: Path
    where: Path
    shape: Shape = field(default_factory=Shape)
    alone: bool = False

    @property
    def place(self) -> StorePlace:
        """Return the folder on the mounted disks, and what these are: ``md127``, ``vdb``."""
        device = self._run("readlink", "-f", self._devices()[0]).decode().strip()
        method = "zfs rollback" if self._rolls_back else "made again and copied"
        return StorePlace(self._live, Path(device).name, method, layers=(self._credits,))

    @property
    def _live(self) -> Path:
        return self.where / "data"

    @property
    def _credits(self) -> Credits:
        return Credits(self.home / "credits", self.disks.level)

    def open(self) -> bool:
        """Make the filesystem if there is no snapshot; return whether there is one."""
        self.disks.cap(None)
        self._run("mkdir", "-p", str(self.home), str(self.where))
        self._act(self._credits.written(self.disks.level))
        frozen = self.host.run(Action(("test", "-d", str(self._snapshot)))).returncode == 0
        if not frozen:
            self._make("")
        return frozen

    def freeze(self) -> None:
        """Copy `live` to the snapshot, atomically."""
        part = self.home / "part"
        self._run("rm", "-rf", "--", str(part))
        self._copy(self._live, part)
        self._run("mv", "-T", str(part), str(self._snapshot))

    def restore(self, mount: str) -> None:
        """Roll back, or make array and filesystem again and copy the snapshot.

        The first trial is rolled back too, so that all begin with cold caches.
        """
        self.disks.cap(None)
        if not self._rolls_back:
            self._fill(mount)
            return
        if not self._has_snapshot():
            self._fill(mount)
            self._act(zfs.snapshot(_DATASET))
        for action in zfs.rollback(*self.shape.datasets):
            self._act(action)

    def before_load(self) -> None:
        """Flush what was copied; set the caps, and the credits that the treatment begins with."""
        sync = Action(("sync", "-f", str(self._live)))
        self._act(zfs.flush(_DATASET) if self.shape.kind == KIND else sync)
        level = ask(self.host, self._credits.observe()).get(CREDITS, "0%")
        self.disks.cap(ratio(level))

    def _fill(self, mount: str) -> None:
        self._make(mount)
        self._copy(self._snapshot, self._live)
        if self.shape.log_apart:
            self._run("sh", "-c", _MOVE, "sh", str(self._live), str(self.where / "log"))

    def close(self, *, keep: bool) -> None:
        """Empty the disks, and remove the snapshot unless `keep`."""
        with suppress(HostError):  # of a machine that is going
            self.disks.cap(None)
        self._clear()
        converge_made(self.host, Raid(self.disks.paths), {"level": NONE})
        if not keep:
            self._run("rm", "-rf", "--", str(self.home))

    @property
    def _rolls_back(self) -> bool:
        return self.alone and self.shape.kind == KIND

    def _has_snapshot(self) -> bool:
        """Return whether the pool and its snapshot exist; a reboot ends both."""
        return self.host.run(zfs.has_snapshot(_DATASET)).returncode == 0

    @property
    def _snapshot(self) -> Path:
        return self.home / "golden"

    def _make(self, options: str) -> None:
        """Put an empty filesystem on the disks, mounted with `options`."""
        self._clear()
        converge_made(self.host, Raid(self.disks.paths), {"level": NONE, **self.shape.raid})
        if self.shape.kind == KIND:
            self._make_pool()
        else:
            self._make_filesystem(options)
        self._run("mkdir", "-p", str(self._live))

    def _make_pool(self) -> None:
        self._run("modprobe", "zfs")
        devices = self._devices()
        for action in zfs.create(self.shape.options, _DATASET, str(self.where), devices):
            self._act(action)
        if self.shape.log_apart:
            self._act(zfs.separate(_DATASET))
        converge_made(self.host, zfs.Zfs(_DATASET), self.shape.properties)

    def _make_filesystem(self, options: str) -> None:
        kind = self.shape.kind
        stripes = geometry(ask(self.host, Raid(self.disks.paths).observe()))
        known = " ".join(stripes.options(kind)) if stripes else ""
        devices = self._devices()
        first, more = devices[0], devices[1:] if kind == "btrfs" else ()
        self._run(*mkfs(kind, f"{known} {self.shape.options}", first, *more))
        self._run(*mount(kind, options, first, str(self.where), *more))

    def _devices(self) -> Sequence[str]:
        """Return what a filesystem is made on: the array, else the disks themselves."""
        now = ask(self.host, Raid(self.disks.paths).observe())
        return (now["array"],) if "array" in now else self.disks.paths

    def _clear(self) -> None:
        """Unmount, end the pool, and take our filesystem's marks off the disks."""
        if self.host.run(Action(("mountpoint", "-q", str(self.where)))).returncode == 0:
            pool = self.host.run(Action(("zfs", "list", "-H", "-o", "name", str(self.where))))
            ours = pool.returncode == 0 and pool.stdout.decode().strip() == _DATASET
            self._act(zfs.destroy(_DATASET) if ours else Action(("umount", str(self.where))))
        self._run("wipefs", "--all", "--quiet", *self._devices())

    def _copy(self, source: Path, target: Path) -> None:
        self._run("mkdir", "-p", str(target))
        argv = ("cp", "-a", "--reflink=auto", "-T", str(source), str(target))
        self.host.run(Action(argv), timeout_s=_COPY_S).check()

    def _run(self, *argv: str) -> bytes:
        return self._act(Action(argv))

    def _act(self, action: Action) -> bytes:
        return self.host.run(action, timeout_s=_STEP_S).check().stdout
