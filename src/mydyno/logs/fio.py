"""fio output as text."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from mydyno.logs.text import (
    Caveat,
    Found,
    ParsedRun,
    PrintedNumber,
    Text,
    brief,
    chosen,
    lines_of,
    once,
    shown,
    size,
)

DIRECTIONS = ("read", "write", "trim")
PERCENTILES = (50.0, 95.0, 99.0, 99.9)
_UNKNOWN = "fio"  # in a name, for a pattern of access that the log does not have
_BOTH = ("rw", "randrw", "readwrite")
_RATES = {"read": "reads", "write": "writes", "trim": "trims"}


@dataclass(slots=True)
class Direction:
    """One direction of a job: requests and bytes over milliseconds, latencies in seconds."""

    requests: float = 0.0
    runtime_ms: float = 0.0
    printed: PrintedNumber | None = None
    size_bytes: float = 0.0
    latencies: dict[str, float] = field(default_factory=dict)
    line: int = -1
    counted: bool = True


@dataclass(slots=True)
class Job:
    """One job, or several that fio reports as one."""

    name: str
    group: int
    jobs: int
    error: int
    line: int
    ways: dict[str, Direction] = field(default_factory=dict)
    traits: dict[str, str] = field(default_factory=dict)


def percentile_name(percent: float) -> str:
    """Return the name of a percentile: p99, p999; empty for those that are not stored."""
    return f"p{percent:g}".replace(".", "") if percent in PERCENTILES else ""


def totals(jobs: Sequence[Job]) -> dict[str, float]:
    """Return a group's requests and bytes per second; raise `ValueError` for none or an error.

    Percentiles are those of a direction that only one job made; they are merged from nothing else.
    """
    if failed := next((job for job in jobs if job.error), None):
        raise ValueError(f"job {failed.name} of fio ended with error {failed.error}")
    values: dict[str, float] = {}
    longest_ms = 0.0
    for name in DIRECTIONS:
        ways = [job.ways[name] for job in jobs if name in job.ways]
        ways = [way for way in ways if way.requests and way.runtime_ms]
        if ways:
            runtime_ms = max(way.runtime_ms for way in ways)
            longest_ms = max(longest_ms, runtime_ms)
            values[_RATES[name]] = sum(way.requests for way in ways) / runtime_ms * 1e3
            if name != "trim":
                values[f"{name}_bytes"] = sum(way.size_bytes for way in ways) / runtime_ms * 1e3
    if not values:
        raise ValueError("a report of fio without a request")
    rates = [values[rate] for rate in _RATES.values() if rate in values]
    return values | {"iops": sum(rates), "seconds": longest_ms / 1e3} | _latencies(jobs)


def _latencies(jobs: Sequence[Job]) -> dict[str, float]:
    made = [(n, way) for job in jobs for n, way in job.ways.items() if way.requests]
    latencies: dict[str, float] = {}
    for name in DIRECTIONS:
        ways = [way for n, way in made if n == name]
        if len(ways) == 1:
            part = "" if len(made) == 1 else f"{name}_"
            latencies |= {f"latency_{part}{k}_s": v for k, v in ways[0].latencies.items()}
    return latencies


def caveats(jobs: Sequence[Job]) -> Iterator[Caveat]:
    """Yield what does not follow from counts, or cannot be merged."""
    for job in jobs:
        for name, way in job.ways.items():
            found = way.requests / way.runtime_ms * 1e3 if way.runtime_ms else 0.0
            if way.printed and way.requests and not way.printed.agrees(found):
                note = f"prints {way.printed.value:.6g} {name} IOPS; its requests and seconds give"
                yield Caveat(way.line, f"{note} {found:.6g}")
            if not way.counted:
                yield Caveat(way.line, f"cut off: no count of {name} requests; its rate is rounded")
        if unnamed := _unnamed(job):
            note = f"its {' and '.join(unnamed)} requests are not in the options of job {job.name}"
            yield Caveat(job.line, f"{note}; they may be those of other jobs")
    for name in DIRECTIONS:
        several = [job for job in jobs if name in job.ways and job.ways[name].latencies]
        if len(several) > 1:
            note = f"{len(several)} jobs' {name} percentiles: without group_reporting they cannot"
            yield Caveat(several[0].line, f"{note} be merged, and are left out")


def name_of(jobs: Sequence[Job]) -> tuple[str, dict[str, str]]:
    """Return what a group is called (``randwrite-4k-qd64``) and the traits of its load."""
    names = list(dict.fromkeys(_called(job) for job in jobs))
    traits: dict[str, str] = {"threads": f"{sum(job.jobs for job in jobs)}"}
    for job in jobs:
        for key, value in job.traits.items():
            if key not in {"rw", "bs", "iodepth"} and value:
                traits.setdefault(key, value)
    if len(names) == 1 and len(jobs) > 1 and len({j.name for j in jobs}) > 1:
        traits["jobs"] = ",".join(dict.fromkeys(j.name for j in jobs))
    return "+".join(names), traits


def _called(job: Job) -> str:
    depth = job.traits.get("iodepth", "1")
    rw = "+".join([job.traits.get("rw") or _UNKNOWN, *_unnamed(job)])
    return "-".join(
        filter(None, [rw, job.traits.get("bs", ""), f"qd{depth}" if depth != "1" else ""])
    )


def _unnamed(job: Job) -> list[str]:
    """Return the directions that a job made and its options do not name."""
    rw = job.traits.get("rw")
    named = DIRECTIONS if rw in _BOTH else [name for name in DIRECTIONS if name in (rw or name)]
    return [name for name, way in job.ways.items() if way.requests and name not in named]


DEFINED = re.compile(
    r"^\s*(?:<\S+> )?(?P<name>\S.*?): \(g=(?P<group>\d+)\): rw=(?P<rw>\w+)(?:\(\d+\))?, "
    r"bs=(?P<bs>.*?), ioengine=(?P<ioengine>\w+), iodepth=(?P<iodepth>\d+)"
)
JOB = re.compile(
    r"^\s*(?P<name>\S.*?): \(groupid=(?P<group>\d+), jobs=(?P<jobs>\d+)\): "
    r"err= *(?P<error>\d+).*?: pid=(?P<pid>\d+)"
)
TERSE = re.compile(r"^\s*(?:2;[^;]*|[345];fio-[^;]*;[^;]*);\d+;\d+;\d+;")
VERSION = re.compile(r"^\s*fio[- ](\d\S*)\s*$")
STATUS = re.compile(r"^\s*Run status group \d+ \(all jobs\)|^\s*Disk stats \(read/write\)")
DETAIL = re.compile(
    r"^\s*(?:\.\.\.$|Starting \d+|Jobs: \d+|[\w-]+: Laying out|READ: |WRITE: |TRIM: |"
    r"\w[\w-]*: ios=|bw \(|bw=|iops +:|lat \(|cpu +:|IO depths|submit +:|complete +:|latency +:|"
    r"errors +:|slat |\||fsync/|sync \(|sync percent|fio: |steadystate +:|hostname=|<\S+> Starting)"
)
CLIENTS = "All clients"  # fio --client: the sum of all groups, also of those that ran in turn
_WAY = re.compile(r"^\s*(?P<way>read|write|trim) ?: *(?:io=(?P<io>[\d.]+\w*)|IOPS=)")
_RUNTIME = re.compile(r"runt= *(\d+) ?msec|/ *(\d+) ?msec\)")
_IOPS = re.compile(r"(?:iops=|IOPS=) *([\d.]+[kKMG]?)")
_MOVED = re.compile(r"\(([\d.]+\w+)/\d+ ?msec\)")
_LATENCY = re.compile(
    r"^\s*clat \((?P<unit>[num]sec)\) ?: min= *[\d.]+\w?, max= *(?P<max>[\d.]+[kKMG]?), "
    r"avg= *(?P<mean>[\d.]+[kKMG]?)"
)
_PERCENTILES = re.compile(r"^\s*(?P<kind>\w+) percentiles \((?P<unit>[num]sec)\)")
_PERCENTILE = re.compile(r"([\d.]+)th=\[ *([\d.]+[kKMG]?)\]")
_ISSUED = re.compile(
    r"^\s*issued (?:r/w|rwts?|r/w/d)? *: *total=r?=?(\d+)[/,](?:w=)?(\d+)(?:[/,](?:d=)?(\d+))?"
)
_SYNC = re.compile(r"^\s*fsync/fdatasync")
_RANGE = re.compile(r"[\d.]+[kKMmGg]?i?B?(?:-[\d.]+[kKMmGg]?i?B?)?")
_IN_S = {"nsec": 1e-9, "usec": 1e-6, "msec": 1e-3}


class JobLines:
    """Takes the lines below a job's heading into the job."""

    def __init__(self, found: re.Match[str], number: int) -> None:
        self.job = Job(
            found["name"], int(found["group"]), int(found["jobs"]), int(found["error"]), number
        )
        self._way: Direction | None = None
        self._percentiles_s = 0.0

    def take(self, number: int, line: str) -> bool:
        """Parse a line; return whether it belongs to the job."""
        taken = self._direction(number, line) or self._counts(line) or self._latency(line)
        return taken or self._percentiles(line)

    def _direction(self, number: int, line: str) -> bool:
        """Take the first line of a direction; without a count of requests, its rate gives one."""
        if _SYNC.match(line):
            self._way = None
            return True
        found = _WAY.match(line)
        if not found:
            return False
        self._way = way = self.job.ways.setdefault(found["way"], Direction())
        runtime, iops = _RUNTIME.search(line), _IOPS.search(line)
        moved = found["io"] or (m[1] if (m := _MOVED.search(line)) else "")
        way.line = number
        way.runtime_ms = float(runtime[1] or runtime[2]) if runtime else 0.0
        way.printed = shown(iops[1]) if iops else None
        way.size_bytes = size(moved).value if moved else 0.0
        way.requests = way.printed.value * way.runtime_ms / 1e3 if way.printed else 0.0
        way.counted = False
        return True

    def _counts(self, line: str) -> bool:
        found = _ISSUED.match(line)
        for name, count in zip(DIRECTIONS, found.groups(), strict=True) if found else ():
            if count and name in self.job.ways:
                self.job.ways[name].requests = float(count)
                self.job.ways[name].counted = True
        return found is not None

    def _latency(self, line: str) -> bool:
        found = _LATENCY.match(line)
        if found and self._way:
            for name in ("mean", "max"):
                self._way.latencies[name] = shown(found[name]).value * _IN_S[found["unit"]]
        return found is not None

    def _percentiles(self, line: str) -> bool:
        if found := _PERCENTILES.match(line):
            self._percentiles_s = _IN_S[found["unit"]] if found["kind"] == "clat" else 0.0
            return True
        if not line.lstrip().startswith("|"):
            return False
        for percent, value in _PERCENTILE.findall(line) if self._way else ():
            name = percentile_name(float(percent))
            if name and self._way and self._percentiles_s:
                self._way.latencies[name] = shown(value).value * self._percentiles_s
        return True


def block(text: str, way: str) -> str:
    """Return the block size of ``4K-4K/4K-4K`` or ``(R) 4096B-4096B, (W) …`` as 4k."""
    ranges = _RANGE.findall(text)
    own = ranges[:2] if "rw" in way else ranges[1:2] if "write" in way else ranges[:1]
    ends = ([brief(size(end).value) for end in one.split("-")] for one in own or ranges[:1])
    return ",".join(dict.fromkeys("-".join(dict.fromkeys(pair)) for pair in ends))


_OPTIONS = {"rw": ("rw", "readwrite"), "bs": ("bs", "blocksize"), "size": ("size",),
            "direct": ("direct",), "rate_iops": ("rate_iops",)}  # fmt: skip
_ALL, _SUM = -1, -2  # in the place of a group: its lines belong to each group, or to none


@dataclass(slots=True)
class _Call:
    """One call of fio: its definitions and jobs, by group and process, and their lines."""

    first: int
    options: Mapping[str, str] = field(default_factory=dict)
    traits: dict[tuple[int, str], dict[str, str]] = field(default_factory=dict)
    jobs: dict[tuple[int, str, str], JobLines] = field(default_factory=dict)
    lines: dict[int, list[int]] = field(default_factory=dict)
    ended: bool = False
    present: JobLines | None = None

    @property
    def group(self) -> int:
        """Return the group that lines without a heading belong to."""
        if self.present is None:
            return _ALL
        return _SUM if self.present.job.name == CLIENTS else self.present.job.group

    def is_over(self, line: str) -> bool:
        """Return whether a line that may begin a call begins another one."""
        found = JOB.match(line)
        if found is None:
            return self.ended or bool(self.jobs)
        # what stands again after its end is another call, unless --status-interval asked for it
        if found["name"] == CLIENTS:
            return False
        return self.ended and (int(found["group"]), found["name"], found["pid"]) not in self.jobs

    def take(self, number: int, line: str) -> None:
        """Take a line, if it belongs to the call."""
        group = self._heading(number, line)
        if group is None:
            group = self.group
            taken = self.present is not None and self.present.take(number, line)
            if not taken and not DETAIL.match(line):
                return
        self.lines.setdefault(group, []).append(number)

    def _heading(self, number: int, line: str) -> int | None:
        """Return the group that a heading belongs to, None for a line that is no heading."""
        if found := DEFINED.match(line):
            group = int(found["group"])
            parts = {key: found[key] for key in ("rw", "ioengine", "iodepth")}
            self.traits[group, found["name"]] = {"bs": block(found["bs"], found["rw"]), **parts}
            return group
        if found := JOB.match(line):
            group = int(found["group"])
            self.present, self.ended = JobLines(found, number), False
            if found["name"] == CLIENTS:
                return _SUM
            self.jobs[group, found["name"], found["pid"]] = self.present
            return group
        if STATUS.match(line):
            self.present, self.ended = None, True
            return _ALL
        return _ALL if VERSION.match(line) else None


def _calls(text: Text) -> Iterator[_Call]:
    """Yield the calls of fio in a text."""
    call: _Call | None = None
    for number, line, command in lines_of(text):
        begins = "): " in line and bool(DEFINED.match(line) or JOB.match(line))
        terse = call and not (call.traits or call.jobs) and TERSE.match(line)
        if call and (command or terse or (begins and call.is_over(line))):
            yield call
            call = None
        if command and command.tool == "fio":
            lines = {_ALL: [*range(number, command.last + 1)]}
            call = _Call(number, command.options, lines=lines)
        elif not command:
            call = call or (_Call(number) if begins else None)
            if call:
                call.take(number, line)
    if call:
        yield call


def find(text: Text) -> Found:
    """Return the runs of fio in a text: one for each group of jobs, as groups run in turn."""
    found = Found()
    for call in _calls(text):
        found.known.update(n for lines in call.lines.values() for n in lines)
        for group in sorted({group for group, _, _ in call.jobs}):
            found.add(call.first, partial(_reading, call, group, text))
        groups = {group for group, _, _ in call.jobs}
        missing = [name for group, name in call.traits if group not in groups]
        if missing and call.jobs:
            note = f"jobs of fio without a result: {', '.join(missing)}; cut off?"
            found.rejected.append(Caveat(call.first, note))
        if not call.jobs:
            found.rejected.append(Caveat(call.first, "a run of fio without its result"))
    return found


def _reading(call: _Call, group: int, text: Text) -> ParsedRun:
    jobs = [lines.job for (of, _, _), lines in call.jobs.items() if of == group]
    defined = {name: traits for (of, name), traits in call.traits.items() if of == group}
    for job in jobs:
        # group_reporting prints one job for all, under the name of the first
        of_job = defined if len(jobs) == 1 else {job.name: defined.get(job.name, {})}
        found = list(of_job.values()) or [{}]
        job.traits = {**asked(call.options), **_joined(found)}
    own = call.lines.get(group, [])
    lines = sorted({*call.lines.get(_ALL, []), *own})
    run = run_of(jobs, lines, text.excerpt(lines))
    several = len({of for of, _, _ in call.jobs}) > 1
    first = min(job.line for job in jobs)
    return replace(run, own=(first, max(own))) if several else run


def _joined(traits: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return the traits of several definitions as those of one job: ``randread+randwrite``."""
    keys = dict.fromkeys(key for one in traits for key in one)
    return {key: "+".join(dict.fromkeys(t[key] for t in traits if key in t)) for key in keys}


def run_of(jobs: Sequence[Job], lines: Sequence[int], raw: bytes) -> ParsedRun:
    """Return the run of a group of jobs; raise `ValueError` for one without a valid result."""
    name, traits = name_of(jobs)
    values = totals(jobs)
    notes = tuple(caveats(jobs))
    job = "+".join(dict.fromkeys(job.name for job in jobs))
    return ParsedRun(name, "iops", traits, values, once(values), lines, raw, notes, job)


def asked(options: Mapping[str, str]) -> dict[str, str]:
    """Return the facts of a load from its command, where the output may lack them."""
    found = chosen(options, _OPTIONS)
    if "bs" in found:
        found["bs"] = block(found["bs"], found.get("rw", ""))
    return found
