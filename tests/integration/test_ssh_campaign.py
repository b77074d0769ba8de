"""A campaign over ssh, end to end: server and load on different hosts, and nothing stays there."""

import json
import os
import secrets
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import command_line
from command_line import MAIN
from integration.server_steps import open_folder
from integration.ssh_steps import hosts, join
from mydyno.host import Local
from mydyno.loads.sysbench import parse_session
from mydyno.server import find, prepare

pytestmark = [pytest.mark.root, pytest.mark.mysqld, pytest.mark.slow]

SPEC = """
[campaign]
name = "far"
[stack]
host = "ssh://root@{db}"
{load}
server = "auto"
device = "here"
[treatments.STOCK]
[treatments.POOL]
"mysqld.innodb_buffer_pool_size" = "64M"
[workloads.rw]
tool = "sysbench-oltp"
script = "oltp_read_write"
tables = 1
table_size = 2000
threads = 2
rate = 100
[protocol]
warmup_s = 1
window_s = 3
blocks = 1
"""
TLS = """
[campaign]
name = "far"
[stack]
host = "{db}"
load = "{load}"
server = "auto"
[treatments.STOCK]
"net.transport" = "tcp"
"net.tls" = "on"
[treatments.PLAIN]
"net.transport" = "tcp"
"net.tls" = "off"
[workloads.sysbench]
{tool}
threads = 2
[workloads.slap]
tool = "mysqlslap"
auto_generate = true
queries = 200
[protocol]
warmup_s = 1
window_s = 3
blocks = 1
"""
TPCC = 'tool = "sysbench-tpcc"\ncheck = 1'
OLTP = 'tool = "sysbench-oltp"\nscript = "oltp_read_write"\ntables = 1\ntable_size = 2000'
CRASH = """
[stack]
host = "ssh://root@{db}"
device = {{ lab = "loop", size = "512M" }}
[treatments.STOCK]
[workloads.rw]
tool = "sysbench-oltp"
script = "oltp_read_write"
"""
LINK = """
[stack]
host = "ssh://root@{db}"
server = "auto"
[treatments.STOCK]
[treatments.LINK]
"net.address" = "lab"
[workloads.rw]
tool = "sysbench-oltp"
script = "oltp_read_only"
"""


@pytest.fixture
def net():
    with hosts("db", "client") as made:
        join(made.db, made.client)
        made.tag = secrets.token_hex(4)
        yield made


# What the test's own campaigns make in /var/tmp is seen among that of others at the same time.
TAGGED = (
    "import secrets\nreal = secrets.token_hex\n"
    "secrets.token_hex = lambda size: ('{tag}' + real(size))[: 2 * size]\n"
)


def work_folders(net):
    return list(Path("/", "var", "tmp").glob(f"mydyno-{net.tag}*"))


def mydyno(net, *arguments):
    env = {**os.environ, "MYDYNO_SSH_CONFIG": str(net.config)}
    code = TAGGED.format(tag=net.tag) + MAIN
    return command_line.mydyno(*arguments, code=code, env=env, cwd=net.folder)


def spec(net, load=""):
    path = net.folder / "far.toml"
    path.write_text(SPEC.format(db=net.db.address, load=load))
    return path


def long_spec(net):
    """Trials that are long enough to be cut, however late we are."""
    path = spec(net)
    path.write_text(path.read_text().replace("window_s = 3", "window_s = 15"))
    return path


def clean(net):
    for far in (net.db, net.client):
        end = time.monotonic() + 60
        while (far.processes() or far.left()) and time.monotonic() < end:
            time.sleep(0.2)
        assert far.processes() == []
        assert far.left() == []
    assert work_folders(net) == []


def outcomes(run):
    events = [
        json.loads(line)["event"] for line in (run / "journal.jsonl").read_text().splitlines()
    ]
    return [e["outcome"] for e in events if e["type"] == "finished"]


def test_server_and_load_on_two_far_hosts(net):
    path, run = spec(net, f'load = "ssh://root@{net.client.address}"'), net.folder / "run"
    done = mydyno(net, "run", path, "-o", "run")  # as one types it
    assert done.returncode == 0, done.stderr
    found = outcomes(run)
    assert [o["status"] for o in found] == ["ok", "ok"], found
    for number in (0, 1):
        trial = run / "trials" / f"{number:04d}"
        assert {"load.out", "load.err", "probe.bin", "my.cnf", "mysqld.err"} <= {
            p.name for p in trial.iterdir()
        }
        assert (trial / "load.start").read_text().endswith(" wall\n")
    clean(net)
    assert not (run / "work").exists()
    files = [p for p in run.rglob("*") if p.is_file()]
    assert [p for p in files if b"My1-" in p.read_bytes()] == []  # as our passwords begin
    done = mydyno(net, "status", run)
    assert "finished; 2 of 2 trials" in done.stdout


def test_a_load_beside_a_far_server_goes_over_its_socket(net):
    run = net.folder / "run"
    done = mydyno(net, "run", spec(net), "-o", run)
    assert done.returncode == 0, done.stderr
    assert [o["status"] for o in outcomes(run)] == ["ok", "ok"]
    clean(net)


def test_plan_and_inspect(net):
    done = mydyno(net, "plan", spec(net))
    assert done.returncode == 0, done.stderr
    assert "MariaDB" in done.stdout
    done = mydyno(net, "inspect", "--host", f"ssh://root@{net.db.address}", "--json")
    assert json.loads(done.stdout)["memory_bytes"] > 1 << 28
    clean(net)


def test_an_audit_of_a_server_on_a_far_host(net):
    """Its process, disk and option files are read there; nothing is left."""
    host = Local()
    folder = open_folder()
    instance = prepare(host, find(host, "auto"), places=(folder / "home", folder / "data"))
    instance.place.owned.write_text("[mysqld]\nsort_buffer_size = 64M\n")
    try:
        instance.initialise()
        instance.start()
        far = ("--host", f"ssh://root@{net.db.address}", "--server", instance.place.admin)
        done = mydyno(net, "audit", *far, "--watch", "1s", "--json")
        assert done.returncode == 1, done.stderr
        found = {
            one["finding"]["rule"]: one["finding"] for one in json.loads(done.stdout)["findings"]
        }
        assert found["sort-buffer-cliff"]["where"] == f"{instance.place.owned}:2"
        assert found["sort-buffer-cliff"]["figures"]["process.allocator"] == "glibc"
    finally:
        instance.close()
        shutil.rmtree(folder)
    clean(net)


def begun(net, run, process):
    """Wait until the first trial's load has reported."""
    raw = run / "trials" / "0000" / "load.out"
    end = time.monotonic() + 300
    while not (raw.exists() and raw.stat().st_size) and time.monotonic() < end:
        assert process.poll() is None, process.communicate()
        time.sleep(0.1)


def started(net, path, run, code=MAIN):
    code = TAGGED.format(tag=net.tag) + code
    argv = [sys.executable, "-c", code, "run", str(path), "-o", str(run)]
    env = {**os.environ, "MYDYNO_SSH_CONFIG": str(net.config)}
    return subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, env=env, cwd=net.folder)


def test_a_load_goes_on_through_a_cut(net):
    run = net.folder / "run"
    process = started(net, long_spec(net), run)
    begun(net, run, process)
    net.db.hang_up()
    _, errors = process.communicate(timeout=1800)
    assert process.returncode == 0, errors
    assert [o["status"] for o in outcomes(run)] == ["ok", "ok"]
    clean(net)


# The host gives us up sooner than the link comes back.
IMPATIENT = (
    "import mydyno.host.ssh as s\n"
    "s.Ssh.__init__.__kwdefaults__.update(lease_s=10.0, patience_s=5.0)\n"
)


def test_a_host_lost_in_a_trial_makes_it_unknown_and_recovers(net):
    run = net.folder / "run"
    process = started(net, long_spec(net), run, IMPATIENT + MAIN)
    begun(net, run, process)
    net.db.cut(40)
    _, errors = process.communicate(timeout=1800)
    statuses = [o["status"] for o in outcomes(run)]
    assert statuses[0] == "unknown", errors
    done = mydyno(net, "run", long_spec(net), "-o", run)  # where the host was away for too long
    assert done.returncode == 0, done.stderr
    assert [o["status"] for o in outcomes(run)][1:] == ["ok"]
    clean(net)


def test_a_killed_campaign_leaves_no_process_and_is_resumed(net):
    run = net.folder / "run"
    process = started(net, spec(net), run)
    begun(net, run, process)
    process.kill()
    process.communicate()
    end = time.monotonic() + 120
    while (net.db.processes() or net.db.left()) and time.monotonic() < end:
        time.sleep(0.2)
    assert net.db.processes() == []
    assert net.db.left() == []
    done = mydyno(net, "run", spec(net), "-o", run)
    assert done.returncode == 0, done.stderr
    assert [o["status"] for o in outcomes(run)] == ["ok", "ok"]
    clean(net)


def test_rollback_removes_what_a_killed_run_has_left(net):
    run = net.folder / "run"
    process = started(net, spec(net), run)
    begun(net, run, process)
    process.kill()
    process.communicate()
    (left,) = work_folders(net)
    done = mydyno(net, "rollback", run)
    assert done.returncode == 0, done.stderr
    assert f"removed: {left}" in done.stdout
    clean(net)
    assert not (run / "work").exists()


def test_a_lab_disk_on_a_far_host(net):
    path, run = spec(net), net.folder / "run"
    lab = 'device = { lab = "loop", size = "512M", class = "azure-p30" }'
    path.write_text(path.read_text().replace('device = "here"', lab))
    done = mydyno(net, "run", path, "-o", run)
    assert done.returncode == 0, done.stderr
    assert [o["status"] for o in outcomes(run)] == ["ok", "ok"]
    clean(net)


def test_the_power_of_a_far_disk_is_cut(net):
    path, run = net.folder / "far.toml", net.folder / "run"
    path.write_text(CRASH.format(db=net.db.address))
    done = mydyno(net, "lab", "crash-test", path, "-o", run, "--cuts", "2", "--json")
    assert done.returncode == 0, done.stderr
    (stock,) = json.loads(done.stdout)
    assert (stock["cuts"], stock["lossy"], stock["corrupt"]) == (2, 0, 0)
    clean(net)


@pytest.mark.parametrize("where", [("db", "client"), ("db", "db"), ("local", "client")])
def test_scripts_and_certificates_go_where_the_load_is(net, where):
    known = {"db": net.db.address, "client": net.client.address}
    db, load = (f"ssh://root@{known[one]}" if one in known else one for one in where)
    path, run = net.folder / "far.toml", net.folder / "run"
    tool = TPCC if where == ("db", "client") else OLTP  # once with a folder of scripts
    path.write_text(TLS.format(db=db, load=load, tool=tool))
    done = mydyno(net, "run", path, "-o", run)
    assert done.returncode == 0, done.stderr
    found = outcomes(run)
    assert [o["status"] for o in found] == ["ok"] * 4, found
    spoken = set()
    for outcome in found:
        with (run / "trials" / f"{outcome['trial']['id']:04d}" / "load.out").open("rb") as lines:
            if outcome["trial"]["workload"].startswith("sysbench"):
                secret = parse_session(lines)["ssl_cipher"] != ""
                spoken.add((outcome["trial"]["treatment"], secret))
    assert spoken == {("STOCK", True), ("PLAIN", False)}
    clean(net)
    files = [p for p in run.rglob("*") if p.is_file()]
    assert [p for p in files if b"PRIVATE KEY" in p.read_bytes()] == []


def test_a_labs_link_is_not_made_on_a_far_host(net):
    path = net.folder / "far.toml"
    path.write_text(LINK.format(db=net.db.address))
    done = mydyno(net, "run", path, "-o", net.folder / "run")
    assert done.returncode == 2, done.stderr
    assert "a lab link exists on the local host only" in done.stderr
    clean(net)
