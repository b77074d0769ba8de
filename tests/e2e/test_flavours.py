"""One spec on every server, small, on each real flavour; what each gets, and its series."""

import json
import os
from pathlib import Path

import pytest

from command_line import mydyno
from integration.server_steps import CACHE
from mydyno.cli.run_directory import result

pytestmark = [pytest.mark.root, pytest.mark.mysqld, pytest.mark.slow]

SPEC = Path(__file__).parents[1] / "unit" / "honeymoon" / "small-disk.toml"
SMALL = [
    "protocol.warmup_s=2",
    "protocol.window_s=5",
    "protocol.blocks=1",
    "workloads.rw.tables=1",
    "workloads.rw.table_size=5000",
    "workloads.rw.threads=2",
    "workloads.rw.rate=100",
    'design.rungs=["STOCK", "ALL"]',
    "stack.device.size=1G",
    "stack.device.class=azure-p30",
]
OWN = {
    "auto": {"innodb_log_file_size"},
    "mariadb-11.4.5": {"innodb_log_file_size"},
    "mysql-8.0.33": {"innodb_flush_method", "innodb_redo_log_capacity"},
    "mysql-5.6.14": {"innodb_flush_method", "innodb_log_file_size", "innodb_flush_neighbors"},
}
HOST = {
    *(f"cpu.{mode}" for mode in ("user", "system", "iowait", "irq", "steal", "idle")),
    *(f"disk.{name}" for name in ("reads", "writes", "flushes", "read_bytes", "write_bytes")),
    *("disk.write_latency", "disk.flush_latency", "disk.queue"),
    *("net.retransmits", "memory.dirty", "probe.cpu"),
    *(f"process.{who}.{what}" for who in ("mysqld", "load", "lab") for what in ("cpu", "threads")),
}
SERVER = {
    *("innodb.hit_ratio", "innodb.dirty_share", "innodb.redo_rate", "innodb.reads"),
    *("innodb.writes", "innodb.row_lock_waits", "threads_running"),
}
AGE, WITHOUT_AGE = "innodb.checkpoint_age", {"mysql-5.6.14"}


def spec(folder):
    """Return the spec, changed in one line: ALL is measured over TCP, STOCK through a socket."""
    text, part = SPEC.read_text(), "[bundles.JE]\n"
    assert text.count(part) == 1
    path = folder / "spec.toml"
    path.write_text(text.replace(part, f'{part}"net.transport" = "tcp"\n'))
    return path


@pytest.mark.parametrize("server", OWN)
def test_one_spec_runs_on(folder, server):
    where = server if server == "auto" else str(CACHE / "servers" / server)
    assert server == "auto" or Path(where).is_dir(), f"{where} is missing: run `make servers`"
    run = folder / "run"
    sets = [part for value in [*SMALL, f"stack.server={where}"] for part in ("--set", value)]
    done = mydyno("run", spec(folder), "-o", run, "--json", *sets, timeout=1800)
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
    assert {"db/alloc.library", "db/net.transport"} <= changed
    found = result(run)
    session = found.facts["load session"]
    assert session["client_library"].startswith("/")
    assert "ssl_cipher" in session
    assert {trial.treatment for trial in found.trials} == {"STOCK", "ALL"}
    for trial in found.trials:
        has_its_series_over_its_window(trial, aged=server not in WITHOUT_AGE)
    files = [path for path in run.rglob("*") if path.is_file()]
    assert [path for path in files if b"My1-" in path.read_bytes()] == []  # as our passwords begin


def has_its_series_over_its_window(trial, *, aged):
    """Check what was sampled of a trial: names, times, and values that are possible."""
    assert trial.status == "ok", trial.error
    found = {g.name: dict(zip(g.t_s, g.values, strict=True)) for g in trial.gauges}
    psi = {name for name in found if name.startswith("psi.")}  # a kernel may have none
    want = HOST | SERVER | psi | ({AGE} if aged else set())
    tcp = {"net.rx_bytes", "net.tx_bytes"} if trial.treatment == "ALL" else set()
    assert found.keys() - {"disk.read_latency"} == want | tcp
    window = {
        name: [v for t_s, v in pairs.items() if 2.0 < t_s <= 7.0] for name, pairs in found.items()
    }
    assert {len(window[name]) for name in ("cpu.user", "disk.writes")} <= {4, 5, 6}
    assert len(window["innodb.redo_rate"]) in {3, 4, 5, 6}
    cores = sum(sum(window[f"cpu.{m}"]) for m in ("user", "system", "idle", "iowait", "steal"))
    assert 0.5 < cores / len(window["cpu.user"]) / (os.cpu_count() or 1) < 1.1
    for name in ("disk.writes", "disk.flushes", "process.mysqld.cpu", "process.load.cpu"):
        assert sum(window[name]) > 0, name
    assert min(window["innodb.redo_rate"]) > 0
    assert 0.5 < min(window["innodb.hit_ratio"]) <= 1
    assert 0 < trial.metrics["cpu_busy_ratio"] <= 1
    assert 0 <= trial.metrics["cpu_steal_ratio"] < 1
    assert 0 < trial.metrics["probe_cpu_cores"] < 0.02
    assert 0 <= trial.metrics["cpu_other_cores"] < (os.cpu_count() or 1)
    assert 0 < trial.metrics["load_cpu_ratio"] < 1
