"""sysbench fileio and fio in a real directory, against their own totals."""

import re
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from hdrh.histogram import HdrHistogram

from integration.load_steps import HOST, live, prepare, seen_by_others
from mydyno.loads import Target, fio, sysbench_fileio
from mydyno.model import Action, SpecError, Window
from mydyno.stats.estimates import summarise

pytestmark = pytest.mark.slow


@pytest.fixture
def directory(tmp_path):
    return Target(tmp_path, tmp_path)


@pytest.mark.parametrize("mode", ["rndrd", "rndwr", "rndrw", "seqrd", "seqwr", "seqrewr"])
def test_fileio_reports_as_it_runs(directory, mode):
    keys = {"test_mode": mode, "threads": 2, "file_total_size": "8M", "fsync_freq": 100}
    (cell,) = sysbench_fileio.cells("io", msgspec.convert(keys, sysbench_fileio.FileioParams))
    prepare(cell, directory)
    ((wall, interval),) = live(cell, directory, 1)
    assert wall < 10
    assert interval.values["iops"] > 0
    assert (interval.values["reads"] > 0) == (mode in {"rndrd", "rndrw", "seqrd"})
    assert (interval.values["writes"] > 0) == (mode not in {"rndrd", "seqrd"})


def test_fileio_agrees_with_its_own_report(directory):
    keys = {"test_mode": "rndrw", "threads": 2, "file_total_size": "8M"}
    (cell,) = sysbench_fileio.cells("io", msgspec.convert(keys, sysbench_fileio.FileioParams))
    prepare(cell, directory)
    argv = cell.run(directory, 7, {}).argv
    paced = (*argv[:-1], "--rate=500", "--time=15", "run")
    output = HOST.run(Action(paced)).check().stdout
    own = [float(rate) for rate in re.findall(r"(?:reads|writes)/s: +([\d.]+)", output.decode())]
    intervals = list(sysbench_fileio.reports(output.splitlines(keepends=True), 16384))
    spans = [end - start for start, end in pairwise([0, *[i.t_s for i in intervals]])]
    mean = sum(i.values["iops"] * s for i, s in zip(intervals, spans, strict=True)) / sum(spans)
    assert mean == pytest.approx(sum(own), rel=0.15)  # the last second is not in both


def test_the_mean_latency_of_fileio_is_that_of_its_own_report(directory):
    keys = {"test_mode": "rndwr", "threads": 4, "file_total_size": "8M", "fsync_freq": 1}
    (cell,) = sysbench_fileio.cells("io", msgspec.convert(keys, sysbench_fileio.FileioParams))
    prepare(cell, directory)
    argv = cell.run(directory, 7, {}).argv
    output = HOST.run(Action((*argv[:-1], "--time=20", "run"))).check().stdout
    own = float(re.search(rb"avg: +([\d.]+)", output)[1]) / 1e3
    found = summarise(list(cell.parse(output.splitlines(keepends=True))), Window(0, 20), "iops")
    mean = next(m.value for m in found if m.name == "latency_mean_s")
    assert mean == pytest.approx(own, rel=0.1)


def test_fio_reports_as_it_runs(directory):
    job = {"rw": "randrw", "bs": "16k", "size": "8M", "rate_iops": 200, "numjobs": 2}
    (cell,) = fio.cells("ff", fio.FioParams(job))
    cell.check(HOST)
    prepare(cell, directory)
    prepare(cell, directory)
    (_, _), (early, first), (late, second) = live(cell, directory, 3)
    assert late - early == pytest.approx(second.t_s - first.t_s, abs=1.0)
    assert second.values["iops"] == pytest.approx(800, rel=0.5)
    # fio reads its counters one after another as its jobs go on: events fall between on a busy host
    span_s = second.t_s - first.t_s
    blocks = second.values["read_bytes"] * span_s / 16384
    assert blocks == pytest.approx(round(blocks), abs=1e-6)
    assert blocks == pytest.approx(second.values["reads"] * span_s, rel=0.25)
    count = HdrHistogram.decode(second.latency).get_total_count()
    assert count == pytest.approx(second.values["iops"] * span_s, rel=0.25)


def test_nothing_of_fio_is_left_when_its_output_is_closed(directory):
    (cell,) = fio.cells("ff", fio.FioParams({"rw": "randread", "size": "4M", "numjobs": 3}))
    prepare(cell, directory)
    live(cell, directory, 1)
    pids = [entry.name for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    ours = str(directory.directory).encode()
    left = [pid for pid in pids if ours in b"".join(seen_by_others(pid))]
    assert left == []


def test_an_option_that_fio_does_not_know_is_refused_in_its_words():
    (cell,) = fio.cells("ff", fio.FioParams({"rw": "read", "size": "1M", "zork": 3}))
    with pytest.raises(SpecError, match=r"ff\.options: fio: unrecognized option '--zork=3'"):
        cell.check(HOST)
