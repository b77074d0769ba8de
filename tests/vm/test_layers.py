"""The layers that need real disks of a machine keep the contract: md, ZFS, its module."""

import pytest

from mydyno.host import ask
from mydyno.journal import MemoryJournal
from mydyno.journal.records import MemoryRecords
from mydyno.model import Action, RefusedError, SpecError
from mydyno.stack import Ledger, Site, converge
from mydyno.stack.kernel import Kernel
from mydyno.testing.conformance import check_applied
from mydyno_vm.raid import NONE, Raid, geometry
from mydyno_vm.zfs import Zfs, create, destroy


def ledger():
    return Ledger(MemoryRecords(), MemoryJournal())


def run(guest, *argv):
    return guest.run(Action(argv), timeout_s=300).check().stdout.decode()


@pytest.fixture
def raid(guest, disks):
    layer = Raid(disks[:4])
    yield layer
    converge(Site("db", guest, (layer,)), {"db/raid.level": NONE}, ledger(), 0)


@pytest.mark.parametrize(
    ("level", "chunk", "devices"),
    [("0", "65536", "4"), ("10", "131072", "4"), ("5", "65536", "3"), ("1", NONE, "2")],
)
def test_arrays_of_md(guest, raid, timed, level, chunk, devices):
    want = {"db/raid.level": level, "db/raid.devices": devices}
    want |= {"db/raid.chunk": chunk} if chunk != NONE else {}
    with timed(f"md level {level}: made, gone, made, gone"):
        site = Site("db", guest, (raid,))
        check_applied(site, want)
        now = ask(guest, raid.observe())
    assert {k: now[k] for k in ("level", "chunk", "devices")} == {
        "level": level,
        "chunk": chunk,
        "devices": devices,
    }


@pytest.mark.parametrize("kind", ["xfs", "ext4"])
def test_the_geometry_reaches_mkfs(guest, raid, kind):
    site = Site("db", guest, (raid,))
    converge(site, {"db/raid.level": "0", "db/raid.chunk": "64K"}, ledger(), 0)
    now = ask(guest, raid.observe())
    stripes = geometry(now)
    force = ("-f",) if kind == "xfs" else ("-F", "-q")
    output = run(guest, f"mkfs.{kind}", *force, *stripes.options(kind), now["array"])
    if kind == "ext4":
        output = run(guest, "dumpe2fs", "-h", now["array"])
        assert "RAID stride:              16" in output
        assert "RAID stripe width:        64" in output
    else:
        assert "sunit=16     swidth=64 blks" in output


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "swap", "vfat-or-lvm"])
def test_a_disk_that_holds_anything_is_never_assembled_over(guest, raid, kind):
    disk = raid.disks[0]
    make = {"swap": ("mkswap", disk), "vfat-or-lvm": ("pvcreate", disk)}
    run(guest, *make.get(kind, (f"mkfs.{kind}", disk)))
    try:
        with pytest.raises(RefusedError, match="would destroy it"):
            converge(Site("db", guest, (raid,)), {"db/raid.level": "0"}, ledger(), 0)
    finally:
        run(guest, "wipefs", "--all", disk)


def test_lvm_stripes_are_read_and_never_written(guest, disks):
    layer = Raid(disks[:2])
    run(guest, "pvcreate", *layer.disks)
    run(guest, "vgcreate", "other", *layer.disks)
    run(
        guest,
        "lvcreate",
        "--yes",
        "--stripes",
        "2",
        "--stripesize",
        "64k",
        "-L",
        "64M",
        "-n",
        "data",
        "other",
    )
    try:
        now = ask(guest, layer.observe())
        assert (now["level"], now["devices"], now["chunk"]) == ("lvm", "2", "65536")
        with pytest.raises(RefusedError, match="LVM"):
            layer.plan(now, {"level": "0"})
    finally:
        run(guest, "vgremove", "--force", "other")
        run(guest, "pvremove", *layer.disks)


SPACE = {f"zfs.{name}" for name in ("available", "used", "usedbydataset", "referenced", "written")}
SPACE |= {"zfs.logicalused", "zfs.logicalreferenced", "zfs.usedbychildren", "zfs.compressratio"}


@pytest.fixture
def pool(guest, disks):
    layer = Zfs("mydyno/data")
    run(guest, "modprobe", "zfs")
    for action in create("-o ashift=12", layer.dataset, "/srv/zfs", disks[-2:]):
        guest.run(action, timeout_s=300).check()
    yield layer
    guest.run(destroy(layer.dataset), timeout_s=300).check()


def test_the_properties_of_zfs(guest, pool, timed):
    want = {
        "db/fs.zfs.recordsize": "16K",
        "db/fs.zfs.primarycache": "metadata",
        "db/fs.zfs.logbias": "throughput",
        "db/fs.zfs.compression": "lz4",
        "db/fs.zfs.atime": "off",
        "db/fs.zfs.autotrim": "on",
    }
    with timed("ZFS properties set and back"):
        check_applied(Site("db", guest, (pool,)), want, SPACE)
    assert run(guest, "zfs", "get", "-H", "-o", "value", "recordsize", pool.dataset) == "16K\n"
    now = ask(guest, pool.observe())
    with pytest.raises(SpecError, match=r"did you mean 'fs\.zfs\.recordsize'"):
        pool.plan(now, {"zfs.recordsise": "16K"})
    with pytest.raises(SpecError, match=r"-o ashift=13"):
        pool.plan(now, {"zfs.ashift": "13"})


def test_a_parameter_of_the_zfs_module(guest, pool):
    key = "db/kernel.module.zfs.zfs_arc_max"
    layer = Kernel((key.removeprefix("db/kernel."),))
    check_applied(Site("db", guest, (layer,)), {key: "134217728"})  # it ends with the machine


def test_zpool_itself_refuses_a_disk_that_holds_anything(guest, disks):
    run(guest, "mkfs.ext4", "-q", disks[0])
    try:
        action, _ = create("", "other/data", "/srv/other", disks[:1])
        assert guest.run(action, timeout_s=300).returncode != 0
    finally:
        run(guest, "wipefs", "--all", disks[0])
