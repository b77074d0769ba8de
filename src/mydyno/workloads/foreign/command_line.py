"""The commands that stand above their output in a log: tool, options and what was asked."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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
