"""Runs of mysqlslap in a text: its blocks of sentences, and the lines of its --csv."""

import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial

from mydyno.logs.text import (
    Caveat,
    CommandLine,
    Found,
    ParsedRun,
    Text,
    chosen,
    lines_of,
    matched,
    once,
)

_LINES = {
    "engine": re.compile(r"^\s*Running for engine (\S+)"),
    "mean_s": re.compile(r"^\s*Average number of seconds to run all queries: ([\d.]+) seconds"),
    "least_s": re.compile(r"^\s*Minimum number of seconds to run all queries: ([\d.]+) seconds"),
    "most_s": re.compile(r"^\s*Maximum number of seconds to run all queries: ([\d.]+) seconds"),
    "threads": re.compile(r"^\s*Number of clients running queries: (\d+)"),
    "queries": re.compile(r"^\s*Average number of queries per client: (\d+)"),
}
_CSV = re.compile(
    r"^(?P<engine>\w*),(?P<type>mixed|query|read|write|key|update),"
    r"(?P<mean_s>\d+\.\d+),(?P<least_s>\d+\.\d+),(?P<most_s>\d+\.\d+),"
    r"(?P<threads>\d+),(?P<queries>\d+)\s*$"
)
_COMMAS = 6
_HEADING = re.compile(r"^\s*Benchmark\s*$")
_OPTIONS = {
    "type": ("auto_generate_sql_load_type",),
    "iterations": ("iterations",),
    "number_int_cols": ("number_int_cols",),
    "number_char_cols": ("number_char_cols",),
}
_NAMES = ("mysqlslap", "mariadb-slap")
_APART = 3  # lines that its heading and its engine stand above a result, at most
_BETWEEN = 8  # lines of other text between a command and its result, at most

_Fields = dict[str, str]


def find(text: Text) -> Found:
    """Return the runs of mysqlslap in a text."""
    commands = _commands(text)
    found = Found(known={n for first, c in commands.items() for n in range(first, c.last + 1)})
    answered: set[int] = set()
    for at, fields, lines in _blocks(text):
        first = _above(at, commands, found.known, text)
        asked, options = [], {}
        if first is not None:
            asked = [*range(first, commands[first].last + 1)]
            options = chosen(commands[first].options, _OPTIONS)
        answered.update(asked)
        found.known.update(lines)
        found.add(at, partial(_reading, {**options, **fields}, [*asked, *lines], text))
    found.rejected += [
        Caveat(first, "a command of mysqlslap without its result")
        for first, command in commands.items()
        if first not in answered and command.runs
    ]
    return found


def _commands(text: Text) -> dict[int, CommandLine]:
    return {n: command for n, _, command in lines_of(text) if command and command.tool in _NAMES}


def _blocks(text: Text) -> Iterator[tuple[int, _Fields, list[int]]]:
    """Yield the line of each result, its fields, and all its lines."""
    for at, line in enumerate(text.lines):
        if line.count(",") == _COMMAS and (csv := _CSV.match(line)):
            yield at, csv.groupdict(), [at]
        elif "seconds to run" in line and _LINES["mean_s"].match(line):
            near = range(max(0, at - _APART), min(len(text.lines), at + len(_LINES)))
            pairs = {n: pair for n in near if (pair := _field(text.lines[n]))}
            later = [n for n in pairs if n > at and pairs[n][0] in {"engine", "mean_s"}]
            own = [n for n in pairs if n < min(later, default=at + len(_LINES))]
            before = [n for n in own if n < at and pairs[n][0] == "engine"]
            mine = [*before[-1:], *(n for n in own if n >= at)]
            headings = [n for n in near if n < at and _HEADING.match(text.lines[n])]
            yield at, dict(pairs[n] for n in mine), [*headings[-1:], *mine]


def _field(line: str) -> tuple[str, str] | None:
    found = matched(_LINES, line)
    return (found[0], found[1][1]) if found else None


def _above(
    at: int, commands: Mapping[int, CommandLine], known: AbstractSet[int], text: Text
) -> int | None:
    """Return the command whose result this is: the last one above it, if little lies between."""
    first = max((n for n in commands if n < at), default=None)
    if first is None:
        return None
    between = range(commands[first].last + 1, at)
    other = [n for n in between if text.lines[n].strip() and n not in known]
    unparsed = [n for n in other if not _field(text.lines[n]) and not _HEADING.match(text.lines[n])]
    return first if len(unparsed) <= _BETWEEN else None


def _reading(fields: _Fields, lines: Sequence[int], text: Text) -> ParsedRun:
    """Return one block; all clients' queries over the mean of the seconds they took."""
    seconds = float(fields["mean_s"])
    if seconds <= 0:
        raise ValueError("mysqlslap took no time that it could measure: nothing can be computed")
    caveats = []
    least, most = fields.get("least_s", fields["mean_s"]), fields.get("most_s", fields["mean_s"])
    if not float(least) <= seconds <= float(most):
        caveats.append(Caveat(lines[-1], "its mean does not lie between its least and its most"))
    clients, queries = int(fields.get("threads", 0)), int(fields.get("queries", 0))
    values = {"seconds": seconds, "runs": 1 / seconds}
    if clients * queries:
        values["qps"] = clients * queries / seconds
    else:
        note = "no number of queries per client: runs per second are compared"
        caveats.append(Caveat(lines[-1], note))
    if least != most:
        note = f"a mean of several iterations, from {least} to {most} s: which they were is not in"
        caveats.append(Caveat(lines[-1], f"{note} the log"))
    traits = {k: v for k, v in fields.items() if not k.endswith("_s") and v not in {"", "0"}}
    return ParsedRun(
        name="-".join(["slap", *([fields["engine"]] if fields.get("engine") else [])]),
        response="qps" if "qps" in values else "runs",
        traits={k: v for k, v in traits.items() if k not in {"engine", "iterations"}},
        totals=values,
        intervals=once(values),
        lines=tuple(lines),
        raw=text.excerpt(lines),
        caveats=tuple(caveats),
    )
