"""The digest of a log that a real server writes now agrees with the server and the log."""

import os
import time
from decimal import Decimal

import pytest

from golden.digest.record import CASES, record, restock, settings, sysbench
from golden.digest.steps import digest
from golden.test_digest import FORGED, QUERY_TIME

pytestmark = [
    pytest.mark.mysqld,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="reads a log that belongs to the server's user"),
]
VERBOSE = ("real-mysql-5.6", "real-mysql-8.0-extra", "real-mariadb-10.11-full")
VERBOSE += ("real-mariadb-11.4-full",)
SLOW_QUERIES = "SHOW GLOBAL STATUS LIKE 'Slow_queries'"
# Classes that every server's log has, whatever it adds of its own.
CLASSES = {
    "call fetch_things",
    "insert into things (id, name, raw) values(?+)",
    "insert into things (name, raw) values (?, _binary ?)",
    "load data local infile ? into table things fields terminated by ? (name, raw)",
    "select id from things where id in(?+)",
    "select name from things where id = ?",
    "select name, count(*) from things group by name with rollup",
}


@pytest.fixture(scope="module", autouse=True)
def _rows(bench):
    (bench.folder / "rows.txt").write_text("seven\tx\neight\ty\n")


@pytest.mark.parametrize("case", VERBOSE)
def test_odd_statements(bench, case, tmp_path):
    server, lines = CASES[case]
    instance = bench.take(server).instance
    restock(instance, bench.folder)
    log = tmp_path / "slow.log"
    log.write_bytes(record(instance, lines, bench.folder))
    real = [pair for pair in QUERY_TIME.findall(log.read_bytes()) if FORGED not in pair]
    digested = digest(log)
    summary = digested["summary"]
    assert summary["events"] == len(real)
    assert Decimal(summary["query_time_s"]) == sum(Decimal(pair[0].decode()) for pair in real)
    assert summary["oddities"] == {
        "headers_without_statement": 0,
        "forged_headers": 2,
        "cut_events": 0,
        "unreadable_bytes": 0,
        "unknown_lines": 0,
        "impossible_values": 0,
    }
    assert {one["fingerprint"] for one in digested["classes"]} >= CLASSES


def ended(log):
    """Return the log once it holds the last statement: a server may answer before it writes."""
    end_s = time.monotonic() + 60
    while b"show global status" not in (raw := log.read_bytes()).lower():
        assert time.monotonic() < end_s, raw[-500:]
        time.sleep(0.05)
    time.sleep(0.2)  # of an entry that is being written
    return log.read_bytes()


@pytest.mark.parametrize("case", VERBOSE)
def test_the_server_counts_as_many(bench, case, tmp_path):
    """Its own counter knows of no log: it rises with each event but the one that asks for it."""
    server, lines = CASES[case]
    instance = bench.take(server).instance
    restock(instance, bench.folder)
    log = settings(instance, lines)
    instance.start()
    sysbench(instance, "oltp_read_write", "--events=200", "--db-ps-mode=disable", "run")
    time.sleep(1)  # the end of a connection is logged a moment after it
    counted = int(instance.query(SLOW_QUERIES)[0][1])
    written = ended(log)
    instance.stop()
    copy = tmp_path / "slow.log"
    copy.write_bytes(written)
    digested = {one["fingerprint"]: one for one in digest(copy)["classes"]}
    asked = digested["show global status like ?"]
    assert asked["events"] == 1
    later = sum(
        one["events"] for one in digested.values() if one["first_seen"] > asked["last_seen"]
    )
    events = sum(one["events"] for one in digested.values())
    assert counted > 4000
    assert events - 1 - counted - later in (0, 1), "only the Quit of the client that asked"
