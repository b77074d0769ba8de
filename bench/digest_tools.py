"""The tools that digest a slow log: their commands, costs, and the totals that they report."""

import json
import os
import re
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from digest_log import Log

SHAPES = ("oltp", "wide")
KIB = 1024
_LOOK_S = 0.01
_HIGH = re.compile(r"VmHWM:\s+(\d+)")
_COUNT = re.compile(r"^Count: (\d+) ", re.MULTILINE)
_OVERALL = re.compile(r"^# Overall: ([\d.]+)([kMG]?) total", re.MULTILINE)
_THOUSANDS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}


@dataclass(frozen=True, slots=True)
class Output:
    """What a tool reports of a log: events, and whether its totals are those of the log."""

    events: str
    right: str


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: its name, its arguments before the log, how to read its output, if it is slow."""

    name: str
    argv: tuple[str, ...]
    read: Callable[[str, Log], Output]
    slow: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """One run: seconds of processor and of the clock, peak bytes, and the output."""

    cpu_s: float
    wall_s: float
    peak: int
    output: Output


def tools(binary: str) -> list[Tool]:
    """Return the tools in the table's order; the last two are what the others are held against."""
    own = (binary, "digest", "--json", "--limit=0")
    pt = ("pt-query-digest", "--no-version-check", "--limit=10")
    return [
        Tool("mydyno-probe, 1 thread", (*own, "--threads=1"), _own),
        Tool("mydyno-probe, 2 threads", (*own, "--threads=2"), _own),
        Tool("wc -l", ("wc", "-l"), _nothing),
        Tool("mysqldumpslow", ("mysqldumpslow",), _dumpslow, slow=True),
        Tool("pt-query-digest", pt, _pt, slow=True),
    ]


def absence(tool: Tool) -> str:
    """Return why a tool cannot be run here, or nothing."""
    return "" if shutil.which(tool.argv[0]) else "not installed: packaging/setup.sh bench"


def version(tool: Tool) -> str:
    """Return a tool's own word for its version, or nothing if it has none."""
    if absence(tool) or tool.name.startswith(("wc", "mysqldumpslow")):
        return ""
    done = subprocess.run([tool.argv[0], "--version"], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def measure(tool: Tool, log: Log) -> Run:
    """Run a tool over a log and return what that cost, its children included."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        began = time.perf_counter()
        process = subprocess.Popen(
            [*tool.argv, str(log.path)], stdin=subprocess.DEVNULL, stdout=out, stderr=errors
        )
        peak, status, cost = _watch(process.pid)
        wall = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        text = out.read().decode(errors="replace")
        if process.returncode:
            errors.seek(0)
            raise SystemExit(f"{tool.name}: {errors.read().decode(errors='replace')[-400:]}")
    cpu = cost.ru_utime + cost.ru_stime
    return Run(cpu, wall, peak, tool.read(text, log))


def _watch(pid: int) -> tuple[int, int, resource.struct_rusage]:
    """Wait for a process; return its largest resident bytes, its status, and what it took.

    The kernel's ru_maxrss would have what this Python held when it started the process.
    """
    peak = 0
    while True:
        ended, status, cost = os.wait4(pid, os.WNOHANG)
        if ended:
            return peak, status, cost
        found = _HIGH.search(Path(f"/proc/{pid}/status").read_text())
        peak = max(peak, int(found[1]) * KIB if found else 0)
        time.sleep(_LOOK_S)


def _own(text: str, log: Log) -> Output:
    summary = json.loads(text, parse_float=str)["summary"]
    seconds, _, fraction = str(summary["query_time_s"]).partition(".")
    us = int(seconds + fraction.ljust(6, "0"))
    right = summary["events"] == log.events and us == log.query_time_us
    return Output(str(summary["events"]), "exact" if right else f"WRONG: {log.events} events")


def _nothing(_text: str, _log: Log) -> Output:
    return Output("-", "-")


def _dumpslow(text: str, log: Log) -> Output:
    counts = [int(count) for count in _COUNT.findall(text)]
    groups = f"{len(counts)} groups"
    if sum(counts) != log.events:
        return Output(str(sum(counts)), f"no: {log.events} events, {groups}")
    return Output(str(sum(counts)), f"count exact, time rounded, {groups}")


def _pt(text: str, log: Log) -> Output:
    found = _OVERALL.search(text)
    if not found:
        return Output("-", "no total")
    events = float(found[1]) * _THOUSANDS[found[2]]
    near = abs(events - log.events) <= 0.005 * _THOUSANDS[found[2]] + 0.5
    return Output(found[1] + found[2], "rounded" if near else f"no: {log.events} events")
