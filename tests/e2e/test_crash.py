"""A crash test on real servers: what was acknowledged is there after a power cut, or is missed."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from command_line import MAIN, mydyno, reached, shown
from integration.lab_steps import traces
from integration.server_steps import CACHE, MARIADB, SERVERS, build_of
from mydyno.campaign.treatments import Environment
from mydyno.cli.crash import crash_source
from mydyno.cli.recipes import SpecSource, find
from mydyno.cli.run_directory import RunFacts, save
from mydyno.host import Local
from mydyno.journal import FileJournal, Finished
from mydyno.journal.register import RunDir
from mydyno.lab import listing
from mydyno.model import Outcome, Trial, TrialStatus, Window
from mydyno.sample import facts

pytestmark = [pytest.mark.root, pytest.mark.mysqld, pytest.mark.slow]
MYDYNO = Path(sys.executable).with_name("mydyno")
SPEC = """
[stack]
server = "{server}"
device = {{ lab = "loop", size = "1G" }}
[treatments.SAFE]
"mysqld.log_bin" = "ON"
"mysqld.sync_binlog" = 1
"mysqld.innodb_flush_log_at_trx_commit" = 1
[treatments.WEAK]
"mysqld.log_bin" = "ON"
"mysqld.sync_binlog" = 0
"mysqld.innodb_flush_log_at_trx_commit" = 2
[workloads.rw]
tool = "sysbench-oltp"
script = "oltp_read_write"
[decide]
baseline = "SAFE"
"""


POOL = '"mysqld.innodb_buffer_pool_size" = "50%"'


@pytest.fixture
def spec(request, tmp_path):
    name = getattr(request, "param", MARIADB)
    build_of(name)  # or it is not there
    path = tmp_path / "crash.toml"
    server = "auto" if name == MARIADB else str(CACHE / "servers" / name)
    path.write_text(SPEC.format(server=server))
    return path


def crash_test(spec, *words, code=0):
    argv = [MYDYNO, "lab", "crash-test", spec, "-o", spec.parent / "out", *words]
    done = subprocess.run(
        [str(word) for word in argv], capture_output=True, text=True, check=False, timeout=1800
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout if code == 0 else done.stderr


@pytest.mark.parametrize("spec", SERVERS[::2], indirect=True)
def test_safe_settings_lose_nothing_and_weak_ones_do(spec):
    safe, weak = json.loads(crash_test(spec, "--cuts", "2", "--json"))
    assert (safe["cuts"], safe["failed"], weak["cuts"]) == (2, 0, 2), safe["example"]
    assert (safe["lossy"], safe["corrupt"], safe["binlog"], safe["unlogged"]) == (0, 0, 0, 0)
    assert weak["lossy"] + weak["binlog"] >= 2
    assert (safe["durability"], weak["durability"]) == ("same", "weaker")
    out = spec.parent / "out"
    assert not (out / "work").exists()
    assert traces(out / "work") == []


@pytest.mark.parametrize("spec", ["mysql-8.0.33"], indirect=True)
def test_a_binary_log_that_cannot_be_searched_is_not_judged(spec):
    """Its transactions are compressed: each commit was reported as lost from it."""
    packed = ("--set", 'treatments.SAFE."mysqld.binlog_transaction_compression"="ON"')
    (safe,) = json.loads(crash_test(spec, "--cuts", "1", "-t", "SAFE", *packed, "--json"))
    assert (safe["cuts"], safe["lossy"], safe["binlog"], safe["unlogged"]) == (1, 0, None, None)


def test_on_a_disk_that_ignores_flushes_safe_settings_lose_too(spec):
    mutant = ("--set", "stack.device.ignores_flushes=true")
    (safe,) = json.loads(crash_test(spec, "--cuts", "2", "-t", "SAFE", *mutant, "--json"))
    assert safe["lossy"] + safe["corrupt"] >= 2, "or the test above shows nothing"


@pytest.mark.parametrize("spec", ["mysql-8.0.33"], indirect=True)
def test_files_on_another_disk_would_survive_the_cut_and_prove_nothing(spec):
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        Path(folder).chmod(0o777)
        given = ("--set", f"treatments.SAFE.mysqld.innodb_doublewrite_dir={folder}")
        (safe,) = json.loads(crash_test(spec, "--cuts", "2", "-t", "SAFE", *given, "--json"))
    assert (safe["cuts"], safe["failed"]) == (0, 2)
    assert f"innodb_doublewrite_dir: {folder} is not on the disk" in safe["example"]


def test_killed_in_a_cut_it_is_run_again_and_leaves_nothing(spec):
    out = spec.parent / "out"
    argv = [MYDYNO, "lab", "crash-test", spec, "-o", out, "--cuts", "2", "-t", "SAFE"]
    process = subprocess.Popen([str(word) for word in argv], stderr=subprocess.DEVNULL)
    try:
        reached(process, lambda: [*out.glob("trials/*/power-cut.json")])
    finally:
        process.kill()
        process.wait()
    (safe,) = json.loads(crash_test(spec, "--cuts", "2", "-t", "SAFE", "--json"))
    assert (safe["cuts"], safe["lossy"]) == (2, 0)
    assert traces(out / "work") == []
    assert not [state for state in listing(Local()) if Path(state.home).is_relative_to(out)]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-t", "NOPE"), "'NOPE'"),
        (("--set", 'stack.device="here"'), "needs a server on a lab disk"),
        (("--set", 'stack.server="none"'), "needs a server on a lab disk"),
    ],
)
def test_what_cannot_be_cut_is_refused(spec, words, message):
    assert message in crash_test(spec, *words, code=2)
    assert not (spec.parent / "out").exists()


def test_a_spec_can_ask_for_proof_after_its_campaign(spec):
    words = ("--set", 'decide.durability="prove"', "--set", "protocol.window_s=1")
    words += ("--set", "protocol.warmup_s=1", "--set", "protocol.blocks=1")
    out = spec.parent / "out"
    few = "import mydyno.cli.crash as c; c.CUTS = 2\n" + MAIN
    done = mydyno("run", spec, "-o", out, *words, code=few)
    assert done.returncode == 0, done.stderr
    assert "SAFE: lost nothing in 2 cuts" in done.stdout
    assert "<h2>Power cuts" in (out / "report.html").read_text()
    found = shown("compare", out)
    assert found.returncode == 0, found.stderr
    assert "SAFE: lost nothing in 2 cuts" in found.stdout


def test_where_neither_option_nor_spec_gives_a_number_there_are_ten_cuts(spec, tmp_path):
    assert crash_source(find(str(spec), {}), tmp_path).decode().design.blocks == 10


def test_shares_of_memory_are_of_what_the_host_had_when_the_test_began(tmp_path):
    """A new kernel leaves some MiB more or less, and a resumed test was another campaign."""
    text = SPEC.format(server="auto").replace('"mysqld.log_bin" = "ON"', POOL, 1)
    source, memory = SpecSource(text, "share.toml", {}), facts(Local()).memory_bytes
    first = Environment(int(1.02 * memory), 4, "mariadb", (10, 11, 19))
    save(RunDir(tmp_path), source, RunFacts("share.toml", {}, first, ""), begun=False)
    journal = FileJournal(tmp_path / "journal.jsonl")
    journal.append(Finished(Outcome(Trial(0, "SAFE", "w", 1, 1), TrialStatus.OK, Window(0, 1))))
    journal.close()
    made = (crash_source(source, folder).decode() for folder in (tmp_path / "new", tmp_path))
    now, then = (int(one.treatments["SAFE"]["mysqld.innodb_buffer_pool_size"]) for one in made)
    assert now == pytest.approx(0.5 * memory, abs=2**20)
    assert then == pytest.approx(1.02 * now, abs=2**21)


def test_run_names_the_command_for_it(spec):
    done = subprocess.run(
        [MYDYNO, "run", spec, "--set", "design.kind=crash"], capture_output=True, check=False
    )
    assert b"mydyno lab crash-test" in done.stderr


def test_the_baseline_comes_with_a_chosen_treatment():
    """Durability is that beside it: alone, a treatment would be its own baseline, and the same."""
    made = crash_source(find("durability", {}), Path(), ["SAFE+TRX2"], 3).decode()
    assert list(made.treatments) == ["SAFE", "SAFE+TRX2"]
    assert made.decide.baseline == "SAFE"
