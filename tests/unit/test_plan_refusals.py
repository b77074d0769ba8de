"""What `plan` refuses by itself: reasons that the spec and the host already show.

Each would otherwise end a campaign after its disks were made and its data filled.
"""

import json
import os
import tempfile
from pathlib import Path

import pytest

from command_line import mydyno
from mydyno.campaign.spec import DeviceTable, StackTable
from mydyno.cli.benches import build
from mydyno.cli.recipes import SpecSource
from mydyno.host import Local
from mydyno.lab.loop_lab import binary
from mydyno.model import RefusedError, SpecError
from mydyno.stack.layers import ServerKind, ServerPlace, layers
from mydyno.stack.protocol import full_key, split
from mydyno.testbed.preflight import refuse_occupied

SPEC = """
[stack]
server = "none"
device = DEVICE

[treatments.FOUND]

[treatments.ONE]
SETTING

[workloads.files]
tool = "sysbench-fileio"
test_mode = "rndrd"
file_total_size = "16M"
"""
LOOP = '{ lab = "loop", size = "64M" }'


def test_one_more_setting_is_compared_with_the_treatment_it_is_added_to():
    """What `why` prints: one treatment of factors or rungs is left, and the spec stays as it is."""
    given = ("--try", "mysqld.innodb_buffer_pool_size=1G", "--budget", "30m", "--json")
    done = mydyno("plan", "azure-raid-disks", *given)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    first, second = found["treatments"].items()
    assert [first[0], second[0]] == ["devices=2,type=xfs", "TRY"]
    assert second[1] == {**first[1], "db/mysqld.innodb_buffer_pool_size": "1G"}
    assert (found["campaign"], found["budget_s"]) == ("azure-raid-disks-try", 1800)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--try", "sync_binlog"), "--try sync_binlog: write KEY=VALUE, such as mysqld."),
        (("--try", "mysqld.sync_binlog=1", "-t", "NONE"), "unknown treatment 'NONE'"),
        (("-t", "STOCK"), "--treatment needs --try KEY=VALUE"),
        (("--try", "mysqld.innodb_buffer_pool_sise=1G"), "innodb_buffer_pool_size"),
    ],
)
def test_what_cannot_be_tried_is_refused(given, message):
    done = mydyno("plan", "demo", *given)
    assert done.returncode == 2
    assert message in done.stderr


def test_more_threads_than_the_server_lets_in_are_refused():
    """The article's 200 were planned for a server that allows 151; each trial would have failed."""
    threads = ("--set", "workloads.ro.threads=151")
    refused = mydyno("plan", "demo", *threads)
    assert refused.returncode == 2
    assert "ro/151: 151 threads, but the server of STOCK lets 151 connections" in refused.stderr
    more = [f"treatments.{n}.mysqld.max_connections=152" for n in ("STOCK", "QUEUE")]
    more += [f'treatments."POOL-{n}M".mysqld.max_connections=152' for n in (144, 256)]
    sets = [word for each in more for word in ("--set", each)]
    done = mydyno("plan", "demo", *threads, *sets)
    assert done.returncode == 0, done.stderr


def planned(folder, device='"here"', setting=""):
    text = SPEC.replace("DEVICE", device).replace("SETTING", setting)
    return build(SpecSource(text, "a.toml", {}), ["host"], folder)


@pytest.mark.parametrize(
    ("device", "setting", "message"),
    [
        ('"there"', "", 'a.toml:4: stack.device: \'there\': write "here", "/dev/DISK", or'),
        (
            '{ lab = "lop" }',
            "",
            'a.toml:4: stack.device: lab = \'lop\': write "loop" or "vm"',
        ),
        (
            '{ lab = "loop", credits = "half" }',
            "",
            "a.toml:4: stack.device: credits 'half': must be empty, full, or a ratio",
        ),
        (
            '{ lab = "loop", size = "1K" }',
            "",
            "a.toml:4: stack.device: lab lab: size 1024: must be a multiple of 4096 bytes",
        ),
        (
            LOOP,
            '"fs.type" = "zfs"',
            'a.toml:9: ONE: fs.type: zfs needs a VM lab; write lab = "vm" into the device',
        ),
        (
            LOOP,
            '"fs.type" = "xfz"',
            "a.toml:9: ONE: fs.type: 'xfz' is not one of ext4, xfs, btrfs",
        ),
        (
            '{ lab = "vm" }',
            '"fs.zfs.recordsise" = "16K"\n"fs.type" = "zfs"',
            "a.toml:9: unknown ZFS property 'fs.zfs.recordsise'; did you mean",
        ),
        (
            '"here"',
            '"kernel.sysctl.vm.swapiness" = 1',
            "a.toml:9: ONE: unknown kernel setting 'kernel.sysctl.vm.swapiness'; did you mean",
        ),
        (
            '"here"',
            '"kernel.thp" = "sometimes"',
            "a.toml:9: ONE: kernel.thp = 'sometimes': one of always, madvise, never",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_its_line(tmp_path, device, setting, message):
    with pytest.raises(SpecError) as refused:
        planned(tmp_path, device, setting)
    assert str(refused.value).startswith(message)


@pytest.mark.skipif(not binary(), reason="the classes are those of mydyno-disk")
@pytest.mark.parametrize(("key", "name"), [("class", "aws-gp4"), ("vm", "azure-d2s-v4")])
def test_a_disk_or_vm_class_that_does_not_exist_is_refused(tmp_path, key, name):
    with pytest.raises(SpecError) as refused:
        planned(tmp_path, f'{{ lab = "loop", size = "64M", {key} = "{name}" }}')
    found = f"a.toml:4: stack.device.{key}: unknown value '{name}'; did you mean '{name[:5]}"
    assert str(refused.value).startswith(found)


def test_a_lab_disk_that_does_not_fit_on_the_host_is_refused(tmp_path):
    with pytest.raises(RefusedError, match=r"GiB free, but this campaign may need 900001\.0;"):
        planned(tmp_path, '{ lab = "loop", size = "900000G" }')


def test_a_missing_load_tool_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
    monkeypatch.setattr("mydyno.testbed.preflight.path_of", lambda _host, _tool: "")
    with pytest.raises(SpecError, match=r"a\.toml:11: workloads\.files: sysbench is not installed"):
        planned(tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can look into a device")
@pytest.mark.parametrize("device", ["/dev/no-such-disk", "/dev/null"])
def test_a_device_that_cannot_be_formatted_is_refused(tmp_path, device):
    path = tmp_path / "a.toml"
    path.write_text(SPEC.replace("DEVICE", f'"{device}"').replace("SETTING", ""))
    done = mydyno("plan", path)
    assert done.returncode == 4, done.stderr
    assert done.stderr.startswith(f"mydyno: {device} is not empty: it is no block device")


@pytest.mark.parametrize(
    ("old", "line", "message"),
    [
        ("MySQL) 5.5.62", 3, "MySQL 5.5.62 is not supported; use MySQL 5.6 or later"),
        ("MariaDB) 5.5.68", 3, "MariaDB 5.5.68 is not supported; use MariaDB 10.0 or later"),
        ("", 9, "no bin/mariadbd or bin/mysqld there on"),
    ],
)
def test_a_server_program_that_does_not_fit_is_refused_with_its_line(tmp_path, old, line, message):
    text = SPEC.replace("DEVICE", '"here"').replace("SETTING", '"server.build" = "/no/such"')
    with tempfile.TemporaryDirectory(prefix="mydyno-test-") as name:
        Path(name).chmod(0o755)  # root asks the program as nobody
        program = Path(name) / "bin/mysqld"
        program.parent.mkdir(mode=0o755)
        version = f"Ver {old.split()[-1]} ({old.split(')')[0]})" if old else "Ver 8.0.33"
        program.write_text(f"#!/bin/sh\necho 'mysqld  {version}'\n")
        program.chmod(0o755)
        (program.parent / "mysql").symlink_to("/bin/true")
        source = SpecSource(text.replace('"none"', f'"{name}"'), "a.toml", {})
        with pytest.raises(SpecError) as refused:
            build(source, ["host"], tmp_path)
    assert str(refused.value).startswith(f"a.toml:{line}: ")
    assert message in str(refused.value)


def test_data_that_are_none_or_do_not_fit_are_refused(tmp_path):
    stack = StackTable(device=DeviceTable(lab="loop", size="1M"), data=str(tmp_path))
    with pytest.raises(SpecError, match="not a data directory"):
        refuse_occupied(Local(), stack, tmp_path)
    (tmp_path / "mysql").mkdir()
    (tmp_path / "ibdata1").write_bytes(bytes(1 << 20))
    refuse_occupied(Local(), stack, tmp_path)
    (tmp_path / "undo001").write_bytes(b"x")
    with pytest.raises(RefusedError, match=r"holds 0\.0 GiB, and the device under test has 0\.0 f"):
        refuse_occupied(Local(), stack, tmp_path)


@pytest.mark.parametrize(
    ("layer", "settings", "message"),
    [
        ("alloc", {"library": "tcmalloc"}, "this server is linked to jemalloc"),
        ("alloc", {"library": "jemaloc"}, "did you mean 'jemalloc'?"),
        ("net", {"tls": "on", "transport": "tcp"}, "MySQL before 5.7.10 speaks TLS 1.1"),
        ("net", {"tls": "TLSv1.3"}, "needs TCP"),
        ("limits", {"nofil": "1"}, "did you mean 'limits.nofile'?"),
        ("env", {"LD_PRELOAD": "x"}, "set alloc.library"),
    ],
)
def test_a_layer_of_a_server_refuses_what_that_server_does_not_take(layer, settings, message):
    place = ServerPlace(ServerKind("mysql", (5, 6, 14), allocator="jemalloc"))
    with pytest.raises(SpecError) as refused:
        layers()[layer].validate(split({full_key(layer, k): v for k, v in settings.items()}), place)
    assert message in str(refused.value)
    layers()[layer].validate(split({}), place)
