"""A campaign across a lab's link and with TLS, on a real server: what it does, sees and leaves."""

import json
import subprocess
import tempfile
from pathlib import Path

import msgspec
import pytest

from command_line import COMMAND

pytestmark = [pytest.mark.root, pytest.mark.mysqld, pytest.mark.slow]

SPEC = """
[stack]
server = "auto"
[treatments.slow]
"net.address" = "lab"
"net.tls" = "on"
"link.rate" = "20%"
[treatments.plain]
"net.address" = "lab"
"net.tls" = "off"
[workloads.ro]
tool = "sysbench-oltp"
script = "oltp_read_only"
table_size = 2000
threads = 8
[protocol]
kind = "fixed"
warmup_s = 2
window_s = 5
blocks = 2
[decide]
baseline = "slow"
"""


@pytest.fixture(scope="module")
def done():
    with tempfile.TemporaryDirectory(prefix="mydyno-test-", dir="/var/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "spec.toml").write_text(SPEC)
        argv = [*COMMAND, "run", str(folder / "spec.toml"), "-o", str(folder / "run"), "--json"]
        found = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=1800)
        assert found.returncode == 0, found.stderr
        compared = subprocess.run(
            [*COMMAND, "report", str(folder / "run"), "--json"], capture_output=True, check=True
        )
        yield found, folder / "run", json.loads(compared.stdout)


def events(run):
    return [json.loads(line)["event"] for line in (run / "journal.jsonl").read_text().splitlines()]


def test_the_slow_link_bites_and_is_full(done):
    _, _, result = done
    trials = {name: [] for name in ("slow", "plain")}
    for trial in result["trials"]:
        assert trial["status"] == "ok", trial["error"]
        trials[trial["treatment"]].append(trial)
    assert min(len(each) for each in trials.values()) >= 2
    slow, plain = (max(t["metrics"]["tps"] for t in trials[n]) for n in ("slow", "plain"))
    assert slow < plain
    for trial in trials["slow"]:
        used = next(g["values"] for g in trial["gauges"] if g["name"] == "net.used")
        assert 0.75 < max(used) < 1.1  # a busy machine may leave some of it; the cap must hold
    assert all(g["name"] != "net.used" for t in trials["plain"] for g in t["gauges"])


def test_the_rate_is_a_share_of_the_traffic_that_was_measured_once(done):
    found, run, _ = done
    measured = [e for e in events(run) if e["type"] == "measured"]
    assert len(measured) == 1
    compared = {c["key"]: c["after"] for c in changes(run) if c["key"] == "db/link.rate"}
    rate = int(compared["db/link.rate"].removesuffix("kbit")) * 125
    assert rate == pytest.approx(0.2 * measured[0]["value"], abs=125)
    assert "measured: " in found.stderr


def changes(run):
    for trial in sorted((run / "trials").iterdir()):
        yield from json.loads((trial / "changes.json").read_text())


def test_each_session_has_the_tls_of_its_treatment(done):
    _, run, result = done
    for trial in result["trials"]:
        lines = (run / "trials" / f"{trial['id']:04d}" / "load.out").read_text().splitlines()
        session = next(msgspec.json.decode(x) for x in lines if '"session"' in x)
        assert bool(session["ssl_cipher"]) is (trial["treatment"] == "slow")


def test_nothing_is_left(done):
    _, run, _ = done
    network = json.loads((run / "facts" / "lab link.json").read_text())["network"]
    address = network.rpartition(".")[0]
    shown = subprocess.run(("ip", "-br", "address"), capture_output=True, text=True, check=True)
    assert address not in shown.stdout
    assert not (run / "work").exists()
