"""One spec on every server, small, on each real flavour; what each gets is its own."""

import json
import os
import tempfile
from pathlib import Path

import pytest

from command_line import mydyno

pytestmark = [pytest.mark.root, pytest.mark.mysqld, pytest.mark.slow]

SPEC = Path(__file__).parents[1] / "unit" / "honeymoon" / "small-disk.toml"
CACHE = Path(os.environ.get("MYDYNO_CACHE") or "/var/cache/mydyno") / "servers"
SMALL = [
    "protocol.warmup_s=1",
    "protocol.window_s=2",
    "protocol.blocks=1",
    "workloads.rw.tables=1",
    "workloads.rw.table_size=5000",
    "workloads.rw.threads=2",
    "workloads.rw.rate=100",
    'design.rungs=["STOCK", "ALL"]',
    "stack.device.size=1G",
]
OWN = {
    "auto": {"innodb_log_file_size"},
    "mariadb-11.4.5": {"innodb_log_file_size"},
    "mysql-8.0.33": {"innodb_flush_method", "innodb_redo_log_capacity"},
    "mysql-5.6.14": {"innodb_flush_method", "innodb_log_file_size", "innodb_flush_neighbors"},
}


@pytest.mark.parametrize("server", OWN)
def test_one_spec_runs_on(server):
    where = server if server == "auto" else str(CACHE / server)
    assert server == "auto" or Path(where).is_dir(), f"{where} is missing: run `make servers`"
    with tempfile.TemporaryDirectory(prefix="mydyno-test-", dir="/var/tmp") as name:
        Path(name).chmod(0o755)
        run = Path(name) / "run"
        sets = [part for value in [*SMALL, f"stack.server={where}"] for part in ("--set", value)]
        done = mydyno("run", SPEC, "-o", run, "--json", *sets, timeout=300)
        assert done.returncode == 0, done.stderr
        rows = {r["name"]: r for r in json.loads(done.stdout)["treatments"]}
        assert {r["trials"] for r in rows.values()} == {1}, rows
        assert {r["durability"] for r in rows.values()} == {"same"}
        facts = json.loads((run / "facts" / "server.json").read_text())
        version = server.rsplit("-", 1)[-1]
        assert version in ("auto", *facts["version"].split()) or version in facts["version"]
        changed = set()
        for trial in (run / "trials").iterdir():
            changed |= {c["key"] for c in json.loads((trial / "changes.json").read_text())}
        assert {f"db/mysqld.{v}" for v in OWN[server]} <= changed
        assert "db/alloc.library" in changed
        report = mydyno("report", run, "--json")
        assert report.returncode == 0, report.stderr
        session = json.loads(report.stdout)["facts"]["load session"]
        assert session["client_library"].startswith("/")
        assert "ssl_cipher" in session
