"""A campaign on a real server and lab disk, killed at a record of each kind, and what is left."""

import gzip
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from command_line import COMMAND, has_output, mydyno, reached
from mydyno.host import Local
from mydyno.lab import LabSpec, create

pytestmark = [pytest.mark.root, pytest.mark.mysqld, pytest.mark.slow]

SPEC = """
[campaign]
name = "e2e"
[stack]
server = "auto"
device = { lab = "loop", size = "512M", class = "azure-p30" }
[bundles.DISK]
"block.scheduler" = "kyber"
"fs.mount" = "noatime"
[bundles.MYSQL]
"mysqld.innodb_buffer_pool_size" = "64M"
"mysqld.sort_buffer_size" = "1M"
"alloc.library" = "jemalloc"
"limits.nofile" = 12345
"env.MYDYNO_TEST" = "yes"
"net.transport" = "tcp"
[workloads.rw]
tool = "sysbench-oltp"
script = "oltp_read_write"
tables = 1
table_size = 3000
threads = 2
[design]
rungs = ["STOCK", "ALL"]
[protocol]
warmup_s = 1
window_s = 2
blocks = 2
"""

# dies by SIGKILL before or after the n-th record of a kind
MORTAL = """
import os, signal, sys
from mydyno.journal import FileJournal
from mydyno.cli import main
kind, moment, left = sys.argv.pop(1).split(":")
left, append = int(left), FileJournal.append
def mortal(self, event):
    global left
    mine = type(event).__name__ == kind
    left -= mine
    if mine and left == 0 and moment == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    append(self, event)
    if mine and left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
FileJournal.append = mortal
main()
"""
KILLS = [  # the others: on fakes, in test_killed_campaign.py
    "Opened:after:1",
    "Prepared:after:1",
    "Started:after:1",
    "Changing:before:2",
    "Changing:after:4",
    "Interruption:after:1",
    "Finished:after:1",
    "Finished:after:3",
]


def output(*argv):
    return subprocess.run(argv, capture_output=True, text=True, check=False).stdout


def schedulers():
    """Return the scheduler of each loop device that nobody uses at this moment."""
    free = (p for p in Path("/sys/block").glob("loop*") if not (p / "loop").exists())
    return {p.name: (p / "queue/scheduler").read_text() for p in free}


def left_over(folder):
    """Return what a campaign in `folder` has left on this machine."""
    mounts = [line for line in output("mount").splitlines() if str(folder) in line]
    loops = [line for line in output("losetup", "-a").splitlines() if str(folder) in line]
    processes = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if str(folder) in line and entry.name != str(os.getpid()) and "pytest" not in line:
            processes.append(line)
    work = [str(p) for p in folder.glob("run/work")]
    return mounts + loops + processes + work


def events(run):
    return [json.loads(line)["event"] for line in (run / "journal.jsonl").read_text().splitlines()]


@pytest.fixture
def folder(folder):
    (folder / "spec.toml").write_text(SPEC)
    return folder


def test_killed_at_each_kind_of_record_and_run_again(folder):
    run, found = folder / "run", schedulers()
    for kill in KILLS:
        done = mydyno(kill, "run", folder / "spec.toml", "-o", run, code=MORTAL)
        assert done.returncode == -signal.SIGKILL, (kill, done.stderr)
    done = mydyno("run", folder / "spec.toml", "-o", run)
    assert done.returncode == 0, done.stderr
    finished = [e["outcome"] for e in events(run) if e["type"] == "finished"]
    assert [o["trial"]["id"] for o in finished] == [0, 1, 2, 3]
    assert [o["status"] for o in finished] == ["ok"] * 4, finished
    assert left_over(folder) == []
    now = schedulers()
    assert {name: now.get(name, value) for name, value in found.items()} == found
    changes = {}
    for outcome in finished:
        path = run / "trials" / f"{outcome['trial']['id']:04d}" / "changes.json"
        changes[outcome["trial"]["treatment"]] = json.loads(path.read_text())
    assert changes["STOCK"] == []
    assert {c["key"] for c in changes["ALL"]} == {
        "db/fs.mount",
        "db/block.scheduler",
        "db/limits.nofile",
        "db/env.MYDYNO_TEST",
        "db/alloc.library",
        "db/net.transport",
        "db/mysqld.innodb_buffer_pool_size",
        "db/mysqld.sort_buffer_size",
    }
    secrets = [p for p in run.rglob("*") if p.is_file() and b"password" in p.read_bytes()]
    assert secrets == []


def test_interrupted_it_ends_in_seconds_and_leaves_nothing_running(folder):
    run = folder / "run"
    argv = [*COMMAND, "run", str(folder / "spec.toml"), "-o", str(run)]
    process = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)
    reached(process, lambda: has_output(run / "trials" / "0000" / "load.out"))
    began_s = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "run the same command again to resume" in errors
    assert time.monotonic() - began_s < 15
    assert [line for line in left_over(folder) if not line.endswith("/work")] == []
    done = mydyno("rollback", run)
    assert done.returncode == 0, done.stderr
    assert left_over(folder) == []


def test_a_treatment_that_cannot_be_measured_fails_its_own_trials_only(folder):
    spec = SPEC.replace('"alloc.library" = "jemalloc"', '"mysqld.init_file" = "/nowhere"')
    spec = spec.replace('"ALL"]', '"DISK+MYSQL", "DATA"]')
    bad = '[bundles.DATA]\n"mysqld.innodb_data_file_path" = "nonsense:12Q"\n[workloads.rw]'
    (folder / "spec.toml").write_text(spec.replace("[workloads.rw]", bad))
    done = mydyno("run", folder / "spec.toml", "-o", folder / "run", "--json")
    assert done.returncode == 0, done.stderr
    rows = {r["name"]: r for r in json.loads(done.stdout)["treatments"]}
    assert rows["STOCK"]["trials"] >= 2  # more, where a trial of another was void
    assert rows["DISK+MYSQL"]["verdict"] == rows["DATA"]["verdict"] == "failed"
    assert any("initialising the data directory failed" in w for w in rows["DATA"]["warnings"])
    warning = next(w for w in rows["DISK+MYSQL"]["warnings"] if "its log: " in w)
    assert "/nowhere" in Path(warning.rpartition("its log: ")[2]).read_text()
    assert "warning: DATA: " in done.stderr
    assert left_over(folder) == []


@pytest.mark.parametrize(
    ("old", "new", "code", "message"),
    [
        ("sort_buffer_size", "sort_bufer_size", 2, "sort_buffer_size"),
        ('buffer_pool_size" = "64M"', 'buffer_pool_size" = "lots"', 2, "innodb_buffer_pool_size"),
        ('"kyber"', '"noop"', 2, "noop is called none since Linux 5.0"),
        ("azure-p30", "azure-p31", 2, "azure-p31"),
        ('server = "auto"', 'server = "/nowhere"', 2, "no bin/mariadbd or bin/mysqld there"),
        ('"env.MYDYNO_TEST" = "yes"', '"kernel.sysctl.vm.swappiness" = 1', 4, "--allow host"),
        ("innodb_buffer_pool_size", "innodb_redo_log_capacity", 2, "innodb_log_file_size"),
    ],
)
def test_an_invalid_spec_is_refused_before_any_trial(folder, old, new, code, message):
    (folder / "spec.toml").write_text(SPEC.replace(old, new))
    done = mydyno("run", folder / "spec.toml", "-o", folder / "run")
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert left_over(folder) == []
    assert not list(folder.glob("run/trials/*"))


def test_a_server_that_dies_under_its_load_fails_its_trial_only(folder):
    run = folder / "run"
    (folder / "spec.toml").write_text(SPEC.replace("window_s = 2", "window_s = 8"))
    argv = [*COMMAND, "run", str(folder / "spec.toml"), "-o", str(run), "--json"]
    process = subprocess.Popen(argv, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    reached(process, lambda: has_output(run / "trials" / "0001" / "load.out"))
    os.kill(int((run / "work" / "server" / "mysqld.pid").read_text()), signal.SIGKILL)
    results, _ = process.communicate(timeout=1800)
    assert process.returncode == 0
    finished = [e["outcome"] for e in events(run) if e["type"] == "finished"]
    assert [o["status"] for o in finished] == ["ok", "failed", "ok", "ok"]
    assert finished[1]["error"].startswith("the server died: ")
    assert json.loads(results)["winner"] is None
    assert left_over(folder) == []


@pytest.mark.alone
def test_a_setting_of_the_host_is_restored_after_a_kill(folder):
    swappiness = Path("/proc/sys/vm/swappiness")
    found = swappiness.read_text()
    wanted = "17" if found.strip() != "17" else "18"
    text = SPEC.replace('"env.MYDYNO_TEST" = "yes"', f'"kernel.sysctl.vm.swappiness" = {wanted}')
    text = text.replace('rungs = ["STOCK"', 'seed = 2\nrungs = ["STOCK"')
    text = text.replace("blocks = 2", "blocks = 1").replace("window_s = 2", "window_s = 1")
    (folder / "spec.toml").write_text(text)
    argv = ["run", folder / "spec.toml", "-o", folder / "run", "--allow", "host"]
    try:
        done = mydyno("Finished:before:1", *argv, code=MORTAL)
        assert done.returncode == -signal.SIGKILL, done.stderr
        done = mydyno("rollback", folder / "run")
        assert f"restored: db/kernel.sysctl.vm.swappiness = {found.strip()}" in done.stdout
        assert swappiness.read_text() == found
        done = mydyno(*argv)
        assert done.returncode == 0, done.stderr
        assert swappiness.read_text() == found
        values = [e["after"] for e in events(folder / "run") if e.get("key", "").endswith("iness")]
        assert wanted in values
    finally:
        swappiness.write_text(found)
    assert left_over(folder) == []


def test_switched_hot_the_server_goes_on_running(folder):
    text = SPEC.replace('[bundles.DISK]\n"block.scheduler" = "kyber"\n"fs.mount" = "noatime"', "")
    for line in (
        '"alloc.library" = "jemalloc"',
        '"limits.nofile" = 12345',
        '"env.MYDYNO_TEST" = "yes"',
        '"net.transport" = "tcp"',
    ):
        text = text.replace(line, "")
    (folder / "spec.toml").write_text(text.replace("warmup_s = 1", 'warmup_s = 1\nreset = "none"'))
    done = mydyno("run", folder / "spec.toml", "-o", folder / "run")
    assert done.returncode == 0, done.stderr
    finished = [e["outcome"] for e in events(folder / "run") if e["type"] == "finished"]
    assert [o["status"] for o in finished] == ["ok"] * 4, finished
    starts = set()
    for outcome in finished:
        log = folder / "run" / "trials" / f"{outcome['trial']['id']:04d}" / "mysqld.err"
        starts |= {line for line in log.read_text().splitlines() if " as process " in line}
    assert len(starts) == 1, starts


FILES = """
[campaign]
name = "files"
[stack]
server = "none"
device = { lab = "loop", size = "256M", class = "azure-p15" }
[factors]
"block.scheduler" = ["none", "kyber"]
[workloads.rndrd]
tool = "sysbench-fileio"
test_mode = "rndrd"
threads = 4
file_num = 2
file_total_size = "64M"
extra_flags = ["direct"]
[workloads.mixed]
tool = "fio"
options = { rw = "randrw", bs = "16k", size = "64M", direct = 1, ioengine = "libaio", iodepth = 8 }
[protocol]
warmup_s = 1
window_s = 2
blocks = 2
[decide]
baseline = "scheduler=none"
"""


def test_files_on_a_lab_disk_need_no_server_and_a_finished_campaign_is_only_shown(folder):
    (folder / "spec.toml").write_text(FILES)
    done = mydyno("run", folder / "spec.toml", "-o", folder / "run", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    rows = {(r["name"], r["workload"]): r for r in found["treatments"]}
    assert {w for _, w in rows} == {"rndrd/4", "mixed"}
    assert found["response"] == "iops"
    for row in rows.values():
        assert row["trials"] >= 2, row
        assert 660 < row["value"]["estimate"] < 1320  # the cap of the class is 1100
    journal = (folder / "run" / "journal.jsonl").read_bytes()
    again = mydyno("run", folder / "spec.toml", "-o", folder / "run", "--json")
    assert again.stdout == done.stdout
    assert "preparing" not in again.stderr
    assert (folder / "run" / "journal.jsonl").read_bytes() == journal
    assert left_over(folder) == []


CREDITS = """
[campaign]
name = "credits"
[stack]
server = "none"
device = { lab = "loop", size = "256M", class = "azure-p10" }
[treatments.spent]
"disk.class" = "azure-p4"
[treatments.rested]
"disk.credits" = "0.4%"
[workloads.rndrd]
tool = "fio"
options = { rw = "randread", bs = "4k", size = "64M", direct = 1, ioengine = "libaio", iodepth = 8 }
[protocol]
kind = "fixed"
warmup_s = 1
window_s = 42
blocks = 1
[decide]
baseline = "spent"
guards = {}
"""


def test_credits_and_class_of_a_disk_are_settings_and_both_plateaus_are_shown(folder):
    """A full bucket lasts for 1,800 s, 0.4 % of it for 7.2 s."""
    (folder / "spec.toml").write_text(CREDITS)
    done = mydyno("run", folder / "spec.toml", "-o", folder / "run", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [row["trials"] for row in found["treatments"]] == [1, 1], "none is void"
    values = {row["name"]: row["value"]["estimate"] for row in found["treatments"]}
    assert values["spent"] == pytest.approx(120, rel=0.05)
    (burst,) = found["plateaus"]
    assert burst["treatment"] == "rested"
    assert burst["after"] == pytest.approx(500, rel=0.1)
    assert burst["before"] > 1000
    assert burst["work"] == pytest.approx(7.2 * 3000 + 43 * 500, rel=0.1)
    assert left_over(folder) == []


def test_a_disk_that_never_bursts_has_no_credits_to_set(folder):
    (folder / "spec.toml").write_text(CREDITS.replace("azure-p10", "azure-p30"))
    done = mydyno("run", folder / "spec.toml", "-o", folder / "run")
    assert "disk.credits: this disk never bursts" in done.stderr
    assert left_over(folder) == []


SLOW = """
[campaign]
name = "slow"
[stack]
server = "auto"
[treatments.few]
"mysqld.slow_query_log" = 1
"mysqld.long_query_time" = 10
[treatments.all]
"mysqld.slow_query_log" = 1
"mysqld.long_query_time" = 0
[workloads.rw]
tool = "sysbench-oltp"
script = "oltp_read_write"
table_size = 1000
threads = 2
[protocol]
warmup_s = 1
window_s = 3
blocks = 1
[decide]
baseline = "few"
"""


def test_a_trial_keeps_its_slow_log_by_class(folder):
    (folder / "spec.toml").write_text(SLOW)
    done = mydyno("run", folder / "spec.toml", "-o", folder / "run")
    assert done.returncode == 0, done.stderr
    shown = mydyno("report", folder / "run", "--json")
    result = json.loads(shown.stdout)
    trials = {
        t["treatment"]: folder / "run" / "trials" / f"{t['id']:04d}" for t in result["trials"]
    }
    with gzip.open(trials["all"] / "slow.log.gz", "rt") as log:
        assert "# User@Host: mydyno[mydyno]" in log.read()
    classes = {one["fingerprint"]: one["figures"] for one in result["statements"]}
    updated = classes["update sbtestN set k=k+? where id=?"]
    assert set(updated) == {"all"}
    assert updated["all"]["calls_per_s"] > 1
    assert 0 < updated["all"]["mean_s"] < 1
    assert "update sbtestN set k=k+? where id=?" in (folder / "run" / "report.html").read_text()
    assert left_over(folder) == []


HERE = """
[campaign]
name = "here"
[stack]
server = "none"
device = "here"
[treatments.found]
[treatments.moved]
"block.read_ahead_kb" = 64
"fs.mount" = "noatime"
[workloads.io]
tool = "fio"
options = { rw = "randread", bs = "16k", size = "16M", direct = 1 }
[protocol]
warmup_s = 1
window_s = 2
blocks = 2
"""


@pytest.fixture
def mounted(folder):
    """A filesystem that is not the campaign's; a lab disk of the test stands for a real one."""
    spec = LabSpec(f"own-{os.getpid()}", 4 << 30)
    device, where = create(Local(), spec, folder / "own"), folder / "mnt"
    where.mkdir()
    subprocess.run(["mkfs.ext4", "-q", "-F", device.device], check=True)
    subprocess.run(["mount", device.device, where], check=True)
    try:
        yield device, where
    finally:
        device.remove()


def test_a_disk_and_a_mount_of_the_host_are_moved_by_consent_and_put_back(folder, mounted):
    device, where = mounted
    (folder / "spec.toml").write_text(HERE)
    ahead = Path(f"/sys/block/{device.name}/queue/read_ahead_kb")
    found = ahead.read_text(), output("findmnt", "-no", "OPTIONS", str(where))
    argv = ["run", folder / "spec.toml", "-o", where / "run"]
    done = mydyno(*argv)
    assert done.returncode == 4, done.stderr
    assert "block.read_ahead_kb is a host-wide setting" in done.stderr
    assert not (where / "run").exists()
    done = mydyno(*argv, "--allow", "host", "--json")
    assert done.returncode == 0, done.stderr
    assert min(r["trials"] for r in json.loads(done.stdout)["treatments"]) >= 2
    assert (ahead.read_text(), output("findmnt", "-no", "OPTIONS", str(where))) == found
    moved = {
        e["key"]: e["after"]
        for e in events(where / "run")
        if e.get("trial", -1) != -1 and "key" in e
    }
    assert moved.keys() == {"db/block.read_ahead_kb", "db/fs.mount"}
    changes = [json.loads(p.read_text()) for p in (where / "run" / "trials").glob("*/changes.json")]
    assert sorted(len(c) for c in changes)[:2] == [0, 0]
    assert {len(c) for c in changes} == {0, 2}
