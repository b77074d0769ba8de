"""Runs of sysbench in a text: where each begins and ends, and the lines that belong to it."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from mydyno.model import Interval
from mydyno.workloads.foreign import sysbench_lines
from mydyno.workloads.foreign.command_line import CommandLine, command_at
from mydyno.workloads.foreign.log_text import Text
from mydyno.workloads.foreign.parsed_run import Caveat, Found, ParsedRun
from mydyno.workloads.foreign.sysbench_run import SysbenchRun, reading_of

_BEFORE, _AFTER = 8, 3  # lines of other text that may stand within a run, until it is over
_COMMAND, _VERSION, _RUNNING, _OPTIONS, _REPORTS, _SUMMARY = range(6)


@dataclass(slots=True)
class _Open:
    """A run that is being read: how far its report has come, and what lies between its lines."""

    run: SysbenchRun
    stage: int = _COMMAND
    foreign: int = 0
    lines: list[int] = field(default_factory=list)

    def is_over(self, stage: int) -> bool:
        """Return whether a line of this stage belongs to the next run."""
        earlier = stage < self.stage and (stage <= _OPTIONS or self.stage == _SUMMARY)
        return earlier or stage == self.stage in (_VERSION, _RUNNING)


class _Reader:
    """Reads lines one after the other and gathers the runs they amount to."""

    def __init__(self, text: Text) -> None:
        self._text = text
        self._open: _Open | None = None
        self._skip = -1
        self.done: list[_Open] = []
        self.known: set[int] = set()

    def read(self, number: int) -> None:
        line = self._text.lines[number]
        if number <= self._skip or not line.strip():
            return
        if command := command_at(self._text.lines, number):
            self._command(number, command)
        elif found := sysbench_lines.interval_of(line):
            self._interval(number, *found)
        elif figures := next(sysbench_lines.summary_of(line), None):
            self._summary(number, *figures)
        else:
            self._context(number, line)

    def close(self) -> None:
        if self._open:
            self.done.append(self._open)
        self._open = None

    def _at(self, stage: int, number: int) -> _Open:
        """Return the run that a line of this stage belongs to."""
        if self._open and self._open.is_over(stage):
            self.close()
        self._open = self._open or _Open(SysbenchRun(number))
        self._open.stage = max(self._open.stage, stage)
        self._open.foreign = 0
        self._open.lines.append(number)
        self.known.add(number)
        return self._open

    def _command(self, number: int, command: CommandLine) -> None:
        self._skip = command.last
        if command.tool != "sysbench":
            self.close()
            return
        self.close()
        opened = self._at(_COMMAND, number)
        opened.run.command = command
        opened.lines += range(number + 1, command.last + 1)
        self.known |= {*range(number, command.last + 1)}

    def _interval(self, number: int, interval: Interval, threads: str) -> None:
        before = self._open.run.intervals if self._open else []
        if before and interval.t_s <= before[-1].t_s:
            self.close()
        run = self._at(_REPORTS, number).run
        run.intervals.append(interval)
        if threads:
            run.traits.setdefault("threads", (threads, number))

    def _summary(self, number: int, key: str, texts: tuple[str, ...]) -> None:
        if self._open and key in self._open.run.summary:
            self.close()
        self._at(_SUMMARY, number).run.summary[key] = (texts, number)

    def _context(self, number: int, line: str) -> None:
        if version := sysbench_lines.VERSION.match(line):
            self._at(_VERSION, number).run.version = version[1]
        elif sysbench_lines.RUNNING.match(line):
            self._at(_RUNNING, number).run.announced = True
        elif trait := sysbench_lines.trait_of(line):
            self._at(_OPTIONS, number).run.traits[trait[0]] = (trait[1], number)
        elif sysbench_lines.HEADINGS.match(line) or sysbench_lines.REMARK.match(line):
            self.known.add(number)
            if self._open:
                self._open.lines.append(number)
        elif failed := sysbench_lines.FAILED.match(line):
            self.known.add(number)
            if self._open:
                self._open.run.failures.append(Caveat(number, failed[1]))
        else:
            self._foreign()

    def _foreign(self) -> None:
        """Count a line of other text; many of them end a run."""
        if self._open:
            self._open.foreign += 1
            if self._open.foreign > (_AFTER if self._open.stage >= _REPORTS else _BEFORE):
                self.close()


def find(text: Text) -> Found:
    """Return the runs of sysbench in a text, and what began but has no result."""
    reader = _Reader(text)
    for number in range(len(text.lines)):
        reader.read(number)
    reader.close()
    readings: list[ParsedRun] = []
    rejected: list[Caveat] = []
    for opened in reader.done:
        for one in _results(opened, text):
            (readings if isinstance(one, ParsedRun) else rejected).append(one)  # type: ignore[arg-type]
    return Found(tuple(readings), tuple(rejected), frozenset(reader.known))


def _results(opened: _Open, text: Text) -> Iterator[ParsedRun | Caveat]:
    run = opened.run
    if run.has_result:
        try:
            yield reading_of(run, opened.lines, text.excerpt(opened.lines))
        except ValueError as problem:
            yield Caveat(run.first, str(problem))
    elif run.failures:
        yield Caveat(run.failures[0].line, f"a run of sysbench failed: {run.failures[0].text}")
    elif run.command and run.command.runs:
        yield Caveat(run.first, "a command of sysbench without its result")
    elif run.announced:
        yield Caveat(run.first, "a run of sysbench began here and has no result: cut off?")
