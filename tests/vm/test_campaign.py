"""A campaign in a machine of its own: kernels, filesystems and an array as factors."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import mydyno_vm as vm
from mydyno.host import Local
from mydyno_vm.qemu import accelerator
from mydyno_vm.values import records

SPEC = """
[campaign]
name = "vm-{pid}"
[stack]
device = {{ lab = "vm", disks = 2, size = "1G" }}
[treatments.plain]
[treatments.newer]
"kernel.release" = "6.12"
"fs.type" = "xfs"
"raid.level" = "0"
"raid.chunk" = "64K"
"mysqld.sort_buffer_size" = "1M"
[treatments.pool]
"fs.type" = "zfs"
"fs.mkfs" = "-o ashift=12"
"fs.zfs.recordsize" = "16K"
"fs.zfs.compression" = "lz4"
"fs.zfs.log.recordsize" = "64K"
"mysqld.innodb_doublewrite" = "0"
[workloads.rw]
tool = "sysbench-oltp"
script = "oltp_read_write"
tables = 1
table_size = 1000
threads = 2
[design]
kind = "blocks"
[protocol]
kind = "fixed"
warmup_s = 2
window_s = 5
blocks = 1
"""


@pytest.mark.usefixtures("image")
def test_a_machine_is_the_host_of_a_campaign(timed, tmp_path):
    spec, run = tmp_path / "spec.toml", tmp_path / "run"
    spec.write_text(SPEC.format(pid=os.getpid()))
    argv = [Path(sys.executable).with_name("mydyno"), "run", spec, "-o", run, "--json"]
    with timed("a campaign of three trials"):
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    events = [
        json.loads(line)["event"] for line in (run / "journal.jsonl").read_text().splitlines()
    ]
    finished = [e["outcome"] for e in events if e["type"] == "finished"]
    assert [o["status"] for o in finished] == ["ok"] * 3, finished
    changes = {}
    for outcome in finished:
        path = run / "trials" / f"{outcome['trial']['id']:04d}" / "changes.json"
        changes[outcome["trial"]["treatment"]] = {
            c["key"]: c["after"] for c in json.loads(path.read_text())
        }
    assert changes["plain"] == {}
    assert changes["newer"]["db/kernel.release"] == "6.12"
    assert changes["newer"]["db/raid.level"] == "0"
    assert changes["pool"]["db/fs.zfs.recordsize"] == "16K"
    assert changes["pool"]["db/fs.zfs.log.recordsize"] == "64K"
    assert changes["pool"]["db/mysqld.innodb_log_group_home_dir"] == "../log"
    assert "timings are not valid" in (run / "facts" / "lab.txt").read_text() or not _emulated()
    assert [s for s in vm.listing() if s.spec.lab == f"vm-{os.getpid()}"] == []


def _emulated():
    record = records().folder.parent / "accelerator"
    return accelerator(Local(), vm.built(), record) == "tcg"


KILLED = """
[campaign]
name = "vmk-{pid}"
[stack]
device = {{ lab = "vm", disks = 1, size = "512M" }}
[treatments.a]
[treatments.b]
"fs.mount" = "noatime"
[workloads.files]
tool = "fio"
options = {{ rw = "randread", bs = "16k", size = "32M", direct = 1 }}
[design]
kind = "blocks"
[protocol]
kind = "fixed"
warmup_s = 1
window_s = 2
blocks = 1
"""


@pytest.mark.usefixtures("image")
def test_a_machine_ends_with_a_campaign_that_is_killed(timed, tmp_path):
    spec, run = tmp_path / "spec.toml", tmp_path / "run"
    spec.write_text(KILLED.format(pid=os.getpid()))
    argv = [Path(sys.executable).with_name("mydyno"), "run", spec, "-o", run]
    with timed("killed while it boots"):
        process = subprocess.Popen(argv, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 60
        while not _qemus() and time.monotonic() < end:
            time.sleep(0.1)
        time.sleep(2)
        process.kill()
        process.wait()
        end = time.monotonic() + 20
        while _qemus() and time.monotonic() < end:
            time.sleep(0.1)
    assert _qemus() == []
    subprocess.run([argv[0], "rollback"], check=True, capture_output=True)
    assert [s for s in vm.listing() if s.spec.lab == f"vmk-{os.getpid()}"] == []


def _qemus():
    pattern = f"qemu-system-x86_64 -name mydyno-vmk-{os.getpid()}"
    return subprocess.run(["pgrep", "-f", pattern], capture_output=True, check=False).stdout.split()
