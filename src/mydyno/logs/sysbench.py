"""Runs of sysbench in a text: where each begins and ends, and the lines that belong to it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from mydyno.logs.sysbench_run import SysbenchRun, reading_of
from mydyno.logs.text import Caveat, CommandLine, Found, Text, lines_of, matched
from mydyno.model import Interval

_MIB = 2**20
_N = r"(\d+(?:\.\d+)?)"
_COMMA = re.compile(r"(?<=\d),(?=\d)")  # of decimals, or of thousands

VERSION = re.compile(r"^\s*sysbench v?(\d+\.\d+\S*?):?(?:\s|$)(?!.*--)")
RUNNING = re.compile(r"^\s*Running the test with following options")
CHECKPOINT = re.compile(r"^\s*\[ *\d+s ?\] Checkpoint report:")
FAILED = re.compile(r"^\s*(?:FATAL|ALERT): (.*)")

TRAITS: Mapping[str, re.Pattern[str]] = {
    "threads": re.compile(r"^\s*Number of threads: *(\d+)"),
    "rate": re.compile(r"^\s*Target transaction rate: *(\d+)"),
    "files": re.compile(r"^\s*(\d+) files, [\d.]+ ?[KMGT]?i?[bB] each$"),
    "file_total_size": re.compile(r"^\s*([\d.]+ ?[KMGT]?i?[bB]) total file size"),
    "block_size": re.compile(
        r"^\s*(?:Block size|block size:|Memory block size:) *([\d.]+ ?[KMGT]?i?[bB]?)$"
    ),
    "flags": re.compile(r"^\s*Extra file open flags: *(.+)"),
    "fsync": re.compile(r"^\s*(?:Periodic FSYNC enabled, )?[Cc]alling fsync\(\) (each \d+|after)"),
    "rwratio": re.compile(r"^\s*Read/Write ratio for combined random IO test: *([\d.]+)"),
    "io_mode": re.compile(r"^\s*Using (synchronous|asynchronous|.*mmaped?) ?.*I/O"),
    "mode": re.compile(r"^\s*Doing (sequential|random) (\S+(?: \([\w ]+\))?) test"),
    "primes": re.compile(r"^\s*(?:Prime numbers limit|Maximum prime number checked.*): *(\d+)"),
    "test": re.compile(
        r"^\s*(?:Doing|Running) (memory|CPU|thread|mutex) (?:\w+ )*(?:test|benchmark)"
    ),
    "operation": re.compile(r"^\s*(?:operation|Memory operations type): *(\w+)"),
    "scope": re.compile(r"^\s*(?:scope|Memory scope type): *(\w+)"),
    "oltp": re.compile(
        r"^\s*(?:Running|Doing) (mixed OLTP|simple OLTP|non-transactional|read-only)"
    ),
}
REMARK = re.compile(
    r"^\s*(?:Threads started!|Done\.|Time limit exceeded|\(last message repeated|WARNING: |"
    r"Initializing |Random number generator seed|Report intermediate|Number of (?:IO|random) req|"
    r"Calling fsync\(\) at the end|Using |Not using |Doing OLTP test|Maximum number of requests|"
    r"No DB drivers|Creating |Inserting |\d+ bytes written in|Removing test files|Dropping table|"
    r"\d+ files, \d+[KM]b each, |\[ *\d+s ?\] queue length|Latency histogram|"
    r"\s*value  ---|\s*[\d.]+ \|\**\s+\d+$|Specified percentage|Report checkpoint|Warm|"
    r"percentile stats: +disabled|events per second: +[\d.]+|total size: |Total operations: |"
    r"(?:Reusing|Extending) existing file|No bytes written)"
)
HEADINGS = re.compile(
    r"^\s*(?:SQL statistics:|OLTP test statistics:|queries performed:|General statistics:|"
    r"Test execution summary:|Latency \(ms\):|Throughput:|File operations:|per-request statistics:|"
    r"response time:|Threads fairness:)\s*$"
)

BEGINS = re.compile(r"^\s*(?:SQL statistics|OLTP test statistics|File operations|CPU speed):\s*$")

SUMMARY: Mapping[str, re.Pattern[str]] = {
    "q_read": re.compile(r"^\s*read: +(\d+)$"),
    "q_write": re.compile(r"^\s*write: +(\d+)$"),
    "q_other": re.compile(r"^\s*other: +(\d+)$"),
    "q_total": re.compile(r"^\s*total: +(\d+)$"),
    "transactions": re.compile(rf"^\s*transactions: +(\d+) +\({_N} per sec\.\)"),
    "queries": re.compile(rf"^\s*queries: +(\d+) +\({_N} per sec\.\)"),
    "requests": re.compile(rf"^\s*read/write requests: +(\d+) +\({_N} per sec\.\)"),
    "others": re.compile(rf"^\s*other operations: +(\d+) +\({_N} per sec\.\)"),
    "errors": re.compile(rf"^\s*(?:ignored errors|deadlocks): +(\d+) +\({_N} per sec\.\)"),
    "reconnects": re.compile(rf"^\s*reconnects: +(\d+) +\({_N} per sec\.\)"),
    "seconds": re.compile(rf"^\s*(?:total time|time elapsed): +{_N}s"),
    "events": re.compile(r"^\s*total number of events: +(\d+)"),
    "eps": re.compile(rf"^\s*events/s \(eps\): +{_N}"),
    "taken": re.compile(rf"^\s*total time taken by event execution: +{_N}"),
    "min": re.compile(rf"^\s*min: +{_N}(ms|s)?\b"),
    "avg": re.compile(rf"^\s*avg: +{_N}(ms|s)?\b"),
    "max": re.compile(rf"^\s*max: +{_N}(ms|s)?\b"),
    "sum": re.compile(rf"^\s*sum: +{_N}$"),
    "percentile": re.compile(rf"^\s*(?:approx\. *)?(\d+)(?:th|st|nd|rd)? percentile: +{_N}(ms|s)?"),
    "fair": re.compile(rf"^\s*events \(avg/stddev\): +{_N}/{_N}"),
    "fair_time": re.compile(rf"^\s*execution time \(avg/stddev\): +{_N}/"),
    "reads": re.compile(rf"^\s*reads/s: +{_N}"),
    "writes": re.compile(rf"^\s*writes/s: +{_N}"),
    "fsyncs": re.compile(rf"^\s*fsyncs/s: +{_N}"),
    "mib_read": re.compile(rf"^\s*read, MiB/s: +{_N}"),
    "mib_written": re.compile(rf"^\s*written, MiB/s: +{_N}"),
    "iops_read": re.compile(rf"^\s*read: +IOPS={_N} +{_N} MiB/s"),
    "iops_write": re.compile(rf"^\s*write: +IOPS={_N} +{_N} MiB/s"),
    "iops_fsync": re.compile(rf"^\s*fsync: +IOPS={_N}"),
    "performed": re.compile(
        r"^\s*Operations performed: +(\d+) [Rr]eads?, (\d+) [Ww]rites?, (\d+) [Oo]ther = (\d+)"
    ),
    "transferred": re.compile(
        rf"^\s*Read \S+ +Written \S+ +Total transferred \S+ +\({_N}([KMG])b/"
    ),
    "executed": re.compile(rf"^\s*{_N} Requests/sec executed"),
    "speed": re.compile(r"^\s*(CPU speed:|[\d.]+ MiB transferred)"),
}

_MARKED = re.compile(r": |/s|MiB|CPU speed:")  # one of them is in each of these lines

_REPORT = re.compile(r"\[ *(\d+(?:\.\d+)?)s ?\] +(?=\S)(?!queue length)(.*)")
_MIXED = re.compile(rf"\(r/w/o: *{_N}/{_N}/{_N}\)")
_PAIR = re.compile(rf"([a-z]+(?:/s)?):? +{_N}( ?Mi?[bB]/s)?")
_RATES = {"tps": "tps", "qps": "qps", "eps": "eps", "reads": "reads", "reads/s": "reads",
          "writes": "writes", "writes/s": "writes", "fsyncs": "fsyncs", "err/s": "errors",
          "errors": "errors", "reconn/s": "reconnects", "reconnects": "reconnects"}  # fmt: skip
_MEGABYTES = {"reads": "read_bytes", "writes": "write_bytes"}
_LATE = re.compile(rf"\(ms, ?(\d+)%\):? *{_N}|response time: *{_N}ms \((\d+)%\)")
_THREADS = re.compile(r"\b(?:thds|threads): *(\d+)|\b(\d+) threads,")


def interval_of(line: str) -> tuple[Interval, str] | None:
    """Return the interval that a line reports, and the number of threads it names, if any."""
    found = _REPORT.search(line) if "s" in line and "]" in line else None
    if not found:
        return None
    rest = found[2]
    values: dict[str, float] = {}
    for key, number, unit in _PAIR.findall(rest):
        if unit and key in _MEGABYTES:
            values[_MEGABYTES[key]] = float(number) * _MIB
        elif key in _RATES:
            values[_RATES[key]] = float(number)
    if mixed := _MIXED.search(rest):
        values |= dict(zip(("reads", "writes", "other"), map(float, mixed.groups()), strict=True))
    if not values:
        return None
    if late := _LATE.search(rest):
        percent, milliseconds = (late[1], late[2]) if late[1] else (late[4], late[3])
        values[f"latency_p{percent}_s"] = float(milliseconds) / 1e3
    threads = _THREADS.search(rest)
    return Interval(float(found[1]), values), (threads[1] or threads[2]) if threads else ""


_BEFORE, _AFTER = 8, 3  # lines of other text that may stand within a run, until it is over
_COMMAND, _VERSION, _RUNNING, _OPTIONS, _REPORTS, _SUMMARY = range(6)


@dataclass(slots=True)
class _Open:
    """A run that is being read: how far its report has come, and what lies between its lines."""

    run: SysbenchRun
    stage: int = _COMMAND
    foreign: int = 0
    lines: list[int] = field(default_factory=list)
    unreadable: Caveat | None = None

    def is_over(self, stage: int) -> bool:
        """Return whether a line of this stage belongs to the next run."""
        earlier = stage < self.stage and (stage <= _OPTIONS or self.stage == _SUMMARY)
        if self.unreadable and stage > _OPTIONS:
            return False
        return earlier or stage == self.stage in (_VERSION, _RUNNING)


class _Reader:
    """Takes lines one after the other and gathers the runs they amount to."""

    def __init__(self, text: Text) -> None:
        self._text = text
        self._open: _Open | None = None
        self.found = Found()

    def take(self, number: int, line: str) -> None:
        """Take a line that is no command."""
        opened = self._open
        if opened and opened.run.summary and not opened.unreadable and BEGINS.match(line):
            self.close()
        if _COMMA.search(line):
            others = (_COMMA.sub(".", line), _COMMA.sub("", line))
            if not matched(SUMMARY, line) and any(
                interval_of(x) or matched(SUMMARY, x) for x in others
            ):
                self._fail(number, "numbers with commas; write them as 1234.5")
                return
        if CHECKPOINT.match(line):
            self._fail(number, "reports of checkpoints, each counted from the last one")
        elif reported := interval_of(line):
            self._interval(number, *reported)
        elif figures := matched(SUMMARY, line) if _MARKED.search(line) else None:
            self._summary(number, *figures)
        else:
            self._context(number, line)

    def close(self) -> None:
        """End the run that is being read: it has a result, or the reason why it has none."""
        opened, self._open = self._open, None
        if opened is None:
            return
        run, lines = opened.run, opened.lines
        if opened.unreadable:
            self._reject(opened.unreadable.line, f"not imported: {opened.unreadable.text}")
        elif run.has_result:
            self.found.add(run.first, lambda: reading_of(run, lines, self._text.excerpt(lines)))
        elif run.failures:
            failure = run.failures[0]
            self._reject(failure.line, f"a run of sysbench failed: {failure.text}")
        elif run.command and run.command.runs:
            self._reject(run.first, "a command of sysbench without its result")
        elif run.announced:
            self._reject(run.first, "a run of sysbench began here and has no result: cut off?")

    def command(self, number: int, command: CommandLine) -> None:
        """Take a command, which ends the run before it."""
        self.close()
        if command.tool == "sysbench":
            opened = self._at(_COMMAND, number)
            opened.run.command = command
            opened.lines += range(number + 1, command.last + 1)
            self.found.known.update(opened.lines)

    def _reject(self, line: int, why: str) -> None:
        self.found.rejected.append(Caveat(line, why))

    def _at(self, stage: int, number: int) -> _Open:
        """Return the run that a line of this stage belongs to."""
        if self._open and self._open.is_over(stage):
            self.close()
        self._open = self._open or _Open(SysbenchRun(number))
        self._open.stage = max(self._open.stage, stage)
        self._open.foreign = 0
        self._open.lines.append(number)
        self.found.known.add(number)
        return self._open

    def _fail(self, number: int, why: str) -> None:
        """Note that the run of this line cannot be read."""
        opened = self._at(_REPORTS, number)
        opened.unreadable = opened.unreadable or Caveat(number, why)

    def _interval(self, number: int, interval: Interval, threads: str) -> None:
        before = self._open.run.intervals if self._open else []
        if before and interval.t_s <= before[-1].t_s:
            self.close()
        run = self._at(_REPORTS, number).run
        run.intervals.append(interval)
        if threads:
            run.traits.setdefault("threads", (threads, number))

    def _summary(self, number: int, key: str, match: re.Match[str]) -> None:
        if key == "percentile":
            key += match[1]
        if self._open and key in self._open.run.summary and not self._open.unreadable:
            self.close()
        self._at(_SUMMARY, number).run.summary[key] = (match.groups(""), number)

    def _context(self, number: int, line: str) -> None:
        if version := VERSION.match(line):
            self._at(_VERSION, number).run.version = version[1]
        elif RUNNING.match(line):
            self._at(_RUNNING, number).run.announced = True
        elif trait := matched(TRAITS, line):
            value = " ".join(filter(None, trait[1].groups()))
            self._at(_OPTIONS, number).run.traits[trait[0]] = (value, number)
        elif HEADINGS.match(line) or REMARK.match(line):
            self.found.known.add(number)
            if self._open:
                self._open.lines.append(number)
        elif failed := FAILED.match(line):
            self.found.known.add(number)
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
    for number, line, command in lines_of(text):
        if command:
            reader.command(number, command)
        else:
            reader.take(number, line)
    reader.close()
    return reader.found
