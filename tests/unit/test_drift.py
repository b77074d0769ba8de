"""Drift: each way in which a host is not as it was kept has its name."""

import pytest

from mydyno.audit.facts import ServerEvidence
from mydyno.keep.drift import HostFiles, drift, is_in_force, paths, places_of
from mydyno.keep.forms import native
from mydyno.keep.kept import Kept, KeptOn
from mydyno.model import SpecError
from mydyno.report.drift import render_drift

SETTINGS = {
    "mysqld.sort_buffer_size": "512K",
    "mysqld.max_connections": "500",
    "kernel.sysctl.vm.swappiness": "1",
    "kernel.thp": "never",
    "block.scheduler": "none",
    "limits.nofile": "65536",
    "alloc.library": "jemalloc",
    "fs.mount": "noatime",
}
KEPT = Kept(SETTINGS, ("e",), {}, "mariadb", (10, 11, 19), KeptOn(disk="sdc"))
SWAPPINESS = "/proc/sys/vm/swappiness"
THP = "/sys/kernel/mm/transparent_hugepage/enabled"
SCHEDULER = "/sys/block/sdc/queue/scheduler"
LIMITS = (
    "Limit                     Soft Limit\nMax open files            65536       65536    files"
)


def seen(**changed):
    files = {file.path: file.text for file in native.write(KEPT)}
    option = next(text for path, text in files.items() if path.endswith("zz-mydyno.cnf"))
    path = "/etc/mysql/mariadb.conf.d/zz-mydyno.cnf"
    given = {
        "name": "db1", "flavour": "mariadb", "version": (10, 11, 19), "text": "", "looks": ({}, {}),
        "variables": {"sort_buffer_size": "524288", "max_connections": "500"},
        "start": (path,), "files": {path: option},
        "host": {"limits": LIMITS, "maps": "jemalloc", "mount": "ext4 rw,noatime"},
    }  # fmt: skip
    values = {SWAPPINESS: "1", THP: "always madvise [never]", SCHEDULER: "[none] mq-deadline"}
    return ServerEvidence(**{**given, **changed}), HostFiles({**files, **values})


def states(evidence, files):
    return {row.key: row.state for row in drift(KEPT, evidence, files)}


def test_a_host_as_it_was_kept_has_no_drift_but_what_no_file_stores():
    found = states(*seen())
    assert found.pop("fs.mount") == "not stored"  # fstab is not looked at
    assert set(found.values()) == {"kept"}


@pytest.mark.parametrize(
    ("change", "key", "state"),
    [
        ({SWAPPINESS: "60"}, "kernel.sysctl.vm.swappiness", "not loaded"),
        ({SCHEDULER: "none [kyber]"}, "block.scheduler", "not loaded"),
        (
            {"/etc/sysctl.d/90-mydyno.conf": "vm.swappiness = 10"},
            "kernel.sysctl.vm.swappiness",
            "not stored",
        ),
        ({"/etc/tmpfiles.d/mydyno.conf": None}, "kernel.thp", "not stored"),
        ({"/etc/tmpfiles.d/mydyno.conf": None, THP: "[always] never"}, "kernel.thp", "changed"),
        (
            {"/etc/systemd/system/mariadb.service.d/zz-mydyno.conf": "[Service]"},
            "alloc.library",
            "not stored",
        ),
    ],
)
def test_what_happened_to_a_file_or_a_value(change, key, state):
    evidence, files = seen()
    texts = {k: v for k, v in {**files.texts, **change}.items() if v is not None}
    found = states(evidence, HostFiles(texts))
    assert found[key] == state
    assert [
        k for k, v in found.items() if v != "kept" and k not in {key, "fs.mount", "limits.nofile"}
    ] == []


def test_a_variable_that_was_set_and_one_that_another_file_sets():
    evidence, files = seen(variables={"sort_buffer_size": "524288", "max_connections": "900"})
    assert states(evidence, files)["mysqld.max_connections"] == "not loaded"
    evidence, files = seen(files={}, start=())
    assert states(evidence, files)["mysqld.sort_buffer_size"] == "not stored"
    path = "/etc/mysql/mariadb.conf.d/zzz.cnf"
    evidence, files = seen(files={path: "[mysqld]\nmax_connections = 300\n"}, start=(path,))
    row = next(r for r in drift(KEPT, evidence, files) if r.key == "mysqld.max_connections")
    assert (row.state, row.stored, row.where) == ("not stored", "300", f"{path}:2")


def test_an_allocator_that_is_part_of_the_program_is_in_force_though_no_file_has_it():
    variables = {"version_malloc_library": "bundled jemalloc"}
    evidence, files = seen(variables=variables, host={"maps": "/usr/sbin/mariadbd"})
    assert states(evidence, files)["alloc.library"] == "kept"
    evidence, files = seen(host={"maps": "/usr/sbin/mysqld"})
    assert states(evidence, files)["alloc.library"] == "not loaded"


@pytest.mark.parametrize(
    ("name", "wanted", "present", "is_there"),
    [
        ("thread_cache_size", "64", "9", False),
        ("thread_cache_size", "64", "0", False),
        ("thread_cache_size", "200", "100", False),
        ("host_cache_size", "5000", "4096", False),
        ("sort_buffer_size", "1000000", "999000", False),
        ("sort_buffer_size", "1000000", "999424", True),
        ("innodb_log_file_size", "100000000", "99999744", True),
        ("thread_stack", "200000", "199680", True),
        ("net_buffer_length", "20000", "19456", True),
    ],
)
def test_only_a_size_is_in_force_as_the_server_rounds_it(name, wanted, present, is_there):
    evidence, _ = seen()
    assert is_in_force(f"mysqld.{name}", wanted, present, evidence) == is_there


def test_a_sysctl_that_a_later_file_sets_is_lost_by_a_restart():
    path = "/etc/sysctl.d/99-sysctl.conf"
    evidence, files = seen(host={"sysctl_files": f"{path}\tvm.swappiness\t30\t1\n"})
    row = next(r for r in drift(KEPT, evidence, files) if r.key == "kernel.sysctl.vm.swappiness")
    assert (row.state, row.stored, row.where) == ("not stored", "30", path)


def test_a_quota_and_a_pool_are_not_kept_at_another_value():
    there = {"cgroup": "cpu_max=150000 100000"}
    wanted = {"cgroup.cpu": "200%", "mysqld.innodb_buffer_pool_size": "8G"}
    pool = {"innodb_buffer_pool_size": str(48 << 30)}
    evidence, files = seen(host=there, variables=pool)
    found = drift(Kept(wanted, target=KEPT.target), evidence, files)
    assert {row.key: row.state for row in found} == dict.fromkeys(wanted, "changed")


def test_all_paths_are_below_etc_proc_and_sys():
    assert all(path.startswith(("/etc/", "/proc/sys/", "/sys/")) for path in paths(KEPT))
    assert {SWAPPINESS, THP, SCHEDULER} <= set(paths(KEPT))


@pytest.mark.parametrize(
    ("settings", "disk"),
    [
        ({"kernel.module.x.../../../../etc/shadow": "1"}, "sdc"),
        ({"kernel.sysctl.a b": "1"}, "sdc"),
        ({"block.scheduler": "none"}, "../../../etc"),
        ({"block.scheduler": "none"}, ""),
        ({"block.scheduler": "none"}, "sdc,../../../etc"),
    ],
)
def test_a_name_that_leads_elsewhere_is_refused(settings, disk):
    """Whoever can write to the folder of an export chooses what root reads, else."""
    with pytest.raises(SpecError):
        paths(Kept(settings, target=KeptOn(disk=disk)))


def test_of_an_array_every_disk_has_to_have_it():
    wanted = Kept({"block.scheduler": "none"}, target=KeptOn(disk="sdc,sdd"))
    evidence, files = seen()
    there = {
        "/sys/block/sdc/queue/scheduler": "[none] bfq",
        "/sys/block/sdd/queue/scheduler": "bfq",
    }
    (row,) = drift(wanted, evidence, HostFiles({**files.texts, **there}))
    assert (row.effective, row.state) == ("none on sdc, bfq on sdd", "changed")


def test_the_table_has_three_columns_and_a_count():
    text = render_drift("db1", drift(KEPT, *seen()), 100)
    assert text.splitlines()[0].split() == ["setting", "kept", "stored", "in", "force"]
    assert text.endswith("db1: 8 settings, 1 not as kept\n")
    assert "not stored: a restart loses it" in text


@pytest.mark.parametrize(
    ("environment", "state"),
    [
        ({"NOTE": "a b", "GLIBC_TUNABLES": "glibc.malloc.arena_max=2"}, "kept"),
        ({"NOTE": "c", "GLIBC_TUNABLES": "glibc.malloc.arena_max=8"}, "not loaded"),
        ({}, "not loaded"),
        (None, "unknown"),  # another user's process: it may not be read
    ],
)
def test_the_environment_of_the_process_is_compared_where_it_may_be_read(environment, state):
    wanted = {"env.NOTE": "a b", "alloc.tunables": "glibc.malloc.arena_max=2"}
    kept = Kept(wanted, target=KEPT.target)
    evidence, _ = seen()
    texts = {file.path: file.text for file in native.write(kept)}
    found = drift(kept, evidence, HostFiles(texts, environment))
    assert {row.state for row in found} == {state}


def test_a_dot_within_the_name_of_a_sysctl_is_written_as_a_slash():
    kept = Kept({}, [], {}, "mariadb", (10, 11, 19))
    (place,) = places_of("kernel.sysctl.net.ipv4.conf.eth0/100.rp_filter", kept)
    assert place == "/proc/sys/net/ipv4/conf/eth0.100/rp_filter"
