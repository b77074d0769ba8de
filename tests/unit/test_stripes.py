"""The stripe under a treatment, the data set that it needs, and how both are reported."""

import pytest

from mydyno.campaign.spec import DeviceTable, StackTable
from mydyno.campaign.treatments import stripe_of
from mydyno.lab import Stripe
from mydyno.loads import tools
from mydyno.model import Cost
from mydyno.stack.protocol import split
from mydyno.testbed.stores import key_of, reformats

LOOP = DeviceTable(lab="loop", disks=2, chunk="64K")
FIO = tools()["fio"]
STACK = StackTable(device=LOOP)
LOAD = FIO.cells("rr", FIO.params(options={"rw": "randread", "size": "1M"}), None)[0]


@pytest.mark.parametrize(
    ("settings", "want"),
    [
        ({}, Stripe(2, 64 << 10)),
        ({"db/raid.devices": "8"}, Stripe(8, 64 << 10)),
        ({"db/raid.chunk": "1M", "db/raid.level": "0"}, Stripe(2, 1 << 20)),
        ({"db/raid.chunk": "12K", "db/raid.devices": "3"}, Stripe(3, 12 << 10)),
    ],
)
def test_keys_come_before_the_device_table(settings, want):
    assert stripe_of(LOOP, split(settings)) == want


def test_a_device_without_disks_of_ours_has_one():
    assert stripe_of("here", split({})) == Stripe()
    assert stripe_of(DeviceTable(lab="vm", disks=4), split({"db/raid.level": "10"})) == Stripe()


def test_each_shape_has_a_data_set_of_its_own_and_equal_ones_share():
    plain = key_of(split({}), LOAD, STACK)
    assert key_of(split({"db/raid.devices": "2"}), LOAD, STACK) == plain
    wide = key_of(split({"db/raid.devices": "4"}), LOAD, STACK)
    assert wide.name != plain.name
    assert (plain.mkfs, wide.mkfs) == (
        "-E stride=16,stripe_width=32",
        "-E stride=16,stripe_width=64",
    )


def test_a_reformat_is_reported_as_changes_from_stock():
    stock = key_of(split({}), LOAD, STACK)
    settings = {"db/raid.devices": "4", "db/fs.type": "xfs"}
    changes = reformats(settings, key_of(split(settings), LOAD, STACK), stock)
    assert {c.key: (c.before, c.after) for c in changes} == {
        "db/raid.devices": ("2", "4"),
        "db/fs.type": ("ext4", "xfs"),
        "db/fs.mkfs": ("-E stride=16,stripe_width=32", "-d su=64k,sw=4"),
    }
    assert {c.cost for c in changes} == {Cost.REFORMAT}
    assert reformats({}, stock, stock) == []


def test_a_machine_assembles_its_disks_as_each_treatment_asks():
    device = DeviceTable(lab="vm", disks=4)
    stock = key_of(split({"db/mysqld.sync_binlog": "0"}), LOAD, StackTable(device=device))
    settings = {
        "db/raid.level": "10",
        "db/raid.chunk": "64K",
        "db/fs.type": "xfs",
        "db/fs.mkfs": "-m reflink=0",
    }
    array = key_of(split(settings), LOAD, StackTable(device=device))
    pool = key_of(
        split({"db/fs.type": "zfs", "db/fs.zfs.recordsize": "16K"}), LOAD, StackTable(device=device)
    )
    assert len({stock.name, array.name, pool.name}) == 3
    assert stock.content == array.content == pool.content  # one snapshot for all of them
    assert array.description == "xfs -m reflink=0 raid.chunk=64K raid.level=10"
    assert pool.description == "zfs fs.zfs.recordsize=16K"
    found = {c.key: (c.before, c.after) for c in reformats(settings, array, stock)}
    assert found["db/raid.level"] == ("", "10")
    assert found["db/fs.type"] == ("ext4", "xfs")
    assert reformats({}, stock, stock) == []


def test_a_loop_shows_the_stripe_that_it_has():
    assert key_of(split({}), LOAD, STACK).description.startswith("ext4 -E stride=16")
