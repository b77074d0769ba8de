"""What layers declare: durability of each change, and what their settings need."""

from types import SimpleNamespace

import pytest

from mydyno.campaign.spec import decode
from mydyno.host import Local
from mydyno.model import Action, Change, Durability, RefusedError, SpecError
from mydyno.stack.layers import judged
from mydyno.stack.protocol import split
from mydyno.testbed.bench_setup import Hosts
from mydyno.testbed.preflight import preflight, refuse_unprivileged
from mydyno.testing.fakes import FakeLayer

OFF = {"db/mysqld.innodb_doublewrite": "0"}
ZFS = {"db/fs.type": "zfs", "db/fs.zfs.recordsize": "16K"}


def durability(key, before, after, settings=None, stock=None, baseline=None):
    change = Change(key, before, after, Action(()))
    return judged([change], split(settings or {}), stock or {}, baseline or {})[0].durability


@pytest.mark.parametrize(
    ("key", "before", "after", "weaker"),
    [
        ("db/fs.mount", "rw", "barrier=0", True),
        ("db/fs.mount", "rw", "noatime,data=writeback", True),
        ("db/fs.mount", "rw", "noatime", False),
        ("db/fs.zfs.sync", "standard", "disabled", True),
        ("db/fs.zfs.checksum", "on", "off", True),
        ("db/fs.zfs.logbias", "latency", "throughput", False),
        ("db/mysqld.sync_binlog", "1", "0", True),
        ("db/mysqld.innodb_flush_log_at_trx_commit", "2", "1", False),
        ("db/mysqld.innodb_flush_log_at_timeout", "1", "2700", True),
        ("db/mysqld.innodb_flush_log_at_timeout", "1", "0", False),
        ("db/mysqld.debug_no_sync", "OFF", "ON", True),
        ("db/raid.level", "10", "0", False),
        ("db/block.scheduler", "none", "bfq", False),
        ("db/kernel.sysctl.vm.swappiness", "60", "1", False),
        ("db/server.build", "auto", "/opt/x", False),
    ],
)
def test_each_layer_declares_what_a_change_does_to_durability(key, before, after, weaker):
    want = Durability.WEAKER if weaker else Durability.SAME
    assert durability(key, before, after) is want


def test_where_each_commit_flushes_a_timeout_loses_nothing():
    key, commit = (
        "db/mysqld.innodb_flush_log_at_timeout",
        "db/mysqld.innodb_flush_log_at_trx_commit",
    )
    assert durability(key, "1", "2700", {commit: "1"}) is Durability.SAME
    assert durability(key, "1", "2700", {commit: "2"}) is Durability.WEAKER


def test_without_its_doublewrite_buffer_a_server_loses_nothing_on_zfs_alone():
    key = "db/mysqld.innodb_doublewrite"
    assert durability(key, "1", "0", OFF) is Durability.WEAKER
    assert durability(key, "1", "0", {**OFF, **ZFS}) is Durability.SAME
    small = {**OFF, **ZFS, "db/fs.zfs.recordsize": "8K"}
    assert durability(key, "1", "0", small) is Durability.WEAKER


def test_a_server_is_compared_with_its_defaults_and_not_with_the_trial_before():
    key = "db/mysqld.sync_binlog"
    assert durability(key, "0", "100", stock={key: "1"}) is Durability.WEAKER
    assert durability(key, "0", "1", stock={key: "1"}) is Durability.SAME


def test_a_treatment_is_compared_with_the_baseline_where_that_has_the_setting():
    """MariaDB's default is 0: beside a baseline of 1 it is weaker all the same."""
    key = "db/mysqld.sync_binlog"
    assert durability(key, "0", "0", stock={key: "0"}, baseline={key: "1"}) is Durability.WEAKER
    assert durability(key, "0", "0", stock={key: "0"}, baseline={key: "0"}) is Durability.SAME
    assert durability(key, "0", "1", stock={key: "0"}, baseline={key: "1"}) is Durability.SAME


def test_what_the_baseline_keeps_and_a_treatment_leaves_at_its_default_is_weaker():
    key = "db/mysqld.sync_binlog"
    (left,) = judged([], split({}), {key: "0"}, {key: "1"})
    assert (left.key, left.before, left.after) == (key, "1", "0")
    assert left.durability is Durability.WEAKER
    assert judged([], split({}), {key: "1"}, {key: "1"}) == []
    (named,) = judged([], split({key: "0"}), {key: "0"}, {key: "1"})  # no change of the default
    assert named == left
    assert judged([], split({}), {}, {key: "1"}) == []


@pytest.mark.parametrize(
    ("settings", "missing", "message"),
    [
        ({"db/fs.type": "xfs"}, "mkfs.xfs", "fs: mkfs.xfs is not installed; apt-get install xfsp"),
        ({"db/fs.type": "zfs"}, "zfs", "fs: zfs is not installed; apt-get install zfsutils-linux"),
        ({"db/link.rate": "1gbit"}, "tc", "link: tc is not installed; apt-get install iproute2"),
        ({"db/kernel.thp": "never"}, "sysctl", "kernel: sysctl is not installed"),
    ],
)
def test_a_tool_that_a_layer_needs_and_the_host_has_not_is_refused(
    tmp_path, monkeypatch, settings, missing, message
):
    found = {"without": missing}
    monkeypatch.setattr(
        "mydyno.testbed.preflight.path_of", lambda _, tool: "" if tool == found["without"] else tool
    )
    campaign = SimpleNamespace(
        spec=decode("", "a"), workloads={}, treatments={"ONE": split(settings)}
    )
    hosts = Hosts(Local(), Local())
    with pytest.raises(SpecError, match=f"^{message}"):
        preflight(hosts, campaign, tmp_path)
    found["without"] = "another"
    preflight(hosts, campaign, tmp_path)


def test_root_is_needed_by_the_layers_that_declare_it(monkeypatch):
    monkeypatch.setattr("mydyno.testbed.preflight.is_root", lambda _: False)
    with pytest.raises(RefusedError, match="kernel settings need root"):
        refuse_unprivileged(Local(), [FakeLayer("kernel"), FakeLayer("env")])
    refuse_unprivileged(Local(), [FakeLayer("env")])
