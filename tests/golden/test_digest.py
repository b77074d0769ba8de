"""The digest of each real and crafted log equals its golden file and the log's own facts."""

import re
import shutil
import subprocess
import tomllib
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import pytest

from golden.digest.steps import digest, golden
from golden.rewrite import hold

HERE = Path(__file__).parent / "digest"
CASES = sorted(path.parent.name for path in HERE.glob("*/input*.log"))
FACTS = tomllib.loads((HERE / "facts.toml").read_text())
STATEMENTS = tomllib.loads((HERE / "fingerprints.toml").read_text())["statement"]
QUERY_TIME = re.compile(rb"^# Query_time: (\d+\.\d+)  Lock_time: (\d+\.\d+) ", re.MULTILINE)
FORGED = b"666.000000"
PT = "pt-query-digest 3.2.1"
PERL = """
BEGIN { require shift @ARGV; $rewriter = QueryRewriter->new() }
chomp; print $rewriter->fingerprint($_), "\\0"
"""


def digested(case):
    words = HERE / case / "options"
    options = words.read_text().split() if words.exists() else []
    return digest(*options, *sorted((HERE / case).glob("input*.log")))


@pytest.mark.parametrize("case", sorted(set(CASES)))
def test_golden(case):
    hold(HERE / case / "wanted.json", golden(digested(case)))


@pytest.mark.parametrize("case", sorted(FACTS))
def test_facts(case):
    found, facts = digested(case), FACTS[case]
    summary = found["summary"]
    assert summary["events"] == facts["events"]
    assert Decimal(str(summary["query_time_s"])) == Decimal(facts["query_time"])
    for name in ("events_weighted", "first_seen", "last_seen"):
        assert summary[name] == facts.get(name, summary[name])
    classes = {one["fingerprint"]: one["events"] for one in found["classes"]}
    assert classes == facts.get("classes", classes)
    assert sum(one["events"] for one in found["classes"]) == facts["events"]
    for name, count in facts.get("oddities", {}).items():
        assert summary["oddities"][name] == count


@pytest.mark.parametrize("case", [case for case in sorted(FACTS) if "sums" in FACTS[case]])
def test_sums(case):
    metrics = [one["metrics"] for one in digested(case)["classes"]]
    for name, (count, total) in FACTS[case]["sums"].items():
        found = [one[name] for one in metrics if name in one]
        assert sum(one["count"] for one in found) == count
        assert sum(Decimal(str(one["sum"])) for one in found) == Decimal(total)


@pytest.mark.parametrize("names", ["users", "databases"])
def test_names(names):
    for case, facts in FACTS.items():
        found = {name for one in digested(case)["classes"] for name in one[names]}
        assert sorted(found) == facts.get(names, sorted(found)), case


@pytest.mark.parametrize("case", [case for case in sorted(set(CASES)) if case.startswith("real")])
def test_real_logs_add_up(case):
    """Sums found by looking for one kind of line; the forged ones all took 666 s."""
    log = (HERE / case / "input.log").read_bytes()
    real = [pair for pair in QUERY_TIME.findall(log) if FORGED not in pair]
    summary = digested(case)["summary"]
    assert summary["events"] == len(real) > 50
    assert summary["bytes"] == len(log)
    for place, name in enumerate(("query_time_s", "lock_time_s")):
        total = sum(Decimal(pair[place].decode()) for pair in real)
        assert Decimal(str(summary[name])) == total
    assert summary["oddities"]["forged_headers"] == 2


def log_of(statement):
    mark = "# " if statement.startswith("administrator") else ""
    header = "# User@Host: {0}[{0}] @ localhost []\n# Query_time: 0.000001  Lock_time: 0\n"
    return header + mark + statement + ";\n"


def fingerprints(folder, *options):
    """Return the fingerprint of each statement of the table; each is a log with its own user."""
    for place, one in enumerate(STATEMENTS):
        text = log_of(one["text"]).replace("{0}", f"user{place}")
        (folder / f"{place}.log").write_text(text, newline="")
    found = {}
    for place in range(0, len(STATEMENTS), 10):  # a class names 16 users at most
        logs = [folder / f"{at}.log" for at in range(place, min(place + 10, len(STATEMENTS)))]
        for one in digest(*options, *logs)["classes"]:
            found |= dict.fromkeys(one["users"], one["fingerprint"])
    return [found[f"user{place}"] for place in range(len(STATEMENTS))]


def test_fingerprints(tmp_path):
    assert fingerprints(tmp_path) == [one["ours"] for one in STATEMENTS]


def test_fingerprints_of_pt(tmp_path):
    wanted = [one.get("pt", one["ours"]) for one in STATEMENTS]
    assert fingerprints(tmp_path, "--compat=pt") == wanted


@pytest.mark.parametrize("case", [case for case in CASES if case.startswith("real-")])
def test_times_of_classes_are_those_of_their_events(case):
    """Unlike pt-query-digest's, which takes a line of a forged header for the time."""
    log = (HERE / case / "input.log").read_bytes()
    stamped = {int(s) for s in re.findall(rb"^SET timestamp=(\d+)", log, re.MULTILINE)}
    for one in digested(case)["classes"]:
        for seen in (one["first_seen"], one["last_seen"]):
            assert int(datetime.fromisoformat(seen).timestamp()) in stamped


def test_every_difference_has_a_reason():
    for one in STATEMENTS:
        assert ("pt" in one) == ("why" in one)
        assert one.get("pt") != one["ours"]


def test_pt_query_digest_prints_the_fingerprints_of_the_table():
    tool = shutil.which("pt-query-digest")
    version = tool and subprocess.run([tool, "--version"], capture_output=True, check=True).stdout
    if not tool or version.decode().split() != PT.split():
        pytest.skip(f"{PT} is not here")
    texts = "\0".join(one["text"] for one in STATEMENTS).encode()
    argv = ["perl", "-0", "-n", "-e", PERL, tool]
    done = subprocess.run(argv, input=texts, capture_output=True, check=True)
    printed = done.stdout.decode().split("\0")[:-1]
    assert printed == [one.get("pt", one["ours"]) for one in STATEMENTS]
