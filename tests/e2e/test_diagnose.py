"""A diagnosis on a real server: the limit is proven, and a kill at any moment leaves no dose."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from command_line import COMMAND, mydyno
from mydyno.host import Local, ask
from mydyno.lab import listing
from mydyno.stack.cgroup import refusal

pytestmark = [pytest.mark.root, pytest.mark.mysqld, pytest.mark.slow]

SPEC = """
[stack]
server = "auto"
device = { lab = "loop", size = "1G", class = "azure-p10" }
[treatments.SMALL]
"mysqld.innodb_flush_method" = "O_DIRECT"
"mysqld.innodb_buffer_pool_size" = "32M"
[workloads.ro]
tool = "sysbench-oltp"
script = "oltp_read_only"
tables = 4
table_size = 60000
threads = [8]
options = { rand_type = "uniform" }
"""


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "capped.toml"
    path.write_text(SPEC)
    return path


def spinning(out):
    """Return the processes that take slices of CPUs for a run directory's campaign."""
    found = []
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = line.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"spin" in words and str(out).encode() in b" ".join(words):
            found.append(int(line.parent.name))
    return found


@pytest.mark.alone
def test_the_limit_of_a_capped_disk_is_proven(spec, tmp_path):
    out = tmp_path / "why"
    done = mydyno(
        "diagnose",
        spec,
        "-o",
        out,
        "--only",
        "disk.rate",
        "--budget",
        "6m",
        "--json",
        timeout=1200,
    )
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)
    assert found["answer"] == "disk.rate", found["proofs"]
    (proof,) = found["proofs"]
    assert proof["verdict"] == "the_limit"
    assert proof["elasticity"] == pytest.approx(1.0, abs=0.5)  # a busy machine is noisy
    lines = {line["state"]: line["connections"] for line in found["lines"]}
    assert sum(lines.values()) == pytest.approx(8)
    assert lines["disk_read"] > 4
    assert abs(lines["unknown"]) < 0.1 * 8
    assert found["suspects"][0]["limit"] in {"disk_credits", "disk_ios", "pool_size"}
    why = mydyno("why", out)
    assert "the limit is the rate of the disk, proven by doses" in why.stdout
    assert mydyno("report", out).returncode == 0
    page = (out / "report.html").read_text()
    assert "What one speed is worth" in page
    assert "the limit is the rate of the disk" in page
    refused = mydyno("compare", out)
    assert refused.returncode == 2
    assert "a diagnosis compares no treatments" in refused.stderr
    changes = [json.loads(p.read_text()) for p in sorted(out.glob("trials/*/changes.json"))]
    doses = [{c["key"]: c["after"] for c in some} for some in changes]
    assert {d.get("db/disk.rate") for d in doses} >= {None, "80%"}
    journal = (out / "journal.jsonl").read_text()
    assert journal.index('"db/disk.rate"') > journal.index('"finished"')  # recorded, then done


APART = """
[stack]
server = "auto"
device = { lab = "loop", size = "1G" }
[treatments.APART]
"mysqld.innodb_buffer_pool_size" = "256M"
"cpus.allowed" = "0"
"load/cpus.allowed" = "1"
[workloads.ro]
tool = "sysbench-oltp"
script = "oltp_read_only"
tables = 1
table_size = 10000
threads = [8]
"""


@pytest.mark.alone
@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="server and load need a CPU each")
def test_a_kill_while_cpus_are_slowed_leaves_no_dose_and_the_next_run_judges_them_apart(tmp_path):
    """What takes slices of CPUs ends with mydyno, whatever ends that; the rest is rolled back."""
    spec, out = tmp_path / "apart.toml", tmp_path / "why"
    spec.write_text(APART)
    # the trial that was cut off is run again at length: 3m would leave it fewer blocks
    words = ["diagnose", spec, "-o", out, "--only", "slow.server,slow.load", "--budget", "6m"]
    argv = [*COMMAND, *map(str, words), "--json"]
    labs = names()
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        state = next(iter(_until(lambda: list(out.glob("work/spin/state")) or _elsewhere(), 600)))
        _until(lambda: "0.8" in state.read_text(), 600)
        assert spinning(state.parent) != []
        assert names() - labs
        os.kill(running.pid, signal.SIGKILL)
    _until(lambda: not spinning(state.parent), 5)
    done = mydyno("rollback", out, timeout=300)
    assert done.returncode == 0, done.stderr
    assert names() <= labs
    assert not state.exists()
    done = mydyno(*words, "--json", timeout=1200)
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)
    slowed_apart(found["proofs"])
    assert spinning(out) + spinning(state.parent) == []
    assert names() <= labs


def names():
    """Return the lab disks that are there."""
    return {state.spec.lab for state in listing(Local())}


def slowed_apart(found):
    """Check that server and load were slowed by doses of their own, and what these showed."""
    proofs = {proof["limit"].partition(" ")[0]: proof for proof in found}
    assert "slow.server" in proofs
    assert proofs.keys() <= {"slow.server", "slow.load"}  # never the host's CPUs for both
    # the load is slowed where the server does not explain all; it shows no more than the server,
    # as far as the intervals of a busy machine go
    server, load = proofs["slow.server"], proofs.get("slow.load")
    assert server["high"] > 0.5, proofs
    assert load is None or load["low"] < server["high"], proofs


QUOTA = """
[stack]
server = "auto"
[treatments.HALF]
"mysqld.innodb_buffer_pool_size" = "256M"
"cgroup.cpu" = "50%"
[workloads.points]
tool = "sysbench-oltp"
script = "oltp_point_select"
tables = 1
table_size = 10000
threads = [8]
"""


def groups():
    return {path.name for path in Path("/sys/fs/cgroup").glob("**/mydyno-*") if path.is_dir()}


@pytest.mark.alone
def test_the_servers_quota_is_named_and_dosed_and_a_kill_leaves_no_group(tmp_path):
    if reason := ask(Local(), refusal()):
        pytest.skip(reason)
    spec, out, before = tmp_path / "quota.toml", tmp_path / "why", groups()
    spec.write_text(QUOTA)
    argv = [*COMMAND, "diagnose", str(spec), "-o", str(out), "--only", "cgroup.cpu", "--json"]
    argv += ["--budget", "6m"]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        changes = "trials/*/changes.json"
        _until(lambda: any('"40%"' in one.read_text() for one in out.glob(changes)), 600)
        os.kill(running.pid, signal.SIGKILL)
    assert groups() > before  # empty, as its server ends with mydyno
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=1200)
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)
    (proof,) = found["proofs"]  # on a busy machine it is undecided, with an interval around one
    assert found["answer"] in {"cgroup.cpu", "unknown"}, proof
    assert proof["high"] > 0.5, proof
    assert proof["elasticity"] == pytest.approx(1.0, abs=0.6), proof
    assert found["suspects"][0]["limit"] == "cpu_quota"
    assert mydyno("rollback", out, timeout=300).returncode == 0
    assert groups() == before


def _elsewhere():
    """Return the state of a work folder that is not in the run directory."""
    return list(Path("/var/tmp").glob("mydyno-*/spin/state"))  # noqa: S108 - where ours are


def _until(true, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := true():
            return found
        time.sleep(0.1)
    raise AssertionError(f"not within {seconds} s")


def test_a_host_with_another_database_is_refused(spec, tmp_path):
    other = tmp_path / "postgres"  # a name is what it is found by
    other.write_bytes(Path("/bin/sleep").read_bytes())
    other.chmod(0o755)
    with subprocess.Popen([other, "60"]) as running:
        try:
            done = mydyno("diagnose", spec, "-o", tmp_path / "why")
        finally:
            running.kill()
    assert done.returncode == 4
    assert f"postgres (pid {running.pid})" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--treatment", "SMAL"), "did you mean 'SMALL'"),
        (("--workload", "rw"), "unknown workload"),
        (("--blocks", "2"), "--blocks"),
        # these come after the look for other databases, which could find one of another test
        pytest.param(("--budget", "1m"), "too short for three blocks", marks=pytest.mark.alone),
        pytest.param(("--only", "disk.rat"), "did you mean 'disk.rate'", marks=pytest.mark.alone),
    ],
)
def test_bad_input_names_the_next_step(spec, tmp_path, arguments, message):
    done = mydyno("diagnose", spec, "-o", tmp_path / "why", *arguments)
    assert done.returncode == 2
    assert message in done.stderr


def test_a_run_without_samples_and_no_run_at_all_are_answered(tmp_path):
    done = mydyno("why")
    assert done.returncode == 2
    assert "--live" in done.stderr
    done = mydyno("why", tmp_path)
    assert done.returncode == 2
    done = mydyno("why", "--live")
    assert done.returncode == 2
    assert "--server-defaults" in done.stderr
