"""ZFS's properties, and the server settings that belong to it and stay there."""

import re

import pytest

from mydyno.model import Cost, SpecError
from mydyno.stack.protocol import split
from mydyno.stack.zfs import LOG_HOME, protected, torn_page_risks, weaker, with_log_folder
from mydyno.testbed.stores import data_shape
from mydyno_vm.store import Shape
from mydyno_vm.zfs import Zfs, create, destroy, misspelt, rollback, separate, snapshot


def risks(treatments):
    return torn_page_risks({name: split(settings) for name, settings in treatments.items()})


def safe(settings):
    return protected(split(settings))


OFF = {"db/mysqld.innodb_doublewrite": "OFF"}
ZFS = {"db/fs.type": "zfs", "db/fs.zfs.recordsize": "16K"}


def test_no_doublewrite_is_safe_on_zfs():
    assert risks({"zfs": {**ZFS, **OFF}, "ext4": {"db/fs.type": "ext4"}}) == ()
    assert safe({**ZFS, **OFF})


@pytest.mark.parametrize("value", ["0", "OFF", "off", "DETECT_ONLY"])
@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs"])
def test_it_must_not_travel_to_another_filesystem(kind, value):
    other = {"db/fs.type": kind, "db/mysqld.innodb_doublewrite": value}
    (changes,) = risks({"zfs": {**ZFS, **OFF}, "other": other})
    assert changes.startswith(
        f"other: innodb_doublewrite = {value.replace('OFF', '0').lower()}"[:28]
    )
    assert kind in changes


def test_a_misspelt_property_is_reported_before_a_machine_boots():
    assert "did you mean 'fs.zfs.recordsize'?" in misspelt(["fs.type", "fs.zfs.recordsise"])


@pytest.mark.parametrize("name", ["recordsize", "com.example:mine", "feature@lz4_compress"])
def test_a_property_that_may_be_is_left_to_the_host(name):
    assert not misspelt([f"db/fs.zfs.{name}"])


def test_nor_to_the_filesystem_that_is_found():
    assert len(risks({"zfs": ZFS, "plain": OFF})) == 1


def test_records_below_the_page_tear_on_zfs_too():
    small = {**ZFS, **OFF, "db/fs.zfs.recordsize": "8K"}
    assert "recordsize = 16384" in risks({"small": small})[0]
    page = {"db/mysqld.innodb_page_size": "4K"}
    assert risks({"small": {**small, **page}}) == ()
    assert not safe(small)


def test_without_any_zfs_it_is_a_plain_loss_of_durability():
    assert risks({"plain": OFF}) == ()
    assert not safe(OFF)


@pytest.mark.parametrize("value", ["ON", "DETECT_AND_RECOVER", "fast"])
def test_values_that_repair_travel(value):
    assert risks({"zfs": ZFS, "x": {"db/mysqld.innodb_doublewrite": value}}) == ()


# As `zpool get` and `zfs get` print with -H -p (OpenZFS 2.3): name, property, value, tabs between.
OUTPUT = b"""\
mydyno\tashift\t12
mydyno\tautotrim\toff
mydyno\tcompatibility\toff
mydyno/data\trecordsize\t131072
mydyno/data\tcompression\ton
mydyno/data\tprimarycache\tall
mydyno/data\tlogbias\tlatency
mydyno/data\tsync\tstandard
mydyno/data\tatime\ton
mydyno/data/log\trecordsize\t131072
mydyno/data/log\tlogbias\tlatency
mydyno/data/log/deeper\trecordsize\t4096
"""
LAYER = Zfs("mydyno/data")
NOW = LAYER.parse(OUTPUT)


def test_properties_of_pool_and_dataset_are_read():
    assert NOW["type"] == "zfs"
    assert (NOW["zfs.ashift"], NOW["zfs.recordsize"]) == ("12", "131072")
    assert "zfs.compatibility" not in NOW  # of the pool, and none of those that are set
    assert LAYER.parse(b"cannot open 'mydyno/data': dataset does not exist\n") == {}


def test_what_only_holds_for_new_data_costs_a_new_copy_of_it():
    want = {"zfs.recordsize": "16K", "zfs.primarycache": "metadata", "zfs.autotrim": "on"}
    changes = {c.key: (c.cost, c.action.argv) for c in LAYER.plan(NOW, want)}
    assert changes == {
        "zfs.autotrim": (Cost.ONLINE, ("zpool", "set", "autotrim=on", "mydyno")),
        "zfs.primarycache": (Cost.ONLINE, ("zfs", "set", "primarycache=metadata", "mydyno/data")),
        "zfs.recordsize": (Cost.REFORMAT, ("zfs", "set", "recordsize=16384", "mydyno/data")),
    }
    assert LAYER.plan(NOW, {"zfs.recordsize": "128K", "zfs.atime": "on"}) == []


def test_the_redo_log_may_have_a_dataset_of_its_own():
    assert (NOW["zfs.log.recordsize"], NOW["zfs.recordsize"]) == ("131072", "131072")
    want = {"zfs.log.recordsize": "16K", "zfs.log.logbias": "throughput"}
    changes = {c.key: (c.cost, c.action.argv) for c in LAYER.plan(NOW, want)}
    assert changes == {
        "zfs.log.logbias": (Cost.ONLINE, ("zfs", "set", "logbias=throughput", "mydyno/data/log")),
        "zfs.log.recordsize": (
            Cost.REFORMAT,
            ("zfs", "set", "recordsize=16384", "mydyno/data/log"),
        ),
    }
    assert separate("mydyno/data").argv == ("zfs", "create", "mydyno/data/log")
    with pytest.raises(SpecError, match=re.escape("did you mean 'fs.zfs.log.logbias'")):
        LAYER.plan(NOW, {"zfs.log.logbia": "latency"})
    assert "did you mean 'fs.zfs.recordsize'?" in misspelt(["fs.zfs.log.recordsise"])
    assert weaker("zfs.log.sync", "disabled")


def test_the_server_writes_its_redo_log_there():
    settings = with_log_folder({"db/fs.zfs.log.recordsize": "128K"}, "a.toml")
    assert settings[f"db/mysqld.{LOG_HOME}"] == "../log"
    plain = {"db/fs.zfs.recordsize": "16K"}
    assert with_log_folder(plain, "a.toml") == plain
    assert data_shape(split(settings).of("mysqld")) == {}  # moved once the data are made
    assert data_shape({LOG_HOME: "/srv/log"}) == {LOG_HOME: "/srv/log"}


@pytest.mark.parametrize("option", [LOG_HOME, LOG_HOME.replace("_", "-")])
def test_a_redo_log_in_a_dataset_and_elsewhere_is_refused(option):
    both = {"db/fs.zfs.log.recordsize": "128K", f"db/mysqld.{option}": "/srv/log"}
    with pytest.raises(SpecError, match=rf"^a.toml: LOG: db/mysqld.{option}: fs.zfs.log"):
        with_log_folder(both, "a.toml: LOG")


def test_both_datasets_are_kept_and_brought_back_at_one_moment():
    both = Shape("zfs", properties={"zfs.log.recordsize": "128K"}).datasets
    assert both == ("mydyno/data", "mydyno/data/log")
    assert snapshot(both[0]).argv == ("zfs", "snapshot", "-r", "mydyno/data@golden")
    back = [action.argv for action in rollback(*both)]
    assert [argv[-1] for argv in back[:2]] == ["mydyno/data@golden", "mydyno/data/log@golden"]
    assert Shape("zfs").datasets == ("mydyno/data",)


def test_a_property_without_its_prefix_is_refused():
    with pytest.raises(SpecError, match="unknown"):
        LAYER.plan(NOW, {"sync": "disabled"})


@pytest.mark.parametrize(
    ("want", "message"),
    [
        ({"zfs.recordsise": "16K"}, "did you mean 'fs.zfs.recordsize'"),
        ({"zfs.ashift": "13"}, 'fs.mkfs = "-o ashift=13" instead'),
        ({"mount": "noatime"}, "noatime is fs.zfs.atime = off"),
        ({"type": "ext4"}, "the data is on ZFS"),
        ({"discard": "1"}, "unknown"),
    ],
)
def test_what_zfs_does_not_have_is_refused_with_what_it_has(want, message):
    with pytest.raises(SpecError, match=re.escape(message)):
        LAYER.plan(NOW, want)


def test_a_pool_is_made_without_force_and_in_no_cache_file():
    pool, data = create("-o ashift=12", "mydyno/data", "/srv", ("/dev/a", "/dev/b"))
    assert "-f" not in pool.argv
    assert pool.argv[-3:] == ("mydyno", "/dev/a", "/dev/b")
    assert "cachefile=none" in pool.argv
    assert data.argv == ("zfs", "create", "-o", "mountpoint=/srv", "mydyno/data")
    assert destroy("mydyno/data").argv == ("zpool", "destroy", "mydyno")
