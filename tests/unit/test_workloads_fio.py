"""The cell, commands and refusals of the fio adapter."""

import json

import pytest

from mydyno.host import Local
from mydyno.loads import Target, fio
from mydyno.model import SpecError

JOB = {"rw": "randread", "size": "8M"}


def cell(**options):
    return fio.cells("ff", fio.FioParams({**JOB, **options}))[0]


@pytest.mark.parametrize(
    ("job", "words"),
    [
        ({"rw": "read"}, "size is missing"),
        ({"size": "1M"}, "rw is missing"),
        (JOB | {"runtime": 5}, "runtime: set by mydyno"),
        (JOB | {"status-interval": 5}, "status_interval: set by mydyno"),
        (JOB | {"filename": "/dev/sda"}, "inside the stack's own directory"),
        (JOB | {"filename": "a:/dev/sda"}, "inside the stack's own directory"),
        (JOB | {"filename": "../a"}, "inside the stack's own directory"),
        (JOB | {"filename_format": "/a.$jobnum"}, "inside the stack's own directory"),
        (JOB | {"opendir": "/srv"}, "confined to its directory"),
        (JOB | {"exec-prerun": "reboot"}, "confined to its directory"),
        (JOB | {"a b": 1}, "confined to its directory"),
    ],
)
def test_a_wrong_option_is_named(job, words):
    with pytest.raises(SpecError, match=words):
        fio.cells("ff", fio.FioParams(job))


def test_an_unknown_response_is_refused():
    with pytest.raises(SpecError, match="must be one of iops"):
        fio.cells("ff", fio.FioParams(JOB), "tps")


def test_the_engine_comes_before_the_options_that_only_it_knows():
    assert cell(cmdprio=1, ioengine="libaio", bs="4k").job() == (
        "--ioengine=libaio", "--bs=4k", "--cmdprio=1", "--rw=randread", "--size=8M"
    )  # fmt: skip


def test_jobs_that_differ_in_the_pressing_share_their_files():
    assert cell().info.data_key == cell(rw="randwrite", iodepth=32, direct=True).info.data_key
    assert cell().info.data_key != cell(size="9M").info.data_key
    assert cell().info.data_key != cell(numjobs=2).info.data_key


def test_files_are_filled_whatever_the_direction(tmp_path):
    layout, flush = cell(rw="randwrite").prepare(Target(tmp_path, tmp_path))
    assert "--rw=read" in layout.argv
    assert "--rw=randwrite" not in layout.argv
    assert "--create_only=1" in layout.argv
    assert flush.argv[0] == "sync"


def test_the_load_is_endless_seeded_and_one_process(tmp_path):
    argv = cell(direct=True).run(Target(tmp_path, tmp_path), 9, {"A": "b"}).argv
    assert argv[:4] == ("env", "A=b", "LC_ALL=C", "fio")
    assert set(argv) >= {
        "--direct=1", "--time_based=1", "--thread=1", "--randseed=9", "--status-interval=1",
        "--output-format=json+", f"--directory={tmp_path}",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["rate", "rate_iops", "rate-iops"])
def test_a_rate_opens_the_loop_however_it_is_spelt(name):
    assert cell().info.closed_loop
    assert not cell(**{name: 100}).info.closed_loop


_BEGAN = 10**12


def document(timestamp_ms, runtime_ms):
    """Return a status document of fio after so long a run."""
    way = {"runtime": runtime_ms, "total_ios": runtime_ms, "io_bytes": 4096 * runtime_ms}
    none = {"runtime": 0, "total_ios": 0, "io_bytes": 0}
    job = {"error": 0, "read": way, "write": none, "trim": none}
    text = json.dumps({"timestamp_ms": timestamp_ms, "jobs": [job]}, indent=1)
    return [f"{line}\n".encode() for line in text.splitlines()]


@pytest.mark.parametrize("step_ms", [-300_000, 3_600_000])
def test_a_clock_that_is_set_while_fio_runs_ends_its_trial(step_ms):
    """Its reports have the wall clock's time: they would fall out of the window, or into it."""
    steady = [*document(_BEGAN + 1000, 1000), *document(_BEGAN + 2000, 2000)]
    assert [round(one.t_s) for one in fio.parse(steady)] == [1, 2]
    with pytest.raises(ValueError, match="clock was set while it ran"):
        list(fio.parse([*steady, *document(_BEGAN + 3000 + step_ms, 3000)]))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ioscheduler", "none"),
        ("write_bw_log", "/etc/x"),
        ("mem", "mmaphuge:/etc/x"),
        ("ioengine", "external:/tmp/x.so"),
    ],
)
def test_a_job_changes_no_host_and_writes_nowhere_else(name, value):
    """Runs of older versions, which have such jobs, can be read."""
    (load, *_) = fio.cells("ff", fio.FioParams(JOB | {name: value}))
    with pytest.raises(SpecError, match=rf"options\.{name}: changes the host, or names a file"):
        load.check(Local())
