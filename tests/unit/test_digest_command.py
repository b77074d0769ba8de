"""`mydyno digest` hands all to mydyno-probe, and writes the page that is its own."""

import subprocess
import sys

import pytest

from mydyno.cli import digest as digest_tables
from mydyno.model import SpecError
from mydyno.report.digestpage import Class, ClassMetric, Digest, Example, Summary

STANDS_IN = """#!/usr/bin/env python3
import json, sys
if "--bad" in sys.argv:
    sys.exit("mydyno-probe: --bad: no such option") if "--loud" in sys.argv else sys.exit(2)
if "--json" not in sys.argv:
    print(sys.argv[1:], sys.stdin.read() if "-" in sys.argv else "")
    sys.exit(0)
zero = {"headers_without_statement": 0, "forged_headers": 0, "cut_events": 0,
        "unreadable_bytes": 0, "impossible_values": 0}
summary = {"events": 0, "events_weighted": 0, "query_time_s": 0, "lock_time_s": 0, "rows_sent": 0,
           "rows_examined": 0, "classes": 0, "bytes": 0, "first_seen": None, "last_seen": None,
           "files": [{"name": "/var/log/<slow>.log", "bytes": 0}], "oddities": zero, "filtered": 0}
print(json.dumps({"digest": 1, "summary": summary, "classes": [], "windows": []}))
"""
MAIN = """
import mydyno.cli.digest
mydyno.cli.digest.probe_binary = lambda: PROGRAM
mydyno.cli.main()
"""


@pytest.fixture
def digest(tmp_path):
    program = tmp_path / "mydyno-probe"
    program.write_text(STANDS_IN)
    program.chmod(0o755)

    def call(*arguments, program=str(program), stdin=""):
        argv = [sys.executable, "-c", MAIN.replace("PROGRAM", repr(program)), "digest", *arguments]
        return subprocess.run(argv, input=stdin, capture_output=True, text=True, check=False)

    return call


def test_options_and_files_go_through_in_their_order(digest):
    given = ["-t", "5", "--sort", "max", "a b.log", "-r", "--since=2026-01-01", "c.log"]
    done = digest(*given)
    assert (done.returncode, done.stdout) == (0, f"{['digest', *given]} \n")


def test_standard_input_goes_through(digest):
    assert digest("-", stdin="# Time: now").stdout == "['digest', '-'] # Time: now\n"


def test_json_and_its_exit_code_are_the_programs_own(digest):
    assert digest("--json", "x.log").stdout.startswith('{"digest": 1')
    done = digest("--bad", "--loud")
    assert (done.returncode, done.stderr) == (1, "mydyno-probe: --bad: no such option\n")


def test_help_names_what_is_ours(digest):
    done = digest("--help")
    assert "--html FILE" in done.stdout
    assert "['digest', '--help']" in done.stdout


def test_a_page_is_written(digest, tmp_path):
    page = tmp_path / "page.html"
    done = digest("--html", str(page), "x.log", "--json")
    assert (done.returncode, done.stdout[:11]) == (0, '{"digest": '), done.stderr
    assert done.stderr == f"page: {page}\n"
    assert "&lt;slow&gt;.log" in page.read_text()
    assert "<slow>" not in page.read_text()


def test_a_page_that_cannot_be_made_is_reported(digest, tmp_path):
    assert digest("--html", str(tmp_path / "page.html"), "--bad").returncode == 2
    assert list(tmp_path.glob("*.html")) == []
    done = digest("--html", str(tmp_path / "none" / "page.html"))
    assert done.returncode == 2
    assert "choose another file with --html" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_program_is_reported_with_how_to_build_it(digest):
    done = digest("x.log", program="")
    assert done.returncode == 3
    assert "mydyno-probe is not here; `make setup` builds it" in done.stderr


def test_tables_need_an_option_file_and_no_password_in_the_arguments(digest, tmp_path):
    done = digest("--review", "D=a,t=b", "x.log")
    assert done.returncode == 2
    assert "--server-defaults" in done.stderr
    done = digest("--review", "D=a,p=secret", "--server-defaults", str(tmp_path / "my.cnf"), "x")
    assert done.returncode == 2
    assert "option file of --server-defaults" in done.stderr
    done = digest("--html", str(tmp_path / "page"), "--every=1s", "x.log")
    assert done.returncode == 2


CLASS = Class(
    id="E199401B87FC8B88",
    id32="B1FC7D6F35CE9C38E199401B87FC8B88",
    fingerprint="select c from item where id=?",
    events=2,
    first_seen="2026-11-21T01:41:22.000001Z",
    metrics={
        "query_time_s": ClassMetric(
            2, 0.4, 0.2, 0.1, 0.3, 0.1, 0.3, 0.3, [(0.1, 0.1, 1), (0.3, 0.3, 1)]
        )
    },
    flags={"full_scan": 1},
    example=Example("select '\\'"),
)
DIGEST = Digest(1, Summary(events=4), [CLASS])


@pytest.fixture
def writer(tmp_path, monkeypatch):
    """A writer whose server has two tables and remembers what it was asked."""
    writer = digest_tables.TableWriter(tmp_path / "my.cnf", create=False)
    writer.asked = []
    columns = {"review": "char", "history": "char", "old": "bigint"}

    def ask(statements):
        text = ";".join(statements)
        writer.asked.append(text)
        named = [kind for name, kind in columns.items() if name.encode().hex() in text]
        more = "fingerprint sample first_seen last_seen ts_min ts_cnt"
        more += " Query_time_stddev Full_scan_sum note"
        rows = [f"checksum\t{kind}" for kind in named]
        return "\n".join(rows + [f"{c}\ttext" for c in more.split() if named])

    monkeypatch.setattr(writer, "_ask", ask)
    return writer


def test_a_review_row_has_the_ids_of_the_table(writer):
    writer.write_review(digest_tables.ReviewTable("d", "review"), DIGEST)
    row = writer.asked[-1]
    assert f"'{CLASS.id32}'" in row
    assert "'2026-11-21 01:41:22.000001'" in row
    assert "select '" not in row, "texts are hexadecimal"
    writer.write_review(digest_tables.ReviewTable("d", "old"), DIGEST)
    assert str(int(CLASS.id, 16)) in writer.asked[-1]


def test_a_history_row_fills_the_columns_that_are_there(writer):
    writer.write_history(digest_tables.ReviewTable("d", "history"), DIGEST)
    row = writer.asked[-1]
    assert "`ts_min`, `ts_cnt`, `Query_time_stddev`, `Full_scan_sum`)" in row
    assert row.endswith("NOW()), 2, 0.1414213562373095, 1)")


def test_a_table_is_made_only_on_request(writer):
    with pytest.raises(SpecError, match="--create-tables"):
        writer.write_review(digest_tables.ReviewTable("d", "missing"), DIGEST)
    assert "CREATE" not in "".join(writer.asked)


@pytest.mark.parametrize("option", [("--server-defaults", "my.cnf"), ("--create-tables",)])
def test_options_of_tables_need_one(digest, option):
    for more in ((), ("--html", "page.html")):
        done = digest(*option, *more, "x.log")
        assert done.returncode == 2
        assert "--server-defaults, --create-tables: need --review or --history" in done.stderr
