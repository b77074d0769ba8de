"""The JSON documents that fio prints every second, read as differences of their counters."""

from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from mydyno.model import Interval
from mydyno.workloads.histogram import QUANTILE_NAMES, recorded
from mydyno.workloads.lines import no_report, text_lines

METRICS = ("iops", "reads", "writes", "trims", "fsyncs", "read_bytes", "write_bytes",
           *QUANTILE_NAMES)  # fmt: skip

_SHORTEST_S = 0.5  # the last document comes with the signal; a rate over less is noise
_REMARKS = ("fio: ", "note: ", "WARNING: ")
_ABORTS = ("error=", "err=", "failed")


class _Latency(msgspec.Struct, frozen=True):
    bins: dict[int, int] = {}


class _Direction(msgspec.Struct, frozen=True):
    runtime: float
    total_ios: int
    io_bytes: int
    clat_ns: _Latency = _Latency()


class _Sync(msgspec.Struct, frozen=True):
    total_ios: int = 0


class _Job(msgspec.Struct, frozen=True):
    error: int
    read: _Direction
    write: _Direction
    trim: _Direction
    sync: _Sync = _Sync()


class _Report(msgspec.Struct, frozen=True):
    timestamp_ms: int
    jobs: list[_Job]

    def job(self) -> _Job:
        """Return the one group that all jobs report as."""
        return self.jobs[0]


_READ = msgspec.json.Decoder(_Report, strict=False)
_ZERO = _Direction(0, 0, 0)
_NOTHING = _Job(0, _ZERO, _ZERO, _ZERO)


def parse(lines: Iterable[bytes]) -> Iterator[Interval]:
    """Yield one interval for each status document, as it is complete; rates are per second.

    `iops` is the sum of `reads`, `writes` and `trims`; the histogram and the quantiles are of
    the completion latency of reads and writes together, from fio's bins (1.6 % wide at most).
    fio takes the counters when it prints, so time is that of its `timestamp_ms`; the load began
    the first document's `runtime` before.  Raises `ValueError` naming the line for fio's own
    errors and for what cannot be a report.
    """
    before, at_ms, began_ms = _NOTHING, 0.0, 0.0
    for report in _reports(lines):
        job = report.job()
        if not began_ms:
            began_ms = report.timestamp_ms - max(job.read.runtime, job.write.runtime,
                                                 job.trim.runtime)  # fmt: skip
            at_ms = began_ms
        span_s = (report.timestamp_ms - at_ms) / 1e3
        if span_s < _SHORTEST_S:
            continue
        yield _interval((report.timestamp_ms - began_ms) / 1e3, span_s, before, job)
        before, at_ms = job, report.timestamp_ms


def _reports(lines: Iterable[bytes]) -> Iterator[_Report]:
    document: list[str] = []
    for number, text in text_lines(lines):
        if document:
            document.append(text)
        elif text == "{":
            document = [text]
        else:
            _between(number, text)
        if text == "}":
            yield _decoded(number, "\n".join(document))
            document = []


def _between(number: int, text: str) -> None:
    """Pass over fio's remarks between two documents; raise `ValueError` for anything else."""
    if not text.startswith(_REMARKS):
        raise no_report("fio", number, text)
    if any(mark in text for mark in _ABORTS):
        raise ValueError(f"line {number}: {text}")


def _decoded(number: int, document: str) -> _Report:
    try:
        report = _READ.decode(document)
    except msgspec.DecodeError as error:
        raise no_report("fio", number, document, str(error)) from error
    if len(report.jobs) != 1:
        raise no_report("fio", number, document, f"{len(report.jobs)} jobs instead of one group")
    if report.job().error:
        raise ValueError(f"fio ended with error {report.job().error} (document before line "
                         f"{number}); its standard error says more")  # fmt: skip
    return report


def _interval(t_s: float, span_s: float, before: _Job, now: _Job) -> Interval:
    counts = {
        "reads": now.read.total_ios - before.read.total_ios,
        "writes": now.write.total_ios - before.write.total_ios,
        "trims": now.trim.total_ios - before.trim.total_ios,
        "fsyncs": now.sync.total_ios - before.sync.total_ios,
        "read_bytes": now.read.io_bytes - before.read.io_bytes,
        "write_bytes": now.write.io_bytes - before.write.io_bytes,
    }
    counts["iops"] = counts["reads"] + counts["writes"] + counts["trims"]
    latency, quantiles = recorded(_new_bins(before, now))
    return Interval(t_s, {name: n / span_s for name, n in counts.items()} | quantiles, latency)


def _new_bins(before: _Job, now: _Job) -> Iterator[tuple[float, int]]:
    """Yield microseconds and the events that came to that bin since `before`."""
    bins = _bins(now)
    bins.subtract(_bins(before))
    return ((nanoseconds / 1e3, count) for nanoseconds, count in bins.items())


def _bins(job: _Job) -> Counter[int]:
    return Counter(job.read.clat_ns.bins) + Counter(job.write.clat_ns.bins)
