"""A real device with the user's consent: found empty, formatted, mounted, and blank at the end."""

import shlex
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from mydyno.apply.empty import require_empty
from mydyno.dataset import DirectoryStore
from mydyno.dataset.directory import reflinks
from mydyno.host import Host
from mydyno.model import Action, HostError
from mydyno.stack.fs import canonical
from mydyno.stack.fs import mount as mount_command

RECORD = "device.json"
# Without the word that forces it: mkfs itself then refuses what it finds.
_MKFS = {
    "ext4": ("-q", "-E", "nodiscard", "-U", "{uuid}"),
    "xfs": ("-q", "-K", "-m", "uuid={uuid}"),
    "btrfs": ("-q", "-K", "-U", "{uuid}"),
}
_BUSY_S, _AGAIN_S = 10.0, 0.05
_LONG_S = 600.0
_EDGE = 1 << 20  # bytes


class Record(msgspec.Struct, frozen=True):
    """What we have put on a device, written before it is put there."""

    device: str
    uuid: str
    kind: str
    options: str


@dataclass(slots=True)
class RealDevice:
    """A device that is formatted once for a campaign and mounted at `where`; `work` keeps notes."""

    host: Host
    device: str
    work: Path
    where: Path
    _mounted: str | None = None

    def open(self, kind: str, options: str) -> None:
        """Format the device, if that was not done, and mount it; raise `RefusedError`."""
        record = self._record()
        wanted = Record(self.device, record.uuid if record else str(uuid.uuid4()), kind, options)
        if record is None or not self._ours(record):
            require_empty(self.host, self.device)
            note = msgspec.json.encode(wanted)
            self._run("install", "-D", "-m", "644", "/dev/stdin", str(self._note), stdin=note)
            fixed = [word.format(uuid=wanted.uuid) for word in _MKFS[kind]]
            self._run(f"mkfs.{kind}", *fixed, *shlex.split(options), self.device)
        elif record != wanted:
            raise HostError(
                f"{self.device}: holds {record.kind} {record.options} of this campaign, not "
                f"{kind} {options}; one filesystem a campaign on a real device"
            )
        self._run("mkdir", "-p", str(self.where))
        self.mount("")

    def mount(self, options: str) -> None:
        """Mount with exactly these options, also if it is mounted with others."""
        if self._mounted == canonical(options):
            return
        self._unmount()
        record = self._record()
        kind = record.kind if record else "auto"
        self._run(*mount_command(kind, options, self.device, str(self.where)))
        self._run("chmod", "755", str(self.where))
        self._mounted = canonical(options)

    def close(self, *, keep: bool) -> None:
        """Unmount; unless `keep`, leave the device as empty as it was."""
        self._unmount()
        self._mounted = None
        record = self._record()
        if keep or record is None:
            return
        if self._ours(record):
            self._blank()
        self._run("rm", "-f", str(self._note))

    @property
    def _note(self) -> Path:
        return self.work / RECORD

    def _record(self) -> Record | None:
        done = self.host.run(Action(("cat", str(self._note))))
        return msgspec.json.decode(done.stdout, type=Record) if done.returncode == 0 else None

    def _ours(self, record: Record) -> bool:
        """Return whether the device holds the very filesystem that was recorded."""
        asked = ("blkid", "--probe", "--match-tag", "UUID", "--output", "value", record.device)
        done = self.host.run(Action(asked))
        return done.stdout.decode(errors="replace").strip() == record.uuid

    def _blank(self) -> None:
        """Remove our filesystem's signatures and what lies at both ends."""
        self._run("wipefs", "--quiet", "--all", self.device)
        size = int(self.host.run(Action(("blockdev", "--getsize64", self.device))).check().stdout)
        for at in (0, size - _EDGE):
            span = (f"seek={at}", "oflag=seek_bytes", "iflag=count_bytes", f"count={_EDGE}")
            self._run("dd", "if=/dev/zero", f"of={self.device}", "bs=64K", "conv=fsync", *span)

    def _unmount(self) -> None:
        """Unmount all there is at our place; a server that was killed lets go a moment later."""
        end_s = time.monotonic() + _BUSY_S
        while self.host.run(Action(("mountpoint", "-q", str(self.where)))).returncode == 0:
            done = self.host.run(Action(("umount", str(self.where))), timeout_s=_LONG_S)
            if done.returncode and time.monotonic() < end_s:
                time.sleep(_AGAIN_S)
            else:
                done.check()

    def _run(self, *argv: str, stdin: bytes = b"") -> None:
        self.host.run(Action(argv, stdin), timeout_s=_LONG_S).check()


@dataclass(slots=True)
class DeviceStore:
    """A data set on a real device: its golden copy lies on the same filesystem, beside it."""

    device: RealDevice
    name: str
    kind: str
    options: str
    _copies: list[DirectoryStore] = field(default_factory=list)

    @property
    def live(self) -> Path:
        """Return the folder of the data on the mounted device."""
        return self.device.where / "data"

    @property
    def disk(self) -> str:
        """Return the device's name in /sys/block."""
        return self.device.device.rpartition("/")[2]

    @property
    def method(self) -> str:
        """Return how it is restored: by reflink where the filesystem can."""
        return self._copy.method

    def open(self) -> bool:
        """Format and mount the device; return whether it holds the golden copy."""
        self.device.open(self.kind, self.options)
        home = self.device.where / f"store-{self.name}"
        shares = reflinks(self.device.host, self.device.where)
        self._copies[:] = [DirectoryStore(self.device.host, home, self.live, shares)]
        return self._copy.open()

    def seal(self) -> None:
        """Move the live folder to the golden one."""
        self._copy.seal()

    def restore(self, mount: str) -> None:
        """Mount with these options and replace the live folder by the golden copy."""
        self.device.mount(mount)
        self._copy.restore("")

    def loading(self) -> None:
        """Write out what the copy left dirty."""
        self._copy.loading()

    def close(self, *, keep: bool) -> None:
        """Unmount; the golden copy stays for a resumed campaign if `keep`, else nothing does."""
        self.device.close(keep=keep)

    @property
    def _copy(self) -> DirectoryStore:
        if not self._copies:
            raise HostError(f"{self.device.device}: not open")
        return self._copies[0]


def release(host: Host, work: Path, where: Path) -> list[str]:
    """Free the device that a killed campaign formatted, and leave it empty; return which."""
    done = host.run(Action(("cat", str(work / RECORD))))
    if done.returncode:
        return []
    record = msgspec.json.decode(done.stdout, type=Record)
    RealDevice(host, record.device, work, where).close(keep=False)
    return [f"{record.kind} on {record.device}"]
