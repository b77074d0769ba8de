"""Runs of fio in a text: the calls whose job blocks were printed for people."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mydyno.model import Interval
from mydyno.workloads.foreign import fio_lines
from mydyno.workloads.foreign.command_line import CommandLine, command_at
from mydyno.workloads.foreign.fio_jobs import caveats, name_of, totals
from mydyno.workloads.foreign.log_text import Text
from mydyno.workloads.foreign.parsed_run import Caveat, Found, ParsedRun

_OPTIONS = {"rw": ("rw", "readwrite"), "bs": ("bs", "blocksize"), "size": ("size",),
            "direct": ("direct",), "rate_iops": ("rate_iops",)}  # fmt: skip
_ALL = -1  # in the place of a group: its lines belong to each


@dataclass(slots=True)
class _Call:
    """One call of fio: its definitions and jobs, by group and process, and their lines."""

    first: int
    options: Mapping[str, str] = field(default_factory=dict)
    traits: dict[int, dict[str, str]] = field(default_factory=dict)
    jobs: dict[tuple[int, str, str], fio_lines.JobLines] = field(default_factory=dict)
    lines: dict[int, list[int]] = field(default_factory=dict)
    ended: bool = False
    present: fio_lines.JobLines | None = None

    def at(self, group: int, number: int) -> None:
        """Note that a line belongs to a group."""
        self.lines.setdefault(group, []).append(number)


class _Reader:
    """Reads lines one after the other and gathers the calls they amount to."""

    def __init__(self, text: Text) -> None:
        self._text = text
        self._call: _Call | None = None
        self._skip = -1
        self.done: list[_Call] = []

    def read(self, number: int) -> None:
        line = self._text.lines[number]
        if number <= self._skip or not line.strip():
            return
        if command := command_at(self._text.lines, number):
            self._command(number, command)
            return
        if self._begins(line):
            self.close()
            self._call = _Call(number)
        if self._call and not (self._heading(self._call, number, line)):
            self._detail(self._call, number, line)

    def close(self) -> None:
        if self._call:
            self.done.append(self._call)
        self._call = None

    def _command(self, number: int, command: CommandLine) -> None:
        self.close()
        self._skip = command.last
        if command.tool == "fio":
            lines = {_ALL: [*range(number, command.last + 1)]}
            self._call = _Call(number, command.options, lines=lines)

    def _begins(self, line: str) -> bool:
        """Return whether a line is the first of another call."""
        call = self._call
        if "): " not in line:
            return False
        if fio_lines.DEFINED.match(line):
            return call is None or call.ended or bool(call.jobs)
        found = fio_lines.JOB.match(line)
        if not found or call is None:
            return found is not None
        # what stands again after its end is another call, unless --status-interval asked for it
        return call.ended and (int(found["group"]), found["name"], found["pid"]) not in call.jobs

    def _heading(self, call: _Call, number: int, line: str) -> bool:
        if found := fio_lines.DEFINED.match(line):
            group = int(found["group"])
            parts = {key: found[key] for key in ("rw", "ioengine", "iodepth")}
            call.traits[group] = {"bs": fio_lines.block(found["bs"], found["rw"]), **parts}
        elif found := fio_lines.JOB.match(line):
            group = int(found["group"])
            call.present, call.ended = fio_lines.JobLines(found, number), False
            call.jobs[group, found["name"], found["pid"]] = call.present
        elif fio_lines.VERSION.match(line):
            group = _ALL
        elif fio_lines.STATUS.match(line):
            group, call.present, call.ended = _ALL, None, True
        else:
            return False
        call.at(group, number)
        return True

    def _detail(self, call: _Call, number: int, line: str) -> None:
        group = call.present.job.group if call.present else _ALL
        taken = call.present is not None and call.present.take(number, line)
        if taken or fio_lines.DETAIL.match(line):
            call.at(group, number)


def find(text: Text) -> Found:
    """Return the runs of fio in a text: one for each group of jobs, as groups run in turn."""
    reader = _Reader(text)
    for number in range(len(text.lines)):
        reader.read(number)
    reader.close()
    readings: list[ParsedRun] = []
    rejected: list[Caveat] = []
    for call in reader.done:
        for group in sorted({group for group, _, _ in call.jobs}):
            try:
                readings.append(_reading(call, group, text))
            except ValueError as problem:
                rejected.append(Caveat(call.first, str(problem)))
        if not call.jobs:
            rejected.append(Caveat(call.first, "a run of fio without its result"))
    known = (n for call in reader.done for lines in call.lines.values() for n in lines)
    return Found(tuple(readings), tuple(rejected), frozenset(known))


def _reading(call: _Call, group: int, text: Text) -> ParsedRun:
    jobs = [lines.job for (of, _, _), lines in call.jobs.items() if of == group]
    for job in jobs:
        job.traits = {**_asked(call.options), **call.traits.get(group, {})}
    name, traits = name_of(jobs)
    values = totals(jobs)
    lines = sorted({*call.lines.get(_ALL, []), *call.lines.get(group, [])})
    rates = {k: v for k, v in values.items() if k != "seconds"}
    return ParsedRun(
        name=name,
        response="iops",
        traits=traits,
        totals=values,
        intervals=(Interval(values["seconds"], rates),),
        lines=lines,
        raw=text.excerpt(lines),
        caveats=tuple(caveats(jobs)),
    )


def _asked(options: Mapping[str, str]) -> dict[str, str]:
    """Return what a command says of its load, where the output may not."""
    found = {
        name: options[key] for name, keys in _OPTIONS.items() for key in keys if key in options
    }
    if "bs" in found:
        found["bs"] = fio_lines.block(found["bs"], found.get("rw", ""))
    return found
