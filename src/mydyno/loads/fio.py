"""The flexible I/O tester, with any job options and a report of histograms every second."""

import re
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from mydyno.host import Host
from mydyno.loads import protocol
from mydyno.loads.histogram import QUANTILE_NAMES, recorded
from mydyno.loads.protocol import (
    Reports,
    Target,
    Workload,
    WorkloadInfo,
    no_report,
    prefix,
    text_lines,
)
from mydyno.model import Action, Interval, SpecError

METRICS = ("iops", "reads", "writes", "trims", "fsyncs", "read_bytes", "write_bytes",
           *QUANTILE_NAMES)  # fmt: skip

_SHORTEST_S = 0.5  # the last document comes with the signal; a rate over less is noise
_SET_S = 5.0  # between two documents, beyond what fio has run: somebody has set the clock
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
    errors, for what cannot be a report, and where the host's clock was set meanwhile.
    """
    before, at_ms, began_ms = _NOTHING, 0.0, 0.0
    for report in _reports(lines):
        job = report.job()
        if not began_ms:
            began_ms = report.timestamp_ms - _ran_ms(job)
            at_ms = began_ms
        ran_s = (_ran_ms(job) - _ran_ms(before)) / 1e3
        span_s = (report.timestamp_ms - at_ms) / 1e3
        ahead = before is not _NOTHING and 0 <= ran_s < span_s - _SET_S
        if ahead or span_s < -_SHORTEST_S:
            raise ValueError("fio: the host's clock was set while it ran")
        if span_s < _SHORTEST_S:
            continue
        yield _interval((report.timestamp_ms - began_ms) / 1e3, span_s, before, job)
        before, at_ms = job, report.timestamp_ms


def _ran_ms(job: _Job) -> float:
    return max(job.read.runtime, job.write.runtime, job.trim.runtime)


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
                         f"{number}); see its standard error")  # fmt: skip
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


_NAME = re.compile(r"[a-z][a-z0-9_]*")
_ENDLESS_S = 365 * 24 * 3600
_DATA_SEED = 1
# Set by us: what is run, where, for how long, and how it is reported.
_OURS = frozenset(
    {
        "allrandrepeat",
        "append_terse",
        "client",
        "create_only",
        "daemonize",
        "debug",
        "description",
        "directory",
        "eta",
        "group_reporting",
        "minimal",
        "name",
        "new_group",
        "output",
        "output_format",
        "parse_only",
        "ramp_time",
        "randseed",
        "readonly",
        "runtime",
        "section",
        "server",
        "showcmd",
        "status_interval",
        "stonewall",
        "thread",
        "time_based",
    }
)
# Options that lead out of the target's directory, or run programs.
_OUTSIDE = frozenset(
    {"exec_postrun", "exec_prerun", "opendir", "read_iolog", "replay_redirect", "trigger_file"}
)
# Further ones, and those that change the host; runs of older versions have them, and are read.
_REFUSED = frozenset(
    {
        "cgroup",
        "ioscheduler",
        "merge_blktrace_file",
        "trigger",
        "trigger_remote",
        "write_bw_log",
        "write_hist_log",
        "write_iolog",
        "write_iops_log",
        "write_lat_log",
    }
)
_WITH_FILE = ("ioengine", "iomem", "mem")  # `external:FILE`, `mmaphuge:FILE`
# Options that decide what the layout of the files writes.
_SHAPE = frozenset(
    {
        "buffer_compress_percentage",
        "buffer_pattern",
        "dedupe_percentage",
        "fallocate",
        "filename",
        "filename_format",
        "filesize",
        "nrfiles",
        "numjobs",
        "offset",
        "offset_increment",
        "size",
        "zero_buffers",
    }
)
_DIRECTION = frozenset({"rw", "readwrite"})


class FioParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The keys of a ``[workloads.X]`` table with ``tool = "fio"``.

    `options` are the options of one fio job, as ``fio --cmdhelp`` names them: at least `rw` and
    `size`; with `numjobs` the clones are reported as one.
    """

    options: dict[str, str | int | float | bool]


def cells(name: str, params: FioParams, response: str | None = None) -> Sequence[Workload]:
    """Return the workload, called `name`; `Fio.check` asks fio itself about its options.

    Raises `SpecError` naming the key for an option that is ours to set or could reach outside
    the target's directory, a missing one, or an unknown response.
    """
    place = f"workloads.{name}"
    given = protocol.normal(params.options)
    _check(f"{place}.options", given)
    protocol.check_response(place, response or "iops", METRICS)
    # jobs that differ in other options share their files
    shape = {name: value for name, value in given.items() if name in _SHAPE}
    data_key = "/".join(["fio", *protocol.words(shape, "1", "0")])
    closed_loop = not {"rate", "rate_iops"} & given.keys()
    return [Fio(WorkloadInfo(name, response or "iops", data_key, closed_loop=closed_loop), params)]


@dataclass(frozen=True, slots=True)
class Fio:
    """One fio job on files in the target's directory."""

    info: WorkloadInfo
    params: FioParams

    def check(self, host: Host) -> None:
        """Raise `SpecError` in fio's own words if the fio on `host` does not take the options.

        Nothing is run or written.  Raises `HostError` if fio cannot be started.
        """
        self._refuse()
        argv = (*prefix({}), "fio", "--parse-only", "--name=load", *self.job())
        done = host.run(Action(argv))
        if done.returncode:
            words = done.stderr.decode(errors="replace").strip().splitlines()
            message = words[0] if words else f"exit {done.returncode}"
            raise SpecError(f"workloads.{self.info.name}.options: {message}; see `fio --cmdhelp`")

    def _refuse(self) -> None:
        """Raise `SpecError` for options that change the host or lead elsewhere."""
        given, place = protocol.normal(self.params.options), f"workloads.{self.info.name}.options"
        files = [name for name in _WITH_FILE if ":" in str(given.get(name, ""))]
        for name in (*(_REFUSED & given.keys()), *files):
            raise SpecError(
                f"{place}.{name}: changes the host, or names a file outside of the job's "
                "directory; choose another option, or remove it"
            )

    def job(self) -> tuple[str, ...]:
        """Return the job's options as arguments, the engine first: its own may only follow it."""
        return _spelt(protocol.normal(self.params.options))

    def prepare(self, target: Target) -> Sequence[Action]:
        """Return the commands that write the files, in full whatever the load, and flush them."""
        given = protocol.normal(self.params.options)
        layout = {name: value for name, value in given.items() if name not in _DIRECTION}
        # only a reading job has its files filled; a writing one would leave holes
        argv = (
            *(*prefix({}), "fio", "--name=load", f"--directory={target.directory}"),
            *_spelt(layout),
            *("--rw=read", "--create_only=1", f"--randseed={_DATA_SEED}"),
        )
        return [Action(argv), Action(("sync", "-f", str(target.directory)))]

    def run(self, target: Target, seed: int, env: Mapping[str, str]) -> Action:
        """Return an endless run that reports every second; `env` is the load tool's own."""
        argv = (
            *(*prefix(env), "fio"),
            *("--output-format=json+", "--status-interval=1", "--eta=never"),
            *("--name=load", f"--directory={target.directory}"),
            *self.job(),
            *("--time_based=1", f"--runtime={_ENDLESS_S}", "--group_reporting=1"),
            # threads, not processes: whatever kills fio, no job of it goes on
            *("--thread=1", f"--randseed={seed}"),
        )
        return Action(argv)

    def parse(self, lines: Iterable[bytes]) -> Reports:
        """Yield the intervals between fio's reports."""
        yield from parse(lines)

    def describe(self) -> Sequence[Action]:
        """Return the command that names fio's version."""
        return [Action((shutil.which("fio") or "fio", "--version"))]


def _spelt(given: protocol.Options) -> tuple[str, ...]:
    spelt = protocol.words(given, "1", "0")
    return tuple(sorted(spelt, key=lambda word: not word.startswith("--ioengine=")))


def _check(place: str, given: protocol.Options) -> None:
    for name in given:
        if name in _OURS:
            raise SpecError(f"{place}.{name}: set by mydyno; remove it")
        if name in _OUTSIDE or not _NAME.fullmatch(name):
            raise SpecError(
                f"{place}.{name}: not an option of a job that is confined to its directory; "
                "remove it"
            )
    if not _DIRECTION & given.keys():
        raise SpecError(f"{place}: rw is missing; set it, as in rw = 'randread'")
    if not {"size", "filesize"} & given.keys():
        raise SpecError(f"{place}: size is missing; set it, as in size = '1G'")
    files = [*str(given.get("filename", "")).split(":"), str(given.get("filename_format", ""))]
    if any(file.startswith("/") or ".." in file for file in files):
        raise SpecError(f"{place}.filename: only names inside the stack's own directory, so that "
                        "no other file or device is written")  # fmt: skip
