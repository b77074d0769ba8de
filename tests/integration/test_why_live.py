"""`mydyno why --live` on real servers: sessions are where they are, and nothing is changed."""

import json
import subprocess
from contextlib import contextmanager

import pytest

from command_line import mydyno
from integration.probe_steps import watched
from integration.server_steps import MARIADB, applied

pytestmark = [pytest.mark.mysqld, pytest.mark.root, pytest.mark.slow]
LISTED = (MARIADB, "mysql-8.0.33")
SESSIONS = 4


@pytest.fixture(params=(*LISTED, "mysql-5.6.14"))
def server(bench, request):
    yield from watched(bench, request.param)


@contextmanager
def busy(instance):
    """Hold sessions that wait for one row's lock, but the first, which has it and sleeps."""
    instance.query("CREATE DATABASE IF NOT EXISTS w")
    instance.query("CREATE TABLE IF NOT EXISTS w.t (id INT PRIMARY KEY) ENGINE=InnoDB")
    instance.query("REPLACE INTO w.t VALUES (1)")
    sql = "BEGIN; SELECT id FROM w.t WHERE id = 1 FOR UPDATE; SELECT SLEEP(60);\n"
    started = []
    for _ in range(SESSIONS):
        one = subprocess.Popen(
            instance.client, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        one.stdin.write(sql.encode())
        one.stdin.close()
        started.append(one)
    try:
        yield
    finally:
        for one in started:
            one.kill()
            one.wait()
            one.stdout.close()
            one.stderr.close()


def variables(instance):
    return instance.query("SHOW GLOBAL VARIABLES WHERE Variable_name NOT LIKE '%timestamp%'")


def test_sessions_are_where_they_are_and_nothing_is_changed(server):
    before = variables(server)
    with busy(server):
        done = mydyno(
            *("why", "--live", "--server-defaults", server.place.admin, "--seconds", 5, "--json")
        )
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)
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


def test_connections_that_share_a_pool_of_threads_are_counted(bench):
    """The server lists the threads that let them in, which are fewer, or have ended."""
    made = bench.take(MARIADB)
    with applied(made, mysqld={"thread_handling": "pool-of-threads"}) as server, busy(server):
        live = ("why", "--live", "--server-defaults", server.place.admin, "--seconds", 3, "--json")
        done = mydyno(*live)
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)
    assert found["n"] == pytest.approx(SESSIONS, abs=0.5)
    assert "pool" in found["doubts"]
    lines = {line["state"]: line["connections"] for line in found["lines"]}
    assert lines["row_lock"] == pytest.approx(SESSIONS - 1, abs=0.5)
    assert lines["client"] == pytest.approx(1, abs=0.5), "none is on a CPU"


def test_a_server_that_cannot_be_asked_is_answered(tmp_path):
    defaults = tmp_path / "client.cnf"
    defaults.write_text(f"[client]\nuser = nobody\nsocket = {tmp_path}/none.sock\n")
    done = mydyno("why", "--live", "--server-defaults", defaults, "--seconds", 2)
    assert done.returncode == 3
    assert "Traceback" not in done.stderr
    assert mydyno("why", "--live", "--server-defaults", tmp_path / "none").returncode == 2
