"""A campaign on real servers is sampled: each trial in the time of its load, and nothing stays."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from command_line import MAIN
from mydyno.cli.run_directory import result
from mydyno.sample import probe_binary
from mydyno.sample.probe_file import read

pytestmark = [pytest.mark.root, pytest.mark.mysqld, pytest.mark.slow]

SPEC = """
[campaign]
name = "sampled"
[stack]
server = "auto"
device = { lab = "loop", size = "1G", class = "azure-p30" }
[treatments.socket]
[treatments.tcp]
"net.transport" = "tcp"
[workloads.rw]
tool = "sysbench-oltp"
script = "oltp_read_write"
tables = 1
table_size = 3000
threads = 2
rate = 100
[protocol]
warmup_s = 2
window_s = 5
blocks = 1
"""
WITHOUT = (
    "import mydyno.sample.sampler as s, mydyno.cli.benches as b\n"
    "s.probe_binary = b.probe_binary = lambda: ''\n"
)


@pytest.fixture(autouse=True)
def _with_the_sampler():
    if not probe_binary():
        pytest.fail("mydyno-probe is missing: run packaging/setup.sh")


def command(folder, code=MAIN):
    spec = folder / "spec.toml"
    spec.write_text(SPEC)
    return [sys.executable, "-c", code, "run", str(spec), "-o", str(folder / "run")]


def run(folder, **options):
    argv = command(folder, **options)
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=1800)
    assert done.returncode == 0, done.stderr
    return done


def probes(folder):
    """Return the process ids of samplers that write below a folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            argv = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if argv[1:2] == [b"sample"] and any(str(folder).encode() in word for word in argv):
            found.append(int(path.parent.name))
    return found


def until(condition, patience_s=300.0):
    end = time.monotonic() + patience_s
    while not (found := condition()) and time.monotonic() < end:
        time.sleep(0.05)
    return found


def begun(folder):
    """Return the samplers that write below a folder once the first trial's load has reported."""
    raw = folder / "run" / "trials" / "0000" / "load.out"
    until(lambda: raw.exists() and raw.stat().st_size)
    until(lambda: len(probes(folder)) == 1)  # one that is just being started counts twice
    return probes(folder)


def test_the_series_are_in_the_time_of_the_load(folder):
    """What the load did in a second is what its process used in that second."""
    run(folder)
    assert probes(folder) == []
    trials = result(folder / "run").trials
    assert {trial.treatment for trial in trials} == {"socket", "tcp"}
    trial = trials[0]
    (used,) = (g for g in trial.gauges if g.name == "process.load.cpu")
    assert 0.2 < used.t_s[0] < 3.5  # a rate takes two ticks, and the first finds the process
    assert 6.0 < used.t_s[-1] < 8.5
    sample = read(folder / "run" / "trials" / "0000" / "probe.bin")
    assert sample.end is not None
    assert sample.end.reason == "signal"
    assert sample.end.missed <= 1  # a machine that stands still for a second


def test_the_sampler_ends_with_a_killed_campaign(folder):
    process = subprocess.Popen(command(folder), stderr=subprocess.PIPE, text=True)
    assert len(begun(folder)) == 1
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    assert until(lambda: not probes(folder), 60.0)
    run(folder)  # goes on, and removes what is left
    assert all(t.gauges for t in result(folder / "run").trials)


def test_a_sampler_that_dies_fails_no_trial(folder):
    process = subprocess.Popen(command(folder), stderr=subprocess.PIPE, text=True)
    (pid,) = begun(folder)
    os.kill(pid, signal.SIGKILL)
    _, errors = process.communicate(timeout=1800)
    assert process.returncode == 0, errors
    found = result(folder / "run")
    assert {t.status for t in found.trials} == {"ok"}
    died = "sampling: mydyno-probe ended before the load did (exit -9)"
    assert found.comparison.warnings.count(died) == 1


def test_without_the_sampler_trials_go_on(folder):
    done = run(folder, code=WITHOUT + MAIN)
    assert done.stderr.count("mydyno-probe is not here") == 1
    found = result(folder / "run")
    assert {t.status for t in found.trials} == {"ok"}
    assert [t.gauges for t in found.trials] == [[], []]
    assert not list((folder / "run" / "trials").glob("*/probe.*"))
