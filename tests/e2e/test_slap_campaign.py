"""Campaigns with mysqlslap, and with btrfs as a treatment: intervals, and sizes on disk."""

import json
import shutil
from statistics import geometric_mean

import pytest

from command_line import mydyno

pytestmark = [pytest.mark.root, pytest.mark.mysqld, pytest.mark.slow]

SLAP = """
[campaign]
name = "slap"
[stack]
server = "auto"
device = { lab = "loop", size = "1G" }
[treatments.STOCK]
[treatments.COMMIT2]
"mysqld.innodb_flush_log_at_trx_commit" = 2
[treatments.TCP]
"net.transport" = "tcp"
[workloads.slap]
tool = "mysqlslap"
threads = 2
queries = 200
auto_generate = true
load_type = "write"
options = { number_int_cols = 10, auto_generate_sql_guid_primary = true }
[workloads.own]
tool = "mysqlslap"
queries = 200
query = "SELECT COUNT(*) FROM a; INSERT INTO a VALUES (1)"
create = "CREATE TABLE a (i int)"
[protocol]
warmup_s = 1
window_s = 4
blocks = 2
[decide]
guards = { storage_bytes = 0.5 }
"""
BTRFS = """
[campaign]
name = "btrfs"
[stack]
server = "none"
device = { lab = "loop", size = "512M" }
[treatments.ext4]
[treatments.btrfs]
"fs.type" = "btrfs"
"fs.mkfs" = "--metadata single --nodesize 16k"
[treatments.nodatacow]
"fs.type" = "btrfs"
"fs.mount" = "nodatacow,noatime,discard=async"
[treatments.zstd]
"fs.type" = "btrfs"
"fs.mount" = "compress-force=zstd,strictatime"
[workloads.io]
tool = "sysbench-fileio"
test_mode = "rndwr"
threads = 2
file_num = 4
file_total_size = "64M"
[protocol]
warmup_s = 1
window_s = 2
blocks = 2
"""


def campaign(folder, text):
    spec = folder / "spec.toml"
    spec.write_text(text)
    done = mydyno("run", spec, "-o", folder / "run", "--json", timeout=1800)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_mysqlslap_is_a_load_like_any_other(folder):
    found = campaign(folder, SLAP)
    assert found["response"] == "qps"
    rows = {(row["name"], row["workload"]): row for row in found["treatments"]}
    assert set(rows) == {(t, w) for t in ("STOCK", "COMMIT2", "TCP") for w in ("slap/2", "own/1")}
    for row in rows.values():
        assert row["trials"] >= 1, row  # windows of two seconds: a host that stalls voids one
        assert row["value"]["estimate"] > 0
        assert row["value"]["unit"] == "/s"
        assert row["plain"]["storage_bytes"]["estimate"] > 10e6
        assert row["plain"]["storage_bytes"]["unit"] == "B"
        assert "compression_ratio" not in row["plain"]
    assert rows["COMMIT2", "slap/2"]["durability"] == "weaker"
    stored = {name: [] for name in ("STOCK", "COMMIT2", "TCP")}  # it grows with what was done
    done = mydyno("report", folder / "run", "--json")
    for trial in json.loads(done.stdout)["trials"]:
        if trial["workload"] == "slap/2" and trial["status"] == "ok":
            stored[trial["treatment"]].append(trial["metrics"]["storage_bytes"])
    guarded = rows["TCP", "slap/2"]["guards"]["storage_bytes"]
    ratio = geometric_mean(stored["TCP"]) / geometric_mean(stored["STOCK"])
    assert guarded["ratio"] == pytest.approx(ratio)
    seen = b"".join(p.read_bytes() for p in (folder / "run").rglob("*") if p.is_file())
    assert b"My1-" not in seen  # as our passwords begin


@pytest.mark.skipif(not shutil.which("compsize"), reason="compsize is not installed")
def test_btrfs_is_a_treatment(folder):
    found = campaign(folder, BTRFS)
    rows = {row["name"]: row for row in found["treatments"]}
    assert all(row["trials"] >= 1 for row in rows.values()), found
    for name in ("btrfs", "nodatacow"):
        ratio = rows[name]["plain"]["compression_ratio"]["estimate"]
        assert ratio == pytest.approx(1.0), name
    assert rows["zstd"]["plain"]["compression_ratio"]["estimate"] > 1.2
    stored = {name: row["plain"]["storage_bytes"]["estimate"] for name, row in rows.items()}
    assert stored["btrfs"] > stored["nodatacow"]  # what was overwritten is retained beside the new
    assert stored["ext4"] == pytest.approx(64 << 20, rel=0.05)
