"""The stripe under a treatment, the data set that it needs, and what is told of both."""

import pytest

from mydyno.campaign.spec import DeviceTable
from mydyno.campaign.stores import key_of, reformats
from mydyno.campaign.stripes import stripe_of
from mydyno.lab import Stripe
from mydyno.model import Cost
from mydyno.workloads import TOOLS

LOOP = DeviceTable(lab="loop", disks=2, chunk="64K")
FIO = TOOLS["fio"]
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
    assert stripe_of(LOOP, settings) == want


def test_a_device_without_disks_of_ours_has_one():
    assert stripe_of("here", {}) == Stripe()
    assert stripe_of(DeviceTable(lab="vm", disks=4), {"db/raid.level": "10"}) == Stripe()


def test_each_shape_has_a_data_set_of_its_own_and_equal_ones_share():
    plain = key_of({}, LOAD, LOOP)
    assert key_of({"db/raid.devices": "2"}, LOAD, LOOP) == plain
    wide = key_of({"db/raid.devices": "4"}, LOAD, LOOP)
    assert wide.name != plain.name
    assert (plain.mkfs, wide.mkfs) == (
        "-E stride=16,stripe_width=32",
        "-E stride=16,stripe_width=64",
    )


def test_a_reformat_is_told_as_changes_from_stock():
    stock = key_of({}, LOAD, LOOP)
    settings = {"db/raid.devices": "4", "db/fs.type": "xfs"}
    told = reformats(settings, key_of(settings, LOAD, LOOP), stock)
    assert {c.key: (c.before, c.after) for c in told} == {
        "db/raid.devices": ("2", "4"),
        "db/fs.type": ("ext4", "xfs"),
        "db/fs.mkfs": ("-E stride=16,stripe_width=32", "-d su=64k,sw=4"),
    }
    assert {c.cost for c in told} == {Cost.REFORMAT}
    assert reformats({}, stock, stock) == []
