"""Raw output of each load generator, and what it is read as.

A case is a folder ``workloads/<tool>/<case>`` with `raw.txt`, `origin.txt` (where the bytes come
from) and `want.json`, which ``MYDYNO_GOLDEN=write`` writes.
"""

import json
from functools import partial
from pathlib import Path

import pytest
from hdrh.histogram import HdrHistogram

from golden.rewrite import hold
from mydyno.loads import fio, mysqlslap, sysbench, sysbench_fileio

CASES = Path(__file__).parent / "workloads"
PARSERS = {
    "fio": fio.parse,
    "mysqlslap": mysqlslap.parse,
    "sysbench-fileio": partial(sysbench_fileio.reports, block_bytes=16384),
    "sysbench-oltp": sysbench.parse,
    "sysbench-tpcc": sysbench.parse,
}
REAL = {
    "fio": "randrw",
    "mysqlslap": "write_mariadb",
    "sysbench-fileio": "rndrw",
    "sysbench-oltp": "read_write",
    "sysbench-tpcc": "mix",
}


def shape(encoded):
    """Return what a histogram holds: its compressed bytes may differ between zlib versions."""
    if not encoded:
        return None
    histogram = HdrHistogram.decode(encoded)
    points = {f"p{p:g}_us": histogram.get_value_at_percentile(p) for p in (0, 50, 99, 100)}
    return {"count": histogram.get_total_count()} | points


def reading(tool, raw):
    intervals, error = [], ""
    try:
        for interval in PARSERS[tool](raw):
            values = {name: round(value, 9) for name, value in interval.values.items()}
            report = {"t_s": interval.t_s, "values": values, "latency": shape(interval.latency)}
            if interval.kinds:
                report["kinds"] = {kind: shape(latency) for kind, latency in interval.kinds.items()}
            intervals.append(report)
    except ValueError as problem:
        error = str(problem)
    found = {"intervals": intervals, "error": error}
    if tool in {"sysbench-oltp", "sysbench-tpcc"}:
        try:
            found["session"] = dict(sysbench.parse_session(raw))
        except ValueError:
            found["session"] = None
    return found


@pytest.mark.parametrize(
    "case", [pytest.param(p.parent, id=f"{p.parent.parent.name}-{p.parent.name}")
             for p in sorted(CASES.glob("*/*/raw.txt"))]
)  # fmt: skip
def test_raw_output_is_read_as_recorded(case):
    assert (case / "origin.txt").read_text().strip()
    raw = (case / "raw.txt").read_bytes().splitlines(keepends=True)
    found = reading(case.parent.name, raw)
    hold(case / "want.json", json.dumps(found, indent=1, sort_keys=True) + "\n")


@pytest.mark.parametrize("tool", PARSERS)
def test_every_cut_of_real_output_is_read_without_a_crash(tool):
    raw = (CASES / tool / REAL[tool] / "raw.txt").read_bytes()
    complete = len(reading(tool, raw.splitlines(keepends=True))["intervals"])
    step = max(1, len(raw) // 60)
    for end in range(0, len(raw), step):
        found = reading(tool, raw[:end].splitlines(keepends=True))
        assert not found["error"]
        assert len(found["intervals"]) <= complete


@pytest.mark.parametrize("tool", PARSERS)
def test_intervals_come_with_the_line_that_ends_them(tool):
    raw = (CASES / tool / REAL[tool] / "raw.txt").read_bytes().splitlines(keepends=True)
    taken = []

    def live():
        for line in raw:
            taken.append(line)
            yield line

    first = next(iter(PARSERS[tool](live())))
    assert first.t_s > 0
    assert len(taken) < len(raw)
