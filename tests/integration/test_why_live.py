"""`mydyno why --live` on real servers: sessions are where they are, and nothing is changed."""

import json
import subprocess
from contextlib import ExitStack, contextmanager, suppress

import pytest

from command_line import mydyno, shown
from integration.lab_steps import within
from integration.probe_steps import watched
from integration.server_steps import MARIADB, applied
from mydyno.model import HostError

pytestmark = [pytest.mark.mysqld, pytest.mark.root, pytest.mark.slow]
LISTED = (MARIADB, "mysql-8.0.33")
SESSIONS, IDLE = 4, 8
ROW = "BEGIN; SELECT id FROM w.t WHERE id = 1 FOR UPDATE; SELECT SLEEP(60);"
OPEN = "BEGIN; SELECT id FROM w.t; SELECT SLEEP(60);"
PENDING, BEHIND = "ALTER TABLE w.t COMMENT 'pending';", "SELECT id FROM w.t;"


@pytest.fixture(params=(*LISTED, "mysql-5.6.14"))
def server(running, request):
    return watched(running, request.param)


@contextmanager
def busy(instance, statements=(ROW,) * SESSIONS, idle=0):
    """Hold sessions in these statements, each begun after the one before; some that ask nothing.

    The first sleeps with what it has locked; by default the others wait for one row.
    """
    instance.query("CREATE DATABASE IF NOT EXISTS w")
    instance.query("CREATE TABLE IF NOT EXISTS w.t (id INT PRIMARY KEY) ENGINE=InnoDB")
    instance.query("REPLACE INTO w.t VALUES (1)")
    with ExitStack() as ends:
        ends.callback(ended, instance)
        for _ in range(idle):
            begun(instance, "SELECT 1;", ends)
        for number, sql in enumerate(statements, 1):
            begun(instance, sql, ends)
            assert within(60, lambda: listed(instance, "info LIKE 'SELECT SLEEP%'") == 1)
            assert within(60, lambda n=number: listed(instance, "command = 'Query'") == n)
        yield


def begun(instance, sql, ends):
    """Begin a session that stays after its statements, until the stack ends."""
    piped = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    one = ends.enter_context(subprocess.Popen(instance.client, **piped))
    ends.callback(one.kill)
    one.stdin.write(f"{sql}\n".encode())
    one.stdin.flush()


OTHERS = "FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND"


def listed(instance, condition):
    """Return how many sessions of others the server lists by a condition."""
    return int(instance.query(f"SELECT COUNT(*) {OTHERS} {condition}")[0][0])


def ended(instance):
    """End our sessions there, which a server may keep for seconds after their clients."""
    for (number,) in instance.query(f"SELECT id {OTHERS} user = 'root'"):
        with suppress(HostError):  # it has ended by itself
            instance.query(f"KILL {number}")
    assert within(60, lambda: listed(instance, "user = 'root'") == 0)


def looked(server, command=shown):
    live = ("why", "--live", "--server-defaults", server.place.admin, "--seconds", 8, "--json")
    done = command(*live)
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)
    return found


def variables(instance):
    return instance.query("SHOW GLOBAL VARIABLES WHERE Variable_name NOT LIKE '%timestamp%'")


def test_sessions_are_where_they_are_and_nothing_is_changed(server):
    before = variables(server)
    with busy(server):
        found = looked(server)
    lines = {line["state"]: line["connections"] for line in found["lines"]}
    shared = "shared" in found["doubts"]  # a busy machine may add another
    assert shared == ("5.6" in found["treatment"])
    if not shared:
        assert found["n"] == pytest.approx(SESSIONS, abs=0.5)
        assert lines["row_lock"] == pytest.approx(SESSIONS - 1, abs=0.5), "they wait still"
        assert lines["latch"] == pytest.approx(1, abs=0.5), "the one that sleeps"
        assert sum(lines.values()) == pytest.approx(found["n"])
    gone = {name for name, _ in before} ^ {name for name, _ in variables(server)}
    assert gone == set()
    assert [row for row in variables(server) if row not in before] == []


@pytest.mark.parametrize("server", LISTED, indirect=True)
def test_connections_that_nobody_asks_for_anything_are_left_out_and_counted(server):
    with busy(server, idle=IDLE):
        found = looked(server)
    assert found["n"] == pytest.approx(SESSIONS, abs=0.5)
    assert found["shown"]["idle_connections"] == pytest.approx(IDLE, abs=0.5)
    assert found["answer"] == "row_locks"


@pytest.mark.parametrize("server", LISTED, indirect=True)
def test_what_waits_behind_a_pending_alter_waits_for_the_table(server):
    with busy(server, (OPEN, PENDING, BEHIND, BEHIND)):
        found = looked(server)
    lines = {line["state"]: line["connections"] for line in found["lines"]}
    assert lines["table_lock"] == pytest.approx(3, abs=0.5)
    assert lines["latch"] == pytest.approx(1, abs=0.5), "the one that sleeps"
    assert found["answer"] == "table_locks"


def test_connections_that_share_a_pool_of_threads_are_counted(bench, running):
    """The server lists the threads that let them in, which are fewer, or have ended."""
    running.stop(MARIADB)
    made = bench.take(MARIADB)
    with applied(made, mysqld={"thread_handling": "pool-of-threads"}) as server, busy(server):
        found = looked(server, mydyno)
    assert found["n"] == pytest.approx(SESSIONS, abs=0.5)
    assert "pool" in found["doubts"]
    lines = {line["state"]: line["connections"] for line in found["lines"]}
    assert lines["row_lock"] == pytest.approx(SESSIONS - 1, abs=0.5)
    assert lines["client"] == pytest.approx(1, abs=0.5), "none is on a CPU"


@pytest.mark.parametrize("server", LISTED, indirect=True)
def test_a_server_without_a_client_is_limited_by_nothing(server):
    """MySQL keeps the threads of connections that have ended: they wait, and for no latch."""
    ended(server)
    done = mydyno("why", "--live", "--server-defaults", server.place.admin, "--seconds", 6)
    assert done.returncode == 3
    assert "no client was connected" in done.stderr


def test_a_server_that_cannot_be_asked_is_answered(tmp_path):
    defaults = tmp_path / "client.cnf"
    defaults.write_text(f"[client]\nuser = nobody\nsocket = {tmp_path}/none.sock\n")
    done = mydyno("why", "--live", "--server-defaults", defaults, "--seconds", 3)
    assert done.returncode == 3
    assert "Traceback" not in done.stderr
    assert mydyno("why", "--live", "--server-defaults", tmp_path / "none").returncode == 2
