"""Runs of fio in a text: its terse lines (``--minimal``), versions 2 to 5, one for each job."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from math import log2

from mydyno.logs.fio import DIRECTIONS, TERSE, Direction, Job, asked, percentile_name, run_of
from mydyno.logs.text import (
    Caveat,
    CommandLine,
    Found,
    ParsedRun,
    PrintedNumber,
    Text,
    brief,
    lines_of,
)

_FIELDS = {"2": 41, "3": 41, "4": 41, "5": 47}  # of one direction, by version
_TRIMS = ("4", "5")  # the versions that have trims too
_PERCENTILES = slice(12, 32)
_KIB, _US = 1024, 1e-6
_NEAR = 4  # lines at most between a terse line and its command, or the same run in another format
_SAME = 0.05  # ratio: jobs' requests in another format, as jobs do not end at one time
_SLACK = 0.02  # ratio: kibibytes against rate and time, each rounded
_NEXT = "run fio with --output-format=json"


def find(text: Text, others: Sequence[ParsedRun]) -> Found:
    """Return the runs in terse lines, less those that `others` have in another format."""
    found = Found()
    lines = {n: _Line(line) for n, line in enumerate(text.lines) if TERSE.match(line)}
    commands = [(n, c) for n, _, c in lines_of(text) if c and c.tool == "fio"] if lines else []
    same = {n for other in others if lines for n in _same(lines, other)}
    found.known.update(lines)
    for n, line in lines.items():
        beside = [lines[m] for m in (n - 1, n + 1) if m in lines]
        if n not in same:
            command = next((x for x in reversed(commands) if 0 < n - x[1].last <= _NEAR), None)
            found.add(n, partial(_reading, text, n, line, command, beside))
    return found


class _Line:
    """A terse line: what stands before the figures, and the fields of each direction."""

    def __init__(self, line: str) -> None:
        self.fields = line.strip().split(";")
        self.version = self.fields[0]
        first = 1 if self.version == "2" else 2
        self.name, self.group, self.error = self.fields[first : first + 3]
        self._at = first + 3

    def ways(self, number: int) -> Iterator[tuple[str, Direction]]:
        """Yield the directions with requests; raise `ValueError` for a line that is cut off."""
        each = _FIELDS[self.version]
        for place, name in enumerate(DIRECTIONS if self.version in _TRIMS else DIRECTIONS[:2]):
            part = self.fields[self._at + place * each : self._at + (place + 1) * each]
            if len(part) < each:
                raise ValueError(f"a terse line of fio that is cut off; {_NEXT}")
            if float(part[0]):
                yield name, _direction(part, number)


def _direction(part: Sequence[str], number: int) -> Direction:
    """Return a direction: kibibytes, their rate, requests per second, milliseconds, latencies."""
    kib, rate, iops, runtime_ms, *_ = map(float, part[:4])
    if abs(kib - rate * runtime_ms / 1e3) > _SLACK * kib + rate / 10 + 2:
        raise ValueError(f"a terse line of fio whose fields are not in the known order; {_NEXT}")
    pairs = (field.partition("%=")[::2] for field in part[_PERCENTILES])
    named = {percentile_name(float(percent)): float(value) * _US for percent, value in pairs}
    latencies = {name: value for name, value in named.items() if name and value}
    if float(part[9]):
        latencies |= {"mean": float(part[10]) * _US, "max": float(part[9]) * _US}
    requests = iops * runtime_ms / 1e3
    return Direction(requests, runtime_ms, PrintedNumber(iops, 1.0), kib * _KIB, latencies, number)


def _block(ways: Sequence[Direction]) -> str:
    """Return the size of the requests, where it is one power of two."""
    sizes = {round(log2(way.size_bytes / way.requests), 1) for way in ways if way.requests}
    one = sizes.pop() if len(sizes) == 1 else 0.5
    return brief(2**one) if one.is_integer() else ""


def _same(lines: Mapping[int, _Line], other: ParsedRun) -> set[int]:
    """Return the lines that are the jobs of a run beside them: together they give its requests."""
    places = range(other.lines[0] - _NEAR - len(lines), other.lines[-1] + 1)
    names = other.job.split("+")
    found = [n for n, line in lines.items() if n in places and line.name in names]
    # an earlier run of the same jobs may end just above: then it is the lines nearest to the other
    last = [n for at, n in enumerate(found[::-1]) if n == found[-1] - at]
    near = last if last and last[0] >= other.lines[0] - _NEAR else []
    for some in (found, near):
        rate = 0.0
        with suppress(ValueError):
            ways = [way for n in some for _, way in lines[n].ways(n) if way.runtime_ms]
            rate = sum(way.requests / way.runtime_ms * 1e3 for way in ways)
        iops = other.totals["iops"]
        if abs(rate - iops) <= _SAME * iops:
            return set(some)
    return set()


def _reading(
    text: Text,
    number: int,
    line: _Line,
    command: tuple[int, CommandLine] | None,
    beside: Sequence[_Line],
) -> ParsedRun:
    job = Job(line.name, int(line.group), 1, int(line.error), number, dict(line.ways(number)))
    job.traits = {"rw": "+".join(f"{way}s" for way in job.ways), "bs": _block([*job.ways.values()])}
    lines = [number]
    if command:
        job.traits |= asked(command[1].options)
        lines = [*range(command[0], command[1].last + 1), number]
    run = run_of([job], lines, text.excerpt(lines))
    if all(other.group != line.group for other in beside):
        return run
    note = "the next line is of the same group: each is taken as a run of its own; if they ran"
    notes = (*run.caveats, Caveat(number, f"{note} together, use --output-format=json"))
    return replace(run, caveats=notes, own=(number, number))
