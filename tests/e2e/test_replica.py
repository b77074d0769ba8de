"""A replica beside the server: it follows, its lag is measured, and nothing of it is left."""

import json
from pathlib import Path

import pytest

from command_line import mydyno
from integration.server_steps import CACHE

pytestmark = [pytest.mark.root, pytest.mark.mysqld, pytest.mark.slow]

SERIAL = {"auto": "slave_parallel_threads", "mysql-8.0.33": "replica_parallel_workers"}
FEWEST = {"auto": 0, "mysql-8.0.33": 1}
SPEC = """
[stack]
server = "{server}"
replica = true
device = {{ lab = "loop", size = "2G", flush_latency_us = 10000 }}
[treatments.SERIAL]
"mysqld.{key}" = {fewest}
[treatments.PARALLEL]
"mysqld.{key}" = 8
[workloads.w]
tool = "sysbench-oltp"
script = "oltp_update_index"
tables = 4
table_size = 5000
threads = 8
options = {{ rand_type = "uniform" }}
[protocol]
kind = "fixed"
warmup_s = 3
window_s = 8
blocks = 1
[decide]
baseline = "SERIAL"
guards = {{}}
"""


@pytest.mark.parametrize("server", SERIAL)
def test_a_replica_that_applies_one_by_one_falls_behind(folder, server):
    """Each of its commits waits for the disk, where those of eight connections share a flush."""
    where = server if server == "auto" else str(CACHE / "servers" / server)
    spec, run = folder / "spec.toml", folder / "run"
    spec.write_text(SPEC.format(server=where, key=SERIAL[server], fewest=FEWEST[server]))
    done = mydyno("run", spec, "-o", run, timeout=1800)
    assert done.returncode == 0, done.stderr
    report = json.loads(mydyno("report", run, "--json").stdout)
    assert {t["status"] for t in report["trials"]} == {"ok"}, report["trials"]
    serial, parallel = (
        next(t["metrics"] for t in report["trials"] if t["treatment"] == name)
        for name in ("SERIAL", "PARALLEL")
    )
    assert serial["replica_speed_ratio"] < 0.9
    assert parallel["replica_speed_ratio"] > serial["replica_speed_ratio"]
    assert serial["replica_lag_s"] > parallel["replica_lag_s"]
    assert "The replica's share of the server's work" in " ".join(done.stdout.split())
    left = [p for p in Path("/proc").glob("[0-9]*/cmdline") if str(run) in _read(p)]
    assert left == []
    assert not (run / "work").exists()


def test_a_replica_that_cannot_follow_fails_the_trial_in_its_own_words(folder):
    text = SPEC.format(server="auto", key=SERIAL["auto"], fewest=0)
    text = text.replace('"mysqld.slave_parallel_threads" = 8', '"mysqld.server_id" = 2')
    spec, run = folder / "spec.toml", folder / "run"
    spec.write_text(text)
    done = mydyno("run", spec, "-o", run, timeout=1800)
    report = json.loads(mydyno("report", run, "--json").stdout)
    ends = {t["treatment"]: (t["status"], t["error"]) for t in report["trials"]}
    assert ends["SERIAL"][0] == "ok", done.stderr
    status, error = ends["PARALLEL"]
    assert status == "failed"
    assert error.startswith("stack.replica: nothing arrives from the server; the replica reports")
    assert "server ids" in error
    assert not (run / "work").exists()


def _read(path):
    try:
        return path.read_bytes().decode(errors="replace")
    except OSError:  # it has ended
        return ""
