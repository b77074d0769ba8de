"""Arrays of md: what is planned from what stands, and the geometry that mkfs gets."""

import pytest

from mydyno.lab.values import Geometry
from mydyno.model import Cost, RefusedError, SpecError
from mydyno_vm.raid import NONE, Raid, geometry, level_of

DISKS = ("/dev/a", "/dev/b", "/dev/c", "/dev/d")
LAYER = Raid(DISKS)
EMPTY = {"level": NONE, "chunk": NONE, "devices": NONE, "members": "", "foreign": ""}
STRIPED = {**EMPTY, "level": "0", "chunk": "65536", "devices": "4", "array": "/dev/md127"}
STOPPED = {**EMPTY, "level": "stopped", "members": "a b"}


def step(now, want):
    """Return what would be run next: all keys that move share it."""
    actions = {change.action for change in LAYER.plan(now, want)}
    assert len(actions) <= 1
    return " ".join(actions.pop().argv) if actions else ""


def test_an_array_is_made_on_empty_disks():
    command = step(EMPTY, {"level": "raid10", "chunk": "64K", "devices": "4"})
    assert command.startswith("mdadm --quiet --create /dev/md/mydyno")
    assert command.endswith(
        "--chunk 64 --assume-clean --raid-devices 4 /dev/a /dev/b /dev/c /dev/d"
    )
    assert "--level 10" in command


def test_what_stands_is_stopped_before_another_is_made():
    assert step(STRIPED, {"level": "10"}) == "mdadm --quiet --stop /dev/md127"
    assert "--create" in step(STOPPED, {"level": "10"})


def test_going_back_to_none_clears_the_superblocks():
    back = {"level": NONE, "chunk": NONE, "devices": NONE}
    assert step(STRIPED, back) == "mdadm --quiet --stop /dev/md127"
    assert step(STOPPED, back) == "mdadm --quiet --zero-superblock /dev/a /dev/b"
    assert step(EMPTY, back) == ""


def test_what_stands_already_is_left_alone():
    assert step(STRIPED, {"level": "0"}) == ""
    assert step(STRIPED, {"level": "raid0", "chunk": "64K", "devices": "4"}) == ""
    assert step(STRIPED, {}) == ""


def test_every_change_costs_a_new_filesystem():
    changes = LAYER.plan(STRIPED, {"level": "0", "chunk": "128K", "devices": "2"})
    assert {c.key: (c.before, c.after) for c in changes} == {
        "chunk": ("65536", "131072"),
        "devices": ("4", "2"),
    }
    assert {c.cost for c in changes} == {Cost.REFORMAT}


def test_a_mirror_has_no_chunk():
    (level, devices) = LAYER.plan(EMPTY, {"level": "1", "devices": "2"})
    assert (level.after, devices.after) == ("1", "2")
    assert "--chunk" not in level.action.argv


@pytest.mark.parametrize(
    ("want", "message"),
    [
        ({"level": "7"}, "one of none, 0, 1, 4, 5, 6, 10"),
        ({"level": "0", "chunk": "48K"}, "a power of two from 4K"),
        ({"level": "0", "chunk": "2K"}, "a power of two from 4K"),
        ({"level": "5", "devices": "2"}, "takes from 3 to the 4 disks"),
        ({"level": "0", "devices": "5"}, "takes from 2 to the 4 disks"),
        ({"level": "0", "devices": "many"}, "takes from 2"),
        ({"stripes": "4"}, "known: raid.level, raid.chunk, raid.devices"),
    ],
)
def test_what_cannot_be_is_refused(want, message):
    with pytest.raises(SpecError, match=message):
        LAYER.plan(EMPTY, want)


def test_a_disk_that_holds_anything_is_refused():
    held = {**EMPTY, "foreign": "/dev/a: ext4"}
    with pytest.raises(RefusedError, match="/dev/a: ext4: an array would destroy it"):
        LAYER.plan(held, {"level": "0"})
    assert LAYER.plan(held, {"level": NONE}) == []  # nothing would be done to it


def test_stripes_of_lvm_are_never_written():
    with pytest.raises(RefusedError, match="never written"):
        LAYER.plan({**STRIPED, "level": "lvm"}, {"level": "0"})


@pytest.mark.parametrize(
    ("level", "devices", "width"),
    [("0", "4", 4), ("10", "4", 2), ("5", "4", 3), ("6", "4", 2), ("raid4", "3", 2)],
)
def test_disks_that_hold_data(level, devices, width):
    command = geometry({"level": level, "chunk": "64K", "devices": devices})
    assert command == Geometry(65536, width)


def test_mkfs_gets_the_geometry_in_its_own_units():
    assert Geometry(65536, 4).options("xfs") == ("-d", "su=64k,sw=4")
    assert Geometry(65536, 4).options("ext4") == ("-E", "stride=16,stripe_width=64")
    assert Geometry(65536, 4).options("btrfs") == ()
    assert geometry({"level": "1", "chunk": NONE, "devices": "2"}) is None
    assert geometry({}) is None


def test_levels_have_one_spelling():
    assert [level_of(v) for v in ("RAID0", "stripe", "mirror", "")] == ["0", "0", "1", NONE]
