"""Classes of a real log in the tables of a real server, which reads them as they were written."""

import json
import subprocess

import pytest

from command_line import mydyno
from golden.digest.steps import digest
from golden.test_digest import HERE
from integration.server_steps import MARIADB

pytestmark = [pytest.mark.mysqld, pytest.mark.slow]
LOG = HERE / "real-mariadb-10.11-full" / "input.log"
LONG = "SELECT a FROM long_one WHERE b = '" + "x" * 100_000 + "';"


@pytest.fixture(params=[MARIADB, "mysql-8.0.33", "mysql-5.6.14"])
def server(running, request):
    return running.take(request.param)


def rows(server, sql):
    done = subprocess.run(
        [*server.client, "--batch", "--raw", "--skip-column-names"],
        input=sql, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [line.split("\t") for line in done.stdout.splitlines()]


def store(server, log, *words):
    """Write both tables by the command, logged in by an option file as a user has it."""
    tables = ("--review", "", "--history", "", "--server-defaults", server.place.admin)
    return mydyno("digest", "--limit=0", *tables, *words, "--json", log)


def test_both_tables_hold_the_classes(server):
    classes = {one["id32"]: one for one in digest(LOG, "--compat=pt")["classes"]}
    for times in (1, 2):  # the second writes over the first
        done = store(server, LOG, "--create-tables")
        assert done.returncode == 0, done.stderr
        assert {one["id32"] for one in json.loads(done.stdout)["classes"]} == {*classes}
        found = rows(server, "SELECT checksum, HEX(sample) FROM percona_schema.query_review")
        samples = {name: bytes.fromhex(sample).decode() for name, sample in found}
        for name, one in classes.items():
            assert samples[name] == one["example"]["query"], times
        counts = dict(rows(server, "SELECT checksum, ts_cnt FROM percona_schema.query_history"))
        assert [float(counts[name]) for name in classes] == [c["events"] for c in classes.values()]


def test_a_reviewers_words_stay_and_the_times_widen(server):
    assert store(server, LOG, "--create-tables").returncode == 0
    rows(server, "UPDATE percona_schema.query_review SET comments = 'ok', first_seen = 19990101")
    assert store(server, LOG).returncode == 0
    kept = rows(server, "SELECT DISTINCT comments, first_seen FROM percona_schema.query_review")
    assert kept == [["ok", "1999-01-01 00:00:00"]]


def test_a_statement_longer_than_the_column(server, tmp_path):
    log = tmp_path / "long.log"
    log.write_text(
        "# Time: 2026-11-25T10:00:00.000000Z\n# User@Host: a[a] @ h []\n"
        f"# Query_time: 1.000000  Lock_time: 0.000000 Rows_sent: 1  Rows_examined: 1\n{LONG}\n"
    )
    done = store(server, log, "--create-tables")
    assert done.returncode == 0, done.stderr
    sample = rows(server, "SELECT LENGTH(sample) FROM percona_schema.query_history")
    assert [str(len(digest(log)["classes"][0]["example"]["query"]))] in sample


def test_tables_that_are_not_there_are_made_when_that_is_asked_for(server):
    argv = ("--review", "D=none,t=r", "--server-defaults", server.place.admin, LOG)
    missing = mydyno("digest", *argv)
    assert missing.returncode == 2
    assert "--create-tables" in missing.stderr


def test_tables_that_pt_query_digest_has_made_take_what_fits(server):
    rows(
        server,
        "CREATE DATABASE IF NOT EXISTS old DEFAULT CHARSET latin1; USE old;"
        "CREATE TABLE r (checksum CHAR(32) PRIMARY KEY, fingerprint TEXT NOT NULL, sample TEXT NOT"
        " NULL, first_seen DATETIME, last_seen DATETIME, reviewed_by VARCHAR(20))",
    )
    argv = ("--limit=0", "--review", "D=old,t=r", "--server-defaults", server.place.admin, LOG)
    assert mydyno("digest", *argv).returncode == 0
    assert len(rows(server, "SELECT checksum FROM old.r")) == len(
        digest(LOG, "--compat=pt")["classes"]
    )
