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
_ERROR = re.compile(
    r"^\s*(?:mysqlslap|mariadb-slap): (?:\[ERROR\] )?(Error|Cannot .*|.*Cannot run query.*)"
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
_HEADED = "heading"
_FIRST = (_HEADED, "engine")  # what stands above the mean
_APART = 4  # lines of other text within a block, at most
_BETWEEN = 8  # lines of other text between a command and its result, at most

_Fields = dict[str, str]


def find(text: Text) -> Found:
    """Return the runs of mysqlslap in a text."""
    commands = {n: one for n, _, one in lines_of(text) if one and one.tool in _NAMES}
    found = Found(known={n for first, c in commands.items() for n in range(first, c.last + 1)})
    answered: set[int] = set()
    errors = [n for n, line in enumerate(text.lines) if "slap: " in line and _ERROR.match(line)]
    found.rejected += [
        Caveat(n, "not imported: numbers with commas; write them as 1234.5")
        for n, line in enumerate(text.lines)
        if "seconds to run" in line
        and _LINES["mean_s"].match(line.replace(",", "."))
        and "," in line
    ]
    last = -1
    for at, fields, lines in _blocks(text):
        first = _above(at, commands, found.known, text)
        asked, options = [], {}
        if first is not None:
            asked = [*range(first, commands[first].last + 1)]
            options = chosen(commands[first].options, _OPTIONS)
        answered.update(asked)
        found.known.update(lines)
        failed = next((n for n in errors if last < n < at), None)
        last = at
        if failed is None:
            found.add(
                at,
                partial(
                    _reading, {**options, **fields}, [*asked, *lines], text, (lines[0], lines[-1])
                ),
            )
        else:
            note = f"not imported: clients of this result failed, see line {failed + 1}"
            found.rejected.append(Caveat(at, note))
    found.rejected += [
        Caveat(first, "a command of mysqlslap without its result")
        for first, command in commands.items()
        if first not in answered and command.runs
    ]
    return found


def _blocks(text: Text) -> Iterator[tuple[int, _Fields, list[int]]]:
    """Yield the line of each result, its fields, and all its lines."""
    for at, line in enumerate(text.lines):
        if line.count(",") == _COMMAS and (csv := _CSV.match(line)):
            yield at, csv.groupdict(), [at]
        elif "seconds to run" in line and _LINES["mean_s"].match(line):
            after = _near(text, range(at, len(text.lines)))
            before = _near(text, range(at - 1, -1, -1))
            fields = {**before, **after}
            pairs = {name: text.lines[n] for name, n in fields.items() if name != _HEADED}
            found = {name: _LINES[name].match(line) for name, line in pairs.items()}
            yield at, {k: m[1] for k, m in found.items() if m}, sorted(fields.values())


def _near(text: Text, places: range) -> dict[str, int]:
    """Return the lines of one block on one side of its mean, by field, each field once.

    Blank lines and a few of other text may stand between them.
    """
    found: dict[str, int] = {}
    foreign = 0
    for n in places:
        name = _field(text.lines[n])
        if not name:
            foreign += bool(text.lines[n].strip())
        elif name in found or (name in _FIRST) != (places.step < 0):
            break
        else:
            found[name] = n
        if foreign > _APART:
            break
    return found


def _field(line: str) -> str:
    found = matched(_LINES, line)
    return found[0] if found else _HEADED if _HEADING.match(line) else ""


def _above(
    at: int, commands: Mapping[int, CommandLine], known: AbstractSet[int], text: Text
) -> int | None:
    """Return the command whose result this is: the last one above it, if little lies between."""
    first = max((n for n in commands if n < at), default=None)
    if first is None:
        return None
    between = range(commands[first].last + 1, at)
    other = [n for n in between if text.lines[n].strip() and n not in known]
    unparsed = [n for n in other if not _field(text.lines[n])]
    return first if len(unparsed) <= _BETWEEN else None


def _reading(fields: _Fields, lines: Sequence[int], text: Text, own: tuple[int, int]) -> ParsedRun:
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
        own=own,
    )
