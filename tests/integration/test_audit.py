"""`mydyno audit` on real servers: read-only by their own log, and right about what is there."""

import json
import os
import time
from pathlib import Path

import pytest

from command_line import mydyno, shown
from integration.probe_steps import account, login, watched
from integration.server_steps import MARIADB, PERCONA
from mydyno.host import Local
from mydyno.server.existing import look, reached, statements

pytestmark = [pytest.mark.mysqld, pytest.mark.root, pytest.mark.slow]
MYSQL8 = "mysql-8.0.33"
HOST = Local()


@pytest.fixture(params=(MARIADB, MYSQL8, "mysql-5.6.14", "mariadb-11.4.5", PERCONA))
def server(running, request):
    return watched(running, request.param)


def variables(instance):
    moving = "'%timestamp%' AND Variable_name NOT LIKE 'gtid%' AND Variable_name NOT LIKE 'last%'"
    return instance.query(f"SHOW GLOBAL VARIABLES WHERE Variable_name NOT LIKE {moving}")


def audited(defaults, *more):
    done = shown("audit", "--server-defaults", defaults, "--json", *more)
    assert done.returncode in {0, 1}, done.stderr
    return json.loads(done.stdout)


def rules_of(found):
    return {one["finding"]["rule"]: one["finding"] for one in found["findings"]}


def test_only_listed_statements_are_sent_and_nothing_is_changed(server, tmp_path):
    """What the server's general log holds of the session is the list, in its order."""
    log = server.place.tmp / "general.log"
    server.query(f"SET GLOBAL general_log_file = '{log}'")
    server.query("SET GLOBAL log_output = 'FILE'")
    server.query("SET GLOBAL general_log = ON")
    try:
        before = variables(server)
        found = audited(server.place.admin, "--watch", "2s")
        assert [row for row in variables(server) if row not in before] == []
        raw = log.read_text(errors="replace")
    finally:
        server.query("SET GLOBAL general_log = OFF")
    listed = statements(found["flavour"], tuple(found["version"]), 2)
    sent = [line.split("\t")[-1] for line in raw.splitlines() if "Query\t" in line]
    own = [
        text for text in sent if not text.startswith(("SHOW GLOBAL VARIABLES WHERE", "SET GLOBAL"))
    ]
    first = [text for text in own if "@@version_comment" in text]
    assert [t for t in own if t not in first] == listed
    assert len(found["findings"]) >= 1


def test_an_account_with_process_alone_suffices(server, tmp_path):
    account(server, grant="PROCESS")
    found = audited(login(tmp_path, server), "--watch", "0s")
    assert found["evaluated"] > 30
    assert rules_of(found).keys() & {"queue-scheduler", "pool-cold-start", "thp-always"}


@pytest.fixture
def channels(server):
    """Make the server a replica, stopped, of two sources; yield the begins of its keys."""
    if server.build.flavour != "mariadb" and server.build.version < (8,):
        pytest.skip("MySQL 5 needs server_id at its start; test_existing_server has one")
    first = "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_USER = 'none'"
    removed = ""
    if server.build.flavour == "mariadb":
        first += ", MASTER_USE_GTID = no"
        added = first.replace("MASTER TO", "MASTER 'second' TO MASTER_PORT = 3307,", 1)
        removed = "RESET SLAVE 'second' ALL;"
    else:
        added = f"{first} FOR CHANNEL 'second'"
    ((number,),) = server.query("SELECT @@server_id")
    server.query("SET GLOBAL server_id = 7")
    try:
        server.query(f"{first}; {added}")
        yield ("", "second.")
    finally:
        server.query(f"{removed} RESET SLAVE ALL; SET GLOBAL server_id = {number}")


def test_every_channel_of_a_replica_is_seen_and_judged(server, channels):
    seen = look(reached(HOST, str(server.place.admin)), 0)
    for channel in channels:
        running = [seen.replica.get(f"{channel}{word}_io_running") for word in ("slave", "replica")]
        assert "No" in running, seen.replica
    assert "relay-log-unrecovered" in rules_of(audited(server.place.admin, "--watch", "0s"))
    if server.build.flavour == "mariadb":  # MySQL takes an automatic position with GTIDs on only
        for name in ("", "'second'"):
            server.query(f"CHANGE MASTER {name} TO MASTER_USE_GTID = slave_pos")
        found = rules_of(audited(server.place.admin, "--watch", "0s"))
        assert "relay-log-unrecovered" not in found


def test_what_was_set_at_run_time_is_found_and_named(server):
    name, other = "innodb_flush_log_at_trx_commit", 2
    server.query(f"SET GLOBAL {name} = {other}")
    try:
        found = rules_of(audited(server.place.admin, "--watch", "0s"))
    finally:
        server.query(f"SET GLOBAL {name} = 1")
    assert found["trx-commit-weak"]["figures"] == {f"var.{name}": 2.0}
    if server.build.flavour == "mariadb" or server.build.version >= (8, 0):
        assert found["trx-commit-weak"]["where"] == "set at run time"
    assert "trx-commit-weak" not in rules_of(audited(server.place.admin, "--watch", "0s"))


def test_sessions_that_may_flush_less_are_noted_on_percona(running):
    server, name = watched(running, PERCONA), "innodb_use_global_flush_log_at_trx_commit"
    server.query(f"SET GLOBAL {name} = OFF")
    try:
        assert "sessions-choose-flush" in rules_of(audited(server.place.admin, "--watch", "0s"))
    finally:
        server.query(f"SET GLOBAL {name} = ON")
    assert "sessions-choose-flush" not in rules_of(audited(server.place.admin, "--watch", "0s"))


def test_advice_becomes_a_campaign_that_plan_accepts(server, tmp_path):
    spec = tmp_path / "db1.toml"
    server.query("SET GLOBAL sort_buffer_size = 67108864")
    try:
        audited(server.place.admin, "--watch", "0s", "--spec", spec)
    finally:
        server.query("SET GLOBAL sort_buffer_size = 262144")
    done = shown("plan", spec)
    assert done.returncode == 0, done.stderr
    assert "sort_buffer_size=256K" in done.stdout
    again = shown("audit", "--server-defaults", server.place.admin, "--spec", spec)
    assert again.returncode == 2
    assert "exists already" in again.stderr


@pytest.mark.parametrize("server", [MARIADB], indirect=True)
def test_bad_input_names_the_next_step(server, tmp_path):
    wrong = shown("audit", "--server-defaults", tmp_path / "none.cnf")
    assert wrong.returncode == 3
    assert "Traceback" not in wrong.stderr
    for watch in ("2h", "soon"):
        bad = shown("audit", "--server-defaults", server.place.admin, "--watch", watch)
        assert bad.returncode == 2
        assert "--watch" in bad.stderr


def cpu_s(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("server", [MARIADB, MYSQL8], indirect=True)
def test_an_audit_takes_half_a_second_of_the_servers_cpu_at_most(server):
    """Besides what the idle server takes in the same time."""
    pid = int(server.place.pid_file.read_text())
    audited(server.place.admin, "--watch", "0s")  # caches of the server are filled
    idle = cpu_s(pid)
    time.sleep(2)
    began = cpu_s(pid)
    audited(server.place.admin, "--watch", "1s")
    assert cpu_s(pid) - began - (began - idle) < 0.5


def test_of_two_servers_one_must_be_named(running):
    """Never guessed: both are in the message."""
    one, other = (running.take(name) for name in (MARIADB, MYSQL8))
    done = shown("audit", "--watch", "0s")
    assert done.returncode == 2
    assert "servers run here; name one" in done.stderr
    for named in (one, other):
        assert f"pid {int(named.place.pid_file.read_text())}: --server" in done.stderr
    found = audited(other.place.admin, "--watch", "0s")
    assert found["flavour"] == "mysql"


def test_the_inventory_has_the_place_of_each_setting(server):
    found = audited(server.place.admin, "--watch", "0s")
    settings = {row["name"]: row for row in found["settings"]}
    assert settings["datadir"]["where"].startswith(f"{server.place.options}:")
    assert found["host"]["limit.nofile"].isdigit()
    assert found["host"]["mount.type"]
    typed = mydyno("audit", "--server", server.place.admin, "--watch", "0s", "--inventory")
    assert "settings that are not defaults" in typed.stdout
    assert f"[{server.place.options}:" in typed.stdout
