"""mysqlslap on real servers: iterations as they come, its own count, reported failures."""

import os
import shutil
import signal
import time
from dataclasses import replace

import msgspec
import numpy as np
import pytest

from integration.load_steps import HOST, live, seen_by_others
from integration.server_steps import MARIADB, SERVERS, applied
from mydyno.loads import mysqlslap
from mydyno.testbed.server_runner import target_of

pytestmark = [pytest.mark.mysqld, pytest.mark.slow]


@pytest.fixture(autouse=True)
def _installed():
    if not shutil.which("mysqlslap"):
        pytest.fail("mysqlslap is missing: run packaging/setup.sh test")


def cell(**keys):
    keys = {"threads": 2, "queries": 200} | keys
    return mysqlslap.cells("slap", msgspec.convert(keys, mysqlslap.SlapParams))[0]


def asked(instance, sql):
    return [cell for row in instance.query(sql) for cell in row]


@pytest.mark.parametrize(
    ("name", "transport"),
    [*((name, "socket") for name in SERVERS), (MARIADB, "tcp"), ("mysql-8.0.33", "tcp")],
)
def test_generated_and_given_sql_report_as_they_run(bench, tmp_path, name, transport):
    made = bench.take(name)
    with applied(made, net={"transport": transport}) as instance:
        target = target_of(instance, tmp_path, tmp_path)
        assert bool(target.socket) == (transport == "socket")
        queries = tmp_path / "queries.sql"
        queries.write_text("SELECT COUNT(*) FROM a;\nINSERT INTO a VALUES (1);\n")
        for keys in (
            {"auto_generate": True, "load_type": "write", "options": {"engine": "innodb"}},
            {"query": str(queries), "create": "CREATE TABLE a (i int)"},
        ):
            found = live(cell(**keys), target, 6)
            walls, ends = [wall for wall, _ in found], [interval.t_s for _, interval in found]
            assert ends == sorted({0.0, *ends})[1:]
            apart = zip(np.diff(ends), np.diff(walls), strict=True)
            assert (
                np.median([abs(end - wall) for end, wall in apart]) < 0.3
            )  # who reads may be late
            assert all(interval.values["qps"] > 0 for _, interval in found)


def test_the_rate_is_of_the_queries_that_were_run(bench, tmp_path):
    made = bench.take(MARIADB)
    with applied(made) as instance:
        target = target_of(instance, tmp_path, tmp_path)
        asked(instance, "CREATE DATABASE IF NOT EXISTS sbtest; CREATE TABLE sbtest.n (i int)")
        given = cell(query="INSERT INTO n VALUES (1)", threads=3, queries=1000)
        found = live(given, target, 4)
        spans = [1000 / i.values["qps"] for _, i in found]
        done = int(asked(instance, "SELECT COUNT(*) FROM sbtest.n")[0])
        assert done >= 4 * 999  # 333 for each of three threads, and some of a fifth iteration
        assert sum(spans) < found[-1][1].t_s + 0.1
        assert asked(instance, "SHOW DATABASES LIKE 'sbtest'") == ["sbtest"]


@pytest.mark.parametrize("name", SERVERS)
def test_failing_queries_are_no_rate(bench, tmp_path, name):
    made = bench.take(name)
    with applied(made) as instance:
        target = target_of(instance, tmp_path, tmp_path)
        asked(instance, "CREATE DATABASE IF NOT EXISTS sbtest")
        with pytest.raises(ValueError, match=r"Cannot run query SELEC 1 ERROR.*syntax"):
            live(cell(query="SELEC 1"), target, 1)
        crowd = cell(auto_generate=True, threads=100, queries=10_000)
        asked(instance, "SET GLOBAL max_connections = 20")
        with pytest.raises(ValueError, match=r"Too many connections|Cannot run query"):
            live(crowd, target, 3)
        nowhere = replace(target, socket="/nonexistent.sock")
        with pytest.raises(ValueError, match="Error when connecting to server: Can't connect"):
            live(cell(auto_generate=True), nowhere, 1)


def test_a_server_that_stops_is_reported(bench, tmp_path):
    made = bench.take(MARIADB)
    with applied(made) as instance:
        target = target_of(instance, tmp_path, tmp_path)
        running = HOST.start(cell(auto_generate=True, queries=100_000).run(target, 1, {}))
        time.sleep(1.0)
        os.kill(instance.pid, signal.SIGKILL)
        with pytest.raises(ValueError, match=r"mysqlslap: (Cannot|Error)"):
            list(mysqlslap.parse(running.lines()))
        running.stop()


def test_no_other_process_can_see_the_password(bench, tmp_path):
    made = bench.take(MARIADB)
    with applied(made) as instance:
        target = target_of(instance, tmp_path, tmp_path)
        secret = target.password_file.read_text().rpartition("password = ")[2].strip().encode()
        running = HOST.start(cell(auto_generate=True).run(target, 1, {}))
        next(iter(mysqlslap.parse(running.lines())))
        seen = b"".join(seen_by_others(running.pid))
        running.stop()
        assert b"concurrency" in seen
        assert secret not in seen
