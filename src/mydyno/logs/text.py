"""Text of tools, line by line: numbers as printed, command lines, parsed runs."""

import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from json import loads
from math import isfinite

from mydyno.model import Interval

_SHAPE = re.compile(r"([\d.]+)\s*([kKmMgGtT]?)(?:i?[bB])?(?:/s(?:ec)?)?")
_THOUSANDS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_AGREES = 0.001  # ratio: what rounding of times and requests on their way may make


@dataclass(frozen=True, slots=True)
class PrintedNumber:
    """A number that was printed; the true one lies within `half` of it."""

    value: float
    half: float

    def agrees(self, other: float, slack: float = 0.0) -> bool:
        """Return whether `other` may be the number that was printed, give or take 0.1 %."""
        return abs(self.value - other) <= self.half + slack + _AGREES * abs(other)


def shown(text: str) -> PrintedNumber:
    """Return the number in ``12.3k`` or ``88.37``; raise `ValueError` for anything else."""
    return _number(text, _THOUSANDS)


def size(text: str) -> PrintedNumber:
    """Return the bytes in ``16KiB``, ``16Kb``, ``4k`` or ``2G``: powers of 1024."""
    return _number(text, _BINARY)


def _number(text: str, scales: dict[str, int]) -> PrintedNumber:
    found = _SHAPE.fullmatch(text.strip())
    if not found:
        raise ValueError(f"{text!r} is no number")
    digits, scale = found[1], scales[found[2].lower()]
    places = len(digits.partition(".")[2])
    value = float(digits) * scale
    if not isfinite(value):
        raise ValueError(f"{text!r} is no number")
    return PrintedNumber(value, 0.51 * scale / 10**places)


def brief(size_bytes: float) -> str:
    """Return bytes as options name them: 4k, 16k, 1m."""
    for letter, scale in (("m", 2**20), ("k", 2**10)):
        if size_bytes >= scale and size_bytes % scale == 0:
            return f"{size_bytes / scale:g}{letter}"
    return f"{size_bytes:g}"


@dataclass(frozen=True, slots=True)
class Caveat:
    """A caveat on a result, with its line, counted from 0."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class ParsedRun:
    """One run parsed from a log.

    `name` and `traits` identify the workload (``rndrd``; threads, block size …).  `totals` is the
    entire run recomputed from counts and seconds, in base units, and contains the `response`.
    `intervals` are those the tool reported, or one of all the run.  `lines` are the places, counted
    from 0, of the lines it rests on; where several runs share lines, `own` are the first and the
    last that only it has.  `job` is what the log calls it.  Parsing `raw` gives the same run again.
    """

    name: str
    response: str
    traits: Mapping[str, str]
    totals: Mapping[str, float]
    intervals: Sequence[Interval]
    lines: Sequence[int]
    raw: bytes
    caveats: Sequence[Caveat] = field(default=())
    job: str = ""
    own: tuple[int, int] | None = None

    @property
    def span(self) -> tuple[int, int]:
        """Return the places of its own first and last line."""
        return self.own or (self.lines[0], self.lines[-1])

    @property
    def seconds(self) -> float:
        """Return how long the run was, in seconds."""
        return self.totals.get("seconds") or self.intervals[-1].t_s

    @property
    def reported(self) -> bool:
        """Return whether the log has the course of the run, and not only its sum."""
        return len(self.intervals) > 1


def once(totals: Mapping[str, float]) -> tuple[Interval, ...]:
    """Return a run without reports as one interval."""
    return (Interval(totals["seconds"], {k: v for k, v in totals.items() if k != "seconds"}),)


@dataclass(slots=True)
class Found:
    """What one tool's parser found in a text: runs, rejected runs, and the lines it recognised."""

    readings: list[ParsedRun] = field(default_factory=list)
    rejected: list[Caveat] = field(default_factory=list)
    known: set[int] = field(default_factory=set)

    def add(self, line: int, parse: Callable[[], ParsedRun]) -> None:
        """Add a run; one that raises `ValueError` is rejected, with a caveat at this line.

        So is one with a number that no float holds.
        """
        try:
            self.readings.append(parse())
        except (ValueError, ArithmeticError) as problem:
            self.rejected.append(Caveat(line, str(problem)))


def matched(patterns: Mapping[str, re.Pattern[str]], line: str) -> tuple[str, re.Match[str]] | None:
    """Return the name of the first pattern that matches a line, and the match."""
    found = ((name, pattern.match(line)) for name, pattern in patterns.items())
    return next(((name, match) for name, match in found if match), None)


_MARKS = {0xA0: " ", 0x2009: " ", 0x202F: " ", 0x3000: " ", 0xFEFF: None, 0x200B: None}
_QUOTES = {0x201C: '"', 0x201D: '"', 0x201E: '"', 0xAB: '"', 0xBB: '"', 0x2018: "'", 0x2019: "'"}
_TYPED = _MARKS | _QUOTES | {0xFF1A: ":", 0x2026: "..."}
_DASHES = re.compile(r"(?<=\s)[\u2012-\u2015](?=[A-Za-z])")  # typographers join two hyphens
_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-Z0-9]|[=>])")
_CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d+)?"
_ZONE = r"(?:Z|[+-]\d\d:?\d\d)?"
_LOGGER = r"(?:\s[\w.-]{1,80}\s[\w./@-]{1,80}\[\d+\]:)?"  # host, program, process
_STAMP = re.compile(
    r"^(?:(?P<container>[A-Za-z][\w.-]{0,80} {1,40}\|(?:\s|$)|\[pod/\S+\]\s)|"
    rf"(?:\[?(?:\d{{4}}-\d\d-\d\d[T ]{_CLOCK}{_ZONE}|{_CLOCK})\]?|[A-Z][a-z]{{2}} [ \d]\d {_CLOCK})"
    rf"{_LOGGER}(?:\s|$))"
)
_DOCKER = '{"log":"'
_FIGURES = re.compile(r"\btps: |IOPS=|(?:time|transactions|queries|avg|sum): ")
_QUOTED = re.compile(r"^(?:> ?)+")
_SECRETS = re.compile(
    r"(?P<name>--?(?:[a-z-]*password|mysql-passwd|pgsql-password)[= ]|"
    r"(?<=\s)-p(?=[^\s-])|MYSQL_PWD=)(?P<value>'[^']*'|\"[^\"]*\"|[^\s'\"\\]+)"
)
_WIDE = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True)
class Text:
    """The lines of one text: `lines` to be read, `original` as they came, except passwords."""

    lines: tuple[str, ...]
    original: tuple[str, ...]

    def without(self, numbers: Collection[int]) -> "Text":
        """Return the text with these lines blank to its readers."""
        lines = ("" if n in numbers else line for n, line in enumerate(self.lines))
        return Text(tuple(lines), self.original)

    def excerpt(self, numbers: Iterable[int]) -> bytes:
        """Return the lines at these places, counted from 0, as they came."""
        return "".join(f"{self.original[n]}\n" for n in sorted(set(numbers))).encode()


def text_of(data: bytes) -> Text:
    """Return the text in `data`; raise `ValueError` where there is none.

    UTF-8, UTF-16 with its mark, else Latin-1.  Passwords in commands become ``***``.
    """
    if not data.strip():
        raise ValueError("empty")
    if data.startswith(_WIDE):
        text = data.decode("utf-16", errors="replace")
    elif b"\0" in data:
        raise ValueError("binary, no text")
    else:
        text = _narrow(data)
    original = [_SECRETS.sub(r"\g<name>***", line.rstrip("\r")) for line in text.split("\n")]
    if original and not original[-1]:
        original.pop()
    _refuse_mixed(original)
    return Text(tuple(map(_plain, original)), tuple(original))


def _narrow(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _refuse_mixed(lines: Sequence[str]) -> None:
    """Raise `ValueError` where the output of several containers alternates."""
    found = (_STAMP.match(_ESCAPES.sub("", line)) for line in lines if _FIGURES.search(line))
    names = [stamp["container"] or "" for stamp in found if stamp]
    changes = sum(a != b for a, b in pairwise(names))
    if changes >= max(2, len(set(names))):
        listed = " and ".join(sorted({name.strip(" |[]") for name in names}))
        raise ValueError(f"lines of {listed} alternate; give those of each in a file of its own")


def _plain(line: str) -> str:
    """Return the line as a tool printed it, without what loggers, shells and editors add.

    These are times and names before it, colours, typography, quotation marks, and what was
    overwritten.
    """
    if line.startswith(_DOCKER):  # a log file of Docker
        with suppress(ValueError):
            line = str(loads(line)["log"]).rstrip("\r\n")
    line = _ESCAPES.sub("", line).translate(_TYPED)
    line = next((part for part in reversed(line.split("\r")) if part.strip()), "")
    for _ in range(2):  # a container's name, and a time
        line = _STAMP.sub("", line, count=1)
    return _DASHES.sub("--", _QUOTED.sub("", line)).rstrip()


_KNOWN = ("sysbench", "fio", "slap", "tpcc.lua")
_TOOLS = r"sysbench|fio|mysqlslap|mariadb-slap|tpcc\.lua"
_COMMAND = re.compile(
    r"^\s*(?:[^\s].*?[$#>%]\s+|[$#%+]\s*)?"  # a shell's prompt, or the trace of one
    r"(?:(?:time|sudo|nohup|exec)\s+|(?:numactl|taskset|nice|ionice|chrt)\s.*?\s|[A-Z_]+=\S*\s+)*"
    rf"(?P<tool>(?:[\w.~+-]*/)*(?:{_TOOLS}))\s+(?P<rest>.*)$"
)
_MORE = re.compile(r"^\s*(?:>\s*)?")
_ACTIONS = ("run", "prepare", "cleanup", "prewarm", "help", "check")
_LONGEST = 40  # lines of one command


@dataclass(frozen=True, slots=True)
class CommandLine:
    """A command of a load generator: its words, options by name, and the lines it stands on."""

    tool: str
    words: Sequence[str]
    options: Mapping[str, str]
    last: int

    @property
    def runs(self) -> bool:
        """Return whether it is the load itself, and neither its preparation nor its end."""
        if {"version", "help", "V", "h"} & set(self.options):
            return False
        asked = [word for word in self.words if word in _ACTIONS]
        return not asked or asked[-1] == "run"


def command_at(lines: Sequence[str], first: int) -> CommandLine | None:
    """Return the command that begins at a line, continuation lines included; None for none."""
    if not any(tool in lines[first] for tool in _KNOWN):
        return None
    found = _COMMAND.match(lines[first])
    if not found:
        return None
    rest, last = found["rest"], first
    while rest.endswith("\\") and last + 1 < len(lines) and last - first < _LONGEST:
        last += 1
        rest = rest[:-1] + " " + _MORE.sub("", lines[last], count=1)
    if " -" not in f" {rest}":
        return None
    tool = found["tool"].rsplit("/", 1)[-1]
    words = _words(rest)
    if tool == "tpcc.lua":
        tool, words = "sysbench", ["tpcc", *words]
    return CommandLine(tool, [w for w in words if not w.startswith("-")], _options(words), last)


def lines_of(text: Text) -> Iterator[tuple[int, str, CommandLine | None]]:
    """Yield each line that is not blank, with its number; of a command only the first one."""
    last = -1
    for number, line in enumerate(text.lines):
        if number > last and line.strip():
            command = command_at(text.lines, number)
            last = command.last if command else number
            yield number, line, command


def chosen(options: Mapping[str, str], names: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the values of options under the names of what they set."""
    return {name: options[key] for name, keys in names.items() for key in keys if key in options}


def _words(rest: str) -> list[str]:
    try:
        return shlex.split(rest, comments=True)
    except ValueError:  # an apostrophe of the text around it
        return rest.split()


def _options(words: Sequence[str]) -> dict[str, str]:
    """Return options by name, ``_`` for ``-``, as sysbench takes either."""
    found: dict[str, str] = {}
    for word in words:
        if word.startswith("-"):
            name, _, value = word.lstrip("-").partition("=")
            found[name.replace("-", "_")] = value
    return found
