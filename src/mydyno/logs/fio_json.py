"""Runs of fio in a text: its JSON documents, of fio 2 and 3, wherever they stand."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import msgspec

from mydyno.logs.fio import CLIENTS, DIRECTIONS, Direction, Job, percentile_name, run_of
from mydyno.logs.text import Caveat, Found, ParsedRun, PrintedNumber, Text, brief, size
from mydyno.model import Interval

_KIB = 1024
_LONGEST = 200_000  # lines of one document
_SHORTEST_S = 0.5  # of an interval: a rate over less is noise
_LATE_MS = 100.0  # how far fio's clocks may lie apart between two states of one call
_TRAITS = ("rw", "bs", "iodepth", "ioengine", "size", "direct", "rate_iops")
_ALIASES = {"readwrite": "rw", "blocksize": "bs"}


class _Latency(msgspec.Struct, frozen=True):
    mean: float = 0.0
    max: float = 0.0
    percentile: dict[str, float] = {}


class _Way(msgspec.Struct, frozen=True):
    runtime: float = 0.0
    total_ios: float = 0.0
    iops: float = 0.0
    io_bytes: float = 0.0
    io_kbytes: float | None = None
    clat_ns: _Latency | None = None
    clat: _Latency = _Latency()


class _Entry(msgspec.Struct, frozen=True):
    jobname: str = "fio"
    groupid: int = 0
    error: int = 0
    read: _Way = _Way()
    write: _Way = _Way()
    trim: _Way = _Way()
    options: dict[str, str] = msgspec.field(default_factory=dict, name="job options")

    def ways(self) -> Mapping[str, _Way]:
        """Return what it did in each direction."""
        return {name: getattr(self, name) for name in DIRECTIONS}


class _Report(msgspec.Struct, frozen=True):
    jobs: list[_Entry] = []
    client_stats: list[_Entry] = []
    timestamp_ms: float = 0.0
    options: dict[str, str] = msgspec.field(default_factory=dict, name="global options")

    @property
    def entries(self) -> list[_Entry]:
        """Return its jobs, of one machine or of several clients."""
        return [e for e in self.jobs or self.client_stats if e.jobname != CLIENTS]


_READ = msgspec.json.Decoder(_Report, strict=False)


@dataclass(frozen=True, slots=True)
class _State:
    """One document: its first and last line and its report."""

    first: int
    last: int
    report: _Report

    def goes_on(self, before: "_State") -> bool:
        """Return whether this is a later state of the same call (``--status-interval``)."""
        mine, theirs = self.report, before.report
        if [j.jobname for j in mine.entries] != [j.jobname for j in theirs.entries]:
            return False
        passed_ms = mine.timestamp_ms - theirs.timestamp_ms
        grown = max((b - a for a, b in zip(_runtimes(theirs), _runtimes(mine), strict=True)),
                    default=-1.0)  # fmt: skip
        more = all(b >= a for a, b in zip(_requests(theirs), _requests(mine), strict=True))
        timed = passed_ms > 0 and theirs.timestamp_ms > 0 and any(_runtimes(theirs))
        return timed and more and 0 <= grown <= passed_ms + _LATE_MS


def find(text: Text) -> Found:
    """Return the runs in fio's JSON: one for each group of jobs, as groups run in turn."""
    found = Found()
    for states in _calls(_states(text, found.rejected)):
        found.known.update(n for state in states for n in range(state.first, state.last + 1))
        for group in dict.fromkeys(entry.groupid for entry in states[-1].report.entries):
            found.add(states[-1].first, partial(_reading, states, group, text))
    return found


def _states(text: Text, rejected: list[Caveat]) -> Iterator[_State]:
    """Yield fio's documents; note those that are cut off or no report."""
    number = 0
    while number < len(text.lines):
        begins = text.lines[number].lstrip().startswith("{")
        if begins and any('"fio version"' in x for x in text.lines[number : number + 3]):
            last = _end(text, number)
            try:
                report = _READ.decode(_document(text, number, last))
                if report.entries:
                    yield _State(number, last, report)
                else:
                    rejected.append(Caveat(number, "a JSON document of fio without jobs"))
                number = last
            except msgspec.DecodeError as problem:
                problem_text = f"a JSON document of fio that is cut off or damaged: {problem}"
                rejected.append(Caveat(number, problem_text))
        number += 1


def _end(text: Text, first: int) -> int:
    """Return the line that closes what opens at `first`, or `first` if none does."""
    depth = 0
    for number in range(first, min(len(text.lines), first + _LONGEST)):
        depth += text.lines[number].count("{") - text.lines[number].count("}")
        if depth <= 0:
            return number
    return first


def _document(text: Text, first: int, last: int) -> bytes:
    bare = text.original[first].strip("\ufeff \t") == text.lines[first].strip()
    lines = text.original if bare else text.lines  # less what a logger wrote before each line
    return "\n".join(lines[first : last + 1]).lstrip("\ufeff").encode()


def _calls(states: Iterator[_State]) -> Iterator[list[_State]]:
    call: list[_State] = []
    for state in states:
        if call and not state.goes_on(call[-1]):
            yield call
            call = []
        call.append(state)
    if call:
        yield call


def _reading(states: Sequence[_State], group: int, text: Text) -> ParsedRun:
    last = states[-1]
    lines = [n for state in states for n in range(state.first, state.last + 1)]
    alone = len({entry.groupid for entry in last.report.entries}) == 1
    raw = text.excerpt(lines) if alone else b"".join(_only(text, s, group) for s in states)
    run = run_of(_jobs(last, group), lines, raw)
    own = None if alone else _own(text, last, group)
    return replace(run, intervals=tuple(_course(states, group)) or run.intervals, own=own)


def _own(text: Text, state: _State, group: int) -> tuple[int, int]:
    """Return the first and the last line of a group's jobs, where each has lines of its own."""
    starts = [n for n in range(state.first, state.last + 1) if '"jobname"' in text.lines[n]]
    groups = [e.groupid for e in state.report.jobs or state.report.client_stats]
    if len(starts) != len(groups):
        return state.first, state.last
    ends = [*(n - 2 for n in starts[1:]), state.last]
    own = [span for of, *span in zip(groups, starts, ends, strict=True) if of == group]
    return own[0][0] - 1, own[-1][1]


def _only(text: Text, state: _State, group: int) -> bytes:
    """Return a document with the jobs of one group."""
    fields: dict[str, Any] = msgspec.json.decode(_document(text, state.first, state.last))
    for key in {"jobs", "client_stats"} & fields.keys():
        fields[key] = [job for job in fields[key] if int(job.get("groupid", 0)) == group]
    return msgspec.json.format(msgspec.json.encode(fields), indent=2) + b"\n"


def _course(states: Sequence[_State], group: int) -> Iterator[Interval]:
    """Yield the rates between one state and the next, as their counters' differences."""
    before: dict[str, float] = {}
    at_s = 0.0
    for state in states if len(states) > 1 else ():
        now = _counters(_jobs(state, group))
        end_s = now.pop("seconds")
        if end_s - at_s > (0.0 if state is states[-1] else _SHORTEST_S):
            rates = {k: (v - before.get(k, 0.0)) / (end_s - at_s) for k, v in now.items()}
            yield Interval(end_s, rates)
            before, at_s = now, end_s


def _counters(jobs: Sequence[Job]) -> dict[str, float]:
    ways = {n: [job.ways[n] for job in jobs if n in job.ways] for n in DIRECTIONS}
    found = {
        "reads": sum(way.requests for way in ways["read"]),
        "writes": sum(way.requests for way in ways["write"]),
        "read_bytes": sum(way.size_bytes for way in ways["read"]),
        "write_bytes": sum(way.size_bytes for way in ways["write"]),
    }
    found["iops"] = found["reads"] + found["writes"] + sum(w.requests for w in ways["trim"])
    seconds = max((way.runtime_ms for of in ways.values() for way in of), default=0.0) / 1e3
    return found | {"seconds": seconds}


def _jobs(state: _State, group: int) -> list[Job]:
    entries = [entry for entry in state.report.entries if entry.groupid == group]
    return [_job(state, entry, [e.jobname for e in entries].count(entry.jobname))
            for entry in entries]  # fmt: skip


def _job(state: _State, entry: _Entry, alike: int) -> Job:
    """Return an entry as a job; with group_reporting one entry stands for all of its name."""
    options = {_ALIASES.get(k, k): v for k, v in {**state.report.options, **entry.options}.items()}
    traits = {name: options[name] for name in _TRAITS if options.get(name)}
    if "bs" in traits:
        traits["bs"] = ",".join(brief(size(part).value) for part in traits["bs"].split(",") if part)
    number = options.get("numjobs", "1")
    return Job(
        name=entry.jobname,
        group=entry.groupid,
        jobs=max(1, int(number) // alike) if number.isdigit() else 1,
        error=entry.error,
        line=state.first,
        ways={n: _direction(w, state.first) for n, w in entry.ways().items() if w.runtime},
        traits=traits,
    )


def _direction(way: _Way, line: int) -> Direction:
    clat, unit_s = (way.clat_ns, 1e-9) if way.clat_ns else (way.clat, 1e-6)
    # fio 2 calls kibibytes io_bytes
    is_old = way.io_kbytes is None and way.clat_ns is None
    names = {percentile_name(float(percent)): v for percent, v in clat.percentile.items()}
    latencies = {name: value * unit_s for name, value in names.items() if name}
    latencies |= {"mean": clat.mean * unit_s, "max": clat.max * unit_s} if clat.max else {}
    return Direction(
        requests=way.total_ios or way.iops * way.runtime / 1e3,
        runtime_ms=way.runtime,
        printed=PrintedNumber(way.iops, 0.005 * way.iops) if way.iops else None,
        size_bytes=way.io_bytes * (_KIB if is_old else 1),
        latencies=latencies,
        line=line,
    )


def _runtimes(report: _Report) -> list[float]:
    return [max(way.runtime for way in entry.ways().values()) for entry in report.entries]


def _requests(report: _Report) -> list[float]:
    return [sum(way.total_ios for way in entry.ways().values()) for entry in report.entries]
