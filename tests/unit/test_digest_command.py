"""`mydyno digest` hands all to mydyno-probe, and writes the page that is its own."""

import subprocess
import sys

import pytest

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
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
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
