"""A campaign whose treatments run on different servers, each on data of its own."""

import json

import pytest

from command_line import mydyno
from integration.server_steps import CACHE

pytestmark = [pytest.mark.root, pytest.mark.mysqld, pytest.mark.slow]

BUILDS = CACHE / "servers"
SPEC = """
[campaign]
name = "generations"
[stack]
server = "auto"
device = {{ lab = "loop", size = "1G" }}
[stack.servers]
eight = "{eight}"
{compared}
[workloads.rw]
tool = "sysbench-oltp"
script = "oltp_read_write"
tables = 1
table_size = 2000
threads = 2
rate = 100
[protocol]
warmup_s = 1
window_s = 2
blocks = {blocks}
"""
POOL = """
[treatments.STOCK]
[treatments.POOL]
"mysqld.innodb_buffer_pool_size" = "64M"
"""
ENCRYPTED = """
[treatments.TLS]
"net.transport" = "tcp"
"net.tls" = "on"
"""
GRID = """
[factors]
"server.build" = ["auto", "eight"]
"mysqld.sort_buffer_size" = ["256K", "2M"]
"""
RUNGS = """
[design]
kind = "blocks"
rungs = ["STOCK", "NEW+LOG", "STOCK"]
[bundles.NEW]
"server.build" = "eight"
[bundles.LOG.when."mysql >= 8.0.30"]
"mysqld.innodb_redo_log_capacity" = "256M"
[bundles.LOG.when."mariadb"]
"mysqld.innodb_log_file_size" = "256M"
"""


def spec(folder, compared, blocks=2, eight=BUILDS / "mysql-8.0.33"):
    path = folder / "generations.toml"
    path.write_text(SPEC.format(eight=eight, compared=compared, blocks=blocks))
    return path


def trials(run):
    """Return treatment, my.cnf, error log and changes of each trial."""
    lines = (run / "journal.jsonl").read_text().splitlines()
    events = [json.loads(line)["event"] for line in lines]
    for outcome in (e["outcome"] for e in events if e["type"] == "finished"):
        assert outcome["status"] == "ok", outcome
        at = run / "trials" / f"{outcome['trial']['id']:04d}"
        texts = ((at / name).read_text() for name in ("my.cnf", "mysqld.err", "changes.json"))
        yield (outcome["trial"]["treatment"], *texts)


def test_two_servers_by_two_settings_each_on_its_own_data(folder):
    run = folder / "run"
    done = mydyno("run", spec(folder, GRID), "-o", run, "--json")
    assert done.returncode == 0, done.stderr
    rows = {row["name"]: row for row in json.loads(done.stdout)["treatments"]}
    cells = [f"build={b},sort_buffer_size={s}" for b in ("auto", "eight") for s in ("256K", "2M")]
    assert set(rows) == {"STOCK", *cells}
    assert "by mysql 8.0.33 on ext4" in done.stderr
    for treatment, cnf, log, changes in trials(run):
        eight = "build=eight" in treatment
        assert ("MySQL Community Server" in log) is eight, log
        assert ("db/server.build" in changes) is eight
        size = treatment.rpartition("=")[2]
        stock = "256K" if eight else "2M"  # by which MySQL and MariaDB differ
        assert ("sort_buffer_size" in cnf) is (size not in {"STOCK", stock}), (treatment, cnf)
    for name, version in (("server", "MariaDB"), ("server mysql 8.0.33", "8.0.33")):
        assert version in json.loads((run / "facts" / f"{name}.json").read_text())["version"]
    assert not (run / "work").exists()
    report = mydyno("report", run, "--json")
    parts = json.loads(report.stdout)["comparison"]["parts"]
    assert "server.build" in {part["factor"] for part in parts}


MORE = {
    "mysql-5.7.22": ("5.7.22", "glibc", "yaSSL"),
    "mysql-8.4": ("8.4.", "tcmalloc", "OpenSSL"),
    "mysql-9.7": ("9.7.", "tcmalloc", "OpenSSL"),
    "percona-5.6": ("5.6.22-71.0 Percona Server", "glibc", "OpenSSL"),
    "percona-5.7": ("5.7.20-18-18 Percona XtraDB Cluster", "glibc", "OpenSSL"),
    "mariadb-10.1.23": ("10.1.23-MariaDB", "jemalloc", "yaSSL"),
    "mariadb-10.2.11": ("10.2.11-MariaDB", "glibc", "yaSSL"),
    "mariadb-10.5": ("10.5.", "glibc", "OpenSSL"),
    "mariadb-10.6": ("10.6.", "glibc", "OpenSSL"),
    "mariadb-11.8": ("11.8.", "glibc", "OpenSSL"),
}


@pytest.mark.parametrize("name", MORE)
def test_a_server_of_another_age_is_made_measured_and_removed(folder, name):
    if not (BUILDS / name).is_dir():
        pytest.skip(f"{BUILDS / name} is missing: packaging/servers.sh could not fetch it")
    version, *libraries = MORE[name]
    takes_tls = libraries[1] == "OpenSSL" and name != "percona-5.6"  # which speaks TLS 1.0 alone
    run, path = folder / "run", folder / "one.toml"
    text = SPEC.format(eight="", blocks=1, compared=POOL + ENCRYPTED * takes_tls)
    text = text.replace('"auto"', f'"{BUILDS / name}"')
    path.write_text(text.replace('{ lab = "loop", size = "1G" }', '"here"'))
    done = mydyno("run", path, "-o", run)
    assert done.returncode == 0, done.stderr
    found = {treatment: cnf for treatment, cnf, _, _ in trials(run)}
    assert ["innodb_buffer_pool_size" in found[name] for name in ("STOCK", "POOL")] == [False, True]
    facts = json.loads((run / "facts/server.json").read_text())
    assert ("TLS" in found) is takes_tls
    assert facts["version"].startswith(version)
    assert [facts["allocator (stock)"], facts["TLS library"]] == libraries
    assert not (run / "work").exists()


def test_a_condition_holds_for_the_server_that_its_rung_runs_on(folder):
    run = folder / "run"
    done = mydyno("run", spec(folder, RUNGS, blocks=1), "-o", run)
    assert done.returncode == 0, done.stderr
    found = {treatment: cnf for treatment, cnf, _, _ in trials(run)}
    assert "innodb_redo_log_capacity" in found["NEW+LOG"]
    assert "innodb_log_file_size" not in found["NEW+LOG"]
    assert "innodb" not in found["STOCK"]


def test_a_killed_campaign_is_resumed_and_rolled_back(folder):
    run = folder / "run"
    path = spec(folder, GRID, blocks=1)
    dies = (
        "import os\nfrom mydyno.testbed import server_runner\n"
        "real = server_runner.ServerRunner.launch\n"
        "def launch(self, settings, trial):\n"
        "    made = real(self, settings, trial)\n"
        "    if trial.id == 2:\n        os._exit(9)\n"
        "    return made\n"
        "server_runner.ServerRunner.launch = launch\n"
        "from mydyno.cli import main; main()"
    )
    assert mydyno("run", path, "-o", run, code=dies).returncode == 9
    done = mydyno("run", path, "-o", run)
    assert done.returncode == 0, done.stderr
    assert len(list(trials(run))) >= 5
    again = folder / "again"
    assert mydyno("run", path, "-o", again, code=dies).returncode == 9
    done = mydyno("rollback", again)
    assert done.returncode == 0, done.stderr
    assert not (again / "work").exists()
