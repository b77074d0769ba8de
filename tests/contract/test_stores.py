"""Every store passes the conformance suite, and a false one does not."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from integration.device_steps import blank
from mydyno.host import Local
from mydyno.journal.records import MemoryRecords
from mydyno.lab import LabSpec, Stripe, listing
from mydyno.lab.lab_store import LabStore
from mydyno.model import Action, HostError
from mydyno.snapshot import DirectoryStore
from mydyno.snapshot.device import DeviceStore, RealDevice
from mydyno.testing.conformance import ConformanceError, check_store

HOST = Local()


def directory(kind, folder):
    return lambda host: kind(host, folder / "home", folder / "live")


def test_a_directory(tmp_path):
    check_store(directory(DirectoryStore, tmp_path), HOST)
    assert list(tmp_path.iterdir()) == []


def test_a_directory_has_no_mount_options(tmp_path):
    store = DirectoryStore(HOST, tmp_path / "home", tmp_path / "live", reflinks=False)
    with pytest.raises(HostError, match="use a lab disk"):
        store.restore("noatime")


@pytest.mark.root
@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs"])
@pytest.mark.parametrize("disks", [1, 4])
def test_a_lab_disk(tmp_path, kind, disks):
    spec = LabSpec(f"store-{tmp_path.name}", 512 << 20, stripe=Stripe(disks, 64 << 10))
    check_store(
        lambda host: LabStore(host, spec, tmp_path / "home", tmp_path / "mnt", kind),
        HOST,
        cut_off=(kind, disks) == ("ext4", 1),  # each command takes the disk away and back
    )
    assert spec.lab not in {state.spec.lab for state in listing(HOST)}


@dataclass(frozen=True)
class Watched(Local):
    """A host that keeps the commands after which others could list a mounted folder."""

    folder: Path = Path("/none")
    listed: list[object] = field(default_factory=list)

    def run(self, action, **options):
        done = super().run(action, **options)
        if self.folder.is_mount() and self.folder.stat().st_mode & 0o004:
            self.listed.append(action.argv)
        return done


@pytest.mark.root
@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs"])
@pytest.mark.parametrize("lab", [True, False])
def test_a_new_filesystem_is_never_listed_by_others(tmp_path, kind, lab):
    where = tmp_path / "mnt"
    host = Watched(folder=where)
    with blank(tmp_path) as device:
        if lab:
            spec = LabSpec(f"closed-{tmp_path.name}", 512 << 20)
            store = LabStore(host, spec, tmp_path / "home", where, kind)
            store.open()
        else:
            store = RealDevice(host, device, where, MemoryRecords())
            store.open(kind, "")
        try:
            assert where.is_mount()
            assert where.stat().st_mode & 0o777 == 0o711
        finally:
            store.close(keep=False)
    assert host.listed == []


@pytest.mark.root
def test_a_real_device(tmp_path):
    records, mount = MemoryRecords(), tmp_path / "mnt"

    def store(host):
        copies = DirectoryStore(host, mount / "store", mount / "data")
        return DeviceStore(RealDevice(host, device, mount, records), "ext4", "", copies)

    with blank(tmp_path) as device:
        check_store(store, HOST)


class Lax(DirectoryStore):
    """It does not restore rights."""

    def restore(self, mount):
        super().restore(mount)
        self.host.run(Action(("chmod", "-R", "a+rwX", str(self.live))))


class Dense(DirectoryStore):
    """It fills the holes of files."""

    def restore(self, mount):
        super().restore(mount)
        self.host.run(Action(("fallocate", "-l", "64M", str(self.live / "holes"))))


class Hoarding(DirectoryStore):
    """It leaves its data behind."""

    def close(self, *, keep):
        del keep


@pytest.mark.parametrize(
    ("kind", "promise"),
    [(Lax, "rights"), (Dense, "exit 1"), (Hoarding, "removes the data")],
)
def test_a_store_that_breaks_a_promise(tmp_path, kind, promise):
    with pytest.raises((ConformanceError, HostError), match=promise):
        check_store(directory(kind, tmp_path), HOST)
