"""The file test that is built into sysbench, and the reading of its text reports."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from mydyno.loads import protocol, sysbench
from mydyno.loads.protocol import (
    Reports,
    Target,
    Workload,
    WorkloadInfo,
    failure,
    no_report,
    prefix,
    text_lines,
)
from mydyno.model import Action, Interval, SpecError
from mydyno.model.text import size_bytes

METRICS = (
    *("iops", "reads", "writes", "fsyncs", "read_bytes", "write_bytes"),
    *("latency_mean_s", "latency_p99_s"),
)

_MIB = 2**20
_SIZE = re.compile(r"\d+[KMGT]?")
_REPORT = re.compile(
    r"\[ +(?P<t_s>\d+)s \] reads: +(?P<read>[\d.]+) MiB/s +writes: +(?P<write>[\d.]+) MiB/s +"
    r"fsyncs: +(?P<fsyncs>[\d.]+)/s +latency \(ms,99%\): +(?P<p99_ms>[\d.]+)"
)
_COMPLAINTS = ("WARNING: ", "ALERT: ")

Mode = Literal["rndrd", "rndwr", "rndrw", "seqrd", "seqwr", "seqrewr"]
Flag = Literal["sync", "dsync", "direct"]


class FileioParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The keys of a ``[workloads.X]`` table with ``tool = "sysbench-fileio"``.

    Sizes are integers with K, M, G or T, powers of 1024.  `fsync_freq` 0 means never.
    `options` are further options of ``sysbench fileio help``.
    """

    test_mode: Mode
    threads: int | list[int] = 1
    file_num: int = 4
    file_total_size: str = "2G"
    block_size: str = "16K"
    extra_flags: list[Flag] = []
    fsync_freq: int = 0
    options: dict[str, str | int | float | bool] = {}


def cells(name: str, params: FileioParams, response: str | None = None) -> Sequence[Workload]:
    """Return one workload for each thread count, called ``name/threads``.

    Raises `SpecError` naming the key for an unknown option or response, or a value out of range.
    """
    place = f"workloads.{name}"
    _check(place, params)
    known = METRICS if _waits(params) else [name for name in METRICS if name != "latency_mean_s"]
    protocol.check_response(place, response or "iops", known)
    # every mode works on the same files
    data_key = f"sysbench/fileio/{params.file_num}x{params.file_total_size}"
    info = WorkloadInfo(name, response or "iops", data_key, closed_loop=True)
    counts = protocol.thread_counts(place, params.threads)
    return [SysbenchFileio(info.at(n), params, n) for n in counts]


@dataclass(frozen=True, slots=True)
class SysbenchFileio:
    """The file test in one mode at one number of threads; it reports to 0.01 MiB/s."""

    info: WorkloadInfo
    params: FileioParams
    threads: int

    def prepare(self, target: Target) -> Sequence[Action]:
        """Return the commands that remove the files, write them, and flush their filesystem."""
        tool = (*prefix({}, directory=target.directory), "sysbench", "fileio", *self._files())
        return [
            Action((*tool, "cleanup")),
            Action((*tool, "prepare")),
            Action(("sync", "-f", str(target.directory))),
        ]

    def run(self, target: Target, seed: int, env: Mapping[str, str]) -> Action:
        """Return an endless run that reports every second; `env` is the load tool's own."""
        argv = (
            *prefix(env, directory=target.directory),
            *("sysbench", "fileio"),
            *self._files(),
            f"--file-test-mode={self.params.test_mode}",
            f"--file-block-size={size_bytes(self.params.block_size, 'block_size')}",
            f"--file-extra-flags={','.join(self.params.extra_flags)}",
            f"--file-fsync-freq={self.params.fsync_freq}",
            *protocol.words(protocol.normal(self.params.options), "on", "off"),
            f"--threads={self.threads}",
            *sysbench.endless(seed, "rand-seed", verbosity=3),
        )
        return Action(argv)

    def parse(self, lines: Iterable[bytes]) -> Reports:
        """Yield the intervals that sysbench reports."""
        threads = self.threads if _waits(self.params) else 0
        return reports(lines, size_bytes(self.params.block_size, "block_size"), threads)

    def describe(self) -> Sequence[Action]:
        """Return the command that names sysbench's version."""
        return sysbench.versions()[:1]

    def _files(self) -> tuple[str, ...]:
        return (
            f"--file-num={self.params.file_num}",
            f"--file-total-size={self.params.file_total_size}",
        )


def reports(lines: Iterable[bytes], block_bytes: int, threads: int = 0) -> Iterator[Interval]:
    """Yield the intervals of a load with blocks of `block_bytes`, one for each report.

    They have `reads`, `writes` and their sum `iops` per second,
    from the bytes that sysbench reports; `fsyncs` per second; `latency_p99_s` of all requests.
    `threads` are those that always wait for one request each.
    Raises `ValueError` naming the line for fatal errors and for what cannot be a report.
    """
    numbered = text_lines(lines)
    greeted = False
    for number, text in numbered:
        if text.startswith("FATAL: "):
            raise failure("sysbench", text, numbered)
        if found := _REPORT.fullmatch(text.strip()):
            yield _interval(found, block_bytes, threads)
            continue
        greeted = greeted or text.startswith("sysbench ")
        foreign = not greeted and not text.startswith(_COMPLAINTS)
        if foreign or text.startswith("["):
            raise no_report("sysbench fileio", number, text)


def _interval(found: re.Match[str], block_bytes: int, threads: int) -> Interval:
    read_bytes, write_bytes = (float(found[name]) * _MIB for name in ("read", "write"))
    reads, writes = read_bytes / block_bytes, write_bytes / block_bytes
    values = {
        "iops": reads + writes,
        "reads": reads,
        "writes": writes,
        "fsyncs": float(found["fsyncs"]),
        "read_bytes": read_bytes,
        "write_bytes": write_bytes,
        "latency_p99_s": float(found["p99_ms"]) / 1e3,
    }
    return Interval(float(found["t_s"]), values, threads=threads)


def _check(place: str, params: FileioParams) -> None:
    known = sysbench.FILEIO | sysbench.RANDOM | sysbench.GENERAL
    protocol.check_names(params.options, known, f"{place}.options")
    protocol.check_range(f"{place}.file_num", params.file_num, 1, 100_000)
    protocol.check_range(f"{place}.fsync_freq", params.fsync_freq, 0, 2**31 - 1)
    for key in ("file_total_size", "block_size"):
        if not _SIZE.fullmatch(getattr(params, key)):
            raise SpecError(f"{place}.{key} = {getattr(params, key)!r}: write it as 16K, 64M or 2G")
    file_bytes = size_bytes(params.file_total_size, f"{place}.file_total_size") // params.file_num
    block_bytes = size_bytes(params.block_size, f"{place}.block_size")
    protocol.check_range(f"{place}.block_size", block_bytes, 512, max(512, file_bytes))
    if "direct" in params.extra_flags and file_bytes % block_bytes:
        raise SpecError(f"{place}.file_total_size: with direct, each file must hold full blocks")


def _waits(params: FileioParams) -> bool:
    """Return whether each thread always waits for one request, which is one block."""
    options = protocol.normal(params.options)
    return options.get("file_io_mode") != "async" and not options.get("file_merged_requests")
