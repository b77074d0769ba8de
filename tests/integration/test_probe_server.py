"""The sampler on four real servers: what arrives, how it logs in, and what it leaves there."""

import threading
import time

import numpy as np
import pytest

from integration.probe_steps import (
    ACCOUNT,
    CANARY,
    account,
    answers,
    leaks,
    login,
    notes,
    probing,
    series,
    status,
    texts,
    watched,
)
from integration.server_steps import MARIADB, PERCONA, SERVERS
from mydyno.sample.derive import counted_once

pytestmark = [pytest.mark.mysqld, pytest.mark.slow]
MYSQL8 = "mysql-8.0.33"
# What MariaDB is not asked for, but for these.
DULL = ("Acl_", "Com_", "Feature_", "Performance_schema_", "Ssl_")
KEPT = ("Com_select", "Com_insert", "Com_update", "Com_delete", "Com_commit", "Ssl_accepts")


# All listen on TCP too; who has a socket in the option file goes over it.
@pytest.fixture(params=(*SERVERS, PERCONA))
def server(running, request):
    return watched(running, request.param, "tcp")


@pytest.fixture(params=(MARIADB, MYSQL8))
def modern(running, request):
    return watched(running, request.param, "tcp")


@pytest.fixture
def mariadb(running):
    return watched(running, MARIADB, "tcp")


@pytest.fixture
def mysql8(running):
    return watched(running, MYSQL8, "tcp")


@pytest.fixture
def strict_mysql8(running):
    """A server of its own: it requires TLS, and later tests do not."""
    instance = watched(running, MYSQL8, "tcp")
    instance.query("SET GLOBAL require_secure_transport = ON")
    yield instance
    running.stop(MYSQL8)


def is_mariadb(server):
    return "MariaDB" in server.query("SELECT VERSION()")[0][0]


def test_a_reading_each_second_is_its_questions_and_nothing_else(server, tmp_path):
    aborted = status(server, "Aborted_clients")
    with probing(tmp_path, login(tmp_path, server)) as probe:
        probe.readings(5)
        sampled = probe.stop()
    assert notes(sampled) == []
    apart = np.diff(series(sampled, "probe.read_at", "server"))
    assert np.median(apart) == pytest.approx(1.0, abs=0.4)  # one answer may be late
    metrics = any(column.name.startswith("innodb.") for column in sampled.columns)
    assert metrics or is_mariadb(server)
    assert set(np.diff(series(sampled, "status.questions"))) == {1.0 + metrics}
    assert set(series(sampled, "server.up")) == {1.0}
    answers = series(sampled, "server.answer_s", "status")
    assert answers.min() > 0
    assert np.median(answers) < 0.5
    assert status(server, "Aborted_clients") == aborted


def test_values_are_the_servers_own(server, tmp_path):
    with probing(tmp_path, login(tmp_path, server)) as probe:
        probe.readings(2)
        counters = dict(server.query("SHOW GLOBAL STATUS"))
        sampled = probe.stop()
    names = [name for name, value in counters.items() if value.isdecimal()]
    mariadb = is_mariadb(server)
    if mariadb:  # half of its rows are not asked for
        names = [name for name in names if not name.startswith(DULL) or name in KEPT]
    still = [name for name in names if name.startswith(("Com_", "Handler_savepoint"))]
    assert len(names) > 250
    for name in set(still) - {"Com_show_status", "Com_select", "Com_set_option"}:
        assert series(sampled, f"status.{name.lower()}")[-1] == int(counters[name]), name
    assert {f"status.{name.lower()}" for name in names} <= {c.name for c in sampled.columns}
    engine = [column.name for column in sampled.columns if column.name.startswith("innodb.")]
    if mariadb and "innodb.innodb_page_size" not in engine:
        assert engine == []
        assert series(sampled, "status.innodb_page_size")[-1] == 16384
    else:
        assert len(engine) > 40
        assert series(sampled, "innodb.innodb_page_size")[-1] == 16384


def test_what_mariadb_counts_beyond_its_defaults_is_asked_for(mariadb, tmp_path):
    mariadb.query("SET GLOBAL innodb_monitor_enable = 'purge_invoked'")
    with probing(tmp_path, login(tmp_path, mariadb)) as probe:
        probe.readings(2)
        sampled = probe.stop()
    mariadb.query("SET GLOBAL innodb_monitor_disable = 'purge_invoked'")
    assert "innodb.purge_invoked" in {column.name for column in sampled.columns}


def test_tcp_with_a_password_the_server_has_not_seen(server, tmp_path):
    defaults = login(tmp_path, server, tcp=True)
    for _ in ("full authentication", "from the server's cache"):
        with probing(tmp_path, defaults) as probe:
            probe.readings(2)
            assert leaks(probe, CANARY) == []
            assert notes(probe.stop()) == []


def test_each_way_to_log_in_to_mysql_8(mysql8, tmp_path):
    for plugin in ("caching_sha2_password", "mysql_native_password"):
        for tcp in (True, False):
            account(mysql8, plugin=plugin)
            with probing(tmp_path, login(tmp_path, mysql8, tcp=tcp)) as probe:
                probe.readings(1)
                assert notes(probe.stop()) == []
    account(mysql8, plugin="sha256_password")
    with probing(tmp_path, login(tmp_path, mysql8, tcp=True)) as probe:
        sampled = probe.seen(notes)
    assert "sha256_password" in texts(sampled)[0]


def test_a_server_that_requires_tls_has_its_own_message(strict_mysql8, tmp_path):
    with probing(tmp_path, login(tmp_path, strict_mysql8, tcp=True)) as probe:
        sampled = probe.seen(notes)
    assert "use the socket" in texts(sampled)[0]
    with probing(tmp_path, login(tmp_path, strict_mysql8)) as probe:
        probe.readings(1)


# of the strictest slow log, and as every server has them
LOGGED = {
    "log_output": ("'TABLE'", "'FILE'"),
    "long_query_time": ("0", "10"),
    "log_queries_not_using_indexes": ("ON", "OFF"),
    "slow_query_log": ("ON", "OFF"),
}


def logs(server, *, on):
    """Turn the strictest slow log on, into a table, or all of it off again."""
    values = (f"GLOBAL {name} = {value[not on]}" for name, value in LOGGED.items())
    server.query(f"SET {', '.join(values)}")


def slow_log_of_ours(server, tmp_path):
    """Return what the strictest slow log has of our account, and the notes."""
    server.query("TRUNCATE mysql.slow_log")
    logs(server, on=True)
    try:
        with probing(tmp_path, login(tmp_path, server)) as probe:
            probe.readings(3)
            sampled = probe.stop()
        server.query("SELECT 'others are logged'")
    finally:
        logs(server, on=False)
    logged = server.query("SELECT user_host, sql_text FROM mysql.slow_log")
    assert any("others are logged" in text for _, text in logged)
    return [text for who, text in logged if who.startswith(ACCOUNT)], sampled


def test_our_questions_stay_out_of_the_slow_log(server, tmp_path):
    restricted = server.build.flavour != "mariadb" and server.build.version >= (8,)
    if restricted:
        account(server, grant="PROCESS, SESSION_VARIABLES_ADMIN")
    logged, sampled = slow_log_of_ours(server, tmp_path)
    assert (logged, notes(sampled)) == ([], [])


def test_metrics_that_would_enter_the_slow_log_are_left_out(mysql8, tmp_path):
    logged, sampled = slow_log_of_ours(mysql8, tmp_path)
    assert (logged, notes(sampled)) == ([], [("gap", "innodb")])
    assert "SESSION_VARIABLES_ADMIN" in texts(sampled)[0]
    assert series(sampled, "status.uptime")[-1] > 0


def test_our_questions_stay_out_of_the_general_log_where_we_may(modern, tmp_path):
    account(modern, grant="ALL")
    modern.query("SET GLOBAL log_output = 'TABLE', GLOBAL general_log = ON")
    try:
        with probing(tmp_path, login(tmp_path, modern)) as probe:
            probe.readings(3)
            probe.stop()
    finally:
        modern.query("SET GLOBAL general_log = OFF, GLOBAL log_output = 'FILE'")
    rows = modern.query("SELECT user_host, argument FROM mysql.general_log")
    logged = [text for who, text in rows if who.startswith(ACCOUNT)]
    assert any("SET SESSION sql_log_off" in text for text in logged)
    assert [text for text in logged if "STATUS" in text or "INNODB_METRICS" in text] == []


MAKE = """
CREATE TABLE sbtest.TABLE_NAME (
  id INT AUTO_INCREMENT PRIMARY KEY, k INT, pad VARCHAR(250), KEY (k)
) ENGINE=InnoDB;
INSERT INTO sbtest.TABLE_NAME (k, pad) VALUES (1, REPEAT('x', 250)), (2, REPEAT('y', 250));
"""
DOUBLE = "INSERT INTO sbtest.TABLE_NAME (k, pad) SELECT k, pad FROM sbtest.TABLE_NAME;\n"
USE = """
PREPARE p FROM 'SELECT COUNT(*) FROM sbtest.TABLE_NAME WHERE k = 1';
EXECUTE p;
UPDATE sbtest.TABLE_NAME SET pad = REPEAT('z', 200), k = k + 1;
SELECT k, MAX(pad) FROM (SELECT * FROM sbtest.TABLE_NAME ORDER BY pad) q GROUP BY k ORDER BY 2;
BEGIN; UPDATE sbtest.TABLE_NAME SET k = 0 WHERE id = 1; SELECT SLEEP(0.3); ROLLBACK;
FLUSH TABLES;
DROP TABLE sbtest.TABLE_NAME;
"""


FALLING = {"status.threads_connected", "status.innodb_buffer_pool_pages_dirty"}


def fallen(sampled, server):
    """Return name and kind of each value of the server that fell at least once."""
    # from 8.0 on MySQL counts a connection once also as it ends
    strict = server.build.flavour != "mariadb" and server.build.version >= (8,)
    right = np.asarray if strict else counted_once
    return {
        (column.name, column.kind)
        for column in sampled.columns
        if column.source == "server"
        and (np.diff(right(series(sampled, column.name, column.of))) < 0).any()
    }


def test_every_value_that_falls_is_declared_a_gauge(server, tmp_path):
    options = ("--interval", "200ms", "--server-interval", "200ms", "--server-deadline", "2s")
    with probing(tmp_path, login(tmp_path, server), *options) as probe:
        probe.readings(2)
        for _ in range(4):  # a busy host is slow to write what is dirty
            load(server, seconds=6)
            # and answers seldom; all have left
            sampled = probe.readings(len(answers(probe.sampled())) + 2)
            if {name for name, _ in fallen(sampled, server)} >= FALLING:
                break
        sampled = probe.stop()
    fell = fallen(sampled, server)
    assert [name for name, kind in fell if kind == "counter"] == []
    assert {name for name, _ in fell} >= FALLING
    assert {
        "status.questions",
        "status.innodb_buffer_pool_reads",
        "status.threads_created",
        "status.innodb_data_written",
        "status.bytes_sent",
        "status.innodb_pages_created",
    } <= {column.name for column in sampled.columns if column.kind == "counter"}


def load(instance, seconds):
    """Run four clients that come and go, write, wait for each other, and drop what they made."""
    end = time.monotonic() + seconds

    def work(number):
        while time.monotonic() < end:
            table = f"t{number}_{time.monotonic_ns()}"
            instance.query((MAKE + DOUBLE * 12 + USE).replace("TABLE_NAME", table), timeout_s=600)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
